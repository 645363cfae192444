#include "gpumem/plan/step_plan.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"
#include "plans.hpp"

namespace gpumem::plan {
namespace {

using testing::succeeds;

constexpr const char* kTwoLinears = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 10], "dtype": "float32"}],
 "nodes": [
  {"name": "one", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 10, "out_features": 20}},
  {"name": "relu", "op": "relu", "inputs": ["one"]},
  {"name": "flat", "op": "flatten", "inputs": ["relu"]},
  {"name": "two", "op": "linear", "inputs": ["flat"], "attrs": {"in_features": 20, "out_features": 5, "bias": false}}
 ]}
)";

TrainingJob two_linears(std::int64_t batch_size) { return {*parse_summary(kTwoLinears), batch_size}; }

StepWork work_of(const TrainingJob& job) {
  const auto pass = testing::forward(job);
  EXPECT_TRUE(succeeds(pass));
  auto work = step_work(job, *pass);
  EXPECT_TRUE(succeeds(work));
  return work ? *std::move(work) : StepWork();
}

double products_of(const StepWork& work, Phase phase) {
  double sum = 0.0;
  for (const Kernel& kernel : work.kernels) sum += kernel.phase == phase ? kernel.multiply_adds : 0.0;
  return sum;
}

std::int64_t kernels_of(const StepWork& work, Kernel::Kind kind) {
  return std::count_if(work.kernels.begin(), work.kernels.end(),
                       [&](const Kernel& kernel) { return kernel.kind == kind; });
}

TEST(StepWork, CountsWhatLinearLayersMultiply) {
  const StepWork work = work_of(two_linears(32));
  EXPECT_DOUBLE_EQ(products_of(work, Phase::forward), 32.0 * (10 * 20 + 20 * 5));
  // The weights' gradients of both, and the second's input's: the data need none.
  EXPECT_DOUBLE_EQ(products_of(work, Phase::backward), 32.0 * (10 * 20 + 2 * 20 * 5));
  EXPECT_EQ(kernels_of(work, Kernel::Kind::product), 2 + 3);
  EXPECT_EQ(kernels_of(work, Kernel::Kind::convolution), 0);
  EXPECT_EQ(kernels_of(work, Kernel::Kind::optimizer), 1);
}

TEST(StepWork, AKernelReadsAndWritesItsTensorsOnce) {
  const StepWork work = work_of(two_linears(32));
  const Kernel& one = work.kernels.front();
  EXPECT_EQ(one.kind, Kernel::Kind::product);
  EXPECT_DOUBLE_EQ(one.outputs, 32.0 * 20);
  EXPECT_DOUBLE_EQ(one.depth, 10.0);
  EXPECT_DOUBLE_EQ(one.bytes, 4.0 * (32 * 10 + 10 * 20 + 20 + 32 * 20));
  const Kernel& relu = work.kernels[1];
  EXPECT_EQ(relu.kind, Kernel::Kind::elementwise);
  EXPECT_DOUBLE_EQ(relu.bytes, 4.0 * 2 * 32 * 20);
  EXPECT_EQ(work.kernels[2].kind, Kernel::Kind::product) << "a view launches nothing";
  EXPECT_DOUBLE_EQ(work.input_bytes, 32.0 * (10 * 4 + 8)) << "labels are int64";
}

TEST(StepWork, TheOptimizerReadsItsStates) {
  TrainingJob job = two_linears(32);
  constexpr double kParameterBytes = 4.0 * (10 * 20 + 20 + 20 * 5);
  EXPECT_DOUBLE_EQ(work_of(job).kernels.back().bytes, 19 * kParameterBytes);
  EXPECT_EQ(work_of(job).kernels.back().launches, 7);
  job.foreach = false;
  EXPECT_EQ(work_of(job).kernels.back().launches, 7 * 3) << "for each of three parameters";
  job.fused = true;
  EXPECT_DOUBLE_EQ(work_of(job).kernels.back().bytes, 7 * kParameterBytes);
  EXPECT_EQ(work_of(job).kernels.back().launches, 1);
  job.optimizer = model::Optimizer::sgd;
  EXPECT_DOUBLE_EQ(work_of(job).kernels.back().bytes, 3 * kParameterBytes);
}

TEST(StepWork, PassesRepeatAllButTheOptimizer) {
  TrainingJob job = two_linears(32);
  const StepWork once = work_of(job);
  job.gradient_accumulation = 3;
  const StepWork thrice = work_of(job);
  EXPECT_EQ(thrice.passes, 3);
  EXPECT_DOUBLE_EQ(products_of(thrice, Phase::backward), 3 * products_of(once, Phase::backward));
  EXPECT_DOUBLE_EQ(thrice.kernels.back().bytes, once.kernels.back().bytes);
  EXPECT_DOUBLE_EQ(thrice.input_bytes, 3 * once.input_bytes);
}

TEST(StepWork, AutocastComputesInHalfPrecisionAndCastsWeights) {
  TrainingJob job = two_linears(32);
  job.precision = model::Precision::amp_fp16;
  const StepWork work = work_of(job);
  EXPECT_DOUBLE_EQ(products_of(work, Phase::forward), 32.0 * (10 * 20 + 20 * 5));
  for (const Kernel& kernel : work.kernels) {
    if (kernel.kind != Kernel::Kind::product) continue;
    EXPECT_EQ(kernel.dtype, core::DType::float16);
  }
  EXPECT_GT(work.kernels.size(), work_of(two_linears(32)).kernels.size());
}

TEST(StepWork, CheckpointedBlocksRunTwice) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet18.json");
  ASSERT_TRUE(succeeds(graph));
  TrainingJob job(*std::move(graph), 2);
  const StepWork plain = work_of(job);
  job.activation_checkpointing = true;
  const StepWork recomputed = work_of(job);
  EXPECT_DOUBLE_EQ(products_of(recomputed, Phase::forward), products_of(plain, Phase::forward));
  const double again = products_of(recomputed, Phase::backward) - products_of(plain, Phase::backward);
  EXPECT_GT(again, 0.5 * products_of(plain, Phase::forward));
  EXPECT_LT(again, products_of(plain, Phase::forward));
}

TEST(StepWork, OfAJobBeyondAnyMachineIsAnError) {
  const TrainingJob job = two_linears(INT64_MAX / 100);
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  EXPECT_TRUE(testing::fails(step_work(job, *pass), core::ErrorCode::overflow, 4, "does not fit 64 bits"));
}

/// Self-attention of `heads` heads of 64, 256 tokens.
TrainingJob attention_job(std::int64_t heads, std::string_view attributes, Precision precision) {
  const std::string shape = R"({"name": "q", "op": "unflatten", "inputs": ["wide"], "attrs": {"dim": 2, "sizes": [)" +
                            std::to_string(heads) + R"(, 64]}},
  {"name": "h", "op": "permute", "inputs": ["q"], "attrs": {"dims": [0, 2, 1, 3]}},)";
  const std::string width = std::to_string(heads * 64);
  const std::string text = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 256, 64], "dtype": "float32"}],
 "nodes": [
  {"name": "wide", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 64, "out_features": )" +
                           width + R"(, "bias": false}},
  )" + shape + R"(
  {"name": "a", "op": "scaled_dot_product_attention", "inputs": ["h", "h", "h"], "attrs": {)" +
                           std::string(attributes) + R"(}}
 ]}
)";
  TrainingJob job(*parse_summary(text), 2);
  job.precision = precision;
  return job;
}

/// What attention multiplies in this phase: all but the projection, whose weight alone gets a gradient.
double attended(const TrainingJob& job, Phase phase) {
  const double projection = 2.0 * 256 * 64 * 128;
  return products_of(work_of(job), phase) - projection;
}

TEST(StepWork, AFusedKernelSkipsWhatACausalMaskHides) {
  constexpr double kRows = 2.0 * 2 * 256 * 64;  // samples, heads, queries, width of a head
  for (const Precision precision : {Precision::bf16, Precision::fp32}) {
    const TrainingJob all = attention_job(2, R"("is_causal": false)", precision);
    EXPECT_DOUBLE_EQ(attended(all, Phase::forward), 2 * kRows * 256);
    EXPECT_DOUBLE_EQ(attended(all, Phase::backward), 5 * kRows * 256) << "the scores again, and four gradients";
    const TrainingJob causal = attention_job(2, R"("is_causal": true)", precision);
    EXPECT_DOUBLE_EQ(attended(causal, Phase::forward), kRows * 256) << "half of them";
    EXPECT_DOUBLE_EQ(attended(causal, Phase::backward), 2.5 * kRows * 256);
    const std::vector<Kernel> kernels = work_of(causal).kernels;
    EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return kernel.attends; }), 2);
  }
}

TEST(StepWork, WhatIsWrittenOutMultipliesAllThatAMaskHides) {
  TrainingJob job = attention_job(2, R"("is_causal": true)", Precision::bf16);
  const double fused = attended(job, Phase::forward);
  job.attention = model::AttentionBackend::eager;
  EXPECT_DOUBLE_EQ(attended(job, Phase::forward), 2 * fused);
  EXPECT_DOUBLE_EQ(attended(job, Phase::backward), 4 * fused) << "two gradients of each of two products";
}

struct Published {
  const char* name;
  double giga_multiply_adds;  ///< of one sample's forward pass
};

/// torchvision's documentation of its models, "GFLOPS": multiply-adds of convolutions, linear layers and attention.
TEST(StepWork, MultipliesAsTorchvisionPublishes) {
  for (const Published& model : {Published{"resnet18", 1.81}, Published{"resnet50", 4.09}, Published{"vgg16", 15.47},
                                 Published{"densenet121", 2.83}, Published{"mobilenet_v2", 0.30},
                                 Published{"efficientnet_b0", 0.39}, Published{"vit_b_16", 17.56}}) {
    auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR "/models/graphs/") + model.name + ".json");
    ASSERT_TRUE(succeeds(graph)) << model.name;
    const double giga = products_of(work_of({*std::move(graph), 4}), Phase::forward) / 4e9;
    EXPECT_NEAR(giga, model.giga_multiply_adds, 0.02 * model.giga_multiply_adds + 0.005) << model.name;
  }
}

}  // namespace
}  // namespace gpumem::plan
