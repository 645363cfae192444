// The shipped trees of published models: each is wired, and holds as many parameters as was published.
#include "wired.hpp"

namespace gpumem::testing {
namespace {

struct Published {
  const char* tree;
  std::int64_t parameters;
  std::int64_t tokens = 128;
};

void PrintTo(const Published& model, std::ostream* out) { *out << model.tree; }

class ShippedTree : public ::testing::TestWithParam<Published> {};

TEST_P(ShippedTree, HoldsThePublishedParameters) {
  const auto job = shipped_tree(GetParam().tree, GetParam().tokens);
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(job->graph->parameters(), GetParam().parameters);
}

TEST_P(ShippedTree, GivesEveryLayerAnInput) {
  const auto job = shipped_tree(GetParam().tree, GetParam().tokens);
  ASSERT_TRUE(succeeds(job));
  EXPECT_FALSE(job->graph->edges_inferred());
  EXPECT_TRUE(succeeds(connect::connect(*job, ops::catalogue())));
  const auto replay = make_estimator("replay");
  ASSERT_TRUE(succeeds(replay));
  EXPECT_TRUE(succeeds((*replay)->estimate(*job, *find_profile("a100-80gb"))));
}

INSTANTIATE_TEST_SUITE_P(
    Published, ShippedTree,
    ::testing::Values(Published{"bert-base-uncased", 109'514'298}, Published{"roberta-base", 124'697'433},
                      Published{"distilbert-base-uncased", 66'985'530}, Published{"gpt2", 124'439'808},
                      Published{"gpt2-large", 774'030'080}, Published{"distilbert_distilgpt2", 81'912'576},
                      Published{"EleutherAI_gpt-neo-125M", 125'198'592},
                      Published{"EleutherAI_pythia-160m", 162'322'944}, Published{"facebook_opt-125m", 125'239'296},
                      Published{"xlnet-base-cased", 116'750'336},
                      Published{"google_vit-base-patch16-224", 86'567'656, 0}, Published{"T5-small", 60'506'624},
                      Published{"t5-base", 222'903'552}, Published{"meta-llama_Llama-3.2-1B", 1'235'814'400},
                      Published{"Qwen_Qwen3-0.6B", 596'049'920},
                      Published{"mistralai_Mistral-7B-v0.1", 7'241'732'096}));

}  // namespace
}  // namespace gpumem::testing
