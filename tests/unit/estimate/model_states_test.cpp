#include "gpumem/estimate/published.hpp"

#include <filesystem>

#include "gpumem/connect/connect.hpp"
#include "gpumem/plan/step_plan.hpp"
#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// A trained matrix of 8 x 4 with its bias, a frozen one, and the first again.
constexpr std::string_view kThreeLinears = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 4], "dtype": "float32"}],
 "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8}},
  {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 4}, "frozen": true}
 ]}
)";

TrainingJob job_of(std::string_view summary, model::Optimizer optimizer = model::Optimizer::adam,
                   model::Precision precision = model::Precision::fp32) {
  TrainingJob job(*parse_summary(summary), 16);
  job.optimizer = optimizer;
  job.precision = precision;
  return job;
}

Result<MemoryEstimate> estimate(const TrainingJob& job, std::string_view gpu = "a100-40gb") {
  return ModelStates().estimate(job, *find_profile(std::string(gpu)));
}

std::int64_t total(model::Optimizer optimizer, model::Precision precision = model::Precision::fp32) {
  return estimate(job_of(kThreeLinears, optimizer, precision))->expected.count();
}

// Of kThreeLinears: 40 trained parameters (8 x 4 + 8) and 36 frozen ones (4 x 8 + 4).

TEST(ModelStates, OfAdamAreTheWeightsAndThreeTimesTheTrainedOnes) {
  const auto result = estimate(job_of(kThreeLinears));
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->breakdown.parameters.count(), 76 * 4);
  EXPECT_EQ(result->breakdown.gradients.count(), 40 * 4);
  EXPECT_EQ(result->breakdown.optimizer.count(), 40 * 2 * 4);
  EXPECT_EQ(result->expected.count(), 304 + 160 + 320);
}

TEST(ModelStates, DependOnTheOptimizer) {
  EXPECT_EQ(total(model::Optimizer::sgd), 304 + 160);
  EXPECT_EQ(total(model::Optimizer::sgd_momentum), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::adagrad), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::rmsprop), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::lion), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::adamw), 304 + 160 + 320);
  // 8 rows and 4 columns of the matrix, 8 elements of the bias.
  EXPECT_EQ(total(model::Optimizer::adafactor), 304 + 160 + (8 + 4 + 8) * 4);
}

TEST(ModelStates, UnderAutocastTheParametersAreTheMasterWeights) {
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::amp_fp16), total(model::Optimizer::adam));
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::amp_bf16), total(model::Optimizer::adam));
}

TEST(ModelStates, InPureBfloat16TakeTwoBytesAnElement) {
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::bf16), (304 + 160 + 320) / 2);
  // What is factored stays in float32.
  EXPECT_EQ(total(model::Optimizer::adafactor, model::Precision::bf16), (304 + 160) / 2 + (8 + 4) * 4 + 8 * 2);
}

TEST(ModelStates, CountATiedTensorOnce) {
  const auto gpt = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(succeeds(gpt));
  EXPECT_EQ(estimate(TrainingJob(*gpt, 1))->expected.count(), std::int64_t{16} * 25557032) << "as torchvision counts";
}

TEST(ModelStates, AreALowerBoundThatIsNeverKnownToFit) {
  const auto result = estimate(job_of(kThreeLinears));
  EXPECT_TRUE(result->lower_bound);
  EXPECT_FALSE(result->fits);
  EXPECT_FALSE(result->upper_coverage.has_value());
}

TEST(ModelStates, DoNotDependOnTheBatchOrOnCopiesOfTheModel) {
  TrainingJob job = job_of(kThreeLinears);
  const Bytes one = estimate(job)->expected;
  job.batch_size = 4096;
  job.layout.data_parallel = 64;
  const auto result = estimate(job);
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected, one);
}

TEST(ModelStates, CountParametersOfUnknownLayers) {
  const auto graph = parse_summary("Net(\n  (a): Strange(8, 8), 72 params\n  (b): ReLU(), 0 params\n)\n", true);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(estimate(TrainingJob(*graph, 1))->expected.count(), 72 * 16);
}

TEST(ModelStates, BeyondSixtyFourBitsAreAnErrorNeverASmallNumber) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.add({.name = "a", .op = ops::vocabulary().find_op("linear"), .parameters = INT64_MAX / 8});
  const auto result = estimate(TrainingJob(*std::move(builder).build(), 1));
  ASSERT_TRUE(fails(result, ErrorCode::overflow, 0, "do not fit 64 bits"));
}

/// What a plan of training steps holds of these three kinds when it ends, without zeroing: nothing frees them.
std::int64_t planned(const TrainingJob& job) {
  const auto connected = connect::connect(job, ops::catalogue());
  const auto pass = plan::make_forward_pass(*connected, job, ops::catalogue());
  const auto plan = plan::make_step_plan(job, *pass);
  std::vector<std::int64_t> held(plan->slots);
  for (const plan::Event& event : plan->events) {
    if (event.kind == plan::Event::Kind::call) continue;
    const bool counts = event.category == plan::Category::parameter || event.category == plan::Category::gradient ||
                        event.category == plan::Category::optimizer;
    held[event.slot] = event.kind == plan::Event::Kind::allocate && counts ? event.bytes : 0;
  }
  std::int64_t sum = 0;
  for (const std::int64_t bytes : held) sum += bytes;
  return sum;
}

TEST(ModelStates, AreWhatAPlanOfTheStepsHoldsToTheByte) {
  int graphs = 0;
  for (const auto& entry : fs::directory_iterator(GPUMEM_SOURCE_DIR "/models/graphs")) {
    if (entry.path().extension() != ".json") continue;
    ++graphs;
    TrainingJob job(*read_summary(entry.path().string()), 2);
    for (const auto& optimizer : model::kOptimizers) {
      for (const model::Precision precision :
           {model::Precision::fp32, model::Precision::amp_bf16, model::Precision::bf16}) {
        job.optimizer = optimizer.value;
        job.precision = precision;
        const auto result = estimate(job);
        ASSERT_TRUE(succeeds(result)) << entry.path();
        EXPECT_EQ(result->expected.count(), planned(job))
            << entry.path() << " " << optimizer.name << " " << model::name_of(model::kPrecisions, precision);
      }
    }
  }
  EXPECT_GE(graphs, 10);
}

}  // namespace
}  // namespace gpumem::estimate
