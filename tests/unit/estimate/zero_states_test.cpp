#include "gpumem/estimate/published.hpp"

#include "gpumem/estimate/estimators.hpp"
#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// A model of so many parameters, of which one layer holds `largest`, and no other more.
ModelGraph model_of(std::int64_t parameters, std::int64_t largest) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  const auto* linear = ops::vocabulary().find_op("linear");
  for (std::int64_t left = parameters; left > 0; left -= largest) {
    builder.add({.name = "a", .op = linear, .parameters = std::min(left, largest)});
  }
  return *std::move(builder).build();
}

TrainingJob job_of(ModelGraph graph, std::int64_t gpus) {
  TrainingJob job(std::move(graph), 1);
  job.layout.data_parallel = gpus;
  job.precision = model::Precision::bf16;
  return job;
}

Result<MemoryEstimate> estimate(ZeroStates::Kind kind, const TrainingJob& job) {
  return ZeroStates(kind).estimate(job, *find_profile("a100-80gb"));
}

double gib(ZeroStates::Kind kind, const TrainingJob& job) {
  return static_cast<double>(estimate(kind, job)->expected.count()) / static_cast<double>(std::int64_t{1} << 30);
}

// "Memory Requirements" in DeepSpeed's documentation: t5-3b, total_params=2851e6, largest_layer_params=32e6, 8 GPUs.
TEST(ZeroStates, AreWhatDeepSpeedPrintsForT5Of3BOnEightGpus) {
  constexpr double kPrinted = 0.005;  // to two decimals
  const TrainingJob job = job_of(model_of(2'851'000'000, 32'000'000), 8);
  EXPECT_NEAR(gib(ZeroStates::Kind::two_offload, job), 5.31, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three, job), 6.09, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three_offload, job), 0.78, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three_offload_all, job), 0.12, kPrinted);
}

// There, of t5-large on 4 GPUs (cases 1, 3 and 2), in MiB rounded down: 3291, 477, 125.
TEST(ZeroStates, AreWhatDeepSpeedPrintsForT5LargeOnFourGpus) {
  const TrainingJob job = job_of(model_of(737'670'000, 32'900'000), 4);
  EXPECT_EQ(estimate(ZeroStates::Kind::three, job)->expected.count() >> 20, 3291);
  EXPECT_EQ(estimate(ZeroStates::Kind::three_offload, job)->expected.count() >> 20, 477);
  EXPECT_EQ(estimate(ZeroStates::Kind::three_offload_all, job)->expected.count() >> 20, 125);
}

// The documentation's 15.93 GB for zero-2 is 4 P + 16 P / N; the function has been 2 P + 18 P / N since.
TEST(ZeroStates, OfStageTwoFollowTheFunctionAsItIsNow) {
  const auto result = estimate(ZeroStates::Kind::two, job_of(model_of(2'851'000'000, 32'000'000), 8));
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected.count(), 2 * std::int64_t{2'851'000'000} + std::int64_t{6'414'750'000});
}

// Figure 1 of the paper: 7.5 B parameters on 64 GPUs take 31.4 GB with the optimizer's states shared.
TEST(ZeroStates, OfStageOneAreThePapers) {
  const TrainingJob job = job_of(model_of(7'500'000'000, 7'500'000'000), 64);
  EXPECT_EQ(estimate(ZeroStates::Kind::one, job)->expected.count(), 31'406'250'000);
  EXPECT_EQ(estimate(ZeroStates::Kind::one_offload, job)->expected.count(), 30'000'000'000);
}

TEST(ZeroStates, OfOneGpuAreShareless) {
  const TrainingJob job = job_of(model_of(1000, 600), 1);
  EXPECT_EQ(estimate(ZeroStates::Kind::one, job)->expected.count(), 16 * 1000) << "the paper's 16 bytes a parameter";
  EXPECT_EQ(estimate(ZeroStates::Kind::two, job)->expected.count(), 20 * 1000);
  EXPECT_EQ(estimate(ZeroStates::Kind::three, job)->expected.count(), 18 * 1000 + 4 * 600);
}

TEST(ZeroStates, RoundTheSharedSumDown) {
  // 18 * 7 / 4 = 31.5: 31 bytes, of which gradients are 6 * 7 / 4 = 10.5: 10.
  const auto two = estimate(ZeroStates::Kind::two, job_of(model_of(7, 7), 4));
  ASSERT_TRUE(succeeds(two));
  EXPECT_EQ(two->expected.count(), 14 + 31);
  EXPECT_EQ(two->breakdown.parameters.count(), 14);
  EXPECT_EQ(two->breakdown.gradients.count(), 10);
  EXPECT_EQ(two->breakdown.optimizer.count(), 21);
  // 4 * 7 + 31: weights are 2 * 7 + 14 / 4, gradients 2 * 7 + 28 / 4.
  const auto three = estimate(ZeroStates::Kind::three, job_of(model_of(7, 7), 4));
  EXPECT_EQ(three->expected.count(), 28 + 31);
  EXPECT_EQ(three->breakdown.parameters.count(), 14 + 3);
  EXPECT_EQ(three->breakdown.gradients.count(), 14 + 7);
  EXPECT_EQ(three->breakdown.optimizer.count(), 21);
}

TEST(ZeroStates, TheLargestLayerIsTheModuleThatHoldsMost) {
  // Bare parameters of one container are one module's; a tied tensor is held all the same.
  const auto graph = parse_summary(R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 4], "dtype": "float32"}],
 "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
  {"name": "p", "op": "parameter", "attrs": {"shape": [20]}},
  {"name": "q", "op": "parameter", "attrs": {"shape": [30]}}
 ]}
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(estimate(ZeroStates::Kind::three_offload_all, job_of(*graph, 2))->expected.count(), 4 * 50);
}

TEST(ZeroStates, SayWhereTheJobIsUnlikeTheFormulas) {
  TrainingJob job = job_of(model_of(10, 10), 2);
  for (const model::Precision known :
       {model::Precision::bf16, model::Precision::amp_fp16, model::Precision::amp_bf16}) {
    job.precision = known;
    EXPECT_TRUE(estimate(ZeroStates::Kind::two, job)->out_of_domain.empty());
  }
  const Bytes known = estimate(ZeroStates::Kind::two, job)->expected;
  job.precision = model::Precision::fp32;
  job.optimizer = model::Optimizer::sgd;
  const auto other = estimate(ZeroStates::Kind::two, job);
  EXPECT_EQ(other->out_of_domain, (std::vector<std::string>{"precision", "optimizer"}));
  EXPECT_EQ(other->expected, known) << "the formulas know neither";
}

TEST(ZeroStates, AreALowerBound) {
  for (const EstimatorEntry& entry : estimators()) {
    if (!entry.name.starts_with("zero-")) continue;
    const auto result = (*entry.create({}))->estimate(job_of(model_of(10, 10), 2), *find_profile("a100-40gb"));
    ASSERT_TRUE(succeeds(result)) << entry.name;
    EXPECT_TRUE(result->lower_bound);
    EXPECT_FALSE(result->fits);
    EXPECT_EQ(result->breakdown.total().value(), result->expected.count());
  }
}

TEST(ZeroStates, ShrinkWithEveryGpuAndEveryStage) {
  const ModelGraph graph = model_of(1'000'000, 1'000);
  const auto bytes = [&](ZeroStates::Kind kind, std::int64_t gpus) {
    return estimate(kind, job_of(graph, gpus))->expected.count();
  };
  using Kind = ZeroStates::Kind;
  for (const Kind kind : {Kind::one, Kind::two, Kind::three}) {
    for (std::int64_t gpus = 1; gpus < 64; gpus *= 2) EXPECT_LT(bytes(kind, 2 * gpus), bytes(kind, gpus));
  }
  EXPECT_LT(bytes(Kind::two, 8), bytes(Kind::one, 8));
  EXPECT_LT(bytes(Kind::three, 8), bytes(Kind::two, 8));
  EXPECT_LT(bytes(Kind::one_offload, 8), bytes(Kind::one, 8));
  EXPECT_LT(bytes(Kind::two_offload, 8), bytes(Kind::two, 8));
  EXPECT_LT(bytes(Kind::three_offload, 8), bytes(Kind::three, 8));
  EXPECT_LT(bytes(Kind::three_offload_all, 8), bytes(Kind::three_offload, 8));
}

TEST(ZeroStates, BeyondSixtyFourBitsAreAnErrorNeverASmallNumber) {
  constexpr std::int64_t kHalf = INT64_MAX / 2 + 1;
  const TrainingJob job = job_of(model_of(kHalf, kHalf), 1024);
  for (const EstimatorEntry& entry : estimators()) {
    if (!entry.name.starts_with("zero-")) continue;
    const auto result = (*entry.create({}))->estimate(job, *find_profile("a100-40gb"));
    EXPECT_TRUE(fails(result, ErrorCode::overflow, 0, "do not fit 64 bits")) << entry.name;
  }
}

}  // namespace
}  // namespace gpumem::estimate
