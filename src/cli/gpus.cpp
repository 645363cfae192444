#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"

namespace gpumem::cli {

namespace {

std::string scaled(const std::optional<device::Figure>& figure, double unit, const char* suffix) {
  if (!figure) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f %s", static_cast<double>(figure->value) / unit, suffix);
  return text.data();
}

void print_row(const std::string& name, const std::string& memory, const std::string& sms, const std::string& bandwidth,
               const std::string& title) {
  std::printf("%-24s %10s %5s %10s   %s\n", name.c_str(), memory.c_str(), sms.c_str(), bandwidth.c_str(),
              title.c_str());
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
  if (!options.json) print_row("name", "memory", "SMs", "bandwidth", "GPU");
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    if (options.json) {
      list.push_back(nlohmann::ordered_json::parse(builtin.json));
      continue;
    }
    const Result<GpuProfile> profile = device::parse_profile(builtin.json, builtin.name);
    if (!profile) return report_error(profile.error());
    print_row(profile->name, core::to_string(Bytes(profile->memory_bytes.value)),
              profile->sm_count ? std::to_string(profile->sm_count->value) : "-",
              scaled(profile->memory_bandwidth_bytes_per_second, 1e9, "GB/s"), profile->title);
  }
  if (options.json) std::printf("%s\n", list.dump(2).c_str());
  return 0;
}

}  // namespace gpumem::cli
