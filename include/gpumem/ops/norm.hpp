// Normalisation: torch.nn.functional.batch_norm, instance_norm, group_norm, layer_norm, rms_norm and
// local_response_norm. The output has the input's shape.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

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

inline constexpr std::array<std::string_view, 1> kFeatures = {"num_features"};
inline constexpr std::array<std::string_view, 2> kGroups = {"num_groups", "num_channels"};
inline constexpr std::array<std::string_view, 1> kShape = {"normalized_shape"};
inline constexpr std::array<std::string_view, 10> kBatchTorch = {
    "BatchNorm1d",       "BatchNorm2d",     "BatchNorm3d",     "SyncBatchNorm",   "BatchNormAct2d",
    "FrozenBatchNorm2d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNormAct"};
inline constexpr std::array<std::string_view, 1> kBatchKeras = {"BatchNormalization"};
inline constexpr std::array<std::string_view, 3> kInstanceTorch = {"InstanceNorm1d", "InstanceNorm2d",
                                                                   "InstanceNorm3d"};
inline constexpr std::array<std::string_view, 2> kGroupTorch = {"GroupNorm", "GroupNormAct"};
inline constexpr std::array<std::string_view, 1> kGroupKeras = {"GroupNormalization"};
inline constexpr std::array<std::string_view, 5> kLayerTorch = {"LayerNorm", "LayerNorm2d", "FusedLayerNorm",
                                                                "LayerNormAct2d", "ConvNextLayerNorm"};
inline constexpr std::array<std::string_view, 1> kLayerKeras = {"LayerNormalization"};
inline constexpr std::array<std::string_view, 2> kRmsTorch = {"RMSNorm", "T5LayerNorm"};
inline constexpr std::array<std::string_view, 1> kRmsEndings = {"RMSNorm"};
inline constexpr std::array<std::string_view, 1> kRmsKeras = {"RMSNormalization"};
inline constexpr std::array<std::string_view, 2> kResponseTorch = {"LocalResponseNorm", "CrossMapLRN2d"};
inline constexpr std::array<std::string_view, 1> kResponsePositional = {"size"};

}  // namespace norm_detail

inline constexpr std::array<Op, 6> kNormOps = {
    {{{"batch_norm", norm_detail::kBatchTorch, norm_detail::kBatchKeras, norm_detail::kFeatures,
       norm_detail::batch_norm},
      same_shape,
      {ExpectedWidth::Axis::channels, "num_features"}},
     {{"instance_norm", norm_detail::kInstanceTorch, {}, norm_detail::kFeatures, norm_detail::instance_norm},
      same_shape,
      {ExpectedWidth::Axis::channels, "num_features"}},
     {{"group_norm", norm_detail::kGroupTorch, norm_detail::kGroupKeras, norm_detail::kGroups, norm_detail::group_norm},
      same_shape,
      {ExpectedWidth::Axis::channels, "num_channels"}},
     {{"layer_norm", norm_detail::kLayerTorch, norm_detail::kLayerKeras, norm_detail::kShape, norm_detail::layer_norm},
      same_shape},
     {{"rms_norm", norm_detail::kRmsTorch, norm_detail::kRmsKeras, norm_detail::kShape, norm_detail::rms_norm, false,
       norm_detail::kRmsEndings},
      same_shape},
     {{"local_response_norm", norm_detail::kResponseTorch, {}, norm_detail::kResponsePositional}, same_shape}}};

}  // namespace gpumem::ops
