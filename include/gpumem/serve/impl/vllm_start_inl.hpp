#pragma once

#include "gpumem/serve/vllm_start.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gpumem/serve/server_command.hpp"

namespace gpumem::serve {

namespace vllm_start_detail {

/// Up to 0.16 top-p sampling sorts the logits (v1/sample/ops/topk_topp_sampler.py, apply_top_k_top_p()): the float32
/// copy (4), its sorted values and 64-bit indices (12) and the sort's own buffers (20). Logged starts of Llama-3.1-8B,
/// Qwen3-0.6B and gpt-oss-20b show 36 bytes within 0.1 %. From 0.17 on a kernel finds the threshold without a sort: the
/// float32 copy, probabilities and exponential noise.
inline constexpr std::array kVllmRules = {VllmRules{9, 16, "0.9 to 0.16", 36, false, false},
                                          VllmRules{17, 19, "0.17 to 0.19", 12, true, true}};

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// Source: vLLM's fused_moe/oracle/mxfp4.py, the order of backends, of which the first that the GPU supports is taken.
inline Mxfp4Kernels mxfp4_kernels(const device::GpuProfile& gpu) {
  if (gpu.compute_capability == "9.0") return Mxfp4Kernels::triton_on_hopper;
  return gpu.compute_capability.starts_with("10.") ? Mxfp4Kernels::flashinfer_on_blackwell : Mxfp4Kernels::marlin;
}

inline core::Status check_split(const ServedModel& model, std::int64_t ranks) {
  const auto whole = [&](std::int64_t size) { return size % ranks == 0; };
  const bool keys =
      model.latent_dim > 0 || (model.kv_heads >= ranks ? whole(model.kv_heads) : ranks % model.kv_heads == 0);
  if (!whole(model.heads) || !whole(model.intermediate) || !keys) {
    return refused("tensor_parallel_size " + std::to_string(ranks) + " does not divide the model's " +
                   std::to_string(model.heads) + " heads, " + std::to_string(model.kv_heads) + " KV heads and " +
                   std::to_string(model.intermediate) + " intermediate features");
  }
  return core::Done{};
}

/// Tokens of a block. Where layers hold states, a block of attention is made as large as a state. Source: vLLM's
/// model_executor/models/config.py, HybridAttentionMambaModelConfig.verify_and_update_config().
inline std::int64_t block_tokens(const ServedModel& model, const VllmStart& start) {
  const ServedStates& states = model.states;
  if (states.layers == 0) return start.block;
  const std::int64_t state =
      ((core::Checked(states.convolved / start.share.ranks) * core::Checked(start.element)) +
       (core::Checked(states.carried / start.share.ranks) * core::Checked(states.in_float32 ? 4 : start.element)))
          .value()
          .value_or(INT64_MAX);
  constexpr std::int64_t kAligned = 16;
  const std::int64_t step =
      std::max<std::int64_t>(1, kAligned * cached_token_bytes(model, start.share).value().value_or(1));
  const std::int64_t steps = state / step + (state % step == 0 ? 0 : 1);
  return std::max(start.block, kAligned * std::min<std::int64_t>(steps, INT32_MAX / kAligned));
}

/// Source: vLLM's config/lora.py, MaxLoRARanks.
inline core::Status check_adapters(const ServingJob& job) {
  constexpr std::array<std::int64_t, 9> kRanks = {1, 8, 16, 32, 64, 128, 256, 320, 512};
  if (job.max_loras < 1 || job.max_lora_rank < 1) return refused("max_loras and max_lora_rank must be at least 1");
  if (!job.enable_lora || std::find(kRanks.begin(), kRanks.end(), job.max_lora_rank) != kRanks.end()) {
    return core::Done{};
  }
  return refused("max_lora_rank " + std::to_string(job.max_lora_rank) +
                 " is none of vLLM's: 1, 8, 16, 32, 64, 128, 256, 320, 512");
}

/// What vLLM runs: tokens one after another, or one answer for a whole text. Source: config/model.py,
/// _get_default_runner_type(), and as_embedding_model() of models/adapters.py.
inline core::Status check_runner(const ServedModel& model, const ServingJob& job) {
  if (job.runner != "auto" && job.runner != "generate" && job.runner != "pooling") {
    return refused("runner " + core::quoted(job.runner) + " is none of vLLM's: auto, generate, pooling");
  }
  if (job.runner != "generate" || !model.pools) return core::Done{};
  return refused("runner generate: the model has no output layer, so that it generates no tokens");
}

/// Parallel sizes and shares of memory.
inline core::Status check_sizes(const ServedModel& model, const ServingJob& job) {
  if (job.tensor_parallel < 1) return refused("tensor_parallel_size must be at least 1");
  if (job.pipeline_parallel < 1 || job.pipeline_parallel > model.layers) {
    return refused("pipeline_parallel_size must be at least 1, and at most the model's " +
                   std::to_string(model.layers) + " layers");
  }
  if (job.data_parallel < 1) return refused("data_parallel_size must be at least 1");
  if (const std::int64_t given = job.kv_cache_memory_bytes.value_or(1); given < 1 || given > core::kMostBytes) {
    return refused("kv_cache_memory_bytes must be at least 1, and less than any GPU has");
  }
  if (!(job.cpu_offload_gb >= 0.0)) return refused("cpu_offload_gb must be at least 0");
  const double utilization = job.gpu_memory_utilization.value_or(0.9);
  if (!(utilization > 0.0) || utilization > 1.0) {
    return refused("gpu_memory_utilization must be above 0 and at most 1");
  }
  return core::Done{};
}

/// Tokens, sequences and lengths that are given, or the defaults. An encoder reads each text at once: a step must hold
/// the longest.
inline core::Status fill_limits(const ServedModel& model, const ServingJob& job, const device::GpuProfile& gpu,
                                VllmStart& start) {
  const bool large = gpu.memory_bytes.value >= std::int64_t{70} << 30 && gpu.name.find("a100") == std::string::npos;
  start.block = job.block_size.value_or(model.index_bytes > 0 ? 64 : 16);
  start.length = job.max_model_len.value_or(model.max_positions);
  start.sequences = job.max_num_seqs.value_or(large ? 1024 : 256);
  if (std::min({start.block, start.sequences, start.length}) < 1 || job.max_num_batched_tokens.value_or(1) < 1) {
    return refused("block_size, max_model_len, max_num_seqs and max_num_batched_tokens must be at least 1");
  }
  const std::int64_t usual = std::max<std::int64_t>(large ? 8192 : 2048, model.caches() ? 0 : start.length);
  const std::int64_t most = start.length <= usual / start.sequences ? start.length * start.sequences : usual;
  start.tokens = job.max_num_batched_tokens.value_or(most);
  if (!job.max_num_seqs) start.sequences = std::min(start.sequences, start.tokens);
  // Source: config/scheduler.py, SchedulerConfig.verify_max_model_len().
  if (start.sequences > start.tokens) {
    return refused("max_num_seqs is " + std::to_string(start.sequences) + " and max_num_batched_tokens " +
                   std::to_string(start.tokens) + "; vLLM wants at least as many tokens as sequences");
  }
  if (!model.caches() && start.tokens < start.length) {
    return refused("max_num_batched_tokens " + std::to_string(start.tokens) + " is less than max_model_len " +
                   std::to_string(start.length) + ": an encoder reads each text in one step");
  }
  return core::Done{};
}

}  // namespace vllm_start_detail

GPUMEM_INLINE core::Result<VllmRules> vllm_rules(const std::string& asked, std::vector<std::string>& assumed) {
  namespace detail = vllm_start_detail;
  const VllmRules& newest = detail::kVllmRules.back();
  if (asked.empty()) {
    assumed.emplace_back("the engine's version: 0.19 (none was given)");
    return newest;
  }
  const std::optional<EngineVersion> version = engine_version(asked);
  if (!version) return detail::refused("engine version " + core::quoted(asked) + ": give it as 0.19.0");
  if (*version > EngineVersion{0, newest.last}) {
    assumed.emplace_back("vLLM " + core::shortened(asked, 40) + " is newer than the rules: those of 0.19 are followed");
    return newest;
  }
  for (const VllmRules& rules : detail::kVllmRules) {
    if (version->minor_part >= rules.first && version->minor_part <= rules.last) return rules;
  }
  return detail::refused("no rules for vLLM " + core::shortened(asked, 40) + "; known: 0.9 to 0.19");
}

/// An indexer keeps a vector of its own for each token, in 8 bits with a scale. Beside one, latent vectors in 8 bits
/// are kept with their scales, and their rotary part in 16 bits (MLAAttentionSpec, "fp8_ds_mla").
GPUMEM_INLINE core::Checked cached_token_bytes(const ServedModel& model, const RankShare& share) {
  constexpr std::int64_t kSparseLatent = 656;
  if (model.index_bytes > 0 && share.cache_element == 1) return core::Checked(kSparseLatent + model.index_bytes);
  const std::int64_t heads = std::max<std::int64_t>(1, model.kv_heads / share.ranks);
  const core::Checked elements =
      model.latent_dim > 0 ? core::Checked(model.latent_dim) : core::Checked(2 * heads) * core::Checked(model.head_dim);
  return elements * core::Checked(share.cache_element) + core::Checked(model.index_bytes);
}

GPUMEM_INLINE core::Result<VllmStart> vllm_start(const ServedModel& model, const ServingJob& job,
                                                 const device::GpuProfile& gpu, const VllmRules& rules) {
  namespace detail = vllm_start_detail;
  if (const core::Status runner = detail::check_runner(model, job); !runner) return runner.error();
  if (const core::Status sizes = detail::check_sizes(model, job); !sizes) return sizes.error();
  if (const core::Status adapters = detail::check_adapters(job); !adapters) return adapters.error();
  if (const core::Status split = detail::check_split(model, job.tensor_parallel); !split) return split.error();
  const core::Result<RankShare> share = share_of(model, job, kVllmTypes);
  if (!share) return share.error();
  const core::Result<std::optional<std::int64_t>> images = images_per_prompt(job.limit_mm_per_prompt);
  if (!images) return images.error();
  VllmStart start;
  start.rules = rules;
  start.utilization = job.gpu_memory_utilization.value_or(0.9);
  start.share = *share;
  start.element = share->element;
  start.share.expert_shares = job.tensor_parallel * (model.experts > 0 ? job.data_parallel : 1);
  start.whole_experts = job.enable_expert_parallel;
  start.images = job.language_model_only ? 0 : images->value_or(INT32_MAX);
  start.share.with_tower = start.images > 0;
  start.share.mxfp4 = detail::mxfp4_kernels(gpu);
  if (const core::Status limits = detail::fill_limits(model, job, gpu, start); !limits) return limits.error();
  start.block = detail::block_tokens(model, start);
  return start;
}

}  // namespace gpumem::serve
