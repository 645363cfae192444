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

model::TrainingJob split_job(model::Schedule schedule, std::int64_t micro_batches, std::int64_t rank) {
  model::TrainingJob job = job_of(micro_batches, rank, 2);
  job.loop = model::Loop::torchtune;  // Megatron has no such schedules
  job.layout.schedule = schedule;
  job.fused = false;
  return job;
}

TEST(Pipeline, WeightsGradientsInPassesOfTheirOwnLeaveNothingBehind) {
  using model::Schedule;
  for (const Schedule schedule :
       {Schedule::looped_bfs, Schedule::zero_bubble, Schedule::zero_bubble_v, Schedule::dual_pipe_v}) {
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const model::TrainingJob job = split_job(schedule, 8, rank);
      const std::vector<std::int64_t> live = live_at(plan_of(job), Phase::optimizer);
      ASSERT_EQ(live.size(), 2U);
      analysis::Analysis analysis(job);
      const auto ranked = analysis.ranked();
      ASSERT_TRUE(succeeds(ranked));
      EXPECT_EQ(live[1] - live[0], (*ranked)->graph().trainable_parameters() * 2 * 4)
          << rank << " " << model::name_of(model::kSchedules, schedule);
    }
  }
}

/// A stage's activations stay until its weights' gradients are made, and so do the gradients that these read: more than
/// of the interleaved schedule's, of which each pass frees what it read.
TEST(Pipeline, WeightsGradientsThatWaitKeepWhatTheyRead) {
  using model::Schedule;
  const auto peak_of = [](Schedule schedule, std::int64_t rank, std::int64_t micro_batches) {
    return plan_of(split_job(schedule, micro_batches, rank)).peak_bytes;
  };
  // The last rank waits with three: it keeps them beside those that are under way.
  EXPECT_GT(peak_of(Schedule::zero_bubble, 3, 8), peak_of(Schedule::interleaved, 3, 8));
  // The first rank warms up by 3 passes fewer, and waits with none.
  EXPECT_LT(peak_of(Schedule::zero_bubble, 0, 8), peak_of(Schedule::interleaved, 0, 8));
  for (const Schedule schedule : {Schedule::zero_bubble, Schedule::zero_bubble_v, Schedule::dual_pipe_v}) {
    EXPECT_EQ(peak_of(schedule, 1, 64), peak_of(schedule, 1, 16)) << "further micro-batches are like those before";
  }
}

/// Of a model whose embedding and head are as large as five blocks each.
model::TrainingJob deepspeed_job(std::int64_t rank, model::Shardings sharding) {
  auto graph = architectures::read_config(
      R"({"num_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 4096,
          "max_position_embeddings": 32, "untie_embeddings_and_output_weights": true})",
      ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job = job_of(8, rank);
  job.graph = std::make_shared<const model::ModelGraph>(*std::move(graph));
  job.loop = model::Loop::script;
  job.layout.data_parallel = 2;
  job.layout.sharding.kind = sharding;
  job.layout.rank.count = 2 * rank;
  return job;
}

TEST(Pipeline, DeepSpeedsStagesHaveAsManyParametersEach) {
  const auto blocks_of = [](std::int64_t rank) {
    analysis::Analysis analysis(deepspeed_job(rank, model::Shardings::zero_1));
    const auto ranked = analysis.ranked();
    EXPECT_TRUE(succeeds(ranked));
    const model::ModelGraph& graph = (*ranked)->graph();
    return std::count_if(graph.layers().begin(), graph.layers().end(),
                         [&](const model::Layer& layer) { return graph.path(layer).ends_with("linear_qkv"); });
  };
  // partition_balanced() of DeepSpeed makes [0, 1, 5, 9, 10] of these ten layers.
  EXPECT_EQ(blocks_of(0), 0);
  EXPECT_EQ(blocks_of(1), 4);
  EXPECT_EQ(blocks_of(2), 4);
  EXPECT_EQ(blocks_of(3), 0);
}

TEST(Pipeline, DeepSpeedHoldsWhatCameBesideItsCopy) {
  const auto inputs_of = [](model::Shardings sharding) {
    model::TrainingJob job = deepspeed_job(1, sharding);
    job.layout.pipeline_layers = "2,2,2,2";
    return plan_of(job);
  };
  constexpr std::int64_t kHidden = 2 * 32 * 64 * 2;
  const StepPlan deepspeed = inputs_of(model::Shardings::zero_1);
  const StepPlan other = inputs_of(model::Shardings::ddp);
  EXPECT_EQ(most_of(deepspeed, Category::input) - most_of(other, Category::input), 3 * kHidden)
      << "of each of three micro-batches under way";
  EXPECT_EQ(most_of(deepspeed, Category::buffer) - most_of(other, Category::buffer), 2 * kHidden)
      << "a buffer for either side";
}

/// Megatron's products gather the tokens of all ranks themselves, and keep the rank's own; torch's keep what one gather
/// made for them.
TEST(Pipeline, MegatronKeepsItsOwnTokensOfAHuggingFaceModelToo) {
  const auto kept = [](model::Loop loop) {
    auto graph = architectures::read_config(
        R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "hidden_act": "silu",
            "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 4})",
        ops::vocabulary());
    EXPECT_TRUE(succeeds(graph));
    model::TrainingJob job = job_of(8, 1);
    job.graph = std::make_shared<const model::ModelGraph>(*std::move(graph));
    job.loop = loop;
    job.layout.tensor_parallel = 4;
    job.layout.sequence_parallel = true;
    job.layout.rank.count = 4;
    return most_of(plan_of(job), Category::activation);
  };
  // Of each of two layers and three micro-batches, what attention and MLP read: 64 tokens' less a quarter of them.
  EXPECT_GE(kept(model::Loop::torchtune) - kept(model::Loop::megatron), 3 * 2 * 2 * (64 - 16) * 64 * 2);
}

TEST(Pipeline, AVShapedRankHasAPartOfEachEnd) {
  analysis::Analysis analysis(split_job(model::Schedule::zero_bubble_v, 8, 0));
  const auto first = analysis.ranked();
  ASSERT_TRUE(succeeds(first));
  const auto has = [&](std::string_view name) {
    const model::ModelGraph& graph = (*first)->graph();
    return std::any_of(graph.layers().begin(), graph.layers().end(),
                       [&](const model::Layer& layer) { return graph.path(layer).find(name) != std::string::npos; });
  };
  EXPECT_TRUE(has("word_embeddings"));
  EXPECT_TRUE(has("output_layer"));
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
