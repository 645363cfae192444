// Input: the sizes of a model, and how an engine shares and holds its weights.
// Output: the weights of one rank, as they are once loaded.
// Units: bytes; ranks; elements.
// Source: vLLM 0.19: model_executor/layers/linear.py (QKVParallelLinear replicates KV heads where there are fewer than
// ranks), vocab_parallel_embedding.py, rotary_embedding/base.py, fused_moe/oracle/mxfp4.py, lora/layers/;
// triton_kernels, tensor_details/layout_details/. SGLang's layers are vLLM's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// The kernels that multiply experts in mxfp4, which hold their weights differently.
enum class Mxfp4Kernels : std::uint8_t { marlin, triton_on_hopper, flashinfer_on_blackwell };

struct RankShare {
  std::int64_t ranks = 1;  ///< tensor parallel
  std::int64_t expert_shares =
      1;                     ///< into which the experts of all layers are divided: ranks, or all GPUs of the group
  std::int64_t element = 2;  ///< bytes
  std::int64_t cache_element = 2;  ///< bytes, of the KV cache
  std::int64_t weight_bits = 0;    ///< of packed linear layers; 0: none are
  std::int64_t group_size = 0;     ///< weights that share a scale; 0: one output channel
  std::int64_t scale_bytes = 0;    ///< of a scale; 0: 4 of a channel, an element of a group
  Mxfp4Kernels mxfp4 = Mxfp4Kernels::marlin;
  bool with_tower = true;
};

/// How messages call an engine, and the words that its kv_cache_dtype takes and that have rules.
struct EngineTypes {
  std::string_view title;
  std::span<const std::string_view> cache;
};

/// The ranks of a job, with its weights and its cache as they are held. Errors: invalid_argument for a dtype that the
/// engine does not have, and for a quantisation or a type of the cache without rules.
[[nodiscard]] core::Result<RankShare> share_of(const ServedModel& model, const ServingJob& job,
                                               const EngineTypes& types);

/// Parts of so many that hold the value; the last one may be partly empty.
[[nodiscard]] constexpr std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// The sum as bytes. Errors: overflow where it is not valid, or more than core::kMostBytes.
[[nodiscard]] core::Result<core::Bytes> checked_bytes(const core::Checked& sum);

/// Errors: overflow.
[[nodiscard]] core::Result<core::Bytes> rank_weights(const ServedModel& model, const RankShare& share);

/// What `slots` adapters of this rank take, which an engine makes room for at its start. Experts have none.
/// Errors: overflow.
[[nodiscard]] core::Result<core::Bytes> adapter_slots(const ServedModel& model, const RankShare& share,
                                                      std::int64_t slots, std::int64_t lora_rank);

}  // namespace gpumem::serve
