// Arguments of Megatron's launcher, and the parameters that they give, counted by hand.
#include "gpumem/architectures/megatron.hpp"

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

std::string with(std::string_view more) {
  return R"({"num_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128,
    "max_position_embeddings": 32)" +
         std::string(more) + "}";
}

std::int64_t parameters(std::string_view more) {
  const auto graph = read(with(more));
  EXPECT_TRUE(succeeds(graph)) << more;
  return graph ? graph->parameters() : 0;
}

constexpr std::int64_t kEmbeddings = 128 * 64 + 32 * 64;
constexpr std::int64_t kNorms = 2 * 2 * 64;  // of a layer
constexpr std::int64_t kAttention = 4 * 64 * 64 + 4 * 64;
constexpr std::int64_t kFeedForward = 2 * 64 * 256 + 256 + 64;

TEST(Megatron, CountsWhatItsDefaultsSay) {
  EXPECT_EQ(parameters(""), kEmbeddings + 3 * (kNorms + kAttention + kFeedForward) + 2 * 64);
  EXPECT_EQ(parameters(R"(, "untie_embeddings_and_output_weights": true)"), parameters("") + 128 * 64);
  EXPECT_EQ(parameters(R"(, "position_embedding_type": "rope")"), parameters("") - 32 * 64);
  EXPECT_EQ(parameters(R"(, "normalization": "RMSNorm")"), parameters("") - 3 * 2 * 64 - 64);
  EXPECT_EQ(parameters(R"(, "add_bias_linear": false)"), parameters("") - 3 * (4 * 64 + 256 + 64));
}

TEST(Megatron, GroupsQueriesAndGatesTheFeedForwardLayer) {
  EXPECT_EQ(parameters(R"(, "group_query_attention": true, "num_query_groups": 2)"),
            parameters("") - 3 * 2 * (32 * 64 + 32));
  EXPECT_EQ(parameters(R"(, "swiglu": true, "ffn_hidden_size": 256)"), parameters("") + 3 * (64 * 256 + 256));
  EXPECT_EQ(parameters(R"(, "kv_channels": 32)"), parameters("") + 3 * (4 * 64 * 64 + 3 * 64));
}

TEST(Megatron, GivesTheLayersOfThePatternExperts) {
  constexpr std::string_view kExperts = R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)";
  constexpr std::int64_t kMixture = 4 * 64 + 4 * (2 * 64 * 128 + 128 + 64);
  EXPECT_EQ(parameters(kExperts), parameters("") + 3 * (kMixture - kFeedForward));
  EXPECT_EQ(parameters(std::string(kExperts) + R"x(, "moe_layer_freq": "([0]*1+[1]*2)")x"),
            parameters("") + 2 * (kMixture - kFeedForward));
  EXPECT_EQ(parameters(std::string(kExperts) + R"(, "moe_layer_freq": 2)"),
            parameters("") + 2 * (kMixture - kFeedForward));
  EXPECT_EQ(parameters(std::string(kExperts) + R"(, "moe_shared_expert_intermediate_size": 32)"),
            parameters(kExperts) + 3 * (2 * 64 * 32 + 32 + 64));
  for (const std::string_view pattern : {"[1]*2", "[1]*99999999", "1+1+1", "", "[[[[", "[2,2,2]"}) {
    EXPECT_TRUE(fails(read(with(std::string(kExperts) + R"(, "moe_layer_freq": ")" + std::string(pattern) + "\"")),
                      ErrorCode::malformed_input, 0, "0 or 1 for each layer"))
        << pattern;
  }
}

TEST(Megatron, CompressesKeysAndValues) {
  constexpr std::int64_t kLatent = 64 * 16 + 16 + 16 * 4 * 12 + 64 * (16 + 4) + 16 + 16 * 4 * 16 + 4 * 8 * 64;
  EXPECT_EQ(parameters(R"(, "multi_latent_attention": true, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_head_dim": 8,
                       "qk_pos_emb_head_dim": 4, "v_head_dim": 8)"),
            parameters("") + 3 * (kLatent - kAttention));
}

TEST(Megatron, RefusesWhatIsNoGpt) {
  EXPECT_TRUE(fails(read(with(R"(, "hybrid_layer_pattern": "M-M*")")), ErrorCode::malformed_input, 0, "only GPT"));
  EXPECT_TRUE(fails(read(with(R"(, "_model_family": "bert")")), ErrorCode::malformed_input, 0, "only GPT"));
  EXPECT_TRUE(fails(read(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})"),
                    ErrorCode::missing_information, 0, "padded_vocab_size, max_position_embeddings"));
  EXPECT_TRUE(fails(read(with(R"(, "num_query_groups": 3)")), ErrorCode::malformed_input, 0, "does not divide"));
}

}  // namespace
}  // namespace gpumem::architectures
