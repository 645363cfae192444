// Input: the text of a config.json of a language model.
// Output: the sizes that a server needs: of its weights and of its KV cache.
// Units: elements, layers, heads, tokens; bits of a weight.
// Source: the fields as transformers' configuration classes name them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"

namespace gpumem::serve {

struct ServedModel {
  std::string model_type;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t norms_per_layer = 2;  ///< of the hidden size
  std::int64_t rotary_dim = 0;
  std::int64_t experts = 0;  ///< 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t sliding_layers = 0;
  std::int64_t sliding_window = 0;
  bool tied = false;
  bool qkv_bias = false;
  bool head_norms = false;       ///< of queries and keys, one vector of the head's size each
  std::int64_t weight_bits = 0;  ///< of the linear layers; 0: they are not quantised
  std::int64_t group_size = 0;   ///< weights that share a scale; 0: one output channel
};

/// Errors: malformed_input, missing_information, and unknown_format for a model, or a quantisation, without rules.
[[nodiscard]] core::Result<ServedModel> read_served_model(std::string_view config_json);

}  // namespace gpumem::serve

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/serve/impl/served_model_inl.hpp"
#endif
