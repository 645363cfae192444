// Input: a graph without edges.
// Output: its containers, each with its parts in order: the scopes of a tree, or what torchsummary's marks tell.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::connect {

/// A tensor of the wired graph: the layer that makes it, or a graph input.
using Tensor = model::LayerIndex;

/// A layer of the graph, or one of the containers.
struct Part {
  std::uint32_t index = 0;
  bool container = false;
};

struct Container {
  std::string_view name;
  std::string_view class_name;
  std::vector<Part> parts;
};

/// The model itself comes first. A container without layers is left out.
using Containers = std::vector<Container>;

/// By scopes; one entry a scope.
[[nodiscard]] Containers containers_of(const model::ModelGraph& graph);

}  // namespace gpumem::connect
