#pragma once

#include "gpumem/runs/accuracy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace gpumem::runs {

namespace accuracy_detail {

GPUMEM_INLINE double mean_of(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

GPUMEM_INLINE Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {mean_of(values), percentile(values, 0.5), percentile(values, 0.9), percentile(values, 0.99)};
}

}  // namespace accuracy_detail

GPUMEM_INLINE int memory_class(double mib) {
  constexpr std::array<double, 6> kEdges = {8000, 16000, 24000, 32000, 40000, 50000};
  return static_cast<int>(std::upper_bound(kEdges.begin(), kEdges.end(), mib) - kEdges.begin());
}

GPUMEM_INLINE double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0.0;
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - std::floor(rank)) * (sorted[above] - sorted[below]);
}

GPUMEM_INLINE Accuracy accuracy_of(std::span<const Judged> runs) {
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
    if (!run.fits) ++result.false_alarms;
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
  result.relative_error = accuracy_detail::spread_of(std::move(relative));
  result.absolute_error_mib = accuracy_detail::spread_of(std::move(absolute));
  return result;
}

}  // namespace gpumem::runs
