// Input: the number of a series.
// Output: its colour and its dot. The colours are those of Okabe and Ito ("Color Universal Design", 2008), which people
// with any of the common colour vision deficiencies can tell apart; their yellow is left out because it is hard to see
// on white. From the eighth series on, the colours repeat with another dot.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "draw/svg.hpp"

namespace gpumem::draw {

inline constexpr std::array<std::string_view, 7> kColours = {"#0072b2",   // blue
                                                             "#d55e00",   // vermillion
                                                             "#009e73",   // bluish green
                                                             "#cc79a7",   // reddish purple
                                                             "#e69f00",   // orange
                                                             "#56b4e9",   // sky blue
                                                             "#000000"};  // black

inline constexpr std::string_view kInk = "#333333";   ///< texts and axes
inline constexpr std::string_view kGrid = "#dddddd";  ///< lines that should not be noticed

struct SeriesLook {
  std::string_view colour;
  Dot dot = Dot::circle;
};

[[nodiscard]] SeriesLook look_of(std::size_t series);

}  // namespace gpumem::draw
