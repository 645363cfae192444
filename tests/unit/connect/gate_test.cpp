#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(Gate, PoolsByAMeanThatNoLineShows) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (se): SqueezeExcite(
    (conv_reduce): Conv2d(8, 2, kernel_size=(1, 1), stride=(1, 1))
    (act1): ReLU(inplace=True)
    (conv_expand): Conv2d(2, 8, kernel_size=(1, 1), stride=(1, 1))
    (gate): Sigmoid()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d adaptive_avg_pool2d conv2d relu conv2d sigmoid mul");
}

TEST(Gate, AnEcaModuleConvolvesAlongTheChannels) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (attn): EcaModule(
    (conv): Conv1d(1, 1, kernel_size=(3,), stride=(1,), padding=(1,), bias=False)
    (gate): Sigmoid()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d mean unsqueeze conv1d sigmoid reshape mul");
}

TEST(Gate, AGateInATorchsummaryIsFoundByItsOnePixel) {
  constexpr std::string_view kTable = R"(----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1            [-1, 8, 16, 16]             216
       BatchNorm2d-2            [-1, 8, 16, 16]              16
            Conv2d-3              [-1, 2, 1, 1]              18
              SiLU-4              [-1, 2, 1, 1]               0
            Conv2d-5              [-1, 8, 1, 1]              24
           Sigmoid-6              [-1, 8, 1, 1]               0
     SqueezeExcite-7            [-1, 8, 16, 16]               0
            Conv2d-8            [-1, 4, 16, 16]              32
================================================================
Total params: 306
)";
  EXPECT_EQ(ops_of(kTable, {3, 16, 16}), "conv2d batch_norm adaptive_avg_pool2d conv2d silu conv2d sigmoid mul conv2d");
}

}  // namespace
}  // namespace gpumem::connect
