#include "gpumem/connect/cut_blocks.hpp"

#include <algorithm>

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::succeeds;

// torchvision's ResNet-18, cut at depth 2.
constexpr std::string_view kResnet18 =
    R"(==========================================================================================
Layer (type:depth-idx)                    Output Shape              Param #
==========================================================================================
ResNet                                    [2, 1000]                 --
├─Conv2d: 1-1                             [2, 64, 112, 112]         9,408
├─BatchNorm2d: 1-2                        [2, 64, 112, 112]         128
├─ReLU: 1-3                               [2, 64, 112, 112]         --
├─MaxPool2d: 1-4                          [2, 64, 56, 56]           --
├─Sequential: 1-5                         [2, 64, 56, 56]           --
│    └─BasicBlock: 2-1                    [2, 64, 56, 56]           73,984
│    └─BasicBlock: 2-2                    [2, 64, 56, 56]           73,984
├─Sequential: 1-6                         [2, 128, 28, 28]          --
│    └─BasicBlock: 2-3                    [2, 128, 28, 28]          230,144
│    └─BasicBlock: 2-4                    [2, 128, 28, 28]          295,424
├─Sequential: 1-7                         [2, 256, 14, 14]          --
│    └─BasicBlock: 2-5                    [2, 256, 14, 14]          919,040
│    └─BasicBlock: 2-6                    [2, 256, 14, 14]          1,180,672
├─Sequential: 1-8                         [2, 512, 7, 7]            --
│    └─BasicBlock: 2-7                    [2, 512, 7, 7]            3,673,088
│    └─BasicBlock: 2-8                    [2, 512, 7, 7]            4,720,640
├─AdaptiveAvgPool2d: 1-9                  [2, 512, 1, 1]            --
├─Linear: 1-10                            [2, 1000]                 513,000
==========================================================================================
Total params: 11,689,512
Trainable params: 11,689,512
Non-trainable params: 0
Total mult-adds (G): 1.0
==========================================================================================
Input size (MB): 1.20
)";

std::int64_t count(const ModelGraph& graph, std::string_view op) {
  return std::count_if(graph.layers().begin(), graph.layers().end(),
                       [&](const model::Layer& layer) { return graph.op(layer) == op; });
}

TEST(CutBlocks, AResnetCutAtDepthTwoHasItsLayers) {
  const auto wired = testing::wired_tree(kResnet18, {3, 224, 224});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->graph().parameters(), 11'689'512);
  EXPECT_EQ(count(wired->graph(), "conv2d"), 20);
  EXPECT_EQ(count(wired->graph(), "batch_norm"), 20);
  EXPECT_EQ(count(wired->graph(), "add"), 8);
  EXPECT_EQ(count(wired->graph(), "relu"), 17);
  EXPECT_EQ(wired->guesses().edges, 0);
}

std::string table_of(std::string_view row) {
  return R"(===================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
===================================================================================
Net                                      [2, 64, 8, 8]             --
├─Conv2d: 1-1                            [2, 64, 8, 8]             1,728
)" + std::string(row) +
         R"(===================================================================================
Total params: 1
)";
}

TEST(CutBlocks, ABottleneckOfOneWidthIsFound) {
  // 64 -> 16 -> 16 -> 64: 1,024 + 2,304 + 1,024 weights, and 2 (16 + 16 + 64) of the norms.
  EXPECT_EQ(ops_of(table_of("├─Bottleneck: 1-2                        [2, 64, 8, 8]             4,544\n"), {3, 8, 8}),
            "conv2d conv2d batch_norm relu conv2d batch_norm relu conv2d batch_norm add relu");
}

TEST(CutBlocks, WhatNoWidthsGiveIsCountedApartAndSaid) {
  const auto wired = testing::wired_tree(
      table_of("├─Bottleneck: 1-2                        [2, 64, 8, 8]             4,545\n"), {3, 8, 8});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->graph().parameters(), 1'728 + 4'545);
  EXPECT_EQ(wired->guesses().edges, 1);
}

TEST(CutBlocks, ABlockOfTooFewParametersIsBounded) {
  const std::string table = table_of("├─BasicBlock: 1-2                        [2, 64, 8, 8]             3\n");
  EXPECT_EQ(ops_of(table, {3, 8, 8}), "conv2d opaque");
  const auto wired = testing::wired_tree(table, {3, 8, 8});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().bounded, 1);
  EXPECT_EQ(wired->graph().parameters(), 1'728 + 3);
  EXPECT_TRUE(testing::fails(testing::wired_tree(table, {3, 8, 8}, true), ErrorCode::unknown_layer, 6,
                             "print the summary with a greater depth"));
}

TEST(CutBlocks, AnInvertedResidualOfMobileNetV2HasItsActivations) {
  // 64 -> 384 -> 384 -> 64: 24,576 + 3,456 + 24,576 weights, and 2 (384 + 384 + 64) of the norms.
  EXPECT_EQ(ops_of(table_of("├─InvertedResidual: 1-2                  [2, 64, 8, 8]             54,272\n"), {3, 8, 8}),
            "conv2d conv2d batch_norm relu6 conv2d batch_norm relu6 conv2d batch_norm add");
}

TEST(CutBlocks, AnInvertedResidualOfMobileNetV3HasItsGate) {
  // 64 -> 96 -> 96 -> 64 after a gate of 24: 6,144 + 864 + 6,144 weights, 512 of the norms, 4,728 of the gate.
  EXPECT_EQ(ops_of(table_of("├─InvertedResidual: 1-2                  [2, 64, 8, 8]             18,392\n"), {3, 8, 8}),
            "conv2d conv2d batch_norm hardswish conv2d batch_norm hardswish adaptive_avg_pool2d conv2d relu conv2d "
            "sigmoid mul conv2d batch_norm add");
}

TEST(CutBlocks, ABlockOfRegNetYHasGroupsOfTheirWidth) {
  // 64 -> 64 -> 64 -> 64 in groups of 16 after a gate of 16: 4,096 + 9,216 + 4,096 weights, 384 of the norms, 2,128.
  EXPECT_EQ(ops_of(table_of("├─ResBottleneckBlock: 1-2                [2, 64, 8, 8]             19,920\n"), {3, 8, 8}),
            "conv2d conv2d batch_norm relu conv2d batch_norm relu adaptive_avg_pool2d conv2d relu conv2d sigmoid mul "
            "conv2d batch_norm add relu");
}

}  // namespace
}  // namespace gpumem::connect
