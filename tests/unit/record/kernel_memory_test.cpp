#include "gpumem/record/kernel_memory.hpp"

#include <gtest/gtest.h>

namespace gpumem::record {
namespace {

using Sizes = std::vector<std::int64_t>;

CallTensor tensor(Sizes shape, Sizes order = {}, core::DType dtype = core::DType::float32) {
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
  CallTensor scattered = tensor({8, 4});
  scattered.strides = {64, 2};
  const CallTensor matrix = tensor({4, 6});
  EXPECT_EQ(copies(KernelRule::product, std::vector{scattered, matrix}), (Sizes{8 * 4 * 4}));
  EXPECT_TRUE(copies(KernelRule::product, std::vector{tensor({8, 4}), tensor({4, 6}, {1, 0})}).empty());
}

TEST(KernelMemory, ConvolutionsCopyWhatIsInAnotherFormat) {
  const CallTensor image = tensor({2, 8, 5, 5});
  const CallTensor last = tensor({2, 8, 5, 5}, {0, 2, 3, 1});
  const CallTensor weight = tensor({16, 8, 3, 3});
  EXPECT_TRUE(copies(KernelRule::convolution, std::vector{image, weight}).empty());
  EXPECT_EQ(copies(KernelRule::convolution, std::vector{last, weight}), (Sizes{16 * 8 * 9 * 4})) << "the weight";
  const CallTensor gradient = tensor({2, 16, 5, 5});
  EXPECT_EQ(copies(KernelRule::convolution_backward, std::vector{gradient, last, weight}),
            (Sizes{2 * 16 * 25 * 4, 16 * 8 * 9 * 4}));
}

TEST(KernelMemory, AttentionsBackwardKeepsSumsOfRows) {
  const CallTensor query = tensor({2, 8, 100, 64}, {}, core::DType::bfloat16);
  const CallTensor key = tensor({2, 2, 100, 64}, {}, core::DType::bfloat16);
  EXPECT_EQ(copies(KernelRule::flash_attention_backward, std::vector{query, query, key}),
            (Sizes{2 * 8 * 128 * 4, 2 * 8 * 128 * 64 * 4, 2 * 8 * 100 * 64 * 2, 2 * 8 * 100 * 64 * 2}));
  const CallTensor as_made = tensor({2, 8, 100, 64}, {0, 2, 1, 3}, core::DType::bfloat16);
  EXPECT_EQ(copies(KernelRule::efficient_attention_backward, std::vector{as_made, query, query}),
            (Sizes{2 * 8 * 100 * 4, 2 * 8 * 100 * 64 * 4}));
}

TEST(KernelMemory, ATransposedConvolutionsForwardIsADataGradient) {
  const CallTensor input = tensor({4, 16, 10, 10});
  const CallTensor weight = tensor({16, 8, 2, 2});
  const CallTensor output = tensor({4, 8, 20, 20});
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
