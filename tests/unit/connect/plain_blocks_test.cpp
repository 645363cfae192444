#include "gpumem/connect/plain_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(PlainBlocks, AClassOfNoListIsCountedAndNamed) {
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
}  // namespace gpumem::connect
