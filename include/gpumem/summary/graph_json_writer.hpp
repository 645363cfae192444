// Input: any ModelGraph.
// Output: its graph JSON, as graph_json.hpp describes and reads it.
#pragma once

#include <string>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::summary {

/// The graph as graph JSON, one node a line. Reading it back gives an equal graph, except two things that JSON
/// cannot hold: of names that edges need and that are taken, the later ones get a number ("act#2"), and numbers
/// that are not finite are left out.
[[nodiscard]] std::string to_graph_json(const model::ModelGraph& graph);

}  // namespace gpumem::summary
