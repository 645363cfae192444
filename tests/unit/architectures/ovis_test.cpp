#include "gpumem/architectures/ovis.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> ovis_graph(std::string_view config, std::int64_t width = 1024,
                                           std::int64_t height = 768) {
  return read_config(config, ops::vocabulary(), {},
                     {.size = model::PictureSize{width, height}, .count = 1, .frames = {}});
}

std::string small_ovis(std::string_view tower = "") {
  return R"({"model_type": "ovis2", "text_config": {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100},
      "vision_config": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
      "image_size": 448, "vocab_size": 200, "hidden_stride": 2)" +
         std::string(tower) + "}}";
}

std::string ovis_tokens(std::int64_t width, std::int64_t height) {
  const auto graph = ovis_graph(small_ovis(), width, height);
  EXPECT_TRUE(succeeds(graph));
  const std::string told = graph ? std::string(graph->remarks().back()) : std::string();
  return told.substr(std::min(told.rfind(": "), told.size()));
}

// Ovis2-1B, as its makers publish its fields: Qwen2.5-0.5B has 494,032,768; the tower's parts are those of its classes.
TEST(Ovis, HasTheParametersOfItsParts) {
  constexpr std::int64_t kText = 494'032'768;
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kBlock = 4 * kWidth * kWidth + 3 * kWidth * 2816 + 2 * kWidth;
  constexpr std::int64_t kEmbeds = 3 * 14 * 14 * kWidth + kWidth + kWidth + 1024 * kWidth;
  constexpr std::int64_t kWords = 65536;
  constexpr std::int64_t kHead = 4 * kWidth * (kWords - 5) + 2 * (kWords - 5) + kWidth;
  const std::string qwen = R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
      "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
      "tie_word_embeddings": true})";
  const auto published = ovis_graph(R"({"model_type": "ovis", "architectures": ["Ovis"], "hidden_size": 896,
      "multimodal_max_length": 32768, "conversation_formatter_class": "QwenConversationFormatter", "llm_config": )" +
                                    qwen + R"(, "visual_tokenizer_config": {"model_type": "aimv2_visual_tokenizer",
      "backbone_config": {"model_type": "aimv2", "hidden_size": 1024, "intermediate_size": 2816, "image_size": 448,
      "num_attention_heads": 8, "num_channels": 3, "num_hidden_layers": 24, "patch_size": 14, "qkv_bias": false,
      "use_bias": false, "projection_dropout": 0.0}, "backbone_kwargs": {}, "depths": null, "drop_cls_token": false,
      "hidden_stride": 2, "tau": 1.0, "tokenize_function": "softmax", "use_indicators": false,
      "vocab_size": 65536}})");
  ASSERT_TRUE(succeeds(published));
  EXPECT_EQ(published->parameters(), kText + 24 * kBlock + kEmbeds + kHead + kWords * 896);
  EXPECT_EQ(published->doubts().size(), 1U) << "that of images";
  const auto own = ovis_graph(R"({"model_type": "ovis2", "text_config": )" + qwen + R"(, "vision_config": {
      "image_size": 448, "hidden_stride": 2, "vocab_size": 65536}})");
  ASSERT_TRUE(succeeds(own));
  EXPECT_EQ(own->parameters(), published->parameters());
}

TEST(Ovis, CutsPicturesIntoTheFewestTilesThatKeepThem) {
  EXPECT_EQ(ovis_tokens(448, 448), ": 259 of its tokens") << "one tile and three marks";
  EXPECT_EQ(ovis_tokens(460, 460), ": 259 of its tokens") << "it keeps more than 90 %";
  EXPECT_EQ(ovis_tokens(896, 448), ": 772 of its tokens") << "2 tiles and the whole, four marks";
  EXPECT_EQ(ovis_tokens(1024, 768), ": 1,800 of its tokens") << "2 x 3 tiles and the whole, eight marks";
  EXPECT_EQ(ovis::covering_tiles({4000, 3000}, 448, 12).tiles(), 12) << "none keeps 90 %: those that keep most";
  EXPECT_EQ(ovis::covering_tiles({4000, 3000}, 448, 9).tiles(), 9);
}

TEST(Ovis, HasTheNamesOfItsClasses) {
  const auto graph = ovis_graph(small_ovis());
  ASSERT_TRUE(succeeds(graph));
  const auto has = [&](std::string_view path) {
    return std::ranges::any_of(graph->layers(), [&](const model::Layer& each) { return graph->path(each) == path; });
  };
  for (const char* path :
       {"model.vision_tower.transformer.encoder.layers.1.attention.q_proj", "model.vision_tower.head_linear",
        "model.vision_tower.transformer.encoder.layers.0.ffn.down_proj", "model.visual_embeddings_table.weight",
        "model.language_model.layers.1.self_attn.o_proj", "lm_head"}) {
    EXPECT_TRUE(has(path)) << path;
  }
  const auto hard = ovis_graph(small_ovis(R"(, "tokenize_function": "st_argmax")"));
  ASSERT_TRUE(succeeds(hard));
  EXPECT_EQ(hard->parameters(), graph->parameters());
  EXPECT_TRUE(fails(ovis_graph(small_ovis(R"(, "tokenize_function": "top_two")")), ErrorCode::malformed_input, 0,
                    "must be softmax, st_argmax or gumbel_argmax"));
}

}  // namespace
}  // namespace gpumem::architectures
