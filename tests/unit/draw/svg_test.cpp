#include "draw/svg.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace gpumem::draw {
namespace {

TEST(Escaped, LeavesNothingThatXmlReadsAsMarkup) {
  EXPECT_EQ(escaped("plain, \xC3\xA9, 10 %"), "plain, \xC3\xA9, 10 %");
  EXPECT_EQ(escaped("</title><script>\"'&"), "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;");
}

TEST(Escaped, ReplacesWhatXmlForbids) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string_view("a\0b\x1B\x0D", 5)), "a" + replaced + "b" + replaced + replaced);
  EXPECT_EQ(escaped("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(escaped("\xC0\xAF"), replaced + replaced);            // overlong
  EXPECT_EQ(escaped("\xED\xA0\x80").substr(0, 3), replaced);      // a surrogate
  EXPECT_EQ(escaped("\xEF\xBF\xBF").substr(0, 3), replaced);      // U+FFFF
  EXPECT_EQ(escaped("\xF4\x90\x80\x80").substr(0, 3), replaced);  // beyond U+10FFFF
  EXPECT_EQ(escaped("\xE2\x82"), replaced + replaced);            // cut
  EXPECT_EQ(escaped("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");     // U+1F600
}

TEST(Coordinate, HasTwoDecimalsAtMost) {
  EXPECT_EQ(coordinate(0.0), "0");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(coordinate(100.0), "100");
  EXPECT_EQ(coordinate(1.5), "1.5");
  EXPECT_EQ(coordinate(-2.0 / 3.0), "-0.67");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::infinity()), "0");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::max()).size(), 309U);
}

TEST(Svg, IsAWholeDocument) {
  Svg svg(40, 30, "a < b", "what is seen");
  const Box clip = {1, 2, 3, 4};
  svg.begin_group("group", &clip);
  svg.line({0, 1}, {2, 3}, {.stroke = "#000000", .stroke_width = 2, .dashes = "4 3"});
  svg.rectangle({1, 2, 3, 4}, {.fill = "#ffffff", .opacity = 0.5}, "tip & tap");
  const std::array<Point, 2> points = {{{1, 2}, {3.25, 4}}};
  svg.polyline(points, {.stroke = "#000000"});
  svg.circle({5, 6}, 2, {.fill = "#000000"});
  svg.text({7, 8}, "label", {.size = 9, .anchor = Anchor::end, .bold = true, .turned = -90});
  EXPECT_EQ(
      svg.str(),
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" viewBox="0 0 40 30" font-family="system-ui, 'DejaVu Sans', sans-serif" role="img">
<title>a &lt; b</title>
<desc>what is seen</desc>
<rect x="0" y="0" width="40" height="30" fill="#ffffff"/>
<g clip-path="url(#clip1)"><clipPath id="clip1"><rect x="1" y="2" width="3" height="4"/></clipPath>
<title>group</title>
<line x1="0" y1="1" x2="2" y2="3" fill="none" stroke="#000000" stroke-width="2" stroke-dasharray="4 3"/>
<rect x="1" y="2" width="3" height="4" fill="#ffffff" opacity="0.5"><title>tip &amp; tap</title></rect>
<polyline points="1,2 3.25,4" fill="none" stroke="#000000"/>
<circle cx="5" cy="6" r="2" fill="#000000"/>
<text x="7" y="8" font-size="9" fill="#333333" text-anchor="end" font-weight="bold" transform="rotate(-90 7 8)">label</text>
</g>
</svg>
)svg");
}

TEST(Svg, DotsAtOnePlaceAreDrawnOnce) {
  Svg svg(10, 10, "dots");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::array<Point, 4> points = {{{1.01, 2}, {5, 6}, {0.99, 2}, {nan, 1}}};
  svg.dots(points, Dot::circle, 3, "#0072b2", 0.5);
  EXPECT_NE(svg.str().find("<path d=\"M1,2h0M5,6h0\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"3\" "
                           "opacity=\"0.5\" stroke-linecap=\"round\"/>"),
            std::string::npos)
      << svg.str();
}

TEST(Svg, AGroupTooManyIsNotClosed) {
  Svg svg(10, 10, "groups");
  svg.end_group();
  EXPECT_EQ(svg.str().find("</g>"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::draw
