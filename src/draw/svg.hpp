// Input: shapes and texts.
// Output: an SVG document (SVG 1.1) that needs nothing else: no script, no style sheet, no font of its own. Coordinates
// are written to a hundredth of a pixel, so that the same picture has the same bytes everywhere. What is added last is
// on top.
// Units: pixels, the origin at the top left, y downwards.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpumem::draw {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

struct Box {
  double x = 0.0;  ///< of the left side
  double y = 0.0;  ///< of the top
  double width = 0.0;
  double height = 0.0;

  [[nodiscard]] double right() const { return x + width; }
  [[nodiscard]] double bottom() const { return y + height; }
};

/// How a shape is painted; colours as SVG has them: "#0072b2", "none".
struct Paint {
  std::string_view fill = "none";
  std::string_view stroke = "none";
  double stroke_width = 1.0;
  double opacity = 1.0;
  std::string_view dashes = {};  ///< lengths of dash and gap, such as "4 3"; empty: one line
};

enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12.0;
  Anchor anchor = Anchor::start;
  std::string_view fill = "#333333";
  bool bold = false;
  double turned = 0.0;  ///< degrees, clockwise around its point
};

/// What a dot looks like: in print, and where colours are hard to tell apart.
enum class Dot { circle, square, ring, box };

/// Text as it is in XML: &, <, > and quotes as entities; what XML forbids (control characters, bytes that are not
/// UTF-8) as U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// A number as coordinates are written: two decimals at most. What is not finite is written as 0.
[[nodiscard]] std::string coordinate(double value);

/// A document that grows as it is drawn on.
class Svg {
 public:
  /// `title` and `description` are read out by screen readers; the title is also shown as a tooltip.
  Svg(double width, double height, std::string_view title, std::string_view description = {});

  // Every shape takes a tooltip, which browsers show over it; empty: none.
  void line(Point from, Point to, const Paint& paint);
  void rectangle(const Box& box, const Paint& paint, std::string_view tooltip = {});
  void polyline(std::span<const Point> points, const Paint& paint, std::string_view tooltip = {});
  void polygon(std::span<const Point> points, const Paint& paint, std::string_view tooltip = {});
  void circle(Point centre, double radius, const Paint& paint, std::string_view tooltip = {});
  void text(Point at, std::string_view text, const TextStyle& style = {});

  /// Many dots of one kind in one path, about ten bytes each; those that fall onto the same tenth of a pixel are drawn
  /// once. `size` is the diameter, `opacity` of each kind as a whole: dots of one call do not darken each other.
  void dots(std::span<const Point> points, Dot dot, double size, std::string_view colour, double opacity = 1.0);

  /// What follows, up to end_group(), is one group; `name` is its tooltip, unless it is empty. What is outside of
  /// `clip`, if there is one, is not seen.
  void begin_group(std::string_view name = {}, const Box* clip = nullptr);
  void end_group();

  /// The whole document; groups that are still open are closed.
  [[nodiscard]] std::string str() const;

 private:
  void close(std::string_view element, std::string_view tooltip);

  std::string text_;
  int open_groups_ = 0;
  int clips_ = 0;
};

}  // namespace gpumem::draw
