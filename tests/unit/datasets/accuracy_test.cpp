#include "gpumem_datasets/accuracy.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gpumem::datasets {
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

TEST(Accuracy, AVerdictWithoutAFigureIsNoError) {
  const std::array<Judged, 2> runs = {{{.measured_mib = 1000, .expected_mib = 1100, .upper_mib = 1100, .fits = true},
                                       {.measured_mib = 1000, .fits = false, .has_figure = false}}};
  const Accuracy accuracy = accuracy_of(runs);
  EXPECT_EQ(accuracy.fitted, 1);
  EXPECT_DOUBLE_EQ(accuracy.relative_error.mean, 0.1);
  EXPECT_EQ(accuracy.false_alarms, 1);
}

/// On a GPU of 10,000 MiB: one run that has enough at its upper figure only, one that has enough at both, one that was
/// rightly kept away, one that was not, and a false alarm.
std::array<Judged, 5> capped_runs() {
  return {{{.measured_mib = 2000, .expected_mib = 1900, .upper_mib = 2100, .fits = true, .capacity_mib = 10000},
           {.measured_mib = 4000,
            .expected_mib = 4000,
            .upper_mib = 5000,
            .fits = true,
            .capacity_mib = 10000,
            .beside_mib = 500},
           {.expected_mib = 20000, .upper_mib = 30000, .out_of_memory = true, .fits = false, .capacity_mib = 10000},
           {.expected_mib = 5000, .upper_mib = 6000, .out_of_memory = true, .fits = true, .capacity_mib = 10000},
           {.measured_mib = 8000, .expected_mib = 12000, .upper_mib = 13000, .fits = false, .capacity_mib = 10000}}};
}

TEST(CappedAccuracy, OfNoRunsIsZero) {
  const CappedAccuracy capped = capped_accuracy_of({}, Cap::upper);
  EXPECT_EQ(capped.runs, 0);
  EXPECT_EQ(capped.failure, 0.0);
  EXPECT_EQ(capped.conserved_mib, 0.0);
  EXPECT_EQ(capped.failure_when_repeated, std::nullopt);
}

TEST(CappedAccuracy, CountsWrongVerdictsAndCapsThatAreTooLow) {
  const auto runs = capped_runs();
  const CappedAccuracy expected = capped_accuracy_of(runs, Cap::expected);
  EXPECT_EQ(expected.runs, 5);
  EXPECT_DOUBLE_EQ(expected.median_error, 0.05);  // of 0.05, 0 and 0.5
  EXPECT_DOUBLE_EQ(expected.failure, 3.0 / 5);    // all but the second and the third
  EXPECT_DOUBLE_EQ(expected.conserved_mib, (0.0 + 5500 + 10000 - 10000 - 10000) / 5);
  EXPECT_DOUBLE_EQ(expected.conserved_share, (0.0 + 0.55 + 1 - 1 - 1) / 5);
  EXPECT_EQ(expected.failure_when_repeated, std::nullopt);
  const CappedAccuracy upper = capped_accuracy_of(runs, Cap::upper);
  EXPECT_DOUBLE_EQ(upper.failure, 2.0 / 5);
  EXPECT_DOUBLE_EQ(upper.conserved_mib, (7900.0 + 4500 + 10000 - 10000 - 10000) / 5);
}

TEST(CappedAccuracy, TakesWhatHappenedWhenRunsWereRepeated) {
  auto runs = capped_runs();
  runs[0].failed_when_capped = false;  // it got by with less
  EXPECT_EQ(capped_accuracy_of(runs, Cap::expected).failure_when_repeated, std::nullopt);
  runs[1].failed_when_capped = false;
  EXPECT_DOUBLE_EQ(capped_accuracy_of(runs, Cap::expected).failure_when_repeated.value_or(-1), 2.0 / 5);
  runs[1].failed_when_capped = true;
  EXPECT_DOUBLE_EQ(capped_accuracy_of(runs, Cap::expected).failure_when_repeated.value_or(-1), 3.0 / 5);
  EXPECT_EQ(capped_accuracy_of(runs, Cap::upper).failure_when_repeated, std::nullopt);
}

TEST(CappedAccuracy, ReservingTheWholeGpuConservesNothing) {
  const std::array<Judged, 1> runs = {
      {{.measured_mib = 2000, .expected_mib = 10000, .upper_mib = 10000, .fits = true, .capacity_mib = 10000}}};
  EXPECT_EQ(capped_accuracy_of(runs, Cap::expected).failure, 0.0);
  EXPECT_EQ(capped_accuracy_of(runs, Cap::expected).conserved_mib, 0.0);
}

}  // namespace
}  // namespace gpumem::datasets
