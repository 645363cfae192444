// Attention: torch.nn.MultiheadAttention (torch.nn.functional.multi_head_attention_forward) and
// torch.nn.functional.scaled_dot_product_attention. The output has the query's shape.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace attention_detail {

/// The packed input projection: weight [3 E, E], bias [3 E]. The output projection is a layer of its own, unless
/// graph JSON says "out_proj": true: then it counts here, weight [E, E], bias [E].
inline std::optional<core::Checked> in_projection(const model::Attributes& attributes) {
  const auto width = attributes.integer("embed_dim");
  if (!width) return std::nullopt;
  const core::Checked projections = attributes.flag("out_proj", false) ? 4 : 3;
  const core::Checked weight = projections * core::Checked(*width) * core::Checked(*width);
  return attributes.flag("bias", true) ? weight + projections * core::Checked(*width) : weight;
}

inline constexpr std::array<std::string_view, 1> kTorch = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kKeras = {"MultiHeadAttention"};
inline constexpr std::array<std::string_view, 1> kRotaryEndings = {"RotaryEmbedding"};
inline constexpr std::array<std::string_view, 2> kKerasScaled = {"Attention", "AdditiveAttention"};

}  // namespace attention_detail

inline constexpr std::array<Op, 3> kAttentionOps = {
    {{{"multihead_attention",
       attention_detail::kTorch,
       attention_detail::kKeras,
       {},
       attention_detail::in_projection,
       true},
      same_shape},
     {{"scaled_dot_product_attention", {}, attention_detail::kKerasScaled}, same_shape},
     // HuggingFace's rotary positions: two small tables, which no later row of a summary reads.
     {{"rotary_embedding", {}, {}, {}, nullptr, false, attention_detail::kRotaryEndings}, nullptr}}};

}  // namespace gpumem::ops
