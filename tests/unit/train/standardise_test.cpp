#include "../../../src/train/standardise.hpp"

#include <numeric>

#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::recipe_of;

Dataset two_rows() {
  Dataset data;
  data.rows.push_back({.features = {0.0, 2.0, 5.0}, .sequence = {{1.0, 0.0}, {3.0, 1.0}}, .measured_mib = 150.0});
  data.rows.push_back({.features = {std::exp(2.0) - 1.0, 6.0, 5.0}, .sequence = {}, .measured_mib = 10.0});
  return data;
}

TEST(Standardise, FitsToTheseRowsAlone) {
  ml::ModelConfig model = recipe_of(testing::sequence_recipe()).model;
  Dataset data = two_rows();
  data.rows.push_back({.features = {1e9, 1e9, 1e9}, .sequence = {{1e9, 1e9}}});
  fit_statistics(model, data, std::vector<std::size_t>{0, 1});
  EXPECT_DOUBLE_EQ(model.features[0].mean, 1.0);  // of log1p: 0 and 2
  EXPECT_DOUBLE_EQ(model.features[0].scale, 1.0);
  EXPECT_DOUBLE_EQ(*model.features[0].max, std::exp(2.0) - 1.0);
  EXPECT_DOUBLE_EQ(model.features[1].mean, 4.0);
  EXPECT_DOUBLE_EQ(model.features[1].scale, 2.0);
  EXPECT_DOUBLE_EQ(model.features[2].mean, 5.0);
  EXPECT_DOUBLE_EQ(model.features[2].scale, 1.0);  // all alike
  EXPECT_DOUBLE_EQ(model.sequence[0].mean, 2.0);   // of rows that are not padding
  EXPECT_DOUBLE_EQ(model.sequence[0].scale, 1.0);
}

TEST(Standardise, ExamplesAreScaledAndPadded) {
  ml::ModelConfig model = recipe_of(testing::sequence_recipe()).model;
  const Dataset data = two_rows();
  const std::vector<std::size_t> rows = {1, 0};
  fit_statistics(model, data, rows);
  const Examples examples = examples_of(model, {}, data, rows);
  EXPECT_EQ(examples.count, 2);
  EXPECT_EQ(examples.features, (std::vector<float>{1, 1, 0, -1, -1, 0}));
  EXPECT_EQ(examples.lengths, (std::vector<std::int64_t>{0, 2}));
  std::vector<float> sequences(24);
  sequences[12] = -1;
  sequences[13] = -1;
  sequences[14] = 1;
  sequences[15] = 1;
  EXPECT_EQ(examples.sequences, sequences);
  EXPECT_EQ(examples.classes, (std::vector<std::int64_t>{0, 1}));
}

TEST(Standardise, LongSequencesAreCut) {
  const ml::ModelConfig model = recipe_of(testing::sequence_recipe()).model;
  Dataset data = two_rows();
  data.rows[0].sequence.assign(9, {7.0, 1.0});
  const Examples examples = examples_of(model, {}, data, std::vector<std::size_t>{0});
  EXPECT_EQ(examples.lengths[0], 6);
  EXPECT_EQ(examples.sequences.size(), 12U);
}

TEST(Standardise, TargetsHaveMeanZero) {
  const ml::ModelConfig model = recipe_of(testing::values_recipe()).model;
  Dataset data = two_rows();
  for (Row& row : data.rows) row.targets = {row.measured_mib, 1.0};
  const std::vector<std::size_t> rows = {0, 1};
  const auto targets = fit_targets(model, data, rows);
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_DOUBLE_EQ(targets[0].mean, 80.0);
  EXPECT_DOUBLE_EQ(targets[0].scale, 70.0);
  EXPECT_DOUBLE_EQ(targets[1].scale, 1.0);
  EXPECT_EQ(examples_of(model, targets, data, rows).targets, (std::vector<float>{1, 0, -1, 0}));
}

}  // namespace
}  // namespace gpumem::train
