#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/server.hpp"
#include "report.hpp"
#include "server_table.hpp"

namespace gpumem::cli {

namespace {

using monitor::LiveGpu;
using monitor::Machine;
using std::chrono::milliseconds;

std::string clock_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

/// "13.2", with the unit of what it is a part of.
std::string gib(Bytes bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", bytes.gib());
  return text.data();
}

/// "GPU 0 13.2/39.6 GiB 41 % 2 jobs", "GPU 1 idle"; what it says about activity is nvidia-smi's with a "u".
std::string shown(const LiveGpu& gpu, int slice) {
  std::string text = "GPU " + std::to_string(gpu.index);
  if (slice > 0) text += "." + std::to_string(slice);
  if (gpu.compute_mode == monitor::ComputeMode::prohibited) return text + " prohibited";
  text += " " + gib(gpu.used) + "/" + gib(gpu.total) + " GiB ";
  text += gpu.sm_activity ? percent(*gpu.sm_activity, "%.0f %%") : "? %";
  if (gpu.activity_source == monitor::ActivitySource::utilisation) text += "u";
  if (gpu.processes.empty()) return text;
  return text + " " + std::to_string(gpu.processes.size()) + (gpu.processes.size() == 1 ? " process" : " processes");
}

std::string watch_line(const Machine& machine) {
  std::string text = clock_time();
  int slice = 0;
  for (const LiveGpu& gpu : machine.gpus) {
    const bool again = !gpu.mig_parent.empty() && slice > 0 && (&gpu)[-1].mig_parent == gpu.mig_parent;
    slice = gpu.mig_parent.empty() ? 0 : again ? slice + 1 : 1;
    text += (text.empty() ? "" : "   ") + shown(gpu, slice);
  }
  return text;
}

void print_once(const std::vector<std::string>& warnings, std::vector<std::string>& said) {
  for (const std::string& warning : warnings) {
    if (std::find(said.begin(), said.end(), warning) != said.end()) continue;
    std::fprintf(stderr, "gpumem: warning: %s\n", cli::said(warning).c_str());
    said.push_back(warning);
  }
}

/// A line a second, until nobody reads any more; `lines` 0: without end.
int watch(const monitor::Nvml& nvml, milliseconds window, std::int64_t lines) {
  constexpr milliseconds kInterval{1000};
  std::vector<std::string> said;
  if (window.count() == 0) window = kInterval;
  for (std::int64_t line = 0; lines == 0 || line < lines; ++line) {
    const Result<Machine> machine = nvml.read(window);
    if (!machine) return report_error(machine.error());
    if (line == 0) {
      std::fprintf(stderr, "gpumem: driver %s; memory used of all, SM activity (u: nvidia-smi's utilisation)\n",
                   machine->driver_version.c_str());
    }
    print_once(machine->warnings, said);
    std::printf("%s\n", watch_line(*machine).c_str());
    if (std::fflush(stdout) != 0) break;
  }
  return 0;
}

}  // namespace

int run_server(const ServerOptions& options) {
  const auto window = monitor::parse_window(options.window);
  if (!window) return report_error(window.error());
  const auto nvml = monitor::Nvml::open();
  if (!nvml) return report_error(nvml.error());
  if (options.watch) return watch(*nvml, *window, options.lines);
  const Result<Machine> machine = nvml->read(*window);
  if (!machine) return report_error(machine.error());
  const auto live = monitor::live_server_of(*machine);
  if (!live) return report_error(live.error());
  print_live_warnings(live->warnings);
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  const bool for_people = terminal.shown && !options.json;
  const std::string text = for_people ? server_table(live->server, {{}, {}}, terminal) : place::to_json(live->server);
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace gpumem::cli
