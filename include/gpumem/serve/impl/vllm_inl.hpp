#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/serve/rank_weights.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/vllm.hpp"

namespace gpumem::serve {

namespace vllm_detail {

/// What cannot be derived, as it was logged by vLLM 0.19.0 on H100-80GB (docs/serving.md): 33 starts on one GPU, 8 on
/// two, 4 on four. The range is that of the same starts, but for the graphs of all of them together.
struct LoggedFigures {
  std::int64_t most_ranks;
  double outside, outside_lower, outside_upper;  ///< GiB, after the profiling pass
  double before;                                 ///< GiB that is taken before the weights are loaded
};
inline constexpr std::array kLogged = {LoggedFigures{1, 0.25, 0.24, 0.46, 0.51},
                                       LoggedFigures{2, 2.07, 2.06, 2.11, 1.53},
                                       LoggedFigures{4, 2.17, 2.13, 2.21, 1.55}};
inline constexpr double kGraphs = 0.91, kGraphsLower = 0.64, kGraphsUpper = 1.85;

/// cuBLAS's workspace in PyTorch's allocator where the GPU's profile says none: Hopper's, 32 MiB.
inline constexpr std::int64_t kServeCublasBytes = std::int64_t{32} << 20;

inline core::Bytes from_gib(double gib) {
  return core::Bytes(static_cast<std::int64_t>(gib * static_cast<double>(std::int64_t{1} << 30)));
}

/// What changed between versions of vLLM.
struct VllmRules {
  std::int64_t first, last;  ///< minor versions
  std::string_view name;
  std::int64_t sorted_logit;     ///< bytes of one sampled logit beyond its own type, sorted with its index
  bool rows_for_processors;      ///< sampling without a sort: a float32 row for each multiprocessor
  bool experts_keep_work_areas;  ///< v1/worker/workspace.py: the work areas of experts stay once made
};
/// Up to 0.16 top-p sampling sorts the logits (v1/sample/ops/topk_topp_sampler.py, apply_top_k_top_p()): the float32
/// copy (4), its sorted values and 64-bit indices (12) and the sort's own buffers (20). Logged starts of Llama-3.1-8B,
/// Qwen3-0.6B and gpt-oss-20b show 36 bytes within 0.1 %. From 0.17 on a kernel finds the threshold without a sort: the
/// float32 copy, probabilities and exponential noise.
inline constexpr std::array kVllmRules = {VllmRules{9, 16, "0.9 to 0.16", 36, false, false},
                                          VllmRules{17, 19, "0.17 to 0.19", 12, true, true}};

/// All that later steps need, with the defaults filled in.
struct VllmStart {
  RankShare share;
  std::int64_t element = 2, block = 16;
  bool whole_experts = false;  ///< expert parallel
  std::int64_t tokens = 0, sequences = 0, length = 0;
  std::int64_t rank_kv_heads = 1;
  double utilization = 0.0;
  VllmRules rules = kVllmRules.back();
};

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// Errors: invalid_argument for what is no version, or one without rules.
inline core::Result<VllmRules> rules_of(const std::string& asked, std::vector<std::string>& assumed) {
  const VllmRules& newest = kVllmRules.back();
  if (asked.empty()) {
    assumed.emplace_back("the engine's version: 0.19 (none was given)");
    return newest;
  }
  const std::optional<EngineVersion> version = engine_version(asked);
  if (!version) return refused("engine version " + core::quoted(asked) + ": give it as 0.19.0");
  if (*version > EngineVersion{0, newest.last}) {
    assumed.emplace_back("vLLM " + core::shortened(asked, 40) + " is newer than the rules: those of 0.19 are followed");
    return newest;
  }
  for (const VllmRules& rules : kVllmRules) {
    if (version->minor_part >= rules.first && version->minor_part <= rules.last) return rules;
  }
  return refused("no rules for vLLM " + core::shortened(asked, 40) + "; known: 0.9 to 0.19");
}

/// Source of the words: config/cache.py, CacheDType, without those of one model or of other accelerators.
inline constexpr auto kCacheWords =
    std::to_array<std::string_view>({"auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"});
inline constexpr EngineTypes kTypes{"vLLM", kCacheWords};

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

/// Bytes of one token in the cache of one layer. Every rank keeps the whole latent of a token (MLAAttentionSpec), or
/// the keys and values of its heads.
inline core::Checked token_bytes(const ServedModel& model, const VllmStart& start) {
  const core::Checked elements = model.latent_dim > 0
                                     ? core::Checked(model.latent_dim)
                                     : core::Checked(2 * start.rank_kv_heads) * core::Checked(model.head_dim);
  return elements * core::Checked(start.share.cache_element);
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
  const std::int64_t step = std::max<std::int64_t>(1, kAligned * token_bytes(model, start).value().value_or(1));
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

/// The options in numbers. Source of the defaults: vLLM's engine/arg_utils.py, get_batch_defaults().
inline core::Result<VllmStart> vllm_start(const ServedModel& model, const ServingJob& job,
                                          const device::GpuProfile& gpu) {
  if (job.tensor_parallel < 1) return refused("tensor_parallel_size must be at least 1");
  if (job.pipeline_parallel < 1 || job.pipeline_parallel > model.layers) {
    return refused("pipeline_parallel_size must be at least 1, and at most the model's " +
                   std::to_string(model.layers) + " layers");
  }
  if (job.data_parallel < 1) return refused("data_parallel_size must be at least 1");
  if (const core::Status adapters = check_adapters(job); !adapters) return adapters.error();
  if (const std::int64_t given = job.kv_cache_memory_bytes.value_or(1); given < 1 || given > core::kMostBytes) {
    return refused("kv_cache_memory_bytes must be at least 1, and less than any GPU has");
  }
  if (!(job.cpu_offload_gb >= 0.0)) return refused("cpu_offload_gb must be at least 0");
  const double utilization = job.gpu_memory_utilization.value_or(0.9);
  if (!(utilization > 0.0) || utilization > 1.0) {
    return refused("gpu_memory_utilization must be above 0 and at most 1");
  }
  if (const core::Status split = check_split(model, job.tensor_parallel); !split) return split.error();
  const core::Result<RankShare> share = share_of(model, job, kTypes);
  if (!share) return share.error();
  VllmStart start;
  start.utilization = utilization;
  start.share = *share;
  start.element = share->element;
  start.share.expert_shares = job.tensor_parallel * (model.experts > 0 ? job.data_parallel : 1);
  start.whole_experts = job.enable_expert_parallel;
  start.share.with_tower = !job.language_model_only;
  start.share.mxfp4 = mxfp4_kernels(gpu);
  const bool large = gpu.memory_bytes.value >= std::int64_t{70} << 30 && gpu.name.find("a100") == std::string::npos;
  start.block = job.block_size.value_or(16);
  start.tokens = job.max_num_batched_tokens.value_or(large ? 8192 : 2048);
  start.sequences = job.max_num_seqs.value_or(std::min<std::int64_t>(large ? 1024 : 256, start.tokens));
  start.length = job.max_model_len.value_or(model.max_positions);
  if (std::min({start.block, start.tokens, start.sequences, start.length}) < 1) {
    return refused("block_size, max_model_len, max_num_seqs and max_num_batched_tokens must be at least 1");
  }
  // Source: config/scheduler.py, SchedulerConfig.verify_max_model_len().
  if (start.sequences > start.tokens) {
    return refused("max_num_seqs is " + std::to_string(start.sequences) + " and max_num_batched_tokens " +
                   std::to_string(start.tokens) + "; vLLM wants at least as many tokens as sequences");
  }
  start.rank_kv_heads = std::max<std::int64_t>(1, model.kv_heads / start.share.ranks);
  start.block = block_tokens(model, start);
  return start;
}

/// What stays on the GPU of one rank's weights, with the slots of its adapters. Source: vLLM's
/// model_executor/offloader/uva.py: parameters go to the host until there are as many bytes of them as asked for.
inline core::Status fill_weights(const ServedModel& model, const ServingJob& job, const VllmStart& start,
                                 ServingEstimate& answer) {
  if (job.enable_lora) {
    const auto slots = adapter_slots(model, start.share, job.max_loras, job.max_lora_rank);
    if (!slots) return slots.error();
    answer.adapters = *slots;
  }
  const core::Result<core::Bytes> loaded = rank_weights(model, start.share);
  if (!loaded) return loaded.error();
  const std::int64_t stays = std::max<std::int64_t>(1, loaded->count() - from_gib(job.cpu_offload_gb).count());
  answer.weights = core::Bytes(stays + answer.adapters.count());
  return core::Done{};
}

/// Work areas of a layer of experts: one row for each token and each of its experts. Source: vLLM's fused_moe.py,
/// TritonExperts.workspace_shapes().
/// triton_kernels, which multiply mxfp4, hold none.
inline core::Checked expert_work_areas(const ServedModel& model, const VllmStart& start) {
  if (model.experts == 0 || model.held == HeldWeights::mxfp4_experts) return core::Checked(0);
  const std::int64_t width = start.whole_experts ? model.intermediate : model.intermediate / start.share.expert_shares;
  const std::int64_t columns = std::max(2 * width, model.hidden) + std::max(width, model.hidden);
  return core::Checked(start.tokens) * core::Checked(model.experts_per_token) * core::Checked(columns) *
         core::Checked(start.element);
}

/// What the profiling pass keeps of the images that it gave the tower: their pixels and the tower's outputs. As many
/// images as fill the tokens of one step. Source: vLLM's gpu_model_runner.py, profile_run(): batched_dummy_mm_inputs
/// and encoder_cache; multimodal/encoder_budget.py.
struct ProfiledImages {
  core::Checked held{0};
  core::Checked pass{0};  ///< the peak of the tower's own pass
};

inline ProfiledImages profiled_images(const ServedModel& model, const VllmStart& start) {
  const ServedTower& tower = model.tower;
  if (!start.share.with_tower || tower.hidden == 0) return {};
  const std::int64_t images = std::max<std::int64_t>(1, start.tokens / tower.tokens);
  const core::Checked element(start.element);
  const core::Checked pixels = core::Checked(images) * core::Checked(tower.pixels) * element;
  const core::Checked outputs = core::Checked(images * tower.tokens) * core::Checked(model.hidden) * element;
  // The residual, the layer's input and output, and both sides of the activation function: the tower is not compiled.
  const core::Checked layer = core::Checked(3 * tower.hidden) + core::Checked(2 * tower.intermediate);
  return {pixels + outputs, pixels + core::Checked(images) * core::Checked(tower.patches) * layer * element};
}

/// The sampler holds the model's output, the rows that are sampled, their logits, and what the version makes of each
/// logit. Source: vLLM's v1/sample/sampler.py; v1/sample/ops/topk_topp_sampler.py, random_sample();
/// v1/sample/ops/topk_topp_triton.py, NUM_PROGRAMS.
inline core::Checked sampler_peak(const ServedModel& model, const VllmStart& start, const device::GpuProfile& gpu) {
  const core::Checked vocabulary(model.vocabulary);
  const std::int64_t processors = gpu.sm_count ? gpu.sm_count->value : 132;
  const std::int64_t rows = start.rules.rows_for_processors ? std::min(processors, start.sequences) : 0;
  const core::Checked logits =
      core::Checked(start.sequences) * vocabulary * core::Checked(start.rules.sorted_logit + start.element);
  return core::Checked(start.tokens + start.sequences) * core::Checked(model.hidden) * core::Checked(start.element) +
         logits + core::Checked(rows) * vocabulary * core::Checked(4);
}

/// The forward pass of a compiled model holds the residual, a layer's input and output, the gate and up projections and
/// their product. A stage of a pipeline also holds what it hands over: the hidden states and the residual.
inline core::Checked forward_peak(const ServedModel& model, const VllmStart& start) {
  const bool staged = !model.embeds || !model.samples;
  const core::Checked hidden = core::Checked(start.tokens) * core::Checked(model.hidden) * core::Checked(start.element);
  const std::int64_t width = model.experts > 0 ? 0 : (model.gated ? 3 : 2) * (model.intermediate / start.share.ranks);
  return hidden * core::Checked(staged ? 5 : 3) +
         core::Checked(start.tokens) * core::Checked(width) * core::Checked(start.element);
}

/// The largest sum; none that is valid where one of them is not.
inline core::Checked largest_of(std::initializer_list<core::Checked> sums) {
  core::Checked most(0);
  for (const core::Checked& sum : sums) {
    if (!sum.valid()) return sum;
    if (*sum.value() > *most.value()) most = sum;
  }
  return most;
}

/// The peak of profile_run() above the weights: the largest of the tower's pass, the forward pass and the sampler.
inline core::Result<core::Bytes> vllm_activation(const ServedModel& model, const VllmStart& start,
                                                 const device::GpuProfile& gpu) {
  const core::Checked areas = expert_work_areas(model, start);
  const ProfiledImages images = profiled_images(model, start);
  const core::Checked forward = forward_peak(model, start) + areas + images.held;
  core::Checked sampler = model.samples ? sampler_peak(model, start, gpu) + images.held : core::Checked(0);
  if (start.rules.experts_keep_work_areas) sampler = sampler + areas;
  const std::int64_t cublas = gpu.cublas_workspace_bytes ? gpu.cublas_workspace_bytes->value : kServeCublasBytes;
  return checked_bytes(largest_of({sampler, forward, images.pass}) + core::Checked(cublas));
}

/// The part of a model that one stage of a pipeline has. Source: vLLM's distributed/utils.py, get_pp_indices(): layers
/// that are left over go to the stages before the last.
inline ServedModel stage_of(const ServedModel& model, std::int64_t stages, std::int64_t stage) {
  if (stages == 1) return model;
  ServedModel part = model;
  const std::int64_t left = model.layers % stages;
  const std::int64_t from_last = stages - stage;  // 1: the last stage
  part.layers = model.layers / stages + (from_last >= 2 && from_last < left + 2 ? 1 : 0);
  const auto share = [&](std::int64_t elements) {
    return static_cast<std::int64_t>(static_cast<double>(elements) * static_cast<double>(part.layers) /
                                     static_cast<double>(model.layers));
  };
  for (std::int64_t ServedWeights::*each :
       {&ServedWeights::split, &ServedWeights::replicated, &ServedWeights::keys_values, &ServedWeights::latent_up,
        &ServedWeights::experts, &ServedWeights::plain}) {
    part.weights.*each = share(model.weights.*each);
  }
  // A stage has at least its share of each kind of layer, rounded up: kinds follow each other in turn.
  const auto layers_of = [&](std::int64_t all) { return divided_up(all * part.layers, model.layers); };
  part.sliding_layers = layers_of(model.sliding_layers);
  part.attention_layers = std::max(part.sliding_layers, layers_of(model.attention_layers));
  part.states.layers = layers_of(model.states.layers);
  part.embeds = stage == 0;
  part.samples = stage == stages - 1;
  part.weights.tables = (part.embeds ? 1 : 0) + (part.samples ? 1 : 0);
  return part;
}

/// Layers of one kind, in groups that share blocks. Source: v1/core/kv_cache_utils.py,
/// _get_kv_cache_groups_uniform_page_size(), and KVCacheSpec.max_memory_usage_bytes() of each kind.
struct KvGroups {
  std::int64_t full = 0, sliding = 0, states = 0;  ///< groups
  std::int64_t size = 1;                           ///< layers of each
  [[nodiscard]] std::int64_t count() const { return full + sliding + states; }
};

inline KvGroups kv_groups(const ServedModel& model) {
  const std::array kinds = {model.attention_layers - model.sliding_layers, model.sliding_layers, model.states.layers};
  std::int64_t least = INT64_MAX;
  for (const std::int64_t layers : kinds) least = layers > 0 ? std::min(least, layers) : least;
  const std::int64_t most = *std::max_element(kinds.begin(), kinds.end());
  KvGroups groups;
  groups.size = std::max<std::int64_t>(1, most < least + (least + 3) / 4 ? most : least);
  groups.full = divided_up(kinds[0], groups.size);
  groups.sliding = divided_up(kinds[1], groups.size);
  groups.states = divided_up(kinds[2], groups.size);
  return groups;
}

/// Blocks of a request of so many tokens: of a state one, whatever its length.
inline std::int64_t request_blocks(const ServedModel& model, const VllmStart& start, const KvGroups& groups,
                                   std::int64_t length) {
  const std::int64_t seen = std::min(model.sliding_window - 1 + start.tokens, length);
  const std::int64_t sliding = groups.sliding == 0 ? 0 : divided_up(seen, start.block) + 1;
  return groups.full * divided_up(length, start.block) + groups.sliding * sliding + groups.states;
}

/// Blocks, tokens, concurrency and the longest request that the cache holds.
inline void fill_cache(const ServedModel& model, const VllmStart& start, ServingEstimate& answer) {
  const KvGroups groups = kv_groups(model);
  const core::Checked page = token_bytes(model, start) * core::Checked(start.block) * core::Checked(groups.size);
  const std::int64_t block_bytes = std::max<std::int64_t>(1, page.value().value_or(INT64_MAX));
  answer.kv_cache_blocks = answer.kv_cache.count() / block_bytes;
  answer.kv_cache_tokens = answer.kv_cache_blocks / groups.count() * start.block;
  const std::int64_t needed = request_blocks(model, start, groups, start.length);
  answer.concurrency = static_cast<double>(answer.kv_cache_blocks) / static_cast<double>(needed);
  answer.kv_cache_needed =
      core::Bytes((core::Checked(needed) * core::Checked(block_bytes)).value().value_or(INT64_MAX));
  std::int64_t held = 0;
  for (std::int64_t low = 1, high = model.max_positions; low <= high;) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool fits = request_blocks(model, start, groups, middle) <= answer.kv_cache_blocks;
    if (fits) held = middle;
    (fits ? low : high) = fits ? middle + 1 : middle - 1;
  }
  answer.largest_max_model_len = held;
}

/// All that is neither cache nor graphs.
inline std::int64_t beside_the_cache(const ServingEstimate& answer) {
  return answer.weights.count() + answer.activation.count() + answer.outside_pytorch.count();
}

/// Why the cache holds no request of max_model_len; empty: it does.
inline std::string cache_reason(const ServingJob& job, const ServingEstimate& answer) {
  if (answer.kv_cache_needed <= answer.kv_cache) return {};
  if (answer.kv_cache_blocks == 0 && job.kv_cache_memory_bytes) {
    return "kv_cache_memory_bytes " + std::to_string(*job.kv_cache_memory_bytes) +
           " hold no block of the KV cache; one request of max_model_len " + std::to_string(answer.max_model_len) +
           " needs " + core::to_string(answer.kv_cache_needed);
  }
  if (answer.kv_cache_blocks == 0) {
    return "no memory is left for the KV cache: weights, activation and what is outside PyTorch take " +
           core::to_string(core::Bytes(beside_the_cache(answer))) + " of " + core::to_string(answer.requested) +
           "; raise gpu_memory_utilization or tensor_parallel_size";
  }
  return "one request of max_model_len " + std::to_string(answer.max_model_len) + " needs " +
         core::to_string(answer.kv_cache_needed) + " KV cache, " + core::to_string(answer.kv_cache) +
         " are there; the largest max_model_len is " + std::to_string(answer.largest_max_model_len);
}

/// Why a cache of given size does not fit beside the rest; empty: it does. vLLM runs out of memory there.
inline std::string given_cache_reason(const ServingEstimate& answer, core::Bytes free) {
  if (answer.requested <= free) return {};
  return "kv_cache_memory_bytes asks for " + core::to_string(answer.kv_cache) +
         "; weights, activation and what is outside PyTorch take " +
         core::to_string(core::Bytes(beside_the_cache(answer))) + ", and " + core::to_string(free) +
         " are free at the start; lower it, or raise tensor_parallel_size";
}

/// What vLLM refuses before it loads anything.
inline std::string early_reason(const ServedModel& model, const VllmStart& start, core::Bytes free,
                                core::Bytes requested) {
  if (start.length > model.max_positions) {
    return "max_model_len " + std::to_string(start.length) + " is longer than the model's " +
           std::to_string(model.max_positions) + " positions";
  }
  if (requested.count() <= free.count()) return {};
  return "free memory at the start (" + core::to_string(free) + ") is less than gpu_memory_utilization asks for (" +
         core::to_string(requested) + ")";
}

inline void say_assumed(const ServedModel& model, const ServingJob& job, const VllmStart& start,
                        const device::GpuProfile& gpu, std::vector<std::string>& assumed) {
  if (!job.gpu_memory_utilization) assumed.emplace_back("gpu_memory_utilization: 0.9, the default");
  if (!job.max_num_batched_tokens) {
    assumed.emplace_back("max_num_batched_tokens: " + std::to_string(start.tokens) + ", the default on this GPU");
  }
  if (!job.max_num_seqs) {
    assumed.emplace_back("max_num_seqs: " + std::to_string(start.sequences) + ", the default on this GPU");
  }
  if (!job.max_model_len) {
    assumed.emplace_back("max_model_len: " + std::to_string(start.length) + ", the model's positions");
  }
  if (!gpu.name.starts_with("h100-80gb")) {
    assumed.emplace_back("memory outside PyTorch and of CUDA graphs: as logged on H100-80GB");
  }
  if (start.share.ranks > 4) assumed.emplace_back("memory outside PyTorch: as logged on four ranks");
  for (const model::Doubt& doubt : model.doubts) assumed.emplace_back(doubt.text);
  if (model.experts > 0) assumed.emplace_back("activation of experts: derived for Triton's kernels");
  if (model.experts > 0 && job.data_parallel > 1) {
    assumed.emplace_back("activation of experts: each GPU multiplies its own tokens, not those of the other copies");
  }
  if (model.states.layers > 0) assumed.emplace_back("activation of layers with a state: as of feed-forward layers");
  if (model.tower.hidden > 0) assumed.emplace_back("images of the profiling pass: the largest that the model takes");
  if (job.enable_lora && model.experts > 0) assumed.emplace_back("LoRA: experts have no adapters");
  if (job.kv_cache_memory_bytes)
    assumed.emplace_back("kv_cache_memory_bytes: it must fit beside the rest, which vLLM does not check");
  if (start.share.weight_bits == 4)
    assumed.emplace_back("weights of 4 bits: packed in full, compared with no logged start");
}

/// One rank: of a pipeline, one of this stage.
inline core::Result<ServingEstimate> estimate_rank(const ServedModel& model, const ServingJob& job,
                                                   const VllmStart& start, const device::GpuProfile& gpu) {
  ServingEstimate answer;
  const auto& logged = *std::find_if(kLogged.begin(), kLogged.end(), [&](const LoggedFigures& row) {
    return row.most_ranks >= std::min(start.share.ranks, kLogged.back().most_ranks);
  });
  answer.requested =
      core::Bytes(static_cast<std::int64_t>(static_cast<double>(gpu.capacity().count()) * start.utilization));
  if (const core::Status filled = fill_weights(model, job, start, answer); !filled) return filled.error();
  const auto activation = vllm_activation(model, start, gpu);
  if (!activation) return activation.error();
  answer.activation = *activation;
  answer.outside_pytorch = from_gib(logged.outside);
  answer.outside_pytorch_lower = from_gib(logged.outside_lower);
  answer.outside_pytorch_upper = from_gib(logged.outside_upper);
  if (!job.enforce_eager) {
    answer.cuda_graphs = from_gib(kGraphs);
    answer.cuda_graphs_lower = from_gib(kGraphsLower);
    answer.cuda_graphs_upper = from_gib(kGraphsUpper);
  }
  const core::Bytes free(gpu.capacity().count() - from_gib(logged.before).count());
  const std::int64_t left = answer.requested.count() - beside_the_cache(answer);
  answer.kv_cache = core::Bytes(std::max<std::int64_t>(0, job.kv_cache_memory_bytes.value_or(left)));
  answer.max_model_len = start.length;
  answer.max_num_seqs = start.sequences;
  answer.max_num_batched_tokens = start.tokens;
  answer.reason = early_reason(model, start, free, answer.requested);
  if (job.kv_cache_memory_bytes) {
    answer.requested = core::Bytes(beside_the_cache(answer) + answer.kv_cache.count());
    if (answer.reason.empty()) answer.reason = given_cache_reason(answer, free);
  }
  fill_cache(model, start, answer);
  if (answer.reason.empty()) answer.reason = cache_reason(job, answer);
  answer.starts = answer.reason.empty();
  return answer;
}

}  // namespace vllm_detail

GPUMEM_INLINE core::Result<ServingEstimate> estimate_vllm(const ServedModel& model, const ServingJob& job,
                                                          const device::GpuProfile& gpu) {
  std::vector<std::string> assumed;
  const core::Result<vllm_detail::VllmRules> rules = vllm_detail::rules_of(job.version, assumed);
  if (!rules) return rules.error();
  core::Result<vllm_detail::VllmStart> start = vllm_detail::vllm_start(model, job, gpu);
  if (!start) return start.error();
  start->rules = *rules;
  // All stages have as many blocks as the one with the fewest, and all must start.
  const auto room = [](const ServingEstimate& of) { return std::pair(of.starts, of.kv_cache_blocks); };
  std::optional<ServingEstimate> answer;
  for (std::int64_t stage = 0; stage < job.pipeline_parallel; ++stage) {
    const ServedModel part = vllm_detail::stage_of(model, job.pipeline_parallel, stage);
    core::Result<ServingEstimate> rank = vllm_detail::estimate_rank(part, job, *start, gpu);
    if (!rank) return rank.error();
    rank->stage = stage;
    if (!answer || room(*rank) < room(*answer)) answer = *std::move(rank);
  }
  answer->version = rules->name;
  vllm_detail::say_assumed(model, job, *start, gpu, assumed);
  answer->assumed = std::move(assumed);
  return *std::move(answer);
}

}  // namespace gpumem::serve
