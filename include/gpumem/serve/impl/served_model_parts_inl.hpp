#pragma once

#include "gpumem/serve/served_model.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::serve {

namespace model_parts_detail {

using Kind = core::JsonValue::Kind;

inline core::Error unknown(std::string message, std::string pointer) {
  return {core::ErrorCode::unknown_format, std::move(message), {.file = {}, .line = 0, .element = std::move(pointer)}};
}

/// The object of this name; null: there is none.
inline const core::JsonValue* object_in(const core::JsonValue& config, std::string_view name) {
  for (const core::JsonValue& field : config.items()) {
    if (field.key() == name && field.is(Kind::object)) return &field;
  }
  return nullptr;
}

/// A part of the names of layers: "self_attn" of "re:.*self_attn.*" and of "*.self_attn*"; empty: the pattern says more
/// than that.
inline std::string plain_part(std::string_view pattern) {
  if (pattern.starts_with("re:")) pattern.remove_prefix(3);
  std::string part;
  for (const char each : pattern) {
    if (each != '\\' && each != '^' && each != '$') part.push_back(each);
  }
  for (const std::string_view any : {".*", "*", "."}) {
    if (part.starts_with(any)) part.erase(0, any.size());
    if (part.ends_with(any)) part.erase(part.size() - any.size());
  }
  return part.find_first_of("[](){}|?+*") == std::string::npos ? part : std::string();
}

/// NVFP4: 16 weights share a scale of one byte.
inline void read_nvfp4(ServedModel& model) {
  model.weight_bits = 4;
  model.group_size = 16;
  model.scale_bytes = 1;
}

/// DeepSeek's fp8: a block of 128 by 128 weights shares a scale in float32.
inline void read_scaled_blocks(const core::JsonValue& sides, ServedModel& model) {
  core::Checked block(1);
  for (const core::JsonValue& side : sides.items()) {
    block = block * core::Checked(side.is(Kind::integer) ? side.integer() : 0);
  }
  if (block.value().value_or(0) <= 0) return;
  model.group_size = *block.value();
  model.scale_bytes = 4;
}

/// How many modules of the graph hold a layer that carries a state.
inline std::int64_t recurrent_modules(const model::ModelGraph& graph) {
  std::set<std::uint32_t> modules;
  for (const model::Layer& layer : graph.layers()) {
    const model::OpTraits* op = graph.op_traits(layer);
    if (op != nullptr && op->family == model::OpFamily::recurrent) modules.insert(layer.scope);
  }
  return static_cast<std::int64_t>(modules.size());
}

/// Layers whose keys and values a cache holds: each hands on two tensors.
inline std::int64_t attention_layers(const model::ModelGraph& graph) {
  return std::count_if(graph.layers().begin(), graph.layers().end(),
                       [&](const model::Layer& layer) { return graph.attributes(layer).find("cache") != nullptr; }) /
         2;
}

/// The largest image is cut into tiles of the tower's size, and comes once more as a whole. Source: vLLM's
/// models/mllama4.py, Mllama4ProcessingInfo: get_image_size_with_most_features() and get_patch_per_chunk();
/// transformers' Llama4ImageProcessorFast, max_patches.
inline core::Status read_llama4_tower(architectures::ConfigFields& fields, ServedTower& tower) {
  constexpr std::int64_t kTiles = 16 + 1;
  architectures::ConfigFields* vision = fields.part("vision_config");
  const auto size = [&](std::string_view name, std::int64_t usual) {
    return vision == nullptr ? usual : vision->size_or({name}, usual);
  };
  tower.hidden = size("hidden_size", 1408);
  tower.intermediate = size("intermediate_size", 5632);
  const std::int64_t side = std::min<std::int64_t>(size("image_size", 448), 16384);
  const std::int64_t row = std::max<std::int64_t>(1, side / size("patch_size", 14));
  tower.patches = kTiles * (row * row + 1);  // each with a class token
  tower.tokens = kTiles * std::max<std::int64_t>(1, row * row / 4);
  tower.pixels = kTiles * 3 * side * side;
  return core::Done{};
}

}  // namespace model_parts_detail

GPUMEM_INLINE std::vector<std::string> kept_layers(const core::JsonValue& quantization,
                                                   std::vector<model::Doubt>& doubts) {
  using model_parts_detail::Kind;
  using model_parts_detail::plain_part;
  constexpr std::size_t kMostPatterns = 4096;
  std::vector<std::string> parts;
  for (const core::JsonValue& field : quantization.items()) {
    const bool listed =
        field.key() == "ignore" || field.key() == "modules_to_not_convert" || field.key() == "exclude_modules";
    if (!listed || !field.is(Kind::list)) continue;
    for (const core::JsonValue& item : field.items()) {
      if (!item.is(Kind::text) || parts.size() == kMostPatterns) continue;
      std::string part = plain_part(item.text());
      if (!part.empty()) {
        parts.push_back(std::move(part));
      } else {
        doubts.push_back({model::Doubt::About::quantization,
                          "layers that quantization_config leaves out by a "
                          "pattern that is not read: " +
                              core::shortened(item.text(), 40)});
      }
    }
  }
  return parts;
}

GPUMEM_INLINE core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model) {
  using namespace model_parts_detail;
  const core::JsonValue* weights = &quantization;
  std::string_view method;
  std::string_view algorithm;
  for (const core::JsonValue& field : quantization.items()) {
    if (field.key() == "quant_method" && field.is(Kind::text)) method = field.text();
    if (field.key() == "quant_algo" && field.is(Kind::text)) algorithm = field.text();
    if (field.key() != "config_groups" || !field.is(Kind::object) || field.size() != 1) continue;
    if (const core::JsonValue* of = object_in(*field.items().begin(), "weights")) weights = of;
  }
  if (method == "mxfp4") {
    model.held = HeldWeights::mxfp4_experts;
    return core::Done{};
  }
  model.held = HeldWeights::packed;
  bool floats = false;
  for (const core::JsonValue& field : weights->items()) {
    floats = floats || (field.key() == "type" && field.is(Kind::text) && field.text() == "float");
    if (field.key() == "weight_block_size" && field.is(Kind::list)) read_scaled_blocks(field, model);
    if (!field.is(Kind::integer)) continue;
    if (field.key() == "num_bits" || field.key() == "bits" || field.key() == "w_bit") {
      model.weight_bits = field.integer();
    }
    if ((field.key() == "group_size" || field.key() == "q_group_size") && field.integer() > 0) {
      model.group_size = field.integer();
    }
  }
  if (method == "fp8" || algorithm == "FP8") model.weight_bits = 8;
  if (algorithm == "NVFP4" || (floats && model.weight_bits == 4 && model.group_size == 16)) read_nvfp4(model);
  if (method == "compressed-tensors" && model.weight_bits == 0) {
    model.weight_bits = 8;
    model.doubts.push_back({model::Doubt::About::quantization,
                            "quantization_config does not say of how many bits the weights are: 8 were taken"});
  }
  constexpr auto kMethods =
      std::to_array<std::string_view>({"compressed-tensors", "gptq", "awq", "fp8", "modelopt", "modelopt_fp4"});
  const bool known = std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
  if (known && (model.weight_bits == 4 || model.weight_bits == 8)) return core::Done{};
  return unknown(
      "no rules for this quantisation; known: mxfp4 of gpt-oss, and compressed-tensors with one group, gptq, awq, "
      "modelopt and fp8, of 4 or 8 bits",
      "/quantization_config");
}

/// Source: vLLM's model_executor/layers/mamba/mamba_utils.py:
/// MambaStateShapeCalculator.gated_delta_net_state_shape(), mamba2_state_shape() and
/// mamba1_state_shape(), and MambaStateDtypeCalculator.
GPUMEM_INLINE core::Status read_states(const model::ModelGraph& graph, architectures::ConfigFields& fields,
                                       ServedModel& model) {
  ServedStates& states = model.states;
  states.layers = model_parts_detail::recurrent_modules(graph);
  if (states.layers == 0) return core::Done{};
  model.attention_layers = std::min(model.layers, model_parts_detail::attention_layers(graph));
  const auto product = [](std::initializer_list<std::int64_t> sizes) {
    core::Checked all(1);
    for (const std::int64_t size : sizes) all = all * core::Checked(size);
    return all.value().value_or(INT64_MAX);
  };
  const std::int64_t kept = fields.size_or({"linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"}, 4) - 1;
  if (fields.has("linear_num_value_heads")) {
    const std::int64_t values = fields.size({"linear_num_value_heads"});
    const std::int64_t key_width = fields.size({"linear_key_head_dim"});
    const std::int64_t value_width = fields.size({"linear_value_head_dim"});
    const std::int64_t keys = product({2, fields.size({"linear_num_key_heads"}), key_width});
    states.convolved = product({keys + product({values, value_width}), kept});
    states.carried = product({values, value_width, key_width});
    states.in_float32 = fields.text({"mamba_ssm_dtype"}, "") == "float32";
    return core::Done{};
  }
  if (model.model_type == "jamba") {
    const std::int64_t wide = product({fields.size_or({"mamba_expand"}, 2), model.hidden});
    states.convolved = product({wide, kept});
    states.carried = product({wide, fields.size_or({"mamba_d_state"}, 16)});
    return core::Done{};
  }
  const std::int64_t heads = fields.size_or({"mamba_n_heads", "mamba_num_heads"}, 0);
  if (heads == 0)
    return model_parts_detail::unknown("no rules for the state that its layers hold besides a KV cache", "/model_type");
  const std::int64_t inner = product({heads, fields.size({"mamba_d_head", "mamba_head_dim"})});
  const std::int64_t width = fields.size({"mamba_d_state", "ssm_state_size"});
  const std::int64_t groups = fields.size_or({"mamba_n_groups", "n_groups"}, 1);
  states.convolved = product({inner + product({2, groups, width}), kept});
  states.carried = product({inner, width});
  states.in_float32 = fields.text({"mamba_ssm_cache_dtype"}, "") == "float32";
  return core::Done{};
}

/// Source: vLLM's models/pixtral.py, PixtralHFEncoderInfo; models/gemma3_mm.py; models/llava.py and models/qwen2_vl.py:
/// get_image_size_with_most_features(). Qwen's largest image follows from its processor's max_pixels, which config.json
/// does not have: 16,384 tokens are taken.
GPUMEM_INLINE core::Status read_tower(architectures::ConfigFields& fields, std::string_view type, ServedModel& model) {
  if (type == "llama4") return model_parts_detail::read_llama4_tower(fields, model.tower);
  architectures::ConfigFields* vision = fields.part("vision_config");
  if (vision == nullptr)
    return model_parts_detail::unknown("the sizes of its image tower are not in \"vision_config\"", "/vision_config");
  ServedTower& tower = model.tower;
  tower.hidden = vision->size_or({"hidden_size", "embed_dim"}, 1024);
  tower.intermediate = vision->size_or({"intermediate_size"}, 4 * tower.hidden);
  const std::int64_t patch = vision->size_or({"patch_size"}, 14);
  if (type.starts_with("qwen")) {
    constexpr std::int64_t kMostTokens = 16384;
    const std::int64_t merge = vision->size_or({"spatial_merge_size"}, 2);
    const std::int64_t frames = vision->size_or({"temporal_patch_size"}, 2);
    tower.tokens = kMostTokens;
    tower.patches = kMostTokens * std::min<std::int64_t>(merge, 64) * std::min<std::int64_t>(merge, 64);
    tower.pixels = tower.patches * 3 * std::min<std::int64_t>(frames, 64) * std::min<std::int64_t>(patch * patch, 4096);
    return core::Done{};
  }
  constexpr std::int64_t kWidest = 16384;
  const std::int64_t side = std::min(vision->size({"image_size"}), kWidest);
  const std::int64_t patches = std::max<std::int64_t>(1, side / patch);
  tower.patches = patches * patches;
  tower.pixels = 3 * side * side;
  if (type == "gemma3") {
    tower.tokens = fields.size_or({"mm_tokens_per_image"}, 256);
  } else if (type == "mistral3") {
    const std::int64_t merged = std::max<std::int64_t>(1, patches / fields.size_or({"spatial_merge_size"}, 2));
    tower.tokens = merged * merged;
  } else if (type == "llava") {
    tower.tokens = tower.patches;
  } else {
    return model_parts_detail::unknown("the profiling pass of its image tower is not known", "/vision_config");
  }
  return core::Done{};
}

}  // namespace gpumem::serve
