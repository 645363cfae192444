#include "gpumem/connect/vision_transformers.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

std::string block(const std::string& index, const std::string& packed) {
  return "      (" + index + R"(): GlobalContextVitBlock(
        (norm1): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (attn): WindowAttentionGlobal(
          (rel_pos): RelPosBias()
          (qkv): Linear(in_features=32, out_features=)" +
         packed + R"(, bias=True)
          (proj): Linear(in_features=32, out_features=32, bias=True)
        )
        (norm2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (mlp): Mlp(
          (fc1): Linear(in_features=32, out_features=32, bias=True)
        )
      )
)";
}

const std::string kTree = R"(Net(
  (conv): Conv2d(3, 32, kernel_size=(1, 1), stride=(1, 1))
  (stage): GlobalContextVitStage(
    (downsample): Identity()
    (global_block): FeatureBlock(
      (blocks): Sequential(
        (pool1): MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)
      )
    )
    (global_norm): Identity()
    (blocks): ModuleList(
)" + block("0", "96") + block("1", "64") +
                          R"(    )
    (norm): Identity()
  )
)
)";

TEST(Gcvit, TheStagesImageGivesTheWindowsTheirSizeAndEverySecondBlockItsQueries) {
  EXPECT_EQ(testing::outputs_of(kTree, {3, 14, 14}, "softmax"), "[4N, 1, 49, 49] [4N, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(kTree, {3, 14, 14}, "repeat"), "[4N, 49, 32]");
}

TEST(Gcvit, AStageLeavesImages) {
  const auto wired = testing::wired_tree(kTree, {3, 14, 14});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(core::to_string(wired->outputs(wired->graph().layers().size() - 1)[0]), "[N, 32, 14, 14]");
}

}  // namespace
}  // namespace gpumem::connect
