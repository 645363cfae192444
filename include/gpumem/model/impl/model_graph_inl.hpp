#pragma once

#include "gpumem/model/model_graph.hpp"

namespace gpumem::model {

GPUMEM_INLINE bool ModelGraph::within(std::uint32_t inner, std::uint32_t outer) const {
  // Scopes are numbered as they are opened: those inside one follow it without a gap.
  return outer <= inner && inner <= scopes_[outer].last;
}

GPUMEM_INLINE std::string ModelGraph::path(const Layer& layer) const {
  constexpr std::size_t kLongest = 200;
  std::string result = core::shortened(name(layer), kLongest);
  for (std::uint32_t at = layer.scope; at != 0; at = scopes_[at].parent) {
    if (result.size() > kLongest) return "..." + result;
    // The model's own scope and a container's own parameters have no name.
    const std::string_view container = text(scopes_[at].name);
    if (container.empty()) continue;
    result.insert(0, core::shortened(container, kLongest) + (result.empty() ? "" : "."));
  }
  return result;
}

}  // namespace gpumem::model
