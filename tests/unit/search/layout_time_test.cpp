// The time of a step out of its parts, counted by hand.
#include "gpumem/search/layout_time.hpp"

#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Shardings;
using testing::small_llama;
using testing::succeeds;

/// One second a block forward, two backward; a GB of parameters in each.
BlockWork work() {
  BlockWork made;
  made.blocks = 8;
  made.block = {1.0, 2.0, 0.1, 0.0, 500'000'000};
  made.before = {0.5, 0.5, 0.0, 0.0, 0};
  made.behind = {1.0, 1.0, 0.0, 0.0, 0};
  made.sent = {.hidden = 1e9, .keys_values = 1e8, .routed = 1e9, .sums = 2};
  return made;
}

Links links() { return {.link = 450e9, .network = 50e9, .gpus_per_node = 8}; }

model::TrainingJob job_with(const model::Layout& layout, std::int64_t micro_batches = 4) {
  model::TrainingJob job = small_llama(8);
  job.layout = layout;
  job.gradient_accumulation = micro_batches;
  return job;
}

LayoutTime time_of(const model::TrainingJob& job) {
  const auto time = layout_time(job, work(), links());
  EXPECT_TRUE(succeeds(time));
  return time ? *time : LayoutTime();
}

constexpr double kHostStep = 1.55e-3;

TEST(LayoutTime, OneGpuComputesAllMicroBatches) {
  const LayoutTime time = time_of(job_with({}));
  EXPECT_NEAR(time.compute, 4 * (8 * 3.0 + 3.0) + kHostStep, 1e-9);
  EXPECT_NEAR(time.optimizer, 8 * 0.1 * 2, 1e-9) << "masters in float32 are twice the parameters' bytes";
  EXPECT_EQ(time.tensor + time.context + time.experts + time.sharding + time.pipeline, 0.0);
}

TEST(LayoutTime, APipelineHasTheBubbleOfItsSlowestStage) {
  const LayoutTime time = time_of(job_with({.pipeline_parallel = 4}));
  const double pass = 2 * 3.0 + 2.0;  // two blocks and the head
  const double sends = 2 * send_seconds(links(), {4, 1}, 1e9);
  EXPECT_NEAR(time.compute, 4 * pass + kHostStep, 1e-9);
  EXPECT_NEAR(time.pipeline, 4 * sends + 3 * (pass + sends), 1e-9);
  model::Layout interleaved = {.pipeline_parallel = 4, .virtual_stages = 2};
  interleaved.schedule = model::Schedule::interleaved;
  const LayoutTime less = time_of(job_with(interleaved));
  EXPECT_NEAR(less.pipeline, 4 * 2 * sends + 1.5 * (pass + 2 * sends), 1e-9) << "half the bubble, twice the sends";
}

TEST(LayoutTime, TensorParallelRanksSumBehindEachHalfOfABlock) {
  const LayoutTime time = time_of(job_with({.tensor_parallel = 8}));
  const double one = reduce_seconds(links(), {8, 1}, 1e9);
  EXPECT_NEAR(time.tensor, 4 * one * (2 * 8 * 2 + 2), 1e-9);
  model::TrainingJob again = job_with({.tensor_parallel = 8});
  again.activation_checkpointing = true;
  EXPECT_NEAR(time_of(again).tensor, 4 * one * (2 * 8 * 3 + 2), 1e-9) << "and again where a block runs again";
}

TEST(LayoutTime, ShardedParametersHideBehindABlock) {
  const LayoutTime hidden = time_of(job_with({.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}}));
  EXPECT_EQ(hidden.sharding, 0.0) << "a GB takes less than a second";
  const auto slow = layout_time(job_with({.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}}), work(),
                                {.link = 1e9, .network = 1e9, .gpus_per_node = 8});
  ASSERT_TRUE(succeeds(slow));
  const Links one = {.link = 1e9, .network = 1e9, .gpus_per_node = 8};
  const double gather = gather_seconds(one, {8, 1}, 1e9);
  const double scatter = gather_seconds(one, {8, 1}, 2e9);  // float32
  EXPECT_NEAR(slow->sharding, 4 * 8 * ((gather - 1.0) + (gather + scatter - 2.0)), 1e-9);
}

TEST(LayoutTime, AStepsGradientsAreReducedOnce) {
  const Links slow = {.link = 1e8, .network = 1e8, .gpus_per_node = 8};
  const auto job = job_with({.data_parallel = 8, .sharding = {Shardings::distributed_optimizer, 0}});
  const auto time = layout_time(job, work(), slow);
  ASSERT_TRUE(succeeds(time));
  const double reduced = gather_seconds(slow, {8, 1}, 8 * 2e9);
  const double gathered = gather_seconds(slow, {8, 1}, 8 * 1e9);
  EXPECT_NEAR(time->sharding, (reduced - (8 * 2.0 + 1.5)) + (gathered - (8 * 1.0 + 1.5)), 1e-6);
  EXPECT_NEAR(time->optimizer, 8 * 0.1 * 2 / 8, 1e-9) << "each rank updates its share";
}

TEST(LayoutTime, KeysAndValuesGoAroundAndTokensGoToTheirExperts) {
  const LayoutTime time = time_of(job_with({.context_parallel = 8, .expert_parallel = 8}));
  const double around = gather_seconds(links(), {8, 1}, 8e8);
  EXPECT_NEAR(time.context, 4 * 8 * around * 3, 1e-9);
  EXPECT_NEAR(time.experts, 4 * 8 * 4 * exchange_seconds(links(), {8, 1}, 1e9), 1e-9);
}

TEST(LayoutTime, AllPartsAreTheStep) {
  const LayoutTime time = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
  EXPECT_EQ(time.step(), 28.0);
}

}  // namespace
}  // namespace gpumem::search
