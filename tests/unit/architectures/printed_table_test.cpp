// Tables of torchinfo whose class an architecture knows: the rows get the names of the calls, and the model is that of
// a config.json of the same sizes. What is not all that the class calls is chained, as before.
#include "gpumem/architectures/printed_table.hpp"

#include <string>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem {
namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1000, "hidden_size": 256,
        "intermediate_size": 704, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 1})";

/// What torchinfo prints of that model, for 8 samples of 384 tokens.
std::string table_of(const std::string& class_name) {
  return R"(==========================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
)" + class_name +
         R"(                         --                        --
├─LlamaModel: 1-1                        --                        --
│    └─Embedding: 2-1                    [8, 384, 256]             256,000
│    └─LlamaRotaryEmbedding: 2-2         [1, 384, 64]              --
│    └─ModuleList: 2-3                   --                        --
│    │    └─LlamaDecoderLayer: 3-1       [8, 384, 256]             --
│    │    │    └─LlamaRMSNorm: 4-1       [8, 384, 256]             256
│    │    │    └─LlamaAttention: 4-2     [8, 384, 256]             --
│    │    │    │    └─Linear: 5-1        [8, 384, 256]             65,536
│    │    │    │    └─Linear: 5-2        [8, 384, 64]              16,384
│    │    │    │    └─Linear: 5-3        [8, 384, 64]              16,384
│    │    │    │    └─Linear: 5-4        [8, 384, 256]             65,536
│    │    │    └─LlamaRMSNorm: 4-3       [8, 384, 256]             256
│    │    │    └─LlamaMLP: 4-4           [8, 384, 256]             --
│    │    │    │    └─Linear: 5-5        [8, 384, 704]             180,224
│    │    │    │    └─SiLU: 5-6          [8, 384, 704]             --
│    │    │    │    └─Linear: 5-7        [8, 384, 704]             180,224
│    │    │    │    └─Linear: 5-8        [8, 384, 256]             180,224
│    └─LlamaRMSNorm: 2-4                 [8, 384, 256]             256
├─Linear: 1-2                            [8, 384, 1000]            256,000
==========================================================================================
Total params: 1,217,280
==========================================================================================
)";
}

std::string without(std::string text, const std::string& part, const std::string& instead = {}) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), instead);
}

std::optional<architectures::TableTree> tree_of(const std::string& text) {
  const auto table = parse_summary(text);
  EXPECT_TRUE(testing::succeeds(table));
  return architectures::tree_of_table(*table, ops::vocabulary_of(ops::catalogue()));
}

TEST(PrintedTable, RowsHaveTheNamesOfTheCalls) {
  const auto tree = tree_of(table_of("LlamaForCausalLM"));
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->sample, std::vector<std::int64_t>{384});
  const architectures::ModuleTree modules(tree->graph, architectures::known_tree(tree->graph)->scope);
  EXPECT_EQ(modules.class_name(), "LlamaForCausalLM");
  EXPECT_EQ(modules.integer("model.layers.0.self_attn.k_proj", "out_features"), 64);
  EXPECT_EQ(modules.integer("model.layers.0.mlp.down_proj", "in_features"), 704);
  EXPECT_EQ(modules.flag("model.layers.0.self_attn.q_proj", "bias"), false);
  EXPECT_EQ(modules.integer("lm_head", "out_features"), 1000);
}

TEST(PrintedTable, GivesTheAnswerOfTheConfig) {
  const auto bytes_of = [](const std::string& text, std::optional<std::int64_t> tokens) {
    const auto graph = parse_summary(text);
    EXPECT_TRUE(testing::succeeds(graph));
    TrainingJob job(*graph, 8);
    job.sequence_length = tokens;
    analysis::Analysis analysis(job);
    const auto steps = analysis.steps();
    EXPECT_TRUE(testing::succeeds(steps));
    return (*steps)->peak_bytes;
  };
  const std::string table = table_of("LlamaForCausalLM");
  EXPECT_EQ(bytes_of(table, {}), bytes_of(kConfig, 384)) << "the table has its tokens";
  EXPECT_EQ(bytes_of(table, 512), bytes_of(kConfig, 512)) << "unless the job says others";
}

TEST(PrintedTable, WhatIsNotAllThatTheClassCallsHasNoTree) {
  const std::string table = table_of("LlamaForCausalLM");
  EXPECT_FALSE(tree_of(table_of("SomeoneElsesModel")).has_value());
  const std::string row = "│    │    │    │    └─Linear: 5-4        [8, 384, 256]             65,536\n";
  EXPECT_FALSE(tree_of(without(table, row)).has_value()) << "a row is missing";
  EXPECT_FALSE(tree_of(without(table, row, row + row)).has_value()) << "a row too many";
  EXPECT_FALSE(tree_of(without(table, " 65,536", "(65,536)")).has_value()) << "frozen";
  EXPECT_FALSE(tree_of(without(table, " 65,536", " 65,537")).has_value()) << "no size of a linear layer";
}

/// What a container holds itself needs a row in it that tells where it is.
TEST(PrintedTable, ParametersThatNoRowPlacesHaveNoTree) {
  const std::string table = table_of("LlamaForCausalLM");
  const std::string norm = "│    │    │    └─LlamaRMSNorm: 4-3       [8, 384, 256]             256\n";
  const std::string within =
      "│    │    │    └─Scale: 4-5              [8, 384, 256]             512\n"
      "│    │    │    │    └─SiLU: 5-9          [8, 384, 256]             --\n";
  EXPECT_FALSE(tree_of(without(table, norm, within + norm)).has_value()) << "the next row is of another container";
}

/// Ids that the first axis says there are 2^62 times as many of as the batch, times the second one.
TEST(PrintedTable, MoreTokensThanCanBeHaveNoTree) {
  const std::string first = "├─LlamaModel: 1-1                        --                        --";
  const std::string ids = "└─Embedding: 2-1                    [8, 384, 256] ";
  const std::string shaped = without(table_of("LlamaForCausalLM"), first,
                                     "├─LlamaModel: 1-1                        [2, 384, 256]             --");
  EXPECT_TRUE(tree_of(without(shaped, ids, "└─Embedding: 2-1 [4, 384, 256] ")).has_value());
  EXPECT_FALSE(tree_of(without(shaped, ids, "└─Embedding: 2-1 [9223372036854775806, 384, 256] ")).has_value());
}

TEST(PrintedTable, AnotherCountOfParametersIsChained) {
  const std::string more = "├─LlamaModel: 1-1                        --                        ";
  const auto table = parse_summary(without(table_of("LlamaForCausalLM"), more + "--", more + "512"));
  ASSERT_TRUE(testing::succeeds(table));
  analysis::Analysis analysis(TrainingJob(*table, 8));
  const auto wired = analysis.wired();
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_TRUE((*wired)->edges().starts_with("chained")) << (*wired)->edges();
}

}  // namespace
}  // namespace gpumem
