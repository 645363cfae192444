#include "gpumem/ops/experts.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Experts, GetAsManyTokensEach) {
  const std::vector<core::Shape> tokens = {shape({N, 100, 64})};
  EXPECT_EQ(output_text("gather_tokens", "experts=8, per_token=2", tokens), "[25N, 64]");
  EXPECT_EQ(output_text("gather_tokens", "experts=3, per_token=1", tokens), "[34N, 64]") << "rounded up";
  EXPECT_EQ(output_text("gather_tokens", "experts=1000, per_token=1", tokens), "[N, 64]") << "at least one";
}

TEST(Experts, AreNotFewerThanATokenGoesTo) {
  const std::vector<core::Shape> tokens = {shape({N, 100, 64})};
  EXPECT_TRUE(testing::fails(output("gather_tokens", "experts=2, per_token=3", tokens),
                             core::ErrorCode::malformed_input, 0, "more experts"));
  EXPECT_FALSE(output("gather_tokens", "experts=0, per_token=0", tokens));
  EXPECT_FALSE(output("gather_tokens", "experts=8", tokens));
  EXPECT_FALSE(output("gather_tokens", "experts=8, per_token=2", {shape({N, 64})}));
}

TEST(Experts, AreSentAllRowsAtOnce) {
  const std::vector<core::Shape> tokens = {shape({N, 100, 64})};
  EXPECT_EQ(output_text("sent_rows", "per_token=2", tokens), "[200N, 64]");
  EXPECT_EQ(output_text("sent_rows", "per_token=2, taken=1500", tokens), "[300N, 64]");
  EXPECT_EQ(output_text("sent_rows", "per_token=2, sent=True", tokens), "[N, 100, 64]") << "one rank has all experts";
  EXPECT_EQ(output_text("sent_rows", "per_token=2, sent=True, ranks=4", tokens), "[200N, 64]") << "as many come back";
  EXPECT_FALSE(output("sent_rows", "per_token=0", tokens));
  EXPECT_FALSE(output("sent_rows", "", tokens));
}

TEST(Experts, AddTheirResultsIntoOneTensor) {
  Tape tape;
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId made = tape.record({.output = {50, 1}, .parameters = {&parameter, 1}});
  OpCall call;
  call.tensors = {&made, 1};
  call.size = {200, 1};
  const auto zeros = testing::op("token_zeros").record(call, tape);
  ASSERT_TRUE(zeros);
  EXPECT_FALSE(tape.tensor(*zeros).requires_grad);
  const std::array<TensorId, 2> both = {*zeros, made};
  call.tensors = both;
  const auto sum = testing::op("scatter_tokens").record(call, tape);
  ASSERT_TRUE(sum);
  EXPECT_EQ(tape.tensor(*sum).storage, *zeros);
  EXPECT_TRUE(tape.tensor(*sum).requires_grad);
}

TEST(Experts, ShareRowsThatLieInTheirOrder) {
  const core::Shape rows = shape({core::Dim::batch(24), 64});
  EXPECT_EQ(output_text("expert_rows", "", {rows}), "[24N, 64]");
  EXPECT_EQ(output_text("expert_share", "experts=8", {rows}), "[3N, 64]");
  EXPECT_EQ(output_text("gather_tokens", "experts=8, per_token=2, ranks=8", {shape({N, 12, 64})}), "[24N, 64]")
      << "all rows";
  EXPECT_FALSE(output("expert_share", "experts=5", {rows}));
  EXPECT_FALSE(output("expert_share", "experts=0", {rows}));
}

TEST(Experts, MultiplyAllRowsAtOnce) {
  const core::Shape rows = shape({core::Dim::batch(24), 64});
  const auto experts = [](std::int64_t one, std::int64_t other) { return shape({8, one, other}); };
  EXPECT_EQ(output_text("grouped_product", "", {rows, experts(64, 32)}), "[24N, 32]");
  EXPECT_EQ(output_text("grouped_product", "transposed=True", {rows, experts(32, 64)}), "[24N, 32]");
  EXPECT_FALSE(output("grouped_product", "", {rows, experts(32, 64)})) << "the rows are 64 wide";
  EXPECT_FALSE(output("grouped_product", "", {rows}));
  EXPECT_EQ(output_text("ordered_rows", "", {rows}), "[24N, 64]");
  EXPECT_EQ(output_text("expert_biases", "", {shape({8, 32}), rows}), "[24N, 32]");
  EXPECT_FALSE(output("expert_biases", "", {rows}));
}

TEST(Experts, AreTakenOutOneAfterTheOther) {
  EXPECT_EQ(output_text("taken_experts", "", {shape({8, 64, 32})}), "[8, 64, 32]");
  Tape tape;
  tape.begin_layer(0);
  const TensorId weights = tape.add_parameter(8 * 64 * 32, false, false);
  OpCall call;
  call.tensors = {&weights, 1};
  call.size = {8 * 64 * 32, 0};
  const auto taken = testing::op("taken_experts").record(call, tape);
  ASSERT_TRUE(taken);
  EXPECT_EQ(tape.tensor(*taken).storage, weights) << "views";
  EXPECT_EQ(tape.functions().back().gradient, Gradient::fresh) << "zeros of all experts";
}

TEST(Experts, OfTextAndOfImagesGetTokensThatAMaskChooses) {
  const std::vector<core::Shape> tokens = {shape({N, 100, 64})};
  EXPECT_EQ(output_text("masked_tokens", "start=30", tokens), "[N, 70, 64]");
  EXPECT_EQ(output_text("masked_tokens", "start=0, length=30", tokens), "[N, 30, 64]");
  EXPECT_TRUE(testing::fails(output("masked_tokens", "start=100", tokens), core::ErrorCode::invalid_argument, 0,
                             "take 100 tokens with the marks around them, and samples have 100"));
  EXPECT_FALSE(output("masked_tokens", "start=0, length=101", tokens));
  EXPECT_FALSE(output("masked_tokens", "start=0", {shape({N, 64})}));
  EXPECT_EQ(output_text("put_tokens", "", {shape({N, 100, 64}), shape({N, 70, 64})}), "[N, 100, 64]");
}

/// What backward of the product of 24 rows with 8 experts' weights holds of them.
std::vector<TensorId> kept_by_product(Tape& tape, bool trains_experts) {
  tape.begin_layer(0);
  const TensorId tokens = tape.add_parameter(24 * 64);
  const TensorId rows = tape.record({.output = {24 * 64, 0}, .parameters = {&tokens, 1}});
  const TensorId weights = tape.add_parameter(8 * 64 * 32, false, !trains_experts);
  const std::array<TensorId, 2> inputs = {rows, weights};
  const std::array<core::Shape, 2> shapes = {shape({24, 64}), shape({8, 64, 32})};
  OpCall call;
  call.tensors = inputs;
  call.shapes = shapes;
  call.size = {24 * 32, 0};
  EXPECT_TRUE(testing::op("grouped_product").record(call, tape));
  const auto saved = tape.list(tape.functions().back().saved);
  return {saved.begin(), saved.end()};
}

TEST(Experts, KeepTheirRowsOnlyWhereTheyAreTrained) {
  Tape trained;
  EXPECT_EQ(kept_by_product(trained, true).size(), 2U) << "rows and weights";
  Tape frozen;
  EXPECT_EQ(kept_by_product(frozen, false).size(), 1U) << "the weights, for the rows' gradient";
}

TEST(Experts, KeepWhatTheyAdd) {
  const auto kept = [](std::string_view how) {
    Tape tape;
    tape.begin_layer(0);
    const TensorId parameter = tape.add_parameter(10);
    const TensorId made = tape.record({.output = {50, 1}, .parameters = {&parameter, 1}});
    const TensorId zeros = tape.record({.output = {200, 1}, .differentiable = false});
    const std::array<TensorId, 2> both = {zeros, made};
    const std::array<model::Attribute, 1> attributes = {{{std::string(how), true}}};
    OpCall call;
    call.tensors = both;
    call.size = {200, 1};
    call.attributes = model::Attributes(attributes);
    EXPECT_TRUE(testing::op("scatter_tokens").record(call, tape));
    return tape.functions().back().saved.count;
  };
  EXPECT_EQ(kept("copies"), 1U) << "index_add";
  EXPECT_EQ(kept("in_place"), 1U) << "index_add_ keeps its source too";
  EXPECT_EQ(kept("scatters"), 0U) << "scatter_add_ does not";
  EXPECT_EQ(kept("sums"), 0U);
}

TEST(Experts, AddIntoACopyWhereTheSumMustStand) {
  Tape tape;
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId made = tape.record({.output = {50, 1}, .parameters = {&parameter, 1}});
  const TensorId zeros = tape.record({.output = {200, 1}, .differentiable = false});
  const std::array<TensorId, 2> both = {zeros, made};
  const std::array<model::Attribute, 1> copies = {{{"copies", true}}};
  OpCall call;
  call.tensors = both;
  call.size = {200, 1};
  call.attributes = model::Attributes(copies);
  const auto sum = testing::op("scatter_tokens").record(call, tape);
  ASSERT_TRUE(sum);
  EXPECT_EQ(tape.tensor(*sum).storage, *sum);
  EXPECT_TRUE(tape.tensor(*sum).requires_grad);
}

}  // namespace
}  // namespace gpumem::ops
