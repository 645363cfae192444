// The orders of torch's schedules, compared with PyTorch's own tables (tests/golden/schedules/make_goldens.py).
#include "gpumem/parallel/pipeline_parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

namespace gpumem::parallel {
namespace {

using model::Schedule;

model::Layout pipeline(std::int64_t ranks, std::int64_t stages, Schedule schedule) {
  model::Layout layout;
  layout.pipeline_parallel = ranks;
  layout.virtual_stages = stages;
  layout.schedule = schedule;
  return layout;
}

char letter_of(const StagePass& pass) {
  if (!pass.backward) return 'F';
  switch (pass.gradients) {
    case Gradients::all: return 'B';
    case Gradients::inputs: return 'I';
    case Gradients::weights: return 'W';
  }
  return '?';
}

std::string text_of(const std::vector<StagePass>& passes) {
  std::string text;
  for (const StagePass& pass : passes) {
    text += std::string(text.empty() ? "" : " ") + letter_of(pass) + std::to_string(pass.stage) + "." +
            std::to_string(pass.micro_batch);
  }
  return text;
}

/// The most micro-batches of stages that are kept: from forward to the pass that makes weights' gradients.
std::int64_t most_kept(const std::vector<StagePass>& passes) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const StagePass& pass : passes) {
    if (!pass.backward) most = std::max(most, ++now);
    else if (pass.gradients != Gradients::inputs) --now;
  }
  EXPECT_EQ(now, 0) << "every forward has its backward";
  return most;
}

std::int64_t group_of(const model::Layout& layout, std::int64_t micro_batches) {
  model::TrainingJob job;
  job.layout = layout;
  job.gradient_accumulation = micro_batches;
  return micro_batch_group(job);
}

TEST(Schedules, AreThoseOfPyTorch) {
  std::ifstream file(std::string(GPUMEM_SOURCE_DIR "/tests/golden") + "/schedules/golden.txt");
  std::string line;
  int compared = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::int64_t ranks = 0;
    std::int64_t stages = 0;
    std::int64_t micro_batches = 0;
    std::int64_t rank = 0;
    ASSERT_TRUE(words >> name >> ranks >> stages >> micro_batches >> rank);
    std::string order;
    std::getline(words >> std::ws, order);
    const auto schedule = model::value_of(model::kSchedules, name);
    ASSERT_TRUE(schedule) << name;
    const model::Layout layout = pipeline(ranks, stages, *schedule);
    const std::int64_t group = group_of(layout, micro_batches);
    const std::vector<StagePass> whole = whole_schedule(layout, rank, micro_batches, group);
    EXPECT_EQ(text_of(whole), order) << line.substr(0, 40);
    EXPECT_EQ(most_kept(schedule_of(layout, rank, micro_batches, group)), most_kept(whole))
        << "micro-batches are left out that make a difference: " << line.substr(0, 40);
    ++compared;
  }
  EXPECT_GT(compared, 90);
}

/// Steps 1 to 8 of ScheduleDualPipeV for two ranks and four micro-batches, by hand.
TEST(Schedules, DualPipeVFollowsItsSteps) {
  const model::Layout layout = pipeline(2, 2, Schedule::dual_pipe_v);
  EXPECT_EQ(text_of(whole_schedule(layout, 0, 4)),
            "F0.0 F0.1 F0.2 F1.0 I1.0 W1.0 F1.1 F0.3 B1.1 F1.2 B0.0 B1.2 F1.3 B0.1 B1.3 I0.2 W0.2 I0.3 W0.3");
  EXPECT_EQ(text_of(whole_schedule(layout, 1, 4)),
            "F0.0 F1.0 F0.1 F1.1 F0.2 B1.0 F1.2 B0.0 F0.3 B1.1 F1.3 B0.1 B1.2 B0.2 I1.3 I0.3 W1.3 W0.3");
}

TEST(Schedules, EveryPassComesAfterWhatItReads) {
  for (const Schedule schedule : {Schedule::zero_bubble, Schedule::zero_bubble_v, Schedule::dual_pipe_v}) {
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> seen;
      for (const StagePass& pass : whole_schedule(pipeline(4, 2, schedule), rank, 16)) {
        seen[{pass.stage, pass.micro_batch}] += letter_of(pass);
      }
      EXPECT_EQ(seen.size(), 32U);
      for (const auto& [which, letters] : seen) EXPECT_TRUE(letters == "FB" || letters == "FIW") << letters;
    }
  }
}

TEST(Schedules, VShapedRanksHaveAStageAtEachEnd) {
  const model::Layout layout = pipeline(4, 2, Schedule::zero_bubble_v);
  EXPECT_EQ(rank_of_stage(layout, 0), 0);
  EXPECT_EQ(rank_of_stage(layout, 3), 3);
  EXPECT_EQ(rank_of_stage(layout, 4), 3);
  EXPECT_EQ(rank_of_stage(layout, 7), 0);
  EXPECT_EQ(rank_of_stage(pipeline(4, 2, Schedule::interleaved), 7), 3);
}

TEST(Schedules, OneForwardOneBackwardWaitsForOnePassThroughTheOtherRanks) {
  EXPECT_NEAR(idle_passes(pipeline(4, 1, Schedule::one_forward_one_backward), 32, 4), 3.0, 1e-9);
  EXPECT_NEAR(idle_passes(pipeline(4, 1, Schedule::gpipe), 32, 4), 3.0, 1e-9);
}

/// Where the three parts of a pass take as long, weights' gradients fill all of the bubble but what the last rank waits
/// for its first micro-batch (arXiv:2401.10241, sections 3 and 6).
TEST(Schedules, WeightsGradientsFillTheBubble) {
  const double even = idle_passes(pipeline(4, 2, Schedule::interleaved), 32, 4);
  const double apart = idle_passes(pipeline(4, 2, Schedule::zero_bubble), 32, 4);
  const double mirrored = idle_passes(pipeline(4, 2, Schedule::zero_bubble_v), 32, 4);
  EXPECT_NEAR(even, 3.0 / 2.0, 1e-9);
  EXPECT_NEAR(apart, 3.0 / 6.0, 1e-9);
  EXPECT_NEAR(mirrored, 3.0 / 6.0, 1e-9);
}

}  // namespace
}  // namespace gpumem::parallel
