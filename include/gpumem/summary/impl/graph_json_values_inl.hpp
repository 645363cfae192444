#pragma once

#include "gpumem/summary/graph_json_values.hpp"

#include <nlohmann/json.hpp>
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

}  // namespace gpumem::summary
