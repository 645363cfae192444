// BlockRule: how containers of some classes are wired inside, that is, which of their parts read the container's input,
// and what joins the parts.
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
};

struct BlockRule {
  std::span<const std::string_view> classes;
  WireContainer wire = nullptr;
  /// The part that the container begins with; nothing: its row is not looked at.
  std::optional<std::size_t> (*begin)(const OpenRows& rows) = nullptr;
};

// The list of blocks that gpumem can wire. To add one: a row in its family's file, or a new file here and a row in the
// list of block_rules_inl.hpp.

/// The rule for containers of this class; null if there is none.
[[nodiscard]] const BlockRule* find_block_rule(std::string_view class_name);

}  // namespace gpumem::connect
