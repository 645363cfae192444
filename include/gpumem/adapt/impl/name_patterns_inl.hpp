#pragma once

#include "gpumem/adapt/name_patterns.hpp"

#include <algorithm>

namespace gpumem::adapt {

namespace name_patterns_detail {

/// Whether the whole name is of the pattern. Only the last star is taken back, so it takes the product of the lengths
/// at the most.
GPUMEM_INLINE bool is_of(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;
  std::size_t in_name = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && (pattern[at] == '?' || (pattern[at] == name[in_name] && pattern[at] != '*'))) {
      ++at;
      ++in_name;
    } else if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind_star = in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++behind_star;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

GPUMEM_INLINE bool means(std::string_view pattern, std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (is_of(pattern, name.substr(0, dot))) return true;
  }
  return is_of(pattern, name);
}

}  // namespace name_patterns_detail

GPUMEM_INLINE NamePatterns::NamePatterns(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view pattern = text.substr(0, comma);
    while (!pattern.empty() && pattern.front() == ' ') pattern.remove_prefix(1);
    while (!pattern.empty() && pattern.back() == ' ') pattern.remove_suffix(1);
    if (!pattern.empty()) patterns_.push_back({std::string(pattern)});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
}

GPUMEM_INLINE bool NamePatterns::match(std::string_view name) {
  bool any = false;
  for (Pattern& pattern : patterns_) {
    if (!name_patterns_detail::means(pattern.text, name)) continue;
    pattern.used = true;
    any = true;
  }
  return any;
}

GPUMEM_INLINE std::string_view NamePatterns::unused() const {
  const auto found = std::ranges::find(patterns_, false, &Pattern::used);
  return found == patterns_.end() ? std::string_view() : std::string_view(found->text);
}

}  // namespace gpumem::adapt
