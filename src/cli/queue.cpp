#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "attendance.hpp"
#include "commands.hpp"
#include "figures.hpp"
#include "live_gpus.hpp"
#include "occupancy.hpp"
#include "report.hpp"
#include "turn.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using launcher::Entry;

/// A job in the queue as people want to see it.
struct Row {
  const Entry* entry = nullptr;
  std::string state;
  double seconds = 0.0;  ///< since it has been so
  std::vector<std::string> gpus;
  std::optional<Bytes> promised;  ///< on each GPU, the largest; of who waits, what it asks for
  std::optional<Bytes> seen;
  std::string why;       ///< of who waits
  bool stopped = false;  ///< the same: its launcher does not go on
};

std::string user_name(std::int64_t user) {
  const passwd* entry = getpwuid(static_cast<uid_t>(user));
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

std::string duration(double seconds) {
  constexpr double kMinute = 60.0;
  constexpr double kHour = 3600.0;
  if (seconds < 2 * kMinute) return text_of("%.0f s", seconds);
  if (seconds < 2 * kHour) return text_of("%.0f min", seconds / kMinute);
  return text_of("%.1f h", seconds / kHour);
}

/// "GPU 0" of a whole GPU, the UUID of a slice.
std::string short_name(const std::string& uuid, const Result<launcher::Gpus>& gpus) {
  if (!gpus) return uuid;
  for (const monitor::LiveGpu& gpu : gpus->machine.gpus) {
    if (gpu.uuid == uuid && gpu.mig_parent.empty()) return "GPU " + std::to_string(gpu.index);
  }
  return uuid;
}

/// `use`: of each GPU, by its UUID.
Row running_row(const Entry& entry, const std::map<std::string, launcher::GpuUse>& use, double now) {
  Row row;
  row.entry = &entry;
  row.state = entry.cancelled ? "ends" : launcher::is_alive(entry.launcher) ? "runs" : "runs alone";
  row.seconds = now - entry.holding->since;
  for (const launcher::Promise& promise : entry.holding->promises) {
    row.gpus.push_back(promise.gpu);
    row.promised = std::max(row.promised, std::optional(promise.memory));
    const auto on_gpu = use.find(promise.gpu);
    if (on_gpu == use.end()) continue;
    const auto own = on_gpu->second.jobs.find(entry.job);
    const bool told = own != on_gpu->second.jobs.end() || !on_gpu->second.hidden;
    const Bytes bytes = own == on_gpu->second.jobs.end() ? Bytes() : own->second;
    if (told) row.seen = std::max(row.seen, std::optional(bytes));
  }
  return row;
}

std::string why_head_waits(const Entry& entry, const Result<launcher::Gpus>& gpus, const launcher::Ledger& ledger) {
  if (!gpus) return core::to_string(gpus.error());
  const auto judgement = launcher::judge(entry, *gpus, ledger);
  if (!judgement) return core::to_string(judgement.error());
  return judgement->decision.placed() ? "about to start" : launcher::words_of(*judgement, entry, ledger);
}

std::string why_stopped(const Entry& entry) {
  return "its launcher is stopped; it keeps its place, and others go past it until kill -CONT " +
         std::to_string(entry.launcher.pid);
}

std::vector<Row> rows_of(const launcher::Ledger& ledger, const Result<launcher::Gpus>& gpus) {
  const double now = launcher::seconds_since_boot();
  std::vector<Row> rows;
  const auto use = gpus ? launcher::use_of(gpus->machine, ledger) : std::map<std::string, launcher::GpuUse>();
  for (const Entry* entry : ledger.running()) rows.push_back(running_row(*entry, use, now));
  const Entry* before = nullptr;
  for (const Entry* entry : ledger.waiting()) {
    Row row;
    row.entry = entry;
    row.stopped = launcher::is_stopped(*entry);
    row.state = row.stopped ? "stopped" : entry->failures > 0 ? "waits again" : "waits";
    row.seconds = now - entry->since;
    row.promised = entry->asked.memory;
    row.why = row.stopped         ? why_stopped(*entry)
              : before == nullptr ? why_head_waits(*entry, gpus, ledger)
                                  : "after " + before->shown_id();
    if (!row.stopped) before = entry;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json bytes_json(const std::optional<Bytes>& bytes) { return bytes ? Json(bytes->count()) : Json(nullptr); }

Json to_json(const Row& row) {
  const Entry& entry = *row.entry;
  return {{"job", entry.job},
          {"name", entry.name},
          {"user", user_name(entry.user)},
          {"state", entry.holding ? "running" : "waiting"},
          {"stopped", row.stopped},
          {"cancelled", entry.cancelled},
          {"out_of_memory", entry.failures},
          {"seconds", rounded(row.seconds)},
          {"launcher_pid", entry.launcher.pid},
          {"pid", entry.holding ? Json(entry.holding->leader.pid) : Json(nullptr)},
          {"gpus_asked", entry.asked.gpus},
          {"memory_asked_bytes", bytes_json(entry.asked.memory)},
          {"gpus", row.gpus},
          {"promised_bytes", entry.holding ? bytes_json(row.promised) : Json(nullptr)},
          {"seen_bytes", bytes_json(row.seen)},
          {"why", row.why.empty() ? Json(nullptr) : Json(row.why)}};
}

std::string to_text(const std::vector<Row>& rows, const Result<launcher::Gpus>& gpus, const Terminal& terminal) {
  Table table({{.title = "job"},
               {.title = "user"},
               {.title = "state"},
               {.title = "for", .right = true},
               {.title = "GPUs"},
               {.title = "promised", .right = true},
               {.title = "seen", .right = true},
               {}});
  for (const Row& row : rows) {
    std::string names;
    for (const std::string& gpu : row.gpus) names += (names.empty() ? "" : ", ") + short_name(gpu, gpus);
    const bool runs = row.entry->holding.has_value();
    if (!runs) names = "asks for " + std::to_string(row.entry->asked.gpus);
    Cell promised = row.promised;
    promised.enclosed = !runs;
    table.add({row.entry->shown_id(), user_name(row.entry->user), row.state, duration(row.seconds), names, promised,
               runs ? Cell(row.seen) : Cell(""), row.why});
  }
  return table.text(terminal);
}

}  // namespace

int run_queue(const QueueOptions& options) {
  const auto directory = launcher::queue_directory(options.directory);
  if (!directory) return report_error(directory.error());
  auto journal = launcher::Journal::open(*directory);
  if (!journal) return report_error(journal.error());
  const core::Status taken = launcher::take_back_the_gone(*journal);
  if (!taken) std::fprintf(stderr, "gpumem: warning: %s\n", said(taken.error()).c_str());
  const auto read_gpus = open_gpus();
  const Result<launcher::Gpus> gpus = read_gpus ? (*read_gpus)() : Result<launcher::Gpus>(read_gpus.error());
  if (!gpus) std::fprintf(stderr, "gpumem: warning: %s\n", said(gpus.error()).c_str());
  const std::vector<Row> rows = rows_of(journal->ledger(), gpus);
  std::string text;
  if (options.json) {
    Json json = {{"schema", 1}, {"directory", *directory}, {"jobs", Json::array()}};
    for (const Row& row : rows) json["jobs"].push_back(to_json(row));
    text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } else {
    text =
        rows.empty() ? "no job waits or runs (" + *directory + ")\n" : to_text(rows, gpus, terminal_of(STDOUT_FILENO));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
