// Enters: graph JSON (graph_json.hpp) as programs print it: plain tokens (core/json_tokens.hpp), each field once, of
// its type. Leaves: the graph, read in one pass without values in between; or nothing, on which the full parser reads
// it again, and has the words for what is wrong. This one accepts nothing that the other does not, and makes the same
// graph of it.
#pragma once

#include <optional>
#include <string_view>

#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/read_options.hpp"

namespace gpumem::summary {

/// `begin` is the offset of the file's brace.
[[nodiscard]] std::optional<model::ModelGraph> read_plain_graph_json(std::string_view text, std::size_t begin,
                                                                     const ReadOptions& options);

}  // namespace gpumem::summary

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/summary/impl/plain_graph_json_inl.hpp"
#endif
