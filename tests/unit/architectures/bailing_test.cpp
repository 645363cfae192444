#include "gpumem/architectures/bailing.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> bailing_graph(std::string_view more, std::string_view norms = "2") {
  return read_config(R"({"model_type": "bailing_hybrid", "hidden_size": 64, "num_hidden_layers": 7,
      "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 96, "vocab_size": 100,
      "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_shared_experts": 1,
      "first_k_dense_replace": 7, "layer_group_size": 3, "kv_lora_rank": 24,
      "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "group_norm_size": )" +
                         std::string(norms) + std::string(more) + "}",
                     ops::vocabulary());
}

/// Of seven layers in groups of three, the third and the sixth have latent attention, and so has the rest.
TEST(Bailing, TheLastLayerOfAGroupHasLatentAttention) {
  const auto graph = bailing_graph("");
  ASSERT_TRUE(succeeds(graph));
  const auto has = [&](const std::string& path) {
    return std::ranges::any_of(graph->layers(), [&](const model::Layer& each) { return graph->path(each) == path; });
  };
  for (int layer = 0; layer < 7; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer) + ".attention.";
    const bool latent = layer == 2 || layer == 5 || layer == 6;
    EXPECT_EQ(has(path + "kv_b_proj"), latent) << layer;
    EXPECT_EQ(has(path + "g_proj"), !latent) << layer;
    EXPECT_TRUE(has(path + "dense")) << layer;
  }
  constexpr std::int64_t kLinear = 5 * 64 * 64 + 64 + 2 * 16;  // queries, keys, values, gate, output; two norms
  constexpr std::int64_t kLatent = 64 * 4 * 24 + 64 * (24 + 8) + 24 + 24 * 4 * 32 + 64 * 64;
  constexpr std::int64_t kFed = 3 * 64 * 96 + 2 * 64;
  EXPECT_EQ(graph->parameters(), 2 * 100 * 64 + 64 + 7 * kFed + 4 * kLinear + 3 * kLatent);
}

TEST(Bailing, LayersOfFurtherTokensAreLeftOutAndNamed) {
  const auto graph = bailing_graph(R"(, "num_nextn_predict_layers": 1)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(std::ranges::any_of(
      graph->doubts(), [](const model::Doubt& doubt) { return doubt.about == model::Doubt::About::fields; }));
  EXPECT_TRUE(fails(bailing_graph("", "3"), ErrorCode::malformed_input, 0, "does not divide the heads"));
}

}  // namespace
}  // namespace gpumem::architectures
