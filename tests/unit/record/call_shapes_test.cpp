#include "gpumem/record/kernel_memory.hpp"

#include "expect.hpp"
#include "recordings.hpp"

namespace gpumem::record {
namespace {

CallTensor tensor(std::vector<std::int64_t> shape, std::vector<std::int64_t> order = {}) {
  CallTensor made;
  made.shape = std::move(shape);
  made.order = std::move(order);
  return made;
}

TEST(CallShapes, EvaluatesSizesAndTensors) {
  const auto graph = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(testing::succeeds(graph));
  const auto shapes = CallShapes::at(*graph, 5, 1);
  ASSERT_TRUE(testing::succeeds(shapes));
  EXPECT_EQ(shapes->size(1), 5 * 3 * 4);
  const CallTensor transposed = shapes->tensor(3);
  EXPECT_EQ(transposed.shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(transposed.stride(0), 1);
  EXPECT_EQ(transposed.stride(1), 3);
  EXPECT_EQ(transposed.bytes(), 48);
}

TEST(CallTensor, KnowsItsLayout) {
  const CallTensor plain = tensor({2, 3, 4, 5});
  EXPECT_TRUE(plain.is_contiguous());
  EXPECT_FALSE(plain.is_channels_last());
  const CallTensor last = tensor({2, 3, 4, 5}, {0, 2, 3, 1});
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(last.is_channels_last());
  EXPECT_TRUE(tensor({2, 1, 4, 5}, {0, 2, 3, 1}).is_contiguous()) << "axes of one element do not count";
}

TEST(CallTensor, MatricesMayBeTransposedButNotScattered) {
  EXPECT_TRUE(tensor({3, 4}).is_matrix_as_is());
  EXPECT_TRUE(tensor({3, 4}, {1, 0}).is_matrix_as_is());
  EXPECT_FALSE(tensor({2, 3, 4}, {2, 1, 0}).is_matrix_as_is());
  CallTensor part = tensor({3, 4});
  part.strides = {100, 1};
  EXPECT_TRUE(part.is_matrix_as_is()) << "rows of a wider matrix";
  part.strides = {100, 2};
  EXPECT_FALSE(part.is_matrix_as_is());
}

}  // namespace
}  // namespace gpumem::record
