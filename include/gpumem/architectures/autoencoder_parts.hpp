// Input: the config.json of an autoencoder. Output: its lists of one entry a level, checked for length and bounds.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

namespace autoencoder_fields {

constexpr std::size_t kMostLevels = 12;

/// A list of numbers from 0 to `most`; `usual` where there is none.
inline Sizes counts(ConfigFields& config, std::string_view name, Sizes usual, std::int64_t most = 64) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  Sizes made;
  bool sound = list->is(core::JsonValue::Kind::list) && list->size() <= kMostLevels;
  for (const core::JsonValue& entry : list->items()) {
    sound = sound && entry.is(core::JsonValue::Kind::integer) && entry.integer() >= 0 && entry.integer() <= most;
    if (!sound) break;
    made.push_back(entry.integer());
  }
  if (!sound || made.empty()) config.fail("must be a list of small numbers", name);
  return sound && !made.empty() ? made : usual;
}

/// A list of true and false, or one of them for all; `usual` where there is none.
inline std::vector<bool> flags(ConfigFields& config, std::string_view name, std::vector<bool> usual) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  if (list->is(core::JsonValue::Kind::boolean)) return std::vector<bool>(usual.size(), list->boolean());
  std::vector<bool> made;
  bool sound = list->is(core::JsonValue::Kind::list) && list->size() <= kMostLevels;
  for (const core::JsonValue& entry : list->items()) {
    sound = sound && entry.is(core::JsonValue::Kind::boolean);
    if (!sound) break;
    made.push_back(entry.boolean());
  }
  if (!sound || made.empty()) config.fail("must be a list of true and false", name);
  return sound && !made.empty() ? made : usual;
}

/// Channels of levels, which products of sizes still fit.
inline Sizes widths(ConfigFields& config, std::string_view name, Sizes usual) {
  Sizes made = counts(config, name, std::move(usual), 1 << 14);
  for (std::int64_t& width : made) {
    if (width < 1) config.fail("must be channels of levels", name);
    width = std::max<std::int64_t>(width, 1);
  }
  return made;
}

/// What a list must have as many entries as; a shorter one is a fault, and is filled up.
template <typename List>
void as_long_as(ConfigFields& config, std::string_view name, List& list, std::size_t length) {
  if (list.size() < length) config.fail("must have an entry for each level", name);
  list.resize(std::max(list.size(), length));
}

}  // namespace autoencoder_fields

}  // namespace gpumem::architectures
