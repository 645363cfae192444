#include "gpumem/ops/activation.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Activation, KeepsTheShape) {
  for (const Op& activation : kActivationOps) {
    if (activation.traits.name == "glu") continue;
    EXPECT_EQ(output_text(activation.traits.name, "", {shape({N, 7})}), "[N, 7]") << activation.traits.name;
  }
}

TEST(Glu, HalvesAnAxis) {
  EXPECT_EQ(output_text("glu", "dim=-1", {shape({N, 6, 8})}), "[N, 6, 4]");
  EXPECT_EQ(output_text("glu", "dim=1", {shape({N, 6, 8})}), "[N, 3, 8]");
}

TEST(Glu, RefusesAnOddOrMissingAxis) {
  EXPECT_EQ(output_text("glu", "dim=-1", {shape({N, 7})}),
            "cannot take an input of shape [N, 7]: it needs an even axis to halve");
  EXPECT_EQ(output_text("glu", "dim=2", {shape({N, 8})}),
            "cannot take an input of shape [N, 8]: it needs an even axis to halve");
}

TEST(Prelu, LearnsOneSlopeOrOneAChannel) {
  EXPECT_EQ(parameters("prelu", ""), 1);
  EXPECT_EQ(parameters("prelu", "num_parameters=8"), 8);
}

TEST(Activation, OthersHoldNoParameters) {
  for (const Op& activation : kActivationOps) {
    if (activation.traits.name == "prelu") continue;
    EXPECT_EQ(activation.traits.parameters, nullptr) << activation.traits.name;
  }
}

/// The bytes that backward takes for itself, of 2 samples with 8 scores each.
std::int64_t backward_takes(std::string_view name, model::Precision precision, Backend backend) {
  Tape tape(precision, backend);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const TensorId scores = tape.record({.output = {8, 1}, .parameters = {&parameter, 1}});
  const core::Shape shape_of_scores = shape({N, 8});
  OpCall call;
  call.tensors = {&scores, 1};
  call.shapes = {&shape_of_scores, 1};
  call.output = shape_of_scores;
  call.size = {8, 1};
  EXPECT_TRUE(testing::op(name).record(call, tape));
  std::int64_t bytes = 0;
  for (const TensorId taken : tape.list(tape.functions().back().backward_scratch)) {
    bytes += tape.tensor(taken).size.bytes(2).value().value_or(0);
  }
  return bytes;
}

TEST(Softmax, MultipliesGradientAndResultBeforeItsBackward) {
  // PyTorch 2.6, native/cuda/SoftMax.cu: Tensor tmp = grad * output. A CPU's kernel has none.
  using model::Precision;
  EXPECT_EQ(backward_takes("softmax", Precision::fp32, Backend::cuda), 2 * 8 * 4);
  EXPECT_EQ(backward_takes("softmax", Precision::bf16, Backend::cuda), 2 * 8 * 2);
  EXPECT_EQ(backward_takes("softmax", Precision::amp_bf16, Backend::cuda), 2 * 8 * 4) << "autocast runs it in float32";
  EXPECT_EQ(backward_takes("softmax", Precision::fp32, Backend::cpu), 0);
  EXPECT_EQ(backward_takes("log_softmax", Precision::fp32, Backend::cuda), 0);
}

}  // namespace
}  // namespace gpumem::ops
