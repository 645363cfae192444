#include "gpumem/posttrain/phases.hpp"

#include "gpumem/all.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "small_transformers.hpp"

namespace gpumem::posttrain {
namespace {

using testing::small_llama;
using testing::succeeds;

PostTrainingJob job_of(Algorithm algorithm) {
  PostTrainingJob job{.policy = small_llama(2), .options = {.algorithm = algorithm}};
  if (row_of(algorithm).generates) job.options.rollout = Rollout::elsewhere;
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  return job;
}

PostTrainingEstimate estimated(const PostTrainingJob& job) {
  const auto gpu = find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(gpu));
  auto estimate = estimate_post_training(job, *gpu);
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? *std::move(estimate) : PostTrainingEstimate();
}

std::int64_t allocated_in(const PostTrainingEstimate& estimate, std::string_view name) {
  for (const PhaseEstimate& at : estimate.phases) {
    if (at.name == name) return at.allocated.count();
  }
  ADD_FAILURE() << "no phase " << name;
  return 0;
}

TEST(Phases, OnlineDpoComparesAndScoresWithinItsUpdate) {
  PostTrainingJob job = job_of(Algorithm::online_dpo);
  job.reward = job.policy.graph;
  const PostTrainingEstimate online = estimated(job);
  std::vector<std::string> names;
  for (const PhaseEstimate& phase : online.phases) names.push_back(phase.name);
  EXPECT_EQ(names, (std::vector<std::string>{"load", "rollout", "update: forward", "reference", "rewards and values",
                                             "update: backward", "update: optimizer"}));
  // What the policy keeps for backward is there, as with pairs that nobody generated.
  job.reward.reset();
  const PostTrainingEstimate given = estimated(job_of(Algorithm::dpo));
  EXPECT_EQ(allocated_in(estimated(job), "reference"), allocated_in(given, "reference"));
}

TEST(Phases, BcoHasOneAnswerASampleAndAReference) {
  const std::int64_t bco = allocated_in(estimated(job_of(Algorithm::bco)), "update: backward");
  EXPECT_LT(bco, allocated_in(estimated(job_of(Algorithm::dpo)), "update: backward"));
  EXPECT_GT(bco, allocated_in(estimated(job_of(Algorithm::prm)), "update: backward"));
}

TEST(Phases, AFrozenModelHasNoAdaptersAndNoOptimizer) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.policy.lora = 8;
  job.policy.lora_dropout = 0.1;
  const auto decided = decide(job);
  ASSERT_TRUE(succeeds(decided));
  const model::TrainingJob frozen = frozen_job(*decided, nullptr);
  EXPECT_FALSE(frozen.has_adapters());
  EXPECT_EQ(frozen.lora_dropout, 0.0);
  EXPECT_EQ(frozen.graph, job.policy.graph);
}

}  // namespace
}  // namespace gpumem::posttrain
