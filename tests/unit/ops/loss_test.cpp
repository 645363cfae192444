#include "gpumem/ops/loss.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

TEST(Loss, IsAScalar) {
  for (const Op& loss : kLossOps) {
    EXPECT_EQ(testing::output_text(loss.traits.name, "", {testing::shape({testing::N, 7})}), "[]") << loss.traits.name;
  }
}

/// The bytes an element that a cross entropy of float16 logits under autocast keeps: of float32, and of the logits'
/// type.
TEST(Loss, KeepsTheTypeOfItsLogitsWhereItSaysSo) {
  const auto kept = [](std::string_view arguments) {
    Tape tape(model::Precision::amp_fp16);
    tape.begin_layer(0);
    const TensorId parameter = tape.add_parameter(10);
    const TensorId logits = tape.record({.output = {10, 0, core::DType::float16}, .parameters = {&parameter, 1}});
    const Op& rule = testing::op("cross_entropy");
    const auto given = testing::attributes(rule, arguments);
    const core::Shape shape = testing::shape({2, 5});
    OpCall call;
    call.attributes = model::Attributes(given);
    call.shapes = {&shape, 1};
    call.tensors = {&logits, 1};
    EXPECT_TRUE(rule.record(call, tape));
    std::vector<core::DType> types;
    for (const Function& function : tape.functions()) {
      for (const TensorId id : tape.list(function.saved)) {
        if (tape.tensor(id).size.elements.value() == 10) types.push_back(tape.tensor(id).size.dtype);
      }
    }
    return types;
  };
  using core::DType;
  EXPECT_EQ(kept(""), (std::vector{DType::float32, DType::float32})) << "log_softmax and nll_loss keep one tensor";
  EXPECT_EQ(kept("keeps_type=True"), (std::vector{DType::float16, DType::float32}));
}

}  // namespace
}  // namespace gpumem::ops
