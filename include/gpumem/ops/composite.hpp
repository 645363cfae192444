// Modules that print() shows as one line without sizes, and that make several calls: timm's layer scale, affine and
// response norms, EvoNorm, BlurPool2d, GammaAct and channel shuffles. Their parameters follow from the channels of what
// they read: each row says how many figures a channel. Source: timm 1.0.9, timm.layers.
#pragma once

#include <array>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace composite_detail {

/// The layer's parameters as tensors of one figure a channel.
inline void add_figures(const OpCall& call, Tape& tape, std::int64_t figures) {
  const core::Checked channels = call.parameters / figures;
  const core::Checked none = 0;
  add_parameters(call, tape, {channels, figures > 1 ? channels : none, figures > 2 ? channels : none});
}

/// x times a parameter that broadcasts: x is kept for the parameter's gradient, which is made whole before it is
/// summed.
inline TensorId scaled(Tape& tape, TensorId input, const TensorSize& whole, bool in_place) {
  const auto parameters = tape.layer_parameters();
  const bool trained = parameters.empty() || tape.tensor(parameters[0]).requires_grad;
  return tape.record({.inputs = {&input, 1},
                      .output = whole,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(input).layout,
                      .saved_for_weight = 1,
                      .backward_scratch = {&whole, trained ? 1U : 0U},
                      .parameters = parameters});
}

/// timm.layers.LayerScale, LayerScale2d: x * gamma.
inline core::Result<TensorId> record_scale(const OpCall& call, Tape& tape) {
  add_figures(call, tape, 1);
  return scaled(tape, call.tensors[0], call.size, false);
}

/// timm.models.mlp_mixer.Affine: addcmul(beta, alpha, x).
inline core::Result<TensorId> record_affine(const OpCall& call, Tape& tape) {
  add_figures(call, tape, 2);
  return scaled(tape, call.tensors[0], call.size, false);
}

/// One figure a sample and channel.
inline TensorSize figures_of(const OpCall& call) {
  const core::Shape& shape = call.shapes[0];
  return rows_of(shape, shape.rank() > 2 ? shape.rank() - 2 : 1).value_or(call.size);
}

/// timm.layers.GlobalResponseNorm: x + addcmul(bias, weight, x * (norm(x) / mean of the norms)).
inline core::Result<TensorId> record_response(const OpCall& call, Tape& tape) {
  add_figures(call, tape, 2);
  const TensorId input = call.tensors[0];
  const TensorSize figures = figures_of(call);
  const TensorId norm =
      tape.record({.inputs = {&input, 1}, .output = figures, .saved_inputs = 1, .saves_output = true});
  const TensorId shifted = elementwise(tape, elementwise(tape, norm));
  const TensorId relative = quotient(tape, norm, shifted);
  const TensorId weighted = product(tape, input, relative);
  return sum_of(tape, input, scaled(tape, weighted, call.size, false));
}

/// timm.layers.EvoNorm2dS0 and B0: x * sigmoid(v x) / deviation, times weight, plus bias. The deviation of a group is
/// repeated for every element.
inline core::Result<TensorId> record_evo(const OpCall& call, Tape& tape) {
  add_figures(call, tape, 3);
  const TensorId input = call.tensors[0];
  const TensorId variance = tape.record({.inputs = {&input, 1}, .output = figures_of(call), .saved_inputs = 1});
  const TensorId root = elementwise(tape, elementwise(tape, variance), 0, true);
  const TensorId deviation = tape.record({.inputs = {&root, 1}, .output = call.size});
  const TensorId gate = elementwise(tape, scaled(tape, input, call.size, false), 0, true);
  const TensorId normal = quotient(tape, product(tape, input, gate), deviation);
  const TensorId weighted = scaled(tape, normal, call.size, false);
  return tape.record({.inputs = {&weighted, 1}, .output = call.size, .gradient = Gradient::passed});
}

/// timm.layers.FilterResponseNormTlu2d: x / rms, times weight, plus bias, and the greater of it and tau.
inline core::Result<TensorId> record_filter_response(const OpCall& call, Tape& tape) {
  add_figures(call, tape, 3);
  const TensorId input = call.tensors[0];
  const TensorId square = power(tape, input);
  const TensorId mean = tape.record({.inputs = {&square, 1}, .output = figures_of(call)});
  const TensorId inverse = elementwise(tape, elementwise(tape, mean), 0, true);
  const TensorId weighted = scaled(tape, product(tape, input, inverse), call.size, false);
  const TensorId shifted = tape.record({.inputs = {&weighted, 1}, .output = call.size, .gradient = Gradient::passed});
  return elementwise(tape, shifted, 1);
}

/// timm.layers.BlurPool2d: a padded copy, and a convolution of each channel with a filter that does not learn. It
/// prints no stride: models have it where they halve an image.
inline core::Result<core::Shape> halved_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  if (shape.rank() != 4) return unfit(shape, "4 axes");
  for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return unfit(shape, "known sizes");
    shape.set(axis, core::Dim::fixed((shape[axis].size + 1) / 2));
  }
  return shape;
}

inline core::Result<TensorId> record_blur(const OpCall& call, Tape& tape) {
  const TensorId input = call.tensors[0];
  core::Shape wider = call.shapes[0];
  for (std::size_t axis = 2; axis < wider.rank(); ++axis) wider.set(axis, core::Dim::fixed(wider[axis].size + 2));
  const auto padded_size = size_of(wider);
  if (!padded_size) return unfit(call.shapes[0], "known sizes");
  const TensorId padded = tape.record({.inputs = {&input, 1}, .output = *padded_size});
  Convolution convolution;
  convolution.in_channels = call.output[1].size;
  convolution.out_channels = call.output[1].size;
  convolution.groups = call.output[1].size;
  convolution.input_pixels = wider[2].size * wider[3].size;
  convolution.output_pixels = call.output[2].size * call.output[3].size;
  convolution.kernel_elements = 9;
  convolution.kernel = 3;
  convolution.stride = 2;
  return tape.record({.inputs = {&padded, 1},
                      .output = call.size,
                      .saved_inputs = 1,
                      .library = Library::convolution,
                      .convolution = &convolution,
                      .autocast = Autocast::lower,
                      .contiguous_gradient = true});
}

/// timm.models.nfnet.GammaAct: act(x).mul_(gamma), gamma a number.
inline core::Result<TensorId> record_gamma(const OpCall& call, Tape& tape) {
  const TensorId active = elementwise(tape, call.tensors[0], 1);
  return tape.record({.inputs = {&active, 1}, .output = call.size, .kind = Output::in_place});
}

/// timm.layers.SpaceToDepth: blocks of 4 x 4 pixels become channels.
inline core::Result<core::Shape> space_to_depth_shape(const OpInput& input) {
  constexpr std::int64_t kBlock = 4;
  core::Shape shape = input.inputs[0];
  if (shape.rank() != 4 || shape[2].size % kBlock != 0 || shape[3].size % kBlock != 0) {
    return unfit(shape, "4 axes, and sizes that 4 divides");
  }
  const core::Checked channels = core::Checked(shape[1].size) * core::Checked(kBlock * kBlock);
  if (!channels.valid()) return unfit(shape, "fewer channels");
  shape.set(1, core::Dim::fixed(*channels.value()));
  for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) {
    shape.set(axis, core::Dim::fixed(shape[axis].size / kBlock));
  }
  return shape;
}

inline core::Result<TensorId> record_copy(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::passed});
}

inline constexpr std::array<std::string_view, 2> kScale = {"LayerScale", "LayerScale2d"};
inline constexpr std::array<std::string_view, 1> kTreeScale = {"Scale"};  // of metaformer
inline constexpr std::array<std::string_view, 1> kAffine = {"Affine"};
inline constexpr std::array<std::string_view, 1> kResponse = {"GlobalResponseNorm"};
inline constexpr std::array<std::string_view, 4> kEvo = {"EvoNorm2dS0", "EvoNorm2dS0a", "EvoNorm2dB0", "EvoNorm2dS2"};
inline constexpr std::array<std::string_view, 1> kFilterResponse = {"FilterResponseNormTlu2d"};
inline constexpr std::array<std::string_view, 1> kBlur = {"BlurPool2d"};
inline constexpr std::array<std::string_view, 1> kGamma = {"GammaAct"};
inline constexpr std::array<std::string_view, 1> kSpaceToDepth = {"SpaceToDepth"};
/// Blocks whose layers connect/cut_blocks.hpp finds by their sizes.
inline constexpr std::array<std::string_view, 13> kCut = {
    "Sequential",  // the shortcut of such a block
    "BasicBlock",  "Bottleneck",           "InvertedResidual", "MBConv",
    "_DenseLayer", "ResBottleneckBlock",   "FusedMBConv",      "ConvNormAct",
    "ConvBNReLU",  "Conv2dNormActivation", "ConvBNActivation", "DenseLayer"};

}  // namespace composite_detail

inline constexpr std::array<Op, 9> kCompositeOps = {{
    {.traits = {.name = "layer_scale",
                .family = OpFamily::other,
                .torch_classes = composite_detail::kScale,
                .tree_classes = composite_detail::kTreeScale,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = composite_detail::record_scale,
     .figures_a_channel = 1},
    {.traits =
         {.name = "affine", .family = OpFamily::norm, .tree_classes = composite_detail::kAffine, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = composite_detail::record_affine,
     .figures_a_channel = 2},
    {.traits = {.name = "global_response_norm",
                .family = OpFamily::norm,
                .torch_classes = composite_detail::kResponse,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = composite_detail::record_response,
     .figures_a_channel = 2},
    {.traits = {.name = "evo_norm",
                .family = OpFamily::norm,
                .torch_classes = composite_detail::kEvo,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = composite_detail::record_evo,
     .figures_a_channel = 3},
    {.traits = {.name = "filter_response_norm",
                .family = OpFamily::norm,
                .torch_classes = composite_detail::kFilterResponse,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = composite_detail::record_filter_response,
     .figures_a_channel = 3},
    {.traits = {.name = "blur_pool",
                .family = OpFamily::pool,
                .torch_classes = composite_detail::kBlur,
                .keeps = Keeps::input},
     .output_shape = composite_detail::halved_shape,
     .record = composite_detail::record_blur},
    {.traits = {.name = "gamma_activation",
                .family = OpFamily::activation,
                .torch_classes = composite_detail::kGamma,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = composite_detail::record_gamma},
    {.traits = {.name = "cut_block", .family = OpFamily::other, .cut_classes = composite_detail::kCut},
     .output_shape = printed_shape_only},
    {.traits = {.name = "space_to_depth", .family = OpFamily::other, .torch_classes = composite_detail::kSpaceToDepth},
     .output_shape = composite_detail::space_to_depth_shape,
     .record = composite_detail::record_copy},
}};

}  // namespace gpumem::ops
