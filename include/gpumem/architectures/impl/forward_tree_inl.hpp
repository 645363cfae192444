// Calls are those of a printed tree: each has a module there, and each module with parameters is called.
#pragma once

#include "gpumem/architectures/forward.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "gpumem/architectures/module_tree.hpp"

namespace gpumem::architectures {

/// A bare parameter is printed as a layer of its container, without a name; as the container, where that has nothing
/// else; or as a table of its own ("position_embedding" of CLIP).
GPUMEM_INLINE void Forward::call_parameter(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  const std::string module = path_of({});
  std::string table = path_of(name);
  if (table.ends_with(kWeight)) table.resize(table.size() - kWeight.size());
  for (const std::string& path : {module + ".", module, table}) {
    if (const auto at = tree_->layer(path)) called_[*at] = true;
  }
}

GPUMEM_INLINE bool Forward::call_around(std::string_view name) {
  std::string path = path_of(name);
  for (std::size_t dot = path.rfind('.'); dot != std::string::npos; dot = path.rfind('.')) {
    path.resize(dot);
    const std::string& attention = path;
    if (tree_->class_of(attention) != "MultiheadAttention") continue;
    const auto at = tree_->layer(attention) ? tree_->layer(attention) : tree_->layer(attention + ".");
    if (at) return called_[*at] = true;
  }
  return false;
}

GPUMEM_INLINE void Forward::check_printed(const model::Layer* layer, std::string_view name, const model::OpTraits& op,
                                          std::span<const model::Attribute> attributes) {
  if (op.name == model::kParameterOp) return call_parameter(name);
  const model::ModelGraph& graph = tree_->graph();
  if (layer != nullptr) called_[static_cast<std::size_t>(layer - graph.layers().data())] = true;
  if (op.parameters == nullptr) return;
  const std::optional<core::Checked> held = op.parameters(model::Attributes(attributes));
  const std::int64_t counted = held ? held->value().value_or(-1) : -1;
  if (counted != 0 && call_around(name) && layer == nullptr) return;
  if (layer == nullptr && counted != 0) {
    builder_.fail({core::ErrorCode::missing_information,
                   "has no module " + core::quoted(path_of(name)) +
                       ", which the code of its class calls; graph JSON says what " + "it computes",
                   {graph.file(), 0, std::string(tree_->class_name())}});
  }
  // Norms do not print whether they have a bias, and a class without a rule is counted by its printed sizes.
  const bool counts = op.norm == model::NormKind::none;
  const bool unknown = layer != nullptr && (graph.op(*layer) == model::kOpaqueOp || graph.op_traits(*layer) == nullptr);
  if (layer == nullptr || counted == layer->parameters || !counts || unknown) return;
  builder_.fail({core::ErrorCode::missing_information,
                 "holds " + core::with_separators(layer->parameters) + " parameters where the code of its model's " +
                     "class makes " + core::with_separators(counted) + "; graph JSON says what it computes",
                 {graph.file(), layer->line, path_of(name)}});
}

GPUMEM_INLINE void Forward::check_all_called() {
  if (tree_ == nullptr) return;
  for (const std::uint32_t index : tree_->layers()) {
    const model::Layer& layer = tree_->graph().layers()[index];
    if (called_[index] || layer.parameters == layer.tied_parameters) continue;
    // A norm that prints nothing may have no weight; its width is a guess.
    const model::OpTraits* const op = tree_->graph().op_traits(layer);
    const bool bare = op != nullptr && op->norm == model::NormKind::rms;
    if (bare && tree_->graph().attributes(layer).find("eps") == nullptr) continue;
    builder_.fail({core::ErrorCode::missing_information,
                   "holds parameters, and the code of its model's class has no such module; graph JSON says what it "
                   "reads",
                   {tree_->graph().file(), layer.line, tree_->graph().path(layer)}});
    return;
  }
}

}  // namespace gpumem::architectures
