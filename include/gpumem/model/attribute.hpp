// Input: what a summary says about a layer in addition to its shape (kernel_size=(3, 3), bias=False, ...).
// Output: named values. Their names are PyTorch's keywords, whatever the format was.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpumem/core/shape.hpp"

namespace gpumem::model {

/// A list of dimensions is one in which at least one grows with the batch size; others are lists of integers.
using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<core::Dim>>;

struct Attribute {
  std::string name;
  AttributeValue value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// A layer's attributes, read by name. Views the graph (or array) they come from.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::span<const Attribute> all) : all_(all) {}  // NOLINT: a view converts

  [[nodiscard]] std::span<const Attribute> all() const { return all_; }
  [[nodiscard]] const AttributeValue* find(std::string_view name) const;

  /// The value if it is there and an integer.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  /// The value if it is there and a boolean; `otherwise` if not.
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) const;
  /// Element `axis` of a list, or the integer that holds for every axis (kernel_size=3).
  [[nodiscard]] std::optional<std::int64_t> per_axis(std::string_view name, std::size_t axis) const;

 private:
  std::span<const Attribute> all_;
};

}  // namespace gpumem::model
