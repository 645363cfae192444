// Enters: predicted and measured memory of runs. Leaves: Accuracy, how well the two agree. Units: MiB; errors are
// relative to the measured figure, and percentiles are interpolated between ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gpumem::runs {

/// One run that has both.
struct Judged {
  double measured_mib = 0.0;  ///< above 0, unless the run was out of memory
  double expected_mib = 0.0;
  double upper_mib = 0.0;
  bool out_of_memory = false;  ///< the run did not fit
  bool fits = false;           ///< the estimate said that it would
  double lower_mib = 0.0;
};

struct Spread {
  double mean = 0.0;
  double median = 0.0;
  double p90 = 0.0;
  double p99 = 0.0;
};

struct Accuracy {
  // Over the runs that fitted; all zero if there is none.
  std::int64_t fitted = 0;
  Spread relative_error;  ///< |expected - measured| / measured
  Spread absolute_error_mib;
  double signed_relative_error = 0.0;  ///< mean of (expected - measured) / measured
  double right_class = 0.0;            ///< share whose expected figure falls into the measured one's class
  double underestimated = 0.0;         ///< share with expected < measured
  double covered = 0.0;                ///< share with measured <= upper
  double within = 0.0;                 ///< share with lower <= measured < upper: of a classifier, in the right bin
  double upper_ratio = 0.0;            ///< mean of upper / measured: what a scheduler reserves for each MiB used
  std::optional<std::size_t> worst;    ///< index of the run with the largest relative error
  std::int64_t false_alarms = 0;       ///< runs that fitted, though the estimate said otherwise
  // Over the runs that were out of memory.
  std::int64_t out_of_memory = 0;
  std::int64_t caught = 0;  ///< those of them that the estimate foretold
};

/// The memory class of a figure, as schedulers that hand out memory in steps know it: 8,000 MiB each up to 40,000,
/// then to 50,000, then all beyond.
[[nodiscard]] int memory_class(double mib);

[[nodiscard]] Accuracy accuracy_of(std::span<const Judged> runs);

/// The value at this share of the sorted values (0.5: the median), between two of them interpolated; 0 of none.
[[nodiscard]] double percentile(std::span<const double> sorted, double share);

}  // namespace gpumem::runs

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/accuracy_inl.hpp"
#endif
