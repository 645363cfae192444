// Input: the inputs and nodes of graph JSON (graph_json.hpp), one after the other, as a reader found them.
// Output: a GraphBuilder with their layers, in which names have become edges; or what is wrong with one of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/text.hpp"

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

namespace node_linker_detail {

using core::malformed;

inline std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

}  // namespace node_linker_detail

inline void GraphNode::clear() {
  name = op = class_name = {};
  parameters.reset();
  tied_parameters = 0;
  frozen = returned = output_given = false;
  scope.clear();
  outputs.clear();
  inputs.clear();
  attributes.clear();
}

inline std::optional<core::Dim> dim_from_text(std::string_view text) {
  if (text == "?") return core::Dim::unknown();
  if (text == "N") return core::Dim::batch();
  std::size_t at = 0;
  const auto factor = read_digits(text, at);
  if (at > 0 && text.substr(at) == "N" && factor && *factor > 0) return core::Dim::batch(*factor);
  return std::nullopt;
}

inline NodeLinker::NodeLinker(const ReadOptions& options) : options_(options), builder_("graph_json", options.file) {}

inline void NodeLinker::reserve(std::size_t text_bytes) {
  // As graphs of convolutional networks are printed; others grow.
  constexpr std::size_t kBytesOfNode = 160;
  constexpr std::size_t kBytesOfAttribute = 72;
  builder_.reserve(text_bytes / kBytesOfNode, text_bytes / kBytesOfAttribute);
}

// --- Names ------------------------------------------------------------------------------------------------------

inline std::string_view NodeLinker::name_of(model::LayerIndex index) const {
  const model::ModelGraph& graph = builder_.graph();
  if (index >= 0) return graph.name(graph.layers()[static_cast<std::size_t>(index)]);
  return graph.graph_inputs()[static_cast<std::size_t>(model::kFirstGraphInput - index)].name;
}

/// Where the name is in the table, or the free place where it belongs.
inline std::size_t NodeLinker::place_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = names_.size() - 1;
  std::size_t at = hash & mask;
  while (names_[at].index != kNoLayer && (names_[at].hash != hash || name_of(names_[at].index) != name)) {
    at = (at + 1) & mask;
  }
  return at;
}

inline std::optional<model::LayerIndex> NodeLinker::find(std::string_view name) const {
  if (names_.empty()) return std::nullopt;
  const model::ModelGraph& graph = builder_.graph();
  // Most nodes read the one before them.
  const bool unique = !graph.edges_inferred() && !graph.layers().empty();
  if (unique && graph.name(graph.layers().back()) == name) {
    return static_cast<model::LayerIndex>(graph.layers().size() - 1);
  }
  const model::LayerIndex index = names_[place_of(name, node_linker_detail::hash_of(name))].index;
  return index == kNoLayer ? std::nullopt : std::optional(index);
}

inline void NodeLinker::widen() {
  constexpr std::size_t kFewest = 64;
  std::vector<Name> old(names_.empty() ? kFewest : 2 * names_.size());
  old.swap(names_);
  const std::size_t mask = names_.size() - 1;
  for (const Name& name : old) {
    if (name.index == kNoLayer) continue;
    std::size_t at = name.hash & mask;
    while (names_[at].index != kNoLayer) at = (at + 1) & mask;
    names_[at] = name;
  }
}

/// False if the name is taken. The layer or input of this index is in the graph already.
inline bool NodeLinker::add_name(std::string_view name, model::LayerIndex index) {
  if (2 * name_count_ >= names_.size()) widen();
  const std::uint32_t hash = node_linker_detail::hash_of(name);
  Name& place = names_[place_of(name, hash)];
  if (place.index != kNoLayer) return false;
  place = {hash, index};
  ++name_count_;
  return true;
}

// --- Inputs and nodes -------------------------------------------------------------------------------------------

inline core::Status NodeLinker::add_input(model::GraphInput input) {
  const std::string name = input.name;
  const auto earlier = static_cast<model::LayerIndex>(builder_.graph().graph_inputs().size());
  builder_.add_input(std::move(input));
  if (!add_name(name, model::kFirstGraphInput - earlier)) {
    return node_linker_detail::malformed("the name " + core::quoted(name) + " is taken");
  }
  return core::Done{};
}

/// What is wrong with the node whatever layers it reads.
inline core::Status NodeLinker::check(const GraphNode& node, const model::OpTraits* op) {
  using node_linker_detail::malformed;
  if (op == nullptr && node.op != model::kUnknownOp && !options_.lenient) {
    return core::Error{core::ErrorCode::unknown_layer,
                       "node " + core::quoted(node.name) + " has the unknown op " + core::quoted(node.op) +
                           "; lenient reading (`lenient`) estimates a lower bound",
                       {}};
  }
  const bool parameter = node.op == model::kParameterOp;
  const bool reads_nothing = parameter || node.op == model::kConstantOp;
  if (node.inputs.empty() && !builder_.graph().edges_inferred() && !reads_nothing) {
    return malformed("node " + core::quoted(node.name) +
                     " has no \"inputs\"; name them, or say \"edges\": \"inferred\" before \"nodes\"");
  }
  if (parameter) return core::Done{};
  // A shape that is missing among printed ones would count as no activation at all.
  if (outputs_given_.value_or(node.output_given) != node.output_given) {
    return malformed("node " + core::quoted(node.name) +
                     (node.output_given ? " has an \"output\", which nodes before it have not"
                                        : " has no \"output\", which nodes before it have") +
                     "; give it for all nodes ([] for one that never runs) or for none");
  }
  outputs_given_ = node.output_given;
  return core::Done{};
}

inline core::Status NodeLinker::add_node(GraphNode& node, std::int64_t line) {
  using node_linker_detail::malformed;
  has_nodes_ = true;
  if (node.name.empty() || node.op.empty()) return malformed("a node needs a name and an op");
  const model::OpTraits* op = options_.vocabulary->find_op(node.op);
  if (core::Status fit = check(node, op); !fit) return fit;
  if (op == nullptr && !node.parameters) node.parameters = 0;
  enter(node.scope);
  const model::LayerIndex index = builder_.add({.name = node.name,
                                                .class_name = node.class_name,
                                                .op = op,
                                                .outputs = node.outputs,
                                                .inputs = node.inputs,
                                                .parameters = node.parameters,
                                                .tied_parameters = node.tied_parameters,
                                                .frozen = node.frozen,
                                                .returned = node.returned,
                                                .line = line},
                                               std::move(node.attributes));
  if (builder_.failed()) return core::Done{};
  // Names need to be unique only where edges are looked up by them.
  if (!add_name(node.name, index) && !builder_.graph().edges_inferred()) {
    return malformed("the name " + core::quoted(node.name) + " is taken");
  }
  return core::Done{};
}

/// Closes and opens containers until those that the node names are open.
inline void NodeLinker::enter(const std::vector<ScopeStep>& scope) {
  std::size_t same = 0;
  while (same < scope.size() && same < scopes_.size() && scope[same] == ScopeStep(scopes_[same])) ++same;
  for (; scopes_.size() > same; scopes_.pop_back()) builder_.close_scope();
  for (; scopes_.size() < scope.size(); scopes_.emplace_back(scope[scopes_.size()])) {
    builder_.open_scope(scope[scopes_.size()].first, scope[scopes_.size()].second);
  }
}

}  // namespace gpumem::summary
