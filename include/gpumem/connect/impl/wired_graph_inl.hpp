#pragma once

#include "gpumem/connect/wired_graph.hpp"

#include <algorithm>

namespace gpumem::connect {

GPUMEM_INLINE std::span<const core::Shape> WiredGraph::outputs(std::size_t layer) const {
  const LayerShapes& shapes = parts_->shapes;
  if (!shapes.leaves[layer]) return {};
  if (shapes.inferred.empty()) return graph().outputs(graph().layers()[layer]);
  return {&shapes.inferred[layer], 1};
}

GPUMEM_INLINE std::span<const model::LayerIndex> WiredGraph::inputs(std::size_t layer) const {
  const auto& odd = parts_->shapes.behind_unknown;
  if (!odd.empty()) {
    const auto found = std::ranges::lower_bound(odd, layer, {}, &BehindUnknown::layer);
    if (found != odd.end() && found->layer == layer) return {&found->source, found->reads ? 1U : 0U};
  }
  return graph().inputs(graph().layers()[layer]);
}

GPUMEM_INLINE core::Place WiredGraph::place_of(const model::Layer& layer) const {
  return {graph().file(), layer.line, graph().path(layer)};
}

}  // namespace gpumem::connect
