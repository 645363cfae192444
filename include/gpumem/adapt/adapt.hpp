// Input: a wired graph, and what the job says about adapters, frozen layers and quantised weights.
// Output: the wired graph that is trained: the same layers plus the adapters. Each layer knows how its weights are held
// and which of them are trained.
// Units: elements.
//
// What autograd makes of it (no gradients below the first trained weight, no input kept for a frozen one) is the tape's
// business: it follows from what needs a gradient.
#pragma once

#include <tuple>

#include "gpumem/adapt/trained_weights.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::adapt {

/// The fields of a job that it depends on, in addition to its wired graph and inputs_need_gradients().
template <typename Job>
[[nodiscard]] auto adaptation_key(Job& job) {
  return std::tie(job.freeze, job.train, job.lora, job.lora_targets, job.lora_dtype, job.lora_dropout, job.peft,
                  job.peft_options, job.quantize, job.base_dtype, job.loop, job.loss_form, job.precision, job.offload,
                  job.kernels, job.megatron_options, job.transformers);
}

/// Whether the job trains anything but the graph as it is.
[[nodiscard]] bool adapts(const model::TrainingJob& job);

/// Whether the embeddings' output is made to need a gradient, as checkpointed blocks on a frozen base ask for.
/// Source: PEFT 0.14, peft_model.py, _prepare_model_for_gradient_checkpointing; transformers 4.46,
/// modeling_utils.py, enable_input_require_grads.
[[nodiscard]] bool inputs_need_gradients(const model::TrainingJob& job);

/// Errors: invalid_argument for names that mean nothing; missing_information where the model shows no layer that an
/// adapter or quantised weights could be in.
[[nodiscard]] core::Result<connect::WiredGraph> adapt(const connect::WiredGraph& wired, const model::TrainingJob& job,
                                                      const ops::Catalogue& ops);

}  // namespace gpumem::adapt
