// Input: the inputs and nodes of graph JSON (graph_json.hpp), one after the other, as a reader found them.
// Output: a GraphBuilder with their layers, in which names have become edges; or what is wrong with one of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

/// A container around a node: its name and its class.
using ScopeStep = std::pair<std::string_view, std::string_view>;

/// Everything a node may say. Views need to live only until it is added.
struct GraphNode {
  std::string_view name;
  std::string_view op;
  std::string_view class_name;
  std::vector<ScopeStep> scope;
  std::vector<core::Shape> outputs;
  std::vector<model::LayerIndex> inputs;
  std::vector<model::Attribute> attributes;
  std::optional<std::int64_t> parameters;
  std::int64_t tied_parameters = 0;
  bool frozen = false;
  bool returned = false;
  bool output_given = false;

  /// As new, but its lists keep their room.
  void clear();
};

/// "N", "64N" or "?" as a dimension; nothing for any other text.
[[nodiscard]] std::optional<core::Dim> dim_from_text(std::string_view text);

class NodeLinker {
 public:
  explicit NodeLinker(const ReadOptions& options);

  /// Makes room for the graph of a text of this many bytes.
  void reserve(std::size_t text_bytes);

  /// The layer or graph input of this name.
  [[nodiscard]] std::optional<model::LayerIndex> find(std::string_view name) const;

  /// Errors (without a place): malformed_input for a name that is taken.
  [[nodiscard]] core::Status add_input(model::GraphInput input);

  /// Takes the node's attributes. Errors (without a place): malformed_input, unknown_layer. What the builder refuses
  /// is an error of the builder's.
  [[nodiscard]] core::Status add_node(GraphNode& node, std::int64_t line);

  /// Whether a node was added, or tried.
  [[nodiscard]] bool has_nodes() const { return has_nodes_; }
  [[nodiscard]] model::GraphBuilder& builder() { return builder_; }

 private:
  struct Name {
    std::uint32_t hash = 0;
    model::LayerIndex index = kNoLayer;
  };
  static constexpr model::LayerIndex kNoLayer = INT32_MAX;

  [[nodiscard]] core::Status check(const GraphNode& node, const model::OpTraits* op);
  [[nodiscard]] std::string_view name_of(model::LayerIndex index) const;
  [[nodiscard]] std::size_t place_of(std::string_view name, std::uint32_t hash) const;
  [[nodiscard]] bool add_name(std::string_view name, model::LayerIndex index);
  void widen();
  void enter(const std::vector<ScopeStep>& scope);

  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<Name> names_;  ///< by hash, open addressing; the names themselves are in the graph
  std::size_t name_count_ = 0;
  std::vector<std::pair<std::string, std::string>> scopes_;
  std::optional<bool> outputs_given_;  ///< whether nodes have "output"; nothing before the first node
  bool has_nodes_ = false;
};

}  // namespace gpumem::summary
