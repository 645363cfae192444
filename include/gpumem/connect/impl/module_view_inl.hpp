#pragma once

#include <algorithm>

#include "gpumem/connect/module_view.hpp"

namespace gpumem::connect {

GPUMEM_INLINE ModuleIndex::ModuleIndex(const model::ModelGraph& graph) : graph_(&graph) {
  const std::size_t scopes = graph.scopes();
  scopes_.resize(scopes);
  layers_.resize(scopes);
  for (std::uint32_t scope = 1; scope < scopes; ++scope) scopes_[graph.scope(scope).parent].push_back(scope);
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    layers_[graph.layers()[index].scope].push_back(index);
  }
}

GPUMEM_INLINE std::span<const std::uint32_t> ModuleIndex::scopes_in(std::uint32_t scope) const {
  return scopes_[scope];
}

GPUMEM_INLINE std::span<const std::uint32_t> ModuleIndex::layers_in(std::uint32_t scope) const {
  return layers_[scope];
}

GPUMEM_INLINE std::optional<std::uint32_t> ModuleIndex::find_class(std::string_view class_name) const {
  for (std::uint32_t scope = 0; scope < scopes_.size(); ++scope) {
    if (graph_->class_names()[graph_->scope(scope).class_name] == class_name) return scope;
  }
  return std::nullopt;
}

GPUMEM_INLINE std::string_view Module::name() const { return index_->graph().scope_name(scope_); }

GPUMEM_INLINE std::string_view Module::class_name() const {
  return index_->graph().class_names()[index_->graph().scope(scope_).class_name];
}

GPUMEM_INLINE Module Module::child(std::string_view name) const {
  Module result = *this;
  if (!found()) {
    result.missing_ += "." + std::string(name);
    return result;
  }
  for (const std::uint32_t scope : index_->scopes_in(scope_)) {
    if (index_->graph().scope_name(scope) != name) continue;
    result.scope_ = scope;
    return result;
  }
  result.missing_ = std::string(name);
  return result;
}

GPUMEM_INLINE bool Module::has_child(std::string_view name) const { return child(name).found(); }

GPUMEM_INLINE std::vector<Module> Module::children() const {
  std::vector<Module> all;
  if (!found()) return all;
  for (const std::uint32_t scope : index_->scopes_in(scope_)) all.emplace_back(*index_, scope);
  return all;
}

GPUMEM_INLINE std::span<const std::uint32_t> Module::layers() const {
  return found() ? index_->layers_in(scope_) : std::span<const std::uint32_t>();
}

GPUMEM_INLINE std::optional<std::uint32_t> Module::layer(std::string_view name) const {
  const auto all = layers();
  const auto named = [&](std::uint32_t index) { return index_->graph().name(index_->graph().layers()[index]) == name; };
  const auto found_at = std::find_if(all.begin(), all.end(), named);
  return found_at == all.end() ? std::nullopt : std::optional(*found_at);
}

GPUMEM_INLINE bool Module::tied(std::string_view layer_name) const {
  const auto index = layer(layer_name);
  return index && index_->graph().layers()[*index].tied_parameters > 0;
}

GPUMEM_INLINE std::optional<std::int64_t> Module::integer(std::string_view layer_name,
                                                          std::string_view attribute) const {
  const auto index = layer(layer_name);
  if (!index) return std::nullopt;
  return index_->graph().attributes(index_->graph().layers()[*index]).per_axis(attribute, 0);
}

GPUMEM_INLINE std::optional<Module> find_model(const ModuleIndex& index, std::span<const std::string_view> classes) {
  for (const std::string_view name : classes) {
    if (const auto scope = index.find_class(name)) return Module(index, *scope);
  }
  return std::nullopt;
}

GPUMEM_INLINE bool holds_class(const model::ModelGraph& graph, std::span<const std::string_view> classes) {
  const bool tree = graph.format() == "module_tree" || graph.format() == "graph_json";
  if (!tree || graph.shapes_printed()) return false;
  std::vector<bool> wanted;  // by class name; a layer's class is in the list, too, and is not a container
  for (const std::string& name : graph.class_names()) {
    wanted.push_back(std::find(classes.begin(), classes.end(), name) != classes.end());
  }
  for (std::uint32_t scope = 0; scope < graph.scopes(); ++scope) {
    if (wanted[graph.scope(scope).class_name]) return true;
  }
  return false;
}

}  // namespace gpumem::connect
