// Input: a job.
// Output: Horus' estimate of its device memory, as published, including its mistakes.
//
// Yeung et al., "Horus: Interference-Aware and Prediction-Based Scheduling in Deep Learning Systems",
// IEEE TPDS 33(1), 2022:
//
//   M = ((B A + P) + B G + d) e
//
//   B  batch size                      A  activations of one sample, elements
//   P  parameters, elements            G  gradients, elements (= P)
//   d  initialisation overhead         e  bytes an element
//
// Its faults: gradients do not grow with the batch, the optimizer's state and workspaces are left out, and the
// allocator's rounding is. It is the baseline that the other estimators are measured against.
//
// What the formula leaves open is set as in the implementation that CARMA evaluated: solving its published
// estimates for VGG-16, ResNet-50 and MobileNetV2 (batch 32 and 128) gives d e = 800 MiB, and A as the
// outputs of all layers that compute (convolution, linear, normalisation, activation, adaptive pooling, ...),
// without dropout, window poolings and changes of shape. That implementation sees the modules that a summary shows. So
// the sums and products that connect/ infers between them (a residual block's sum) are not in A either; an addition
// that a summary shows as a layer of its own is.
#pragma once

#include <memory>

#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

class Horus final : public Estimator {
 public:
  static constexpr std::string_view kName = "horus";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
};

}  // namespace gpumem::estimate
