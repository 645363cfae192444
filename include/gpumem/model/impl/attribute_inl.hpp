#pragma once

#include "gpumem/model/attribute.hpp"

namespace gpumem::model {

GPUMEM_INLINE const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Attribute& attribute : all_) {
    // Names of one length are many: their first bytes tell most of them apart without a call.
    const std::string& known = attribute.name;
    if (known.size() != name.size() || (!name.empty() && known.front() != name.front())) continue;
    if (known == name) return &attribute.value;
  }
  return nullptr;
}

GPUMEM_INLINE std::optional<std::int64_t> Attributes::integer(std::string_view name) const { return per_axis(name, 0); }

GPUMEM_INLINE bool Attributes::flag(std::string_view name, bool otherwise) const {
  const AttributeValue* value = find(name);
  const bool* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? otherwise : *flag;
}

GPUMEM_INLINE std::optional<std::int64_t> Attributes::per_axis(std::string_view name, std::size_t axis) const {
  const AttributeValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  const auto* list = std::get_if<std::vector<std::int64_t>>(value);
  if (list == nullptr || axis >= list->size()) return std::nullopt;
  return (*list)[axis];
}

}  // namespace gpumem::model
