// Input: a range of values and its place on the picture.
// Output: Axis: where a value is drawn, and the ticks for people.
// Units: the caller's for values, pixels for places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "draw/svg.hpp"

namespace gpumem::draw {

enum class Scale { linear, logarithmic };

struct Tick {
  double value = 0.0;
  std::string label;  ///< empty: a grid line without a label

  friend bool operator==(const Tick&, const Tick&) = default;
};

/// A value axis: `lower` is drawn at `begin`, `upper` at `end` (of a vertical axis, the lower end of the picture).
struct Axis {
  Scale scale = Scale::linear;
  double lower = 0.0;  ///< of a logarithmic axis, above 0
  double upper = 1.0;  ///< above lower
  double begin = 0.0;
  double end = 1.0;

  /// Where the value is drawn, also beyond the ends. What a logarithmic axis has no place for (0 or less) is drawn at
  /// `begin`.
  [[nodiscard]] double at(double value) const;
};

/// Steps of 1, 2 or 5 times a power of ten, at most `most` of them; plain numbers as labels.
[[nodiscard]] std::vector<Tick> linear_ticks(const Axis& axis, int most = 8);

/// Steps of 1, 2 or 5 times a power of ten that are whole units of time: seconds, minutes, hours or days ("90 s", "2
/// h").
[[nodiscard]] std::vector<Tick> time_ticks(const Axis& axis, int most = 8);

/// Memory in MiB on a logarithmic axis: powers of two, all as grid lines, as many labelled as `most` allows.
[[nodiscard]] std::vector<Tick> memory_log_ticks(const Axis& axis, int most = 10);

/// Memory in MiB on a linear axis: steps of a power of two.
[[nodiscard]] std::vector<Tick> memory_ticks(const Axis& axis, int most = 8);

/// "512 MiB", "1.5 GiB", "2 TiB": short, for a tick.
[[nodiscard]] std::string memory_label(double mib);

/// "0", "2.5", "12000": a plain number with as few digits as it takes.
[[nodiscard]] std::string number_label(double value);

/// A plot: its place, its axes and its titles.
struct Plot {
  Box box;
  Axis x;  ///< from box.x to box.right()
  Axis y;  ///< from box.bottom() to box.y
  std::vector<Tick> x_ticks;
  std::vector<Tick> y_ticks;
  std::string x_title = {};
  std::string y_title = {};
  std::string title = {};

  [[nodiscard]] Point at(double x_value, double y_value) const { return {x.at(x_value), y.at(y_value)}; }
};

/// Draws grid lines, ticks, frame and titles; to be called first, for what is in the plot lies on top.
void draw_frame(Svg& svg, const Plot& plot);

}  // namespace gpumem::draw
