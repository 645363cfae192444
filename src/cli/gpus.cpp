#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

std::string scaled(const std::optional<device::Figure>& figure, double unit, const char* suffix) {
  if (!figure) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f %s", static_cast<double>(figure->value) / unit, suffix);
  return text.data();
}

int print_one(const std::string& name) {
  const Result<GpuProfile> profile = find_profile(name);
  if (!profile) return report_error(profile.error());
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    if (builtin.name != profile->name) continue;
    std::printf("%.*s", static_cast<int>(builtin.json.size()), builtin.json.data());
    return 0;
  }
  const Result<std::string> own = core::read_file(name);
  if (!own) return report_error(own.error());
  std::printf("%s", own->c_str());
  return 0;
}

}  // namespace

int run_gpus(const GpusOptions& options) {
  if (!options.name.empty()) return print_one(options.name);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Table table({{.title = "name"},
               {.title = "memory", .right = true},
               {.title = "SMs", .right = true},
               {.title = "bandwidth", .right = true},
               {.title = "GPU"}});
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    if (options.json) {
      list.push_back(nlohmann::ordered_json::parse(builtin.json));
      continue;
    }
    const Result<GpuProfile> profile = device::parse_profile(builtin.json, builtin.name);
    if (!profile) return report_error(profile.error());
    table.add({profile->name, Bytes(profile->memory_bytes.value),
               profile->sm_count ? std::to_string(profile->sm_count->value) : "-",
               scaled(profile->memory_bandwidth_bytes_per_second, 1e9, "GB/s"), profile->title});
  }
  const std::string text = options.json ? list.dump(2) + "\n" : table.text(terminal_of(STDOUT_FILENO));
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace gpumem::cli
