#include "server_table.hpp"

#include <algorithm>

#include "figures.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

/// What jobs use of a GPU, and what beside that is set aside for them.
Gauge gauge_of_gpu(const place::ServerGpu& gpu) {
  const double used = share_of(gpu.used, gpu.total);
  const double held = share_of(Bytes(gpu.total.count() - gpu.free().count()), gpu.total);
  return {used, used, std::max(used, held), Tone::plain};
}

/// The jobs of a GPU, and the mark of one that comes.
Cell jobs_cell(const place::ServerGpu& gpu, std::string_view comes) {
  std::string text;
  for (const place::PlacedJob& job : gpu.jobs) text += (text.empty() ? "" : ", ") + printable_id(job.id);
  if (comes.empty()) return text;
  return {text + (text.empty() ? "<- " : " <- ") + printable_id(comes), Tone::good};
}

}  // namespace

std::string printable_id(std::string_view id) {
  const std::string text = core::quoted(id);
  return text.substr(1, text.size() - 2);
}

std::string server_table(const place::Server& server, const MarkedGpus& marked, const Terminal& terminal) {
  Table table({{.title = "GPU"},
               {.title = "profile", .spare = true},
               {.title = "total", .right = true},
               {.title = "used", .right = true},
               {.title = "set aside", .right = true},
               {.title = "free", .right = true},
               {.title = "memory in use", .gauge = true, .below = true},
               {.title = "SM activity", .right = true},
               {.title = "jobs"}});
  for (std::size_t index = 0; index < server.gpus.size(); ++index) {
    const place::ServerGpu& gpu = server.gpus[index];
    const bool comes = std::find(marked.gpus.begin(), marked.gpus.end(), index) != marked.gpus.end();
    table.add({printable_id(gpu.id), gpu.profile.empty() ? "-" : printable_id(gpu.profile), gpu.total, gpu.used,
               gpu.set_aside(), gpu.free(), percent(gpu.smact), jobs_cell(gpu, comes ? marked.id : std::string_view())},
              gauge_of_gpu(gpu));
  }
  return table.text(terminal);
}

}  // namespace gpumem::cli
