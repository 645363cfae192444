#include "labelled_jobs.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "expect.hpp"

namespace gpumem::train {
namespace {

using core::ErrorCode;
using ml::NetKind;
using testing::fails;
using testing::succeeds;

device::GpuProfile a100() { return *device::find_profile("a100-40gb"); }

TEST(LabelledJobs, AreLabelledByTheReplayEstimator) {
  const LabelledJobs jobs(RandomJobs({NetKind::any, 1}), a100());
  const estimate::Replay replay;
  for (std::uint64_t index = 0; index < 10; ++index) {
    const auto job = jobs.at(index);
    ASSERT_TRUE(succeeds(job));
    const auto estimate = replay.estimate(job->made.job, a100());
    ASSERT_TRUE(succeeds(estimate));
    EXPECT_EQ(job->replay_mib * 1048576.0, static_cast<double>(estimate->expected.count()));
    EXPECT_EQ(job->fits, estimate->fits);
    EXPECT_EQ(job->made.name, RandomJobs({NetKind::any, 1}).at(index)->name);
    EXPECT_EQ(jobs.class_of(*job), job->fits ? 0U : 1U);
  }
}

TEST(LabelledJobs, ASoftwareStackThatTheGpuLacksIsAnError) {
  const LabelledJobs jobs(RandomJobs({NetKind::mlp, 1, false, "nope"}), a100());
  EXPECT_TRUE(fails(jobs.at(0), ErrorCode::invalid_argument, 0, "no software stack 'nope'"));
}

TEST(LabelledJobs, BalancedOnesFillEveryClassAlike) {
  const auto jobs = LabelledJobs::balanced(RandomJobs({NetKind::cnn, 1}), a100(), 8000);
  ASSERT_TRUE(succeeds(jobs));
  ASSERT_EQ(jobs->classes(), 6U);  // five up to 40,506 MiB, and out of memory
  std::vector<int> met(jobs->classes());
  for (std::uint64_t index = 0; index < 60; ++index) {
    const auto job = jobs->at(index);
    ASSERT_TRUE(succeeds(job));
    ++met[jobs->class_of(*job)];
    if (job->fits) {
      EXPECT_LE(job->replay_mib, 40507);
    }
  }
  for (const int times : met) EXPECT_NEAR(times, 10, 1);
}

TEST(LabelledJobs, ClassesThatNothingFillsAreLeftOut) {
  const auto jobs = LabelledJobs::balanced(RandomJobs({NetKind::mlp, 1}), a100(), 1000);
  ASSERT_TRUE(succeeds(jobs));
  EXPECT_EQ(jobs->classes(), 41U);
  int small = 0;
  for (std::uint64_t index = 0; index < 60; ++index) {
    const auto job = jobs->at(index);
    ASSERT_TRUE(succeeds(job));
    EXPECT_TRUE(job->fits);
    small += jobs->class_of(*job) == 0 ? 1 : 0;
  }
  EXPECT_LT(small, 40);  // as they are drawn, nine tenths lie there
}

TEST(LabelledJobs, BinsOfNoWidthAreRefused) {
  for (const double width : {0.0, -1.0, 0.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(fails(LabelledJobs::balanced(RandomJobs({NetKind::mlp, 1}), a100(), width), ErrorCode::invalid_argument,
                      0, "at least 1 MiB"));
  }
}

}  // namespace
}  // namespace gpumem::train
