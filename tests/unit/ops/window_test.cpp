#include "gpumem/ops/axis.hpp"

#include "expect.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::shape;

TEST(Window, HasPyTorchsDefaults) {
  const Window window = Window::of({}, 0);
  EXPECT_EQ(window.kernel, 1);
  EXPECT_EQ(window.stride, 1);
  EXPECT_EQ(window.padding, 0);
  EXPECT_EQ(window.dilation, 1);
}

TEST(Window, OfAPoolingStridesByItsKernel) {
  const std::vector<model::Attribute> all = {{"kernel_size", std::vector<std::int64_t>{3, 2}}};
  const model::Attributes attributes(all);
  EXPECT_EQ(Window::of(attributes, 0, true).stride, 3);
  EXPECT_EQ(Window::of(attributes, 1, true).stride, 2);
  EXPECT_EQ(Window::of(attributes, 1, false).stride, 1);
}

TEST(SlidLength, FollowsPyTorchsFormula) {
  EXPECT_EQ(slid_length({7, 2, 3, 1}, 224), 112);
  EXPECT_EQ(slid_length({3, 2, 1, 1}, 112), 56);
  EXPECT_EQ(slid_length({3, 2, 1, 2}, 32), 15);
  EXPECT_EQ(slid_length({1, 1, 0, 1}, 1), 1);
  EXPECT_EQ(slid_length({3, 1, 0, 1}, 2), std::nullopt);
}

TEST(SlidLength, CeilModeCountsALastPartialWindow) {
  EXPECT_EQ(slid_length({3, 2, 0, 1}, 112), 55);
  EXPECT_EQ(slid_length({3, 2, 0, 1}, 112, true), 56);
}

TEST(SlidLength, CeilModeDropsAWindowThatBeginsInTheRightPadding) {
  EXPECT_EQ(slid_length({2, 2, 1, 1}, 7, true), 4);
  EXPECT_EQ(slid_length({1, 4, 0, 1}, 6, true), 2);
}

TEST(SlidLength, RefusesALengthThatNoInputHas) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;
  EXPECT_EQ(slid_length({1, 1, 0, 1}, kLongest), kLongest);
  EXPECT_EQ(slid_length({1, 1, 0, 1}, kLongest + 1), std::nullopt);
  EXPECT_EQ(slid_length({1, 1, 1, 1}, INT64_MAX), std::nullopt);
  EXPECT_EQ(slid_length({1, 3, 0, 1}, INT64_MAX, true), std::nullopt);
}

TEST(SlidShape, KeepsBatchAndChannels) {
  const auto halved = slid_shape<2>(
      shape({N, 3, 8, 6}), [](std::size_t, std::int64_t length) { return core::Result<std::int64_t>(length / 2); });
  ASSERT_TRUE(testing::succeeds(halved));
  EXPECT_EQ(*halved, shape({N, 3, 4, 3}));
}

}  // namespace
}  // namespace gpumem::ops
