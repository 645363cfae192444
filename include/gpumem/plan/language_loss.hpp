// Input: a wired graph.
// Output: the head of a language model and its cross entropy, with the layers between them, for forms of the loss that
// replace all of these.
// Units: indices of layers.
#pragma once

#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::plan {

struct HeadAndLoss {
  model::LayerIndex head = -1;   ///< the linear layer that makes the logits
  model::LayerIndex loss = -1;   ///< the cross entropy
  model::LayerIndex end = -1;    ///< where the function returns that computes it, and its names end; -1: nowhere
  std::vector<bool> replaced{};  ///< by layer: the head, what is between it and the loss, and second names of these

  [[nodiscard]] bool replaces(std::size_t layer) const { return !replaced.empty() && replaced[layer]; }
};

/// Errors: missing_information for a model that computes no cross entropy itself, or whose logits do not go from a
/// linear layer to it through only views, casts and scaling.
[[nodiscard]] core::Result<HeadAndLoss> find_head_and_loss(const connect::WiredGraph& wired);

}  // namespace gpumem::plan
