// Input: the sizes of a model, a serving job and a GPU.
// Output: what the engine takes on each GPU, and whether it starts; how far each option of the job can go on that GPU,
// and what would let the server start or hold more. Units: tokens, sequences, GPUs; shares of a GPU's memory. Source:
// vLLM 0.17 to 0.19: v1/worker/gpu_worker.py determine_available_memory(); gpu_model_runner.py profile_run(),
// _dummy_run() and _dummy_sampler_run(); v1/core/kv_cache_utils.py get_kv_cache_configs(); engine/arg_utils.py
// get_batch_defaults(). docs/serving.md has what is known about the errors.
// SGLang 0.5: srt/server_args.py, _handle_gpu_memory_settings() (the default of mem_fraction_static, and those of
// chunked prefill and graphs by the GPU's memory); srt/model_executor/model_runner.py, profile_max_num_token(). No
// logged start was compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// Errors: invalid_argument (an option out of range, or one without rules), overflow.
[[nodiscard]] core::Result<ServingEstimate> estimate_vllm(const ServedModel& model, const ServingJob& job,
                                                          const device::GpuProfile& gpu);

/// In the job, gpu_memory_utilization is SGLang's mem_fraction_static, max_num_batched_tokens its chunked_prefill_size,
/// max_num_seqs its max_running_requests. Errors: invalid_argument (an option out of range, or one without rules),
/// overflow.
[[nodiscard]] core::Result<ServingEstimate> estimate_sglang(const ServedModel& model, const ServingJob& job,
                                                            const device::GpuProfile& gpu);

/// What the server of this job takes, by the rules of its engine. Errors: those of estimate_vllm() and
/// estimate_sglang(); invalid_argument for another engine.
[[nodiscard]] core::Result<ServingEstimate> estimate_server(const ServedModel& model, const ServingJob& job,
                                                            const device::GpuProfile& gpu);

/// On how many GPUs the server runs: those that share its layers, times stages, times copies. Errors: overflow.
[[nodiscard]] core::Result<std::int64_t> gpus_of(const ServingJob& job);

/// The same on each of so many GPUs as schedulers take it: what nvidia-smi shows, as an estimate of a training job has
/// it.
[[nodiscard]] estimate::MemoryEstimate memory_of(const ServingEstimate& server, std::int64_t gpus);

/// The furthest value of each option with which the server starts, where all else stays as it is; nothing: with none.
struct ServingLimits {
  std::string engine = "vllm";
  std::optional<std::int64_t> longest_context = {};  ///< max_model_len
  std::optional<std::int64_t> most_sequences = {};   ///< max_num_seqs, at most 65,536
  std::optional<double> smallest_utilization = {};   ///< gpu_memory_utilization, in hundredths
  std::optional<std::int64_t> fewest_ranks = {};     ///< tensor_parallel_size: 1, 2, 4, ... 64
  std::string smallest_gpu = {};                     ///< of the GPUs that are known, MIG slices among them; empty: none
};

/// Errors: those of estimate_server(), but those of single values, with which the server does not start.
[[nodiscard]] core::Result<ServingLimits> find_serving_limits(const ServedModel& model, const ServingJob& job,
                                                              const device::GpuProfile& gpu);

/// A way to share a number of GPUs out.
struct ServingLayout {
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t data_parallel = 1;
  std::int64_t kv_cache_tokens = 0;  ///< of all copies together
  double concurrency = 0.0;          ///< requests of max_model_len at once, of all copies
  ServingEstimate estimate;          ///< of one rank
};

/// The layouts of exactly so many GPUs with which the server starts, the one whose caches hold most tokens first; of
/// equals the one with fewer GPUs a copy. Errors: invalid_argument for less than 1 GPU or more than 1,024.
[[nodiscard]] core::Result<std::vector<ServingLayout>> plan_server(const ServedModel& model, const ServingJob& job,
                                                                   const device::GpuProfile& gpu, std::int64_t gpus);

/// One option changed.
struct ServingChange {
  std::string_view option;  ///< as the engine calls it
  std::string value;
  std::string_view costs;    ///< in a few words
  ServingEstimate estimate;  ///< of the server so changed
};

/// Changes after which the server starts, or after which its cache holds more tokens than now, in the order of what
/// they cost: free ones, slower ones, less exact ones, further GPUs. Errors: those of estimate_server().
[[nodiscard]] core::Result<std::vector<ServingChange>> advise_server(const ServedModel& model, const ServingJob& job,
                                                                     const device::GpuProfile& gpu);

}  // namespace gpumem::serve
