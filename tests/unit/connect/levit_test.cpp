#include "gpumem/connect/vision_transformers.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(Levit, TheBatchNormOfALinearLayerSeesEveryTokenAsASample) {
  constexpr std::string_view kTree = R"(Net(
  (0): LinearNorm(
    (linear): Linear(in_features=8, out_features=16, bias=False)
    (bn): BatchNorm1d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}), "linear flatten batch_norm unflatten");
}

}  // namespace
}  // namespace gpumem::connect
