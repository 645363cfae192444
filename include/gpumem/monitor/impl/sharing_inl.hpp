#pragma once

#include "gpumem/monitor/sharing.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "gpumem/core/file.hpp"

namespace gpumem::monitor {

namespace sharing_detail {

GPUMEM_INLINE std::string chosen(std::string directory) {
  if (!directory.empty()) return directory;
  const char* named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");  // NOLINT(concurrency-mt-unsafe)
  return named != nullptr && *named != '\0' ? named : "/tmp/nvidia-mps";
}

GPUMEM_INLINE bool lives(std::int64_t pid) {
  return pid > 0 && pid <= INT32_MAX && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

/// "0=4096M,1=4096M": GPUs as the client counts them.
GPUMEM_INLINE std::string limits(core::Bytes memory, std::int64_t gpus) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const std::int64_t mebibytes =
      std::max<std::int64_t>(1, memory.count() / kMiB + (memory.count() % kMiB != 0 ? 1 : 0));
  std::string text;
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    text += (gpu == 0 ? "" : ",") + std::to_string(gpu) + "=" + std::to_string(mebibytes) + "M";
  }
  return text;
}

/// Twice the expected SM activity, in percent: kernels come in bursts, and a limit at the mean would slow them down.
GPUMEM_INLINE int thread_percentage(double smact) {
  constexpr double kLeast = 10.0;
  return static_cast<int>(std::clamp(std::ceil(200.0 * smact), kLeast, 100.0));
}

}  // namespace sharing_detail

GPUMEM_INLINE std::optional<MpsDaemon> find_mps_daemon(std::string pipe_directory) {
  constexpr std::size_t kLongest = 64;
  MpsDaemon daemon = {sharing_detail::chosen(std::move(pipe_directory)), 0};
  std::error_code fault;
  if (!std::filesystem::exists(daemon.pipe_directory + "/control", fault)) return std::nullopt;
  const auto text = core::read_regular_file(daemon.pipe_directory + "/nvidia-cuda-mps-control.pid", kLongest);
  if (!text) return std::nullopt;
  const auto [stop, wrong] = std::from_chars(text->data(), text->data() + text->size(), daemon.pid);
  if (wrong != std::errc() || !sharing_detail::lives(daemon.pid)) return std::nullopt;
  return daemon;
}

GPUMEM_INLINE SharingPlan plan_sharing(const std::optional<MpsDaemon>& daemon, const JobShare& job) {
  if (!daemon) return {utilisation::Sharing::streams, {}, "time slices: no MPS control daemon runs"};
  SharingPlan plan;
  plan.sharing = utilisation::Sharing::mps;
  plan.environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", daemon->pipe_directory);
  plan.words = "MPS";
  if (job.smact) {
    const std::string percent = std::to_string(sharing_detail::thread_percentage(*job.smact));
    plan.environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent);
    plan.words += ", at most " + percent + " % of the SMs";
  }
  if (job.memory) {
    plan.environment.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", sharing_detail::limits(*job.memory, job.gpus));
    plan.words += ", at most " + core::to_string(*job.memory) + " of each GPU";
  }
  return plan;
}

GPUMEM_INLINE bool can_be_shared(const LiveGpu& gpu, const std::optional<MpsDaemon>& daemon) {
  if (gpu.compute_mode == ComputeMode::exclusive_process) return daemon.has_value();
  return gpu.compute_mode == ComputeMode::shared;
}

}  // namespace gpumem::monitor
