#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/serve/engine_start.hpp"
#include "gpumem/serve/server_command.hpp"

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

namespace drafted_detail {

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// So many matrices that are as wide as high.
inline core::Checked squares(std::int64_t count, std::int64_t side) {
  return core::Checked(count) * core::Checked(side) * core::Checked(side);
}

inline core::Result<core::Bytes> with_projections(core::Bytes weights, const core::Checked& elements,
                                                  std::int64_t element) {
  return checked_bytes(core::Checked(weights.count()) + elements * core::Checked(element));
}

/// DeepSeek's multi-token prediction: one more layer, which reads the hidden state beside the token. Source: vLLM's
/// models/deepseek_mtp.py, DeepSeekMultiTokenPredictorLayer: eh_proj.
inline core::Result<Drafted> next_layer(const ServedModel& model, const VllmStart& start) {
  ServedModel layer = model;
  const auto share = [&](std::int64_t elements) { return elements / model.layers; };
  for (std::int64_t ServedWeights::*each :
       {&ServedWeights::split, &ServedWeights::keys_values, &ServedWeights::latent_up, &ServedWeights::experts,
        &ServedWeights::kept, &ServedWeights::plain}) {
    layer.weights.*each = share(model.weights.*each);
  }
  layer.weights.replicated = share(model.weights.replicated);
  layer.weights.tables = 0;
  layer.rotary_rows = 0;
  layer.tower = {};
  const core::Result<core::Bytes> weights = rank_weights(layer, start.share);
  if (!weights) return weights.error();
  const core::Result<core::Bytes> all = with_projections(*weights, squares(2, model.hidden), start.element);
  if (!all) return all.error();
  return Drafted{true, *all, cached_token_bytes(model, start.share)};
}

/// A model of its own. EAGLE's has the embedding of the model that it drafts for, and, but for EAGLE-3, its output
/// layer; it reads hidden states beside tokens: one, and of EAGLE-3 three, in layers that are twice as wide. Source:
/// vLLM's v1/spec_decode/eagle.py, load_model(), and models/llama_eagle3.py.
inline core::Result<Drafted> drafting_model(const Speculation& asked, const ServingJob& job) {
  if (job.draft == nullptr) return refused("speculative_config: the sizes of " + asked.model + " are not known");
  ServedModel draft = *job.draft;
  ServingJob drafting = job;
  drafting.quantization.clear();
  drafting.tensor_parallel = asked.ranks > 0 ? asked.ranks : job.tensor_parallel;
  if (draft.pools || !draft.caches()) return refused("speculative_config: the draft generates no tokens");
  const bool eagle = asked.method != "draft_model";
  const std::int64_t third = asked.method == "eagle3" ? 1 : 0;
  core::Checked projections(0);
  if (eagle) {
    draft.weights.tables = third;
    if (draft.draft_vocabulary > 0) draft.vocabulary = draft.draft_vocabulary;
    const core::Checked wider = core::Checked(third * draft.hidden) * core::Checked(draft.head_dim) *
                                core::Checked(draft.heads + 2 * draft.kv_heads);
    projections =
        squares(2 + third, draft.hidden) + core::Checked(wider.value().value_or(INT64_MAX) / job.tensor_parallel);
  }
  const core::Result<RankShare> share = share_of(draft, drafting, kVllmTypes);
  if (!share) return share.error();
  const core::Result<core::Bytes> weights = rank_weights(draft, *share);
  if (!weights) return weights.error();
  const core::Result<core::Bytes> all = with_projections(*weights, projections, share->element);
  if (!all) return all.error();
  return Drafted{true, *all, core::Checked(draft.attention_layers) * cached_token_bytes(draft, *share)};
}

}  // namespace drafted_detail

GPUMEM_INLINE core::Result<Drafted> drafted_by(const ServedModel& model, const ServingJob& job,
                                               const VllmStart& start) {
  namespace detail = drafted_detail;
  const core::Result<std::optional<Speculation>> asked = read_speculation(job.speculative_config);
  if (!asked) return asked.error();
  if (!asked->has_value() || !model.samples) return Drafted{};
  if (model.pools) return detail::refused("speculative_config: the model generates no tokens");
  if ((*asked)->method == "mtp") return detail::next_layer(model, start);
  if ((*asked)->model.empty()) return Drafted{true, core::Bytes(0), core::Checked(0)};  // words of the request itself
  return detail::drafting_model(**asked, job);
}

}  // namespace gpumem::serve
