#pragma once

#include "gpumem/ml/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpumem::ml {

GPUMEM_INLINE double Mixture::below(double value) const {
  constexpr double kHalf = 0.5;
  double sum = 0.0;
  for (std::size_t component = 0; component < centres.size(); ++component) {
    const double away = (value - centres[component]) / spreads[component];
    sum += shares[component] * (away < 0.0 ? kHalf * std::exp(away) : 1.0 - kHalf * std::exp(-away));
  }
  return sum;
}

GPUMEM_INLINE double Mixture::quantile(double share) const {
  // A quantile of a mixture lies between the least and the greatest of its components' quantiles.
  constexpr double kHalf = 0.5;
  const double away = share < kHalf ? std::log(2.0 * share) : -std::log(2.0 * (1.0 - share));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::size_t component = 0; component < centres.size(); ++component) {
    const double of_component = centres[component] + spreads[component] * away;
    low = std::min(low, of_component);
    high = std::max(high, of_component);
  }
  constexpr int kHalvings = 50;
  for (int halving = 0; halving < kHalvings && low < high; ++halving) {
    const double middle = kHalf * (low + high);
    (below(middle) < share ? low : high) = middle;
  }
  return kHalf * (low + high);
}

GPUMEM_INLINE double Mixture::quantile_up_to(double most, double share) const {
  const double part = share * below(most);
  return part > std::numeric_limits<double>::min() ? std::min(quantile(part), most) : most;
}

GPUMEM_INLINE MixtureRange range_of(const Mixture& mixture, const RangeShares& shares, std::optional<double> most) {
  constexpr double kMedian = 0.5;
  const auto within = [&](double share) {
    return most ? mixture.quantile_up_to(*most, share) : mixture.quantile(share);
  };
  return {within(shares.lower), within(kMedian), mixture.quantile(shares.upper)};
}

GPUMEM_INLINE std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> shares;
  if (logits.empty()) return shares;
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit) - most));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace gpumem::ml
