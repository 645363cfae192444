// Arguments of Megatron's launcher for T5, and the parameters that they give, counted by hand.
#include "gpumem/architectures/t5.hpp"

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

std::string with(std::string_view more) {
  return R"({"_model_family": "t5", "encoder_num_layers": 3, "decoder_num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "ffn_hidden_size": 256, "padded_vocab_size": 128, "max_position_embeddings": 32,
    "decoder_seq_length": 8)" +
         std::string(more) + "}";
}

std::int64_t parameters(std::string_view more) {
  const auto graph = read(with(more));
  EXPECT_TRUE(succeeds(graph)) << more;
  return graph ? graph->parameters() : 0;
}

constexpr std::int64_t kEmbeddings = 128 * 64 + 32 * 64;
constexpr std::int64_t kNorm = 2 * 64;
constexpr std::int64_t kAttention = 4 * 64 * 64 + 4 * 64;
constexpr std::int64_t kFeedForward = 2 * 64 * 256 + 256 + 64;
constexpr std::int64_t kEncoder = 3 * (2 * kNorm + kAttention + kFeedForward) + kNorm;
constexpr std::int64_t kDecoder = 2 * (3 * kNorm + 2 * kAttention + kFeedForward) + kNorm;

TEST(MegatronT5, CountsWhatItsArgumentsSay) {
  EXPECT_EQ(parameters(""), kEmbeddings + kEncoder + kDecoder + 128) << "the head has a bias of its own";
  EXPECT_EQ(parameters(R"(, "untie_embeddings_and_output_weights": true)"), parameters("") - 128 + 128 * 64);
  EXPECT_EQ(parameters(R"(, "kv_channels": 32)"), parameters("") + 7 * (4 * 64 * 64 + 3 * 64));
}

TEST(MegatronT5, TheDecoderReadsAsManyTokensAsItsArgumentsSay) {
  const auto graph = read(with(""));
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*graph, 2);
  job.sequence_length = 16;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  const auto shape_of = [&](std::string_view path) {
    for (std::size_t at = 0; at < graph->layers().size(); ++at) {
      if (graph->path(graph->layers()[at]) == path) return core::to_string(wired->outputs(at)[0]);
    }
    return std::string("no such layer");
  };
  EXPECT_EQ(shape_of("encoder.layers.2.mlp.linear_fc2"), "[N, 16, 64]");
  EXPECT_EQ(shape_of("decoder.layers.1.mlp.linear_fc2"), "[N, 8, 64]");
  EXPECT_EQ(shape_of("decoder.layers.1.cross_attention.linear_kv"), "[N, 16, 128]") << "of what the encoder made";
  EXPECT_EQ(shape_of("lm_head"), "[N, 8, 128]");
}

TEST(MegatronT5, OnlyTheDecodersSelfAttentionIsCausal) {
  const auto graph = read(with(""));
  ASSERT_TRUE(succeeds(graph));
  for (const model::Layer& layer : graph->layers()) {
    const std::string path = graph->path(layer);
    if (!path.ends_with("scaled_dot_product_attention")) continue;
    const bool expected = path.starts_with("decoder.") && path.find("self_attention") != std::string::npos;
    EXPECT_EQ(graph->attributes(layer).flag("is_causal", false), expected) << path;
  }
}

TEST(MegatronT5, SaysHowManyOptimizersThereAre) {
  const auto one = read(with(""));
  const auto two = read(with(R"(, "num_distributed_optimizer_instances": 2)"));
  ASSERT_TRUE(succeeds(one));
  ASSERT_TRUE(succeeds(two));
  EXPECT_EQ(one->run_settings().optimizer_instances, 1);
  EXPECT_EQ(two->run_settings().optimizer_instances, 2);
}

TEST(MegatronT5, RefusesFormsThatAreNotModelled) {
  for (const std::string_view more : {R"(, "swiglu": true)", R"(, "normalization": "RMSNorm")",
                                      R"(, "position_embedding_type": "rope")", R"(, "num_query_groups": 2)"}) {
    EXPECT_TRUE(fails(read(with(more)), ErrorCode::malformed_input, 0, "modelled for Megatron's T5")) << more;
  }
  EXPECT_TRUE(fails(read(R"({"encoder_num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})"),
                    ErrorCode::missing_information, 0, "padded_vocab_size"));
}

}  // namespace
}  // namespace gpumem::architectures
