#include "gpumem/connect/vision_transformers.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

constexpr std::string_view kTree = R"(Visformer(
  (stem): Sequential(
    (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)
  )
  (patch_embed1): PatchEmbed(
    (proj): Conv2d(8, 16, kernel_size=(4, 4), stride=(4, 4))
    (norm): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  )
  (pos_drop): Dropout(p=0.0, inplace=False)
  (stage1): Sequential(
    (0): Block(
      (norm2): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      (mlp): SpatialMlp(
        (conv1): Conv2d(16, 32, kernel_size=(1, 1), stride=(1, 1), bias=False)
        (conv3): Conv2d(32, 16, kernel_size=(1, 1), stride=(1, 1), bias=False)
      )
    )
  )
  (norm): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (head): Linear(in_features=16, out_features=4, bias=True)
)
)";

TEST(Visformer, PatchesStayImagesWithPositions) {
  EXPECT_EQ(testing::outputs_of(kTree, {3, 64, 64}, "add"), "[N, 16, 8, 8] [N, 16, 8, 8]");
  EXPECT_EQ(testing::outputs_of(kTree, {3, 64, 64}, "parameter"), "[1, 16, 8, 8]");
  // stem 216, patches 2,064 and 32, positions 1,024, block 32 + 1,024, norm 32, head 68
  EXPECT_EQ(testing::parameters_of(kTree, {3, 64, 64}), 216 + 2'064 + 32 + 1'024 + 1'056 + 32 + 68);
}

}  // namespace
}  // namespace gpumem::connect
