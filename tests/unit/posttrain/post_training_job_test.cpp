#include "gpumem/posttrain/post_training_job.hpp"

#include <set>

#include "expect.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;

TEST(PostTrainingOptions, EveryRowHasItsOwnNameAndTakesItsChoices) {
  std::set<std::string_view> names;
  for (const PostTrainingOption& option : post_training_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(find_post_training_option(option.name), &option);
    EXPECT_FALSE(option.help.empty());
    if (option.choices == nullptr) continue;
    for (const std::string_view choice : option.choices()) {
      PostTrainingOptions options;
      EXPECT_TRUE(succeeds(set_post_training_option(options, option.name, choice))) << option.name << " " << choice;
      EXPECT_NE(help_of(option).find(choice), std::string::npos);
    }
  }
}

TEST(PostTrainingOptions, WordsBecomeValues) {
  PostTrainingOptions options;
  for (const auto& [name, word] : std::vector<std::pair<std::string, std::string>>{{"algorithm", "grpo"},
                                                                                   {"rollout", "vllm"},
                                                                                   {"sleep_level", "2"},
                                                                                   {"gpu_memory_utilization", "0.45"},
                                                                                   {"packing", "true"},
                                                                                   {"prompt_length", "512"},
                                                                                   {"reward_model", "r.json"}}) {
    EXPECT_TRUE(succeeds(set_post_training_option(options, name, word))) << name;
  }
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(options.rollout, Rollout::colocated);
  EXPECT_EQ(options.sleep_level, 2);
  EXPECT_EQ(options.gpu_memory_utilization, 0.45);
  EXPECT_TRUE(options.packing);
  EXPECT_EQ(options.prompt_length, 512);
  EXPECT_EQ(options.reward_model, "r.json");
}

TEST(PostTrainingOptions, NamesAreTakenInAnyCaseAndTheNearestIsOffered) {
  PostTrainingOptions options;
  EXPECT_TRUE(succeeds(set_post_training_option(options, "algorithm", "GRPO")));
  EXPECT_TRUE(succeeds(set_post_training_option(options, "program", "ms_swift")));
  EXPECT_TRUE(succeeds(set_post_training_option(options, "rollout", "vLLM")));
  EXPECT_TRUE(succeeds(set_post_training_option(options, "enforce_eager", "1")));
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(options.program, Program::ms_swift);
  EXPECT_EQ(options.rollout, Rollout::colocated);
  EXPECT_TRUE(options.enforce_eager);
  EXPECT_TRUE(succeeds(set_post_training_option(options, "enforce_eager", "0")));
  EXPECT_FALSE(options.enforce_eager);
  EXPECT_TRUE(fails(set_post_training_option(options, "algorithm", "grop"), core::ErrorCode::invalid_argument, 0,
                    "there is no algorithm 'grop' (did you mean 'grpo'?); choose one of dpo, kto"));
}

TEST(PostTrainingOptions, WrongWordsAreErrorsThatNameThem) {
  for (const auto& [name, word] :
       std::vector<std::pair<std::string, std::string>>{{"algorithm", "sft"},
                                                        {"sleep_level", "3"},
                                                        {"gpu_memory_utilization", "1.5"},
                                                        {"gpu_memory_utilization", "nan"},
                                                        {"packing", "yes"},
                                                        {"prompt_length", "0"},
                                                        {"max_num_seqs", "9223372036854775807"},
                                                        {"rollout_tensor_parallel", "0"},
                                                        {"no_such", "1"}}) {
    PostTrainingOptions options;
    EXPECT_TRUE(fails(set_post_training_option(options, name, word), core::ErrorCode::invalid_argument, 0, name));
    EXPECT_EQ(options, PostTrainingOptions());
  }
}

}  // namespace
}  // namespace gpumem::posttrain
