// One pass over an image or a sequence that keeps nothing: roll, pad (torch.nn.functional.pad), up-sampling
// (torch.nn.functional.interpolate), pixel_shuffle, and Keras' preprocessing layers.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace resample_detail {

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
    const core::Checked added = sides == nullptr ? core::Checked(2) * core::Checked(*everywhere)
                                                 : core::Checked((*sides)[2 * back]) + (*sides)[2 * back + 1];
    const core::Checked size = core::Checked(shape[axis].size) + added;
    if (!size.valid() || shape[axis].kind != core::Dim::Kind::fixed)
      return unfit(shape, "a padding that is not negative");
    shape.set(axis, core::Dim::fixed(*size.value()));
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

/// A kernel that reads its input once and keeps nothing (pad, upsample, pixel_shuffle).
inline core::Result<TensorId> record_plain(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// What a printed count holds, beside an elementwise kernel.
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
inline constexpr std::array<std::string_view, 1> kShuffle = {"PixelShuffle"};
inline constexpr std::array<std::string_view, 1> kShufflePositional = {"upscale_factor"};
/// Keras' preprocessing layers that keep the image's size.
inline constexpr std::array<std::string_view, 6> kRescaling = {"Rescaling",  "RandomFlip",        "RandomRotation",
                                                               "RandomZoom", "RandomTranslation", "RandomContrast"};
inline constexpr std::array<std::string_view, 1> kNormalization = {"Normalization"};
inline constexpr std::array<std::string_view, 1> kTimeDistributed = {"TimeDistributed"};

}  // namespace resample_detail

inline constexpr std::array<Op, 7> kResampleOps = {{
    {.traits = {.name = "roll", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "pad",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kPad,
                .keras_classes = resample_detail::kKerasPad,
                .positional = resample_detail::kPadPositional},
     .output_shape = resample_detail::pad_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "upsample",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kUpsample,
                .keras_classes = resample_detail::kKerasUpsample},
     .output_shape = resample_detail::upsample_shape,
     .record = resample_detail::record_plain},
    {.traits = {.name = "pixel_shuffle",
                .family = OpFamily::other,
                .torch_classes = resample_detail::kShuffle,
                .positional = resample_detail::kShufflePositional},
     .output_shape = resample_detail::pixel_shuffle_shape,
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
