// Input: the sizes of a model, a serving job and a GPU.
// Output: what SGLang takes on each GPU, and whether it starts.
// Source: SGLang 0.5: srt/server_args.py, _handle_gpu_memory_settings() (the default of mem_fraction_static, and those
// of chunked prefill and graphs by the GPU's memory); srt/model_executor/model_runner.py, profile_max_num_token(). No
// logged start was compared.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// In the job, gpu_memory_utilization is SGLang's mem_fraction_static, max_num_batched_tokens its chunked_prefill_size,
/// max_num_seqs its max_running_requests. Errors: invalid_argument (an option out of range, or one without rules),
/// overflow.
[[nodiscard]] core::Result<ServingEstimate> estimate_sglang(const ServedModel& model, const ServingJob& job,
                                                            const device::GpuProfile& gpu);

}  // namespace gpumem::serve
