#include "gpumem/architectures/pangu_v2.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> decoder(std::string_view fields) {
  return read_config("{" + std::string(fields) + "}", ops::vocabulary());
}

constexpr std::string_view kSmall = R"("hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 100)";

std::int64_t parameters(std::string_view more) {
  const auto graph = decoder(std::string(more) + ", " + std::string(kSmall));
  EXPECT_TRUE(succeeds(graph)) << more;
  return graph ? graph->parameters() : 0;
}

TEST(PublishersDecoders, DifferFromLlamaAsTheirClassesDo) {
  const std::int64_t llama = parameters(R"("model_type": "llama")");
  EXPECT_EQ(parameters(R"("model_type": "exaone")"), llama) << "the same layers under other names";
  EXPECT_EQ(parameters(R"("model_type": "xverse")"), llama);
  EXPECT_EQ(parameters(R"("model_type": "telechat")"), llama + 2 * (64 + 64)) << "biases of each half's last layer";
  EXPECT_EQ(parameters(R"("model_type": "orion")"), llama + 5 * 64) << "norms with biases";
  const std::int64_t biases = 2 * (64 + 2 * 32 + 64);
  EXPECT_EQ(parameters(R"("model_type": "internlm")"), llama + biases);
  EXPECT_EQ(parameters(R"("model_type": "internlm", "bias": false)"), llama);
  // Norms with biases, no gate, biases everywhere.
  EXPECT_EQ(parameters(R"("model_type": "jais2")"), llama + 5 * 64 - 2 * 64 * 96 + biases + 2 * (96 + 64));
  EXPECT_EQ(parameters(R"("model_type": "jais2", "attention_bias": false, "mlp_bias": false)"),
            llama + 5 * 64 - 2 * 64 * 96);
}

/// transformers' Qwen2 reads no field for the bias of its output, which some configs set.
TEST(PublishersDecoders, Qwen2HasNoBiasBehindItsHeads) {
  EXPECT_EQ(parameters(R"("model_type": "qwen2", "attention_bias": true)"), parameters(R"("model_type": "qwen2")"));
}

TEST(PublishersDecoders, HaveTheirOwnNamesOfFields) {
  const auto exaone = decoder(R"("model_type": "exaone", "num_layers": 2, "activation_function": "silu",
      "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100)");
  const auto telechat = decoder(R"("model_type": "telechat2", "n_layer": 2, "n_head": 4, "ffn_hidden_size": 96,
      "hidden_size": 64, "vocab_size": 100)");
  ASSERT_TRUE(succeeds(exaone) && succeeds(telechat));
  EXPECT_TRUE(fails(decoder(R"("model_type": "exaone", "num_layers": 2, "num_attention_heads": 3, "hidden_size": 64,
      "intermediate_size": 96, "vocab_size": 100)"),
                    ErrorCode::malformed_input, 0, "does not divide hidden_size"));
}

TEST(PublishersDecoders, AClassTellsTheTypeWhereTheConfigHasNone) {
  const auto graph = decoder(R"("architectures": ["Qwen3ForCausalLM"], "head_dim": 16, )" + std::string(kSmall));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), parameters(R"("model_type": "qwen3", "head_dim": 16)"));
  EXPECT_TRUE(fails(decoder(R"("architectures": ["NobodysForCausalLM"], )" + std::string(kSmall)),
                    ErrorCode::missing_information, 0, "which is not known"));
}

TEST(PublishersDecoders, QuantisedByItsOldNameIsQuantised) {
  const auto graph = decoder(R"("model_type": "llama", "compression_config": {"quant_method": "compressed-tensors",
      "format": "pack-quantized"}, )" +
                             std::string(kSmall));
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->doubts().size(), 1U);
  EXPECT_EQ(graph->doubts()[0].about, model::Doubt::About::quantization);
}

}  // namespace
}  // namespace gpumem::architectures
