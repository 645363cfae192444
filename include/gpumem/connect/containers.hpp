// Input: the layers of a graph, and what is guessed about their edges.
// Output: the containers that hold them, by their names; counts of guesses, by kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpumem/architectures/module_tree.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::connect {

// Guesses: how much of a graph connect() had to guess. It tells how certain an answer is.
// Units: elements a sample, where elements are counted.

struct Guesses {
  std::int64_t edges = 0;       ///< layers whose input is a guess; each has a warning with its line
  std::int64_t first_line = 0;  ///< of the summary, of the first of these; 0: none
  std::int64_t stand_ins = 0;   ///< those of them that read a tensor that nothing in the summary makes
  std::int64_t containers = 0;  ///< of a class that is not known: their parts are called in the order of the tree
  std::int64_t layers = 0;      ///< layers of the summary that compute, for comparison

  /// Layers of which bounds are known and no more: of a class that is not known (connect/opaque.hpp), or run on regions
  /// whose number the images decide (connect/detection.hpp).
  std::int64_t bounded = 0;
  std::int64_t fewer_elements = 0;  ///< they may keep this much less than is planned,
  std::int64_t more_elements = 0;   ///< or this much more

  friend bool operator==(const Guesses&, const Guesses&) = default;
};

// Input: a graph without edges.
// Output: its containers, each with its parts in order: the scopes of a tree, or what torchsummary's marks tell.

/// A tensor of the wired graph: the layer that makes it, or a graph input.
using Tensor = model::LayerIndex;

/// A layer of the graph, or one of the containers.
using architectures::Part;

struct Container {
  std::string_view name;
  std::string_view class_name;
  std::vector<Part> parts;
};

/// The model itself comes first. A container without layers is left out.
using Containers = std::vector<Container>;

/// By scopes; one entry a scope.
[[nodiscard]] Containers containers_of(const model::ModelGraph& graph);

inline Containers containers_of(const model::ModelGraph& graph) {
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
