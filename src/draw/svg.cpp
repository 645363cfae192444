#include "draw/svg.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

namespace gpumem::draw {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// The number of bytes of the well-formed UTF-8 character at the beginning of this text; 0 if there is none.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond U+10FFFF.
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool beyond = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  // U+FFFE and U+FFFF, which XML forbids.
  const bool none = first == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;
  return overlong || beyond || none ? 0 : length;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(std::string_view name, double value) { return attribute(name, coordinate(value)); }

std::string attributes(const Paint& paint) {
  std::string text = attribute("fill", paint.fill);
  if (paint.stroke != "none") {
    text += attribute("stroke", paint.stroke);
    if (paint.stroke_width != 1.0) text += attribute("stroke-width", paint.stroke_width);
    if (!paint.dashes.empty()) text += attribute("stroke-dasharray", paint.dashes);
  }
  if (paint.opacity != 1.0) text += attribute("opacity", paint.opacity);
  return text;
}

std::string attributes(const Box& box) {
  return attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
         attribute("height", box.height);
}

std::string list_of(std::span<const Point> points) {
  std::string text;
  for (const Point& point : points) {
    text += (text.empty() ? "" : " ") + coordinate(point.x) + "," + coordinate(point.y);
  }
  return text;
}

/// The points in tenths of a pixel, each once, from left to right.
std::set<std::pair<std::int64_t, std::int64_t>> tenths(std::span<const Point> points) {
  std::set<std::pair<std::int64_t, std::int64_t>> all;
  constexpr double kFarthest = 1e6;
  for (const Point& point : points) {
    if (!(std::abs(point.x) < kFarthest) || !(std::abs(point.y) < kFarthest)) continue;
    all.emplace(std::llround(10.0 * point.x), std::llround(10.0 * point.y));
  }
  return all;
}

/// One dot, as part of a path, at the path's current point.
std::string outline(Dot dot, double size) {
  const std::string half = coordinate(size / 2.0);
  const std::string whole = coordinate(size);
  switch (dot) {
    case Dot::circle:
    case Dot::square: return "h0";  // a line of no length, with caps
    case Dot::ring:
      return "m-" + half + ",0a" + half + "," + half + " 0 1,0 " + whole + ",0a" + half + "," + half + " 0 1,0 -" +
             whole + ",0";
    case Dot::box: return "m-" + half + ",-" + half + "h" + whole + "v" + whole + "h-" + whole + "z";
  }
  return {};
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    const char first = text.front();
    const bool control = static_cast<std::uint8_t>(first) < 0x20 && first != '\t' && first != '\n';
    if (length == 0 || control) result += kReplacement;
    else if (first == '&') result += "&amp;";
    else if (first == '<') result += "&lt;";
    else if (first == '>') result += "&gt;";
    else if (first == '"') result += "&quot;";
    else if (first == '\'') result += "&#39;";
    else result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  std::array<char, 400> digits{};  // the largest double has 309 digits before the point
  const auto [end, code] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 2);
  std::string text(digits.data(), end);
  if (code != std::errc()) return "0";
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
          attribute("viewBox", "0 0 " + coordinate(width) + " " + coordinate(height)) +
          " font-family=\"system-ui, 'DejaVu Sans', sans-serif\" role=\"img\">\n<title>" + escaped(title) +
          "</title>\n";
  if (!description.empty()) text_ += "<desc>" + escaped(description) + "</desc>\n";
  rectangle({0.0, 0.0, width, height}, {.fill = "#ffffff"});
}

void Svg::close(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty()) text_ += "/>\n";
  else text_ += "><title>" + escaped(tooltip) + "</title></" + std::string(element) + ">\n";
}

void Svg::line(Point from, Point to, const Paint& paint) {
  text_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) + attribute("y2", to.y) +
           attributes(paint);
  close("line", {});
}

void Svg::rectangle(const Box& box, const Paint& paint, std::string_view tooltip) {
  text_ += "<rect" + attributes(box) + attributes(paint);
  close("rect", tooltip);
}

void Svg::polyline(std::span<const Point> points, const Paint& paint, std::string_view tooltip) {
  text_ += "<polyline" + attribute("points", list_of(points)) + attributes(paint);
  close("polyline", tooltip);
}

void Svg::polygon(std::span<const Point> points, const Paint& paint, std::string_view tooltip) {
  text_ += "<polygon" + attribute("points", list_of(points)) + attributes(paint);
  close("polygon", tooltip);
}

void Svg::circle(Point centre, double radius, const Paint& paint, std::string_view tooltip) {
  text_ +=
      "<circle" + attribute("cx", centre.x) + attribute("cy", centre.y) + attribute("r", radius) + attributes(paint);
  close("circle", tooltip);
}

void Svg::text(Point at, std::string_view text, const TextStyle& style) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  text_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + attribute("font-size", style.size) +
           attribute("fill", style.fill);
  if (style.anchor != Anchor::start) {
    text_ += attribute("text-anchor", kAnchors.at(static_cast<std::size_t>(style.anchor)));
  }
  if (style.bold) text_ += " font-weight=\"bold\"";
  if (style.turned != 0.0) {
    text_ += attribute("transform",
                       "rotate(" + coordinate(style.turned) + " " + coordinate(at.x) + " " + coordinate(at.y) + ")");
  }
  text_ += ">" + escaped(text) + "</text>\n";
}

void Svg::dots(std::span<const Point> points, Dot dot, double size, std::string_view colour, double opacity) {
  const auto places = tenths(points);
  if (places.empty()) return;
  const std::string shape = outline(dot, size);
  std::string path;
  for (const auto& [x, y] : places) {
    path += "M" + coordinate(static_cast<double>(x) / 10.0) + "," + coordinate(static_cast<double>(y) / 10.0) + shape;
  }
  const bool filled = dot == Dot::circle || dot == Dot::square;
  text_ += "<path" + attribute("d", path) +
           attributes({.stroke = colour, .stroke_width = filled ? size : 1.2, .opacity = opacity});
  if (filled) text_ += attribute("stroke-linecap", dot == Dot::circle ? "round" : "square");
  close("path", {});
}

void Svg::begin_group(std::string_view name, const Box* clip) {
  text_ += "<g";
  if (clip != nullptr) {
    const std::string id = "clip" + std::to_string(++clips_);
    text_ += attribute("clip-path", "url(#" + id + ")") + "><clipPath" + attribute("id", id) + "><rect" +
             attributes(*clip) + "/></clipPath";
  }
  text_ += ">\n";
  if (!name.empty()) text_ += "<title>" + escaped(name) + "</title>\n";
  ++open_groups_;
}

void Svg::end_group() {
  if (open_groups_ == 0) return;
  text_ += "</g>\n";
  --open_groups_;
}

std::string Svg::str() const {
  std::string text = text_;
  for (int open = 0; open < open_groups_; ++open) text += "</g>\n";
  return text + "</svg>\n";
}

}  // namespace gpumem::draw
