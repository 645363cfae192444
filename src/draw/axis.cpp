#include "draw/axis.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "draw/palette.hpp"

namespace gpumem::draw {

namespace {

/// The smallest step of these, times a power of `base`, that parts the range into at most `most` steps.
double step_of(double range, int most, std::initializer_list<double> factors, double base) {
  const double least = range / std::max(1, most);
  double power = std::pow(base, std::floor(std::log(least) / std::log(base)) - 1.0);
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries, power *= base) {
    for (const double factor : factors) {
      if (power * factor >= least) return power * factor;
    }
  }
  return range;
}

template <typename Label>
std::vector<Tick> steps(const Axis& axis, double step, Label label) {
  std::vector<Tick> ticks;
  constexpr int kMost = 1000;
  constexpr double kSlack = 1e-9;  // of a step: an end of the axis is a tick, too
  const double first = std::ceil(axis.lower / step - kSlack);
  for (int index = 0; index < kMost; ++index) {
    const double value = (first + index) * step;
    if (!(value <= axis.upper + kSlack * step)) break;
    ticks.push_back({value, label(value)});
  }
  return ticks;
}

bool has_range(const Axis& axis) { return std::isfinite(axis.upper - axis.lower) && axis.upper > axis.lower; }

}  // namespace

double Axis::at(double value) const {
  if (scale == Scale::linear) return begin + (value - lower) / (upper - lower) * (end - begin);
  if (!(value > 0.0)) return begin;
  return begin + std::log(value / lower) / std::log(upper / lower) * (end - begin);
}

std::string number_label(double value) {
  constexpr int kDigits = 6;
  std::array<char, 32> digits{};
  const auto written =
      std::to_chars(digits.data(), digits.data() + digits.size(), value == 0.0 ? 0.0 : value,
                    std::abs(value) < 1e9 ? std::chars_format::general : std::chars_format::scientific, kDigits);
  std::string text(digits.data(), written.ptr);
  // "1e+06" is a million.
  if (text.find('e') != std::string::npos && std::abs(value) < 1e9 && value == std::floor(value)) {
    text = std::to_string(static_cast<long long>(value));
  }
  return text;
}

std::string memory_label(double mib) {
  constexpr std::array<std::string_view, 3> kUnits = {" MiB", " GiB", " TiB"};
  constexpr double kNext = 1024.0;
  if (mib == 0.0) return "0";
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && std::abs(mib) >= kNext) {
    mib /= kNext;
    ++unit;
  }
  return number_label(mib) + std::string(kUnits.at(unit));
}

std::vector<Tick> linear_ticks(const Axis& axis, int most) {
  if (!has_range(axis)) return {};
  return steps(axis, step_of(axis.upper - axis.lower, most, {1.0, 2.0, 5.0}, 10.0), number_label);
}

std::vector<Tick> time_ticks(const Axis& axis, int most) {
  if (!has_range(axis)) return {};
  struct Unit {
    double seconds;
    std::string_view name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{86400.0, " d"}, {3600.0, " h"}, {60.0, " min"}, {1.0, " s"}}};
  const double range = axis.upper - axis.lower;
  // The largest unit of which the axis shows a few.
  constexpr double kFew = 3.0;
  const auto* unit =
      std::find_if(kUnits.begin(), kUnits.end() - 1, [&](const Unit& each) { return range >= kFew * each.seconds; });
  const double least = unit->seconds > 1.0 ? unit->seconds : 0.0;
  const double step = std::max(least, step_of(range / unit->seconds, most, {1.0, 2.0, 5.0}, 10.0) * unit->seconds);
  return steps(axis, step, [unit](double value) {
    return value == 0.0 ? "0" : number_label(value / unit->seconds) + std::string(unit->name);
  });
}

std::vector<Tick> memory_log_ticks(const Axis& axis, int most) {
  if (!has_range(axis) || !(axis.lower > 0.0)) return {};
  constexpr double kSlack = 1e-9;
  const int first = static_cast<int>(std::ceil(std::log2(axis.lower) - kSlack));
  const int last = static_cast<int>(std::floor(std::log2(axis.upper) + kSlack));
  const int every = std::max(1, (last - first + most) / std::max(1, most));
  std::vector<Tick> ticks;
  for (int power = first; power <= last; ++power) {
    const double value = std::exp2(power);
    ticks.push_back({value, (power - first) % every == 0 ? memory_label(value) : ""});
  }
  return ticks;
}

std::vector<Tick> memory_ticks(const Axis& axis, int most) {
  if (!has_range(axis)) return {};
  return steps(axis, step_of(axis.upper - axis.lower, most, {1.0}, 2.0), memory_label);
}

void draw_frame(Svg& svg, const Plot& plot) {
  constexpr double kTick = 4.0;
  constexpr double kSmall = 11.0;
  const Box& box = plot.box;
  for (const Tick& tick : plot.x_ticks) {
    const double x = plot.x.at(tick.value);
    svg.line({x, box.y}, {x, box.bottom()}, {.stroke = kGrid});
    if (tick.label.empty()) continue;
    svg.line({x, box.bottom()}, {x, box.bottom() + kTick}, {.stroke = kInk});
    svg.text({x, box.bottom() + kTick + kSmall}, tick.label, {.size = kSmall, .anchor = Anchor::middle});
  }
  for (const Tick& tick : plot.y_ticks) {
    const double y = plot.y.at(tick.value);
    svg.line({box.x, y}, {box.right(), y}, {.stroke = kGrid});
    if (tick.label.empty()) continue;
    svg.line({box.x - kTick, y}, {box.x, y}, {.stroke = kInk});
    svg.text({box.x - 2.0 * kTick, y + kSmall / 3.0}, tick.label, {.size = kSmall, .anchor = Anchor::end});
  }
  svg.rectangle(box, {.stroke = kInk});
  constexpr double kBelow = 36.0;
  constexpr double kBeside = 60.0;
  constexpr double kAbove = 9.0;
  const Point middle = {box.x + box.width / 2.0, box.y + box.height / 2.0};
  if (!plot.x_title.empty()) {
    svg.text({middle.x, box.bottom() + kBelow}, plot.x_title, {.anchor = Anchor::middle});
  }
  if (!plot.y_title.empty()) {
    svg.text({box.x - kBeside, middle.y}, plot.y_title, {.anchor = Anchor::middle, .turned = -90.0});
  }
  if (!plot.title.empty()) {
    svg.text({middle.x, box.y - kAbove}, plot.title, {.size = 13.0, .anchor = Anchor::middle, .bold = true});
  }
}

}  // namespace gpumem::draw
