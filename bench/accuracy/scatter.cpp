#include "scatter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "cells.hpp"
#include "draw/axis.hpp"
#include "draw/palette.hpp"
#include "draw/svg.hpp"

namespace gpumem::accuracy {

namespace {

using draw::Plot;
using draw::Point;
using draw::Svg;

constexpr double kSide = 380.0;  ///< of a plot
constexpr double kLeft = 90.0;
constexpr double kAbove = 34.0;
constexpr double kCellWidth = kLeft + kSide + 20.0;
constexpr double kCellHeight = kAbove + kSide + 56.0;
constexpr double kLegendLine = 20.0;
constexpr double kLegendColumn = 230.0;
constexpr std::size_t kMostColumns = 3;
constexpr double kTenPercent = 0.1;

/// The row of a grid that this cell is in.
double row_of(std::size_t cell, std::size_t columns) {
  const std::size_t whole_rows = cell / columns;
  return static_cast<double>(whole_rows);
}

struct Range {
  double lower = 0.0;
  double upper = 0.0;
};

/// Whole powers of two around what was measured, with room for predictions that are off.
std::optional<Range> range_of(const SetVerdicts& verdicts) {
  Range range;
  for (const Verdict& verdict : verdicts.verdicts) {
    for (const datasets::Judged& run : verdict.judged) {
      if (run.out_of_memory || !(run.measured_mib > 0.0)) continue;
      range.lower = range.lower > 0.0 ? std::min(range.lower, run.measured_mib) : run.measured_mib;
      range.upper = std::max(range.upper, run.measured_mib);
    }
  }
  if (!(range.lower > 0.0)) return std::nullopt;
  return Range{std::exp2(std::floor(std::log2(range.lower)) - 1.0), std::exp2(std::ceil(std::log2(range.upper)) + 1.0)};
}

Plot plot_of(const SetVerdicts& verdicts, const Range& range, Point corner) {
  Plot plot;
  plot.box = {corner.x + kLeft, corner.y + kAbove, kSide, kSide};
  plot.x = {draw::Scale::logarithmic, range.lower, range.upper, plot.box.x, plot.box.right()};
  plot.y = {draw::Scale::logarithmic, range.lower, range.upper, plot.box.bottom(), plot.box.y};
  plot.x_ticks = draw::memory_log_ticks(plot.x, 6);
  plot.y_ticks = draw::memory_log_ticks(plot.y, 8);
  plot.x_title = "measured";
  if (verdicts.set->figure)
    plot.x_title += ": " + std::string(model::name_of(datasets::kFigures, *verdicts.set->figure));
  plot.y_title = "predicted";
  const auto fitted = std::count_if(verdicts.set->runs.begin(), verdicts.set->runs.end(),
                                    [](const datasets::MeasuredRun* run) { return !run->out_of_memory; });
  plot.title = verdicts.set->name + " (" + whole(static_cast<double>(fitted)) + ")";
  return plot;
}

/// A line of all points that are predicted to be this many times what was measured.
void draw_ratio(Svg& svg, const Plot& plot, double ratio, const draw::Paint& paint) {
  svg.line(plot.at(plot.x.lower, plot.x.lower * ratio), plot.at(plot.x.upper, plot.x.upper * ratio), paint);
}

void draw_dots(Svg& svg, const Plot& plot, const Verdict& verdict, const draw::SeriesLook& look, double size) {
  std::vector<Point> points;
  for (const datasets::Judged& run : verdict.judged) {
    if (run.out_of_memory || !run.has_figure || !(run.measured_mib > 0.0)) continue;
    points.push_back(plot.at(run.measured_mib, std::clamp(run.expected_mib, plot.y.lower, plot.y.upper)));
  }
  svg.begin_group(verdict.estimator);
  svg.dots(points, look.dot, size, look.colour);
  svg.end_group();
}

using Series = std::vector<std::string>;

std::size_t number_of(const Series& series, const std::string& name) {
  return static_cast<std::size_t>(std::find(series.begin(), series.end(), name) - series.begin());
}

/// Published estimates by a name of their own: a table may cite one of an estimator that is computed as well.
std::string series_name(const Verdict& verdict) {
  return verdict.published ? verdict.estimator + ", as published" : verdict.estimator;
}

Series series_of(const std::vector<SetVerdicts>& all) {
  Series series;
  for (const bool published : {false, true}) {
    for (const SetVerdicts& verdicts : all) {
      for (const Verdict& verdict : verdicts.verdicts) {
        const std::string name = series_name(verdict);
        const bool known = number_of(series, name) < series.size();
        if (verdict.published == published && !known) series.push_back(name);
      }
    }
  }
  return series;
}

void draw_plot(Svg& svg, const SetVerdicts& verdicts, const Range& range, const Series& series, Point corner) {
  const Plot plot = plot_of(verdicts, range, corner);
  draw_frame(svg, plot);
  svg.begin_group({}, &plot.box);
  for (const double off : {1.0 - kTenPercent, 1.0 + kTenPercent}) {
    draw_ratio(svg, plot, off, {.stroke = draw::kInk, .dashes = "4 3"});
  }
  svg.end_group();
  draw_ratio(svg, plot, 1.0, {.stroke = draw::kInk});
  // The first estimator last, for it is the one that is looked for, and smallest, so that it hides none below it.
  constexpr std::size_t kMany = 300;
  const double smallest = verdicts.set->runs.size() > kMany ? 2.2 : 4.0;
  constexpr double kGrowth = 0.3;
  for (std::size_t below = verdicts.verdicts.size(); below-- > 0;) {
    const Verdict& verdict = verdicts.verdicts[below];
    draw_dots(svg, plot, verdict, draw::look_of(number_of(series, series_name(verdict))),
              smallest * (1.0 + kGrowth * static_cast<double>(std::min<std::size_t>(below, 3))));
  }
}

void draw_legend(Svg& svg, const Series& series, double top, std::size_t columns) {
  constexpr double kMark = 8.0;
  for (std::size_t index = 0; index < series.size(); ++index) {
    const Point at = {kLeft + static_cast<double>(index % columns) * kLegendColumn,
                      top + row_of(index, columns) * kLegendLine};
    const draw::SeriesLook look = draw::look_of(index);
    svg.dots(std::array<Point, 1>{at}, look.dot, kMark, look.colour);
    svg.text({at.x + 2.0 * kMark, at.y + kMark / 2.0}, series[index]);
  }
}

}  // namespace

std::string scatter_of(const std::vector<SetVerdicts>& all) {
  const Series series = series_of(all);
  const std::size_t columns = std::clamp<std::size_t>(all.size(), 1, all.size() == 4 ? 2 : kMostColumns);
  const std::size_t rows = (all.size() + columns - 1) / columns;
  const double width = kCellWidth * static_cast<double>(columns);
  const auto legend_columns = std::max<std::size_t>(1, static_cast<std::size_t>((width - kLeft) / kLegendColumn));
  const std::size_t legend_rows = (series.size() + legend_columns - 1) / legend_columns;
  const double plots = kCellHeight * static_cast<double>(rows);
  constexpr double kMargin = 16.0;
  Svg svg(width, plots + kLegendLine * static_cast<double>(legend_rows) + 2.0 * kMargin,
          "Predicted against measured GPU memory",
          "Solid: predicted as measured. Dashed: 10 % off. What lies beyond the frame is drawn at its edge.");
  for (std::size_t index = 0; index < all.size(); ++index) {
    const std::optional<Range> range = range_of(all[index]);
    const Point corner = {kCellWidth * static_cast<double>(index % columns), kCellHeight * row_of(index, columns)};
    if (range) draw_plot(svg, all[index], *range, series, corner);
  }
  draw_legend(svg, series, plots + kMargin, legend_columns);
  return svg.str();
}

}  // namespace gpumem::accuracy
