// Input: the shares of components and their centres.
// Output: quantiles of their mixture. Each component is a Laplace distribution around its centre.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace gpumem::ml {

struct Mixture {
  std::vector<double> centres;
  std::vector<double> shares;   ///< as many; they sum to 1
  std::vector<double> spreads;  ///< as many: the scale of each Laplace distribution, above 0

  /// The share of the mixture below `value`.
  [[nodiscard]] double below(double value) const;
  /// The value that this share of the mixture, in (0, 1), lies below; exact to 1e-9 of the spreads and centres.
  [[nodiscard]] double quantile(double share) const;
  /// The value that this share of what the mixture has up to `most` lies below; `most` itself if it has nothing there.
  [[nodiscard]] double quantile_up_to(double most, double share) const;
};

/// A corrected figure and its range, in the units of the centres.
struct MixtureRange {
  double lower = 0.0;
  double expected = 0.0;  ///< the median
  double upper = 0.0;
};

/// Which share of the mixture lies below the bounds of its range.
struct RangeShares {
  double lower = 0.0;
  double upper = 0.0;
};

/// The range of what a job takes. Of one that fits, `most` is what there is: figure and lower bound are those of the
/// mixture up to there, and the upper bound leaves room for the case that it does not fit.
[[nodiscard]] MixtureRange range_of(const Mixture& mixture, const RangeShares& shares, std::optional<double> most);

/// exp(logit) of each, as shares of their sum.
[[nodiscard]] std::vector<double> softmax(std::span<const float> logits);

}  // namespace gpumem::ml
