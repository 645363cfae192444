// Input: a layer's input, and the sizes of attention whose keys and values are computed from a narrow vector
// (multi-head latent attention).
// Output: its calls: queries, compressed or not; one key with positions for all heads; keys and values of each head.
// Source: transformers 4.51, models/deepseek_v3/modeling_deepseek_v3.py; arXiv:2405.04434.
#pragma once

#include <string>

#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

struct LatentAttention {
  std::int64_t width = 1;  ///< of the hidden states
  std::int64_t heads = 1;
  std::int64_t query_rank = 0;    ///< of the queries' compression; 0: they are not compressed
  std::int64_t kv_rank = 1;       ///< of keys and values
  std::int64_t plain_width = 1;   ///< of a head's queries and keys without positions
  std::int64_t rotary_width = 2;  ///< and with
  std::int64_t value_width = 1;
  bool bias = false;
  double dropout = 0.0;
  bool caches = true;  ///< keys and values are returned
  std::string class_name = {};
  std::string norm_class = {};

  [[nodiscard]] std::int64_t key_width() const { return plain_width + rotary_width; }
};

/// Heads that are too wide, or leave rotary positions an odd number of elements, are a fault of this field.
void check_latent_attention(ConfigFields& config, const LatentAttention& attention, std::string_view field);

Tensor latent_attention(Forward& forward, const LatentAttention& attention, Tensor input, const Rotary& rotary);

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/latent_attention_inl.hpp"
#endif
