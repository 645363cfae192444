#include "pretended_machine.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace gpumem::pretended {

namespace {

using Json = nlohmann::json;

Gpu gpu_from(const Json& json) {
  Gpu gpu;
  gpu.uuid = json.value("uuid", "");
  gpu.name = json.value("name", "");
  gpu.total = json.value("memory_total", 0ULL);
  gpu.reserved = json.value("reserved", 0ULL);
  gpu.used_outside = json.value("used_outside", 0ULL);
  gpu.utilisation = json.value("utilisation", 0.0);
  if (json.contains("sm_util")) gpu.sm_util = json.at("sm_util").get<double>();
  const std::string mode = json.value("compute_mode", "shared");
  gpu.compute_mode = mode == "prohibited" ? 2 : mode == "exclusive_process" ? 3 : 0;
  gpu.gpu_instance = json.value("gpu_instance", 0U);
  if (json.contains("lost")) {
    gpu.lost = json.at("lost").is_boolean() && json.at("lost").get<bool>();
    gpu.lost_later = json.at("lost") == "later";
  }
  gpu.mig = json.contains("mig");
  if (gpu.mig) {
    for (const Json& slice : json.at("mig")) gpu.slices.push_back(gpu_from(slice));
  }
  return gpu;
}

/// "UUID BYTES [smact=SHARE] [reports=BYTES]"
std::optional<Use> use_from(const std::string& line, pid_t pid) {
  std::istringstream words(line);
  Use use;
  use.pid = pid;
  if (!(words >> use.uuid >> use.bytes)) return std::nullopt;
  use.reported = use.bytes;
  for (std::string word; words >> word;) {
    if (word.rfind("smact=", 0) == 0) use.smact = std::strtod(word.c_str() + 6, nullptr);
    if (word == "reports=none") {
      use.reported.reset();
    } else if (word.rfind("reports=", 0) == 0) {
      use.reported = std::strtoull(word.c_str() + 8, nullptr, 10);
    }
  }
  return use;
}

void read_job(const std::filesystem::path& path, std::vector<Use>& uses) {
  const std::string name = path.filename().string();
  const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
  if (pid <= 0 || std::to_string(pid) != name) return;
  const std::string started = start_of(pid);
  if (started.empty()) return;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("start ", 0) == 0) {
      if (line.substr(6) != started) return;  // another process has the number now
      continue;
    }
    const std::optional<Use> use = use_from(line, pid);
    if (use) uses.push_back(*use);
  }
}

}  // namespace

std::optional<Machine> read_machine() {
  const char* path = std::getenv("GPUMEM_PRETENDED_NVML");
  if (path == nullptr) return std::nullopt;
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    Machine machine;
    machine.driver = json.value("driver", "550.54.15");
    machine.jobs = json.value("jobs", "");
    for (const Json& gpu : json.at("gpus")) machine.gpus.push_back(gpu_from(gpu));
    if (json.contains("fail")) machine.fail = json.at("fail").get<std::map<std::string, int>>();
    if (json.contains("missing")) machine.missing = json.at("missing").get<std::set<std::string>>();
    return machine;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::vector<Use> read_uses(const Machine& machine) {
  std::vector<Use> uses;
  if (machine.jobs.empty()) return uses;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(machine.jobs, fault)) read_job(entry.path(), uses);
  return uses;
}

unsigned long long used_of(const Gpu& gpu, const std::vector<Use>& uses) {
  unsigned long long used = gpu.used_outside;
  for (const Use& use : uses) {
    if (use.uuid == gpu.uuid) used += use.bytes;
  }
  return used;
}

std::string start_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // a program's name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return {};
  for (int at = 4; at <= 22; ++at) fields >> field;  // proc(5): starttime is the 22nd
  return field;
}

}  // namespace gpumem::pretended
