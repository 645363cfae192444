#include "pod_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "expect.hpp"
#include "option_values.hpp"

namespace gpumem::webhook {
namespace {

using job::JobOption;

/// The job of a pod that says no more than it must, and this.
Result<PodJob> job_with(std::string_view flag, std::string_view value) {
  const std::string name = std::string(kPrefix) + std::string(flag);
  PodJob defaults;
  defaults.target = "hami";
  std::vector<Annotation> ours = {{"gpumem.io/summary", "a.txt"}, {"gpumem.io/batch", "1"}};
  ours.push_back({name, value});
  return job_of(ours, defaults);
}

bool is_for_pods(const JobOption& option) {
  return std::find(kNotForPods.begin(), kNotForPods.end(), option.flag) == kNotForPods.end();
}

TEST(PodJob, HoldsEveryOptionButThoseThatAreNotForPods) {
  for (const JobOption& option : job::job_options()) {
    const auto job = job_with(option.flag, testing::other_value(option));
    if (!is_for_pods(option)) {
      EXPECT_TRUE(testing::fails(job, ErrorCode::malformed_input, 0, "is unknown"));
      continue;
    }
    ASSERT_TRUE(testing::succeeds(job)) << option.flag;
    EXPECT_EQ(testing::value_in(job->request, option), testing::other_value(option)) << option.flag;
    for (const JobOption& other : job::job_options()) {
      if (&other == &option || other.name == "batch_size") continue;
      EXPECT_TRUE(job::is_default(other, job->request)) << option.flag << " changes " << other.flag;
    }
  }
}

TEST(PodJob, NamesTheAnnotationsThatThereAre) {
  const auto job = job_with("colour", "red");
  ASSERT_FALSE(job);
  for (const JobOption& option : job::job_options()) {
    const bool named = job.error().message.find(", " + std::string(option.flag)) != std::string::npos;
    EXPECT_EQ(named, is_for_pods(option)) << option.flag;
  }
}

TEST(PodJob, TakesTheNamesOfTheCommandLineAlone) {
  EXPECT_TRUE(testing::fails(job_with("zero_grad", "step-end"), ErrorCode::malformed_input, 0, "is unknown"));
}

}  // namespace
}  // namespace gpumem::webhook
