// Input: the sizes of a model, a serving job and a GPU.
// Output: what vLLM takes on each GPU, and whether it starts.
// Source: vLLM 0.17 to 0.19: v1/worker/gpu_worker.py determine_available_memory(); gpu_model_runner.py profile_run(),
// _dummy_run() and _dummy_sampler_run(); v1/core/kv_cache_utils.py get_kv_cache_configs(); engine/arg_utils.py
// get_batch_defaults(). docs/serving.md has what is known about the errors.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// Errors: invalid_argument (an option out of range, or one without rules), overflow.
[[nodiscard]] core::Result<ServingEstimate> estimate_vllm(const ServedModel& model, const ServingJob& job,
                                                          const device::GpuProfile& gpu);

}  // namespace gpumem::serve
