#include "gpumem/architectures/detection_nets.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::ops_of;
using testing::succeeds;

/// A backbone of two stages, 8 and 16 channels, and a pyramid of 4.
constexpr std::string_view kBackbone = R"(  (backbone): BackboneWithFPN(
    (body): IntermediateLayerGetter(
      (conv1): Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
      (layer1): Sequential(
        (0): Conv2d(8, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
      )
      (layer2): Sequential(
        (0): Conv2d(8, 16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
      )
    )
    (fpn): FeaturePyramidNetwork(
      (inner_blocks): ModuleList(
        (0): Conv2dNormActivation(
          (0): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))
        )
        (1): Conv2dNormActivation(
          (0): Conv2d(16, 4, kernel_size=(1, 1), stride=(1, 1))
        )
      )
      (layer_blocks): ModuleList(
        (0-1): 2 x Conv2dNormActivation(
          (0): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
        )
      )
)";

/// What the backbone and the pyramid call, in this order.
constexpr std::string_view kPyramid = "conv2d conv2d conv2d conv2d conv2d conv2d upsample add conv2d ";

std::string two_stages(std::string_view class_name, std::string_view masks = "") {
  return std::string(class_name) + "(\n" + std::string(kBackbone) + R"(      (extra_blocks): LastLevelMaxPool()
    )
  )
  (rpn): RegionProposalNetwork(
    (anchor_generator): AnchorGenerator()
    (head): RPNHead(
      (conv): Sequential(
        (0): Conv2dNormActivation(
          (0): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
          (1): ReLU(inplace=True)
        )
      )
      (cls_logits): Conv2d(4, 3, kernel_size=(1, 1), stride=(1, 1))
      (bbox_pred): Conv2d(4, 12, kernel_size=(1, 1), stride=(1, 1))
    )
  )
  (roi_heads): RoIHeads(
    (box_roi_pool): MultiScaleRoIAlign(featmap_names=['0', '1'], output_size=(7, 7), sampling_ratio=2)
    (box_head): TwoMLPHead(
      (fc6): Linear(in_features=196, out_features=10, bias=True)
      (fc7): Linear(in_features=10, out_features=10, bias=True)
    )
    (box_predictor): FastRCNNPredictor(
      (cls_score): Linear(in_features=10, out_features=5, bias=True)
      (bbox_pred): Linear(in_features=10, out_features=20, bias=True)
    )
)" + std::string(masks) +
         "  )\n)\n";
}

constexpr std::string_view kMasks =
    R"(    (mask_roi_pool): MultiScaleRoIAlign(featmap_names=['0', '1'], output_size=(14, 14), sampling_ratio=2)
    (mask_head): MaskRCNNHeads(
      (0): Conv2dNormActivation(
        (0): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
        (1): ReLU(inplace=True)
      )
    )
    (mask_predictor): MaskRCNNPredictor(
      (conv5_mask): ConvTranspose2d(4, 4, kernel_size=(2, 2), stride=(2, 2))
      (relu): ReLU(inplace=True)
      (mask_fcn_logits): Conv2d(4, 5, kernel_size=(1, 1), stride=(1, 1))
    )
)";

TEST(Detection, ATwoStageNetRunsOnEveryLevelAndOnRegions) {
  const std::string level = "conv2d relu conv2d conv2d ";
  EXPECT_EQ(ops_of(two_stages("FasterRCNN"), {3, 32, 32}),
            std::string(kPyramid) + "max_pool2d " + level + level + level +
                "roi_align flatten linear relu linear relu linear linear");
}

TEST(Detection, HeadsThatLevelsShareHaveTheirParametersOnce) {
  // backbone 224 + 584 + 1,168, pyramid 36 + 68 + 148 + 148, RPN 148 + 15 + 60, boxes 1,970 + 110 + 55 + 220
  EXPECT_EQ(testing::parameters_of(two_stages("FasterRCNN"), {3, 32, 32}), 4954);
}

TEST(Detection, TheNumberOfRegionsIsBounded) {
  const auto wired = testing::wired_tree(two_stages("FasterRCNN"), {3, 32, 32});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().bounded, 1);
  // A region: 4 x 7 x 7, twice 10 twice, and 5 + 20; 448 fewer are possible, and none more.
  EXPECT_EQ(wired->guesses().fewer_elements, 448 * (196 + 4 * 10 + 25));
  EXPECT_EQ(wired->guesses().more_elements, 0);
  ASSERT_FALSE(wired->graph().warnings().empty());
  EXPECT_NE(wired->graph().warnings()[0].message.find("512 of an image are taken, 64 to 512"), std::string::npos);
  EXPECT_FALSE(testing::wired_tree(two_stages("FasterRCNN"), {3, 32, 32}, true).has_value()) << "--strict";
}

TEST(Detection, MasksAreOfThePositiveRegions) {
  const std::string ops = ops_of(two_stages("MaskRCNN", kMasks), {3, 32, 32});
  EXPECT_NE(ops.find("roi_align conv2d relu conv_transpose2d relu conv2d"), std::string::npos) << ops;
  const auto wired = testing::wired_tree(two_stages("MaskRCNN", kMasks), {3, 32, 32});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().bounded, 2);
  EXPECT_GT(wired->guesses().more_elements, 0);
}

TEST(Detection, AOneStageNetHasTwoLevelsMoreAndTwoHeads) {
  const std::string tree = "RetinaNet(\n" + std::string(kBackbone) + R"(      (extra_blocks): LastLevelP6P7(
        (p6): Conv2d(16, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
        (p7): Conv2d(4, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
      )
    )
  )
  (anchor_generator): AnchorGenerator()
  (head): RetinaNetHead(
    (classification_head): RetinaNetClassificationHead(
      (conv): Sequential(
        (0): Conv2dNormActivation(
          (0): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
          (1): ReLU(inplace=True)
        )
      )
      (cls_logits): Conv2d(4, 9, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    )
  )
)
)";
  const std::string level = "conv2d relu conv2d";
  EXPECT_EQ(ops_of(tree, {3, 32, 32}),
            std::string(kPyramid) + "conv2d relu conv2d " + level + " " + level + " " + level + " " + level);
  const auto wired = testing::wired_tree(tree, {3, 32, 32});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().bounded, 1) << "its loss";
  // Nine scores a pixel of 16 x 16, 8 x 8, 4 x 4 and 2 x 2.
  EXPECT_EQ(wired->guesses().more_elements, 10 * 9 * (256 + 64 + 16 + 4));
}

}  // namespace
}  // namespace gpumem::architectures
