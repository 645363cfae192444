// The names of the figures that a learned model reads from the roofline's time of a training step, in the order of
// JobFacts::roofline. utilisation/step_time.hpp computes the figures.
// Units: named with each feature (features.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gpumem/ml/job_facts.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

enum class RooflineFigure : std::uint8_t {
  gract,              ///< share of a step with a kernel running
  smact,              ///< the same, times the share of SMs that kernels fill
  smocc,              ///< the same, times the share of warps
  fp32,               ///< share of a step in which the FP32 pipe is busy
  kernel_us,          ///< time of a step's kernels, microseconds
  host_us,            ///< time that the host takes to launch them, microseconds
  data_us,            ///< time that the host takes for the batch, microseconds
  step_us,            ///< a step, microseconds
  filled,             ///< share of the SMs that kernels fill, weighted by their time
  product_share,      ///< share of the kernels' time in matrix products
  convolution_share,  ///< the same in convolutions
  optimizer_share,    ///< the same in the optimizer
  launches,           ///< kernels of a step
  multiply_adds,      ///< of a step, 10^9
  bytes,              ///< moved in a step, 10^9
  floored_share,      ///< share of the kernels' time that is the least time a kernel takes
};

inline constexpr std::array<model::Named<RooflineFigure>, kRooflineFigures> kRooflineFigureNames = {{
    {RooflineFigure::gract, "roofline.gract"},
    {RooflineFigure::smact, "roofline.smact"},
    {RooflineFigure::smocc, "roofline.smocc"},
    {RooflineFigure::fp32, "roofline.fp32"},
    {RooflineFigure::kernel_us, "roofline.kernel_us"},
    {RooflineFigure::host_us, "roofline.host_us"},
    {RooflineFigure::data_us, "roofline.data_us"},
    {RooflineFigure::step_us, "roofline.step_us"},
    {RooflineFigure::filled, "roofline.filled"},
    {RooflineFigure::product_share, "roofline.product_share"},
    {RooflineFigure::convolution_share, "roofline.convolution_share"},
    {RooflineFigure::optimizer_share, "roofline.optimizer_share"},
    {RooflineFigure::launches, "roofline.launches"},
    {RooflineFigure::multiply_adds, "roofline.multiply_adds"},
    {RooflineFigure::bytes, "roofline.bytes"},
    {RooflineFigure::floored_share, "roofline.floored_share"},
}};

}  // namespace gpumem::ml
