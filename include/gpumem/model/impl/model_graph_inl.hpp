#pragma once

#include "gpumem/model/model_graph.hpp"

#include <utility>

#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::model {

GPUMEM_INLINE bool ModelGraph::within(std::uint32_t inner, std::uint32_t outer) const {
  // Scopes are numbered as they are opened: those inside one follow it without a gap.
  return outer <= inner && inner <= scopes_[outer].last;
}

GPUMEM_INLINE std::string ModelGraph::path(const Layer& layer) const {
  constexpr std::size_t kLongest = 200;
  std::string result = core::shortened(name(layer), kLongest);
  for (std::uint32_t at = layer.scope; at != 0; at = scopes_[at].parent) {
    if (result.size() > kLongest) return "..." + result;
    // The model's own scope and a container's own parameters have no name.
    const std::string_view container = text(scopes_[at].name);
    if (container.empty()) continue;
    result.insert(0, core::shortened(container, kLongest) + (result.empty() ? "" : "."));
  }
  return result;
}

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

GPUMEM_INLINE std::optional<std::int64_t> AxisExpression::at(std::int64_t batch, std::int64_t sequence) const {
  std::int64_t sum = c[0];
  const auto add = [&](std::int64_t coefficient, std::int64_t axis) {
    std::int64_t product = 0;
    return !__builtin_mul_overflow(coefficient, axis, &product) && !__builtin_add_overflow(sum, product, &sum);
  };
  if (c[1] != 0 && !add(c[1], batch)) return std::nullopt;
  if (c[2] != 0 && !add(c[2], sequence)) return std::nullopt;
  if (c[3] != 0) {
    std::int64_t both = 0;
    if (__builtin_mul_overflow(batch, sequence, &both) || !add(c[3], both)) return std::nullopt;
  }
  return sum < 0 ? std::nullopt : std::optional(sum);
}

}  // namespace gpumem::model
