#include "plan_words.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::cli {
namespace {

using core::ErrorCode;
using Json = nlohmann::ordered_json;
using testing::fails;
using testing::succeeds;

/// What a plan is asked, in the words that every front end has.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"gpus", "64"},
                                                                    {"global_batch", "512"},
                                                                    {"framework", "megatron"},
                                                                    {"gpus_per_node", "4"},
                                                                    {"at_most_tensor_parallel", "2"},
                                                                    {"network_gbps", "200.5"},
                                                                    {"show", "3"},
                                                                    {"no_overlap", "true"}};

TEST(PlanWords, AsTextAndAsJsonAreOneQuestion) {
  PlanOptions of_text;
  for (const auto& [name, word] : kWords) EXPECT_TRUE(succeeds(take_plan_word(name, word, of_text))) << name;
  PlanOptions of_json;
  const Json asked = {{"gpus", 64},
                      {"global_batch", 512},
                      {"framework", "megatron"},
                      {"gpus_per_node", 4},
                      {"at_most_tensor_parallel", 2},
                      {"network_gbps", 200.5},
                      {"show", 3},
                      {"no_overlap", true}};
  EXPECT_TRUE(succeeds(take_plan_options(asked, of_json)));
  for (const PlanOptions& options : {of_text, of_json}) {
    const auto question = question_of(options);
    ASSERT_TRUE(succeeds(question));
    EXPECT_EQ(question->gpus, 64);
    EXPECT_EQ(question->global_batch, 512);
    ASSERT_EQ(question->frameworks.size(), 1U);
    EXPECT_EQ(question->frameworks.front()->name, "megatron");
    EXPECT_EQ(question->links.gpus_per_node, 4);
    EXPECT_EQ(question->links.network_gbps, 200.5);
    EXPECT_FALSE(question->links.overlap);
    EXPECT_EQ(question->most.tensor_parallel, 2);
    EXPECT_EQ(question->show, 3U);
  }
}

TEST(PlanWords, AMisspeltOneGetsTheNearest) {
  PlanOptions options;
  EXPECT_TRUE(fails(take_plan_word("global_bacth", "8", options), ErrorCode::invalid_argument, 0,
                    "a plan has no option 'global_bacth' (did you mean 'global_batch'?)"));
  EXPECT_TRUE(is_plan_word("global_batch"));
  EXPECT_FALSE(is_plan_word("seq_length"));
}

TEST(PlanWords, SayWhatTheyMustBe) {
  PlanOptions options;
  EXPECT_TRUE(
      fails(take_plan_word("gpus", "many", options), ErrorCode::invalid_argument, 0, "gpus must be a whole number"));
  EXPECT_TRUE(
      fails(take_plan_options({{"gpus", "64"}}, options), ErrorCode::invalid_argument, 0, "must be a whole number"));
  EXPECT_TRUE(fails(take_plan_options({{"framework", 5}}, options), ErrorCode::invalid_argument, 0, "must be a name"));
  options = {.gpus = {8, 16}};
  EXPECT_TRUE(fails(question_of(options), ErrorCode::invalid_argument, 0, "one number"));
}

TEST(PlanWords, ThatCountAreOneOrMoreWhoeverAsks) {
  for (const std::string_view name :
       {"gpus", "global_batch", "show", "gpus_per_node", "at_most_tensor_parallel", "at_most_context_parallel",
        "at_most_pipeline_parallel", "at_most_expert_parallel"}) {
    PlanOptions options;
    EXPECT_TRUE(succeeds(take_plan_word(name, "0", options)));
    EXPECT_TRUE(
        fails(question_of(options), ErrorCode::invalid_argument, 0, "`" + std::string(name) + "` must be at least 1"));
  }
}

}  // namespace
}  // namespace gpumem::cli
