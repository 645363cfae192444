#pragma once

#include "gpumem/summary/graph_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "gpumem/summary/node_linker.hpp"

namespace gpumem::summary {

namespace graph_json_values_detail {

using Json = nlohmann::ordered_json;
using Kind = core::JsonValue::Kind;

using core::malformed;

GPUMEM_INLINE Json to_json(const core::JsonValue& value) {
  switch (value.kind()) {
    case Kind::boolean: return value.boolean();
    case Kind::integer: return value.integer();
    case Kind::beyond_int64: return value.unsigned_integer();
    case Kind::real: return value.real();
    case Kind::text: return std::string(value.text());
    case Kind::list: {
      Json list = Json::array();
      for (const core::JsonValue& item : value.items()) list.push_back(to_json(item));
      return list;
    }
    case Kind::object: {
      Json object = Json::object();
      for (const core::JsonValue& item : value.items()) object[std::string(item.key())] = to_json(item);
      return object;
    }
    default: return nullptr;
  }
}

GPUMEM_INLINE std::optional<std::vector<std::int64_t>> integers_from(const core::JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<std::int64_t> integers;
  integers.reserve(json.size());
  for (const core::JsonValue& item : json.items()) {
    if (!item.is(Kind::integer)) return std::nullopt;
    integers.push_back(item.integer());
  }
  return integers;
}

/// ["N", 3, -1]: what an op is told about the dimensions of its output, -1 where it keeps one.
GPUMEM_INLINE std::optional<std::vector<core::Dim>> dims_from(const core::JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<core::Dim> dims;
  for (const core::JsonValue& item : json.items()) {
    const core::Result<core::Dim> dim =
        item.is(-1) ? core::Result<core::Dim>(core::Dim::fixed(-1)) : dim_from_json(item);
    if (!dim || dim->kind == core::Dim::Kind::unknown) return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

}  // namespace graph_json_values_detail

GPUMEM_INLINE std::string shown(const core::JsonValue& value) {
  return core::quoted(graph_json_values_detail::to_json(value).dump(
      -1, ' ', false, graph_json_values_detail::Json::error_handler_t::replace));
}

GPUMEM_INLINE core::Result<core::Dim> dim_from_json(const core::JsonValue& json) {
  using graph_json_values_detail::Kind;
  using graph_json_values_detail::malformed;
  if (json.is(Kind::integer)) {
    const std::int64_t size = json.integer();
    if (size < 1) return malformed("a dimension is " + std::to_string(size) + "; it must be at least 1");
    return core::Dim::fixed(size);
  }
  if (json.is(Kind::text)) {
    if (const auto dim = dim_from_text(json.text())) return *dim;
  }
  return malformed("a dimension must be a size, \"N\", \"64N\" or \"?\", not " + shown(json));
}

GPUMEM_INLINE core::Result<core::Shape> shape_from_json(const core::JsonValue& json) {
  using graph_json_values_detail::Kind;
  using graph_json_values_detail::malformed;
  if (!json.is(Kind::list)) return malformed("a shape must be a list of dimensions");
  core::Shape shape;
  for (const core::JsonValue& item : json.items()) {
    const core::Result<core::Dim> dim = dim_from_json(item);
    if (!dim) return dim.error();
    if (!shape.push_back(*dim)) {
      return malformed("a shape has more than " + std::to_string(core::Shape::kMaxRank) + " dimensions");
    }
  }
  return shape;
}

GPUMEM_INLINE core::Result<model::AttributeValue> attribute_from_json(const core::JsonValue& json) {
  using graph_json_values_detail::Kind;
  using graph_json_values_detail::malformed;
  if (json.is(Kind::boolean)) return model::AttributeValue(json.boolean());
  if (json.is(Kind::text)) return model::AttributeValue(std::string(json.text()));
  if (json.is(Kind::integer)) return model::AttributeValue(json.integer());
  if (json.is(Kind::real)) return model::AttributeValue(json.real());
  if (auto integers = graph_json_values_detail::integers_from(json)) return model::AttributeValue(*std::move(integers));
  if (auto dims = graph_json_values_detail::dims_from(json)) return model::AttributeValue(*std::move(dims));
  return malformed("must be a boolean, number, text, list of integers or list of dimensions, not " + shown(json));
}

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
