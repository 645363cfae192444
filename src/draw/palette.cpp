#include "draw/palette.hpp"

namespace gpumem::draw {

SeriesLook look_of(std::size_t series) {
  constexpr std::array<Dot, 4> kDots = {Dot::circle, Dot::square, Dot::ring, Dot::box};
  return {kColours.at(series % kColours.size()), kDots.at(series / kColours.size() % kDots.size())};
}

}  // namespace gpumem::draw
