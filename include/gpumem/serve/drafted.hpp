// Input: the sizes of a model, the speculative_config of its server, and the start of vLLM.
// Output: what drafts tokens for the model to check takes on one rank.
// Units: bytes.
// Source: vLLM 0.17 to 0.19: config/speculative.py; v1/spec_decode/eagle.py, load_model(); models/deepseek_mtp.py and
// models/llama_eagle3.py.
#pragma once

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/serve/serving_job.hpp"
#include "gpumem/serve/vllm_start.hpp"

namespace gpumem::serve {

struct Drafted {
  bool drafts = false;
  core::Bytes weights = {};
  core::Checked token_bytes{0};  ///< of all its layers in the cache
};

/// Errors: those of read_speculation(); invalid_argument for a model that generates no tokens, and for a draft whose
/// sizes the job does not have; overflow.
[[nodiscard]] core::Result<Drafted> drafted_by(const ServedModel& model, const ServingJob& job, const VllmStart& start);

}  // namespace gpumem::serve
