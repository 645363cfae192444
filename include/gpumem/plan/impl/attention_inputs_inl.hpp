#pragma once

#include "gpumem/plan/attention_inputs.hpp"

#include "gpumem/ops/catalogue.hpp"

namespace gpumem::plan {

namespace attention_inputs_detail {

/// By layer: how many layers read it.
GPUMEM_INLINE std::vector<int> count_readers(const connect::WiredGraph& wired) {
  std::vector<int> readers(wired.graph().layers().size(), 0);
  for (std::size_t index = 0; index < readers.size(); ++index) {
    for (const model::LayerIndex input : wired.inputs(index)) {
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
    }
  }
  return readers;
}

/// A view or a copy: it computes nothing, holds nothing and reads one tensor.
GPUMEM_INLINE bool moves(const connect::WiredGraph& wired, std::size_t layer) {
  const ops::Op* op = wired.op(wired.graph().layers()[layer]);
  return op != nullptr && !op->traits.computes && wired.inputs(layer).size() == 1 &&
         !wired.graph().layers()[layer].returned && wired.graph().layers()[layer].parameters == 0;
}

}  // namespace attention_inputs_detail

GPUMEM_INLINE std::vector<bool> attention_inputs(const connect::WiredGraph& wired) {
  namespace detail = attention_inputs_detail;
  const auto layers = wired.graph().layers();
  const std::vector<int> readers = detail::count_readers(wired);
  std::vector<bool> skipped(layers.size(), false);
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const ops::Op* op = wired.op(layers[index]);
    if (op == nullptr || op->traits.family != model::OpFamily::attention || op->traits.projects()) continue;
    for (const model::LayerIndex input : wired.inputs(index)) {
      model::LayerIndex at = input;
      while (at >= 0 && readers[static_cast<std::size_t>(at)] == 1 &&
             detail::moves(wired, static_cast<std::size_t>(at))) {
        skipped[static_cast<std::size_t>(at)] = true;
        at = wired.inputs(static_cast<std::size_t>(at))[0];
      }
    }
  }
  return skipped;
}

}  // namespace gpumem::plan
