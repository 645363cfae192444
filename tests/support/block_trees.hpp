// What connecting makes of a small module tree, as one line: the ops in the order of their calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"

namespace gpumem::testing {

/// The tree's graph with edges, read with samples of this shape.
inline Result<connect::WiredGraph> wired_tree(std::string_view tree, std::vector<std::int64_t> input,
                                              bool strict = false) {
  auto graph = parse_summary(tree);
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), 2);
  job.input_shape = std::move(input);
  job.strict = strict;
  return connect::connect(job, ops::catalogue());
}

/// "conv2d relu add", and after it "guessed" where an edge is one; an error's text where there is one.
inline std::string ops_of(std::string_view tree, std::vector<std::int64_t> input) {
  const auto wired = wired_tree(tree, std::move(input));
  if (!wired) return core::to_string(wired.error());
  std::string text;
  for (const model::Layer& layer : wired->graph().layers()) {
    text += (text.empty() ? "" : " ") + std::string(wired->graph().op(layer));
  }
  return text + (wired->guesses().edges > 0 ? " guessed" : "");
}

/// What every layer of this op leaves, "[N, 4] [N, 8]"; an error's text where there is one.
inline std::string outputs_of(std::string_view tree, std::vector<std::int64_t> input, std::string_view op) {
  const auto wired = wired_tree(tree, std::move(input));
  if (!wired) return core::to_string(wired.error());
  std::string text;
  for (std::size_t index = 0; index < wired->graph().layers().size(); ++index) {
    if (wired->graph().op(wired->graph().layers()[index]) != op) continue;
    text += (text.empty() ? "" : " ") + core::to_string(wired->outputs(index)[0]);
  }
  return text;
}

/// Elements of all parameters, those that no line shows included; -1 for an error.
inline std::int64_t parameters_of(std::string_view tree, std::vector<std::int64_t> input) {
  const auto wired = wired_tree(tree, std::move(input));
  return wired ? wired->graph().parameters() : -1;
}

}  // namespace gpumem::testing
