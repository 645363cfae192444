#include "gpumem_datasets/accuracy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace gpumem::datasets {

namespace {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {mean_of(values), percentile(values, 0.5), percentile(values, 0.9), percentile(values, 0.99)};
}

/// What is conserved by an estimate that said nothing wrong, given whether its run failed at the cap.
double conserved_mib(const Judged& run, double cap_mib, bool failed) {
  if (run.out_of_memory) return run.capacity_mib;
  return failed ? 0.0 : run.capacity_mib - cap_mib - run.beside_mib;
}

}  // namespace

int memory_class(double mib) {
  constexpr std::array<double, 6> kEdges = {8000, 16000, 24000, 32000, 40000, 50000};
  return static_cast<int>(std::upper_bound(kEdges.begin(), kEdges.end(), mib) - kEdges.begin());
}

double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0.0;
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - std::floor(rank)) * (sorted[above] - sorted[below]);
}

Accuracy accuracy_of(std::span<const Judged> runs) {
  Accuracy result;
  std::vector<double> relative;
  std::vector<double> absolute;
  double largest = -1.0;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const Judged& run = runs[index];
    if (run.out_of_memory) {
      ++result.out_of_memory;
      if (!run.fits) ++result.caught;
      continue;
    }
    if (!run.fits) ++result.false_alarms;
    if (!run.has_figure) continue;
    ++result.fitted;
    const double error = run.expected_mib - run.measured_mib;
    absolute.push_back(std::abs(error));
    relative.push_back(std::abs(error) / run.measured_mib);
    result.signed_relative_error += error / run.measured_mib;
    if (memory_class(run.expected_mib) == memory_class(run.measured_mib)) ++result.right_class;
    if (error < 0.0) ++result.underestimated;
    if (run.measured_mib <= run.upper_mib) ++result.covered;
    if (run.lower_mib <= run.measured_mib && run.measured_mib < run.upper_mib) ++result.within;
    result.upper_ratio += run.upper_mib / run.measured_mib;
    if (relative.back() > largest) {
      largest = relative.back();
      result.worst = index;
    }
  }
  if (result.fitted > 0) {
    for (double* sum : {&result.signed_relative_error, &result.right_class, &result.underestimated, &result.covered,
                        &result.within, &result.upper_ratio}) {
      *sum /= static_cast<double>(result.fitted);
    }
  }
  result.relative_error = spread_of(std::move(relative));
  result.absolute_error_mib = spread_of(std::move(absolute));
  return result;
}

CappedAccuracy capped_accuracy_of(std::span<const Judged> runs, Cap cap) {
  CappedAccuracy result;
  bool all_repeated = true;
  double failed_when_repeated = 0.0;
  for (const Judged& run : runs) {
    ++result.runs;
    const bool right = run.fits != run.out_of_memory;
    const double cap_mib = cap == Cap::expected ? run.expected_mib : run.upper_mib;
    const bool failed = !run.out_of_memory && cap_mib < run.measured_mib;
    const bool to_repeat = right && !run.out_of_memory;
    if (!right || failed) ++result.failure;
    if (!right || (to_repeat && run.failed_when_capped.value_or(false))) ++failed_when_repeated;
    if (to_repeat && !run.failed_when_capped) all_repeated = false;
    const double conserved = right ? conserved_mib(run, cap_mib, failed) : -run.capacity_mib;
    result.conserved_mib += conserved;
    if (run.capacity_mib > 0.0) result.conserved_share += conserved / run.capacity_mib;
  }
  if (result.runs == 0) return result;
  const auto count = static_cast<double>(result.runs);
  for (double* sum : {&result.failure, &failed_when_repeated, &result.conserved_mib, &result.conserved_share}) {
    *sum /= count;
  }
  if (all_repeated && cap == Cap::expected) result.failure_when_repeated = failed_when_repeated;
  result.median_error = accuracy_of(runs).relative_error.median;
  return result;
}

}  // namespace gpumem::datasets
