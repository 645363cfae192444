// Input: graph JSON ("format": "gpumem-graph", "version": 1), the normal form as a file.
// Output: the graph. to_graph_json() goes the other way. Below: values of it from the full parser.
//
//   {"format": "gpumem-graph", "version": 1,
//    "inputs": [{"name": "x", "shape": ["N", 3, 224, 224], "dtype": "float32"}],
//    "nodes": [{"name": "conv1", "op": "conv2d", "inputs": ["x"],
//               "attrs": {"in_channels": 3, "out_channels": 64, "kernel_size": [7, 7]}}]}
//
// Nodes are in execution order; an input names a graph input or an earlier node. A dimension is a size, "N" or "64N"
// (multiples of the batch size), or "?" (unknown). Optional: per node "class", "scope" (the containers around it,
// outermost first: [["encoder", "Encoder"]]), "output" (a shape or a list of shapes, [] for a node that never runs; for
// all nodes or for none), "parameters", "tied_parameters", "frozen", "returned" (the model returns it in addition to
// what the loss reads, such as keys and values of a cache); for the whole graph "name", "edges": "inferred", which says
// that nodes without "inputs" follow each other (without it every node but parameters and constants names its inputs),
// and "printed_outputs", elements a sample of the outputs of all layers that hold parameters, rows that were not
// printed included, as the foot of a table tells it.
//
// Attributes have PyTorch's names: booleans, numbers, texts, lists of integers, and lists of dimensions, in which
// -1 keeps one ({"name": "tokens", "op": "expand", "inputs": ["token"], "attrs": {"shape": ["N", -1, -1]}}). A
// "parameter" with a "shape", and a "constant", are tensors that other nodes read.
#pragma once

#include <string>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/summary/formats.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& graph_json();

/// A value as a message shows it, whatever bytes it holds.
[[nodiscard]] std::string shown(const core::JsonValue& value);

/// "N", "64N", "?" or a positive number. Errors, as those of the next two, without a place: malformed_input.
[[nodiscard]] core::Result<core::Dim> dim_from_json(const core::JsonValue& json);

[[nodiscard]] core::Result<core::Shape> shape_from_json(const core::JsonValue& json);

/// A boolean, a number, a text, a list of integers; or of dimensions, as an op is told those of its output, -1 where it
/// keeps one.
[[nodiscard]] core::Result<model::AttributeValue> attribute_from_json(const core::JsonValue& json);

/// The graph as graph JSON, one node a line. Reading it back gives an equal graph, except two things that JSON
/// cannot hold: of names that edges need and that are taken, the later ones get a number ("act#2"), and numbers
/// that are not finite are left out.
[[nodiscard]] std::string to_graph_json(const model::ModelGraph& graph);

}  // namespace gpumem::summary
