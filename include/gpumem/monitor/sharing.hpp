// Input: what a job is expected to take, and whether an MPS control daemon runs.
// Output: how the job shares its GPUs with others, as variables for its environment. With MPS, kernels of several
// processes run at the same time, and each client is held to a part of the SMs and of the memory. Without MPS the
// driver gives processes the GPU in turns, and nothing is set.
// Source: NVIDIA, "Multi-Process Service", appendix "Environment Variables":
// - CUDA_MPS_PIPE_DIRECTORY, by default /tmp/nvidia-mps, has the daemon's "control" and "nvidia-cuda-mps-control.pid".
// - CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is an upper limit of SMs for a client, not a reservation. NVIDIA advises twice an
//   equal share, so that clients fill what others leave; here it is twice the expected SM activity.
// - CUDA_MPS_PINNED_DEVICE_MEM_LIMIT limits what a client can allocate of each GPU that it sees, including what CUDA
//   takes for itself, from CUDA 11.5 on. Here it is the estimate's upper bound of device memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/monitor/machine.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::monitor {

/// A control daemon that runs.
struct MpsDaemon {
  std::string pipe_directory;
  std::int64_t pid = 0;
};

/// The daemon of this directory; empty: the variable CUDA_MPS_PIPE_DIRECTORY, else NVIDIA's default. Nothing where no
/// such process lives.
[[nodiscard]] std::optional<MpsDaemon> find_mps_daemon(std::string pipe_directory = {});

/// What is known about a job.
struct JobShare {
  std::int64_t gpus = 1;
  std::optional<core::Bytes> memory;  ///< the estimate's `upper`, of each GPU; nothing: no limit
  std::optional<double> smact;        ///< its expected SM activity; nothing: no limit
};

struct SharingPlan {
  utilisation::Sharing sharing = utilisation::Sharing::streams;
  std::vector<std::pair<std::string, std::string>> environment;  ///< to be set for the job
  std::string words;                                             ///< for people
};

/// How the job shares its GPUs. Without a daemon: time slices.
[[nodiscard]] SharingPlan plan_sharing(const std::optional<MpsDaemon>& daemon, const JobShare& job);

/// Whether a second process can come to this GPU at all: in compute mode "exclusive process" only under MPS, whose
/// server is then the one process.
[[nodiscard]] bool can_be_shared(const LiveGpu& gpu, const std::optional<MpsDaemon>& daemon);

}  // namespace gpumem::monitor
