// Input: predicted and measured memory of runs.
// Output: Accuracy, how well the two agree; and CappedAccuracy, what happens to jobs that get exactly the memory that
// was estimated.
// Units: MiB. Errors are relative to the measured figure, and percentiles are interpolated between ranks.
// Source: the metrics of xMem for CappedAccuracy (Shi et al., arXiv 2510.21048; its repository's exp/run.py and
// plot/plot.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gpumem::datasets {

/// One run that has both.
struct Judged {
  double measured_mib = 0.0;  ///< above 0, unless the run was out of memory
  double expected_mib = 0.0;
  double upper_mib = 0.0;
  bool out_of_memory = false;  ///< the run did not fit
  bool fits = false;           ///< the estimate said that it would
  double lower_mib = 0.0;
  double capacity_mib = 0.0;  ///< of the GPU
  /// What a reservation takes beyond the figure: the CUDA context, where the figure leaves it out.
  double beside_mib = 0.0;
  /// Whether there is a figure; an estimate that only says that the job does not fit has none.
  bool has_figure = true;
  /// Whether the run failed when it was repeated with just the expected memory; nothing: it was not repeated.
  std::optional<bool> failed_when_capped = {};
};

struct Spread {
  double mean = 0.0;
  double median = 0.0;
  double p90 = 0.0;
  double p99 = 0.0;
};

struct Accuracy {
  // Over the runs that fitted and for which there is a figure; all zero if there is none.
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
  std::int64_t false_alarms = 0;       ///< runs that fitted, though the estimate said otherwise; also without figure
  // Over the runs that were out of memory.
  std::int64_t out_of_memory = 0;
  std::int64_t caught = 0;  ///< those of them that the estimate predicted
};

/// The memory class of a figure, as schedulers that return memory in steps know it: 8,000 MiB each up to 40,000,
/// then to 50,000, then all beyond.
[[nodiscard]] int memory_class(double mib);

[[nodiscard]] Accuracy accuracy_of(std::span<const Judged> runs);

/// Which figure of the estimate a job is given, and no more.
enum class Cap : std::uint8_t { expected, upper };

/// Over all runs, those that were out of memory included. A run's verdict is right if the estimate said that it fits,
/// and it did, or the reverse. An estimate is accurate if its verdict is right and a run that fitted does not fail when
/// it is given just the estimated memory.
struct CappedAccuracy {
  std::int64_t runs = 0;
  /// MRE: the median of |expected - measured| / measured over the runs that fitted. (xMem takes in the runs that were
  /// out of memory as well, whose figure is where they failed.)
  double median_error = 0.0;
  /// PEF, probability of estimation failure: the share of runs whose estimate is not accurate. A run fails if the cap
  /// is below what was measured. That is stricter than the truth: a run that is given a little less gets by if the
  /// allocator finds cached blocks to give back.
  double failure = 0.0;
  /// The same, where runs were repeated with the expected memory as their cap: by what happened. Nothing if a run whose
  /// verdict is right was not repeated.
  std::optional<double> failure_when_repeated;
  /// MCP, memory conserved: of a run whose estimate is accurate, the capacity less the cap and what a reservation takes
  /// beside it, or the whole capacity if the run was rightly kept away; 0 of one that fails at its cap; minus the
  /// capacity where the verdict is wrong. The mean over all runs: reserving the whole GPU for every job conserves 0.
  double conserved_mib = 0.0;
  double conserved_share = 0.0;  ///< the mean of the same in shares of each run's capacity; 0 where that is unknown
};

[[nodiscard]] CappedAccuracy capped_accuracy_of(std::span<const Judged> runs, Cap cap);

/// The value at this share of the sorted values (0.5: the median), between two of them interpolated; 0 of none.
[[nodiscard]] double percentile(std::span<const double> sorted, double share);

}  // namespace gpumem::datasets
