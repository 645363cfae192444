// Linear layers: torch.nn.functional.linear (y = x A^T + b) on the last axis, HuggingFace's Conv1D, which is
// the same with a transposed weight, and torch.nn.functional.bilinear.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace linear_detail {

inline core::Result<core::Shape> output_shape(const OpInput& input) {
  const auto features = input.attributes.integer("out_features");
  if (!features) return missing("out_features");
  core::Shape shape = input.inputs[0];
  if (shape.rank() == 0) return unfit(shape, "at least one axis");
  shape.set(shape.rank() - 1, core::Dim::fixed(*features));
  return shape;
}

inline std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  if (!in || !out) return std::nullopt;
  const core::Checked weight = core::Checked(*in) * core::Checked(*out);
  return attributes.flag("bias", true) ? weight + core::Checked(*out) : weight;
}

inline std::optional<core::Checked> bilinear_parameters(const model::Attributes& attributes) {
  const auto first = attributes.integer("in1_features");
  const auto second = attributes.integer("in2_features");
  const auto out = attributes.integer("out_features");
  if (!first || !second || !out) return std::nullopt;
  const core::Checked weight = core::Checked(*first) * core::Checked(*second) * core::Checked(*out);
  return attributes.flag("bias", true) ? weight + core::Checked(*out) : weight;
}

inline constexpr std::array<std::string_view, 6> kTorch = {
    "Linear", "NonDynamicallyQuantizableLinear", "LazyLinear", "Conv1D", "FusedDense", "ScaledLinear"};
inline constexpr std::array<std::string_view, 1> kKeras = {"Dense"};
inline constexpr std::array<std::string_view, 2> kPositional = {"in_features", "out_features"};
inline constexpr std::array<std::string_view, 1> kBilinearTorch = {"Bilinear"};

}  // namespace linear_detail

inline constexpr std::array<Op, 2> kLinearOps = {
    {{{"linear", linear_detail::kTorch, linear_detail::kKeras, linear_detail::kPositional, linear_detail::parameters},
      linear_detail::output_shape,
      {ExpectedWidth::Axis::last, "in_features"}},
     {{"bilinear", linear_detail::kBilinearTorch, {}, {}, linear_detail::bilinear_parameters},
      linear_detail::output_shape,
      {ExpectedWidth::Axis::last, "in1_features"}}}};

}  // namespace gpumem::ops
