#include "gpumem/ops/axis.hpp"

#include "expect.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::shape;

core::Result<core::Shape> broadcast(const std::vector<core::Shape>& inputs) { return broadcast_shape({{}, inputs}); }

TEST(Broadcast, AlignsAtTheEndAndStretchesOnes) {
  EXPECT_EQ(core::to_string(*broadcast({shape({N, 1, 7}), shape({3, 1}), shape({})})), "[N, 3, 7]");
}

TEST(Broadcast, RefusesSizesThatDiffer) {
  EXPECT_TRUE(testing::fails(broadcast({shape({N, 3}), shape({N, 4})}), core::ErrorCode::missing_information, 0,
                             "broadcasts with [N, 3]"));
}

}  // namespace
}  // namespace gpumem::ops
