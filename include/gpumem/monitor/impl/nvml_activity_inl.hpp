#pragma once

#include "gpumem/monitor/nvml.hpp"

#include <algorithm>
#include <memory>
#include <vector>

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

}  // namespace gpumem::monitor
