#include "gpumem/estimate/prepared_jobs.hpp"

#include <thread>
#include <vector>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/estimate/replay.hpp"
#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

using testing::fails;
using testing::succeeds;

const GpuProfile& gpu() {
  static const GpuProfile kGpu = *find_profile("t4-16gb");
  return kGpu;
}

/// Jobs that differ in everything that a plan looks at, and in what a recording looks at.
std::vector<TrainingJob> jobs_of(const TrainingJob& base) {
  std::vector<TrainingJob> jobs = {base};
  const auto other = [&](auto change) {
    jobs.push_back(base);
    change(jobs.back());
  };
  other([](TrainingJob& job) { job.batch_size = 96; });
  other([](TrainingJob& job) { job.optimizer = Optimizer::sgd; });
  other([](TrainingJob& job) { job.precision = Precision::amp_fp16; });
  other([](TrainingJob& job) { job.loss = model::Loss::mse; });
  other([](TrainingJob& job) { job.foreach = false; });
  other([](TrainingJob& job) { job.fused = true; });
  other([](TrainingJob& job) { job.gradient_accumulation = 3; });
  other([](TrainingJob& job) { job.activation_checkpointing = true; });
  other([](TrainingJob& job) { job.zero_grad_to_none = false; });
  other([](TrainingJob& job) { job.zero_grad = model::ZeroGrad::step_end; });
  other([](TrainingJob& job) { job.samples_per_epoch = 1000; });
  other([](TrainingJob& job) { job.summary_pass = true; });
  other([](TrainingJob& job) { job.validation_pass = true; });
  other([](TrainingJob& job) { job.input_shape = {3, 128, 128}; });
  return jobs;
}

TrainingJob resnet50() { return {*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json"), 32}; }

TEST(PreparedJobs, EveryJobGetsWhatItGetsAlone) {
  PreparedJobs prepared;
  const Replay resident(ops::catalogue(), {}, &prepared);
  const Replay alone;
  const auto jobs = jobs_of(resnet50());
  for (int round = 0; round < 2; ++round) {
    for (const TrainingJob& job : jobs) {
      const auto expected = alone.estimate(job, gpu());
      const auto found = resident.estimate(job, gpu());
      ASSERT_TRUE(succeeds(expected));
      ASSERT_TRUE(succeeds(found));
      EXPECT_EQ(found->expected, expected->expected);
      EXPECT_EQ(found->allocated, expected->allocated);
      EXPECT_EQ(found->coverage.edges, expected->coverage.edges);
    }
  }
}

TEST(PreparedJobs, TheSameJobIsMovedToAnotherGpu) {
  PreparedJobs prepared;
  const Replay resident(ops::catalogue(), {}, &prepared);
  const TrainingJob job = resnet50();
  for (const char* name : {"t4-16gb", "a100-40gb", "h100-80gb", "t4-16gb"}) {
    const GpuProfile other = *find_profile(name);
    const auto expected = Replay().estimate(job, other);
    const auto found = resident.estimate(job, other);
    ASSERT_TRUE(succeeds(expected));
    ASSERT_TRUE(succeeds(found));
    EXPECT_EQ(found->expected, expected->expected) << name;
    EXPECT_EQ(found->breakdown.context, expected->breakdown.context) << name;
  }
}

TEST(PreparedJobs, AFailureLeavesTheOthersAlone) {
  PreparedJobs prepared;
  const Replay resident(ops::catalogue(), {}, &prepared);
  TrainingJob job = resnet50();
  const auto first = resident.estimate(job, gpu());
  ASSERT_TRUE(succeeds(first));
  job.software = "abacus";
  EXPECT_TRUE(fails(resident.estimate(job, gpu()), ErrorCode::invalid_argument, 0, "abacus"));
  job.software.clear();
  job.batch_size = INT64_MAX;
  EXPECT_FALSE(resident.estimate(job, gpu()));
  job.batch_size = 32;
  const auto again = resident.estimate(job, gpu());
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->expected, first->expected);
}

TEST(PreparedJobs, ManyThreadsGetTheSame) {
  PreparedJobs prepared;
  const Replay resident(ops::catalogue(), {}, &prepared);
  const Replay alone;
  const auto jobs = jobs_of({*parse_summary(testing::kSmallGraph), 4});
  std::vector<Bytes> expected;
  for (const TrainingJob& job : jobs) {
    const auto estimate = alone.estimate(job, gpu());
    expected.push_back(estimate ? estimate->expected : Bytes(0));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  constexpr std::size_t kThreads = 12;  // more than there are places
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t round = 0; round < 200; ++round) {
        const std::size_t at = (thread + round) % jobs.size();
        const auto found = resident.estimate(jobs[at], gpu());
        if ((found ? found->expected : Bytes(0)) != expected[at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PreparedJobs, OfAnotherPlanOnlyTheRecordingCounts) {
  const TrainingJob job = resnet50();
  const auto jobs = jobs_of(job);
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    const TrainingJob& other = jobs[at];
    const bool same = other.precision == job.precision && other.loss == job.loss && other.input_shape.empty();
    EXPECT_EQ(recorded_alike(job, other), same) << at;
  }
  EXPECT_FALSE(recorded_alike(job, resnet50())) << "another reading of the file is another graph";
}

/// The loops that may run long see the deadline, and what they leave is not taken for a result.
TEST(DeadlineOfEstimates, EndsEveryEstimatorAndTheSearchForABatch) {
  const TrainingJob job = resnet50();
  const core::Deadline deadline(1);
  while (!core::deadline_passed()) {
  }
  for (const EstimatorEntry& entry : estimators()) {
    if (entry.name == "replay-corrected" || entry.name.starts_with("gpumemnet"))
      continue;  // their models are read late
    const auto estimator = entry.create({});
    ASSERT_TRUE(succeeds(estimator));
    EXPECT_TRUE(fails((*estimator)->estimate(job, gpu()), ErrorCode::deadline_exceeded, 0, "deadline"));
  }
  EXPECT_TRUE(fails(largest_batch(job, gpu(), Replay()), ErrorCode::deadline_exceeded, 0, "deadline"));
}

}  // namespace
}  // namespace gpumem::estimate
