// Input: GPUs that a test makes up.
// Output: a machine that has them: NVML's functions answer as if they were there, in this process and in the programs
// that it starts (tests/support/nvml).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "own_path.hpp"
#include "programs.hpp"

namespace gpumem::testing {

/// While it lives, this machine has these GPUs. `library`: "libnvidia-ml.so.1", or "old/..." of a driver of 2019.
class PretendedGpus {
 public:
  explicit PretendedGpus(const std::vector<nlohmann::json>& gpus, const std::string& library = "libnvidia-ml.so.1")
      : folder_(own_path("gpus")) {
    std::filesystem::create_directories(folder_ / "jobs");
    machine = {{"driver", "550.54.15"}, {"jobs", (folder_ / "jobs").string()}, {"gpus", nlohmann::json(gpus)}};
    write();
    setenv("GPUMEM_PRETENDED_NVML", file().c_str(), 1);
    setenv("GPUMEM_NVML", (std::string(kPretendedNvml) + "/" + library).c_str(), 1);
  }
  PretendedGpus(const PretendedGpus&) = delete;
  PretendedGpus& operator=(const PretendedGpus&) = delete;
  ~PretendedGpus() {
    unsetenv("GPUMEM_PRETENDED_NVML");
    unsetenv("GPUMEM_NVML");
    std::filesystem::remove_all(folder_);
  }

  /// The machine is as `machine` says from now on.
  void write() const { std::ofstream(file()) << machine.dump(); }

  /// This process takes so much of a GPU; the words are those of pretended_machine.hpp.
  void take(const std::string& uuid, long long bytes, const std::string& words = "") const {
    std::ofstream(folder_ / "jobs" / std::to_string(getpid()), std::ios::app)
        << uuid << " " << bytes << " " << words << "\n";
  }

  [[nodiscard]] std::string file() const { return (folder_ / "machine.json").string(); }

  /// Where jobs say what they take.
  [[nodiscard]] std::string jobs() const { return (folder_ / "jobs").string(); }

  nlohmann::json machine;

 private:
  std::filesystem::path folder_;
};

inline constexpr long long kA100Total = 42'949'672'960;
inline constexpr long long kA100Reserved = 475'201'536;

inline nlohmann::json pretended_a100(const std::string& uuid) {
  return {{"uuid", uuid}, {"name", "NVIDIA A100-SXM4-40GB"}, {"memory_total", kA100Total}, {"reserved", kA100Reserved}};
}

}  // namespace gpumem::testing
