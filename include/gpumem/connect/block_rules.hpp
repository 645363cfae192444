// BlockRule: how containers of some classes are wired inside, that is, which of their parts read the container's input,
// and what joins the parts. These are blocks of convolutional nets, chains with shortcuts or branches, also in tables
// whose rows have no names. Where a class's forward() does more than that (tokens, windows, attention), it is an
// architecture's (architectures/printed_module.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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

/// The parts of a container by name, as forward() calls them. A part that is not there hands its input through.
class Calls {
 public:
  Calls(Wiring& wiring, const Container& container) : wiring_(wiring), container_(container) {}

  Tensor operator()(std::string_view name, Tensor input) const {
    const auto part = wiring_.child(container_, name);
    return part ? wiring_.call(*part, input) : input;
  }
  [[nodiscard]] bool has(std::string_view name) const { return wiring_.child(container_, name).has_value(); }
  [[nodiscard]] bool has_any(std::span<const std::string_view> names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return has(name); });
  }

 private:
  Wiring& wiring_;
  const Container& container_;
};

namespace blocks_detail {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t fixed(const core::Shape& shape, std::size_t axis) {
  return axis < shape.rank() && shape[axis].kind == core::Dim::Kind::fixed ? shape[axis].size : 0;
}

inline Tensor reshaped(Wiring& wiring, Tensor tensor, Sizes shape) {
  return wiring.operation("reshape", {&tensor, 1}, {{"shape", std::move(shape)}});
}

/// Elements [start, start + length) of the last axis: a part of a packed projection.
inline std::vector<Tensor> parts_of(Wiring& wiring, Tensor packed, std::int64_t count, std::size_t axis) {
  const std::int64_t width = fixed(wiring.shape(packed), axis) / count;
  const auto dim = static_cast<std::int64_t>(axis);
  const Tensor split =
      wiring.operation("split", {&packed, 1}, {{"sizes", Sizes(static_cast<std::size_t>(count), width)}, {"dim", dim}});
  std::vector<Tensor> parts;
  for (std::int64_t part = 0; part < count; ++part) {
    parts.push_back(wiring.operation("item", {&split, 1}, {{"dim", dim}, {"start", part * width}, {"length", width}}));
  }
  return parts;
}

}  // namespace blocks_detail

// The list of blocks that gpumem can wire. To add one: a row in its family's file, or a new file here and a row in the
// list of block_rules_inl.hpp.

/// The rule for containers of this class; null if there is none.
[[nodiscard]] const BlockRule* find_block_rule(std::string_view class_name);

}  // namespace gpumem::connect
