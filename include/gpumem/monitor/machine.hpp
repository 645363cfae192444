// Input: what the driver says about the GPUs of this machine.
// Output: Machine, plain values. A MIG slice is a GPU of its own, and the GPU that it is a part of is left out.
// Units: bytes; shares of the GPU from 0 to 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"

namespace gpumem::monitor {

/// A process that has a CUDA context on a GPU.
struct GpuProcess {
  std::int64_t pid = 0;             ///< as the driver counts: outside of containers
  std::optional<core::Bytes> used;  ///< none where the driver hides it, or tells more than the GPU has
};

/// Where a figure of SM activity is from. The names are in server.json.
enum class ActivitySource : std::uint8_t {
  none,
  utilisation,  ///< the share of time in which any kernel ran, as nvidia-smi prints it: at least the SM activity
  gpm,          ///< NVML's GPU performance monitoring: the mean share of SMs that were busy
  dcgm,         ///< DCGM's field 1002: the same
};
[[nodiscard]] std::string_view to_string(ActivitySource source);

/// How many processes may use a GPU.
enum class ComputeMode : std::uint8_t { shared, exclusive_process, prohibited };
[[nodiscard]] std::string_view to_string(ComputeMode mode);

struct LiveGpu {
  std::string uuid;   ///< as CUDA_VISIBLE_DEVICES takes it: "GPU-...", "MIG-..."
  int index = 0;      ///< of the whole GPU, as nvidia-smi counts
  std::string name;   ///< "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  core::Bytes total;  ///< without what the driver keeps for itself, where it tells that
  core::Bytes used;   ///< by all processes together, also by those that are not listed
  std::vector<GpuProcess> processes;
  std::optional<double> sm_activity;  ///< mean over the window; none: not known
  ActivitySource activity_source = ActivitySource::none;
  std::string mig_parent;  ///< UUID of the GPU that a slice is a part of; empty: a whole GPU
  ComputeMode compute_mode = ComputeMode::shared;
};

struct Machine {
  std::string driver_version;
  std::vector<LiveGpu> gpus;
  std::vector<std::string> warnings;  ///< what was left out, and what the driver does not tell, for people
};

}  // namespace gpumem::monitor
