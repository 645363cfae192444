// Input: the GPUs of a server and the jobs on them, also as JSON.
// Output: Server, plain values that a policy reads; and the same as JSON. A MIG slice is a GPU of its own.
// Units: bytes; shares of the GPU from 0 to 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"

namespace gpumem::place {

/// A GPU without placed jobs counts as idle up to this use: less than a CUDA context takes (550 MiB and more in the
/// profiles of models/gpus), so nothing but the driver is on it.
inline constexpr core::Bytes kIdleUse{std::int64_t{256} << 20};

/// A job that was placed on a GPU.
struct PlacedJob {
  std::string id;
  core::Bytes memory;      ///< what was set aside for it on this GPU
  double smact = 0.0;      ///< its expected SM activity; 0: not known
  bool exclusive = false;  ///< no other job may come to its GPU
};

/// The jobs of one GPU in the order in which they came, with the sum that every decision asks for.
/// Thread safety: one thread at a time; any number while nobody changes it.
class PlacedJobs {
 public:
  /// Errors: invalid_argument for a job without a name, of negative memory, of an SM activity that is not a share, that
  /// is there already, or if either must run by itself; overflow. Nothing has changed then.
  [[nodiscard]] core::Status add(PlacedJob job);
  /// False if no job of this name is there.
  bool remove(std::string_view id);
  [[nodiscard]] const PlacedJob* find(std::string_view id) const;

  [[nodiscard]] bool empty() const { return jobs_.empty(); }
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] auto begin() const { return jobs_.begin(); }
  [[nodiscard]] auto end() const { return jobs_.end(); }
  /// All of their memory together.
  [[nodiscard]] core::Bytes memory() const { return memory_; }
  /// Whether one of them must run by itself; then it is the only one.
  [[nodiscard]] bool exclusive() const { return exclusive_; }

 private:
  std::vector<PlacedJob> jobs_;
  core::Bytes memory_;
  bool exclusive_ = false;
};

struct ServerGpu {
  std::string id;       ///< "0", "node3:1", a MIG slice's UUID
  std::string profile;  ///< a profile's name ("a100-40gb"); empty: not told
  core::Bytes total;    ///< what jobs can have of it
  core::Bytes used;     ///< in use as monitored, by anybody
  /// Mean SM activity over the monitoring window. A job that has just come does not show in it: who places more often
  /// than the window is long puts here what utilisation::combined_smact says about the jobs there, if that is more.
  double smact = 0.0;
  PlacedJobs jobs;
  std::string smact_source = {};  ///< where `smact` is from: "dcgm", "gpm", "utilisation"; empty: not told

  /// What is set aside for the placed jobs together: they may not have grown to it yet.
  [[nodiscard]] core::Bytes set_aside() const { return jobs.memory(); }
  /// What a further job can count on: total less the larger of what is used and what is set aside; never below 0.
  [[nodiscard]] core::Bytes free() const {
    const core::Bytes taken = std::max(used, jobs.memory());
    return taken < total ? core::Bytes(total.count() - taken.count()) : core::Bytes();
  }
  /// Nobody is on it: no placed job, and no other process.
  [[nodiscard]] bool idle() const { return jobs.empty() && used <= kIdleUse; }
};

struct Server {
  std::vector<ServerGpu> gpus;
};

/// Done if a policy can decide on it. Errors: invalid_argument, naming the GPU: none at all, one without a name or
/// named twice, without memory, of negative use, or of an SM activity that is not a share.
[[nodiscard]] core::Status validate(const Server& server);

// Input: a server as JSON, as a resource manager or `gpumem server` writes it.
// Output: Server; and from a Server the JSON again. Strict: an unknown field is an error.
//
//   {"format": "gpumem-server", "version": 1,
//    "gpus": [{"id": "0", "profile": "a100-40gb", "used_mib": 13312, "smact": 0.41,
//              "jobs": [{"id": "resnet50", "memory_mib": 12288, "smact": 0.38, "exclusive": false}]},
//             {"id": "1", "total_mib": 40506}]}
//
//   id          of the GPU, once on the server: an index, a UUID
//   profile     a name that `gpumem gpus` lists, MIG slices' too, or a path to one; total memory is the profile's
//   total_mib   what jobs can have of it; needed where there is no profile, and goes before the profile's
//   used_mib    in use by anybody, as nvidia-smi says; 0 if left out
//   smact       mean SM activity over the monitoring window, 0 to 1 (DCGM field 1002); 0 if left out
//   smact_source  where that is from: "dcgm", "gpm" (NVML's), or "utilisation", the share of time in which any kernel
//               ran, as nvidia-smi prints it, which is at least the SM activity; may be left out
//   jobs        those that were placed on it: id, and if known the memory that was set aside for it on this GPU, its
//               expected SM activity, and whether it must run by itself. A job of several GPUs is at each of them.
//
// Memory may be given in bytes instead: total_bytes, used_bytes, memory_bytes (NVML counts so). A MIG slice is a GPU
// like others; its id is the slice's, and the GPU that it is a part of is left out.

/// Where profiles are from.
using FindProfile = std::function<core::Result<device::GpuProfile>(std::string_view name)>;

/// Errors: malformed_input, naming the line or the field, also for what validate() says about the server; unknown_gpu
/// and those of the profile. `file` is for messages.
[[nodiscard]] core::Result<Server> parse_server(std::string_view json, std::string_view file = {},
                                                const FindProfile& find_profile = device::find_profile);

/// What parse_server() reads as the same server: a GPU a line, memory in bytes, activity to four digits.
[[nodiscard]] std::string to_json(const Server& server);

}  // namespace gpumem::place
