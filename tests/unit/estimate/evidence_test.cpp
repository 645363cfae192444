#include "gpumem/estimate/evidence.hpp"

#include <gtest/gtest.h>

#include <string>

#include "expect.hpp"
#include "gpumem/gpumem.hpp"
#include "graphs.hpp"
#include "recordings.hpp"

namespace gpumem::estimate {

namespace {

using testing::succeeds;

TrainingJob job_of(const std::string& text) {
  TrainingJob job;
  job.graph = std::make_shared<const ModelGraph>(*parse_summary(text));
  job.batch_size = 4;
  return job;
}

MemoryEstimate estimated(const TrainingJob& job, const char* gpu) {
  const auto found = (*make_estimator("replay"))->estimate(job, *find_profile(gpu));
  EXPECT_TRUE(succeeds(found));
  return *found;
}

/// What it assumes, as "context capacity ".
std::string subjects(const MemoryEstimate& estimate) {
  std::string all;
  for (const Assumption& assumption : estimate.assumed) all += assumption.about + " ";
  return all;
}

TEST(Evidence, AMeasuredKindOfJobAssumesNothing) {
  const MemoryEstimate found = estimated(job_of(std::string(testing::kSmallGraph)), "a100-40gb");
  EXPECT_EQ(subjects(found), "");
  EXPECT_EQ(found.upper_coverage, 0.95);
}

TEST(Evidence, AnotherGpuWidensTheRangeAndSaysWhy) {
  const TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const MemoryEstimate known = estimated(job, "a100-40gb");
  const MemoryEstimate found = estimated(job, "h100-80gb");
  EXPECT_EQ(subjects(found), "context workspaces ");
  EXPECT_FALSE(found.upper_coverage.has_value()) << "nobody measured a net with convolutions there";
  const auto width = [](const MemoryEstimate& of) {
    return static_cast<double>(of.upper.count() - of.lower.count()) / static_cast<double>(of.expected.count());
  };
  EXPECT_GT(width(found), width(known));
}

TEST(Evidence, GpusOfXMemsRunsKeepTheirCoverage) {
  const MemoryEstimate found = estimated(job_of(std::string(testing::kSmallGraph)), "rtx3060-12gb");
  EXPECT_EQ(found.upper_coverage, 0.95);
  EXPECT_EQ(subjects(found), "context workspaces ");
}

TEST(Evidence, APrecisionThatNobodyMeasuredIsSaid) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const Margin known = margin_of(job, {.graph = job.graph.get(), .convolves = true}, *find_profile("a100-40gb"));
  job.precision = model::Precision::amp_bf16;
  const Margin found = margin_of(job, {.graph = job.graph.get(), .convolves = true}, *find_profile("a100-40gb"));
  EXPECT_LT(found.lower, known.lower);
  EXPECT_GT(found.upper, known.upper);
  EXPECT_FALSE(found.coverage.has_value());
  const MemoryEstimate estimate = estimated(job, "a100-40gb");
  ASSERT_EQ(subjects(estimate), "precision ");
  EXPECT_EQ(estimate.assumed[0].text, "no run in amp-bf16 was measured");
}

TEST(Evidence, InferredEdgesAreSaidByEveryEstimatorThatFollowsThem) {
  const TrainingJob job = job_of(
      "Sequential(\n  (0): Linear(in_features=4, out_features=8, bias=True)\n  (1): ReLU()\n"
      "  (2): Linear(in_features=8, out_features=2, bias=True)\n)\n");
  TrainingJob shaped = job;
  shaped.input_shape = {4};
  for (const char* name : {"replay", "fake-tensor"}) {
    const auto found = (*make_estimator(name))->estimate(shaped, *find_profile("a100-40gb"));
    ASSERT_TRUE(succeeds(found));
    EXPECT_EQ(subjects(*found), "edges ") << name;
  }
}

TEST(Evidence, GuessedJoinsAndUnknownLayersHaveNoCoverage) {
  const TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const GpuProfile gpu = *find_profile("a100-40gb");
  const Margin known = margin_of(job, {.graph = job.graph.get()}, gpu);
  const Margin guessed = margin_of(job, {.graph = job.graph.get(), .guesses = {.edges = 2, .layers = 40}}, gpu);
  const Margin more = margin_of(job, {.graph = job.graph.get(), .guesses = {.edges = 20, .layers = 40}}, gpu);
  EXPECT_GT(more.upper, guessed.upper) << "the more is guessed, the wider";
  EXPECT_LT(guessed.lower, known.lower);
  EXPECT_GT(guessed.upper, known.upper);
  EXPECT_FALSE(guessed.coverage.has_value());
  EXPECT_FALSE(margin_of(job, {.graph = job.graph.get(), .unknown_layers = 1}, gpu).coverage.has_value());
}

TEST(Evidence, ARecordingOfAnotherGenerationIsSaid) {
  const TrainingJob job = job_of(testing::kSmallRecording);
  EXPECT_EQ(subjects(estimated(job, "a100-40gb")), "");
  const MemoryEstimate found = estimated(job, "t4-16gb");
  EXPECT_NE(subjects(found).find("recording"), std::string::npos);
}

}  // namespace

}  // namespace gpumem::estimate
