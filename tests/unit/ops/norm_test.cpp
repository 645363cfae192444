// Expected figures: PyTorch 1.13.1; RMSNorm as PyTorch 2.4 has it: one weight an element.
#include "gpumem/ops/norm.hpp"

#include "op_cases.hpp"
#include "plans.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Norm, KeepsTheShape) {
  for (const char* name :
       {"batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm", "local_response_norm"}) {
    EXPECT_EQ(output_text(name, "64", {shape({N, 64, 7, 7})}), "[N, 64, 7, 7]") << name;
  }
}

TEST(Norm, CountsTheParametersThatPyTorchCounts) {
  EXPECT_EQ(parameters("batch_norm", "64, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True"), 128);
  EXPECT_EQ(parameters("batch_norm", "64, eps=1e-05, momentum=0.1, affine=False, track_running_stats=True"), 0);
  EXPECT_EQ(parameters("instance_norm", "8, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False"), 0);
  EXPECT_EQ(parameters("instance_norm", "8"), 0) << "not affine by default";
  EXPECT_EQ(parameters("instance_norm", "8, affine=True"), 16);
  EXPECT_EQ(parameters("group_norm", "4, 32, eps=1e-05, affine=True"), 64);
  EXPECT_EQ(parameters("group_norm", "4, 32, eps=1e-05, affine=False"), 0);
  EXPECT_EQ(parameters("layer_norm", "(768,), eps=1e-05, elementwise_affine=True"), 1536);
  EXPECT_EQ(parameters("layer_norm", "768"), 1536);
  EXPECT_EQ(parameters("layer_norm", "(7, 9), eps=1e-05, elementwise_affine=True"), 126);
  EXPECT_EQ(parameters("layer_norm", "(8,), eps=1e-05, elementwise_affine=False"), 0);
  EXPECT_EQ(parameters("layer_norm", "(8,), eps=1e-05, elementwise_affine=True, bias=False"), 8);
  EXPECT_EQ(parameters("rms_norm", "(512,), eps=1e-06"), 512);
  EXPECT_EQ(parameters("rms_norm", "(512,), elementwise_affine=False"), 0);
}

TEST(Norm, CountsNothingFromTooLittle) {
  EXPECT_EQ(parameters("batch_norm", ""), -1);
  EXPECT_EQ(parameters("group_norm", "num_groups=4"), -1);
  EXPECT_EQ(parameters("layer_norm", ""), -1);
  EXPECT_EQ(parameters("layer_norm", "'text'"), -1);
}

constexpr std::string_view kImages = R"({"name": "x", "shape": ["N", 3, 8, 8]})";

/// A convolution, and a normalisation of its four channels that is a module, or a function of tensors.
testing::StepBytes with_norm(const std::string& nodes) {
  const std::string conv = R"({"name": "c", "op": "conv2d", "inputs": ["x"],
    "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "padding": 1, "bias": false}},)";
  const TrainingJob job = testing::job_of(kImages, conv + nodes, 2);
  return testing::bytes_of(testing::planned(job).plan, 1);
}

constexpr std::string_view kWeights = R"(
  {"name": "w", "op": "parameter", "attrs": {"shape": [4]}}, {"name": "b", "op": "parameter", "attrs": {"shape": [4]}},)";

TEST(Norm, ABatchNormCalledAsAFunctionKeepsWhatTheModuleKeeps) {
  const auto module = with_norm(R"({"name": "n", "op": "batch_norm", "inputs": ["c"], "attrs": {"num_features": 4}})");
  const std::string statistics = R"(
    {"name": "m", "op": "constant", "attrs": {"shape": [4]}}, {"name": "v", "op": "constant", "attrs": {"shape": [4]}},)";
  const auto function = with_norm(std::string(kWeights) + statistics + R"(
    {"name": "n", "op": "batch_norm_function", "inputs": ["c", "w", "b", "m", "v"], "attrs": {"training": true}})");
  const auto evaluated = with_norm(std::string(kWeights) + statistics + R"(
    {"name": "n", "op": "batch_norm_function", "inputs": ["c", "w", "b", "m", "v"]})");
  EXPECT_EQ(module.left - function.left, 8) << "the module's count of batches";
  EXPECT_EQ(module.peak - function.peak, 8);
  EXPECT_EQ(function.peak - evaluated.peak, 2 * 4 * 4) << "mean and inverse deviation of the batch";
}

TEST(Norm, AGroupNormCalledAsAFunctionKeepsWhatTheModuleKeeps) {
  const auto module =
      with_norm(R"({"name": "n", "op": "group_norm", "inputs": ["c"], "attrs": {"num_groups": 2, "num_channels": 4}})");
  const auto function = with_norm(std::string(kWeights) + R"(
    {"name": "n", "op": "group_norm_function", "inputs": ["c", "w", "b"], "attrs": {"num_groups": 2}})");
  EXPECT_EQ(module.left, function.left);
  EXPECT_EQ(module.peak, function.peak);
}

TEST(Norm, AWeightOfFloat32MakesAnRmsNormsOutputFloat32) {
  for (const auto precision : {model::Precision::amp_bf16, model::Precision::bf16}) {
    Tape tape(precision);
    tape.begin_layer(0);
    const TensorId read = tape.add_input({8, 1, core::DType::bfloat16});
    OpCall call;
    call.tensors = {&read, 1};
    call.output = shape({N, 8});
    call.size = {8, 1};
    call.parameters = 8;
    const auto made = testing::op("rms_norm").record(call, tape);
    ASSERT_TRUE(made);
    const bool widens = precision == model::Precision::amp_bf16;  // whose weights are float32
    EXPECT_EQ(tape.tensor(*made).size.dtype, widens ? core::DType::float32 : core::DType::bfloat16);
    EXPECT_EQ(tape.tensor(tape.list(tape.functions().back().saved)[0]).size.dtype, core::DType::bfloat16);
  }
}

TEST(Norm, NormalizeKeepsTheInputAndTwoFiguresARow) {
  const auto made = testing::planned(testing::job_of(R"({"name": "x", "shape": ["N", 8]})", R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 8, "out_features": 16, "bias": false}},
    {"name": "n", "op": "lp_normalize", "inputs": ["a"], "attrs": {"dim": -1}})",
                                                     2));
  const Tape& tape = made.pass.tape;
  std::vector<std::int64_t> sizes;
  for (const Function& function : tape.functions().first(made.pass.model_functions)) {
    sizes.push_back(tape.tensor(function.output).size.bytes(2).value().value_or(-1));
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{128, 8, 8, 128, 128})) << "product, norm, bound, its view, quotient";
  EXPECT_EQ(output_text("lp_normalize", "dim=-1", {shape({N, 5, 16})}), "[N, 5, 16]");
}

}  // namespace
}  // namespace gpumem::ops
