#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "gpumem/serve/engine_start.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"

namespace gpumem::serve {

namespace sglang_detail {

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

/// Whose rules are followed.
inline constexpr EngineVersion kRules{0, 5};

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// What SGLang takes where nobody says otherwise, by the GPU's memory. Source: server_args.py,
/// _handle_gpu_memory_settings().
struct MemoryDefaults {
  std::int64_t below_gib;
  std::int64_t prefill;       ///< tokens of one step
  std::int64_t graphs, wide;  ///< largest batch with a graph; on four and more ranks
};
inline constexpr std::array kDefaults = {MemoryDefaults{20, 2048, 8, 8}, MemoryDefaults{35, 2048, 24, 80},
                                         MemoryDefaults{60, 4096, 32, 160}, MemoryDefaults{160, 8192, 256, 512},
                                         MemoryDefaults{1'000'000, 16384, 512, 512}};

struct SglangStart {
  RankShare share;
  std::int64_t prefill = 0, graphs = 0, page = 1;
  double fraction = 0.0;
};

/// MiB that are left to all that is neither weights nor cache.
inline double reserved_mib(const SglangStart& start, const ServingJob& job, double gpu_mib) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  constexpr double kMetadata = 512.0, kOfLargeGpus = 10.0 * 1024.0, kLargeGpu = 60.0 * 1024.0;
  double reserved = kMetadata + real(std::max<std::int64_t>(start.prefill, 2048)) * 1.5 + real(start.graphs) * 2.0 +
                    real(job.tensor_parallel * job.pipeline_parallel) / 8.0 * 1024.0;
  if (gpu_mib > kLargeGpu) reserved = std::max(reserved, kOfLargeGpus);
  return reserved;
}

/// Source of the words: server_args.py, --kv-cache-dtype, without fp4.
inline constexpr auto kCacheWords =
    std::to_array<std::string_view>({"auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"});
inline constexpr EngineTypes kTypes{"SGLang", kCacheWords};

/// An option of the job that SGLang has no rule for here.
inline core::Status check_options(const ServingJob& job) {
  const ServingJob plain;
  const auto differs = [&](auto member) { return member != nullptr && job.*member != plain.*member; };
  for (const ServingOption& each : serving_options()) {
    const bool given = differs(each.count) || differs(each.limit) || differs(each.share) || differs(each.gib) ||
                       differs(each.word) || differs(each.flag);
    if (given && each.sglang.empty()) return refused("no rules for " + std::string(each.name) + " of SGLang");
  }
  return core::Done{};
}

/// Errors: invalid_argument for what is no version, or an older one.
inline core::Status check_version(const std::string& asked) {
  if (asked.empty()) return core::Done{};
  const std::optional<EngineVersion> version = engine_version(asked);
  if (!version) return refused("engine version " + core::quoted(asked) + ": give it as 0.5.6");
  if (*version < kRules) return refused("no rules for SGLang " + core::shortened(asked, 40) + "; known: 0.5");
  return core::Done{};
}

inline core::Status check_job(const ServedModel& model, const ServingJob& job) {
  const std::int64_t ranks = job.tensor_parallel;
  if (ranks < 1 || job.data_parallel < 1) return refused("tp_size and dp_size must be at least 1");
  if (job.pipeline_parallel != 1) return refused("no rules for pp_size of SGLang");
  if (model.heads % ranks != 0) {
    return refused("tp_size " + std::to_string(ranks) + " does not divide the model's " + std::to_string(model.heads) +
                   " heads");
  }
  if (model.states.layers > 0) return refused("no rules for SGLang's pool of the states of this model's layers");
  if (model.tower.hidden > 0) return refused("no rules for SGLang with an image tower");
  if (model.pools) return refused("no rules for SGLang with embeddings and classes");
  if (model.index_bytes > 0) return refused("no rules for SGLang's pool of an indexer");
  if (const core::Status options = check_options(job); !options) return options.error();
  return check_version(job.version);
}

inline core::Result<SglangStart> sglang_start(const ServedModel& model, const ServingJob& job,
                                              const device::GpuProfile& gpu) {
  if (const core::Status checked = check_job(model, job); !checked) return checked.error();
  const core::Result<RankShare> share = share_of(model, job, kTypes);
  if (!share) return share.error();
  const std::int64_t gib = gpu.memory_bytes.value / kGib;
  const auto& usual = *std::find_if(kDefaults.begin(), kDefaults.end() - 1,
                                    [&](const MemoryDefaults& row) { return gib < row.below_gib; });
  SglangStart start;
  start.share = *share;
  start.page = job.block_size.value_or(1);
  start.prefill = job.max_num_batched_tokens.value_or(usual.prefill);
  start.graphs = job.enforce_eager ? 0 : job.tensor_parallel >= 4 ? usual.wide : usual.graphs;
  const double gpu_mib = static_cast<double>(gpu.memory_bytes.value) / static_cast<double>(kMib);
  const double usual_fraction = std::round((gpu_mib - reserved_mib(start, job, gpu_mib)) / gpu_mib * 1000.0) / 1000.0;
  start.fraction = job.gpu_memory_utilization.value_or(usual_fraction);
  if (!(start.fraction > 0.0) || start.fraction >= 1.0) return refused("mem_fraction_static must be between 0 and 1");
  if (start.prefill < 1 || start.page < 1) return refused("chunked_prefill_size and page_size must be at least 1");
  return start;
}

/// A forward pass of one chunk, layer by layer without a compiler: the residual, a layer's input and output, the gate
/// and up projections and their product.
inline core::Result<core::Bytes> forward_pass(const ServedModel& model, const SglangStart& start) {
  const std::int64_t width = (model.gated ? 3 : 2) * (model.intermediate / start.share.ranks);
  const std::int64_t rows = std::max<std::int64_t>(1, model.experts_per_token);
  const core::Checked columns = core::Checked(3 * model.hidden) + core::Checked(rows) * core::Checked(width);
  return checked_bytes(core::Checked(start.prefill) * columns * core::Checked(start.share.element));
}

/// Bytes of one token in the pool. Source: model_runner.py, get_cell_size_per_token().
inline std::int64_t cell_bytes(const ServedModel& model, const SglangStart& start) {
  const std::int64_t heads = std::max<std::int64_t>(1, model.kv_heads / start.share.ranks);
  const core::Checked elements =
      model.latent_dim > 0 ? core::Checked(model.latent_dim) : core::Checked(2 * heads) * core::Checked(model.head_dim);
  const core::Checked bytes = elements * core::Checked(start.share.cache_element) * core::Checked(model.layers);
  return std::max<std::int64_t>(1, bytes.value().value_or(INT64_MAX));
}

inline void fill_pool(const ServedModel& model, const SglangStart& start, ServingEstimate& answer) {
  const std::int64_t cell = cell_bytes(model, start);
  answer.kv_cache_blocks = answer.kv_cache.count() / cell / start.page;
  answer.kv_cache_tokens = answer.kv_cache_blocks * start.page;
  answer.kv_cache_needed = core::Bytes(cell * std::min(start.page, INT64_MAX / cell));
  answer.largest_max_model_len = std::min(answer.kv_cache_tokens, model.max_positions);
  answer.concurrency = static_cast<double>(answer.kv_cache_tokens) / static_cast<double>(answer.max_model_len);
  if (answer.kv_cache_tokens > 0) return;
  answer.reason = "not enough memory: weights take " + core::to_string(answer.weights) +
                  ", more than mem_fraction_static leaves; raise it, or tp_size";
}

inline void say_assumed(const ServedModel& model, const ServingJob& job, const SglangStart& start,
                        std::vector<std::string>& assumed) {
  if (job.version.empty()) {
    assumed.emplace_back("the engine's version: 0.5 (none was given)");
  } else if (*engine_version(job.version) > kRules) {
    assumed.emplace_back("SGLang " + core::shortened(job.version, 40) +
                         " is newer than the rules: those of 0.5 are followed");
  }
  if (!job.gpu_memory_utilization) {
    assumed.emplace_back("mem_fraction_static: " + std::to_string(start.fraction).substr(0, 5) +
                         ", SGLang's own for this GPU");
  }
  if (!job.max_num_batched_tokens) {
    assumed.emplace_back("chunked_prefill_size: " + std::to_string(start.prefill) + ", the default on this GPU");
  }
  if (model.sliding_layers > 0) assumed.emplace_back("layers with a window keep all tokens in the pool");
  assumed.emplace_back("SGLang: no logged start was compared; what is outside PyTorch is as vLLM logged it");
}

}  // namespace sglang_detail

GPUMEM_INLINE core::Result<ServingEstimate> estimate_sglang(const ServedModel& model, const ServingJob& job,
                                                            const device::GpuProfile& gpu) {
  namespace detail = sglang_detail;
  const core::Result<detail::SglangStart> start = detail::sglang_start(model, job, gpu);
  if (!start) return start.error();
  ServingEstimate answer;
  answer.engine = "sglang";
  answer.version = "0.5";
  const core::Result<core::Bytes> weights = rank_weights(model, start->share);
  if (!weights) return weights.error();
  const core::Result<core::Bytes> activation = detail::forward_pass(model, *start);
  if (!activation) return activation.error();
  answer.weights = *weights;
  answer.activation = *activation;
  // The context, NCCL and libraries: as vLLM logged them before and after the weights, on one rank and on several.
  const bool several = job.tensor_parallel > 1;
  answer.outside_pytorch = core::Bytes((several ? 2 : 1) * detail::kGib / 2);
  answer.outside_pytorch_lower = core::Bytes(answer.outside_pytorch.count() / 2);
  answer.outside_pytorch_upper = core::Bytes(2 * answer.outside_pytorch.count());
  answer.cuda_graphs = core::Bytes(2 * start->graphs * detail::kMib);
  answer.cuda_graphs_lower = core::Bytes(answer.cuda_graphs.count() / 2);
  answer.cuda_graphs_upper = core::Bytes(4 * answer.cuda_graphs.count());
  const std::int64_t free = gpu.capacity().count() - answer.outside_pytorch.count();
  const auto fixed = static_cast<std::int64_t>(static_cast<double>(free) * start->fraction);
  answer.kv_cache = core::Bytes(std::max<std::int64_t>(0, fixed - answer.weights.count()));
  answer.requested = core::Bytes(answer.outside_pytorch.count() + fixed + answer.activation.count());
  answer.max_model_len = job.max_model_len.value_or(model.max_positions);
  answer.max_num_batched_tokens = start->prefill;
  detail::fill_pool(model, *start, answer);
  answer.max_num_seqs = job.max_num_seqs.value_or(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(answer.concurrency * 512.0), 2048, 4096));
  if (answer.reason.empty() && answer.expected().count() + answer.cuda_graphs.count() > gpu.capacity().count()) {
    answer.reason = "a chunk of " + std::to_string(start->prefill) + " tokens and the graphs need " +
                    core::to_string(core::Bytes(answer.activation.count() + answer.cuda_graphs.count())) +
                    ", more than mem_fraction_static leaves; lower it, or chunked_prefill_size";
  }
  answer.starts = answer.reason.empty();
  answer.spare = answer.kv_cache.count() - answer.kv_cache_needed.count();
  detail::say_assumed(model, job, *start, answer.assumed);
  for (const model::Doubt& doubt : model.doubts) answer.assumed.emplace_back(doubt.text);
  return answer;
}

}  // namespace gpumem::serve
