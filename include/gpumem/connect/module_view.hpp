// Input: a graph without edges.
// Output: its containers as a tree. Family rules walk it by the names that the models' own code uses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::connect {

/// The children of every container of a graph, which it views.
class ModuleIndex {
 public:
  explicit ModuleIndex(const model::ModelGraph& graph);

  [[nodiscard]] const model::ModelGraph& graph() const { return *graph_; }
  [[nodiscard]] std::span<const std::uint32_t> scopes_in(std::uint32_t scope) const;
  [[nodiscard]] std::span<const std::uint32_t> layers_in(std::uint32_t scope) const;
  /// The first container of this class, in the order of the tree.
  [[nodiscard]] std::optional<std::uint32_t> find_class(std::string_view class_name) const;

 private:
  const model::ModelGraph* graph_;
  std::vector<std::vector<std::uint32_t>> scopes_;
  std::vector<std::vector<std::uint32_t>> layers_;
};

/// A container, or the name under which one was looked for and not found.
class Module {
 public:
  Module(const ModuleIndex& index, std::uint32_t scope) : index_(&index), scope_(scope) {}

  [[nodiscard]] bool found() const { return missing_.empty(); }
  /// "transformer.h.attn" of what is not there.
  [[nodiscard]] const std::string& missing() const { return missing_; }

  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view class_name() const;
  [[nodiscard]] Module child(std::string_view name) const;
  [[nodiscard]] bool has_child(std::string_view name) const;
  [[nodiscard]] std::vector<Module> children() const;
  /// The layer of that name, as an index into the graph's layers.
  [[nodiscard]] std::optional<std::uint32_t> layer(std::string_view name) const;
  [[nodiscard]] bool has_layer(std::string_view name) const { return layer(name).has_value(); }
  [[nodiscard]] std::span<const std::uint32_t> layers() const;
  /// Whether an earlier layer holds this one's parameters, or some of them.
  [[nodiscard]] bool tied(std::string_view layer) const;
  /// An integer that the layer of that name prints.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view layer, std::string_view attribute) const;

 private:
  const ModuleIndex* index_;
  std::uint32_t scope_;
  std::string missing_;
};

/// The model's own container: the first of one of these classes, whatever wraps it.
[[nodiscard]] std::optional<Module> find_model(const ModuleIndex& index, std::span<const std::string_view> classes);

/// Whether the graph is a tree of named modules, and one of them is of one of these classes. (Rows of tables have class
/// names too, but not the names that the models' code has for them.)
[[nodiscard]] bool holds_class(const model::ModelGraph& graph, std::span<const std::string_view> classes);

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/module_view_inl.hpp"
#endif
