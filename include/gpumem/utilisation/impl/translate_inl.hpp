#pragma once

#include "gpumem/utilisation/translate.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::utilisation {

namespace translate_detail {

/// The share of its time that the GPU computes, if its kernels take 1 / speed of theirs.
GPUMEM_INLINE double sped_up(double share, double speed) {
  const double kernels = share / speed;
  const double step = 1.0 - share + kernels;
  return step > 0.0 ? kernels / step : 0.0;
}

/// Speeds of the new GPU over the old one's.
struct Speeds {
  double lower = 1.0;
  double expected = 1.0;
  double upper = 1.0;
};

GPUMEM_INLINE Share sped_up(const Share& share, const Speeds& speeds) {
  return {sped_up(share.expected, speeds.expected), sped_up(share.lower, speeds.upper),
          sped_up(share.upper, speeds.lower)};
}

GPUMEM_INLINE double ratio(double part, double whole) { return whole > 0.0 ? std::min(1.0, part / whole) : 0.0; }

GPUMEM_INLINE Share times(const Share& share, double expected, double lower, double upper) {
  return {std::min(1.0, share.expected * expected), std::min(1.0, share.lower * lower),
          std::min(1.0, share.upper * upper)};
}

}  // namespace translate_detail

GPUMEM_INLINE core::Result<UtilisationEstimate> translate(const UtilisationEstimate& estimate,
                                                          const device::GpuProfile& from,
                                                          const device::GpuProfile& to) {
  namespace detail = translate_detail;
  const core::Result<GpuPeaks> before = peaks_of(from);
  if (!before) return before.error();
  const core::Result<GpuPeaks> after = peaks_of(to);
  if (!after) return after.error();
  const double moving = after->bandwidth / before->bandwidth;
  const double computing = after->fp32 / before->fp32;
  const detail::Speeds speeds = {std::min(moving, computing), std::sqrt(moving * computing),
                                 std::max(moving, computing)};
  const double sms = before->sms / after->sms;

  UtilisationEstimate made = estimate;
  made.gpu = to.name;
  made.coverage = 0.0;
  made.smact_bins.clear();
  made.gract = detail::sped_up(estimate.gract, speeds);
  made.gpu_utilisation = detail::sped_up(estimate.gpu_utilisation, speeds);
  const double filled = detail::ratio(estimate.smact.expected, estimate.gract.expected);
  const double few = std::min(1.0, filled * std::min(1.0, sms));
  const double many = std::min(1.0, filled * std::max(1.0, sms));
  made.smact = detail::times(made.gract, std::min(1.0, filled * sms), few, many);
  const double rest = estimate.smact.expected > 0.0 ? made.smact.expected / estimate.smact.expected : 0.0;
  const double least = estimate.smact.lower > 0.0 ? made.smact.lower / estimate.smact.lower : rest;
  const double most = estimate.smact.upper > 0.0 ? made.smact.upper / estimate.smact.upper : rest;
  made.smocc = detail::times(estimate.smocc, rest, least, most);
  // The same instructions, in a step of another length, against another peak.
  const double length = (1.0 - estimate.gract.expected) + estimate.gract.expected / speeds.expected;
  const double work = 1.0 / (std::max(length, 1e-9) * computing);
  made.fp32 = detail::times(estimate.fp32, work, work, work);
  for (Share* share : {&made.smact, &made.smocc, &made.gract, &made.gpu_utilisation, &made.fp32}) {
    share->lower = std::min(share->lower, share->expected);
    share->upper = std::max(share->upper, share->expected);
  }
  return made;
}

}  // namespace gpumem::utilisation
