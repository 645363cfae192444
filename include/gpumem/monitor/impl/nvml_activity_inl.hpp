
#pragma once

#include <signal.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/monitor/nvml.hpp"

namespace gpumem::monitor {

namespace activity_detail {

/// Samples of GPM are refreshed every 100 ms; two that lie closer may be the same.
constexpr std::chrono::milliseconds kShortestGpm{150};

GPUMEM_INLINE double share_of_percent(double percent) { return std::clamp(percent / 100.0, 0.0, 1.0); }

}  // namespace activity_detail

GPUMEM_INLINE ActivityWatch::ActivityWatch(const nvml::Functions& functions, const WatchedDevice& watched,
                                           std::chrono::milliseconds window)
    : nvml_(functions), watched_(watched) {
  if (window >= activity_detail::kShortestGpm && begin_gpm()) return;
  // What came before the window is not of it.
  if (window.count() > 0) take_samples(false);
}

GPUMEM_INLINE ActivityWatch::ActivityWatch(ActivityWatch&& other) noexcept
    : nvml_(other.nvml_),
      watched_(other.watched_),
      first_(std::exchange(other.first_, nullptr)),
      second_(std::exchange(other.second_, nullptr)),
      newest_us_(other.newest_us_),
      sum_(other.sum_),
      count_(other.count_) {}

GPUMEM_INLINE ActivityWatch::~ActivityWatch() {
  if (first_ != nullptr) nvml_.gpm_free(first_);
  if (second_ != nullptr) nvml_.gpm_free(second_);
}

GPUMEM_INLINE bool ActivityWatch::take_gpm(nvml::GpmSample sample) const {
  if (watched_.parent == nullptr) return nvml_.gpm_sample(watched_.device, sample) == nvml::kSuccess;
  return nvml_.gpm_mig_sample != nullptr &&
         nvml_.gpm_mig_sample(watched_.parent, watched_.gpu_instance, sample) == nvml::kSuccess;
}

GPUMEM_INLINE bool ActivityWatch::begin_gpm() {
  if (nvml_.gpm_support == nullptr || nvml_.gpm_alloc == nullptr || nvml_.gpm_free == nullptr ||
      nvml_.gpm_sample == nullptr || nvml_.gpm_metrics == nullptr) {
    return false;
  }
  nvml::GpmSupport support = {1, 0};
  const nvml::Device gpu = watched_.parent != nullptr ? watched_.parent : watched_.device;
  if (nvml_.gpm_support(gpu, &support) != nvml::kSuccess || support.supported == 0) return false;
  if (nvml_.gpm_alloc(&first_) != nvml::kSuccess) first_ = nullptr;
  if (nvml_.gpm_alloc(&second_) != nvml::kSuccess) second_ = nullptr;
  if (first_ != nullptr && second_ != nullptr && take_gpm(first_)) return true;
  if (first_ != nullptr) nvml_.gpm_free(std::exchange(first_, nullptr));
  if (second_ != nullptr) nvml_.gpm_free(std::exchange(second_, nullptr));
  return false;
}

GPUMEM_INLINE std::optional<double> ActivityWatch::gpm_share() {
  if (!take_gpm(second_)) return std::nullopt;
  const auto metrics = std::make_unique<nvml::GpmMetrics>();  // 16 KiB: not for the stack
  metrics->version = 1;
  metrics->count = 1;
  metrics->first = first_;
  metrics->second = second_;
  metrics->metrics[0].id = nvml::kGpmSmUtil;
  if (nvml_.gpm_metrics(metrics.get()) != nvml::kSuccess) return std::nullopt;
  const nvml::GpmMetric& busy = metrics->metrics[0];
  if (busy.status != nvml::kSuccess || !(busy.value >= 0.0)) return std::nullopt;
  return activity_detail::share_of_percent(busy.value);
}

/// False if the driver keeps no samples of this device.
GPUMEM_INLINE bool ActivityWatch::take_samples(bool count) {
  if (nvml_.samples == nullptr || watched_.parent != nullptr) return false;
  int type = 0;
  unsigned kept = 0;
  if (nvml_.samples(watched_.device, nvml::kUtilisationSamples, newest_us_, &type, &kept, nullptr) != nvml::kSuccess) {
    return false;
  }
  if (kept == 0) return true;
  std::vector<nvml::Sample> samples(kept);
  const int code = nvml_.samples(watched_.device, nvml::kUtilisationSamples, newest_us_, &type, &kept, samples.data());
  if (code != nvml::kSuccess) return code == nvml::kNotFound;
  samples.resize(std::min<std::size_t>(kept, samples.size()));
  const unsigned long long seen = newest_us_;
  for (const nvml::Sample& sample : samples) {
    if (sample.microseconds <= seen || sample.value.whole > 100) continue;
    newest_us_ = std::max(newest_us_, sample.microseconds);
    if (!count) continue;
    sum_ += activity_detail::share_of_percent(sample.value.whole);
    count_ += 1.0;
  }
  return true;
}

GPUMEM_INLINE void ActivityWatch::take_rate() {
  if (nvml_.rates == nullptr || watched_.parent != nullptr) return;
  nvml::Rates rates = {0, 0};
  if (nvml_.rates(watched_.device, &rates) != nvml::kSuccess || rates.gpu > 100) return;
  sum_ += activity_detail::share_of_percent(rates.gpu);
  count_ += 1.0;
}

GPUMEM_INLINE void ActivityWatch::poll() {
  if (first_ != nullptr) return;
  if (!take_samples(true)) take_rate();
}

GPUMEM_INLINE Activity ActivityWatch::end() {
  if (first_ != nullptr) {
    const std::optional<double> share = gpm_share();
    if (share) return {share, ActivitySource::gpm};
    take_rate();
  } else {
    poll();
  }
  // A window shorter than the driver's interval has no sample: then the last one counts.
  if (count_ == 0.0) take_rate();
  if (count_ == 0.0) return {};
  return {sum_ / count_, ActivitySource::utilisation};
}

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

namespace live_server_detail {

/// How far the memory of a GPU is from what its profile says, as a share.
GPUMEM_INLINE double distance(core::Bytes total, const device::GpuProfile& profile) {
  const auto capacity = static_cast<double>(profile.capacity().count());
  return capacity > 0.0 ? std::abs(static_cast<double>(total.count()) / capacity - 1.0) : 1.0;
}

/// Whether one of the words between blanks and dashes is this one.
GPUMEM_INLINE bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of(" -", at), name.size());
    if (core::lower_case(name.substr(at, end - at)) == word) return true;
    at = end + 1;
  }
  return false;
}

/// The profile of a whole GPU of the same kind, by memory.
GPUMEM_INLINE std::string alike(std::string_view name, core::Bytes total) {
  constexpr double kFurthest = 0.04;
  std::string nearest;
  double least = kFurthest;
  const core::Result<std::vector<device::GpuProfile>>& profiles = device::known_profiles();
  if (!profiles) return nearest;
  for (const device::GpuProfile& profile : *profiles) {
    const bool of_this_kind = profile.parent.empty() && has_word(name, profile.name.substr(0, profile.name.find('-')));
    if (!of_this_kind || distance(total, profile) > least) continue;
    least = distance(total, profile);
    nearest = profile.name;
  }
  return nearest;
}

GPUMEM_INLINE core::Result<place::ServerGpu> gpu_of(const LiveGpu& live, const ProfileMatch& match) {
  place::ServerGpu gpu;
  gpu.id = live.uuid;
  gpu.profile = match.name;
  gpu.total = live.total;
  gpu.used = live.used;
  gpu.smact = live.sm_activity.value_or(0.0);
  if (live.sm_activity) gpu.smact_source = to_string(live.activity_source);
  if (live.compute_mode == ComputeMode::exclusive_process && !live.processes.empty() &&
      !can_be_shared(live, find_mps_daemon())) {
    const GpuProcess& process = live.processes.front();
    const core::Status added =
        gpu.jobs.add({"process " + std::to_string(process.pid), process.used.value_or(live.used), gpu.smact, true});
    if (!added) return added.error();
  }
  return gpu;
}

GPUMEM_INLINE std::string assumed(const LiveGpu& gpu, const ProfileMatch& match) {
  const std::string name = "GPU " + std::to_string(gpu.index) + " (" + core::quoted(gpu.name) + ")";
  if (match.name.empty()) return name + " has no profile: estimates for it need `gpu`; see gpumem gpus";
  return name + " is taken for a " + match.name + ", which is of the same kind and size";
}

}  // namespace live_server_detail

GPUMEM_INLINE ProfileMatch profile_of(const LiveGpu& gpu) {
  constexpr double kFurthest = 0.1;
  // "MIG 1g.5gb+me": with media engines. What looks like a path would be read as a file.
  const std::string name = gpu.name.substr(0, gpu.name.find('+'));
  if (name.empty() || name.find('/') != std::string::npos || name.ends_with(".json")) return {};
  const auto named = device::find_profile(name);
  if (named && live_server_detail::distance(gpu.total, *named) <= kFurthest) return {named->name, true};
  if (!gpu.mig_parent.empty()) return {};
  return {live_server_detail::alike(name, gpu.total), false};
}

GPUMEM_INLINE core::Result<LiveServer> live_server_of(const Machine& machine) {
  LiveServer live;
  live.warnings = machine.warnings;
  for (const LiveGpu& gpu : machine.gpus) {
    if (gpu.compute_mode == ComputeMode::prohibited) {
      live.warnings.push_back("GPU " + std::to_string(gpu.index) +
                              " is left out: its compute mode is prohibited; nvidia-smi -c 0 opens it");
      continue;
    }
    const ProfileMatch match = profile_of(gpu);
    if (!match.exact) live.warnings.push_back(live_server_detail::assumed(gpu, match));
    core::Result<place::ServerGpu> placed = live_server_detail::gpu_of(gpu, match);
    if (!placed) return std::move(placed.error());
    live.server.gpus.push_back(*std::move(placed));
  }
  if (live.server.gpus.empty()) {
    std::string why = "no GPU of this machine can take a job";
    for (const std::string& warning : live.warnings) why += "; " + warning;
    return core::Error{core::ErrorCode::missing_information, std::move(why), {}};
  }
  core::Status valid = place::validate(live.server);
  if (!valid) return std::move(valid.error());
  return live;
}

GPUMEM_INLINE core::Result<place::Server> server_of(const Machine& machine) {
  core::Result<LiveServer> live = live_server_of(machine);
  if (!live) return std::move(live.error());
  return std::move(live->server);
}

GPUMEM_INLINE core::Result<LiveServer> read_server(std::chrono::milliseconds window) {
  const core::Result<Nvml> nvml = Nvml::open();
  if (!nvml) return nvml.error();
  const core::Result<Machine> machine = nvml->read(window);
  if (!machine) return machine.error();
  return live_server_of(*machine);
}

GPUMEM_INLINE core::Result<std::chrono::milliseconds> parse_window(const std::string& text) {
  constexpr double kLongest = 3'600'000.0;
  double number = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const double factor = unit == "ms" ? 1.0 : unit == "s" ? 1000.0 : unit == "min" ? 60'000.0 : 0.0;
  const bool zero = unit.empty() && number == 0.0;
  const double milliseconds = number * factor;
  if (fault != std::errc() || (factor == 0.0 && !zero) || !(milliseconds >= 0.0 && milliseconds <= kLongest)) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "a window is a time such as 60s, 500ms or 2min, at most an hour, not " + core::quoted(text),
                       {}};
  }
  return std::chrono::milliseconds(std::llround(milliseconds));
}

}  // namespace gpumem::monitor
