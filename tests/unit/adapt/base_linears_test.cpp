#include "gpumem/adapt/adapters.hpp"

#include "adapted_jobs.hpp"

namespace gpumem::adapt {
namespace {

TEST(BaseLinears, KnowTheirSidesAndTheHead) {
  const auto wired = connect::connect(testing::small_model(), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const std::vector<BaseLinear> linears = base_linears(*wired);
  ASSERT_EQ(linears.size(), 3U);
  EXPECT_EQ(linears[0].path, "model.layers.0.q_proj");
  EXPECT_EQ(linears[0].leaf(), "q_proj");
  EXPECT_EQ(linears[0].layer, 1U);
  EXPECT_EQ(linears[2].in, 16);
  EXPECT_EQ(linears[2].out, 8);
  EXPECT_FALSE(linears[0].output);
  EXPECT_FALSE(linears[1].output);
  EXPECT_TRUE(linears[2].output);
}

TEST(BaseLinears, WhatNothingReadsIsTheHeadWhateverItsName) {
  const auto wired = connect::connect(testing::net(), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const std::vector<BaseLinear> linears = base_linears(*wired);
  ASSERT_EQ(linears.size(), 2U);
  EXPECT_FALSE(linears[0].output);
  EXPECT_TRUE(linears[1].output);
}

}  // namespace
}  // namespace gpumem::adapt
