#pragma once

#include "gpumem/summary/graph_json_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace gpumem::summary {

namespace graph_json_writer_detail {

using Json = nlohmann::ordered_json;

/// One line; bytes that are not UTF-8, which a program's own names may hold, are replaced.
GPUMEM_INLINE std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

GPUMEM_INLINE Json to_json(const core::Dim& dim) {
  return dim.kind == core::Dim::Kind::fixed ? Json(dim.size) : Json(core::to_string(dim));
}

GPUMEM_INLINE Json to_json(const core::Shape& shape) {
  Json json = Json::array();
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) json.push_back(to_json(shape[axis]));
  return json;
}

GPUMEM_INLINE Json to_json(const model::AttributeValue& value) {
  const auto written = [](const auto& plain) {
    if constexpr (std::is_same_v<decltype(plain), const std::vector<core::Dim>&>) {
      Json json = Json::array();
      for (const core::Dim& dim : plain) json.push_back(to_json(dim));
      return json;
    } else {
      return Json(plain);
    }
  };
  return std::visit(written, value);
}

class Writer {
 public:
  explicit Writer(const model::ModelGraph& graph) : graph_(graph) {
    for (const model::GraphInput& input : graph.graph_inputs()) {
      inputs_.push_back(unique(input.name.empty() ? "input" : input.name));
    }
    for (const model::Layer& layer : graph.layers()) {
      // Containers' own parameters have no name of their own.
      const std::string_view own = graph.name(layer);
      const std::string name(own.empty() ? graph.class_name(layer) : own);
      // Only edges look names up.
      names_.push_back(graph.edges_inferred() ? name : unique(name));
    }
    name_scopes();
  }

  [[nodiscard]] std::string write() const {
    std::string text = "{\"format\": \"gpumem-graph\", \"version\": 1,\n";
    if (graph_.edges_inferred()) text += " \"edges\": \"inferred\",\n";
    if (graph_.printed_outputs()) text += " \"printed_outputs\": " + std::to_string(*graph_.printed_outputs()) + ",\n";
    text += " \"inputs\": " + line_of(inputs()) + ",\n \"nodes\": [";
    const char* separator = "\n  ";
    for (std::size_t index = 0; index < names_.size(); ++index) {
      text += separator + line_of(node(index));
      separator = ",\n  ";
    }
    return text + "\n ]}\n";
  }

 private:
  /// The name of a container, and which one of its parent's children of that name it is. A tree prints twelve blocks
  /// under one name, "0-11": written so, the reader would take them for one.
  void name_scopes() {
    std::map<std::pair<std::uint32_t, std::string_view>, std::int64_t> seen;
    for (std::uint32_t at = 0; at < graph_.scopes(); ++at) {
      const std::string_view name = graph_.scope_name(at);
      std::int64_t first = 0;
      const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), first);
      const bool many = failed == std::errc() && first >= 0 && end != name.data() + name.size() && *end == '-';
      const std::int64_t before = many ? seen[{graph_.scope(at).parent, name}]++ : 0;
      scope_names_.push_back(many && first <= INT32_MAX ? std::to_string(first + before) : std::string(name));
    }
  }

  std::string unique(const std::string& name) {
    std::string candidate = name;
    while (!copies_.try_emplace(candidate, 1).second) candidate = name + "#" + std::to_string(++copies_[name]);
    return candidate;
  }

  [[nodiscard]] Json inputs() const {
    Json json = Json::array();
    for (std::size_t index = 0; index < inputs_.size(); ++index) {
      const model::GraphInput& input = graph_.graph_inputs()[index];
      json.push_back({{"name", inputs_[index]},
                      {"shape", to_json(input.shape)},
                      {"dtype", std::string(core::to_string(input.dtype))}});
    }
    return json;
  }

  [[nodiscard]] const std::string& name_of(model::LayerIndex edge) const {
    if (edge >= 0) return names_[static_cast<std::size_t>(edge)];
    return inputs_[static_cast<std::size_t>(model::kFirstGraphInput - edge)];
  }

  [[nodiscard]] Json scope(const model::Layer& layer) const {
    Json json = Json::array();
    for (std::uint32_t at = layer.scope; at != 0; at = graph_.scope(at).parent) {
      json.push_back({scope_names_[at], graph_.class_names()[graph_.scope(at).class_name]});
    }
    std::reverse(json.begin(), json.end());
    return json;
  }

  [[nodiscard]] Json node(std::size_t index) const {
    const model::Layer& layer = graph_.layers()[index];
    Json json = {{"name", names_[index]}, {"op", graph_.op(layer)}};
    if (graph_.class_name(layer) != graph_.op(layer)) json["class"] = graph_.class_name(layer);
    if (layer.scope != 0) json["scope"] = scope(layer);
    for (const model::LayerIndex edge : graph_.inputs(layer)) json["inputs"].push_back(name_of(edge));
    const auto attributes = graph_.attributes(layer);
    for (const model::Attribute& attribute : attributes.all()) {
      const auto* real = std::get_if<double>(&attribute.value);
      if (real != nullptr && !std::isfinite(*real)) continue;
      json["attrs"][attribute.name] = to_json(attribute.value);
    }
    if (graph_.shapes_printed()) json["output"] = output(layer);
    json["parameters"] = layer.parameters;
    if (layer.tied_parameters > 0) json["tied_parameters"] = layer.tied_parameters;
    if (layer.frozen) json["frozen"] = true;
    if (layer.returned) json["returned"] = true;
    return json;
  }

  /// One shape needs no list, unless it is a scalar's, which would read as no shape at all.
  [[nodiscard]] Json output(const model::Layer& layer) const {
    const auto shapes = graph_.outputs(layer);
    if (shapes.size() == 1 && shapes[0].rank() > 0) return to_json(shapes[0]);
    Json json = Json::array();
    for (const core::Shape& shape : shapes) json.push_back(to_json(shape));
    return json;
  }

  const model::ModelGraph& graph_;
  std::vector<std::string> inputs_;
  std::vector<std::string> scope_names_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> copies_;  ///< names given out, and how often each was asked for
};

}  // namespace graph_json_writer_detail

GPUMEM_INLINE std::string to_graph_json(const model::ModelGraph& graph) {
  return graph_json_writer_detail::Writer(graph).write();
}

}  // namespace gpumem::summary
