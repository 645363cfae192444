#pragma once

#include "gpumem/model/model_graph.hpp"

namespace gpumem::model {

GPUMEM_INLINE bool ModelGraph::within(std::uint32_t inner, std::uint32_t outer) const {
  while (inner != outer && inner != 0) inner = scopes_[inner].parent;
  return inner == outer;
}

GPUMEM_INLINE std::string ModelGraph::path(const Layer& layer) const {
  constexpr std::size_t kLongest = 200;
  std::string result(name(layer));
  for (std::uint32_t at = layer.scope; at != 0; at = scopes_[at].parent) {
    if (result.size() > kLongest) return "..." + result;
    result.insert(0, std::string(text(scopes_[at].name)) + ".");
  }
  return result;
}

}  // namespace gpumem::model
