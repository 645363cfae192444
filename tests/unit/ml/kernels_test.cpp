#include "gpumem/ml/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpumem::ml {
namespace {

const Instructions kAll[] = {Instructions::portable, Instructions::avx2};

TEST(Kernels, AreDifferentOnesWhereTheMachineHasMore) {
  const bool same = kernels(best_instructions()).dense == kernels(Instructions::portable).dense;
  EXPECT_EQ(same, best_instructions() == Instructions::portable);
  if (best_instructions() == Instructions::portable) {
    EXPECT_EQ(kernels(Instructions::avx2).dense, kernels(Instructions::portable).dense);
  }
}

TEST(Kernels, ALinearForEachLane) {
  const std::vector<float> weight = {1, 2, -3, 4, 0, -1};  // three outputs of two inputs
  const std::vector<float> bias = {0.5F, 0, 1};
  std::vector<float> x(2 * kLaneBlock);
  for (int lane = 0; lane < kLaneBlock; ++lane) x[static_cast<std::size_t>(lane)] = static_cast<float>(lane);
  for (int lane = 0; lane < kLaneBlock; ++lane) x[static_cast<std::size_t>(kLaneBlock + lane)] = 1.0F;
  for (const Instructions instructions : kAll) {
    std::vector<float> y(3 * kLaneBlock, 100.0F);
    const auto at = [&](std::int64_t unit, std::int64_t lane) {
      return y[static_cast<std::size_t>(unit * kLaneBlock + lane)];
    };
    const Dense layer{weight.data(), bias.data(), 2, 3};
    kernels(instructions).dense(layer, x.data(), y.data(), kLaneBlock, kLaneBlock, Finish::store);
    for (std::int64_t lane = 0; lane < kLaneBlock; ++lane) {
      EXPECT_EQ(at(0, lane), static_cast<float>(lane) + 2.5F);
      EXPECT_EQ(at(1, lane), static_cast<float>(-3 * lane + 4));
      EXPECT_EQ(at(2, lane), 0.0F);
    }
    kernels(instructions).dense(layer, x.data(), y.data(), kLaneBlock, kLaneBlock, Finish::add);
    EXPECT_EQ(at(0, 3), 11.0F);
    kernels(instructions).dense(layer, x.data(), y.data(), kLaneBlock, kLaneBlock, Finish::relu);
    EXPECT_EQ(at(1, 1), 1.0F);
    EXPECT_EQ(at(1, 2), 0.0F);
  }
}

TEST(Kernels, AttentionIsSoftmaxOverTheKeysGiven) {
  // One head of one unit: queries are 1, keys are scores to the base 2, values tell the keys apart.
  const std::vector<double> scores = {-0.37, 3.2, -140.0, 2.9, 0.0, -1.0, 40.0};
  const std::int64_t count = 6;  // the last one is not to be looked at
  std::vector<float> queries(kLaneBlock, 1.0F);
  std::vector<float> keys(kLaneBlock);
  std::vector<float> values(kLaneBlock);
  double weighed = 0.0;
  double sum = 0.0;
  for (std::size_t key = 0; key < scores.size(); ++key) {
    keys[key] = static_cast<float>(scores[key]);
    values[key] = static_cast<float>(key * key) - 7.0F;
    if (static_cast<std::int64_t>(key) >= count) continue;
    weighed += std::exp2(static_cast<double>(keys[key])) * static_cast<double>(values[key]);
    sum += std::exp2(static_cast<double>(keys[key]));
  }
  for (const Instructions instructions : kAll) {
    std::vector<float> y(kLaneBlock);
    std::vector<float> scratch(count * kLaneBlock);
    const AttentionHeads heads{queries.data(), keys.data(), values.data(), 1, 1, count};
    kernels(instructions).attention(heads, y.data(), kLaneBlock, kLaneBlock, scratch.data());
    for (const float output : y) EXPECT_NEAR(output, weighed / sum, 1e-6);
  }
}

TEST(Kernels, LayerNormHasMeanZeroAndVarianceOne) {
  const std::vector<float> ones(3, 1.0F);
  const std::vector<float> zeros(3, 0.0F);
  for (const Instructions instructions : kAll) {
    std::vector<float> x(3 * kLaneBlock);
    for (std::size_t at = 0; at < x.size(); ++at) x[at] = static_cast<float>(at / kLaneBlock);
    const std::vector<float> addend(3 * kLaneBlock, 5.0F);
    kernels(instructions).add_and_norm({ones.data(), zeros.data(), 3}, addend.data(), x.data(), kLaneBlock, kLaneBlock);
    for (std::size_t lane = 0; lane < kLaneBlock; ++lane) {
      EXPECT_NEAR(x[lane], -std::sqrt(1.5), 1e-4);
      EXPECT_NEAR(x[kLaneBlock + lane], 0.0, 1e-6);
      EXPECT_NEAR(x[2 * kLaneBlock + lane], std::sqrt(1.5), 1e-4);
    }
  }
}

}  // namespace
}  // namespace gpumem::ml
