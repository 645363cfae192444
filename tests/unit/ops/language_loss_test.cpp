#include "gpumem/ops/language_loss.hpp"

#include <gtest/gtest.h>

namespace gpumem::ops {
namespace {

constexpr std::int64_t kElements = 64 * 2048;

std::int64_t elements_of(const Tape& tape, model::Slice slice, std::int64_t batch) {
  std::int64_t sum = 0;
  for (const TensorId id : tape.list(slice)) {
    const TensorSize& size = tape.tensor(id).size;
    sum += size.elements.value().value_or(0) * (size.batch_power > 0 ? batch : 1);
  }
  return sum;
}

struct Recorded {
  Tape tape;
  Function last;
};

Recorded log_probabilities(core::DType type, bool scaled) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, type});
  tape.require_grad(logits);
  record_log_probabilities(tape, logits, scaled);
  const Function last = tape.functions().back();
  return {std::move(tape), last};
}

// What backward makes of the samples is in tests/unit/plan/gradient_flow_test.cpp.
TEST(LogProbabilities, OfLowerPrecisionKeepTheirLogSoftmax) {
  const Recorded many = log_probabilities(core::DType::bfloat16, false);
  EXPECT_EQ(elements_of(many.tape, many.last.saved, 4), 4 * kElements);
  EXPECT_EQ(elements_of(many.tape, many.last.extras, 4), 4 * kElements) << "not the logits";
  EXPECT_EQ(elements_of(many.tape, many.last.backward_scratch, 4), 0);
  EXPECT_EQ(many.last.gradient, Gradient::by_sample);
}

TEST(LogProbabilities, OfFloat32KeepTheLogits) {
  const Recorded many = log_probabilities(core::DType::float32, false);
  EXPECT_EQ(elements_of(many.tape, many.last.extras, 4), 0);
  EXPECT_EQ(elements_of(many.tape, many.last.saved, 4), 4 * kElements);
  EXPECT_EQ(elements_of(many.tape, many.last.scratch, 4), kElements) << "one sample's exponentials";
  EXPECT_EQ(elements_of(many.tape, many.last.backward_scratch, 4), 0);
  EXPECT_EQ(many.last.gradient, Gradient::by_sample);
}

// PyTorch 2.6 held 4 sizes of the logits in backward, of either type.
TEST(LogProbabilities, OfLogitsDividedInTheirPlaceCopyTheGradient) {
  for (const core::DType type : {core::DType::bfloat16, core::DType::float32}) {
    const Recorded scaled = log_probabilities(type, true);
    EXPECT_EQ(elements_of(scaled.tape, scaled.last.saved, 4), 4 * kElements);
    const std::int64_t kept = type == core::DType::float32 ? 1 : 0;  // of which no sample goes before
    EXPECT_EQ(elements_of(scaled.tape, scaled.last.backward_scratch, 4), (3 - kept) * 4 * kElements);
  }
}

// PyTorch 2.6 held half the logits after forward, and twice the logits in backward, of half of the positions.
TEST(LogProbabilities, OfTheLastPositionsKeepTheirPartAlone) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, core::DType::float32});
  tape.require_grad(logits);
  const TensorSize half = {kElements / 2, 1, core::DType::bfloat16};
  record_last_log_probabilities(tape, logits, half, false);
  const Function last = tape.functions().back();
  EXPECT_EQ(elements_of(tape, last.saved, 4), 2 * kElements) << "the log_softmax";
  EXPECT_EQ(elements_of(tape, last.backward_scratch, 4), 2 * kElements);
  EXPECT_EQ(tape.tensor(tape.list(last.extras)[0]).size.dtype, core::DType::float32) << "the logits' own type";
  record_last_log_probabilities(tape, logits, half, true);
  EXPECT_EQ(elements_of(tape, tape.functions().back().saved, 4), 0);
}

TEST(HandedOn, LogitsAreNotKept) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, core::DType::float32});
  tape.require_grad(logits);
  record_handed_on(tape, logits);
  EXPECT_EQ(elements_of(tape, tape.functions().back().saved, 4), 0);
}

// PyTorch 2.6 held, in sizes of the logits beside these: 1 in forward, and 2 more in backward.
TEST(LogProbabilities, OfAllLogitsKeepTheirLogSoftmax) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, core::DType::float32});
  tape.require_grad(logits);
  record_whole_log_probabilities(tape, logits, false);
  const Function last = tape.functions().back();
  EXPECT_EQ(elements_of(tape, last.extras, 4), 4 * kElements);
  EXPECT_EQ(elements_of(tape, last.backward_scratch, 4), 4 * kElements) << "beside the gradient of its input";
  record_whole_log_probabilities(tape, logits, true);
  EXPECT_EQ(elements_of(tape, tape.functions().back().saved, 4), 0);
  EXPECT_EQ(elements_of(tape, tape.functions().back().scratch, 4), 4 * kElements);
}

TEST(LogProbabilities, ThatAreOnlyReadKeepNothing) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, core::DType::bfloat16});
  tape.require_grad(logits);
  record_read_log_probabilities(tape, logits);
  const Function& last = tape.functions().back();
  EXPECT_EQ(elements_of(tape, last.saved, 4), 0);
  EXPECT_EQ(elements_of(tape, last.scratch, 4), kElements);
}

/// Of 10 tokens a sample, a width of 8 and 100 words.
Function checkpointed(Tape& tape, std::int64_t tokens, bool frozen) {
  constexpr core::DType weight = core::DType::bfloat16;
  constexpr core::DType type = core::DType::bfloat16;
  core::Shape shape;
  for (const core::Dim dim : {core::Dim::batch(), core::Dim::fixed(10), core::Dim::fixed(8)}) shape.push_back(dim);
  const TensorId hidden = tape.add_input(*size_of(shape, core::DType::bfloat16));
  tape.require_grad(hidden);
  const TensorId parameter = tape.add_parameter(8 * 100, false, frozen, 0, weight);
  const LanguageHead head = {.hidden = hidden,
                             .shape = shape,
                             .rows = TensorSize{9, 1, core::DType::float32},
                             .width = 8,
                             .vocabulary = 100,
                             .parameters = {&parameter, 1}};
  record_checkpointed_cross_entropy(tape, head, tokens, type);
  return tape.functions().back();
}

TEST(CheckpointedCrossEntropy, HoldsOneChunkAndCopiesOfTheWeight) {
  Tape tape(model::Precision::bf16);
  const Function frozen = checkpointed(tape, 1, true);
  EXPECT_EQ(elements_of(tape, frozen.saved, 2), 2 * 9 * 8) << "the hidden states of the tokens that count";
  EXPECT_EQ(elements_of(tape, frozen.scratch, 2), 2 * 800 + 100) << "the weight in two types, and logits";
  EXPECT_EQ(elements_of(tape, frozen.backward_scratch, 2), 2 * 800 + 100) << "the weight has no gradient";
  Tape other(model::Precision::bf16);
  const Function trained = checkpointed(other, 1, false);
  EXPECT_EQ(elements_of(other, trained.backward_scratch, 2), 3 * 800) << "the gradient in three types";
}

TEST(CheckpointedCrossEntropy, OfManyTokensHoldsTheirLossAtTheMost) {
  Tape tape(model::Precision::bf16);
  const Function many = checkpointed(tape, 4, true);
  EXPECT_EQ(elements_of(tape, many.scratch, 2), 800 + 400 + 4 * 400) << "and the weight as it is multiplied";
}

TEST(LastLogits, AreThoseOfTheLastPositions) {
  Tape tape(model::Precision::bf16);
  core::Shape shape;
  for (const core::Dim dim : {core::Dim::batch(), core::Dim::fixed(10), core::Dim::fixed(8)}) shape.push_back(dim);
  const TensorId hidden = tape.add_input(*size_of(shape, core::DType::bfloat16));
  tape.require_grad(hidden);
  const TensorId weight = tape.add_parameter(8 * 100);
  const LanguageHead head = {
      .hidden = hidden, .shape = shape, .width = 8, .vocabulary = 100, .parameters = {&weight, 1}};
  EXPECT_EQ(tape.tensor(record_last_logits(tape, head, 3)).size.elements.value(), 3 * 100);
  EXPECT_EQ(tape.tensor(record_last_logits(tape, head, 0)).size.elements.value(), 10 * 100);
  EXPECT_EQ(tape.tensor(record_last_logits(tape, head, 11)).size.elements.value(), 10 * 100);
}

}  // namespace
}  // namespace gpumem::ops
