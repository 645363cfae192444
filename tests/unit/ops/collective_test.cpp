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

TEST(Collective, FeaturesAreJoined) {
  const core::Shape part = tokens(4, 8);
  const std::vector<model::Attribute> four = {{"ranks", std::int64_t{4}}};
  EXPECT_EQ(*op_of(kGatherFeatures).output_shape({model::Attributes(four), {&part, 1}}), tokens(4, 32));
  EXPECT_EQ(*op_of(kGatherFeatures).output_shape({{}, {&part, 1}}), part);
  for (const std::int64_t ranks : {0, -2}) {
    const std::vector<model::Attribute> few = {{"ranks", ranks}};
    EXPECT_TRUE(fails(op_of(kGatherFeatures).output_shape({model::Attributes(few), {&part, 1}}),
                      core::ErrorCode::missing_information, 0, "ranks"));
  }
  const core::Shape none;
  EXPECT_TRUE(fails(op_of(kGatherFeatures).output_shape({{}, {&none, 1}}), core::ErrorCode::missing_information, 0,
                    "number of features"));
  Tape tape(model::Precision::bf16);
  const TensorId input = tape.add_input(*size_of(part, core::DType::bfloat16));
  OpCall call;
  call.shapes = {&part, 1};
  call.tensors = {&input, 1};
  call.output = part;
  call.size = *size_of(part);
  EXPECT_EQ(*op_of(kGatherFeatures).record(call, tape), input) << "one rank has them all";
  call.attributes = model::Attributes(four);
  call.output = tokens(4, 32);
  call.size = *size_of(call.output);
  EXPECT_TRUE(succeeds(op_of(kGatherFeatures).record(call, tape)));
  ASSERT_EQ(tape.functions().size(), 1U);
  EXPECT_EQ(tape.functions()[0].scratch.count, 1U) << "the parts, one after the other";
}

/// The tape of one linear layer on [N, 4, 8].
Tape tape_of(const std::vector<model::Attribute>& attributes, const core::Shape& output,
             const model::WeightStorage& weights = {}) {
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
  call.weights = weights;
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

TEST(Collective, ProductsOfCopiesKeepTheCopy) {
  const std::vector<model::Attribute> plain = {
      {"in_features", std::int64_t{8}}, {"out_features", std::int64_t{6}}, {"bias", false}};
  const auto bytes = [](const Tape& tape, TensorId id) {
    EXPECT_EQ(tape.tensor(id).size.dtype, core::DType::uint8);
    return *tape.tensor(id).size.elements.value();
  };
  const model::WeightStorage float8 = {.copies = model::Quantization::float8, .keeps_weight_copies = true};
  const Tape tape = tape_of(plain, tokens(4, 6), float8);
  const Function& product = tape.functions()[0];
  ASSERT_EQ(product.saved.count, 1U);
  EXPECT_EQ(bytes(tape, tape.list(product.saved)[0]), 4 * 8);
  ASSERT_EQ(tape.buffers().size(), 2U) << "the weight's, a direction each";
  EXPECT_EQ(bytes(tape, tape.buffers()[0]), 8 * 6);
  EXPECT_EQ(product.backward_scratch.count, 2U) << "the gradient's, a direction each";

  const Tape in_blocks = tape_of(plain, tokens(4, 6), {.copies = model::Quantization::mxfp8});
  EXPECT_EQ(bytes(in_blocks, in_blocks.list(in_blocks.functions()[0].saved)[0]), 4 * 8 + 1);
  EXPECT_TRUE(in_blocks.buffers().empty());
  const Tape four_bits = tape_of(plain, tokens(4, 6), {.copies = model::Quantization::nvfp4});
  EXPECT_EQ(bytes(four_bits, four_bits.list(four_bits.functions()[0].saved)[0]), 4 * 8 / 2 + 2);

  const Tape original = tape_of(plain, tokens(4, 6), {.copies = model::Quantization::float8, .keeps_input = true});
  const TensorId kept = original.list(original.functions()[0].saved)[0];
  EXPECT_EQ(original.tensor(kept).size.dtype, core::DType::float32);
  EXPECT_EQ(original.functions()[0].scratch.count, 1U);

  std::vector<model::Attribute> gathers = plain;
  gathers.push_back({"gathered", std::int64_t{2}});
  const Tape gathered = tape_of(gathers, tokens(8, 6), float8);
  EXPECT_EQ(bytes(gathered, gathered.list(gathered.functions()[0].saved)[0]), 4 * 8) << "its own part";
  EXPECT_EQ(bytes(gathered, gathered.list(gathered.functions()[0].scratch)[0]), 8 * 8) << "all tokens, as copies";
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

TEST(Collective, ASumThatIsScatteredApartIsACallOfItsOwn) {
  const Tape tape = tape_of({{"in_features", std::int64_t{8}},
                             {"out_features", std::int64_t{6}},
                             {"bias", false},
                             {"scattered", std::int64_t{2}},
                             {"scatters_apart", true}},
                            tokens(2, 6));
  ASSERT_EQ(tape.functions().size(), 2U);
  const Function& product = tape.functions()[0];
  EXPECT_EQ(*tape.tensor(product.output).size.elements.value(), 4 * 6) << "each rank's product of all tokens";
  EXPECT_FALSE(product.reduce_scatters);
  const Function& sum = tape.functions()[1];
  EXPECT_TRUE(sum.reduce_scatters);
  EXPECT_EQ(*tape.tensor(sum.output).size.elements.value(), 2 * 6);
  EXPECT_EQ(*tape.tensor(tape.list(sum.scratch)[0]).size.elements.value(), 4 * 6) << "in the order that is sent";
  EXPECT_EQ(*tape.tensor(tape.list(sum.backward_scratch)[0]).size.elements.value(), 4 * 6);
  EXPECT_EQ(sum.parameters.count, 0U);
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
