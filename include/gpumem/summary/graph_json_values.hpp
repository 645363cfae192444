// Input: values of graph JSON (graph_json.hpp) from the full parser.
// Output: dimensions, shapes and attributes, or what is wrong with a value. Errors (without a place): malformed_input.
#pragma once

#include <string>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::summary {

/// A value as a message shows it, whatever bytes it holds.
[[nodiscard]] std::string shown(const core::JsonValue& value);

/// "N", "64N", "?" or a positive number.
[[nodiscard]] core::Result<core::Dim> dim_from_json(const core::JsonValue& json);

[[nodiscard]] core::Result<core::Shape> shape_from_json(const core::JsonValue& json);

/// A boolean, a number, a text, a list of integers; or of dimensions, as an op is told those of its output, -1 where it
/// keeps one.
[[nodiscard]] core::Result<model::AttributeValue> attribute_from_json(const core::JsonValue& json);

}  // namespace gpumem::summary
