#include "gpumem/ops/pointwise.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Pointwise, KeepsTheShapeAndHoldsNoParameters) {
  for (const char* name : {"sqrt", "rsqrt", "exp", "erf", "square", "neg", "abs", "sin", "cos", "log", "cast", "pow"}) {
    EXPECT_EQ(output_text(name, "", {shape({N, 3, 7})}), "[N, 3, 7]") << name;
    EXPECT_EQ(testing::op(name).traits.parameters, nullptr) << name;
  }
}

TEST(Pointwise, OfSeveralInputsBroadcasts) {
  EXPECT_EQ(output_text("pow", "", {shape({N, 7}), shape({7})}), "[N, 7]");
  EXPECT_EQ(output_text("masked_fill", "", {shape({N, 12, 5, 5}), shape({N, 1, 1, 5})}), "[N, 12, 5, 5]");
  EXPECT_EQ(output_text("where", "", {shape({1, 1, 5, 5}), shape({N, 12, 5, 5}), shape({})}), "[N, 12, 5, 5]");
  EXPECT_FALSE(output("where", "", {shape({4}), shape({N, 12, 5, 5})}));
}

TEST(Pointwise, ClampKeepsTheShape) {
  EXPECT_EQ(testing::output_text("clamp", "", {testing::shape({testing::N, 3})}), "[N, 3]");
}

TEST(Cast, TakesTheTypeOfASecondInput) {
  Tape tape(model::Precision::bf16);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId narrow = tape.record({.output = {10}, .parameters = {&parameter, 1}});
  const TensorId wide = tape.cast(narrow, core::DType::float32);
  const std::array<TensorId, 2> read = {wide, narrow};
  OpCall call;
  call.tensors = read;
  const auto back = testing::op("cast").record(call, tape);
  ASSERT_TRUE(back);
  EXPECT_EQ(tape.tensor(*back).size.dtype, core::DType::bfloat16);
}

}  // namespace
}  // namespace gpumem::ops
