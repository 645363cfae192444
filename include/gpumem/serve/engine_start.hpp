// Input: the sizes of a model, a serving job and a GPU.
// Output: how an engine shares and holds the model's weights on one rank; the options of a start of vLLM in numbers,
// with the defaults filled in, and the rules of its version; what drafts tokens for the model to check.
// Units: bytes; ranks; elements; tokens and sequences.
// Source: of weights vLLM 0.19: model_executor/layers/linear.py (QKVParallelLinear replicates KV heads where there are
// fewer than ranks), vocab_parallel_embedding.py, rotary_embedding/base.py, fused_moe/oracle/mxfp4.py, lora/layers/;
// triton_kernels, tensor_details/layout_details/. SGLang's layers are vLLM's. Of options vLLM 0.9 to 0.19:
// engine/arg_utils.py, get_batch_defaults() and _set_default_max_num_seqs_and_batched_tokens_args();
// config/scheduler.py, config/lora.py, config/speculative.py. Of drafts vLLM 0.17 to 0.19:
// v1/spec_decode/eagle.py, load_model(); models/deepseek_mtp.py and models/llama_eagle3.py.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
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

/// What changed between versions of vLLM.
struct VllmRules {
  std::int64_t first = 0, last = 0;  ///< minor versions
  std::string_view name;
  std::int64_t sorted_logit = 0;         ///< bytes of one sampled logit beyond its own type, sorted with its index
  bool rows_for_processors = false;      ///< sampling without a sort: a float32 row for each multiprocessor
  bool experts_keep_work_areas = false;  ///< v1/worker/workspace.py: the work areas of experts stay once made
};

/// Errors: invalid_argument for what is no version, or one without rules. `assumed` gets a line where none was given,
/// or a newer one.
[[nodiscard]] core::Result<VllmRules> vllm_rules(const std::string& version, std::vector<std::string>& assumed);

/// Source of the words: config/cache.py, CacheDType, without those of one model or of other accelerators.
inline constexpr auto kVllmCacheWords =
    std::to_array<std::string_view>({"auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"});
inline constexpr EngineTypes kVllmTypes{"vLLM", kVllmCacheWords};

/// All that later steps need, with the defaults filled in.
struct VllmStart {
  RankShare share;
  std::int64_t element = 2, block = 16;
  bool whole_experts = false;  ///< expert parallel
  std::int64_t images = 0;     ///< of one request, at most; 0: no tower is held
  std::int64_t tokens = 0, sequences = 0, length = 0;
  double utilization = 0.0;
  VllmRules rules;
};

/// Errors: invalid_argument (an option out of range, or one without rules).
[[nodiscard]] core::Result<VllmStart> vllm_start(const ServedModel& model, const ServingJob& job,
                                                 const device::GpuProfile& gpu, const VllmRules& rules);

/// Bytes of one token in the cache of one layer of a rank. Every rank keeps the whole latent of a token
/// (MLAAttentionSpec), or the keys and values of its heads.
[[nodiscard]] core::Checked cached_token_bytes(const ServedModel& model, const RankShare& share);

struct Drafted {
  bool drafts = false;
  core::Bytes weights = {};
  core::Checked token_bytes{0};  ///< of all its layers in the cache
};

/// Errors: those of read_speculation(); invalid_argument for a model that generates no tokens, and for a draft whose
/// sizes the job does not have; overflow.
[[nodiscard]] core::Result<Drafted> drafted_by(const ServedModel& model, const ServingJob& job, const VllmStart& start);

}  // namespace gpumem::serve
