#include "gpumem/architectures/florence2.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> florence_graph(std::string_view config, std::int64_t images = 1) {
  return read_config(config, ops::vocabulary(), {}, {.size = {}, .count = images, .frames = {}});
}

std::string small_florence(std::string_view tower = "", std::string_view more = "") {
  return R"({"model_type": "florence2", "text_config": {"model_type": "bart", "vocab_size": 100, "d_model": 64,
      "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
      "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_position_embeddings": 1024},
      "vision_config": {"embed_dim": [16, 32, 48, 64], "num_heads": [2, 2, 3, 4], "num_groups": [2, 2, 3, 4],
      "projection_dim": 64)" +
         std::string(tower) + "}" + std::string(more) + "}";
}

/// As Microsoft publishes it.
std::string published_florence(std::int64_t width, std::int64_t layers, std::string_view dims, std::string_view heads) {
  const std::string w = std::to_string(width);
  const std::string l = std::to_string(layers);
  const std::string h = std::to_string(width / 64);
  const std::string inner = std::to_string(4 * width);
  return R"({"model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"], "vocab_size": 51289,
      "projection_dim": )" +
         w + R"(, "is_encoder_decoder": true, "text_config": {"model_type": "florence2_language", "vocab_size": 51289,
      "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": false, "add_final_layer_norm": false,
      "attention_dropout": 0.1, "classif_dropout": 0.1, "classifier_dropout": 0.0, "d_model": )" +
         w + R"(, "decoder_attention_heads": )" + h + R"(, "decoder_ffn_dim": )" + inner + R"(, "decoder_layers": )" +
         l + R"(, "dropout": 0.1, "encoder_attention_heads": )" + h + R"(, "encoder_ffn_dim": )" + inner +
         R"(, "encoder_layers": )" + l + R"(, "max_position_embeddings": 1024, "num_hidden_layers": )" + l +
         R"(, "normalize_before": false, "scale_embedding": false}, "vision_config": {"model_type": "davit",
      "drop_path_rate": 0.1, "patch_size": [7, 3, 3, 3], "patch_stride": [4, 2, 2, 2], "patch_padding": [3, 1, 1, 1],
      "patch_prenorm": [false, true, true, true], "enable_checkpoint": false, "dim_embed": )" +
         std::string(dims) + R"(, "num_heads": )" + std::string(heads) + R"(, "num_groups": )" + std::string(heads) +
         R"(, "depths": [1, 1, 9, 1], "window_size": 12, "projection_dim": )" + w +
         R"(, "visual_temporal_embedding": {"type": "COSINE", "max_temporal_embeddings": 100},
      "image_pos_embed": {"type": "learned_abs_2d", "max_pos_embeddings": 50},
      "image_feature_source": ["spatial_avg_pool", "temporal_avg_pool"]}})";
}

// Cards say 0.23 and 0.77 billion. Of Florence-2-base PEFT counts 270,803,968 beside its adapters, as it counts the
// head (51,289 x 768) apart from the embedding.
TEST(Florence2, HasThePublishedParameters) {
  const auto base = florence_graph(published_florence(768, 6, "[128, 256, 512, 1024]", "[4, 8, 16, 32]"));
  ASSERT_TRUE(succeeds(base));
  EXPECT_EQ(base->parameters(), 270'803'968 - 51289 * 768);
  EXPECT_EQ(base->doubts().size(), 1U) << "that of images";
  const auto large = florence_graph(published_florence(1024, 12, "[256, 512, 1024, 2048]", "[8, 16, 32, 64]"));
  ASSERT_TRUE(succeeds(large));
  EXPECT_NEAR(static_cast<double>(large->parameters()), 0.77e9, 0.01e9);
}

TEST(Florence2, TakesAsManyTokensOfAnyImage) {
  const auto one = florence_graph(small_florence());
  const auto two = florence_graph(small_florence(), 2);
  const auto none = florence_graph(small_florence(), 0);
  ASSERT_TRUE(succeeds(one) && succeeds(two) && succeeds(none));
  EXPECT_NE(one->remarks()[0].find(": 577 of its tokens"), std::string::npos);
  EXPECT_NE(two->remarks()[0].find(": 1,154 of its tokens"), std::string::npos);
  EXPECT_EQ(none->parameters(), one->parameters());
  EXPECT_LT(none->trainable_parameters(), one->trainable_parameters());
  for (const char* path :
       {"model.vision_tower.convs.0.conv", "model.vision_tower.blocks.2.8.spatial_block.window_attn.qkv",
        "model.vision_tower.blocks.3.0.channel_block.ffn.fc2", "model.multi_modal_projector.image_projection",
        "model.language_model.shared", "model.language_model.encoder.layers.1.fc1",
        "model.language_model.decoder.layers.0.encoder_attn.out_proj", "lm_head"}) {
    EXPECT_TRUE(std::ranges::any_of(one->layers(), [&](const model::Layer& each) { return one->path(each) == path; }))
        << path;
  }
}

TEST(Florence2, TheDecoderGetsTheTokensThatAreNoImages) {
  TrainingJob job(*florence_graph(small_florence()), 2);
  job.sequence_length = 577 + 64;
  const auto peak = [&] {
    const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
    EXPECT_TRUE(succeeds(answer));
    return answer && answer->allocated ? answer->allocated->count() : 0;
  };
  const std::int64_t all = peak();
  job.freeze = "model.vision_tower";
  EXPECT_LT(peak(), all);
  job.sequence_length = 500;
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(fails(answer, ErrorCode::invalid_argument, 0, "take 577 tokens"));
}

TEST(Florence2, RefusesWhatItIsNot) {
  EXPECT_TRUE(fails(florence_graph(small_florence(R"(, "window_size": 7)")), ErrorCode::malformed_input, 0,
                    "does not divide a stage's places"));
  EXPECT_TRUE(fails(florence_graph(small_florence(R"(, "depths": [1, 1])")), ErrorCode::malformed_input, 0,
                    "one entry a stage"));
  EXPECT_TRUE(fails(florence_graph(small_florence("", R"(, "audio_config": {"layers": 2})")),
                    ErrorCode::missing_information, 0, "'audio_config'"));
  const auto video = read_config(small_florence(), ops::vocabulary(), {}, {.size = {}, .count = 1, .frames = 4});
  EXPECT_TRUE(fails(video, ErrorCode::malformed_input, 0, "leave `frames` out"));
}

}  // namespace
}  // namespace gpumem::architectures
