#include "gpumem/connect/vision_transformers.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(Metaformer, AStarReluHasAScaleAndABias) {
  constexpr std::string_view kTree = R"(Net(
  (0): StarReLU(
    (relu): ReLU()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "relu square parameter mul parameter add");
  EXPECT_EQ(testing::parameters_of(kTree, {3, 4, 4}), 2);
}

}  // namespace
}  // namespace gpumem::connect
