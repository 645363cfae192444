#pragma once

#include "gpumem/plan/language_loss.hpp"

#include "gpumem/ops/catalogue.hpp"

namespace gpumem::plan {

namespace language_loss_detail {

/// Whether the layer hands on what it reads, in another shape, type or scale.
GPUMEM_INLINE bool hands_on(const connect::WiredGraph& wired, std::size_t layer) {
  const ops::Op* op = wired.op(wired.graph().layers()[layer]);
  if (op == nullptr || wired.inputs(layer).size() != 1 || wired.graph().layers()[layer].parameters > 0) return false;
  return op->traits.family == model::OpFamily::view || op->traits.family == model::OpFamily::other;
}

GPUMEM_INLINE core::Error no_head(const connect::WiredGraph& wired, model::LayerIndex layer) {
  const auto at = static_cast<std::size_t>(std::max<model::LayerIndex>(layer, 0));
  return {core::ErrorCode::missing_information,
          "chunked and fused losses replace a language model's head and cross entropy, and this model shows no "
          "linear layer with logits that go straight to its loss; give its config.json, or `loss=standard`",
          wired.place_of(wired.graph().layers()[at])};
}

/// The last one: encoders that are trained with a decoder have theirs before.
GPUMEM_INLINE model::LayerIndex find_loss(const connect::WiredGraph& wired) {
  const auto layers = wired.graph().layers();
  for (std::size_t index = layers.size(); index-- > 0;) {
    const ops::Op* op = wired.op(layers[index]);
    if (op != nullptr && op->loss == model::Loss::cross_entropy) return static_cast<model::LayerIndex>(index);
  }
  return -1;
}

}  // namespace language_loss_detail

GPUMEM_INLINE core::Result<HeadAndLoss> find_head_and_loss(const connect::WiredGraph& wired) {
  namespace detail = language_loss_detail;
  const auto layers = wired.graph().layers();
  HeadAndLoss found;
  found.loss = detail::find_loss(wired);
  if (found.loss < 0) return detail::no_head(wired, 0);
  found.replaced.assign(layers.size(), false);
  model::LayerIndex at = wired.inputs(static_cast<std::size_t>(found.loss))[0];
  while (at >= 0 && detail::hands_on(wired, static_cast<std::size_t>(at))) {
    found.replaced[static_cast<std::size_t>(at)] = true;
    at = wired.inputs(static_cast<std::size_t>(at))[0];
  }
  const ops::Op* head = at < 0 ? nullptr : wired.op(layers[static_cast<std::size_t>(at)]);
  const bool linear = head != nullptr && head->traits.family == model::OpFamily::linear &&
                      head->traits.parameters != nullptr && wired.inputs(static_cast<std::size_t>(at)).size() == 1;
  if (!linear) return detail::no_head(wired, found.loss);
  found.head = at;
  found.replaced[static_cast<std::size_t>(at)] = true;
  for (std::size_t index = 0; index < layers.size(); ++index) {  // what is returned in addition to the loss
    if (!layers[index].returned || wired.inputs(index).size() != 1) continue;
    const model::LayerIndex of = wired.inputs(index)[0];
    if (of >= 0 && found.replaced[static_cast<std::size_t>(of)]) found.replaced[index] = true;
  }
  for (std::size_t index = static_cast<std::size_t>(found.loss) + 1; index < layers.size(); ++index) {
    const ops::Op* op = wired.op(layers[index]);
    const bool returns = op != nullptr && op->traits.family == model::OpFamily::view && wired.inputs(index).size() > 1;
    if (returns && wired.inputs(index)[0] == found.loss) found.end = static_cast<model::LayerIndex>(index);
  }
  return found;
}

}  // namespace gpumem::plan
