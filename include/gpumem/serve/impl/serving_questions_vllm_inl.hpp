#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/serve/engine_start.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"

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
  const core::Checked chosen = core::Checked(start.tokens) * core::Checked(4 * model.index_keys);  // an indexer's
  const auto all = checked_bytes(core::Checked(stays) + core::Checked(answer.adapters.count()) +
                                 core::Checked(answer.draft.count()) + chosen);
  if (!all) return all.error();
  answer.weights = *all;
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
  const std::int64_t fit = std::max<std::int64_t>(1, start.tokens / tower.tokens);
  const std::int64_t of_a_prompt = std::clamp<std::int64_t>(start.length / tower.tokens, 1, start.images);
  const std::int64_t images = std::min(fit, std::min(start.sequences, fit) * of_a_prompt);
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
inline core::Checked sampler_peak(const ServedModel& model, const VllmStart& start, bool drafted,
                                  const device::GpuProfile& gpu) {
  const core::Checked vocabulary(model.vocabulary);
  const std::int64_t processors = gpu.sm_count ? gpu.sm_count->value : 132;
  const std::int64_t rows = start.rules.rows_for_processors ? std::min(processors, start.sequences) : 0;
  const core::Checked logits = core::Checked(start.sequences) * vocabulary *
                               core::Checked(start.rules.sorted_logit + (drafted ? 3 : 1) * start.element);
  return (core::Checked(start.tokens) + core::Checked(start.sequences)) * core::Checked(model.hidden) *
             core::Checked(start.element) +
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

/// What an indexer gathers of the tokens before a chunk, 40 times the longest request. Source: vLLM's
/// v1/attention/backends/mla/indexer.py, get_max_prefill_buffer_size().
inline core::Checked indexer_work_areas(const ServedModel& model, const VllmStart& start) {
  return core::Checked(40 * model.index_bytes) * core::Checked(start.length);
}

/// A pooler is given the hidden states of all texts, and makes a float32 copy of them where it answers for each token.
/// Source: vLLM's gpu_model_runner.py, _dummy_pooler_run(); layers/pooler/, of "token_embed".
inline core::Checked pooler_peak(const ServedModel& model, const VllmStart& start) {
  return core::Checked(start.tokens) * core::Checked(model.hidden) *
         core::Checked(start.element + (model.classifies ? 0 : 4));
}

/// Of a model that generates, what vLLM makes where --runner pooling asks for embeddings. Source: vLLM's
/// models/adapters.py, as_embedding_model().
inline ServedModel without_output_layer(ServedModel model) {
  model.pools = true;
  model.weights.tables = std::min<std::int64_t>(1, model.weights.tables);
  return model;
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
inline core::Result<core::Bytes> vllm_activation(const ServedModel& model, const VllmStart& start, bool drafted,
                                                 const device::GpuProfile& gpu) {
  const core::Checked areas = expert_work_areas(model, start) + indexer_work_areas(model, start);
  const ProfiledImages images = profiled_images(model, start);
  const core::Checked forward = forward_peak(model, start) + areas + images.held;
  core::Checked sampler(0);
  if (model.samples) {
    sampler = images.held + (model.pools ? pooler_peak(model, start) : sampler_peak(model, start, drafted, gpu));
  }
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
  part.weights.tables = (part.embeds ? 1 : 0) + (part.samples && !model.pools ? 1 : 0);
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
  const std::int64_t seen = std::min(core::bounded_sum({model.sliding_window, start.tokens}) - 1, length);
  const std::int64_t sliding = groups.sliding == 0 ? 0 : divided_up(seen, start.block) + 1;
  return groups.full * divided_up(length, start.block) + groups.sliding * sliding + groups.states;
}

/// All that is neither cache nor graphs.
inline std::int64_t beside_the_cache(const ServingEstimate& answer) {
  return answer.weights.count() + answer.activation.count() + answer.outside_pytorch.count();
}

/// An encoder has no cache: what does not fit a step waits for the next. Source: v1/engine/core.py,
/// _initialize_kv_caches().
inline void fill_without_cache(const ServedModel& model, const VllmStart& start, ServingEstimate& answer) {
  answer.caches = false;
  answer.kv_cache = core::Bytes(0);
  answer.requested = core::Bytes(beside_the_cache(answer));
  answer.largest_max_model_len = model.max_positions;
  answer.concurrency = static_cast<double>(start.tokens) / static_cast<double>(start.length);
}

/// Blocks, tokens, concurrency and the longest request that the cache holds.
inline void fill_cache(const ServedModel& model, const VllmStart& start, const Drafted& drafted,
                       ServingEstimate& answer) {
  const KvGroups groups = kv_groups(model);
  const core::Checked page =
      (cached_token_bytes(model, start.share) * core::Checked(groups.size) + drafted.token_bytes) *
      core::Checked(start.block);
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

/// Why an encoder does not fit; empty: it does.
inline std::string encoder_reason(const ServingEstimate& answer, core::Bytes free) {
  if (answer.requested <= free) return {};
  return "weights, activation and what is outside PyTorch take " + core::to_string(answer.requested) + ", and " +
         core::to_string(free) + " are free at the start; lower max_num_batched_tokens";
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
  if (model.chunked) {
    assumed.emplace_back(
        "layers that attend within chunks keep all tokens, as vLLM does unless its environment says else");
  }
  if (model.index_bytes > 0)
    assumed.emplace_back("an indexer's cache and buffers: by source, compared with no logged start");
  if (model.pools || job.runner == "pooling")
    assumed.emplace_back("embeddings and classes: by source, compared with no logged start");
  if (!job.speculative_config.empty())
    assumed.emplace_back("speculative model: by source, compared with no logged start");
  if (job.kv_cache_memory_bytes)
    assumed.emplace_back("kv_cache_memory_bytes: it must fit beside the rest, which vLLM does not check");
  if (start.share.weight_bits == 4)
    assumed.emplace_back("weights of 4 bits: packed in full, compared with no logged start");
}

/// What was logged of so many ranks.
inline const LoggedFigures& logged_figures(std::int64_t ranks) {
  return *std::find_if(kLogged.begin(), kLogged.end(), [&](const LoggedFigures& row) {
    return row.most_ranks >= std::min(ranks, kLogged.back().most_ranks);
  });
}

/// The parts that are not the cache.
inline core::Result<ServingEstimate> parts_of_rank(const ServedModel& model, const ServingJob& job,
                                                   const VllmStart& start, const Drafted& drafted,
                                                   const device::GpuProfile& gpu) {
  ServingEstimate answer;
  const LoggedFigures& logged = logged_figures(start.share.ranks);
  answer.requested =
      core::Bytes(static_cast<std::int64_t>(static_cast<double>(gpu.capacity().count()) * start.utilization));
  answer.draft = drafted.weights;
  if (const core::Status filled = fill_weights(model, job, start, answer); !filled) return filled.error();
  const auto activation = vllm_activation(model, start, drafted.drafts, gpu);
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
  answer.max_model_len = start.length;
  answer.max_num_seqs = start.sequences;
  answer.max_num_batched_tokens = start.tokens;
  return answer;
}

/// One rank: of a pipeline, one of this stage.
inline core::Result<ServingEstimate> estimate_rank(const ServedModel& model, const ServingJob& job,
                                                   const VllmStart& start, const device::GpuProfile& gpu) {
  const core::Result<Drafted> drafted = drafted_by(model, job, start);
  if (!drafted) return drafted.error();
  core::Result<ServingEstimate> parts = parts_of_rank(model, job, start, *drafted, gpu);
  if (!parts) return parts;
  ServingEstimate& answer = *parts;
  const core::Bytes free(gpu.capacity().count() - from_gib(logged_figures(start.share.ranks).before).count());
  answer.reason = early_reason(model, start, free, answer.requested);
  if (!model.caches()) {
    fill_without_cache(model, start, answer);
    if (answer.reason.empty()) answer.reason = encoder_reason(answer, free);
    answer.starts = answer.reason.empty();
    answer.spare = free.count() - answer.requested.count();
    return parts;
  }
  const std::int64_t left = answer.requested.count() - beside_the_cache(answer);
  answer.kv_cache = core::Bytes(std::max<std::int64_t>(0, job.kv_cache_memory_bytes.value_or(left)));
  if (job.kv_cache_memory_bytes) {
    answer.requested = core::Bytes(beside_the_cache(answer) + answer.kv_cache.count());
    if (answer.reason.empty()) answer.reason = given_cache_reason(answer, free);
  }
  fill_cache(model, start, *drafted, answer);
  if (answer.reason.empty()) answer.reason = cache_reason(job, answer);
  answer.starts = answer.reason.empty();
  const core::Bytes& most = job.kv_cache_memory_bytes ? free : answer.kv_cache;
  const core::Bytes& taken = job.kv_cache_memory_bytes ? answer.requested : answer.kv_cache_needed;
  answer.spare = most.count() - taken.count();
  return parts;
}

}  // namespace vllm_detail

GPUMEM_INLINE core::Result<ServingEstimate> estimate_vllm(const ServedModel& served, const ServingJob& job,
                                                          const device::GpuProfile& gpu) {
  std::vector<std::string> assumed;
  const core::Result<VllmRules> rules = vllm_rules(job.version, assumed);
  if (!rules) return rules.error();
  std::optional<ServedModel> pooled;
  if (job.runner == "pooling" && !served.pools) pooled = vllm_detail::without_output_layer(served);
  const ServedModel& model = pooled ? *pooled : served;
  const core::Result<VllmStart> start = vllm_start(model, job, gpu, *rules);
  if (!start) return start.error();
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
