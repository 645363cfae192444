#include "gpumem/ops/collective.hpp"

#include <array>
#include <vector>

#include "expect.hpp"
#include "gpumem/ops/linear.hpp"
#include "gpumem/ops/loss.hpp"

namespace gpumem::ops {
namespace {

using core::Dim;
using testing::fails;
using testing::succeeds;

core::Shape tokens(std::int64_t count, std::int64_t width) {
  core::Shape shape;
  shape.push_back(Dim::batch());
  shape.push_back(Dim::fixed(count));
  shape.push_back(Dim::fixed(width));
  return shape;
}

const Op& op_of(std::string_view name) {
  for (const Op& op : kCollectiveOps) {
    if (op.traits.name == name) return op;
  }
  return kLinearOps[0];
}

TEST(Collective, TokensAreScatteredEvenly) {
  const core::Shape whole = tokens(16, 8);
  const std::vector<model::Attribute> four = {{"ranks", std::int64_t{4}}};
  const auto part = op_of(kScatterTokens).output_shape({model::Attributes(four), {&whole, 1}});
  ASSERT_TRUE(succeeds(part));
  EXPECT_EQ(*part, tokens(4, 8));
  const std::vector<model::Attribute> three = {{"ranks", std::int64_t{3}}};
  EXPECT_TRUE(fails(op_of(kScatterTokens).output_shape({model::Attributes(three), {&whole, 1}}),
                    core::ErrorCode::invalid_argument, 0, "multiple of 3"));
  EXPECT_TRUE(
      fails(op_of(kScatterTokens).output_shape({{}, {&whole, 1}}), core::ErrorCode::missing_information, 0, "ranks"));
}

TEST(Collective, LinearLayersGatherAndScatterTokens) {
  const std::vector<model::Attribute> gathers = {
      {"in_features", std::int64_t{8}}, {"out_features", std::int64_t{6}}, {"gathered", std::int64_t{2}}};
  const std::vector<model::Attribute> scatters = {
      {"in_features", std::int64_t{8}}, {"out_features", std::int64_t{6}}, {"scattered", std::int64_t{2}}};
  const core::Shape input = tokens(4, 8);
  EXPECT_EQ(*kLinearOps[0].output_shape({model::Attributes(gathers), {&input, 1}}), tokens(8, 6));
  EXPECT_EQ(*kLinearOps[0].output_shape({model::Attributes(scatters), {&input, 1}}), tokens(2, 6));
}

/// The tape of one linear layer on [N, 4, 8].
Tape tape_of(const std::vector<model::Attribute>& attributes, const core::Shape& output) {
  Tape tape(model::Precision::fp32);
  const core::Shape shape = tokens(4, 8);
  const TensorId input = tape.add_input(*size_of(shape));
  tape.require_grad(input);
  OpCall call;
  call.attributes = model::Attributes(attributes);
  call.shapes = {&shape, 1};
  call.tensors = {&input, 1};
  call.output = output;
  call.size = *size_of(output);
  call.parameters = 48;
  EXPECT_TRUE(succeeds(kLinearOps[0].record(call, tape)));
  return tape;
}

TEST(Collective, GatheredTokensAreKeptByNobody) {
  const Tape tape = tape_of({{"in_features", std::int64_t{8}},
                             {"out_features", std::int64_t{6}},
                             {"bias", false},
                             {"gathered", std::int64_t{2}}},
                            tokens(8, 6));
  ASSERT_EQ(tape.functions().size(), 1U);
  const Function& product = tape.functions()[0];
  const auto elements = [&](TensorId id) { return *tape.tensor(id).size.elements.value(); };
  ASSERT_EQ(product.saved.count, 1U);
  EXPECT_EQ(elements(tape.list(product.saved)[0]), 4 * 8) << "its own part";
  ASSERT_EQ(product.scratch.count, 1U);
  EXPECT_EQ(elements(tape.list(product.scratch)[0]), 8 * 8);
  EXPECT_EQ(product.backward_scratch.count, 2U) << "all tokens again, and the gradient of all";
}

TEST(Collective, ScatteredSumsStandWholeForAMoment) {
  const Tape tape = tape_of({{"in_features", std::int64_t{8}},
                             {"out_features", std::int64_t{6}},
                             {"bias", false},
                             {"scattered", std::int64_t{2}}},
                            tokens(2, 6));
  ASSERT_EQ(tape.functions().size(), 1U);
  const Function& product = tape.functions()[0];
  ASSERT_EQ(product.scratch.count, 1U);
  EXPECT_EQ(*tape.tensor(tape.list(product.scratch)[0]).size.elements.value(), 4 * 6);
  EXPECT_EQ(product.backward_scratch.count, 1U);
}

TEST(Collective, WhatIsReceivedTakesAGradient) {
  Tape tape(model::Precision::bf16);
  const core::Shape shape = tokens(4, 8);
  const TensorId input = tape.add_input(*size_of(shape, core::DType::bfloat16));
  OpCall call;
  call.shapes = {&shape, 1};
  call.tensors = {&input, 1};
  call.output = shape;
  call.size = *size_of(shape);
  EXPECT_EQ(*op_of(kReceived).record(call, tape), input);
  EXPECT_TRUE(tape.tensor(input).requires_grad);
  const auto sent = op_of(kSent).record(call, tape);
  ASSERT_TRUE(succeeds(sent));
  EXPECT_EQ(*tape.tensor(*sent).size.elements.value(), 1);
  EXPECT_TRUE(tape.tensor(*sent).requires_grad);
}

TEST(VocabularyParallelLoss, WritesTheGradientOverTheLogits) {
  Tape tape(model::Precision::fp32);
  const core::Shape rows = tokens(4, 8);
  const TensorId logits = tape.add_input(*size_of(rows));
  tape.require_grad(logits);
  record_vocabulary_parallel(tape, logits, false);
  record_vocabulary_parallel(tape, logits, true);
  ASSERT_EQ(tape.functions().size(), 2U);
  for (const Function& loss : tape.functions()) EXPECT_EQ(loss.gradient, Gradient::over_input);
  EXPECT_EQ(tape.functions()[0].scratch.count, 0U);
  EXPECT_EQ(tape.functions()[1].scratch.count, 1U) << "Megatron's fused form makes a second tensor";
}

}  // namespace
}  // namespace gpumem::ops
