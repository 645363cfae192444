#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/serve/rank_weights.hpp"

namespace gpumem::serve {

namespace rank_weights_detail {

using core::rounded_up;

/// Rows of a table of one rank. Source: vLLM's VocabParallelEmbedding: a multiple of 64 rows, shared out.
inline std::int64_t table_rows(const ServedModel& model, std::int64_t ranks) {
  return divided_up(rounded_up(model.vocabulary, 64), ranks);
}

/// Elements of linear layers that are in no expert.
inline core::Checked linear_elements_of(const ServedModel& model, const RankShare& share) {
  const ServedWeights& weights = model.weights;
  const std::int64_t keys_values =
      share.ranks > model.kv_heads ? weights.keys_values / model.kv_heads : weights.keys_values / share.ranks;
  return core::Checked((weights.split - weights.keys_values - weights.experts) / share.ranks) +
         core::Checked(keys_values) + core::Checked(weights.replicated);
}

/// One matrix of an expert in mxfp4, "rows" outputs of "columns" inputs: two weights a byte, and a byte of scale
/// for 32.
struct Mxfp4Matrix {
  std::int64_t rows, columns;
};

/// triton_kernels' layouts for Hopper pad both sides of the packed weights to 64 (hopper_value.py, swizzle_data()), and
/// the scales' rows to 256 (hopper_scale.py). vLLM drops the weights that it repacked, but the layer keeps the scales
/// as they were loaded (convert_to_mxfp4_moe_kernel_format(): only w13_weight and w2_weight are deleted).
inline core::Checked on_hopper(const Mxfp4Matrix& matrix) {
  const std::int64_t scales = matrix.columns / 32;
  const core::Checked packed =
      core::Checked(rounded_up(matrix.rows, 64)) * core::Checked(rounded_up(matrix.columns / 2, 64));
  return packed + core::Checked(matrix.rows) * core::Checked(scales) +
         core::Checked(rounded_up(matrix.rows, 256)) * core::Checked(rounded_up(scales, 2));
}
inline core::Checked plainly_packed(const Mxfp4Matrix& matrix) {
  return core::Checked(matrix.rows) * core::Checked(matrix.columns / 2 + matrix.columns / 32);
}

/// All experts of one rank, with their biases in float32. Source of the sizes: mxfp4_round_up_hidden_size_and_
/// intermediate_size().
inline core::Checked mxfp4_experts(const ServedModel& model, const RankShare& share) {
  const core::Checked one = core::Checked(3 * model.hidden) * core::Checked(model.intermediate);
  if (one.value() == 0 || !one.valid()) return one;
  const std::int64_t experts = model.weights.experts / *one.value();
  const bool hopper = share.mxfp4 == Mxfp4Kernels::triton_on_hopper;
  const bool blackwell = share.mxfp4 == Mxfp4Kernels::flashinfer_on_blackwell;
  const std::int64_t inner = rounded_up(divided_up(model.intermediate, share.expert_shares), hopper      ? 64
                                                                                             : blackwell ? 256
                                                                                                         : 128);
  const std::int64_t outer = hopper ? model.hidden : rounded_up(model.hidden, 256);
  const Mxfp4Matrix up{2 * inner, outer};
  const Mxfp4Matrix down{outer, inner};
  const core::Checked matrices = hopper ? on_hopper(up) + on_hopper(down) : plainly_packed(up) + plainly_packed(down);
  return core::Checked(experts) * (matrices + core::Checked(4 * (up.rows + down.rows)));
}

/// Linear layers as they are packed, with their scales: float32 where a channel has one, else the model's type.
inline core::Checked packed_linear(const ServedModel& model, const RankShare& share, std::int64_t elements) {
  const std::int64_t per_scale = share.group_size > 0 ? share.group_size : model.hidden;
  const std::int64_t usual = share.group_size > 0 ? share.element : 4;
  const std::int64_t scale = share.scale_bytes > 0 ? share.scale_bytes : usual;
  return core::Checked(elements / 8) * core::Checked(share.weight_bits) +
         core::Checked(elements / per_scale) * core::Checked(scale);
}

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// Bytes of an element; 0: there is no such type. float32 checkpoints are served in 16 bits (vLLM's config/model.py,
/// _get_and_verify_dtype(), and SGLang's configs/model_config.py of the same name).
inline std::int64_t element_bytes(const ServingJob& job) {
  if (job.dtype == "auto") return 2;
  if (job.dtype == "bfloat16" || job.dtype == "half" || job.dtype == "float16") return 2;
  if (job.dtype == "float" || job.dtype == "float32") return 4;
  return 0;
}

/// Of the cache, where an element of the model has so many.
inline core::Result<std::int64_t> cache_element_bytes(const ServingJob& job, std::int64_t element,
                                                      const EngineTypes& types) {
  const std::string& word = job.kv_cache_dtype;
  if (std::find(types.cache.begin(), types.cache.end(), word) != types.cache.end()) {
    return word == "auto" ? element : word.starts_with("fp8") ? std::int64_t{1} : std::int64_t{2};
  }
  std::string known;
  for (const std::string_view each : types.cache) known.append(known.empty() ? "" : ", ").append(each);
  return refused("no rules for kv_cache_dtype " + core::quoted(word) + " of " + std::string(types.title) +
                 "; known: " + known);
}

}  // namespace rank_weights_detail

GPUMEM_INLINE core::Result<RankShare> share_of(const ServedModel& model, const ServingJob& job,
                                               const EngineTypes& types) {
  namespace detail = rank_weights_detail;
  RankShare share;
  share.ranks = share.expert_shares = job.tensor_parallel;
  share.element = detail::element_bytes(job);
  if (share.element == 0) {
    return detail::refused("dtype " + core::quoted(job.dtype) + " is none of " + std::string(types.title) + "'s");
  }
  const core::Result<std::int64_t> of_cache = detail::cache_element_bytes(job, share.element, types);
  if (!of_cache) return of_cache.error();
  share.cache_element = *of_cache;
  const bool plain = model.held == HeldWeights::as_they_are;
  if (!job.quantization.empty() && job.quantization != "fp8" && plain) {
    return detail::refused("the config has no quantization_config; of others only quantization fp8 is known");
  }
  share.weight_bits = job.quantization == "fp8" && plain ? 8 : model.weight_bits;
  share.group_size = model.group_size;
  share.scale_bytes = model.scale_bytes;
  return share;
}

GPUMEM_INLINE core::Result<core::Bytes> checked_bytes(const core::Checked& sum) {
  if (sum.valid() && *sum.value() <= core::kMostBytes) return core::Bytes(*sum.value());
  return core::Error{core::ErrorCode::overflow, "the sizes of the model and of the options do not fit 64 bits", {}};
}

/// The rotary embedding keeps its cosines and sines for all positions, and latent attention a second copy of what leads
/// out of the latent space (MLACommonImpl.process_weights_after_loading()).
GPUMEM_INLINE core::Result<core::Bytes> rank_weights(const ServedModel& model, const RankShare& share) {
  namespace detail = rank_weights_detail;
  const ServedWeights& weights = model.weights;
  const core::Checked linear = detail::linear_elements_of(model, share);
  const core::Checked experts = core::Checked(weights.experts / share.expert_shares);
  core::Checked plain = core::Checked(weights.plain) +
                        core::Checked(detail::table_rows(model, share.ranks)) * core::Checked(weights.table_columns) *
                            core::Checked(weights.tables) +
                        core::Checked(model.rotary_rows) * core::Checked(model.rotary_dim) +
                        core::Checked(weights.latent_up / share.ranks);
  if (share.with_tower) plain = plain + core::Checked(model.tower.plain + model.tower.split / share.ranks);
  const core::Checked element(share.element);
  if (model.held == HeldWeights::mxfp4_experts) {
    return checked_bytes((plain + linear) * element + detail::mxfp4_experts(model, share));
  }
  if (share.weight_bits == 0) return checked_bytes((plain + linear + experts) * element);
  const std::int64_t kept = weights.kept / share.ranks;
  const std::optional<std::int64_t> packable = (linear + experts).value();
  if (!packable) return checked_bytes(linear + experts);
  const std::int64_t packed = std::max<std::int64_t>(0, *packable - kept);
  return checked_bytes((plain + core::Checked(kept)) * element + detail::packed_linear(model, share, packed));
}

/// Source: vLLM's lora/layers/: create_lora_weights() of BaseLinearLayerWithLoRA, VocabParallelEmbeddingWithLoRA and
/// LogitsProcessorWithLoRA.
GPUMEM_INLINE core::Result<core::Bytes> adapter_slots(const ServedModel& model, const RankShare& share,
                                                      std::int64_t slots, std::int64_t lora_rank) {
  const core::Checked sides = core::Checked(model.adapters.whole) + core::Checked(model.adapters.split / share.ranks);
  const core::Checked tables = core::Checked(2) * core::Checked(model.vocabulary + model.hidden);
  return checked_bytes((sides + tables) * core::Checked(slots) * core::Checked(lora_rank) *
                       core::Checked(share.element));
}

}  // namespace gpumem::serve
