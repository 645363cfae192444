#pragma once

#include "gpumem/connect/containers.hpp"

#include <algorithm>

namespace gpumem::connect {

GPUMEM_INLINE Containers containers_of(const model::ModelGraph& graph) {
  Containers all(graph.scopes());
  std::vector<bool> placed(all.size(), false);
  placed[0] = true;
  std::vector<std::uint32_t> above;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const std::uint32_t own = graph.layers()[index].scope;
    above.clear();
    for (std::uint32_t scope = own; !placed[scope]; scope = graph.scope(scope).parent) above.push_back(scope);
    std::reverse(above.begin(), above.end());
    for (const std::uint32_t scope : above) {
      placed[scope] = true;
      all[scope].name = graph.scope_name(scope);
      all[scope].class_name = graph.class_name(graph.scope(scope));
      all[graph.scope(scope).parent].parts.push_back({scope, true});
    }
    all[own].parts.push_back({index, false});
  }
  return all;
}

}  // namespace gpumem::connect
