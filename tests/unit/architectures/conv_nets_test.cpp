#include "gpumem/architectures/conv_nets.hpp"
#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(Ghost, TheCheapHalfReadsTheFirst) {
  constexpr std::string_view kTree = R"(Net(
  (0): GhostModule(
    (primary_conv): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    (cheap_operation): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=4)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d conv2d concat");
}

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

TEST(MixedConvolution, EachKernelReadsItsPartOfTheChannels) {
  constexpr std::string_view kTree = R"(Net(
  (0): MixedConv2d(
    (0): Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (1): Conv2d(2, 2, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8, 8}), "slice conv2d slice conv2d concat");
}

TEST(NormAct, TheNormComesBeforeWhatItHolds) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
  (bn): BatchNormAct2d(
    8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True
    (drop): Identity()
    (act): ReLU(inplace=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d batch_norm identity relu");
}

TEST(NormAct, ArgumentsMayBeginWithABracket) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (norm): LayerNormAct2d(
    (8,), eps=1e-06, elementwise_affine=True
    (drop): Identity()
    (act): GELU(approximate='none')
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d permute layer_norm permute identity gelu");
  EXPECT_EQ(parameters_of(kTree, {3, 4, 4}), 3 * 8 + 8 + 16);
}

TEST(NormalizerFree, TheShortcutReadsTheActivation) {
  constexpr std::string_view kTree = R"(Net(
  (0): NormFreeBlock(
    (downsample): Conv2d(3, 6, kernel_size=(1, 1), stride=(1, 1))
    (act1): ReLU(inplace=True)
    (conv1): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    (act2): ReLU(inplace=True)
    (conv2): Conv2d(4, 6, kernel_size=(1, 1), stride=(1, 1))
    (drop_path): Identity()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "relu mul conv2d conv2d relu conv2d identity mul add");
}

TEST(RepBlock, BranchesAreSummed) {
  constexpr std::string_view kTree = R"(Net(
  (0): RepVggBlock(
    (identity): BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    (conv_kxk): Conv2d(3, 3, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (conv_1x1): Conv2d(3, 3, kernel_size=(1, 1), stride=(1, 1))
    (act): ReLU(inplace=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "batch_norm conv2d add conv2d add relu");
}

TEST(PlainModules, AClassOfNoListIsCountedAndNamed) {
  constexpr std::string_view kTree = R"(EfficientNet(
  (a): ConvNormAct(
    (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
    (act): ReLU()
  )
  (b): Mystery(
    (conv): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1))
    (act): ReLU()
  )
))";
  const auto wired = testing::wired_tree(kTree, {3, 4, 4});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().containers, 1);
  EXPECT_EQ(wired->guesses().edges, 0);
  ASSERT_EQ(wired->graph().warnings().size(), 1U);
  EXPECT_NE(wired->graph().warnings()[0].message.find("Mystery"), std::string::npos);
  EXPECT_EQ(parameters_of(kTree, {3, 4, 4}), 3 * 8 + 8 + 8 * 8 + 8);
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d relu conv2d relu");
}

}  // namespace
}  // namespace gpumem::architectures
