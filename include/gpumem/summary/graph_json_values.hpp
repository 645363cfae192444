// Input: values of graph JSON (graph_json.hpp) from the full parser.
// Output: dimensions, shapes and attributes, or what is wrong with a value. Errors (without a place): malformed_input.
#pragma once

#include <string>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::summary {

/// A value as a message shows it, whatever bytes it holds.
[[nodiscard]] std::string shown(const core::JsonValue& value);

/// "N", "64N", "?" or a positive number.
[[nodiscard]] core::Result<core::Dim> dim_from_json(const core::JsonValue& json);

[[nodiscard]] core::Result<core::Shape> shape_from_json(const core::JsonValue& json);

/// A boolean, a number, a text, a list of integers; or of dimensions, as an op is told those of its output, -1 where it
/// keeps one.
[[nodiscard]] core::Result<model::AttributeValue> attribute_from_json(const core::JsonValue& json);

// Input: any ModelGraph.
// Output: its graph JSON, as graph_json.hpp describes and reads it.

/// The graph as graph JSON, one node a line. Reading it back gives an equal graph, except two things that JSON
/// cannot hold: of names that edges need and that are taken, the later ones get a number ("act#2"), and numbers
/// that are not finite are left out.
[[nodiscard]] std::string to_graph_json(const model::ModelGraph& graph);

}  // namespace gpumem::summary
