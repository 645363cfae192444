#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/record/kernel_memory.hpp"
#include "recordings.hpp"

namespace gpumem::record {
namespace {

CallTensor call_shapes_tensor(std::vector<std::int64_t> shape, std::vector<std::int64_t> order = {}) {
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
  const CallTensor plain = call_shapes_tensor({2, 3, 4, 5});
  EXPECT_TRUE(plain.is_contiguous());
  EXPECT_FALSE(plain.is_channels_last());
  const CallTensor last = call_shapes_tensor({2, 3, 4, 5}, {0, 2, 3, 1});
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(last.is_channels_last());
  EXPECT_TRUE(call_shapes_tensor({2, 1, 4, 5}, {0, 2, 3, 1}).is_contiguous()) << "axes of one element do not count";
}

TEST(CallTensor, MatricesMayBeTransposedButNotScattered) {
  EXPECT_TRUE(call_shapes_tensor({3, 4}).is_matrix_as_is());
  EXPECT_TRUE(call_shapes_tensor({3, 4}, {1, 0}).is_matrix_as_is());
  EXPECT_FALSE(call_shapes_tensor({2, 3, 4}, {2, 1, 0}).is_matrix_as_is());
  CallTensor part = call_shapes_tensor({3, 4});
  part.strides = {100, 1};
  EXPECT_TRUE(part.is_matrix_as_is()) << "rows of a wider matrix";
  part.strides = {100, 2};
  EXPECT_FALSE(part.is_matrix_as_is());
}

using Sizes = std::vector<std::int64_t>;

CallTensor kernel_memory_tensor(Sizes shape, Sizes order = {}, core::DType dtype = core::DType::float32) {
  CallTensor made;
  made.shape = std::move(shape);
  made.order = std::move(order);
  made.dtype = dtype;
  made.element_bytes = core::element_size(dtype);
  return made;
}

TEST(KernelMemory, RulesGoByTheOpsName) {
  EXPECT_EQ(kernel_rule("aten::addmm"), KernelRule::product);
  EXPECT_EQ(kernel_rule("aten::convolution_backward"), KernelRule::convolution_backward);
  EXPECT_EQ(kernel_rule("aten::max_pool2d_with_indices"), KernelRule::dense_inputs);
  EXPECT_EQ(kernel_rule("aten::add.Tensor"), KernelRule::plain);
  EXPECT_EQ(kernel_rule("aten::mv"), KernelRule::product);
}

TEST(KernelMemory, ProductsCopyMatricesThatCublasCannotRead) {
  CallTensor scattered = kernel_memory_tensor({8, 4});
  scattered.strides = {64, 2};
  const CallTensor matrix = kernel_memory_tensor({4, 6});
  EXPECT_EQ(copies(KernelRule::product, std::vector{scattered, matrix}), (Sizes{8 * 4 * 4}));
  EXPECT_TRUE(
      copies(KernelRule::product, std::vector{kernel_memory_tensor({8, 4}), kernel_memory_tensor({4, 6}, {1, 0})})
          .empty());
}

TEST(KernelMemory, ConvolutionsCopyWhatIsInAnotherFormat) {
  const CallTensor image = kernel_memory_tensor({2, 8, 5, 5});
  const CallTensor last = kernel_memory_tensor({2, 8, 5, 5}, {0, 2, 3, 1});
  const CallTensor weight = kernel_memory_tensor({16, 8, 3, 3});
  EXPECT_TRUE(copies(KernelRule::convolution, std::vector{image, weight}).empty());
  EXPECT_EQ(copies(KernelRule::convolution, std::vector{last, weight}), (Sizes{16 * 8 * 9 * 4})) << "the weight";
  const CallTensor gradient = kernel_memory_tensor({2, 16, 5, 5});
  EXPECT_EQ(copies(KernelRule::convolution_backward, std::vector{gradient, last, weight}),
            (Sizes{2 * 16 * 25 * 4, 16 * 8 * 9 * 4}));
}

TEST(KernelMemory, AttentionsBackwardKeepsSumsOfRows) {
  const CallTensor query = kernel_memory_tensor({2, 8, 100, 64}, {}, core::DType::bfloat16);
  const CallTensor key = kernel_memory_tensor({2, 2, 100, 64}, {}, core::DType::bfloat16);
  EXPECT_EQ(copies(KernelRule::flash_attention_backward, std::vector{query, query, key}),
            (Sizes{2 * 8 * 128 * 4, 2 * 8 * 128 * 64 * 4, 2 * 8 * 100 * 64 * 2, 2 * 8 * 100 * 64 * 2}));
  const CallTensor as_made = kernel_memory_tensor({2, 8, 100, 64}, {0, 2, 1, 3}, core::DType::bfloat16);
  EXPECT_EQ(copies(KernelRule::efficient_attention_backward, std::vector{as_made, query, query}),
            (Sizes{2 * 8 * 100 * 4, 2 * 8 * 100 * 64 * 4}));
}

TEST(KernelMemory, ASoftmaxsBackwardMultipliesFirst) {
  EXPECT_EQ(kernel_rule("aten::_softmax_backward_data"), KernelRule::softmax_backward);
  EXPECT_EQ(kernel_rule("aten::_log_softmax_backward_data"), KernelRule::dense_inputs);
  const CallTensor result = kernel_memory_tensor({2, 8, 100, 100});
  EXPECT_EQ(copies(KernelRule::softmax_backward, std::vector{result, result}), (Sizes{2 * 8 * 100 * 100 * 4}));
  const CallTensor turned = kernel_memory_tensor({2, 8, 100, 50}, {0, 1, 3, 2}, core::DType::float16);
  EXPECT_EQ(copies(KernelRule::softmax_backward, std::vector{turned, turned}), Sizes(3, 2 * 8 * 100 * 50 * 2))
      << "and copies what is not contiguous";
}

TEST(KernelMemory, ATransposedConvolutionsForwardIsADataGradient) {
  const CallTensor input = kernel_memory_tensor({4, 16, 10, 10});
  const CallTensor weight = kernel_memory_tensor({16, 8, 2, 2});
  const CallTensor output = kernel_memory_tensor({4, 8, 20, 20});
  const Sizes extra = {1, 1, 7};
  const auto part =
      convolution_part(KernelRule::convolution, 0, std::vector{input, weight}, std::vector{output}, extra);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->direction, plan::Direction::data_gradient);
  EXPECT_EQ(part->sizes.in_channels, 8);
  EXPECT_EQ(part->sizes.out_channels, 16);
  EXPECT_EQ(part->sizes.input_pixels, 400);
  EXPECT_EQ(part->sizes.output_pixels, 100);
  EXPECT_EQ(part->batch_size, 4);
  EXPECT_FALSE(convolution_part(KernelRule::convolution, 0, std::vector{input}, std::vector{output}, extra));
}

}  // namespace
}  // namespace gpumem::record
