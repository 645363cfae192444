// Convolutions: torch.nn.functional.conv1d/2d/3d and conv_transpose1d/2d/3d, channels on axis 1. Those named _function
// read a weight that the model computes (weight standardisation).
// A transposed convolution gives L_out = (L - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
#pragma once

#include <array>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace conv_detail {

/// The input's shape with the op's output channels, if it says enough.
inline core::Result<core::Shape> with_channels(const OpInput& input) {
  const auto channels = input.attributes.integer("out_channels");
  if (!channels) return missing("out_channels");
  if (input.attributes.find("kernel_size") == nullptr) return missing("kernel_size");
  core::Shape shape = input.inputs[0];
  if (shape.rank() < 2) return unfit(shape, "batch and channels");
  shape.set(1, core::Dim::fixed(*channels));
  return shape;
}

template <std::size_t Axes>
core::Result<core::Shape> output_shape(const OpInput& input) {
  const core::Result<core::Shape> shape = with_channels(input);
  if (!shape) return shape.error();
  return slid_shape<Axes>(*shape, [&](std::size_t axis, std::int64_t length) -> core::Result<std::int64_t> {
    if (pads_to_same(input.attributes)) return length;
    const Window window = Window::of(input.attributes, axis);
    if (!window.sane()) return insane_window();
    const auto result = slid_length(window, length);
    if (!result) return unfit(input.inputs[0], "an input larger than its kernel");
    return *result;
  });
}

template <std::size_t Axes>
core::Result<core::Shape> transposed_output_shape(const OpInput& input) {
  const core::Result<core::Shape> shape = with_channels(input);
  if (!shape) return shape.error();
  return slid_shape<Axes>(*shape, [&](std::size_t axis, std::int64_t length) -> core::Result<std::int64_t> {
    const Window window = Window::of(input.attributes, axis);
    if (!window.sane()) return insane_window();
    const std::int64_t extra = input.attributes.per_axis("output_padding", axis).value_or(0);
    if (extra < 0 || extra >= window.stride + window.dilation) return insane_window();
    core::Checked grown = core::Checked(length - 1) * core::Checked(window.stride);
    grown += window.reach() + extra + 1;
    if (!grown.valid() || *grown.value() <= 2 * window.padding) return unfit(input.inputs[0], "less padding");
    return *grown.value() - 2 * window.padding;
  });
}

/// A weight of [out, in / groups, kernel...] and a bias of [out].
template <std::size_t Axes>
std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto in = attributes.integer("in_channels");
  const auto out = attributes.integer("out_channels");
  const std::int64_t groups = attributes.integer("groups").value_or(1);
  if (!in || !out || attributes.find("kernel_size") == nullptr || groups < 1) return std::nullopt;
  // A transposed convolution's weight is [in, out / groups, kernel...]: as many elements.
  core::Checked weight = core::Checked(*out) * core::Checked(*in / groups);
  for (std::size_t axis = 0; axis < Axes; ++axis) {
    weight *= attributes.per_axis("kernel_size", axis).value_or(1);
  }
  return attributes.flag("bias", true) ? weight + core::Checked(*out) : weight;
}

/// The number of pixels after batch and channels; 0 if they are not all known.
inline std::int64_t pixels(const core::Shape& shape) {
  core::Checked count = 1;
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    count *= shape[axis].kind == core::Dim::Kind::fixed ? shape[axis].size : 0;
  }
  return count.value().value_or(0);
}

/// The convolution as cuDNN sees it.
template <std::size_t Axes, bool Transposed>
core::Result<Convolution> convolution_of(const OpCall& call) {
  if (call.shapes[0].rank() < 2) return unfit(call.shapes[0], "batch and channels");
  const auto& attributes = call.attributes;
  Convolution convolution;
  convolution.in_channels = call.shapes[0][1].size;
  convolution.out_channels = call.output.rank() > 1 ? call.output[1].size : 1;
  convolution.groups = attributes.integer("groups").value_or(1);
  if (convolution.groups < 1) return core::Error{core::ErrorCode::malformed_input, "has fewer groups than 1", {}};
  core::Checked kernel = 1;
  convolution.input_pixels = pixels(call.shapes[0]);
  convolution.output_pixels = pixels(call.output);
  convolution.axes = Axes;
  convolution.transposed = Transposed;
  for (std::size_t axis = 0; axis < Axes; ++axis) {
    const Window window = Window::of(attributes, axis);
    if (!window.sane()) return insane_window();
    kernel *= window.kernel;
    convolution.kernel = window.kernel;
    convolution.stride = window.stride;
    convolution.dilation = window.dilation;
  }
  if (!kernel.valid()) return core::Error{core::ErrorCode::overflow, "its kernel does not fit 64 bits", {}};
  convolution.kernel_elements = *kernel.value();
  return convolution;
}

/// cudnn_conv_suggest_memory_format: channels last where the input is, except PyTorch's own depthwise kernels.
inline bool stays_channels_last(const OpCall& call, const Tape& tape, const Convolution& convolution) {
  const bool depthwise = convolution.groups > 1 && convolution.groups == convolution.in_channels;
  return !depthwise && tape.backend() == Backend::cuda &&
         tape.tensor(call.tensors[0]).layout.channels_last(call.shapes[0].rank());
}

/// What cuDNN takes and gives: images as they lie, channels last without a copy and a workspace.
inline void run_by_cudnn(const OpCall& call, const Tape& tape, Call& made) {
  const bool last = stays_channels_last(call, tape, *made.convolution);
  if (last) made.layout = tape.tensor(call.tensors[0]).layout;
  made.library = last ? Library::none : Library::convolution;
  made.own_copy = !last;
  made.autocast = Autocast::lower;
  made.contiguous_gradient = true;
}

/// aten::convolution: keeps its input; convolution_backward makes the gradients of input, weight and bias in this
/// order, and cuDNN takes a workspace in each direction.
template <std::size_t Axes, bool Transposed>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const core::Result<Convolution> convolution = convolution_of<Axes, Transposed>(call);
  if (!convolution) return convolution.error();
  const auto& attributes = call.attributes;
  const auto with_bias = parameters<Axes>(attributes);
  const bool bias = attributes.flag("bias", true);
  const core::Checked channels = bias ? attributes.integer("out_channels").value_or(0) : 0;
  core::Checked weight = call.parameters;
  if (with_bias && with_bias->value() == call.parameters) weight = *with_bias->value() - channels.value().value_or(0);
  add_parameters(call, tape, {weight, channels});
  const TensorId input = call.tensors[0];
  Call made{.inputs = {&input, 1},
            .output = call.size,
            .saved_inputs = 1,
            .parameters = tape.layer_parameters(),
            .convolution = &*convolution};
  run_by_cudnn(call, tape, made);
  return tape.record(made);
}

/// A convolution whose weight and bias are tensors that the model computes: it keeps the weight as well.
template <std::size_t Axes>
core::Result<TensorId> record_function(const OpCall& call, Tape& tape) {
  if (call.tensors.size() < 2) return unfit(call.shapes[0], "a weight");
  const core::Result<Convolution> convolution = convolution_of<Axes, false>(call);
  if (!convolution) return convolution.error();
  Call made{.inputs = call.tensors, .output = call.size, .saved_inputs = 3, .convolution = &*convolution};
  run_by_cudnn(call, tape, made);
  return tape.record(made);
}

/// Its row: conv1d_function, conv2d_function, conv3d_function.
template <std::size_t Axes>
constexpr Op function_row(std::string_view name) {
  return {.traits =
              {.name = name, .family = OpFamily::conv, .keeps = Keeps::input, .multiplies = true, .overwritten = true},
          .output_shape = output_shape<Axes>,
          .record = record_function<Axes>};
}

inline constexpr std::array<std::string_view, 2> kPositional = {"in_channels", "out_channels"};
inline constexpr ExpectedWidth kExpects = {ExpectedWidth::Axis::channels, "in_channels"};

inline constexpr std::array<std::string_view, 2> kTorch1 = {"Conv1d", "LazyConv1d"};
inline constexpr std::array<std::string_view, 7> kTorch2 = {
    "Conv2d", "LazyConv2d", "Conv2dSame", "StdConv2d", "StdConv2dSame", "ScaledStdConv2d", "ScaledStdConv2dSame"};
inline constexpr std::array<std::string_view, 5> kTorch3 = {"Conv3d", "LazyConv3d", "CogVideoXSafeConv3d",
                                                            "QwenImageCausalConv3d", "WanCausalConv3d"};
inline constexpr std::array<std::string_view, 4> kKeras1 = {"Conv1D", "Convolution1D", "SeparableConv1D",
                                                            "DepthwiseConv1D"};
inline constexpr std::array<std::string_view, 4> kKeras2 = {"Conv2D", "Convolution2D", "SeparableConv2D",
                                                            "DepthwiseConv2D"};
inline constexpr std::array<std::string_view, 2> kKeras3 = {"Conv3D", "Convolution3D"};
inline constexpr std::array<std::string_view, 1> kTransposed1 = {"ConvTranspose1d"};
inline constexpr std::array<std::string_view, 1> kTransposed2 = {"ConvTranspose2d"};
inline constexpr std::array<std::string_view, 1> kTransposed3 = {"ConvTranspose3d"};
inline constexpr std::array<std::string_view, 1> kKerasTransposed1 = {"Conv1DTranspose"};
inline constexpr std::array<std::string_view, 2> kKerasTransposed2 = {"Conv2DTranspose", "Deconvolution2D"};
inline constexpr std::array<std::string_view, 1> kKerasTransposed3 = {"Conv3DTranspose"};

}  // namespace conv_detail

inline constexpr std::array<Op, 9> kConvOps = {{
    conv_detail::function_row<1>("conv1d_function"),
    conv_detail::function_row<2>("conv2d_function"),
    conv_detail::function_row<3>("conv3d_function"),
    {.traits = {.name = "conv1d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTorch1,
                .keras_classes = conv_detail::kKeras1,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<1>,
                .keeps = Keeps::input,
                .completion = Completion::convolution,
                .multiplies = true,
                .overwritten = true},
     .output_shape = conv_detail::output_shape<1>,
     .record = conv_detail::record<1, false>,
     .expects = conv_detail::kExpects},
    {.traits = {.name = "conv2d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTorch2,
                .keras_classes = conv_detail::kKeras2,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<2>,
                .keeps = Keeps::input,
                .completion = Completion::convolution,
                .multiplies = true,
                .overwritten = true},
     .output_shape = conv_detail::output_shape<2>,
     .record = conv_detail::record<2, false>,
     .expects = conv_detail::kExpects},
    {.traits = {.name = "conv3d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTorch3,
                .keras_classes = conv_detail::kKeras3,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<3>,
                .keeps = Keeps::input,
                .completion = Completion::convolution,
                .multiplies = true,
                .overwritten = true},
     .output_shape = conv_detail::output_shape<3>,
     .record = conv_detail::record<3, false>,
     .expects = conv_detail::kExpects},
    {.traits = {.name = "conv_transpose1d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTransposed1,
                .keras_classes = conv_detail::kKerasTransposed1,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<1>,
                .keeps = Keeps::input,
                .completion = Completion::transposed_convolution,
                .multiplies = true},
     .output_shape = conv_detail::transposed_output_shape<1>,
     .record = conv_detail::record<1, true>,
     .expects = conv_detail::kExpects},
    {.traits = {.name = "conv_transpose2d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTransposed2,
                .keras_classes = conv_detail::kKerasTransposed2,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<2>,
                .keeps = Keeps::input,
                .completion = Completion::transposed_convolution,
                .multiplies = true},
     .output_shape = conv_detail::transposed_output_shape<2>,
     .record = conv_detail::record<2, true>,
     .expects = conv_detail::kExpects},
    {.traits = {.name = "conv_transpose3d",
                .family = OpFamily::conv,
                .torch_classes = conv_detail::kTransposed3,
                .keras_classes = conv_detail::kKerasTransposed3,
                .positional = conv_detail::kPositional,
                .parameters = conv_detail::parameters<3>,
                .keeps = Keeps::input,
                .completion = Completion::transposed_convolution,
                .multiplies = true},
     .output_shape = conv_detail::transposed_output_shape<3>,
     .record = conv_detail::record<3, true>,
     .expects = conv_detail::kExpects},
}};

}  // namespace gpumem::ops
