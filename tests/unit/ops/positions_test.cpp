#include "gpumem/ops/embedding.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::Dim;
using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Positions, FollowTheNumberOfTokens) {
  const std::vector<core::Shape> ids = {shape({N, 7})};
  EXPECT_EQ(output_text("positions", "", ids), "[1, 7]");
  EXPECT_EQ(output_text("rotary_table", "width=64", ids), "[1, 1, 7, 64]");
  EXPECT_EQ(output_text("causal_mask", "", ids), "[1, 1, 7, 7]");
  EXPECT_EQ(output_text("causal_mask", "padded=True", ids), "[N, 1, 7, 7]");
  EXPECT_EQ(output_text("relative_positions", "", ids), "[7, 7]");
  EXPECT_EQ(output_text("relative_zeros", "heads=8", ids), "[1, 8, 7, 7]");
  EXPECT_EQ(output_text("distance_table", "width=64", ids), "[14, N, 64]");
  EXPECT_EQ(output_text("segment_pairs", "", ids), "[7, 7, N, 2]");
}

TEST(Windows, HoldWholeWindowsOfTokens) {
  EXPECT_EQ(output_text("token_windows", "size=4", {shape({N, 10, 32})}), "[N, 2, 4, 32]");
  EXPECT_EQ(output_text("token_windows", "size=16", {shape({N, 10, 32})}), "[N, 1, 16, 32]");
  EXPECT_FALSE(output("token_windows", "", {shape({N, 10, 32})}));
  EXPECT_FALSE(output("token_windows", "size=0", {shape({N, 10, 32})}));
  const std::vector<core::Shape> tokens_and_windows = {shape({N, 10, 32}), shape({N, 2, 32})};
  EXPECT_EQ(output_text("window_mask", "", tokens_and_windows), "[N, 1, 10, 2]");
  EXPECT_FALSE(output("window_mask", "", {shape({N, 10, 32})}));
}

TEST(Windows, OfAnIndexerGetNoGradient) {
  const auto heads = testing::attributes(testing::op("window_mask"), "heads=8");
  Tape tape;
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId tokens = tape.record({.output = {320, 1}, .parameters = {&parameter, 1}});
  OpCall call;
  call.attributes = model::Attributes(heads);
  call.tensors = {&tokens, 1};
  call.output = shape({N, 1, 10, 2});
  call.size = {20, 1};
  const auto mask = testing::op("window_mask").record(call, tape);
  ASSERT_TRUE(mask);
  EXPECT_FALSE(tape.tensor(*mask).requires_grad);
  EXPECT_TRUE(tape.tensor(tokens).requires_grad);
}

/// What is made of only the number of tokens; the other ops choose from scores.
bool reads_sizes_alone(const Op& op) {
  return op.traits.name != "gather_distances" && op.traits.name != "relative_shift" &&
         op.traits.name != "window_mask" && op.traits.name != "token_windows";
}

TEST(Positions, AskForALength) {
  for (const Op& op : kPositionsOps) {
    if (!reads_sizes_alone(op)) continue;
    EXPECT_TRUE(fails(output(op.traits.name, "width=64, heads=8", {shape({N, Dim::unknown()})}),
                      ErrorCode::missing_information, 0, "`seq_length=512`"))
        << op.traits.name;
  }
}

TEST(RelativeShift, TakesHalfOfTheDistances) {
  EXPECT_EQ(output_text("relative_shift", "", {shape({N, 8, 7, 14})}), "[N, 8, 7, 7]");
  EXPECT_FALSE(output("relative_shift", "", {shape({N, 8, 7, 13})}));
  EXPECT_FALSE(output("relative_shift", "", {shape({N, 8, 7, 15})}));
  EXPECT_FALSE(output("relative_shift", "", {shape({N, 8, 14, 14})}));
  EXPECT_FALSE(output("relative_shift", "", {shape({14})}));
}

TEST(RelativeShift, KeepsItsColumnsAndNotTheScores) {
  Tape tape;
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId scores = tape.record({.output = {98, 1}, .parameters = {&parameter, 1}});
  OpCall call;
  call.tensors = {&scores, 1};
  call.output = shape({N, 7, 7});
  call.size = {49, 1};
  const auto shifted = testing::op("relative_shift").record(call, tape);
  ASSERT_TRUE(shifted);
  const Function& function = tape.functions().back();
  ASSERT_EQ(function.saved.count, 1U);
  EXPECT_EQ(tape.tensor(tape.list(function.saved)[0]).size.bytes(1).value(), 7 * 8) << "numbers of columns";
  ASSERT_EQ(function.backward_scratch.count, 1U);
  EXPECT_EQ(tape.tensor(tape.list(function.backward_scratch)[0]).size.bytes(1).value(), 98 * 4);
}

TEST(Positions, EndWhereTheTableDoes) {
  EXPECT_EQ(output_text("positions", "most=8", {shape({N, 8})}), "[1, 8]");
  EXPECT_TRUE(fails(output("positions", "most=8", {shape({N, 9})}), ErrorCode::malformed_input, 0, "8 positions"));
}

TEST(Positions, GetNoGradient) {
  for (const Op& op : kPositionsOps) {
    if (!reads_sizes_alone(op)) continue;
    Tape tape;
    const TensorId ids = tape.add_input({7, 1, core::DType::int64});
    OpCall call;
    call.tensors = {&ids, 1};
    call.size = {7, 0, core::DType::float32};
    const auto made = op.record(call, tape);
    ASSERT_TRUE(made) << op.traits.name;
    EXPECT_FALSE(tape.tensor(*made).requires_grad) << op.traits.name;
    EXPECT_EQ(tape.functions().back().inputs.count, 0U) << op.traits.name << " reads sizes, and holds nothing";
  }
}

TEST(Positions, ATableHasTheTypeThatIsAskedFor) {
  for (const char* type : {"float32", "float64", ""}) {
    Tape tape(model::Precision::bf16);
    tape.begin_layer(0);
    const std::vector<model::Attribute> asked = {{"dtype", std::string(type)}};
    OpCall call;
    call.size = {64, 0};
    if (*type != '\0') call.attributes = model::Attributes(asked);
    const auto table = testing::op("rotary_table").record(call, tape);
    ASSERT_TRUE(table);
    EXPECT_EQ(tape.tensor(*table).size.dtype, core::dtype_from(type).value_or(core::DType::bfloat16)) << type;
  }
}

}  // namespace
}  // namespace gpumem::ops
