// BlockRule: what a table shows of a block: where its rows begin, where torchsummary prints a container after its parts
// and not what it holds, and how the rows are joined. A rule without calls of its own leaves these to the forward() of
// the class (architectures/printed_module.hpp), as a tree does. Rows of a class without a rule follow each other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "gpumem/connect/wiring.hpp"

namespace gpumem::connect {

/// Rows of torchsummary before the row of a container that holds the last of them.
struct OpenRows {
  const model::ModelGraph& graph;
  const Containers& containers;
  std::span<const Part> parts;          ///< layers, and containers that ended before
  std::span<const core::Shape> shapes;  ///< what each part reads, and last what the last one leaves
  std::size_t after_block = 0;          ///< the first part after the last container of the same rule
  bool any_block = false;               ///< there is such a container

  [[nodiscard]] std::string_view op(std::size_t part) const {
    return parts[part].container ? std::string_view() : graph.op(graph.layers()[parts[part].index]);
  }
  /// The class of a container.
  [[nodiscard]] std::string_view class_name(std::size_t part) const {
    return parts[part].container ? containers[parts[part].index].class_name : std::string_view();
  }
  /// The first of the last `count` parts, where there are as many.
  [[nodiscard]] std::optional<std::size_t> last(std::size_t count) const {
    return parts.size() < count ? std::nullopt : std::optional(parts.size() - count);
  }
};

struct BlockRule {
  std::span<const std::string_view> classes;
  /// The part that the container begins with; null: torchsummary's row of it is not looked at.
  std::optional<std::size_t> (*begin)(const OpenRows& rows) = nullptr;
  /// Null: the forward() of the class.
  CallContainer call = nullptr;
};

// The list of blocks that gpumem finds in tables. To add one: a row in block_rules_inl.hpp.

/// The rule for containers of this class; null if there is none.
[[nodiscard]] const BlockRule* find_block_rule(std::string_view class_name);

/// What calls the rows of a container of this class; null: they follow each other.
[[nodiscard]] CallContainer rows_of(std::string_view class_name);

}  // namespace gpumem::connect
