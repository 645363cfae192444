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

Recorded log_probabilities(core::DType type, bool one_sample) {
  Tape tape(model::Precision::bf16);
  const TensorId logits = tape.add_input({kElements, 1, type});
  tape.require_grad(logits);
  record_log_probabilities(tape, logits, one_sample);
  const Function last = tape.functions().back();
  return {std::move(tape), last};
}

// PyTorch 2.6 held, in sizes of the logits beside these: 1 in forward and 2 (of one sample), else 1, in backward.
TEST(LogProbabilities, OfLowerPrecisionKeepTheirLogSoftmax) {
  const Recorded many = log_probabilities(core::DType::bfloat16, false);
  EXPECT_EQ(elements_of(many.tape, many.last.saved, 4), 4 * kElements);
  EXPECT_EQ(elements_of(many.tape, many.last.extras, 4), 4 * kElements) << "not the logits";
  EXPECT_EQ(elements_of(many.tape, many.last.backward_scratch, 4), 0);
  const Recorded one = log_probabilities(core::DType::bfloat16, true);
  EXPECT_EQ(elements_of(one.tape, one.last.backward_scratch, 1), kElements);
}

TEST(LogProbabilities, OfFloat32KeepTheLogits) {
  const Recorded many = log_probabilities(core::DType::float32, false);
  EXPECT_EQ(elements_of(many.tape, many.last.extras, 4), 0);
  EXPECT_EQ(elements_of(many.tape, many.last.saved, 4), 4 * kElements);
  EXPECT_EQ(elements_of(many.tape, many.last.scratch, 4), kElements) << "one sample's exponentials";
  EXPECT_EQ(elements_of(many.tape, many.last.backward_scratch, 4), 8 * kElements);
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
