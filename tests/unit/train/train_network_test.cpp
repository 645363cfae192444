#include "../../../src/train/train_network.hpp"

#include <algorithm>
#include <numeric>

#include "expect.hpp"

namespace gpumem::train {
namespace {

TEST(Batches, HoldEachExampleOnce) {
  for (const std::int64_t count : {2, 7, 8, 9, 100}) {
    std::vector<std::int64_t> all;
    for (const auto& batch : batches_of(count, 4, 1, 0)) {
      EXPECT_GE(batch.size(), 2U);
      EXPECT_LE(batch.size(), 5U);  // with one that would be left over
      all.insert(all.end(), batch.begin(), batch.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<std::int64_t> expected(static_cast<std::size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(Batches, DifferFromEpochToEpochAndBySeed) {
  EXPECT_EQ(batches_of(50, 8, 1, 3), batches_of(50, 8, 1, 3));
  EXPECT_NE(batches_of(50, 8, 1, 3), batches_of(50, 8, 1, 4));
  EXPECT_NE(batches_of(50, 8, 1, 3), batches_of(50, 8, 2, 3));
}

TEST(LearningRate, FollowsItsSchedule) {
  TrainingOptions options;
  options.learning_rate = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 99, 100), 0.5);
  options.schedule = Schedule::cosine;
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 0, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 50, 100), 0.25);
  EXPECT_LT(learning_rate_at(options, 99, 100), 0.001);
}

}  // namespace
}  // namespace gpumem::train
