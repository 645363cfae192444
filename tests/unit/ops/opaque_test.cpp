#include "gpumem/ops/opaque.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "expect.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::shape;

/// What one call on [N, 4, 5] records, with so much kept.
Tape recorded(std::int64_t kept) {
  const std::vector<model::Attribute> attributes = {{"kept", kept}};
  const core::Shape images = shape({N, 4, 5});
  Tape tape;
  const TensorId input = tape.add_input(*size_of(images));
  OpCall call;
  call.attributes = model::Attributes(attributes);
  call.shapes = {&images, 1};
  call.tensors = {&input, 1};
  call.output = images;
  call.size = *size_of(images);
  call.parameters = 30;
  EXPECT_TRUE(testing::succeeds(kOpaqueOps[0].record(call, tape)));
  return tape;
}

TEST(Opaque, KeepsWhatItIsToldInPieces) {
  const Tape tape = recorded(800);
  ASSERT_EQ(tape.functions().size(), 1U);
  const Function& function = tape.functions()[0];
  std::int64_t kept = 0;
  for (const TensorId extra : tape.list(function.extras)) kept += tape.tensor(extra).size.bytes(3).value().value_or(0);
  EXPECT_EQ(kept, 800 * 3 * 4);
  EXPECT_EQ(function.saved.count, function.extras.count + 1) << "and its input";
  EXPECT_EQ(function.multiply_adds.bytes(1).value(), 30 * 4 * 4) << "30 parameters for each of 4 rows";
}

TEST(Opaque, NothingKeptIsNoTensor) { EXPECT_EQ(recorded(0).functions()[0].extras.count, 0U); }

TEST(Opaque, HoldsItsParametersAndLeavesWhatItReads) {
  const Tape tape = recorded(0);
  ASSERT_EQ(tape.parameters().size(), 1U);
  EXPECT_EQ(tape.tensor(tape.parameters()[0].tensor).size.elements.value(), 30);
  const core::Shape images = shape({N, 4, 5});
  EXPECT_EQ(*kOpaqueOps[0].output_shape({{}, {&images, 1}}), images);
}

}  // namespace
}  // namespace gpumem::ops
