// Input: what a resource manager knows about its GPUs.
// Output: Server, plain values that a policy reads. A MIG slice is a GPU of its own.
// Units: bytes; shares of the GPU from 0 to 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"

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

}  // namespace gpumem::place
