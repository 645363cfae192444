// Input: Machine, the GPUs of this machine; what a job is expected to take.
// Output: place::Server, which a policy reads, and the variables by which a job shares its GPUs with others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::monitor {

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

// Input: Machine, the GPUs of this machine.
// Output: place::Server, which a policy reads. A GPU gets the profile of its name if one is known. GPUs of compute mode
// "prohibited" are left out: nobody may use them. If a GPU of mode "exclusive process" has a process, that process
// counts as a job that must run by itself. With MPS this process is MPS' server, and its clients share the GPU.

/// Which of the built-in profiles a GPU has.
struct ProfileMatch {
  std::string name;    ///< empty: none of them
  bool exact = false;  ///< by its name; else by its kind and its memory
};

/// By the name as the driver tells it, if memory agrees: "NVIDIA A100-SXM4-40GB" is a100-40gb. A name that no profile
/// has gets the one of the same kind whose memory is the same within 4 %: "NVIDIA A100 80GB PCIe" is a100-80gb.
[[nodiscard]] ProfileMatch profile_of(const LiveGpu& gpu);

struct LiveServer {
  place::Server server;
  std::vector<std::string> warnings;  ///< those of the machine, and what was assumed here
};

/// Errors: missing_information if no GPU is left.
[[nodiscard]] core::Result<LiveServer> live_server_of(const Machine& machine);
/// The same without the warnings.
[[nodiscard]] core::Result<place::Server> server_of(const Machine& machine);

/// Asks this machine's driver; takes as long as the window. Errors: those of Nvml and live_server_of().
[[nodiscard]] core::Result<LiveServer> read_server(std::chrono::milliseconds window = {});

/// "60s", "500ms", "2min", "0". Errors: invalid_argument; also beyond an hour.
[[nodiscard]] core::Result<std::chrono::milliseconds> parse_window(const std::string& text);

}  // namespace gpumem::monitor
