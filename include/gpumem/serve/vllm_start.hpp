// Input: the sizes of a model, a serving job and a GPU.
// Output: the options of a start of vLLM in numbers, with the defaults filled in, and the rules of its version.
// Units: tokens, sequences, bytes.
// Source: vLLM 0.9 to 0.19: engine/arg_utils.py, get_batch_defaults() and
// _set_default_max_num_seqs_and_batched_tokens_args(); config/scheduler.py, config/lora.py, config/speculative.py.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/serve/rank_weights.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

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

}  // namespace gpumem::serve
