#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"

namespace gpumem::serve {

namespace serving_questions_detail {

inline constexpr std::int64_t kMostServed = 65536;  ///< sequences that are tried
inline constexpr std::int64_t kHundredths = 100;    ///< of a GPU's memory
inline constexpr std::int64_t kMostRanks = 64;

/// Whether the server starts with `value` in place of what the job says. A value that vLLM refuses does not.
template <typename Member, typename Value>
bool starts_with(const ServedModel& model, const ServingJob& asked, const device::GpuProfile& gpu, Member member,
                 Value value) {
  ServingJob job = asked;
  job.*member = value;
  const core::Result<ServingEstimate> estimate = estimate_server(model, job, gpu);
  return estimate && estimate->starts;
}

/// The largest count from 1 to `most` for which `holds`, which is so up to some count; nothing: for none.
template <typename Holds>
std::optional<std::int64_t> largest(std::int64_t most, const Holds& holds) {
  std::int64_t found = 0;
  for (std::int64_t low = 1, high = most; low <= high;) {
    const std::int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      found = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return found > 0 ? std::optional(found) : std::nullopt;
}

inline std::optional<double> smallest_utilization(const ServedModel& model, const ServingJob& job,
                                                  const device::GpuProfile& gpu) {
  for (std::int64_t share = 1; share <= kHundredths; ++share) {
    const double tried = static_cast<double>(share) / static_cast<double>(kHundredths);
    if (starts_with(model, job, gpu, &ServingJob::gpu_memory_utilization, tried)) return tried;
  }
  return std::nullopt;
}

inline std::optional<std::int64_t> fewest_ranks(const ServedModel& model, const ServingJob& job,
                                                const device::GpuProfile& gpu) {
  for (std::int64_t ranks = 1; ranks <= kMostRanks; ranks *= 2) {
    if (starts_with(model, job, gpu, &ServingJob::tensor_parallel, ranks)) return ranks;
  }
  return std::nullopt;
}

/// By memory that a job can have, and then by name.
inline std::string smallest_gpu(const ServedModel& model, const ServingJob& job) {
  const core::Result<std::vector<device::GpuProfile>>& profiles = device::known_profiles();
  if (!profiles) return {};
  const device::GpuProfile* best = nullptr;
  const auto size = [](const device::GpuProfile& of) { return std::pair(of.capacity().count(), of.name); };
  for (const device::GpuProfile& each : *profiles) {
    if (best != nullptr && size(*best) <= size(each)) continue;
    const core::Result<ServingEstimate> estimate = estimate_server(model, job, each);
    if (estimate && estimate->starts) best = &each;
  }
  return best == nullptr ? std::string() : best->name;
}

/// What can be changed, in the order of what it costs.
struct Change {
  std::string_view option;
  std::string_view value;  ///< "/4" and "*2": of what the job has
  std::string_view costs;
};
inline constexpr auto kChanges = std::to_array<Change>({
    {"gpu_memory_utilization", "0.95", "nothing, where nobody else uses the GPU"},
    {"max_num_batched_tokens", "/4", "longer prompts take more steps"},
    {"max_num_seqs", "/4", "fewer requests run at once"},
    {"max_model_len", "largest", "requests must be shorter"},
    {"kv_cache_dtype", "fp8", "slightly less exact answers"},
    {"quantization", "fp8", "less exact answers"},
    {"tensor_parallel_size", "*2", "twice as many GPUs"},
});

/// The value of the change; empty: it changes nothing.
inline std::string value_of(const Change& change, const ServingJob& job, const ServingEstimate& now) {
  if (change.value == "/4") {
    const std::int64_t had = change.option == "max_num_seqs" ? now.max_num_seqs : now.max_num_batched_tokens;
    return had >= 8 ? std::to_string(had / 4) : std::string();
  }
  if (change.value == "*2") return std::to_string(2 * job.tensor_parallel);
  if (change.value == "largest") {
    const bool shorter = now.largest_max_model_len > 0 && now.largest_max_model_len < now.max_model_len;
    return shorter ? std::to_string(now.largest_max_model_len) : std::string();
  }
  if (change.option == "kv_cache_dtype" && job.kv_cache_dtype.starts_with("fp8")) return {};
  if (change.option == "quantization" && !job.quantization.empty()) return {};
  if (change.option == "gpu_memory_utilization" && job.gpu_memory_utilization.value_or(0.9) >= 0.95) return {};
  // SGLang has no plain fp8.
  if (change.option == "kv_cache_dtype" && job.engine == "sglang") return "fp8_e4m3";
  return std::string(change.value);
}

}  // namespace serving_questions_detail

GPUMEM_INLINE core::Result<ServingEstimate> estimate_server(const ServedModel& model, const ServingJob& job,
                                                            const device::GpuProfile& gpu) {
  if (job.engine == "vllm") return estimate_vllm(model, job, gpu);
  if (job.engine == "sglang") return estimate_sglang(model, job, gpu);
  return core::Error{core::ErrorCode::invalid_argument,
                     "no rules for the engine \"" + core::shortened(job.engine, 40) + "\"; known: vllm, sglang",
                     {}};
}

GPUMEM_INLINE core::Result<std::int64_t> gpus_of(const ServingJob& job) {
  const core::Checked gpus =
      core::Checked(job.tensor_parallel) * core::Checked(job.pipeline_parallel) * core::Checked(job.data_parallel);
  if (gpus.value()) return *gpus.value();
  return core::Error{core::ErrorCode::overflow, "the number of GPUs does not fit 64 bits", {}};
}

GPUMEM_INLINE estimate::MemoryEstimate memory_of(const ServingEstimate& server, std::int64_t gpus) {
  const auto with = [&](core::Bytes graphs) {
    return core::Bytes(server.requested.count() + (server.starts ? graphs.count() : 0));
  };
  estimate::MemoryEstimate memory;
  memory.expected = with(server.cuda_graphs);
  memory.lower = with(server.cuda_graphs_lower);
  memory.upper = with(server.cuda_graphs_upper);
  memory.ranged = true;
  memory.device = memory.expected;
  memory.most_needed = memory.upper;
  memory.gpus = gpus;
  memory.verdict = server.verdict();
  memory.fits = memory.verdict == estimate::Verdict::fits;
  for (const std::string& line : server.assumed) memory.assumed.push_back({.about = "settings", .text = line});
  return memory;
}

GPUMEM_INLINE core::Result<ServingLimits> find_serving_limits(const ServedModel& model, const ServingJob& job,
                                                              const device::GpuProfile& gpu) {
  namespace detail = serving_questions_detail;
  const core::Result<ServingEstimate> now = estimate_server(model, job, gpu);
  if (!now) return now.error();
  ServingLimits limits;
  limits.engine = job.engine;
  limits.longest_context = detail::largest(model.max_positions, [&](std::int64_t tokens) {
    return detail::starts_with(model, job, gpu, &ServingJob::max_model_len, tokens);
  });
  limits.most_sequences = detail::largest(detail::kMostServed, [&](std::int64_t sequences) {
    return detail::starts_with(model, job, gpu, &ServingJob::max_num_seqs, sequences);
  });
  limits.smallest_utilization = detail::smallest_utilization(model, job, gpu);
  limits.fewest_ranks = detail::fewest_ranks(model, job, gpu);
  limits.smallest_gpu = detail::smallest_gpu(model, job);
  return limits;
}

GPUMEM_INLINE core::Result<std::vector<ServingChange>> advise_server(const ServedModel& model, const ServingJob& job,
                                                                     const device::GpuProfile& gpu) {
  namespace detail = serving_questions_detail;
  const core::Result<ServingEstimate> now = estimate_server(model, job, gpu);
  if (!now) return now.error();
  std::vector<ServingChange> changes;
  for (const detail::Change& change : detail::kChanges) {
    std::string value = detail::value_of(change, job, *now);
    if (value.empty()) continue;
    ServingJob changed = job;
    if (const core::Status set = set_serving_option(changed, change.option, value); !set) return set.error();
    core::Result<ServingEstimate> estimate = estimate_server(model, changed, gpu);
    if (!estimate) continue;  // vLLM refuses it: the heads cannot be shared out
    const bool helps = now->starts ? estimate->kv_cache_tokens > now->kv_cache_tokens : true;
    if (estimate->starts && helps)
      changes.push_back({option_name(job.engine, change.option), std::move(value), change.costs, *std::move(estimate)});
  }
  return changes;
}

GPUMEM_INLINE core::Result<std::vector<ServingLayout>> plan_server(const ServedModel& model, const ServingJob& job,
                                                                   const device::GpuProfile& gpu, std::int64_t gpus) {
  constexpr std::int64_t kMostGpus = 1024;
  if (gpus < 1 || gpus > kMostGpus) {
    return core::Error{core::ErrorCode::invalid_argument, "give a number of GPUs from 1 to 1,024", {}};
  }
  std::vector<ServingLayout> layouts;
  for (std::int64_t tensor = 1; tensor <= gpus; ++tensor) {
    for (std::int64_t stages = 1; tensor * stages <= gpus; ++stages) {
      if (gpus % (tensor * stages) != 0) continue;
      ServingJob shared = job;
      shared.tensor_parallel = tensor;
      shared.pipeline_parallel = stages;
      shared.data_parallel = gpus / (tensor * stages);
      core::Result<ServingEstimate> estimate = estimate_server(model, shared, gpu);
      if (!estimate || !estimate->starts) continue;  // the heads cannot be shared out so, or it does not fit
      const double copies = static_cast<double>(shared.data_parallel);
      layouts.push_back({tensor, stages, shared.data_parallel, estimate->kv_cache_tokens * shared.data_parallel,
                         estimate->concurrency * copies, *std::move(estimate)});
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(), [](const ServingLayout& one, const ServingLayout& other) {
    return one.kv_cache_tokens > other.kv_cache_tokens;
  });
  return layouts;
}

}  // namespace gpumem::serve
