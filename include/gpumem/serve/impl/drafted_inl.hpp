#pragma once

#include "gpumem/serve/drafted.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/serve/rank_weights.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::serve {

namespace drafted_detail {

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// So many matrices that are as wide as high.
inline core::Checked squares(std::int64_t count, std::int64_t side) {
  return core::Checked(count) * core::Checked(side) * core::Checked(side);
}

inline core::Result<core::Bytes> with_projections(core::Bytes weights, const core::Checked& elements,
                                                  std::int64_t element) {
  return checked_bytes(core::Checked(weights.count()) + elements * core::Checked(element));
}

/// DeepSeek's multi-token prediction: one more layer, which reads the hidden state beside the token. Source: vLLM's
/// models/deepseek_mtp.py, DeepSeekMultiTokenPredictorLayer: eh_proj.
inline core::Result<Drafted> next_layer(const ServedModel& model, const VllmStart& start) {
  ServedModel layer = model;
  const auto share = [&](std::int64_t elements) { return elements / model.layers; };
  for (std::int64_t ServedWeights::*each :
       {&ServedWeights::split, &ServedWeights::keys_values, &ServedWeights::latent_up, &ServedWeights::experts,
        &ServedWeights::kept, &ServedWeights::plain}) {
    layer.weights.*each = share(model.weights.*each);
  }
  layer.weights.replicated = share(model.weights.replicated);
  layer.weights.tables = 0;
  layer.rotary_rows = 0;
  layer.tower = {};
  const core::Result<core::Bytes> weights = rank_weights(layer, start.share);
  if (!weights) return weights.error();
  const core::Result<core::Bytes> all = with_projections(*weights, squares(2, model.hidden), start.element);
  if (!all) return all.error();
  return Drafted{true, *all, cached_token_bytes(model, start.share)};
}

/// A model of its own. EAGLE's has the embedding of the model that it drafts for, and, but for EAGLE-3, its output
/// layer; it reads hidden states beside tokens: one, and of EAGLE-3 three, in layers that are twice as wide. Source:
/// vLLM's v1/spec_decode/eagle.py, load_model(), and models/llama_eagle3.py.
inline core::Result<Drafted> drafting_model(const Speculation& asked, const ServingJob& job) {
  if (job.draft == nullptr) return refused("speculative_config: the sizes of " + asked.model + " are not known");
  ServedModel draft = *job.draft;
  ServingJob drafting = job;
  drafting.quantization.clear();
  drafting.tensor_parallel = asked.ranks > 0 ? asked.ranks : job.tensor_parallel;
  if (draft.pools || !draft.caches()) return refused("speculative_config: the draft generates no tokens");
  const bool eagle = asked.method != "draft_model";
  const std::int64_t third = asked.method == "eagle3" ? 1 : 0;
  core::Checked projections(0);
  if (eagle) {
    draft.weights.tables = third;
    if (draft.draft_vocabulary > 0) draft.vocabulary = draft.draft_vocabulary;
    const core::Checked wider = core::Checked(third * draft.hidden) * core::Checked(draft.head_dim) *
                                core::Checked(draft.heads + 2 * draft.kv_heads);
    projections =
        squares(2 + third, draft.hidden) + core::Checked(wider.value().value_or(INT64_MAX) / job.tensor_parallel);
  }
  const core::Result<RankShare> share = share_of(draft, drafting, kVllmTypes);
  if (!share) return share.error();
  const core::Result<core::Bytes> weights = rank_weights(draft, *share);
  if (!weights) return weights.error();
  const core::Result<core::Bytes> all = with_projections(*weights, projections, share->element);
  if (!all) return all.error();
  return Drafted{true, *all, core::Checked(draft.attention_layers) * cached_token_bytes(draft, *share)};
}

}  // namespace drafted_detail

GPUMEM_INLINE core::Result<Drafted> drafted_by(const ServedModel& model, const ServingJob& job,
                                               const VllmStart& start) {
  namespace detail = drafted_detail;
  const core::Result<std::optional<Speculation>> asked = read_speculation(job.speculative_config);
  if (!asked) return asked.error();
  if (!asked->has_value() || !model.samples) return Drafted{};
  if (model.pools) return detail::refused("speculative_config: the model generates no tokens");
  if ((*asked)->method == "mtp") return detail::next_layer(model, start);
  if ((*asked)->model.empty()) return Drafted{true, core::Bytes(0), core::Checked(0)};  // words of the request itself
  return detail::drafting_model(**asked, job);
}

}  // namespace gpumem::serve
