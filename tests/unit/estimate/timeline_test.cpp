#include "gpumem/estimate/timeline.hpp"

#include <algorithm>
#include <numeric>

#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

std::int64_t sum(const ByCategory& held) { return std::accumulate(held.begin(), held.end(), std::int64_t{0}); }

TrainingJob job_of(const std::string& name, std::int64_t batch_size) {
  return {*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/" + name + ".json"), batch_size};
}

TEST(Timeline, IsOfOneGpu) {
  TrainingJob job = job_of("resnet50", 2);
  job.layout.data_parallel = 2;
  EXPECT_TRUE(testing::fails(make_timeline(job, *find_profile("a100-40gb")), core::ErrorCode::invalid_argument, 0,
                             "the replay is for one GPU, not for 2"));
}

TEST(Timeline, OfAPipelineIsOfTheRankThatTakesMost) {
  const auto graph = parse_summary(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4,
          "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 32000})");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 4);
  job.sequence_length = 64;
  job.precision = Precision::bf16;
  job.layout.pipeline_parallel = 2;
  const auto gpu = find_profile("h100-80gb");
  const auto timeline = make_timeline(job, *gpu);
  const auto estimate = (*make_estimator("replay"))->estimate(job, *gpu);
  ASSERT_TRUE(testing::succeeds(timeline));
  ASSERT_TRUE(testing::succeeds(estimate));
  EXPECT_EQ(timeline->peak_reserved, estimate->reserved);
  job.layout.rank = {model::Ranks::all, 0};
  EXPECT_TRUE(testing::fails(make_timeline(job, *gpu), core::ErrorCode::invalid_argument, 0, "answers for one rank"));
}

class TimelineOf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, TimelineOf, ::testing::Values("resnet50", "gpt_like", "vgg16"));

TEST_P(TimelineOf, AgreesWithTheEstimate) {
  const TrainingJob job = job_of(GetParam(), 16);
  const auto gpu = find_profile("a100-40gb");
  const auto timeline = make_timeline(job, *gpu);
  const auto estimate = (*make_estimator("replay"))->estimate(job, *gpu);
  ASSERT_TRUE(testing::succeeds(timeline));
  ASSERT_TRUE(testing::succeeds(estimate));
  EXPECT_EQ(timeline->peak_allocated, estimate->allocated);
  EXPECT_EQ(timeline->peak_reserved, estimate->reserved);
  EXPECT_EQ(timeline->context, estimate->breakdown.context);
  EXPECT_EQ(timeline->capacity, gpu->capacity());
  EXPECT_EQ(timeline->verdict, estimate->verdict);
  EXPECT_EQ(timeline->most_needed, estimate->most_needed);
  const TimelinePoint& peak = timeline->points[timeline->peak_point];
  EXPECT_EQ(sum(peak.allocated), estimate->allocated->count());
  EXPECT_EQ(peak.allocated[static_cast<std::size_t>(plan::Category::gradient)], estimate->breakdown.gradients.count());
  EXPECT_EQ(peak.allocated[analysis::kWorkspaceCategory], estimate->breakdown.workspace.count());
  ASSERT_GE(peak.layer, 0);
  EXPECT_EQ(timeline->layers[static_cast<std::size_t>(peak.layer)].path, estimate->peak_layer->path);
}

TEST_P(TimelineOf, EveryPointFollowsFromTheOneBefore) {
  const auto timeline = make_timeline(job_of(GetParam(), 4), *find_profile("a100-40gb"));
  ASSERT_TRUE(testing::succeeds(timeline));
  EXPECT_GE(timeline->points.size(), timeline->events);
  ByCategory held{};
  std::int64_t highest = 0;
  std::int64_t reserved = 0;
  for (const TimelinePoint& point : timeline->points) {
    held[point.category] += point.bytes;
    ASSERT_EQ(point.allocated, held) << "event " << point.event;
    EXPECT_LE(sum(point.allocated), point.reserved);
    highest = std::max(highest, sum(point.allocated));
    reserved = std::max(reserved, point.reserved);
  }
  EXPECT_EQ(highest, timeline->peak_allocated.count());
  EXPECT_EQ(reserved, timeline->peak_reserved.count());
}

TEST_P(TimelineOf, ThePeakBelongsToLayers) {
  const TrainingJob job = job_of(GetParam(), 4);
  TimelineOptions options;
  options.most_holders = 100'000;
  const auto all = make_timeline(job, *find_profile("a100-40gb"), options);
  ASSERT_TRUE(testing::succeeds(all));
  ByCategory held{};
  for (const TimelineHolder& holder : all->holders) {
    EXPECT_EQ(sum(holder.held), holder.total);
    for (std::size_t category = 0; category < held.size(); ++category) held[category] += holder.held[category];
  }
  EXPECT_EQ(held, all->points[all->peak_point].allocated);
  EXPECT_EQ(all->holders_left_out, 0U);

  const auto ten = make_timeline(job, *find_profile("a100-40gb"));
  ASSERT_EQ(ten->holders.size(), 10U);
  std::int64_t total = ten->held_by_others;
  for (std::size_t index = 0; index < ten->holders.size(); ++index) {
    total += ten->holders[index].total;
    EXPECT_EQ(ten->holders[index].total, all->holders[index].total);
  }
  EXPECT_EQ(total, ten->peak_allocated.count());
  EXPECT_EQ(ten->holders_left_out + 10, all->holders.size());
}

TEST(Timeline, NamesThePhasesInTheirOrder) {
  TrainingJob job(*parse_summary(testing::kSmallGraph), 8);
  job.samples_per_epoch = 13;
  job.validation_pass = true;
  const auto timeline = make_timeline(job, *find_profile("a100-40gb"));
  ASSERT_TRUE(testing::succeeds(timeline));
  std::vector<std::string> names;
  std::size_t before = 0;
  for (const TimelinePhase& phase : timeline->phases) {
    EXPECT_GE(phase.first_point, before);
    before = phase.first_point;
    names.push_back(std::string(model::name_of(plan::kPhaseNames, phase.phase)) + " " + std::to_string(phase.step));
  }
  EXPECT_EQ(names.front(), "construction 0");
  EXPECT_EQ(names[1], "batch 1");
  EXPECT_EQ(names[2], "forward 1");
  EXPECT_EQ(names[3], "backward 1");
  EXPECT_EQ(names[4], "optimizer 1");
  EXPECT_NE(std::find(names.begin(), names.end(), "validation 3"), names.end());
  EXPECT_EQ(names.back(), "optimizer 4");
}

TEST(Timeline, IsThinnedWithItsMaxima) {
  const TrainingJob job = job_of("resnet50", 16);
  TimelineOptions options;
  options.most_points = 200;
  const auto gpu = find_profile("a100-40gb");
  const auto thin = make_timeline(job, *gpu, options);
  const auto full = make_timeline(job, *gpu);
  ASSERT_TRUE(testing::succeeds(thin));
  EXPECT_LE(thin->points.size(), 2 * options.most_points);
  EXPECT_EQ(thin->events, full->events);
  EXPECT_EQ(thin->phases.size(), full->phases.size());
  EXPECT_EQ(sum(thin->points[thin->peak_point].allocated), full->peak_allocated.count());
  EXPECT_EQ(thin->points.back().allocated, full->points.back().allocated);
  for (std::size_t index = 0; index + 1 < thin->phases.size(); ++index) {
    const auto highest = [&](const Timeline& timeline) {
      std::int64_t bytes = 0;
      for (std::size_t at = timeline.phases[index].first_point; at < timeline.phases[index + 1].first_point; ++at) {
        bytes = std::max(bytes, sum(timeline.points[at].allocated));
      }
      return bytes;
    };
    EXPECT_EQ(highest(*thin), highest(*full)) << index;
  }
}

TEST(Timeline, OfAJobThatDoesNotFitIsThatOfALargerGpu) {
  const TrainingJob job = job_of("resnet50", 256);
  const auto small = make_timeline(job, *find_profile("t4-16gb"));
  ASSERT_TRUE(testing::succeeds(small));
  EXPECT_EQ(small->verdict, Verdict::does_not_fit);
  EXPECT_GT(small->context.count() + small->peak_reserved.count(), small->capacity.count());
}

TEST(Timeline, TakesTheAllocatorsOptions) {
  const TrainingJob job = job_of("resnet50", 16);
  const auto gpu = find_profile("a100-40gb");
  const auto expandable =
      make_timeline(job, *gpu, {.allocator = *device::parse_allocator_options("expandable_segments:True")});
  const auto plain = make_timeline(job, *gpu);
  ASSERT_TRUE(testing::succeeds(expandable));
  EXPECT_LT(expandable->peak_reserved, plain->peak_reserved);
}

TEST(Timeline, RefusesWhatTheReplayRefuses) {
  TrainingJob job(*parse_summary(testing::kSmallGraph), 0);
  const auto gpu = find_profile("a100-40gb");
  EXPECT_TRUE(testing::fails(make_timeline(job, *gpu), ErrorCode::invalid_argument, 0, "the batch size is 0"));
  job.batch_size = 1;
  job.activation_checkpointing = true;
  EXPECT_TRUE(testing::fails(make_timeline(job, *gpu), ErrorCode::missing_information, 0, "activation checkpointing"));
  job.activation_checkpointing = false;
  job.software = "nothing";
  EXPECT_TRUE(testing::fails(make_timeline(job, *gpu), ErrorCode::invalid_argument, 0, "no software stack 'nothing'"));
  job.software = {};
  job.batch_size = INT64_MAX;
  EXPECT_TRUE(testing::fails(make_timeline(job, *gpu), ErrorCode::overflow, 4, "does not fit 64 bits"));
}

}  // namespace
}  // namespace gpumem::estimate
