// Views of a graph that tests compare: its layers as text, one line each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::testing {

/// A convolution, its activation, and the sum of both.
inline constexpr std::string_view kSmallGraph = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "float32"}],
 "nodes": [
  {"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": [3, 3]}},
  {"name": "relu", "op": "relu", "inputs": ["conv"]},
  {"name": "sum", "op": "add", "inputs": ["conv", "relu"]}
 ]}
)";

/// "conv2d conv1 [N, 64, 112, 112] 9408", and after it "tied N", "frozen" and "returned" where they apply.
inline std::string describe(const ModelGraph& graph, const model::Layer& layer) {
  std::string text = std::string(graph.op(layer)) + " " + graph.path(layer);
  for (const core::Shape& output : graph.outputs(layer)) text += " " + core::to_string(output);
  text += " " + std::to_string(layer.parameters);
  if (layer.tied_parameters > 0) text += " tied " + std::to_string(layer.tied_parameters);
  if (layer.frozen) text += " frozen";
  if (layer.returned) text += " returned";
  return text;
}

using Described = std::vector<std::string>;

inline Described describe(const ModelGraph& graph) {
  Described all;
  for (const model::Layer& layer : graph.layers()) all.push_back(describe(graph, layer));
  return all;
}

/// The layers of a summary that can be read; its error as the only line if it cannot.
inline Described read_layers(std::string_view text, bool lenient = false) {
  const Result<ModelGraph> graph = parse_summary(text, lenient);
  if (!graph) return {core::to_string(graph.error())};
  return describe(*graph);
}

/// The messages of a graph's warnings, with their lines: "7: the summary prints ...".
inline std::vector<std::string> warnings(const ModelGraph& graph) {
  std::vector<std::string> all;
  for (const model::Warning& warning : graph.warnings()) {
    all.push_back(std::to_string(warning.place.line) + ": " + warning.message);
  }
  return all;
}

/// Reads every prefix of `text` and counts those that are read. A prefix is a file that was cut off: it may
/// still hold a whole summary, but what it gives must be no larger than the whole.
inline int readable_prefixes(std::string_view text) {
  const Result<ModelGraph> whole = parse_summary(text);
  EXPECT_TRUE(succeeds(whole));
  if (!whole) return 0;
  int readable = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const Result<ModelGraph> graph = parse_summary(text.substr(0, length));
    if (!graph) {
      EXPECT_FALSE(graph.error().message.empty()) << "prefix of " << length;
      EXPECT_GT(graph.error().place.line, 0) << "prefix of " << length << ": " << graph.error().message;
      continue;
    }
    ++readable;
    EXPECT_LE(graph->layers().size(), whole->layers().size()) << "prefix of " << length;
    EXPECT_LE(graph->parameters(), whole->parameters()) << "prefix of " << length;
  }
  return readable;
}

}  // namespace gpumem::testing
