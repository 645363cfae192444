#pragma once

#include "gpumem/model/op_traits.hpp"

#include <utility>

namespace gpumem::model {

GPUMEM_INLINE Vocabulary::Vocabulary(std::span<const OpTraits* const> ops) {
  for (const OpTraits* op : ops) {
    ops_.emplace(op->name, op);
    for (const std::string_view name : op->torch_classes) torch_.emplace(name, op);
    for (const std::string_view name : op->cut_classes) cut_.emplace(name, op);
    for (const std::string_view name : op->tree_classes) tree_.emplace(name, op);
    for (const std::string_view name : op->keras_classes) keras_.emplace(name, op);
    for (const std::string_view ending : op->torch_endings) torch_endings_.emplace_back(ending, op);
  }
}

GPUMEM_INLINE const OpTraits* Vocabulary::find_torch(std::string_view class_name) const {
  if (const OpTraits* op = find(torch_, class_name)) return op;
  constexpr std::string_view kParametrized = "Parametrized";
  if (class_name.starts_with(kParametrized)) return find(torch_, class_name.substr(kParametrized.size()));
  for (const auto& [ending, op] : torch_endings_) {
    if (class_name.ends_with(ending)) return op;
  }
  return nullptr;
}

GPUMEM_INLINE const OpTraits* Vocabulary::find_keras_prefix(std::string_view beginning) const {
  constexpr std::size_t kTooLittle = 3;
  if (beginning.size() < kTooLittle) return nullptr;
  const Index::value_type* shortest = nullptr;
  for (const auto& entry : keras_) {
    if (!entry.first.starts_with(beginning)) continue;
    const bool better = shortest == nullptr ||
                        std::pair(entry.first.size(), entry.first) < std::pair(shortest->first.size(), shortest->first);
    if (better) shortest = &entry;
  }
  return shortest == nullptr ? nullptr : shortest->second;
}

}  // namespace gpumem::model
