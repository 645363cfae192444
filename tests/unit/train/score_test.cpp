#include "../../../src/train/score.hpp"

#include <cmath>

#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

/// Four jobs of classes 0, 1, 2 and out of memory, which are put into 0, 0, 1 and 2.
struct Case {
  ml::Head head{{0, 100, 200, 300}, {}};
  Dataset data;
  std::vector<Prediction> predictions;

  Case() {
    const double mib[] = {50, 150, 250, 20};
    const std::vector<float> said[] = {{2, 1, 0}, {2, 1, 0}, {0, 2, 1}, {0, 1, 2}};
    for (std::size_t row = 0; row < 4; ++row) {
      data.rows.push_back({.name = "job, " + std::to_string(row),
                           .source = row == 0 ? "a.csv" : "b.csv",
                           .measured_mib = mib[row],
                           .out_of_memory = row == 3});
      predictions.push_back({row, static_cast<std::int64_t>(row % 2), said[row]});
    }
  }
};

TEST(Score, OfBins) {
  const Case made;
  const auto scores = scores_of(made.data, made.head, made.predictions);
  ASSERT_EQ(scores.size(), 5U);  // all, two sources, two folds
  EXPECT_EQ(scores[0].of, "all");
  EXPECT_EQ(scores[0].rows, 4);
  EXPECT_DOUBLE_EQ(scores[0].accuracy, 0.5);
  EXPECT_DOUBLE_EQ(scores[0].within_one, 1.0);
  EXPECT_DOUBLE_EQ(scores[0].underestimated, 0.5);
  EXPECT_DOUBLE_EQ(scores[0].majority, 0.5);
  EXPECT_EQ(scores[0].out_of_memory, 1);
  EXPECT_EQ(scores[0].caught, 1);
  EXPECT_EQ(scores[1].of, "a.csv");
  EXPECT_DOUBLE_EQ(scores[1].accuracy, 1.0);
  EXPECT_EQ(scores[3].of, "fold 1");
  EXPECT_DOUBLE_EQ(scores[3].accuracy, 0.5);
  EXPECT_EQ(confusion_of(made.data, made.head, made.predictions),
            (std::vector<std::vector<std::int64_t>>{{1, 0, 0}, {1, 0, 0}, {0, 1, 1}}));
}

/// Runs on a device of this memory. Reserved is 1,000 MiB by the rule, twice as much by the other; the runs took the
/// latter, and so it was said.
Case mixture_case(double capacity_mib) {
  Case made;
  made.head = {.names = {"rule", "other"}, .spread = 1e-6, .lower_share = 0.1, .upper_share = 0.9};
  for (Row& row : made.data.rows) {
    row = {.name = "job",
           .measured_mib = 2500.0,
           .targets = {std::log(2.0), 0.0},
           .context_mib = 500.0,
           .reserved_mib = 1000.0,
           .capacity_mib = capacity_mib};
  }
  for (Prediction& prediction : made.predictions) prediction.outputs = {0, 30};
  return made;
}

TEST(Score, OfAMixtureIsOfTheDevicesMemory) {
  Case made = mixture_case(40000.0);
  made.predictions[3].outputs = {30, 0};
  const auto scores = scores_of(made.data, made.head, made.predictions);
  ASSERT_TRUE(scores[0].corrected);
  EXPECT_NEAR(scores[0].corrected->relative_error.mean, 0.25 * 0.4, 1e-4);
  EXPECT_NEAR(scores[0].uncorrected.relative_error.mean, 0.4, 1e-9);
  EXPECT_DOUBLE_EQ(scores[0].corrected->covered, 0.75);
  EXPECT_EQ(figures_of(scores[0], made.head)[1].first, "mean_relative_error");

  made.data.rows[0].capacity_mib = 2000.0;  // there the other would not fit, so it is the rule
  EXPECT_NEAR(scores_of(made.data, made.head, made.predictions)[0].corrected->relative_error.mean, 0.25 * (0.4 + 0.4),
              1e-4);
}

TEST(Score, OfAMixtureWhereTheRuleDoesNotFit) {
  const Case made = mixture_case(1200.0);
  const Score score = scores_of(made.data, made.head, made.predictions)[0];
  EXPECT_NEAR(score.corrected->relative_error.mean, 0.0, 1e-4) << "what it would take, whatever there is";
  EXPECT_NEAR(score.corrected->upper_ratio, 1.0, 1e-4);
}

TEST(Score, OfValues) {
  Case made;
  made.head = {{}, {"mib"}};
  for (std::size_t row = 0; row < 4; ++row) {
    made.data.rows[row].targets = {100.0};
    made.predictions[row].outputs = {static_cast<float>(90 + 10 * row)};
  }
  const auto scores = scores_of(made.data, made.head, made.predictions);
  EXPECT_DOUBLE_EQ(scores[0].absolute_error[0], 10.0);
  EXPECT_DOUBLE_EQ(scores[0].median_absolute_error[0], 10.0);
  EXPECT_DOUBLE_EQ(scores[0].covered[0], 0.75);
  EXPECT_EQ(figures_of(scores[0], made.head)[3], std::pair(std::string("mib covered"), 0.75));
}

TEST(Score, PredictionsAsATable) {
  const Case made;
  const std::string text = to_csv(made.data, made.head, made.predictions);
  EXPECT_EQ(text.substr(0, text.find('\n', 110) + 1),
            "name,source,fold,measured_mib,out_of_memory,class,predicted_class,logit0,logit1,logit2\n"
            "\"job, 0\",a.csv,1,50,no,0,0,2,1,0\n");
}

TEST(Residuals, AreTheMiddleOfWhatTargetsLieAboveTheirOutputs) {
  Dataset data;
  std::vector<Prediction> predictions;
  constexpr int kRows = 101;
  for (int row = 0; row < kRows; ++row) {
    data.rows.push_back({.targets = {1.0 + row, 5.0}});
    predictions.push_back({static_cast<std::size_t>(row), 0, {1.0F, 5.0F}});
  }
  const ml::Residuals residuals = residuals_of(data, {.names = {"smact", "gract"}}, predictions);
  EXPECT_EQ(residuals.coverage, 0.9);
  EXPECT_NEAR(residuals.lower[0], 5.0, 1e-9);
  EXPECT_NEAR(residuals.upper[0], 95.0, 1e-9);
  EXPECT_EQ(residuals.lower[1], 0.0);
  EXPECT_EQ(residuals_of(data, {.edges_mib = {0.0, 1.0}}, predictions), ml::Residuals());
}

}  // namespace
}  // namespace gpumem::train
