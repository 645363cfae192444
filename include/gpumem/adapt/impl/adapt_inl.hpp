#pragma once

#include "gpumem/adapt/adapt.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/base_linears.hpp"
#include "gpumem/adapt/litgpt_model.hpp"
#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/trained_weights.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::adapt {

namespace adapt_detail {

/// The first embedding of token ids, and what is tied to it, leave tensors that need gradients.
class InputGradients {
 public:
  explicit InputGradients(const connect::WiredGraph& wired) : wired_(wired) {}

  void behind(connect::GraphCopy& copy, std::uint32_t index) {
    const model::Layer& layer = wired_.graph().layers()[index];
    const ops::Op* op = wired_.op(layer);
    if (op == nullptr || !op->reads_token_ids || wired_.outputs(index).empty()) return;
    if (parameters_ == 0) parameters_ = layer.parameters;
    if (layer.parameters != parameters_) return;
    const model::LayerIndex at = copy.now(static_cast<model::LayerIndex>(index));
    copy.replace(index, copy.insert({.name = std::string(wired_.graph().name(layer)) + ".requires_grad",
                                     .op = "requires_grad",
                                     .inputs = {at},
                                     .output = wired_.outputs(index)[0]}));
  }

 private:
  const connect::WiredGraph& wired_;
  std::int64_t parameters_ = 0;
};

}  // namespace adapt_detail

GPUMEM_INLINE bool adapts(const model::TrainingJob& job) {
  return model::row_of(job.loop).own_model || job.lora.has_value() || job.quantize != model::Quantization::none ||
         !job.freeze.empty() || !job.train.empty();
}

GPUMEM_INLINE bool inputs_need_gradients(const model::TrainingJob& job) {
  return job.lora.has_value() && job.activation_checkpointing;
}

GPUMEM_INLINE core::Result<connect::WiredGraph> adapt(const connect::WiredGraph& wired, const model::TrainingJob& job,
                                                      const ops::Catalogue& ops) {
  const std::vector<BaseLinear> linears = base_linears(wired);
  core::Result<std::vector<model::WeightStorage>> storage = weight_storage(wired, linears, job);
  if (!storage) return storage.error();
  const bool own = is_litgpt_model(wired.graph(), job);
  const std::vector<BaseEmbedding> embeddings = own ? std::vector<BaseEmbedding>() : base_embeddings(wired);
  LoraTargets targets{std::vector<bool>(linears.size(), false), std::vector<bool>(embeddings.size(), false), {}};
  if (job.lora) {
    const std::string named = own ? litgpt_targets(linears, job.lora_targets) : job.lora_targets;
    core::Result<LoraTargets> found = lora_targets(linears, named, embeddings);
    if (!found) return core::Error(found.error()).in_file(wired.graph().file());
    targets = *std::move(found);
  }
  connect::GraphCopy copy(wired, ops);
  adapt_detail::InputGradients inputs(wired);
  std::optional<LitgptModel> litgpt;
  if (own) litgpt.emplace(wired, linears, *storage, targets.chosen, job);
  std::size_t linear = 0;
  std::size_t embedding = 0;
  core::Pace pace;
  for (std::uint32_t index = 0; index < wired.graph().layers().size(); ++index) {
    if (pace.late()) return core::deadline_error();
    const model::WeightStorage& weights = (*storage)[index];
    if (litgpt && litgpt->take(copy, index)) continue;
    copy.copy(weights, wholly_frozen(wired, wired.graph().layers()[index], weights), {}, !own);
    if (own) continue;
    const bool table = embedding < embeddings.size() && embeddings[embedding].layer == index;
    const bool adapted = table && targets.embeddings[embedding];
    if (adapted) add_adapter(copy, wired, embeddings[embedding], job);
    if (inputs_need_gradients(job) && !adapted) inputs.behind(copy, index);
    if (table) ++embedding;
    if (linear == linears.size() || linears[linear].layer != index) continue;
    if (targets.chosen[linear]) add_adapter(copy, wired, linears[linear], job, weights.quantization);
    ++linear;
  }
  if (litgpt && !litgpt->leaves_out().empty()) {
    copy.remark("the adapter of " + litgpt->leaves_out() + ", which a chunked loss calls, is not counted");
  }
  for (const std::string& name : targets.unknown) {
    copy.remark("no linear layer or embedding is called " + name +
                ", which `lora_targets` names; the others have adapters");
  }
  return std::move(copy).finish();
}

}  // namespace gpumem::adapt
