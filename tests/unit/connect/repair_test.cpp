#include "gpumem/connect/repair.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(Repair, ALayerThatReadsTheContainersInputIsFoundAndSaysSo) {
  constexpr std::string_view kTree = R"(Net(
  (block): Strange(
    (left): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
    (right): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d conv2d add guessed") << "what no part read is added where it fits";
  const auto wired = testing::wired_tree(kTree, {3, 4, 4});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 1);
  EXPECT_EQ(wired->guesses().stand_ins, 0);
  bool named = false;
  for (const model::Warning& warning : wired->graph().warnings()) named |= warning.place.line == 4;
  EXPECT_TRUE(named) << "the warning names the line of the layer";
}

TEST(Repair, WhereGuessesAreNotWantedItIsAnError) {
  constexpr std::string_view kTree = R"(Net(
  (left): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (right): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
))";
  const auto wired = testing::wired_tree(kTree, {3, 4, 4}, true);
  ASSERT_FALSE(wired.has_value());
  EXPECT_EQ(wired.error().code, core::ErrorCode::missing_information);
  EXPECT_EQ(wired.error().place.line, 3);
}

TEST(Repair, PartsSideBySideAreFoundByTheSumOfTheirChannels) {
  constexpr std::string_view kTree = R"(Net(
  (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (b): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))
  (c): Conv2d(12, 5, kernel_size=(1, 1), stride=(1, 1))
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d conv2d concat conv2d guessed");
}

TEST(Repair, PixelsBecomeTokensForALayerThatReadsFeatures) {
  constexpr std::string_view kTree = R"(Net(
  (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (norm): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d flatten permute layer_norm guessed");
}

TEST(Repair, AGateOfAnUnknownBlockScalesItsInput) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 16, kernel_size=(3, 3))
  (se): Unheard(
    (avgpool): AdaptiveAvgPool2d(output_size=1)
    (fc1): Conv2d(16, 4, kernel_size=(1, 1))
    (fc2): Conv2d(4, 16, kernel_size=(1, 1))
  )
  (project): Conv2d(16, 8, kernel_size=(1, 1))
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "conv2d adaptive_avg_pool2d conv2d conv2d mul conv2d guessed");
}

TEST(Repair, AConvolutionOfATableReadsWhatFitsItsSizes) {
  constexpr std::string_view kTable = R"(----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1             [-1, 8, 8, 8]             216
            Conv2d-2             [-1, 16, 8, 8]          1,152
            Conv2d-3             [-1, 21, 8, 8]            168
            Conv2d-4             [-1, 7, 8, 8]             203
================================================================
Total params: 1,739
)";
  EXPECT_EQ(ops_of(kTable, {3, 8, 8}), "conv2d conv2d conv2d concat conv2d guessed")
      << "21 x 8 of the first one's output, and 7 x 29 of two side by side";
}

TEST(Repair, AnInputThatTheFirstLayerCannotReadIsAnError) {
  constexpr std::string_view kTree = R"(Net(
  (a): Conv2d(64, 8, kernel_size=(1, 1), stride=(1, 1))
))";
  const auto wired = testing::wired_tree(kTree, {3, 4, 4});
  ASSERT_FALSE(wired.has_value());
  EXPECT_NE(core::to_string(wired.error()).find("reads 64 channels, and follows [N, 3, 4, 4]"), std::string::npos);
}

TEST(Repair, AnAnswerThatIsMostlyMadeUpIsRefused) {
  constexpr std::string_view kTree = R"(Net(
  (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (b): Conv2d(77, 9, kernel_size=(1, 1), stride=(1, 1))
  (c): Conv2d(91, 5, kernel_size=(1, 1), stride=(1, 1))
))";
  const auto wired = testing::wired_tree(kTree, {3, 4, 4});
  ASSERT_FALSE(wired.has_value());
  EXPECT_NE(core::to_string(wired.error()).find("would be a guess"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::connect
