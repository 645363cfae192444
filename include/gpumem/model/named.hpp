// Input: a list of choices, one row a value with the name that people write.
// Output: the name of a value, and the value of a name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gpumem::model {

template <typename Enum>
struct Named {
  Enum value;
  std::string_view name;
};

/// The name of a value in such a list.
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::string_view name_of(const std::array<Named<Enum>, Count>& list, Enum value) {
  for (const Named<Enum>& row : list) {
    if (row.value == value) return row.name;
  }
  return "unknown";
}

/// The value of that name in such a list.
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::optional<Enum> value_of(const std::array<Named<Enum>, Count>& list,
                                                     std::string_view name) {
  for (const Named<Enum>& row : list) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

/// A text as an argument of a template.
template <std::size_t Size>
struct Literal {
  char text[Size] = {};
  consteval Literal(const char (&from)[Size]) { std::copy_n(from, Size, text); }  // NOLINT: a literal converts
  [[nodiscard]] constexpr std::string_view view() const { return {text, Size - 1}; }
};

/// names<"Linear", "Conv1D">: a list that views may point at, wherever it is written.
template <Literal... Texts>
inline constexpr std::array<std::string_view, sizeof...(Texts)> names = {Texts.view()...};

}  // namespace gpumem::model
