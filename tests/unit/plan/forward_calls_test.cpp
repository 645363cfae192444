#include "gpumem/plan/run_state.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::job_of;
using testing::planned;

/// Two products of 64 rows and 8 columns, a tanh between them; batch 64: each tensor has 2,048 B.
TrainingJob wide() {
  TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 8]})", R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}},
    {"name": "t", "op": "tanh", "inputs": ["a"]},
    {"name": "c", "op": "linear", "inputs": ["t"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}})",
                           64);
  job.loss = model::Loss::mse;
  return job;
}

TEST(ForwardCalls, ActivationsOnTheHostComeBackOneFunctionAtATime) {
  TrainingJob job = wide();
  const auto usual = planned(job).plan;
  EXPECT_EQ(count(events(job, usual, Phase::forward), "-2048 t activation"), 0) << "tanh keeps its output";
  job.offload = model::Offload::activations;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "-2048 t activation"), 1) << "it is on the host";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(count(backward, "+2048 t activation"), 2) << "for the product that read it, and for tanh itself";
  EXPECT_EQ(count(backward, "-2048 t activation"), 2);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(usual, 2).left);
}

TEST(ForwardCalls, SmallTensorsStayOnTheGpu) {
  TrainingJob job = wide();
  job.batch_size = 16;  // 512 B a tensor
  const Events usual = events(job, planned(job).plan, Phase::forward);
  job.offload = model::Offload::activations;
  EXPECT_EQ(events(job, planned(job).plan, Phase::forward), usual);
}

TEST(ForwardCalls, AnOffloadedBlocksArgumentsComeBackForItsSecondRun) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 8);
  job.activation_checkpointing = true;
  const auto usual = planned(job).plan;
  job.offload = model::Offload::activations;
  const auto plan = planned(job).plan;
  EXPECT_LT(bytes_of(plan, 2).peak, bytes_of(usual, 2).peak);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(usual, 2).left);
}

}  // namespace
}  // namespace gpumem::plan
