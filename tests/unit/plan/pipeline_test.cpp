// A pipeline rank's steps: micro-batches in flight, and nothing left over.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {
namespace {

using testing::succeeds;

model::TrainingJob job_of(std::int64_t micro_batches, std::int64_t rank, std::int64_t virtual_stages = 1) {
  auto graph = architectures::read_config(
      R"({"num_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128,
          "max_position_embeddings": 32})",
      ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), 2);
  job.sequence_length = 32;
  job.precision = model::Precision::bf16_mixed;
  job.loop = model::Loop::megatron;
  job.zero_grad = model::ZeroGrad::step_start;
  job.fused = true;
  job.gradient_accumulation = micro_batches;
  job.layout.pipeline_parallel = 4;
  job.layout.virtual_stages = virtual_stages;
  if (virtual_stages > 1) job.layout.schedule = model::Schedule::interleaved;
  job.layout.rank = {model::Ranks::one, rank};
  return job;
}

StepPlan plan_of(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(steps));
  return steps ? **steps : StepPlan();
}

std::int64_t peak(std::int64_t micro_batches, std::int64_t rank) {
  return plan_of(job_of(micro_batches, rank)).peak_bytes;
}

TEST(Pipeline, KeepsAMicroBatchForEachStageFromHereOn) {
  const std::int64_t one = peak(2, 0) - peak(1, 0);
  EXPECT_GT(one, 0);
  EXPECT_EQ(peak(3, 0) - peak(2, 0), one);
  EXPECT_EQ(peak(4, 0) - peak(3, 0), one);
  EXPECT_EQ(peak(5, 0), peak(4, 0)) << "the first of four stages has at most four in flight";
  EXPECT_EQ(peak(32, 0), peak(4, 0));
  EXPECT_EQ(peak(32, 3), peak(1, 3)) << "the last one has one";
  EXPECT_EQ(peak(32, 2), peak(2, 2));
}

/// What each slot holds when this phase begins, in all.
std::vector<std::int64_t> live_at(const StepPlan& plan, Phase phase) {
  std::vector<std::int64_t> live;
  std::map<std::uint32_t, std::int64_t> slots;
  std::int64_t sum = 0;
  std::size_t mark = 0;
  for (std::size_t at = 0; at <= plan.events.size(); ++at) {
    for (; mark < plan.phases.size() && plan.phases[mark].first_event <= at; ++mark) {
      if (plan.phases[mark].phase == phase) live.push_back(sum);
    }
    if (at == plan.events.size()) break;  // of a phase without events
    const Event& event = plan.events[at];
    if (event.kind == Event::Kind::allocate) {
      EXPECT_EQ(slots.count(event.slot), 0U);
      slots[event.slot] = event.bytes;
      sum += event.bytes;
    } else if (event.kind == Event::Kind::release) {
      sum -= slots[event.slot];
      slots.erase(event.slot);
    }
  }
  return live;
}

TEST(Pipeline, LeavesNothingBehind) {
  for (const std::int64_t stages : {1, 2}) {
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      for (const auto& [checkpoints, compiled] : {std::pair(false, false), {true, false}, {false, true}}) {
        model::TrainingJob job = job_of(8, rank, stages);
        job.activation_checkpointing = checkpoints;
        job.compile = compiled;
        job.fused = false;  // which counts steps on the GPU
        const std::vector<std::int64_t> live = live_at(plan_of(job), Phase::optimizer);
        ASSERT_EQ(live.size(), 2U);
        // The first step makes the optimizer's states after this point, and the second one finds them: two each.
        analysis::Analysis analysis(job);
        const auto ranked = analysis.ranked();
        ASSERT_TRUE(succeeds(ranked));
        EXPECT_EQ(live[1] - live[0], (*ranked)->graph().trainable_parameters() * 2 * 4) << rank << " of " << stages;
      }
    }
  }
}

/// The most that gradients of parameters hold at a time.
std::int64_t most_gradients(const StepPlan& plan) {
  std::map<std::uint32_t, std::int64_t> slots;
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Event& event : plan.events) {
    if (event.kind == Event::Kind::allocate && event.category == Category::gradient) {
      slots[event.slot] = event.bytes;
      most = std::max(most, now += event.bytes);
    } else if (event.kind == Event::Kind::release && slots.contains(event.slot)) {
      now -= slots[event.slot];
      slots.erase(event.slot);
    }
  }
  return most;
}

/// Each keeps the results that its own backward takes, and no other's.
TEST(Pipeline, CompiledBlocksKeepTheResultsOfEachMicroBatch) {
  const auto most = [](std::int64_t micro_batches, bool compiled) {
    model::TrainingJob job = job_of(micro_batches, 0);
    job.compile = compiled;
    return plan_of(job).peak_bytes;
  };
  const std::int64_t one = most(3, true) - most(2, true);
  EXPECT_GT(one, 0);
  EXPECT_EQ(most(4, true) - most(3, true), one);
  EXPECT_EQ(most(32, true), most(4, true));
  EXPECT_LE(one, most(4, false) - most(3, false)) << "a compiled block keeps no more than another";
}

TEST(Pipeline, ShardedStagesHaveTheirOwnGradientsAlone) {
  const auto sharded = [](std::int64_t virtual_stages) {
    model::TrainingJob job = job_of(8, 0, virtual_stages);
    job.loop = model::Loop::torchtune;
    job.layout.data_parallel = 4;
    job.layout.sharding = {model::Shardings::fsdp2, 0};
    return most_gradients(plan_of(job));
  };
  EXPECT_GT(sharded(1), 0);
  EXPECT_LE(sharded(2), 2 * sharded(1));
}

TEST(Pipeline, InterleavedStagesKeepMoreMicroBatches) {
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_GT(plan_of(job_of(8, rank, 2)).peak_bytes, plan_of(job_of(8, rank)).peak_bytes) << rank;
  }
}

/// A rank of two under FSDP2, which is not Megatron's.
model::TrainingJob fsdp2_job(std::int64_t micro_batches, std::int64_t stages) {
  model::TrainingJob job = job_of(micro_batches, 0);
  job.loop = model::Loop::torchtune;
  job.layout.data_parallel = 2;
  job.layout.sharding.kind = model::Shardings::fsdp2;
  job.layout.pipeline_parallel = stages;
  return job;
}

/// The most that is live of a category.
std::int64_t most_of(const StepPlan& plan, Category category) {
  std::map<std::uint32_t, Event> held;
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Event& event : plan.events) {
    if (event.kind == Event::Kind::call) continue;
    const bool allocates = event.kind == Event::Kind::allocate;
    if (allocates) held[event.slot] = event;
    const Event& of = held[event.slot];
    if (of.category == category) now += allocates ? of.bytes : -of.bytes;
    most = std::max(most, now);
  }
  return most;
}

TEST(Pipeline, UnderFsdp2AStageStaysWholeWhileItsMicroBatchesRun) {
  const StepPlan alone = plan_of(fsdp2_job(4, 1));
  const StepPlan stage = plan_of(fsdp2_job(4, 2));
  constexpr std::int64_t kBlock = 4 * 64 * 64 + 2 * 64 * 256;  // weights; biases and norms are small beside them
  constexpr std::int64_t kWords = 128 * 64;
  EXPECT_LT(most_of(alone, Category::gathered), 2 * (3 * kBlock + kWords)) << "a block, and the next one";
  EXPECT_GT(most_of(stage, Category::gathered), 2 * (4 * kBlock + kWords)) << "all of the stage's blocks";
  EXPECT_GT(most_of(stage, Category::gradient), 4 * (4 * kBlock + kWords)) << "float32 and whole until the last one";
  EXPECT_LT(most_of(alone, Category::gradient), 4 * (8 * kBlock + kWords) / 2 + 4 * 2 * kBlock);
}

TEST(Pipeline, UnderFsdp2StepsRepeat) {
  for (const std::int64_t stages : {1, 2, 4}) {
    const StepPlan plan = plan_of(fsdp2_job(5, stages));
    const std::vector<std::int64_t> live = live_at(plan, Phase::optimizer);
    ASSERT_EQ(live.size(), 2U);
    EXPECT_GT(live[1], live[0]) << "the first step makes the states";
    std::map<std::uint32_t, Category> held;
    for (const Event& event : plan.events) {
      if (event.kind == Event::Kind::allocate) held[event.slot] = event.category;
      if (event.kind == Event::Kind::release) held.erase(event.slot);
    }
    for (const auto& [slot, category] : held) {
      EXPECT_NE(category, Category::gathered) << stages;
      EXPECT_NE(category, Category::activation_gradient) << stages;
    }
  }
}

TEST(Pipeline, AHeadWhoseGradientsAreDeferredKeepsThemUntilTheStepEnds) {
  const auto peak_with = [](std::string_view more) {
    const std::string config = R"({"num_layers": 8, "hidden_size": 64, "num_attention_heads": 4,
      "padded_vocab_size": 4096, "max_position_embeddings": 32)" +
                               std::string(more) + "}";
    auto graph = architectures::read_config(config, ops::vocabulary());
    EXPECT_TRUE(succeeds(graph));
    model::TrainingJob job = job_of(8, 3);
    job.graph = std::make_shared<const model::ModelGraph>(*std::move(graph));
    return plan_of(job).peak_bytes;
  };
  constexpr std::int64_t kEach = 2 * 32 * (4096 + 64) * 2;  // the logits' gradient and what the head reads
  const std::int64_t usual = peak_with("");
  const std::int64_t two = peak_with(R"(, "defer_embedding_wgrad_compute": true, "wgrad_deferral_limit": 2)");
  EXPECT_EQ(two - usual, 2 * kEach);
}

}  // namespace
}  // namespace gpumem::plan
