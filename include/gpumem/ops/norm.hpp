// Normalisation: torch.nn.functional.batch_norm, instance_norm, group_norm, layer_norm, rms_norm and
// local_response_norm. The output has the input's shape.
#pragma once

#include <array>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace norm_detail {

/// A weight and a bias of num_features each, if affine.
inline std::optional<core::Checked> per_feature(const model::Attributes& attributes, bool affine_by_default) {
  const auto features = attributes.integer("num_features");
  if (!features) return std::nullopt;
  return attributes.flag("affine", affine_by_default) ? core::Checked(2) * core::Checked(*features) : core::Checked(0);
}

inline std::optional<core::Checked> batch_norm(const model::Attributes& attributes) {
  return per_feature(attributes, true);
}

inline std::optional<core::Checked> instance_norm(const model::Attributes& attributes) {
  return per_feature(attributes, false);
}

inline std::optional<core::Checked> group_norm(const model::Attributes& attributes) {
  const auto channels = attributes.integer("num_channels");
  if (!channels) return std::nullopt;
  return attributes.flag("affine", true) ? core::Checked(2) * core::Checked(*channels) : core::Checked(0);
}

/// The product of normalized_shape, which print() gives as (768,) or 768.
inline std::optional<core::Checked> normalized_elements(const model::Attributes& attributes) {
  const model::AttributeValue* shape = attributes.find("normalized_shape");
  if (shape == nullptr) return std::nullopt;
  if (const auto* one = std::get_if<std::int64_t>(shape)) return core::Checked(*one);
  const auto* list = std::get_if<std::vector<std::int64_t>>(shape);
  if (list == nullptr) return std::nullopt;
  core::Checked elements = 1;
  for (const std::int64_t size : *list) elements *= size;
  return elements;
}

inline std::optional<core::Checked> layer_norm(const model::Attributes& attributes) {
  const auto elements = normalized_elements(attributes);
  if (!elements || !attributes.flag("elementwise_affine", true)) return elements ? core::Checked(0) : elements;
  return attributes.flag("bias", true) ? core::Checked(2) * *elements : *elements;
}

inline std::optional<core::Checked> rms_norm(const model::Attributes& attributes) {
  const auto elements = normalized_elements(attributes);
  if (!elements || attributes.flag("elementwise_affine", true)) return elements;
  return core::Checked(0);
}

/// The channels of a layer: as its attributes say, or axis 1 of what it reads.
inline core::Checked channels_of(const OpCall& call, std::string_view attribute) {
  if (const auto given = call.attributes.integer(attribute)) return *given;
  return call.shapes[0].rank() > 1 ? call.shapes[0][1].size : 0;
}

/// Batch norm's kernels take images in order or channels last, and give the same; others they copy.
inline bool stays_channels_last(const OpCall& call, const Tape& tape) {
  return tape.backend() == Backend::cuda && tape.tensor(call.tensors[0]).layout.channels_last(call.shapes[0].rank());
}

/// aten::cudnn_batch_norm and native_batch_norm: keep the input, and mean and inverse deviation in float32.
inline core::Result<TensorId> record_batch(const OpCall& call, Tape& tape) {
  const core::Checked channels = channels_of(call, "num_features");
  const TensorSize statistic{channels, 0, core::DType::float32};
  add_parameters(call, tape, {channels, channels});
  if (call.attributes.flag("track_running_stats", true)) {
    tape.add_buffer(statistic.as(tape.dtype()));
    tape.add_buffer(statistic.as(tape.dtype()));
    tape.add_buffer({1, 0, core::DType::int64});
  }
  const std::array<TensorSize, 2> statistics = {statistic, statistic};
  const TensorId input = call.tensors[0];
  const bool last = stays_channels_last(call, tape);
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .layout = last ? tape.tensor(input).layout : Layout{},
                      .saved_inputs = 1,
                      .extras = statistics,
                      .parameters = tape.layer_parameters(),
                      .contiguous_gradient = true,
                      .own_copy = !last});
}

/// torch.nn.functional.batch_norm, whose weight, bias and running statistics are tensors of their own. In training it
/// keeps its input, the weight, and mean and inverse deviation in float32.
inline core::Result<TensorId> record_batch_function(const OpCall& call, Tape& tape) {
  const TensorSize statistic{channels_of(call, "num_features"), 0, core::DType::float32};
  const std::array<TensorSize, 2> statistics = {statistic, statistic};
  const bool training = call.attributes.flag("training", false);
  const bool last = stays_channels_last(call, tape);
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .layout = last ? tape.tensor(call.tensors[0]).layout : Layout{},
                      .saved_inputs = call.tensors.size() > 1 ? 3U : 1U,
                      .extras = std::span(statistics).first(training ? 2 : 0),
                      .contiguous_gradient = true,
                      .own_copy = !last,
                      .of_first_type = true});
}

/// A normalisation that keeps its input and two figures a row in float32. "outside_autocast": no autocast is around it.
inline core::Result<TensorId> record_rows(const OpCall& call, Tape& tape, const TensorSize& rows,
                                          core::Checked parameters) {
  add_parameters(call, tape, {parameters, parameters});
  const std::array<TensorSize, 2> statistics = {rows, rows};
  const TensorId input = call.tensors[0];
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saved_inputs = 1,
                      .extras = statistics,
                      .parameters = tape.layer_parameters(),
                      .autocast = call.attributes.flag("outside_autocast", false) ? Autocast::as_is : Autocast::full,
                      .contiguous_gradient = true,
                      .own_copy = true});
}

/// aten::native_layer_norm: mean and inverse deviation a row.
inline core::Result<TensorId> record_layer(const OpCall& call, Tape& tape) {
  const model::AttributeValue* shape = call.attributes.find("normalized_shape");
  const auto* list = shape == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(shape);
  const auto rows = rows_of(call.output, list == nullptr ? 1 : list->size());
  if (!rows) return unfit(call.output, "known sizes");
  return record_rows(call, tape, *rows, normalized_elements(call.attributes).value_or(call.parameters / 2));
}

/// aten::native_group_norm: mean and inverse deviation a sample and group.
inline core::Result<TensorId> record_group(const OpCall& call, Tape& tape) {
  const auto groups = call.attributes.integer("num_groups");
  if (!groups) return missing("num_groups");
  const auto samples = rows_of(call.output, call.output.rank() - 1);
  if (!samples) return unfit(call.output, "a known batch axis");
  return record_rows(call, tape, samples->times(*groups), channels_of(call, "num_channels"));
}

/// torch.nn.functional.group_norm, whose weight and bias are tensors of their own. The weight is kept.
inline core::Result<TensorId> record_group_function(const OpCall& call, Tape& tape) {
  const auto groups = call.attributes.integer("num_groups");
  if (!groups) return missing("num_groups");
  const auto samples = rows_of(call.output, call.output.rank() - 1);
  if (!samples) return unfit(call.output, "a known batch axis");
  const TensorSize statistic = samples->times(*groups);
  const std::array<TensorSize, 2> statistics = {statistic, statistic};
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .saved_inputs = call.tensors.size() > 1 ? 3U : 1U,
                      .extras = statistics,
                      .autocast = Autocast::full,
                      .contiguous_gradient = true,
                      .own_copy = true});
}

/// aten::instance_norm: a batch norm over [1, N C, ...] with its weights repeated for every sample.
inline core::Result<TensorId> record_instance(const OpCall& call, Tape& tape) {
  const auto planes = rows_of(call.output, call.output.rank() > 2 ? call.output.rank() - 2 : 0);
  if (!planes) return unfit(call.output, "known sizes");
  const core::Checked channels = channels_of(call, "num_features");
  add_parameters(call, tape, {channels, channels});
  const std::array<TensorSize, 3> extras = {*planes, *planes, *planes};
  const std::array<TensorSize, 2> repeated = {*planes, *planes};
  const bool affine = !tape.layer_parameters().empty();
  const TensorId input = contiguous(tape, call.tensors[0]);
  const TensorId planar = tape.record({.inputs = {&input, 1},
                                       .output = call.size,
                                       .saved_inputs = 1,
                                       .extras = std::span(extras).first(affine ? 3 : 2),  // the weight is kept
                                       .scratch = std::span(repeated).first(affine ? 1 : 0),
                                       .backward_scratch = std::span(repeated).first(affine ? 2 : 0),
                                       .parameters = tape.layer_parameters(),
                                       .contiguous_gradient = true});
  return tape.record({.inputs = {&planar, 1}, .output = call.size, .kind = Output::view, .gradient = Gradient::passed});
}

/// aten::rms_norm and HuggingFace's RMSNorm: x · rsqrt(mean(x²) + ε) in float32, then · weight. "fused": one kernel,
/// which keeps x and a figure a row (TransformerEngine 2.1, pytorch/module/rmsnorm.py; aten::_fused_rms_norm of PyTorch
/// 2.9, whose kernels copy an x that is a part of another tensor, each for itself).
inline core::Result<TensorId> record_rms(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.output);
  if (!rows) return unfit(call.output, "known sizes");
  add_parameters(call, tape, {core::Checked(call.parameters)});
  if (call.attributes.flag("fused", false)) {
    return tape.record({.inputs = call.tensors.first(1),
                        .output = tape.tensor(call.tensors[0]).size,
                        .saved_inputs = 1,
                        .extras = {&*rows, 1},
                        .parameters = tape.layer_parameters(),
                        .contiguous_gradient = true,
                        .own_copy = true});
  }
  const core::DType type = tape.tensor(call.tensors[0]).size.dtype;
  const TensorId full = tape.cast(call.tensors[0], core::DType::float32);
  const TensorId square = power(tape, full);
  const TensorId mean = tape.record({.inputs = {&square, 1}, .output = *rows});
  const TensorId shifted = elementwise(tape, mean);
  const TensorId inverse = elementwise(tape, shifted, 0, true);
  const bool own_type = call.class_name == "T5LayerNorm";  // which multiplies what it reads, not its float32 copy
  const TensorId scaled = product(tape, own_type ? call.tensors[0] : full, inverse);
  const TensorId back = tape.cast(scaled, type);
  if (tape.layer_parameters().empty()) return back;
  // A weight of float32 makes the product float32, under autocast too: aten::mul promotes.
  const TapeTensor& weight = tape.tensor(tape.layer_parameters()[0]);
  const bool widens = weight.size.dtype == core::DType::float32;
  const TensorSize whole = widens ? tape.tensor(back).size.as(core::DType::float32) : tape.tensor(back).size;
  const bool trained = weight.requires_grad;
  return tape.record({.inputs = {&back, 1},
                      .output = whole,
                      .typed = widens,
                      .saved_for_weight = 1,
                      .backward_scratch = {&whole, trained ? 1U : 0U},
                      .parameters = tape.layer_parameters()});
}

/// torch.nn.functional.normalize: x / max(‖x‖, ε), with the norm over axis "dim" (1 by default). The norm keeps x and
/// itself, the bound keeps the norm, the quotient both of its inputs.
inline core::Result<TensorId> record_normalize(const OpCall& call, Tape& tape) {
  const auto axis = axis_of(call.shapes[0], call.attributes.integer("dim").value_or(1));
  if (!axis) return unfit(call.shapes[0], "the axis dim");
  core::Shape reduced = call.shapes[0];
  reduced.set(*axis, core::Dim::fixed(1));
  const auto rows = size_of(reduced);
  if (!rows) return unfit(call.shapes[0], "known sizes");
  const TensorId input = call.tensors[0];
  const TensorId norm = tape.record(
      {.inputs = {&input, 1}, .output = *rows, .saved_inputs = 1, .saves_output = true, .autocast = Autocast::full});
  const TensorId bounded = elementwise(tape, norm, 1);
  const TensorId spread = tape.record(
      {.inputs = {&bounded, 1}, .output = call.size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  return quotient(tape, input, spread);
}

/// torch.nn.functional.local_response_norm: x / (k + α · pool(x²))^β; the pool runs over "size" channels, which padding
/// adds to.
inline core::Result<TensorId> record_response(const OpCall& call, Tape& tape) {
  const TensorId input = call.tensors[0];
  const TensorId square = product(tape, input, input);
  const core::Shape& shape = call.shapes[0];
  if (shape.rank() < 2 || shape[1].kind != core::Dim::Kind::fixed) return unfit(shape, "known channels");
  core::Shape wider = shape;
  const core::Checked channels =
      core::Checked(shape[1].size) + core::Checked(call.attributes.integer("size").value_or(1) - 1);
  if (!channels.valid()) return core::Error{core::ErrorCode::malformed_input, "has a size below 1", {}};
  wider.set(1, core::Dim::fixed(*channels.value()));
  const auto padded_size = size_of(wider);
  if (!padded_size) return unfit(shape, "known sizes");
  const TensorId padded = tape.record({.inputs = {&square, 1}, .output = *padded_size});
  const TensorId pooled = tape.record({.inputs = {&padded, 1}, .output = call.size, .saved_inputs = 1});
  const TensorId scaled = elementwise(tape, pooled);
  const TensorId shifted = tape.record({.inputs = {&scaled, 1}, .output = call.size, .gradient = Gradient::passed});
  return quotient(tape, input, power(tape, shifted));
}

inline constexpr std::array<std::string_view, 1> kFeatures = {"num_features"};
inline constexpr std::array<std::string_view, 2> kGroups = {"num_groups", "num_channels"};
inline constexpr std::array<std::string_view, 1> kShape = {"normalized_shape"};
inline constexpr std::array<std::string_view, 10> kBatchTorch = {
    "BatchNorm1d",       "BatchNorm2d",     "BatchNorm3d",     "SyncBatchNorm",   "BatchNormAct2d",
    "FrozenBatchNorm2d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNormAct"};
inline constexpr std::array<std::string_view, 1> kBatchKeras = {"BatchNormalization"};
inline constexpr std::array<std::string_view, 3> kInstanceTorch = {"InstanceNorm1d", "InstanceNorm2d",
                                                                   "InstanceNorm3d"};
inline constexpr std::array<std::string_view, 4> kGroupTorch = {"GroupNorm", "GroupNormAct", "GroupNorm1",
                                                                "GroupNorm1NoBias"};
inline constexpr std::array<std::string_view, 1> kGroupKeras = {"GroupNormalization"};
inline constexpr std::array<std::string_view, 11> kLayerTorch = {
    "LayerNorm",         "LayerNorm2d",         "FusedLayerNorm",  "LayerNormAct2d",
    "ConvNextLayerNorm", "ConvNextV2LayerNorm", "LayerNormNoBias", "LayerNorm2dNoBias",
    "LayerNormAct",      "NemotronLayerNorm1P", "FP32LayerNorm"};
inline constexpr std::array<std::string_view, 1> kLayerKeras = {"LayerNormalization"};
inline constexpr std::array<std::string_view, 4> kRmsTorch = {"RMSNorm", "RmsNorm", "T5LayerNorm", "RMSLayerNorm"};
inline constexpr std::array<std::string_view, 1> kRmsEndings = {"RMSNorm"};
inline constexpr std::array<std::string_view, 1> kRmsKeras = {"RMSNormalization"};
inline constexpr std::array<std::string_view, 2> kResponseTorch = {"LocalResponseNorm", "CrossMapLRN2d"};
inline constexpr std::array<std::string_view, 1> kResponsePositional = {"size"};

}  // namespace norm_detail

inline constexpr std::array<Op, 9> kNormOps = {{
    {.traits = {.name = "batch_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kBatchTorch,
                .keras_classes = norm_detail::kBatchKeras,
                .positional = norm_detail::kFeatures,
                .parameters = norm_detail::batch_norm,
                .keeps = Keeps::input,
                .norm = NormKind::batch,
                .completion = Completion::batch_norm,
                .overwritten = true},
     .output_shape = same_shape,
     .record = norm_detail::record_batch,
     .expects = {.axis = ExpectedWidth::Axis::channels, .attribute = "num_features"}},
    {.traits = {.name = "batch_norm_function",
                .family = OpFamily::norm,
                .keeps = Keeps::input,
                .norm = NormKind::batch,
                .overwritten = true},
     .output_shape = same_shape,
     .record = norm_detail::record_batch_function},
    {.traits = {.name = "instance_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kInstanceTorch,
                .positional = norm_detail::kFeatures,
                .parameters = norm_detail::instance_norm,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = norm_detail::record_instance,
     .expects = {.axis = ExpectedWidth::Axis::channels, .attribute = "num_features"}},
    {.traits = {.name = "group_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kGroupTorch,
                .keras_classes = norm_detail::kGroupKeras,
                .positional = norm_detail::kGroups,
                .parameters = norm_detail::group_norm,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = norm_detail::record_group,
     .expects = {.axis = ExpectedWidth::Axis::channels, .attribute = "num_channels"}},
    {.traits =
         {.name = "group_norm_function", .family = OpFamily::norm, .keeps = Keeps::input, .norm = NormKind::other},
     .output_shape = same_shape,
     .record = norm_detail::record_group_function},
    {.traits = {.name = "layer_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kLayerTorch,
                .keras_classes = norm_detail::kLayerKeras,
                .positional = norm_detail::kShape,
                .parameters = norm_detail::layer_norm,
                .keeps = Keeps::input,
                .norm = NormKind::layer,
                .completion = Completion::layer_norm},
     .output_shape = same_shape,
     .record = norm_detail::record_layer},
    {.traits = {.name = "rms_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kRmsTorch,
                .keras_classes = norm_detail::kRmsKeras,
                .positional = norm_detail::kShape,
                .parameters = norm_detail::rms_norm,
                .torch_endings = norm_detail::kRmsEndings,
                .keeps = Keeps::input,
                .norm = NormKind::rms},
     .output_shape = same_shape,
     .record = norm_detail::record_rms},
    // "normalize" is Keras' Normalization.
    {.traits = {.name = "lp_normalize", .family = OpFamily::norm, .keeps = Keeps::input, .norm = NormKind::other},
     .output_shape = same_shape,
     .record = norm_detail::record_normalize},
    {.traits = {.name = "local_response_norm",
                .family = OpFamily::norm,
                .torch_classes = norm_detail::kResponseTorch,
                .positional = norm_detail::kResponsePositional,
                .keeps = Keeps::input,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = norm_detail::record_response},
}};

}  // namespace gpumem::ops
