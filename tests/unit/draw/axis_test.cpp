#include "draw/axis.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gpumem::draw {
namespace {

TEST(Axis, PlacesValues) {
  const Axis linear = {Scale::linear, 10, 20, 100, 300};
  EXPECT_DOUBLE_EQ(linear.at(10), 100);
  EXPECT_DOUBLE_EQ(linear.at(15), 200);
  EXPECT_DOUBLE_EQ(linear.at(25), 400);
  const Axis logarithmic = {Scale::logarithmic, 1, 100, 200, 0};
  EXPECT_DOUBLE_EQ(logarithmic.at(1), 200);
  EXPECT_DOUBLE_EQ(logarithmic.at(10), 100);
  EXPECT_DOUBLE_EQ(logarithmic.at(100), 0);
  EXPECT_DOUBLE_EQ(logarithmic.at(0), 200);
}

std::string labels(const std::vector<Tick>& ticks) {
  std::string text;
  for (const Tick& tick : ticks) text += (text.empty() ? "" : "|") + tick.label;
  return text;
}

TEST(Ticks, OfNumbersAreRound) {
  EXPECT_EQ(labels(linear_ticks({Scale::linear, 0, 1})), "0|0.2|0.4|0.6|0.8|1");
  EXPECT_EQ(labels(linear_ticks({Scale::linear, -3, 4})), "-3|-2|-1|0|1|2|3|4");
  EXPECT_EQ(labels(linear_ticks({Scale::linear, 0, 3e6}, 4)), "0|1000000|2000000|3000000");
  EXPECT_TRUE(linear_ticks({Scale::linear, 1, 1}).empty());
  EXPECT_TRUE(linear_ticks({Scale::linear, 0, std::numeric_limits<double>::infinity()}).empty());
}

TEST(Ticks, OfTimeAreWholeUnits) {
  EXPECT_EQ(labels(time_ticks({Scale::linear, 0, 100}, 5)), "0|20 s|40 s|60 s|80 s|100 s");
  EXPECT_EQ(labels(time_ticks({Scale::linear, 0, 600}, 5)), "0|2 min|4 min|6 min|8 min|10 min");
  EXPECT_EQ(labels(time_ticks({Scale::linear, 0, 4 * 3600}, 8)), "0|1 h|2 h|3 h|4 h");
  EXPECT_EQ(labels(time_ticks({Scale::linear, 0, 4 * 86400}, 8)), "0|1 d|2 d|3 d|4 d");
}

TEST(Ticks, OfMemoryArePowersOfTwo) {
  EXPECT_EQ(labels(memory_log_ticks({Scale::logarithmic, 500, 9000})), "512 MiB|1 GiB|2 GiB|4 GiB|8 GiB");
  EXPECT_EQ(labels(memory_log_ticks({Scale::logarithmic, 1, 32}, 3)), "1 MiB||4 MiB||16 MiB|");
  EXPECT_EQ(labels(memory_ticks({Scale::linear, 0, 40960}, 6)), "0|8 GiB|16 GiB|24 GiB|32 GiB|40 GiB");
  EXPECT_TRUE(memory_log_ticks({Scale::logarithmic, 0, 9000}).empty());
}

TEST(MemoryLabel, IsShort) {
  EXPECT_EQ(memory_label(0), "0");
  EXPECT_EQ(memory_label(512), "512 MiB");
  EXPECT_EQ(memory_label(1536), "1.5 GiB");
  EXPECT_EQ(memory_label(2.0 * 1024 * 1024), "2 TiB");
}

TEST(DrawFrame, LabelsTheTicksOfBothAxes) {
  Svg svg(200, 200, "plot");
  draw_frame(svg, {.box = {50, 20, 100, 100},
                   .x = {Scale::linear, 0, 1, 50, 150},
                   .y = {Scale::linear, 0, 1, 120, 20},
                   .x_ticks = {{0.5, "half"}},
                   .y_ticks = {{1.0, "one"}},
                   .x_title = "time",
                   .y_title = "memory",
                   .title = "both"});
  const std::string text = svg.str();
  for (const char* word : {">half<", ">one<", ">time<", ">memory<", ">both<", "x1=\"100\" y1=\"20\" x2=\"100\""}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
}

}  // namespace
}  // namespace gpumem::draw
