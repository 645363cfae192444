#include "gpumem/summary/config_json.hpp"

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using testing::fails;
using testing::succeeds;

constexpr std::string_view kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
)";

TEST(ConfigJson, IsTakenForWhatItIs) {
  EXPECT_EQ(config_json().sniff(kConfig, 0), 0U);
  EXPECT_EQ(config_json().sniff(testing::kSmallGraph, 0), std::nullopt);
  EXPECT_EQ(config_json().sniff(R"({"hidden_size": 64})", 0), std::nullopt);
  EXPECT_EQ(config_json().sniff(R"(model_type: {"a": "model_type"})", 0), std::nullopt);
  EXPECT_EQ(config_json().sniff(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})", 0), 0U);
}

TEST(ConfigJson, IsASummaryLikeAnyOther) {
  const auto graph = parse_summary(kConfig);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "config_json");
  EXPECT_FALSE(graph->shapes_printed());
  EXPECT_FALSE(graph->edges_inferred());
}

TEST(ConfigJson, AGraphThatHoldsTheWordsIsAGraph) {
  const std::string text = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "model_type", "shape": ["N", 4]}],
 "nodes": [{"name": "a", "op": "relu", "inputs": ["model_type"], "attrs": {"architectures": "model_type"}}]})";
  const auto graph = parse_summary(text);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "graph_json");
}

TEST(ConfigJson, ItsGraphCanBeWrittenAndReadAgain) {
  const auto graph = parse_summary(kConfig);
  ASSERT_TRUE(succeeds(graph));
  const auto again = parse_summary(to_graph_json(*graph));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->parameters(), graph->parameters());
  EXPECT_EQ(again->layers().size(), graph->layers().size());
}

TEST(ConfigJson, NamesTheFileThatIsWrong) {
  const auto graph = config_json().parse(R"({"model_type": "llama"})", 0, {&ops::vocabulary(), "config.json"});
  ASSERT_TRUE(fails(graph, core::ErrorCode::missing_information, 0, "vocab_size"));
  EXPECT_EQ(graph.error().place.file, "config.json");
}

}  // namespace
}  // namespace gpumem::summary
