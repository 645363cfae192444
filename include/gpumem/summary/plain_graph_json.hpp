// Input: graph JSON (graph_json.hpp) as programs print it: plain tokens (core/json.hpp), each field once, of its
// type.
// Output: the graph, read in one pass without values in between; or nothing, and then the full parser reads the text
// again and writes the error message. This parser accepts only what the full parser accepts, and makes the same graph.
#pragma once

#include <optional>
#include <string_view>

#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

/// `begin` is the offset of the file's brace.
[[nodiscard]] std::optional<model::ModelGraph> read_plain_graph_json(std::string_view text, std::size_t begin,
                                                                     const ReadOptions& options);

}  // namespace gpumem::summary
