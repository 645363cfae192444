// Input: what happened to each request, and how long its answer took.
// Output: the counts in Prometheus' text format (prometheus.io, "Exposition formats", version 0.0.4).
// Units: seconds.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "admission.hpp"

namespace gpumem::webhook {

/// Why a request or a connection was turned away before it was read.
enum class Turned : std::uint8_t { not_found, too_large, too_slow, busy, other };

/// Serves any number of threads.
class Metrics {
 public:
  /// Counts a request as in flight as long as it lives.
  class InFlight {
   public:
    explicit InFlight(Metrics& metrics) : metrics_(metrics) { ++metrics_.in_flight_; }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    ~InFlight() { --metrics_.in_flight_; }

   private:
    Metrics& metrics_;
  };

  void count(Outcome outcome, std::chrono::duration<double> took);
  void count(Turned reason) { ++turned_[static_cast<std::size_t>(reason)]; }

  [[nodiscard]] std::string text(const Summaries::Counters& summaries) const;

 private:
  static constexpr std::array<double, 11> kBounds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.025,
                                                     0.05,   0.1,   0.25,  1.0,   2.5};

  std::array<std::atomic<std::int64_t>, kOutcomes.size()> outcomes_{};
  std::array<std::atomic<std::int64_t>, 5> turned_{};
  std::array<std::atomic<std::int64_t>, kBounds.size() + 1> buckets_{};  ///< each by itself; the last is beyond all
  std::atomic<std::int64_t> microseconds_ = 0;
  std::atomic<std::int64_t> in_flight_ = 0;
};

}  // namespace gpumem::webhook
