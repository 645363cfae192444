// Expected figures: PyTorch 1.13.1.
#include "gpumem/ops/view.hpp"

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

TEST(Flatten, JoinsAxes) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("flatten", "start_dim=1, end_dim=-1", image), "[N, 60]");
  EXPECT_EQ(output_text("flatten", "start_dim=2, end_dim=-1", image), "[N, 3, 20]");
  EXPECT_EQ(output_text("flatten", "start_dim=1, end_dim=2", image), "[N, 12, 5]");
  EXPECT_EQ(output_text("flatten", "start_dim=0, end_dim=-1", image), "[60N]");
}

TEST(Flatten, RefusesAxesItCannotJoin) {
  EXPECT_TRUE(fails(output("flatten", "start_dim=3", {shape({N, 4})}), ErrorCode::missing_information, 0, "axes"));
  EXPECT_TRUE(fails(output("flatten", "", {shape({N, Dim::unknown()})}), ErrorCode::missing_information, 0, "known"));
  EXPECT_TRUE(
      fails(output("flatten", "start_dim=0", {shape({N, N})}), ErrorCode::missing_information, 0, "one batch axis"));
  EXPECT_TRUE(fails(output("flatten", "", {shape({N, INT64_MAX, 2})}), ErrorCode::overflow, 0, "64 bits"));
}

TEST(Reshape, TakesTheShapeBehindTheBatch) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("reshape", "shape=(60,)", image), "[N, 60]");
  EXPECT_EQ(output_text("reshape", "shape=(5, -1)", image), "[N, 5, 12]");
  EXPECT_TRUE(fails(output("reshape", "shape=(7, -1)", image), ErrorCode::missing_information, 0, "as many elements"));
  EXPECT_TRUE(fails(output("reshape", "shape=(59,)", image), ErrorCode::missing_information, 0, "as many elements"));
  EXPECT_TRUE(fails(output("reshape", "shape=(-1, -1)", image), ErrorCode::malformed_input, 0, "below 1"));
  EXPECT_TRUE(fails(output("reshape", "shape=(0,)", image), ErrorCode::malformed_input, 0, "below 1"));
  EXPECT_TRUE(fails(output("reshape", "", image), ErrorCode::missing_information, 0, "shape"));
}

TEST(Permute, ReordersEveryAxisOnce) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("permute", "dims=(0, 2, 3, 1)", image), "[N, 4, 5, 3]");
  EXPECT_EQ(output_text("permute", "dims=(0, -1, 1, 2)", image), "[N, 5, 3, 4]");
  EXPECT_FALSE(output("permute", "dims=(0, 1, 1, 2)", image));
  EXPECT_FALSE(output("permute", "dims=(0, 1)", image));
  EXPECT_FALSE(output("permute", "dims=(0, 1, 2, 4)", image));
}

TEST(Split, StandsForItsWholeInput) {
  EXPECT_EQ(output_text("split", "sizes=(3, 6), dim=1", {shape({N, 9, 4})}), "[N, 9, 4]");
  EXPECT_EQ(output_text("split", "sizes=(2, 2), dim=-1", {shape({N, 9, 4})}), "[N, 9, 4]");
  EXPECT_FALSE(output("split", "dim=1", {shape({N, 9, 4})}));
  EXPECT_FALSE(output("split", "sizes=(3, 5), dim=1", {shape({N, 9, 4})}));
  EXPECT_FALSE(output("split", "sizes=(10, -1), dim=1", {shape({N, 9, 4})}));
  EXPECT_FALSE(output("split", "sizes=(1, 1), dim=0", {shape({N, 9, 4})})) << "the batch cannot be split";
  EXPECT_FALSE(output("split", "sizes=(9,), dim=3", {shape({N, 9, 4})}));
}

TEST(Item, IsOnePartOfASplit) {
  EXPECT_EQ(output_text("item", "dim=1, start=3, length=6", {shape({N, 9, 4})}), "[N, 6, 4]");
  EXPECT_FALSE(output("item", "dim=1, start=4, length=6", {shape({N, 9, 4})}));
}

TEST(Slice, TakesAPartOfAnAxis) {
  const std::vector<core::Shape> image = {shape({N, 3, 9})};
  EXPECT_EQ(output_text("slice", "dim=2, start=1, length=4", image), "[N, 3, 4]");
  EXPECT_EQ(output_text("slice", "dim=-1, start=2", image), "[N, 3, 7]") << "x[..., 2:]";
  EXPECT_EQ(output_text("slice", "dim=2, start=1, step=2", image), "[N, 3, 4]") << "x[..., 1::2]";
  EXPECT_EQ(output_text("slice", "dim=2, start=0, step=2", image), "[N, 3, 5]") << "x[..., 0::2]";
  EXPECT_EQ(output_text("slice", "dim=2, start=8, step=9223372036854775807", image), "[N, 3, 1]");
  for (const char* wrong : {"dim=3", "dim=0, length=1", "dim=2, start=9", "dim=2, start=-1", "dim=2, length=0",
                            "dim=2, length=10", "dim=2, start=1, length=9223372036854775807", "dim=2, step=0"}) {
    EXPECT_TRUE(fails(output("slice", wrong, image), ErrorCode::missing_information, 0, "needs")) << wrong;
  }
}

TEST(Slice, IsAsLongAsAnotherInput) {
  const std::vector<core::Shape> table = {shape({1, 512}), shape({N, 128})};
  EXPECT_EQ(output_text("slice", "dim=1, start=0, like_dim=1", table), "[1, 128]");
  EXPECT_FALSE(output("slice", "dim=1, start=0, like_dim=0", table)) << "the batch";
  EXPECT_FALSE(output("slice", "dim=1, start=0, like_dim=2", table));
  EXPECT_TRUE(fails(output("slice", "dim=1, start=0, like_dim=1", {shape({1, 512}), shape({N, 600})}),
                    ErrorCode::missing_information, 0, "the length is 600"));
}

TEST(Select, DropsTheAxis) {
  EXPECT_EQ(output_text("select", "dim=1, index=0", {shape({N, 197, 768})}), "[N, 768]");
  EXPECT_EQ(output_text("select", "dim=-1, index=-1", {shape({N, 197, 768})}), "[N, 197]");
  EXPECT_EQ(output_text("select", "dim=0, index=5", {shape({N, 7})}), "[7]");
  EXPECT_FALSE(output("select", "dim=1", {shape({N, 197, 768})}));
  EXPECT_FALSE(output("select", "dim=1, index=197", {shape({N, 197, 768})}));
  EXPECT_FALSE(output("select", "dim=1, index=-198", {shape({N, 197, 768})}));
  EXPECT_FALSE(output("select", "dim=3, index=0", {shape({N, 197, 768})}));
}

TEST(Index, PutsTheIndicesAxesInPlaceOfOne) {
  EXPECT_EQ(output_text("index", "dim=0", {shape({169, 3}), shape({2401})}), "[2401, 3]");
  EXPECT_EQ(output_text("index", "dim=1", {shape({N, 9, 4}), shape({5, 6})}), "[N, 5, 6, 4]");
  EXPECT_FALSE(output("index", "dim=0", {shape({169, 3})}));
  EXPECT_FALSE(output("index", "dim=2", {shape({169, 3}), shape({2401})}));
  EXPECT_FALSE(output("index", "dim=0", {shape({1, 2, 3, 4, 5}), shape({1, 2, 3, 4, 5})})) << "too many axes";
}

TEST(Unflatten, TakesAnAxisApart) {
  EXPECT_EQ(output_text("unflatten", "dim=1, sizes=(2, 58)", {shape({N, 116, 7})}), "[N, 2, 58, 7]");
  EXPECT_EQ(output_text("unflatten", "dim=-1, sizes=(-1, 64)", {shape({N, 5, 768})}), "[N, 5, 12, 64]");
  EXPECT_EQ(output_text("unflatten", "dim=0, sizes=(-1, 64)", {shape({Dim::batch(64), 49})}), "[N, 64, 49]");
  EXPECT_EQ(output_text("unflatten", "dim=0, sizes=(-1, 8)", {shape({Dim::batch(64), 49})}), "[8N, 8, 49]");
  EXPECT_FALSE(output("unflatten", "dim=0, sizes=(8, 8)", {shape({Dim::batch(64), 49})}));
  EXPECT_FALSE(output("unflatten", "dim=1, sizes=(2, 57)", {shape({N, 116, 7})}));
  EXPECT_FALSE(output("unflatten", "dim=1, sizes=(-1, -1)", {shape({N, 116, 7})}));
  EXPECT_FALSE(output("unflatten", "dim=1, sizes=(0, 116)", {shape({N, 116, 7})}));
  EXPECT_FALSE(output("unflatten", "dim=1, sizes=(4294967296, 4294967296)", {shape({N, 116, 7})}));
  EXPECT_FALSE(output("unflatten", "dim=1", {shape({N, 116, 7})}));
  EXPECT_FALSE(output("unflatten", "dim=1, sizes=(1, 1, 1, 1, 1, 1, 1, 116)", {shape({N, 116, 7})}));
}

TEST(Unflatten, TakesItsFirstSizeFromAnotherTensor) {
  const core::Shape rows = shape({Dim::batch(7), 5});
  EXPECT_EQ(output_text("unflatten", "dim=0, sizes=(-1,)", {rows, shape({7, 7, N})}), "[7, N, 5]");
  EXPECT_FALSE(output("unflatten", "dim=0, sizes=(-1,)", {rows, shape({6, N})})) << "does not divide";
  EXPECT_FALSE(output("unflatten", "dim=0, sizes=(-1,)", {rows, shape({N, 7})})) << "the batch";
}

TEST(Expand, StretchesToAnotherTensorsShape) {
  EXPECT_EQ(output_text("expand", "", {shape({N, 1, 7}), shape({N, 5, 7})}), "[N, 5, 7]");
  EXPECT_FALSE(output("expand", "", {shape({N, 2, 7}), shape({N, 5, 7})}));
}

TEST(RequiresGrad, MakesALeafThatStandsAsLongAsTheGraph) {
  Tape tape;
  const TensorId ids = tape.add_input({7, 1});
  OpCall call;
  call.tensors = {&ids, 1};
  call.size = {7, 1};
  const auto leaf = testing::op("requires_grad").record(call, tape);
  ASSERT_TRUE(leaf);
  EXPECT_TRUE(tape.tensor(*leaf).requires_grad);
  EXPECT_FALSE(tape.tensor(ids).requires_grad);
  EXPECT_EQ(tape.tensor(*leaf).storage, ids) << "the same memory";
  EXPECT_TRUE(tape.functions().back().keeps_until_graph_ends);
  EXPECT_EQ(tape.functions().back().gradient, Gradient::none) << "gradients end here";
}

TEST(Squeeze, DropsAnAxisOfOne) {
  EXPECT_EQ(output_text("squeeze", "dim=1", {shape({N, 1, 7})}), "[N, 7]");
  EXPECT_EQ(output_text("squeeze", "dim=-1", {shape({N, 7, 1})}), "[N, 7]");
  EXPECT_FALSE(output("squeeze", "dim=1", {shape({N, 7})}));
  EXPECT_FALSE(output("squeeze", "dim=0", {shape({N, 7})}));
  EXPECT_FALSE(output("squeeze", "", {shape({N, 1})}));
}

TEST(Unsqueeze, AddsAnAxisOfOne) {
  EXPECT_EQ(output_text("unsqueeze", "dim=0", {shape({5, 7})}), "[1, 5, 7]");
  EXPECT_EQ(output_text("unsqueeze", "dim=-1", {shape({N, 7})}), "[N, 7, 1]");
  EXPECT_FALSE(output("unsqueeze", "dim=3", {shape({N, 7})}));
  EXPECT_FALSE(output("unsqueeze", "dim=-4", {shape({N, 7})}));
  EXPECT_FALSE(output("unsqueeze", "", {shape({N, 7})}));
  EXPECT_FALSE(output("unsqueeze", "dim=0", {shape({1, 2, 3, 4, 5, 6, 7, 8})}));
}

TEST(Expand, StretchesOnesAndKeepsTheRest) {
  EXPECT_EQ(output_text("expand", "shape=(-1, 5, -1)", {shape({N, 1, 7})}), "[N, 5, 7]");
  EXPECT_EQ(output_text("expand", "shape=(4, -1, 7)", {shape({3, 7})}), "[4, 3, 7]");
  EXPECT_FALSE(output("expand", "shape=(-1, 3, 7)", {shape({3, 7})})) << "a new axis has nothing to keep";
  EXPECT_FALSE(output("expand", "shape=(4, 7)", {shape({3, 7})}));
  EXPECT_FALSE(output("expand", "shape=(7,)", {shape({3, 7})}));
  EXPECT_FALSE(output("expand", "", {shape({3, 7})}));
}

TEST(Expand, GivesAParameterTheBatch) {
  const std::vector<model::Attribute> attributes = {
      {"shape", std::vector<core::Dim>{N, Dim::fixed(-1), Dim::fixed(-1)}}};
  const std::vector<core::Shape> token = {shape({1, 1, 768})};
  const auto expanded = testing::op("expand").output_shape({model::Attributes(attributes), token});
  ASSERT_TRUE(expanded);
  EXPECT_EQ(core::to_string(*expanded), "[N, 1, 768]");
}

TEST(SlidingWindow, AddsAnAxisOfItsSize) {
  EXPECT_EQ(output_text("sliding_window", "dim=2, size=4, step=2", {shape({N, 3, 10})}), "[N, 3, 4, 4]");
  EXPECT_FALSE(output("sliding_window", "dim=2, size=11, step=2", {shape({N, 3, 10})}));
  EXPECT_FALSE(output("sliding_window", "dim=2, size=4", {shape({N, 3, 10})})) << "no step";
  EXPECT_FALSE(output("sliding_window", "dim=0, size=4, step=2", {shape({N, 3, 10})})) << "the batch";
  EXPECT_FALSE(output("sliding_window", "dim=0, size=1, step=1", {shape({1, 2, 3, 4, 5, 6, 7, 8})}));
}

TEST(Reshape, TakesOneAxisApart) { EXPECT_EQ(output_text("reshape", "shape=(1, 1)", {shape({64})}), "[64, 1, 1]"); }

TEST(Slice, ALengthBelowZeroLeavesOffTheLast) {
  EXPECT_EQ(output_text("slice", "dim=1, start=0, length=-1", {shape({N, 9, 4})}), "[N, 8, 4]");
  EXPECT_EQ(output_text("slice", "dim=1, start=2, length=-3", {shape({N, 9, 4})}), "[N, 4, 4]");
  EXPECT_FALSE(output("slice", "dim=1, start=0, length=-9", {shape({N, 9, 4})}));
}

TEST(Return, HoldsTheNamesOfItsFunction) {
  Tape tape;
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId result = tape.record({.output = {10}, .parameters = {&parameter, 1}});
  const TensorId name = tape.record({.inputs = {&result, 1}, .output = {10}});
  const std::array<TensorId, 2> read = {result, name};
  OpCall call;
  call.tensors = read;
  const auto left = testing::op("return").record(call, tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(tape.tensor(*left).storage, result) << "no memory of its own";
  EXPECT_EQ(tape.functions().back().inputs.count, 2U);
  EXPECT_EQ(tape.functions().back().no_gradient, ~1U) << "gradients go to the result alone";
}

}  // namespace
}  // namespace gpumem::ops
