#pragma once

#include "gpumem/job/option_words.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "gpumem/job/counted_choices.hpp"

namespace gpumem::job {

namespace option_words_detail {

/// "0.05"; nothing if there is anything else.
GPUMEM_INLINE std::optional<double> read_fraction(std::string_view word) {
  double number = 0.0;
  const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool whole = fault == std::errc() && stop == word.data() + word.size() && std::isfinite(number);
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace option_words_detail

GPUMEM_INLINE bool is_of_kind(OptionType type, const OptionValue& value) {
  switch (type) {
    case OptionType::flag: return std::holds_alternative<bool>(value);
    case OptionType::whole_number: return std::holds_alternative<std::int64_t>(value);
    case OptionType::switch_or_choice:
      return std::holds_alternative<bool>(value) || std::holds_alternative<std::string>(value);
    case OptionType::fraction: return std::holds_alternative<double>(value);
    case OptionType::dimensions:
      return std::holds_alternative<Sizes>(value) || std::holds_alternative<std::string>(value);
    case OptionType::text:
    case OptionType::name_or_path:
    case OptionType::choice: return std::holds_alternative<std::string>(value);
  }
  return false;
}

GPUMEM_INLINE std::string fraction_text(double number) {
  std::array<char, 32> text{};
  const auto [stop, fault] = std::to_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() ? std::string(text.data(), stop) : std::string();
}

GPUMEM_INLINE std::optional<OptionValue> value_of_word(OptionType type, std::string_view word) {
  if (type == OptionType::flag) {
    if (word != "true" && word != "false") return std::nullopt;
    return OptionValue(word == "true");
  }
  if (type == OptionType::switch_or_choice && (word == "true" || word == "false")) return OptionValue(word == "true");
  if (type == OptionType::fraction) {
    const auto number = option_words_detail::read_fraction(word);
    return number ? std::optional(OptionValue(*number)) : std::nullopt;
  }
  if (type != OptionType::whole_number) return OptionValue(std::string(word));
  const bool negative = word.starts_with('-');
  std::size_t at = negative ? 1 : 0;
  const auto number = read_whole(word, at);
  if (!number || at != word.size()) return std::nullopt;
  return OptionValue(negative ? -*number : *number);
}

}  // namespace gpumem::job
