// Input: text.
// Output: the type Format of a summary format: a name, a way to find its beginning in a text, and a way to read it from
// there.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/read_options.hpp"

namespace gpumem::summary {

struct Format {
  std::string_view name;
  std::string_view description;  ///< how a user gets one
  /// The offset at which a summary of this format begins, at `from` or behind it; nothing if there is none.
  std::optional<std::size_t> (*sniff)(std::string_view text, std::size_t from);
  /// Reads the summary that begins at `begin`, as found by sniff. Text before and behind it is prose.
  core::Result<model::ModelGraph> (*parse)(std::string_view text, std::size_t begin, const ReadOptions& options);
};

}  // namespace gpumem::summary
