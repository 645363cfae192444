#include "gpumem/serve/engine_start.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::serve {
namespace {

using testing::succeeds;

/// gpt-oss-20b's published sizes.
constexpr const char* kGptOss = R"({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"],
  "attention_bias": true, "head_dim": 64, "hidden_size": 2880, "intermediate_size": 2880,
  "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
  "num_key_value_heads": 8, "num_local_experts": 32, "sliding_window": 128, "tie_word_embeddings": false,
  "vocab_size": 201088, "quantization_config": {"quant_method": "mxfp4"}})";

double gib(core::Bytes bytes) { return static_cast<double>(bytes.count()) / (1024.0 * 1024.0 * 1024.0); }

// vLLM 0.19.0 logged 13.64 GiB on one H100, and 7.01 GiB on each of two.
TEST(RankWeights, ExpertsInMxfp4AreAsTheKernelsHoldThem) {
  const auto model = read_served_model(kGptOss);
  ASSERT_TRUE(succeeds(model));
  EXPECT_EQ(model->weights.experts, std::int64_t{24} * 32 * 3 * 2880 * 2880);
  RankShare share;
  share.mxfp4 = Mxfp4Kernels::triton_on_hopper;
  EXPECT_NEAR(gib(*rank_weights(*model, share)), 13.64, 0.05);
  share.ranks = share.expert_shares = 2;
  EXPECT_NEAR(gib(*rank_weights(*model, share)), 7.01, 0.05);
  RankShare marlin;
  EXPECT_LT(rank_weights(*model, marlin)->count(), std::int64_t{14} << 30) << "half a byte a weight";
}

constexpr const char* kDense = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
  "max_position_embeddings": 1000, "tie_word_embeddings": false ROPE})";

ServedModel dense(std::string_view rope) {
  std::string config = kDense;
  config.replace(config.find(" ROPE"), 5, rope);
  const auto model = read_served_model(config);
  EXPECT_TRUE(succeeds(model));
  return *model;
}

TEST(RankWeights, ATableOfRotaryPositionsGrowsWithTheFactor) {
  const std::int64_t plain = rank_weights(dense(""), {})->count();
  const auto more = [&](std::string_view rope) { return rank_weights(dense(rope), {})->count() - plain; };
  constexpr std::int64_t kTable = 1000 * 16 * 2;
  EXPECT_EQ(more(R"(, "rope_scaling": {"rope_type": "linear", "factor": 8.0})"), 7 * kTable);
  EXPECT_EQ(more(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})"), 0);
}

TEST(RankWeights, OneRankInFull) {
  const std::int64_t linear = 2 * (64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 64 * 128);
  const std::int64_t norms = (2 * 2 + 1) * 64;
  const std::int64_t tables = 2 * 128 * 64;  // 100 rows, padded to 128
  EXPECT_EQ(rank_weights(dense(""), {})->count(), 2 * (linear + norms + tables + 1000 * 16));
  RankShare packed;
  packed.weight_bits = 4;
  packed.group_size = 32;
  EXPECT_EQ(rank_weights(dense(""), packed)->count(), 2 * (norms + tables + 1000 * 16) + linear / 2 + linear / 32 * 2);
}

TEST(RankWeights, LayersThatAreLeftOutStayAsTheyAre) {
  const auto packed = [](std::string_view quantization) {
    const ServedModel model = dense(quantization);
    RankShare share;
    share.weight_bits = model.weight_bits;
    share.group_size = model.group_size;
    share.scale_bytes = model.scale_bytes;
    return rank_weights(model, share)->count();
  };
  const std::string groups = R"("config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 16,
    "type": "float"}}})";
  const std::string begins = R"(, "quantization_config": {"quant_method": "compressed-tensors", )" + groups;
  const std::int64_t all = packed(begins + "}");
  const std::int64_t attention = 2 * (64 * 64 + 2 * 32 * 64 + 64 * 64);
  // NVFP4: half a byte a weight, and one of scale for 16.
  EXPECT_EQ(packed(begins + R"(, "ignore": ["lm_head", "re:.*self_attn.*"]})") - all,
            2 * attention - attention / 2 - attention / 16);
  EXPECT_EQ(packed(begins + R"(, "ignore": ["model.layers.0.self_attn.q_proj"]})") - all,
            2 * 4096 - 4096 / 2 - 4096 / 16);
  EXPECT_FALSE(dense(begins + R"(, "ignore": ["re:.*(q|k)_proj"]})").doubts.empty());
}

TEST(RankWeights, SizesThatDoNotFitAreAnError) {
  constexpr std::int64_t kMany = INT32_MAX;
  const auto slots = adapter_slots(dense(""), {}, kMany, kMany);
  ASSERT_FALSE(slots);
  EXPECT_EQ(slots.error().code, core::ErrorCode::overflow);
  EXPECT_TRUE(succeeds(adapter_slots(dense(""), {}, 4, 32)));
  ServedModel wide = dense("");
  wide.weights.split = INT64_MAX;
  for (const std::int64_t bits : {0, 8}) {
    RankShare share;
    share.weight_bits = bits;
    EXPECT_FALSE(rank_weights(wide, share)) << bits;
  }
}

}  // namespace
}  // namespace gpumem::serve
