#include "gpumem/estimate/published.hpp"

#include "gpumem/estimate/estimator.hpp"
#include "plans.hpp"
#include "recordings.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::job_of;
using testing::succeeds;

constexpr std::string_view kRows = R"({"name": "x", "shape": ["N", 4]})";
constexpr std::string_view kNet = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": true}},
  {"name": "b", "op": "relu", "inputs": ["a"]},
  {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": true}})";

core::Result<MemoryEstimate> estimated(const TrainingJob& job, FakeTensor::Step step) {
  return FakeTensor(step).estimate(job, *find_profile("a100-40gb"));
}

TEST(FakeTensor, IsTheMostThatIsLiveInForwardAndBackward) {
  // Batch 2. Parameters 232 B, batch and labels 48 B, c's output and the loss 20 B, ones 4 B; at the peak a's backward
  // has made the last of the gradients, 232 B, of relu's, 64 B.
  const auto estimate = estimated(job_of(kRows, kNet, 2), FakeTensor::Step::forward_backward);
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->expected.count(), 232 + 48 + 20 + 4 + 64 + 232);
  EXPECT_EQ(estimate->lower, estimate->expected);
  EXPECT_EQ(estimate->upper, estimate->expected);
  EXPECT_EQ(estimate->allocated, estimate->expected);
  EXPECT_FALSE(estimate->reserved.has_value());
  EXPECT_FALSE(estimate->device.has_value());
  EXPECT_FALSE(estimate->upper_coverage.has_value());
  EXPECT_TRUE(estimate->fits);
  EXPECT_EQ(estimate->breakdown.parameters.count(), 232);
  EXPECT_EQ(estimate->breakdown.gradients.count(), 232);
  EXPECT_EQ(estimate->breakdown.activations.count(), 48 + 20 + 4 + 64);
  EXPECT_EQ(estimate->breakdown.context.count(), 0);
  EXPECT_EQ(estimate->breakdown.workspace.count(), 0);
  EXPECT_EQ(estimate->breakdown.total().value(), estimate->expected.count());
}

TEST(FakeTensor, TheOptimizerCountsInItsSecondStepOnly) {
  TrainingJob job = job_of(kRows, kNet, 2);
  const auto plain = estimated(job, FakeTensor::Step::forward_backward);
  job.optimizer = Optimizer::sgd_momentum;
  EXPECT_EQ(estimated(job, FakeTensor::Step::forward_backward)->expected, plain->expected);
  const auto momentum = estimated(job, FakeTensor::Step::with_optimizer);
  ASSERT_TRUE(succeeds(momentum));
  EXPECT_EQ(momentum->expected.count(), plain->expected.count() + 232);
  EXPECT_EQ(momentum->breakdown.optimizer.count(), 232);
  job.optimizer = Optimizer::adam;
  const auto adam = estimated(job, FakeTensor::Step::with_optimizer);
  EXPECT_EQ(adam->breakdown.optimizer.count(), 2 * 232 + 4 * 4) << "two states and a count of steps a parameter";
  EXPECT_EQ(adam->breakdown.total().value(), adam->expected.count());
}

TEST(FakeTensor, OfARecordingIsTheMostThatWasLiveWhenItWasMade) {
  auto graph = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(succeeds(graph));
  const auto estimate = estimated({*std::move(graph), 10}, FakeTensor::Step::forward_backward);
  ASSERT_TRUE(succeeds(estimate));
  // At batch 10: a parameter of 48 B, its gradient, a batch of 120 B and an output of 160 B.
  EXPECT_EQ(estimate->expected.count(), 48 + 48 + 120 + 160);
  EXPECT_EQ(estimate->breakdown.gradients.count(), 48);
  EXPECT_EQ(estimate->coverage.edges, "recorded");
  EXPECT_EQ(estimate->coverage.layers_unknown, 0);
}

/// Recorded with an optimizer; the first step is counted without one.
TEST(FakeTensor, OfARecordingTheOptimizerCountsInTheSecondStepOnly) {
  auto graph = read_summary(testing::golden_recording("resnet18"));
  ASSERT_TRUE(succeeds(graph));
  const TrainingJob job(*std::move(graph), 32);
  const auto first = estimated(job, FakeTensor::Step::forward_backward);
  const auto second = estimated(job, FakeTensor::Step::with_optimizer);
  ASSERT_TRUE(succeeds(first));
  ASSERT_TRUE(succeeds(second));
  EXPECT_EQ(first->breakdown.optimizer.count(), 0);
  EXPECT_GT(second->breakdown.optimizer.count(), 0);
  EXPECT_GT(second->expected, first->expected);
}

TEST(FakeTensor, KnowsNoPrecisionButTheJobs) {
  TrainingJob job = job_of(kRows, kNet, 2);
  const auto full = estimated(job, FakeTensor::Step::forward_backward);
  job.precision = Precision::bf16;
  const auto half = estimated(job, FakeTensor::Step::forward_backward);
  ASSERT_TRUE(succeeds(half));
  EXPECT_EQ(half->breakdown.parameters.count() * 2, full->breakdown.parameters.count());
}

TEST(FakeTensor, ReadsASummaryWithoutEdges) {
  const auto chained = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/vgg16.module_tree.txt");
  const auto traced = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/vgg16.json");
  ASSERT_TRUE(succeeds(chained));
  ASSERT_TRUE(succeeds(traced));
  TrainingJob job(*chained, 8);
  job.input_shape = {3, 224, 224};
  TrainingJob other(*traced, 8);
  other.input_shape = job.input_shape;
  const auto estimate = estimated(job, FakeTensor::Step::forward_backward);
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_NEAR(static_cast<double>(estimate->expected.count()),
              static_cast<double>(estimated(other, FakeTensor::Step::forward_backward)->expected.count()), 2e6);
}

TEST(FakeTensor, SaysWhenAJobDoesNotFit) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/vgg16.json");
  TrainingJob job(*graph, 4096);
  job.input_shape = {3, 224, 224};
  const auto estimate = estimated(job, FakeTensor::Step::forward_backward);
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_FALSE(estimate->fits);
}

TEST(FakeTensor, BeyondSixtyFourBitsIsAnError) {
  TrainingJob job = job_of(kRows, kNet, 2);
  job.batch_size = INT64_MAX / 20;  // one tensor
  EXPECT_TRUE(fails(estimated(job, FakeTensor::Step::forward_backward), ErrorCode::overflow, 2, "64 bits"));
  job.batch_size = INT64_MAX / 64;  // their sum
  EXPECT_TRUE(fails(estimated(job, FakeTensor::Step::forward_backward), ErrorCode::overflow, 0, "64 bits"));
}

TEST(FakeTensor, IsMadeUnderBothNames) {
  for (const std::string_view name : {FakeTensor::kName, FakeTensor::kOptimizerName}) {
    const auto made = make_estimator(name);
    ASSERT_TRUE(succeeds(made));
    EXPECT_EQ((*made)->name(), name);
  }
}

}  // namespace
}  // namespace gpumem::estimate
