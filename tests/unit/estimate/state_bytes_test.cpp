#include "gpumem/estimate/published.hpp"

#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

TEST(StateBytes, SumToOneFigureThatIsAllocated) {
  const auto estimate = estimate_of({100, 20, 3});
  ASSERT_TRUE(testing::succeeds(estimate));
  EXPECT_EQ(estimate->expected.count(), 123);
  EXPECT_EQ(estimate->lower, estimate->expected);
  EXPECT_EQ(estimate->upper, estimate->expected);
  EXPECT_EQ(estimate->allocated, estimate->expected);
  EXPECT_FALSE(estimate->reserved.has_value());
  EXPECT_FALSE(estimate->device.has_value());
  EXPECT_EQ(estimate->breakdown.parameters.count(), 100);
  EXPECT_EQ(estimate->breakdown.gradients.count(), 20);
  EXPECT_EQ(estimate->breakdown.optimizer.count(), 3);
  EXPECT_NE(estimate->leaves_out.find("activations"), std::string::npos);
}

TEST(StateBytes, BeyondSixtyFourBitsAreAnError) {
  EXPECT_TRUE(testing::fails(estimate_of({INT64_MAX, 1, 0}), core::ErrorCode::overflow, 0, "do not fit 64 bits"));
}

}  // namespace
}  // namespace gpumem::estimate
