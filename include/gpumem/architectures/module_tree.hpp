// Input: a graph without edges, read from a printed module tree.
// Output: its modules by path, as the model's own code names them: "layers.0.self_attn.q_proj". A repeated module
// ("(0-15): 16 x Block") is found under each of its numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::architectures {

/// A layer of a tree, or one of its containers.
struct Part {
  std::uint32_t index = 0;
  bool container = false;
};

/// Views the graph, which must outlive it.
class ModuleTree {
 public:
  /// The part of the graph that is in the container `root`.
  ModuleTree(const model::ModelGraph& graph, std::uint32_t root);

  [[nodiscard]] const model::ModelGraph& graph() const { return *graph_; }
  /// The class that the root prints: "LlamaForCausalLM".
  [[nodiscard]] std::string_view class_name() const { return graph_->class_name(graph_->scope(root_)); }
  /// The layer of this path, as an index into the graph's layers.
  [[nodiscard]] std::optional<std::uint32_t> layer(std::string_view path) const { return find(layers_, path); }
  /// Whether there is a layer or a container of this path.
  [[nodiscard]] bool has(std::string_view path) const {
    return find(layers_, path).has_value() || find(scopes_, path).has_value();
  }
  /// How many modules are directly in the container of this path; 0 if there is none.
  [[nodiscard]] std::int64_t count(std::string_view path) const;
  /// A whole number that the layer prints; of a list the first.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path, std::string_view attribute) const;
  [[nodiscard]] std::optional<bool> flag(std::string_view path, std::string_view attribute) const;
  [[nodiscard]] std::optional<double> number(std::string_view path, std::string_view attribute) const;
  /// Whether a linear layer shares an embedding's weight.
  [[nodiscard]] bool has_tied_head() const;
  /// The graph's layers within the root, in their order.
  [[nodiscard]] const std::vector<std::uint32_t>& layers() const { return inside_; }

 private:
  using Paths = std::unordered_map<std::string, std::uint32_t>;
  static std::optional<std::uint32_t> find(const Paths& paths, std::string_view path) {
    const auto found = paths.find(std::string(path));
    return found == paths.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::optional<model::Attributes> attributes(std::string_view path) const;
  void name_scopes();

  const model::ModelGraph* graph_;
  std::uint32_t root_;
  Paths scopes_;
  Paths layers_;
  std::vector<std::string> scope_paths_;  ///< by scope of the graph; only those within the root
  std::vector<std::int64_t> children_;    ///< by scope of the graph
  std::vector<std::uint32_t> inside_;
};

namespace module_tree_detail {

inline bool is_numbered(std::string_view name) { return !name.empty() && name.front() >= '0' && name.front() <= '9'; }

inline std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

}  // namespace module_tree_detail

inline ModuleTree::ModuleTree(const model::ModelGraph& graph, std::uint32_t root)
    : graph_(&graph), root_(root), scope_paths_(graph.scopes()), children_(graph.scopes(), 0) {
  name_scopes();
}

/// Scopes and layers are numbered in the order of the tree, so one pass over both finds which child each is.
inline void ModuleTree::name_scopes() {
  namespace detail = module_tree_detail;
  std::uint32_t next_scope = root_ + 1;
  const auto child_of = [&](std::uint32_t parent, std::string_view name) {
    const std::int64_t number = children_[parent]++;
    return detail::joined(scope_paths_[parent], detail::is_numbered(name) ? std::to_string(number) : std::string(name));
  };
  const auto open_up_to = [&](std::uint32_t last) {
    for (; next_scope <= last && graph_->within(next_scope, root_); ++next_scope) {
      scope_paths_[next_scope] = child_of(graph_->scope(next_scope).parent, graph_->scope_name(next_scope));
      scopes_.emplace(scope_paths_[next_scope], next_scope);
    }
  };
  for (std::uint32_t index = 0; index < graph_->layers().size(); ++index) {
    const model::Layer& layer = graph_->layers()[index];
    if (!graph_->within(layer.scope, root_)) continue;
    open_up_to(layer.scope);
    const std::string_view name = graph_->name(layer);
    // A layer without a name is what the container itself holds.
    const std::string path = name.empty() ? scope_paths_[layer.scope] + "." : child_of(layer.scope, name);
    layers_.emplace(path, index);
    inside_.push_back(index);
  }
  if (graph_->scopes() > 0) open_up_to(static_cast<std::uint32_t>(graph_->scopes() - 1));
}

inline std::int64_t ModuleTree::count(std::string_view path) const {
  const auto at = path.empty() ? std::optional(root_) : find(scopes_, path);
  return at ? children_[*at] : 0;
}

inline std::optional<model::Attributes> ModuleTree::attributes(std::string_view path) const {
  const auto at = find(layers_, path);
  return at ? std::optional(graph_->attributes(graph_->layers()[*at])) : std::nullopt;
}

inline std::optional<std::int64_t> ModuleTree::integer(std::string_view path, std::string_view attribute) const {
  const auto all = attributes(path);
  return all ? all->per_axis(attribute, 0) : std::nullopt;
}

inline std::optional<bool> ModuleTree::flag(std::string_view path, std::string_view attribute) const {
  const auto all = attributes(path);
  if (!all || all->find(attribute) == nullptr) return std::nullopt;
  return all->flag(attribute, false);
}

inline std::optional<double> ModuleTree::number(std::string_view path, std::string_view attribute) const {
  const auto all = attributes(path);
  const model::AttributeValue* value = all ? all->find(attribute) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  const auto whole = all->integer(attribute);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

inline bool ModuleTree::has_tied_head() const {
  for (const std::uint32_t index : inside_) {
    const model::Layer& layer = graph_->layers()[index];
    if (layer.tied_parameters > 0 && graph_->op(layer) == "linear") return true;
  }
  return false;
}

}  // namespace gpumem::architectures
