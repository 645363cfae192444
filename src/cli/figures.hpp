// Input: a figure.
// Output: its text, or the number as JSON prints it. Shared by the commands' reports.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace gpumem::cli {

inline constexpr double kHundred = 100.0;

/// By a format of printf for one double; at most 63 characters.
inline std::string text_of(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "12 %" of 0.12; `format` says how many digits.
inline std::string percent(double share, const char* format = "%.0f %%") { return text_of(format, kHundred * share); }

/// To six decimals, as JSON prints shares.
inline double rounded(double value) {
  constexpr double kDecimals = 1e6;
  return std::round(value * kDecimals) / kDecimals;
}

}  // namespace gpumem::cli
