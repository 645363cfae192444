// Input: a GPU or a MIG slice, by its NVML handle.
// Output: Activity: its mean SM activity over the time that it was watched, and where that figure comes from.
// Units: shares from 0 to 1.
//
// NVML's GPM (GPU performance monitoring; Hopper and later) counts the SMs that were busy between two samples, which
// must lie more than 100 ms apart. Without it there is the share of time in which any kernel ran, as nvidia-smi prints:
// the driver keeps its samples of the last seconds, and they are read often enough that none is lost. A MIG slice has
// GPM's figure or none. Source: NVIDIA, "NVML API Reference Guide", nvmlGpmMetricsGet and nvmlDeviceGetSamples.
//
// DCGM's counters, which GPUs before Hopper have as well, are not read: they need its daemon or root.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "gpumem/monitor/machine.hpp"
#include "gpumem/monitor/nvml_library.hpp"

namespace gpumem::monitor {

struct Activity {
  std::optional<double> share;
  ActivitySource source = ActivitySource::none;
};

/// A GPU, or a slice of one.
struct WatchedDevice {
  nvml::Device device = nullptr;
  nvml::Device parent = nullptr;  ///< of a slice: its GPU
  unsigned gpu_instance = 0;      ///< of a slice
};

/// One device from begin() to end(). The library outlives it.
/// Thread safety: one thread at a time.
class ActivityWatch {
 public:
  /// Without a window it is what the driver has kept of the last seconds.
  ActivityWatch(const nvml::Functions& functions, const WatchedDevice& watched, std::chrono::milliseconds window);
  ActivityWatch(ActivityWatch&& other) noexcept;
  ActivityWatch(const ActivityWatch&) = delete;
  ActivityWatch& operator=(const ActivityWatch&) = delete;
  ActivityWatch& operator=(ActivityWatch&&) = delete;
  ~ActivityWatch();

  /// Called about once a second, for the driver keeps samples of some seconds only.
  void poll();
  [[nodiscard]] Activity end();

 private:
  [[nodiscard]] bool begin_gpm();
  [[nodiscard]] bool take_gpm(nvml::GpmSample sample) const;
  [[nodiscard]] std::optional<double> gpm_share();
  bool take_samples(bool count);
  void take_rate();

  const nvml::Functions& nvml_;
  WatchedDevice watched_;
  nvml::GpmSample first_ = nullptr;
  nvml::GpmSample second_ = nullptr;
  unsigned long long newest_us_ = 0;  ///< of the driver's samples
  double sum_ = 0.0;                  ///< of shares of utilisation
  double count_ = 0.0;
};

}  // namespace gpumem::monitor
