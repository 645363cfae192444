// Image features [.., tokens, width] that a vision-language model puts among the tokens of its text [N, S, width]: in
// place of their embeddings (Tensor.masked_scatter), or added to them (Qwen3-VL's deepstack). Which tokens are images'
// depends on the data; their number does not.
// Source: torch 2.6, native/cuda/IndexKernel.cu: launch_masked_scatter_kernel; derivatives.yaml: masked_scatter;
// transformers 4.57, models/qwen3_vl/modeling_qwen3_vl.py: get_placeholder_mask, _deepstack_process.
//
// One pass over an image or a sequence, of which only padding by its own elements keeps something: roll, pad
// (torch.nn.functional.pad), up-sampling (torch.nn.functional.interpolate), pixel_shuffle, repeat (Tensor.repeat,
// torch.tile), unfold and fold (torch.nn.functional), and Keras' preprocessing layers.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "gpumem/ops/axis.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// The op that puts features among all tokens of the samples.
inline constexpr std::string_view kAmongTokens = "masked_scatter";

namespace images_detail {

/// Features a sample: all axes but the last, and the factor of the batch.
inline std::optional<std::int64_t> rows_a_sample(const core::Shape& features) {
  core::Checked rows = 1;
  for (std::size_t axis = 0; axis + 1 < features.rank(); ++axis) {
    if (features[axis].kind == core::Dim::Kind::unknown) return std::nullopt;
    rows *= features[axis].size;
  }
  return rows.value();
}

/// Whether all tokens of the samples hold the features is asked where they are put among them; later layers may have a
/// rank's part of the tokens.
template <bool AllTokens>
core::Result<core::Shape> text_shape(const OpInput& input) {
  const core::Shape& text = input.inputs[0];
  if (input.inputs.size() != 2 || text.rank() != 3) return unfit(text, "embeddings and image features");
  const core::Shape& features = input.inputs[1];
  const auto rows = rows_a_sample(features);
  if (!rows || features.rank() < 2 || features[features.rank() - 1] != text[2]) {
    return unfit(features, "features as wide as the embeddings");
  }
  if (AllTokens && text[1].kind == core::Dim::Kind::fixed && text[1].size < *rows) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the images of a sample take " + std::to_string(*rows) + " tokens, and samples have " +
                           std::to_string(text[1].size) + "; give a `seq_length` that holds them, or smaller images",
                       {}};
  }
  return text;
}

/// The batch's features, each by `figures` figures.
inline TensorSize features_of(const OpCall& call, std::int64_t figures) {
  const auto rows = rows_of(call.shapes[1]);
  return rows ? rows->times(figures).as(core::DType::int64) : TensorSize{};
}

/// The mask of a byte a token is seen as wide as the embeddings, and `inputs_embeds[mask].numel()` checks it: indices
/// of three figures an element, and what they choose. masked_scatter then copies the mask, and counts the elements
/// before each one. Backward chooses from the gradient by indices again.
inline core::Result<TensorId> record_scatter(const OpCall& call, Tape& tape) {
  const core::Dim width = call.output[2];
  const TensorSize copied = call.size.as(core::DType::boolean);
  const TensorSize before = call.size.as(core::DType::int64);
  const TensorSize chosen = features_of(call, width.size).times(3);
  const bool checks = call.attributes.flag("checks", true);
  if (checks) {
    const std::array<TensorSize, 1> indices = {chosen};
    (void)tape.record({.output = features_of(call, width.size).as(tape.tensor(call.tensors[0]).size.dtype),
                       .scratch = indices,
                       .differentiable = false});
  }
  const auto tokens = rows_of(call.output);
  const TensorSize mask = tokens ? tokens->as(core::DType::boolean) : TensorSize{};
  const std::array<TensorSize, 2> counted = {copied, before};
  const std::array<TensorSize, 1> again = {chosen};
  return tape.record({.inputs = call.tensors,
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .extras = {&mask, 1},
                      .extras_first = true,
                      .scratch = tape.own_scratch(counted),
                      .backward_scratch = again});
}

/// x[mask, :] + features, written back into x: two tensors of the features, and the mask's indices, which are kept.
inline core::Result<TensorId> record_addition(const OpCall& call, Tape& tape) {
  const TensorSize indices = features_of(call, 2);
  const std::int64_t width = call.output[2].size;
  const TensorSize features = features_of(call, width).as(tape.tensor(call.tensors[0]).size.dtype);
  const std::array<TensorSize, 2> made = {features, features};
  const TensorSize whole = call.size.as(tape.tensor(call.tensors[0]).size.dtype);
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = Output::in_place,
                      .extras = {&indices, 1},
                      .scratch = made,
                      .backward_scratch = {&whole, 1}});
}

}  // namespace images_detail

inline constexpr std::array<Op, 2> kImagesOps = {{
    {.traits = {.name = kAmongTokens, .family = OpFamily::other},
     .output_shape = images_detail::text_shape<true>,
     .record = images_detail::record_scatter},
    {.traits = {.name = "add_features", .family = OpFamily::other},
     .output_shape = images_detail::text_shape<false>,
     .record = images_detail::record_addition},
}};

namespace resample_detail {

/// An axis with what is put to its two sides; a negative padding cuts (torch.nn.functional.pad). Nothing: no element is
/// left, or the size does not fit 64 bits.
inline std::optional<std::int64_t> padded_size(const core::Dim& axis, std::int64_t left, std::int64_t right) {
  std::int64_t size = 0;
  const bool beyond = __builtin_add_overflow(axis.size, left, &size) || __builtin_add_overflow(size, right, &size);
  if (axis.kind != core::Dim::Kind::fixed || beyond || size < 1) return std::nullopt;
  return size;
}

/// "padding" counts (left, right) from the last axis on, or one number for every side of a spatial axis.
inline core::Result<core::Shape> pad_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const model::AttributeValue* padding = input.attributes.find("padding");
  const auto* sides = padding == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(padding);
  const auto everywhere = input.attributes.integer("padding");
  if (!everywhere) return missing("padding");
  const std::size_t padded = sides == nullptr ? (shape.rank() > 2 ? shape.rank() - 2 : 0) : sides->size() / 2;
  if (padded > shape.rank()) return unfit(shape, "as many axes as it pads");
  for (std::size_t back = 0; back < padded; ++back) {
    const std::size_t axis = shape.rank() - 1 - back;
    const std::int64_t left = sides == nullptr ? *everywhere : (*sides)[2 * back];
    const std::int64_t right = sides == nullptr ? *everywhere : (*sides)[2 * back + 1];
    const auto size = padded_size(shape[axis], left, right);
    if (!size) return unfit(shape, "a padding that leaves something of each axis");
    shape.set(axis, core::Dim::fixed(*size));
  }
  return shape;
}

/// "size" gives the spatial sizes, or "scale_factor" multiplies them (rounded down, as PyTorch has it).
inline core::Result<core::Shape> upsample_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const model::AttributeValue* factor = input.attributes.find("scale_factor");
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    double scale = 0.0;
    if (const auto size = input.attributes.per_axis("size", axis - 2)) {
      if (*size < 1) return core::Error{core::ErrorCode::malformed_input, "has a size below 1", {}};
      shape.set(axis, core::Dim::fixed(*size));
      continue;
    }
    if (factor == nullptr) return missing("size or scale_factor");
    if (const auto* real = std::get_if<double>(factor)) scale = *real;
    if (const auto whole = input.attributes.per_axis("scale_factor", axis - 2)) scale = static_cast<double>(*whole);
    const double scaled = static_cast<double>(shape[axis].size) * scale;
    constexpr double kMost = 1e15;
    if (!(scaled >= 1.0 && scaled < kMost)) return unfit(shape, "a usable scale_factor");
    shape.set(axis, core::Dim::fixed(static_cast<std::int64_t>(scaled)));
  }
  return shape;
}

/// [N, C r^2, H, W] -> [N, C, H r, W r].
inline core::Result<core::Shape> pixel_shuffle_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::int64_t factor = input.attributes.integer("upscale_factor").value_or(0);
  constexpr std::int64_t kMostFactor = 1024;
  if (factor < 1 || factor > kMostFactor) return missing("upscale_factor");
  if (shape.rank() != 4 || shape[1].size % (factor * factor) != 0) return unfit(shape, "C r^2 channels and 4 axes");
  shape.set(1, core::Dim::fixed(shape[1].size / (factor * factor)));
  for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) {
    const core::Checked size = core::Checked(shape[axis].size) * core::Checked(factor);
    if (!size.valid()) return core::Error{core::ErrorCode::overflow, "its size does not fit 64 bits", {}};
    shape.set(axis, core::Dim::fixed(*size.value()));
  }
  return shape;
}

/// Attribute "shape", of which -1 keeps an axis and every other size is a multiple of the input's; more axes may come
/// in front. Sizes may grow with the batch ("4N").
inline core::Result<core::Shape> repeat_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto wanted = wanted_dims(input.attributes);
  if (!wanted) return missing("shape");
  if (wanted->size() < shape.rank()) return unfit(shape, "a shape of as many axes");
  const std::size_t added = wanted->size() - shape.rank();
  core::Shape result;
  for (std::size_t axis = 0; axis < wanted->size(); ++axis) {
    const core::Dim to = (*wanted)[axis];
    const core::Dim from = axis < added ? core::Dim::fixed(1) : shape[axis - added];
    const bool keeps = to == core::Dim::fixed(-1);
    const bool grows = from.kind == to.kind || from.kind == core::Dim::Kind::fixed;
    const bool multiple = to.size >= 1 && from.size >= 1 && to.size % from.size == 0 && grows;
    if (keeps ? axis < added : !multiple) return unfit(shape, "sizes that are multiples of its own");
    if (!result.push_back(keeps ? from : to)) return unfit(shape, "a shape of fewer axes");
  }
  return result;
}

/// The number of windows over an axis of this size.
inline core::Result<std::int64_t> windows_over(const OpInput& input, std::size_t axis, std::int64_t length) {
  const Window window = Window::of(input.attributes, axis);
  if (!window.sane()) return insane_window();
  auto count = slid_length(window, length);
  if (!count) return unfit(input.inputs[0], "an input larger than its kernel");
  return *count;
}

/// [N, C, H, W] -> [N, C kh kw, windows].
inline core::Result<core::Shape> unfold_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  core::Checked windows = 1;
  const auto slid = slid_shape<2>(shape, [&](std::size_t axis, std::int64_t length) {
    core::Result<std::int64_t> count = windows_over(input, axis, length);
    windows *= count ? *count : 1;
    return count;
  });
  if (!slid) return slid.error();
  core::Checked columns = shape[1].size;
  for (std::size_t axis = 0; axis < 2; ++axis) columns *= input.attributes.per_axis("kernel_size", axis).value_or(1);
  if (!columns.valid() || !windows.valid()) {
    return core::Error{core::ErrorCode::overflow, "its size does not fit 64 bits", {}};
  }
  core::Shape result;
  result.push_back(shape[0]);
  result.push_back({*columns.value(), shape[1].kind});
  result.push_back(core::Dim::fixed(*windows.value()));
  return result;
}

/// [N, C kh kw, windows] -> [N, C, H, W] of "output_size".
inline core::Result<core::Shape> fold_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  if (shape.rank() != 3 || shape[1].kind != core::Dim::Kind::fixed) return unfit(shape, "3 axes");
  core::Checked kernel = 1;
  core::Shape result;
  result.push_back(shape[0]);
  for (std::size_t axis = 0; axis < 2; ++axis) kernel *= input.attributes.per_axis("kernel_size", axis).value_or(1);
  const std::int64_t elements = kernel.value().value_or(0);
  if (elements < 1 || shape[1].size % elements != 0) return unfit(shape, "C kh kw columns");
  result.push_back(core::Dim::fixed(shape[1].size / elements));
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto size = input.attributes.per_axis("output_size", axis);
    if (!size || *size < 1) return missing("output_size");
    result.push_back(core::Dim::fixed(*size));
  }
  return result;
}

/// A kernel that reads its input once and keeps nothing (upsample, pixel_shuffle, repeat, unfold, fold).
inline core::Result<TensorId> record_plain(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// Images keep their channels innermost, where they lie so (suggest_memory_format of UpSampleNearest2d.cu,
/// constant_pad_nd of PadNd.cpp).
inline Layout image_layout(const OpCall& call, const Tape& tape) {
  const Layout& layout = tape.tensor(call.tensors[0]).layout;
  return layout.channels_last(call.shapes[0].rank()) ? layout : Layout{};
}

/// torch.nn.functional.interpolate and its modules.
inline core::Result<TensorId> record_upsample(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .layout = image_layout(call, tape)});
}

/// torch.nn.functional.pad; reflection_pad2d_backward and replication_pad2d_backward read the input again.
inline core::Result<TensorId> record_pad(const OpCall& call, Tape& tape) {
  const model::AttributeValue* mode = call.attributes.find("mode");
  const auto* named = mode == nullptr ? nullptr : std::get_if<std::string>(mode);
  const bool reads = named != nullptr && (*named == "reflect" || *named == "replicate");
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .layout = image_layout(call, tape),
                      .saved_inputs = reads ? 1U : 0U});
}

/// What a printed count includes, in addition to an elementwise kernel.
inline core::Result<TensorId> record_normalize(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  return record_plain(call, tape);
}

/// Keras' Normalization holds the mean, variance and count it adapted to; its summary prints how many.
inline std::optional<core::Checked> printed_only(const model::Attributes&) { return std::nullopt; }

inline constexpr std::array<std::string_view, 12> kPad = {"ZeroPad1d",        "ZeroPad2d",        "ZeroPad3d",
                                                          "ConstantPad1d",    "ConstantPad2d",    "ConstantPad3d",
                                                          "ReflectionPad1d",  "ReflectionPad2d",  "ReflectionPad3d",
                                                          "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"};
inline constexpr std::array<std::string_view, 3> kKerasPad = {"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"};
inline constexpr std::array<std::string_view, 1> kPadPositional = {"padding"};
inline constexpr std::array<std::string_view, 3> kUpsample = {"Upsample", "UpsamplingNearest2d",
                                                              "UpsamplingBilinear2d"};
inline constexpr std::array<std::string_view, 4> kKerasUpsample = {"UpSampling1D", "UpSampling2D", "UpSampling3D",
                                                                   "Resizing"};
inline constexpr std::array<std::string_view, 1> kUnfold = {"Unfold"};
inline constexpr std::array<std::string_view, 1> kFold = {"Fold"};
inline constexpr std::array<std::string_view, 1> kShuffle = {"PixelShuffle"};
inline constexpr std::array<std::string_view, 1> kShufflePositional = {"upscale_factor"};
/// Keras' preprocessing layers that keep the image's size.
inline constexpr std::array<std::string_view, 6> kRescaling = {"Rescaling",  "RandomFlip",        "RandomRotation",
                                                               "RandomZoom", "RandomTranslation", "RandomContrast"};
inline constexpr std::array<std::string_view, 1> kNormalization = {"Normalization"};
inline constexpr std::array<std::string_view, 1> kTimeDistributed = {"TimeDistributed"};

}  // namespace resample_detail

inline constexpr std::array<Op, 10> kResampleOps = {{
    {.traits = {.name = "roll", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "pad",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kPad,
                .keras_classes = resample_detail::kKerasPad,
                .positional = resample_detail::kPadPositional},
     .output_shape = resample_detail::pad_shape,
     .record = resample_detail::record_pad},
    {.traits = {.name = "upsample",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kUpsample,
                .keras_classes = resample_detail::kKerasUpsample},
     .output_shape = resample_detail::upsample_shape,
     .record = resample_detail::record_upsample},
    {.traits = {.name = "pixel_shuffle",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kShuffle,
                .positional = resample_detail::kShufflePositional},
     .output_shape = resample_detail::pixel_shuffle_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "repeat", .family = OpFamily::other},
     .output_shape = resample_detail::repeat_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "unfold", .family = OpFamily::other, .torch_classes = resample_detail::kUnfold},
     .output_shape = resample_detail::unfold_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "fold", .family = OpFamily::other, .torch_classes = resample_detail::kFold},
     .output_shape = resample_detail::fold_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "rescale", .family = OpFamily::other, .keras_classes = resample_detail::kRescaling},
     .output_shape = same_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "normalize",
                .family = OpFamily::norm,
                .keras_classes = resample_detail::kNormalization,
                .parameters = resample_detail::printed_only,
                .norm = NormKind::other},
     .output_shape = same_shape,
     .record = resample_detail::record_normalize},
    {.traits = {.name = "time_distributed",
                .family = OpFamily::other,
                .keras_classes = resample_detail::kTimeDistributed,
                .parameters = resample_detail::printed_only},
     .output_shape = printed_shape_only},
}};

}  // namespace gpumem::ops
