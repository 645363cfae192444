#pragma once

#include "gpumem/utilisation/collocation.hpp"

#include <algorithm>
#include <cmath>

namespace gpumem::utilisation {

GPUMEM_INLINE double combined_smact(std::span<const double> shares) {
  double idle = 1.0;
  for (const double share : shares) idle *= 1.0 - std::clamp(share, 0.0, 1.0);
  return 1.0 - idle;
}

GPUMEM_INLINE double occupied(double smact, Sharing sharing) {
  const double share = std::clamp(smact, 0.0, 1.0);
  return sharing == Sharing::mps ? share : 0.5 * (share + std::sqrt(share));
}

GPUMEM_INLINE double slowdown(std::span<const double> shares, Sharing sharing) {
  double asked = 0.0;
  double idle = 1.0;
  for (const double share : shares) {
    const double part = occupied(share, sharing);
    asked += part;
    idle *= 1.0 - part;
  }
  // Jobs that together ask for next to nothing are in nobody's way; the quotient would be rounding errors.
  constexpr double kNothing = 1e-9;
  return asked < kNothing ? 1.0 : std::max(1.0, asked / (1.0 - idle));
}

GPUMEM_INLINE double shared_smact(std::span<const double> shares, Sharing sharing) {
  double sum = 0.0;
  for (const double share : shares) sum += std::clamp(share, 0.0, 1.0);
  return sum / slowdown(shares, sharing);
}

}  // namespace gpumem::utilisation
