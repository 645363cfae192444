#include "gpumem/parallel/pipeline_parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace gpumem::parallel {
namespace {

TEST(PipelineParallel, PartsCountWhatIsAtTheEndsAsABlock) {
  EXPECT_EQ(blocks_of_parts(126, 8), (std::vector<std::int64_t>{15, 16, 16, 16, 16, 16, 16, 15}));
  EXPECT_EQ(blocks_of_parts(4, 6), (std::vector<std::int64_t>{0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(blocks_of_parts(32, 2), (std::vector<std::int64_t>{16, 16}));
}

model::Layout pipeline(std::int64_t ranks, std::int64_t stages = 1,
                       model::Schedule schedule = model::Schedule::one_forward_one_backward) {
  model::Layout layout;
  layout.pipeline_parallel = ranks;
  layout.virtual_stages = stages;
  layout.schedule = stages > 1 ? model::Schedule::interleaved : schedule;
  return layout;
}

/// "F0 F1 B0": forward and backward of micro-batches; with several stages "F0.1" is stage 1.
std::string text_of(const std::vector<StagePass>& passes, bool stages = false) {
  std::string text;
  for (const StagePass& pass : passes) {
    text += (text.empty() ? "" : " ") + std::string(pass.backward ? "B" : "F") + std::to_string(pass.micro_batch);
    if (stages) text += "." + std::to_string(pass.stage);
  }
  return text;
}

/// The most passes whose backward is still to come.
std::int64_t most_in_flight(const std::vector<StagePass>& passes) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const StagePass& pass : passes) most = std::max(most, now += pass.backward ? -1 : 1);
  EXPECT_EQ(now, 0) << "every forward has its backward";
  return most;
}

TEST(Schedule, OneForwardOneBackwardKeepsAsManyMicroBatchesAsThereAreStagesFromHereOn) {
  EXPECT_EQ(text_of(schedule_of(pipeline(4), 3, 8)), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(text_of(schedule_of(pipeline(2), 0, 3)), "F0 F1 B0 F2 B1 B2");
  for (std::int64_t rank = 0; rank < 4; ++rank) EXPECT_EQ(most_in_flight(schedule_of(pipeline(4), rank, 32)), 4 - rank);
  EXPECT_EQ(most_in_flight(schedule_of(pipeline(8), 0, 3)), 3) << "no more than a step has";
}

TEST(Schedule, GpipeKeepsAll) {
  EXPECT_EQ(text_of(schedule_of(pipeline(2, 1, model::Schedule::gpipe), 1, 3)), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(most_in_flight(schedule_of(pipeline(2, 1, model::Schedule::gpipe), 1, 32)), 32);
}

TEST(Schedule, InterleavedTurnsToTheNextStageAfterAsManyMicroBatchesAsRanks) {
  EXPECT_EQ(text_of(schedule_of(pipeline(2, 2), 1, 2), true), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
  // The last of 4 ranks is (3 - 1) x 4 passes ahead, the first one 6 more.
  EXPECT_EQ(most_in_flight(schedule_of(pipeline(4, 3), 3, 16)), 9);
  EXPECT_EQ(most_in_flight(schedule_of(pipeline(4, 3), 0, 16)), 15);
}

TEST(Schedule, MegatronsGroupsOfMicroBatchesMayBeLargerThanThePipeline) {
  // 2 stages a rank, groups of 3: the last of 2 ranks is 3 passes ahead, of which none counts the first backward's own.
  EXPECT_EQ(text_of(schedule_of(pipeline(2, 2), 1, 3, 3), true),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0.0 B1.0 B2.0");
  model::TrainingJob job;
  job.layout = pipeline(4, 2);
  job.gradient_accumulation = 10;
  EXPECT_EQ(micro_batch_group(job), 5) << "torch has two groups that are alike";
  job.loop = model::Loop::megatron;
  EXPECT_EQ(micro_batch_group(job), 4) << "Megatron's are as large as the pipeline";
}

TEST(PipelineRanks, AllAreComparedWhereStagesDifferInTheirLayers) {
  model::TrainingJob job;
  job.layout = pipeline(8);
  job.layout.data_parallel = 2;
  EXPECT_EQ(ranks_to_compare(job),
            (std::vector<model::Rank>{{model::Ranks::one, 0}, {model::Ranks::one, 2}, {model::Ranks::one, 14}}))
      << "of those between, the second holds the most micro-batches";
  job.layout.sharding.kind = model::Shardings::zero_1;
  EXPECT_EQ(ranks_to_compare(job), ranks_of_stages(job.layout)) << "DeepSpeed's stages share parameters evenly";
  job.loop = model::Loop::megatron;
  EXPECT_EQ(ranks_to_compare(job).size(), 3U) << "Megatron's stages are alike";
  job.layout.pipeline_layers = "1,2,2,2,2,2,2,1";
  EXPECT_EQ(ranks_to_compare(job), ranks_of_stages(job.layout)) << "somebody says how many each has";
}

TEST(StageLayers, AreReadFromAListOrFromMegatronsLayout) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(layers_of_stages("15,16,16,15"), (Layers{15, 16, 16, 15}));
  EXPECT_EQ(layers_of_stages("Et*3|(tt|)*3L"), (Layers{3, 2, 2, 2, 0}));
  EXPECT_EQ(layers_of_stages("Ettt|(tt|)*2,m|L"), (Layers{3, 2, 2, 0, 0}));
  EXPECT_EQ(layers_of_stages("E|(t|t)*2L"), (Layers{0, 1, 2, 1}));
  for (const char* wrong : {"", "?", "15,,16", "15,16,", "15;16", "Et(t", "Et*|L", "Etx|L", "-1,2", "(t)|L",
                            "Et*99999999999|L", "(t*1000000)*1000000"}) {
    EXPECT_FALSE(layers_of_stages(wrong)) << wrong;
  }
}

TEST(Schedule, RunsEachStageForwardBeforeBackward) {
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> seen;
    for (const StagePass& pass : schedule_of(pipeline(4, 2), rank, 8)) {
      int& state = seen[{pass.stage, pass.micro_batch}];
      EXPECT_EQ(state, pass.backward ? 1 : 0);
      ++state;
    }
    EXPECT_EQ(seen.size(), 16U);
  }
}

TEST(Schedule, ForwardPassesBeforeTheFirstBackwardAreThoseOfTheOrder) {
  using model::Schedule;
  for (const model::Layout& layout : {pipeline(1), pipeline(4), pipeline(2, 1, Schedule::gpipe), pipeline(4, 3)}) {
    for (const std::int64_t micro_batches : {std::int64_t{4}, std::int64_t{12}}) {
      for (std::int64_t rank = 0; rank < layout.pipeline_parallel; ++rank) {
        const std::vector<StagePass> passes = schedule_of(layout, rank, micro_batches);
        const auto backward =
            std::find_if(passes.begin(), passes.end(), [](const StagePass& pass) { return pass.backward; });
        EXPECT_EQ(forwards_before_backward(layout, rank, micro_batches), backward - passes.begin());
      }
    }
  }
}

}  // namespace
}  // namespace gpumem::parallel
