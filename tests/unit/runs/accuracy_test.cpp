#include "gpumem/runs/accuracy.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gpumem::runs {
namespace {

TEST(Percentile, IsInterpolatedBetweenRanks) {
  const std::array<double, 5> values = {10, 20, 30, 40, 50};
  EXPECT_DOUBLE_EQ(percentile(values, 0.0), 10.0);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 30.0);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 46.0);
  EXPECT_DOUBLE_EQ(percentile(values, 1.0), 50.0);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0.0);
}

TEST(MemoryClass, HasStepsOf8000MiB) {
  EXPECT_EQ(memory_class(0), 0);
  EXPECT_EQ(memory_class(7999.9), 0);
  EXPECT_EQ(memory_class(8000), 1);
  EXPECT_EQ(memory_class(39999), 4);
  EXPECT_EQ(memory_class(40000), 5);
  EXPECT_EQ(memory_class(49999), 5);
  EXPECT_EQ(memory_class(50000), 6);
}

TEST(Accuracy, OfNoRunsIsZero) {
  const Accuracy accuracy = accuracy_of({});
  EXPECT_EQ(accuracy.fitted, 0);
  EXPECT_EQ(accuracy.relative_error.mean, 0.0);
  EXPECT_EQ(accuracy.worst, std::nullopt);
}

TEST(Accuracy, SaysHowFarPredictionsAre) {
  const std::array<Judged, 4> runs = {{{1000, 1100, 1200, false, true, 1001},
                                       {2000, 1000, 1500, false, true},
                                       {8000, 8000, 8000, false, false, 7000},
                                       {10000, 7000, 20000, false, true, 10000}}};
  const Accuracy accuracy = accuracy_of(runs);
  EXPECT_EQ(accuracy.fitted, 4);
  EXPECT_DOUBLE_EQ(accuracy.relative_error.mean, (0.1 + 0.5 + 0.0 + 0.3) / 4);
  EXPECT_DOUBLE_EQ(accuracy.relative_error.median, 0.2);
  EXPECT_DOUBLE_EQ(accuracy.signed_relative_error, (0.1 - 0.5 + 0.0 - 0.3) / 4);
  EXPECT_DOUBLE_EQ(accuracy.absolute_error_mib.median, 550.0);
  EXPECT_DOUBLE_EQ(accuracy.right_class, 0.75);
  EXPECT_DOUBLE_EQ(accuracy.underestimated, 0.5);
  EXPECT_DOUBLE_EQ(accuracy.covered, 0.75);
  EXPECT_DOUBLE_EQ(accuracy.within, 0.25);
  EXPECT_DOUBLE_EQ(accuracy.upper_ratio, (1.2 + 0.75 + 1.0 + 2.0) / 4);
  EXPECT_EQ(accuracy.worst, std::optional<std::size_t>(1));
  EXPECT_EQ(accuracy.false_alarms, 1);
}

TEST(Accuracy, CountsRunsOutOfMemoryApart) {
  const std::array<Judged, 3> runs = {
      {{0, 50000, 50000, true, false}, {39000, 1000, 1000, true, true}, {1000, 1000, 1000, false, true}}};
  const Accuracy accuracy = accuracy_of(runs);
  EXPECT_EQ(accuracy.fitted, 1);
  EXPECT_EQ(accuracy.relative_error.mean, 0.0);
  EXPECT_EQ(accuracy.worst, std::optional<std::size_t>(2));
  EXPECT_EQ(accuracy.out_of_memory, 2);
  EXPECT_EQ(accuracy.caught, 1);
}

}  // namespace
}  // namespace gpumem::runs
