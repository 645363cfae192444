#include "gpumem/architectures/vision_language.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "published_vision_models.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::kPublishedVision;
using testing::Published;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config, const model::Images& images = {}) {
  return read_config(config, ops::vocabulary(), {}, images);
}

bool has(const model::ModelGraph& graph, std::string_view path) {
  for (const model::Layer& layer : graph.layers()) {
    if (graph.path(layer) == path) return true;
  }
  return false;
}

std::int64_t count(const model::ModelGraph& graph, std::string_view op) {
  std::int64_t found = 0;
  for (const model::Layer& layer : graph.layers()) found += graph.op(layer) == op ? 1 : 0;
  return found;
}

std::string text_part(std::string_view more = "") {
  return R"("text_config": {"model_type": "qwen3_vl_text", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 100)" +
         std::string(more) + "}";
}

std::string small(std::string_view text = "", std::string_view more = "") {
  return R"({"model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], )" +
         (text.empty() ? text_part() : std::string(text)) +
         R"(, "vision_config": {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2,
    "out_hidden_size": 64, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]})" +
         std::string(more) + "}";
}

model::Images sized(std::int64_t width, std::int64_t height, std::optional<std::int64_t> images = {}) {
  return {.size = model::PictureSize{width, height}, .count = images, .frames = {}};
}

TEST(VisionLanguage, HaveThePublishedParameters) {
  for (const Published& model : kPublishedVision) {
    const auto graph = read(model.config);
    ASSERT_TRUE(succeeds(graph)) << model.name;
    EXPECT_EQ(graph->parameters(), model.parameters) << model.name;
    ASSERT_EQ(graph->doubts().size(), 1U) << model.name;
    EXPECT_EQ(graph->doubts()[0].about, model::Doubt::About::images) << model.name;
    const bool mixes = model.config.find("\"num_experts\": 1,") == std::string_view::npos &&
                       model.config.find("num_experts") != std::string_view::npos;
    EXPECT_EQ(graph->warnings().size(), mixes ? 2U : 1U) << model.name << ": the routing depends on the data";
    EXPECT_EQ(graph->remarks().size(), 1U) << model.name << " says what its samples bring";
    EXPECT_EQ(graph->config(), model.config);
  }
}

TEST(VisionLanguage, HaveThePublishedParametersWithMoreSaidOfThem) {
  for (const Published& model : testing::kPublishedWithMore) {
    const auto graph = read(model.config);
    ASSERT_TRUE(succeeds(graph)) << model.name;
    EXPECT_EQ(graph->parameters(), model.parameters) << model.name;
    for (const model::Doubt& doubt : graph->doubts()) {
      EXPECT_NE(doubt.about, model::Doubt::About::fields) << model.name << ": " << doubt.text;
    }
  }
}

TEST(VisionLanguage, ATextModelKeepsItsLayersUnderTheNamesOfTheOuterModel) {
  const auto graph = read(small());
  ASSERT_TRUE(succeeds(graph));
  for (const char* path : {"model.language_model.embed_tokens", "model.language_model.layers.3.mlp.down_proj",
                           "model.language_model.norm", "model.visual.blocks.1.attn.qkv",
                           "model.visual.merger.linear_fc2", "model.visual.deepstack_merger_list.0.norm", "lm_head"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
  EXPECT_EQ(count(*graph, "masked_scatter"), 1);
  EXPECT_EQ(count(*graph, "add_features"), 1) << "behind the first block alone";
  EXPECT_EQ(graph->parameters(), read(small(), sized(64, 64, 3))->parameters());
}

TEST(VisionLanguage, ImagesDecideTheTokens) {
  const auto told = [](const model::Images& images) {
    const auto graph = read(small(), images);
    EXPECT_TRUE(succeeds(graph));
    return graph && graph->remarks().size() == 1 ? graph->remarks()[0] : std::string();
  };
  EXPECT_NE(told({}).find("1 image of 1024 x 768 pixels, as neither"), std::string::npos);
  EXPECT_NE(told({}).find(": 768 of its tokens"), std::string::npos);
  EXPECT_NE(told(sized(512, 256, 3)).find("3 images of 512 x 256 pixels: 384 of its tokens"), std::string::npos);
  model::Images video = sized(512, 256);
  video.frames = 5;
  EXPECT_NE(told(video).find("1 video of 5 frames of 512 x 256 pixels: 384 of its tokens"), std::string::npos);
  EXPECT_NE(told({.size = {}, .count = 0, .frames = {}}).find("no images"), std::string::npos);
}

TEST(VisionLanguage, WithoutImagesTheTowerIsHeldAndNotCalled) {
  const auto with = read(small());
  const auto without = read(small(), {.size = {}, .count = 0, .frames = {}});
  ASSERT_TRUE(succeeds(with) && succeeds(without));
  EXPECT_EQ(without->parameters(), with->parameters());
  EXPECT_LT(without->trainable_parameters(), with->trainable_parameters());
  EXPECT_EQ(count(*without, "masked_scatter") + count(*without, "add_features"), 0);
}

TEST(VisionLanguage, HostileTowersAreRefused) {
  const std::string text = R"("text_config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})";
  const std::string unknown = R"({"model_type": "llava", "vision_config": {"model_type": "clip_vision_model",
      "hidden_act": "foo"}, )" +
                              text + "}";
  EXPECT_TRUE(fails(read(unknown), ErrorCode::malformed_input, 0, "foo"));
  const std::string none = R"({"model_type": "llava", "text_config": {"model_type": "vit", "hidden_size": 64}})";
  EXPECT_TRUE(fails(read(none), ErrorCode::malformed_input, 0, "'vit'"));
  EXPECT_TRUE(succeeds(read(R"({"model_type": "llava", "vision_config": null, )" + text + "}")));
}

TEST(VisionLanguage, UnreadFieldsInsideAreNamedWithTheirPath) {
  const std::string unknown = small(text_part(R"(, "router_experts": 8)"));
  EXPECT_TRUE(fails(read(unknown), ErrorCode::missing_information, 0, "'text_config.router_experts'"));
  const auto settings = read(small(text_part(R"(, "smoothing": 3)")));
  ASSERT_TRUE(succeeds(settings));
  ASSERT_EQ(settings->doubts().size(), 2U);
  EXPECT_EQ(settings->doubts()[1].about, model::Doubt::About::fields);
  EXPECT_NE(settings->doubts()[1].text.find("'text_config.smoothing'"), std::string::npos);
  EXPECT_TRUE(fails(read(small("", R"(, "audio_config": {"layers": 8})")), ErrorCode::missing_information, 0,
                    "'audio_config'"));
}

TEST(VisionLanguage, FaultsInsideHaveTheirPlace) {
  const auto missing = read(small(R"("text_config": {"model_type": "gpt_neox", "hidden_size": 64})"));
  EXPECT_TRUE(fails(missing, ErrorCode::missing_information, 0, "in its text_config does not say its vocab_size"));
  const auto unknown = read(small(R"("text_config": {"model_type": "never_heard_of"})"));
  EXPECT_TRUE(fails(unknown, ErrorCode::malformed_input, 0, "'never_heard_of'"));
  EXPECT_FALSE(read(small(R"("text_config": 8)")).has_value());
  EXPECT_TRUE(fails(read(small(R"("text_config": {"model_type": "llava", "text_config": {}})")),
                    ErrorCode::malformed_input, 0, "'llava'"));
  EXPECT_FALSE(read(small(text_part(R"(, "num_attention_heads": -1)"))).has_value());
}

TEST(VisionLanguage, OtherModelsTakeNoImages) {
  const auto graph =
      read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 96, "vocab_size": 100})",
           sized(64, 64));
  EXPECT_TRUE(fails(graph, ErrorCode::invalid_argument, 0, "leave `image` out"));
}

TEST(VisionLanguage, KimiAnswersWithDeepSeekInside) {
  const auto graph = read(testing::kKimiVl);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(has(*graph, "language_model.model.embed_tokens"));
  EXPECT_TRUE(has(*graph, "language_model.lm_head"));
  EXPECT_TRUE(has(*graph, "vision_tower.encoder.blocks.26.wqkv"));
}

TEST(VisionLanguage, Llama4HasItsPublishedTower) {
  const auto graph = read(R"({"model_type": "llama4", "text_config": {"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100}})");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(has(*graph, "vision_model.vision_adapter.mlp.fc2"));
  EXPECT_TRUE(has(*graph, "multi_modal_projector.linear_1"));
  EXPECT_EQ(graph->remarks().size(), 2U);
}

// OpenGVLab's own form of InternVL.

std::string intern_config(const std::string& llm, std::string_view more = "") {
  return R"({"model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "dynamic_image_size": true,
    "use_thumbnail": true, "max_dynamic_patch": 12, "force_image_size": 448, "llm_config": )" +
         llm + R"(, "vision_config": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 2, "image_size": 448, "patch_size": 14, "norm_type": "layer_norm", "qkv_bias": true,
    "qk_normalization": false, "drop_path_rate": 0.1, "use_flash_attn": true})" +
         std::string(more) + "}";
}

std::string intern_text(std::string_view type) {
  return R"({"model_type": ")" + std::string(type) +
         R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100, "bias": false, "tie_word_embeddings": false})";
}

/// What the last remark says of the tokens.
std::string intern_tokens(const std::string& config, const model::Images& images) {
  const auto graph = read(config, images);
  EXPECT_TRUE(succeeds(graph));
  const std::string told = graph && !graph->remarks().empty() ? graph->remarks().back() : std::string();
  return told.substr(std::min(told.rfind(": "), told.size()));
}

TEST(VisionLanguage, InternVLChatHoldsAWholeTextModelOfAnyKind) {
  const auto qwen = read(intern_config(intern_text("qwen2")));
  const auto intern = read(intern_config(intern_text("internlm2")));
  ASSERT_TRUE(succeeds(qwen) && succeeds(intern));
  for (const char* path : {"vision_model.embeddings.patch_embedding", "vision_model.encoder.layers.1.attn.qkv",
                           "mlp1.3", "language_model.model.layers.1.self_attn.q_proj", "language_model.lm_head"}) {
    EXPECT_TRUE(has(*qwen, path)) << path;
  }
  for (const char* path : {"language_model.model.tok_embeddings", "language_model.model.layers.1.attention.wqkv",
                           "language_model.model.layers.0.feed_forward.w2", "language_model.output"}) {
    EXPECT_TRUE(has(*intern, path)) << path;
  }
  // Qwen2's queries, keys and values have a bias, InternLM2's do not.
  EXPECT_EQ(qwen->parameters() - intern->parameters(), 2 * (64 + 2 * 32));
  std::string tied = intern_text("qwen2");
  tied.replace(tied.find("embeddings\": false"), 18, "embeddings\": true");
  const auto untied = read(intern_config(tied));
  ASSERT_TRUE(succeeds(untied));
  EXPECT_EQ(untied->parameters(), qwen->parameters()) << "InternVLChatConfig never ties";
}

TEST(VisionLanguage, InternVLChatCutsPicturesAsItsConfigSays) {
  const std::string cuts = intern_config(intern_text("qwen2"));
  EXPECT_EQ(intern_tokens(cuts, sized(1024, 768)), ": 3,328 of its tokens") << "3 x 4 tiles and the picture";
  EXPECT_EQ(intern_tokens(cuts, sized(448, 448)), ": 256 of its tokens");
  model::Images video = sized(1024, 768);
  video.frames = 8;
  EXPECT_EQ(intern_tokens(cuts, video), ": 2,048 of its tokens") << "a tile a frame";
  std::string six = cuts;
  six.replace(six.find(": 12"), 4, ": 6");
  EXPECT_EQ(intern_tokens(six, sized(1024, 768)), ": 1,792 of its tokens") << "2 x 3 tiles and the picture";
  std::string plain = cuts;
  plain.replace(plain.find("thumbnail\": true"), 16, "thumbnail\": false");
  EXPECT_EQ(intern_tokens(plain, sized(1024, 768)), ": 3,072 of its tokens");
  std::string whole = cuts;
  whole.replace(whole.find("size\": true"), 11, "size\": false");
  EXPECT_EQ(intern_tokens(whole, sized(1024, 768)), ": 256 of its tokens");
}

TEST(VisionLanguage, InternVLChatRefusesWhatItDoesNotKnow) {
  const std::string text = intern_text("qwen2");
  EXPECT_TRUE(fails(read(intern_config(text, R"(, "use_llm_lora": 16)")), ErrorCode::malformed_input, 0, "`lora`"));
  EXPECT_TRUE(fails(read(intern_config(text, R"(, "select_layer": -4)")), ErrorCode::malformed_input, 0,
                    "no layer of the tower"));
  EXPECT_TRUE(fails(read(intern_config(text, R"(, "min_dynamic_patch": 13)")), ErrorCode::malformed_input, 0,
                    "more than max_dynamic_patch"));
  EXPECT_TRUE(fails(read(intern_config(intern_text("vit"))), ErrorCode::malformed_input, 0, "'vit'"));
  EXPECT_TRUE(fails(read(R"({"model_type": "internvl_chat"})"), ErrorCode::malformed_input, 0, "no text model"));
  EXPECT_TRUE(succeeds(read(intern_config(text, R"(, "select_layer": -2, "use_backbone_lora": 0)"))));
}

// GLM-4.1V to 4.6V.

TEST(VisionLanguage, GlmTokensFollowThePixelsOfTwoFrames) {
  const std::string config = R"({"model_type": "glm4v", "text_config": {"model_type": "glm4v_text", "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "vocab_size": 100}, "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 64,
    "intermediate_size": 48}})";
  // 37 x 27 tokens of 28 pixels a side; at most 9,633,792 pixels of two frames: 92 x 66.
  EXPECT_EQ(intern_tokens(config, sized(1024, 768)), ": 999 of its tokens");
  EXPECT_EQ(intern_tokens(config, sized(4096, 2944)), ": 6,072 of its tokens");
  EXPECT_EQ(intern_tokens(config, sized(14, 28)), ": 8 of its tokens") << "made as high as a token, then larger";
  model::Images video = sized(448, 448);
  video.frames = 5;
  EXPECT_EQ(intern_tokens(config, video), ": 768 of its tokens") << "three pairs of frames";
  EXPECT_TRUE(fails(read(config, sized(28, 28 * 300)), ErrorCode::malformed_input, 0, "200 to 1"));
  const auto graph = read(config);
  ASSERT_TRUE(succeeds(graph));
  for (const char* path :
       {"model.visual.downsample", "model.visual.merger.post_projection_norm", "model.visual.blocks.1.mlp.gate_proj",
        "model.language_model.layers.0.post_mlp_layernorm", "lm_head"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
}

TEST(VisionLanguage, LlavasRelativesTakeTheirOwnTokens) {
  const auto told = [](std::string_view type, std::int64_t side, std::int64_t frames = 0) {
    const std::string config = R"({"model_type": ")" + std::string(type) +
                               R"(", "alignment_intermediate_size": 32, "vision_config": {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 8, "num_attention_heads": 2, "patch_size": 14,
        "image_size": )" + std::to_string(side) +
                               R"(}, "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96}})";
    model::Images images = sized(1024, 768);
    if (frames > 0) images.frames = frames;
    return intern_tokens(config, images);
  };
  EXPECT_EQ(told("video_llava", 224), ": 256 of its tokens");
  EXPECT_EQ(told("video_llava", 224, 8), ": 2,056 of its tokens") << "with each frame's own token";
  EXPECT_EQ(told("llava_next_video", 336, 8), ": 1,152 of its tokens") << "frames are pooled";
  EXPECT_EQ(told("aya_vision", 364), ": 2,197 of its tokens") << "4 x 3 tiles and the whole";
}

TEST(VisionLanguage, ManyLayersOfATowerAreReadSideBySide) {
  const auto with = [](std::string_view layers) {
    return read(R"({"model_type": "llava_next", "vision_config": {"hidden_size": 32, "intermediate_size": 48,
      "num_hidden_layers": 4, "num_attention_heads": 2, "image_size": 56, "patch_size": 14}, "text_config": {
      "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2,
      "head_dim": 16, "intermediate_size": 96}, "vision_feature_layer": )" +
                std::string(layers) + "}");
  };
  const auto one = with("-1");
  const auto three = with("[-1, -2, 0]");
  ASSERT_TRUE(succeeds(one) && succeeds(three));
  EXPECT_EQ(three->parameters() - one->parameters(), 2 * 32 * 64) << "the projector is wider";
  EXPECT_TRUE(fails(with("[-9]"), ErrorCode::malformed_input, 0, "names no layer"));
}

TEST(VisionLanguage, SiglipOnImagesOfAnySize) {
  const auto told = [](std::string_view type, std::int64_t width, std::int64_t height) {
    const std::string config =
        R"({"model_type": ")" + std::string(type) + R"(", "insert_layer_id": 0, "vision_config": {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 14},
        "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "intermediate_size": 96, "vocab_size": 100}})";
    return intern_tokens(config, sized(width, height));
  };
  EXPECT_EQ(told("paddleocr_vl", 1024, 768), ": 999 of its tokens");
  EXPECT_EQ(told("paddleocr_vl", 100, 100), ": 196 of its tokens") << "grown to the least";
  EXPECT_EQ(told("minicpmv4_6", 1024, 768), ": 315 of its tokens") << "2 x 2 slices and the whole, 63 each";
  EXPECT_EQ(told("minicpmv4_6", 448, 448), ": 64 of its tokens");
}

// LFM2-VL.

TEST(VisionLanguage, Lfm2CutsPicturesThatAreTooLarge) {
  const std::string config = R"({"model_type": "lfm2_vl", "projector_hidden_size": 24, "projector_use_layernorm": false,
    "text_config": {"model_type": "lfm2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "block_ff_dim": 96, "block_auto_adjust_ff_dim": false, "vocab_size": 100,
    "layer_types": ["conv", "full_attention"]}, "vision_config": {"model_type": "siglip2_vision_model",
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "vision_use_head": false}})";
  // A token is 32 pixels a side: 256 x 128 pixels are too few and grow to 384 x 192, 12 x 6 tokens.
  EXPECT_EQ(intern_tokens(config, sized(256, 128)), ": 72 of its tokens");
  EXPECT_EQ(intern_tokens(config, sized(512, 512)), ": 256 of its tokens");
  EXPECT_EQ(intern_tokens(config, sized(640, 512)), ": 238 of its tokens") << "a little too large: made smaller";
  EXPECT_EQ(intern_tokens(config, sized(641, 641)), ": 256 of its tokens") << "of squares no row is lost to rounding";
  // 2 x 3 tiles of 256 tokens, and the whole at 608 x 416 pixels: 19 x 13.
  EXPECT_EQ(intern_tokens(config, sized(1200, 800)), ": 1,783 of its tokens");
  const auto graph = read(config);
  ASSERT_TRUE(succeeds(graph));
  for (const char* path : {"model.vision_tower.vision_model.encoder.layers.1.self_attn.out_proj",
                           "model.multi_modal_projector.linear_2", "model.language_model.layers.0.conv.in_proj"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
  EXPECT_FALSE(has(*graph, "model.multi_modal_projector.layer_norm"));
  std::string other = config;
  other.insert(1, R"("vision_feature_layer": -2, )");
  EXPECT_TRUE(fails(read(other), ErrorCode::malformed_input, 0, "last layer"));
}

// Gemma 4 12B.

TEST(VisionLanguage, Gemma4UnifiedEmbedsPatchesWithoutATower) {
  const std::string config = R"({"model_type": "gemma4_unified", "text_config": {"model_type": "gemma4_unified_text",
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "global_head_dim": 32, "intermediate_size": 96, "vocab_size": 100}, "vision_config": {"mm_embed_dim": 32,
    "output_proj_dims": 32, "mm_posemb_size": 20}, "audio_config": {"audio_embed_dim": 10}})";
  const auto graph = read(config);
  ASSERT_TRUE(succeeds(graph));
  for (const char* path :
       {"model.embed_vision.patch_dense", "model.embed_vision.multimodal_embedder.embedding_projection",
        "model.language_model.layers.1.self_attn.o_proj"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
  // Counted from the modules of Gemma4UnifiedForConditionalGeneration: two norms and a linear layer of 6,912 pixels,
  // two tables of positions, a norm, a projection, that of sound; a sliding layer, and a full one with wider heads.
  constexpr std::int64_t kSees = 2 * 6912 + 6912 * 32 + 32 + 2 * 32 + 2 * 20 * 32 + 2 * 32 + 32 * 64;
  constexpr std::int64_t kFed = 3 * 64 * 96 + 4 * 64;
  constexpr std::int64_t kSliding = 2 * 64 * 4 * 16 + 2 * 64 * 2 * 16 + 2 * 16 + kFed;
  constexpr std::int64_t kFull = 2 * 64 * 4 * 32 + 2 * 64 * 2 * 32 + 2 * 32 + kFed;
  EXPECT_EQ(graph->parameters(), kSees + 10 * 64 + 100 * 64 + 64 + kSliding + kFull);
  const auto tokens = [&](std::int64_t width, std::int64_t height) {
    const auto seen = read(config, sized(width, height));
    return seen && !seen->remarks().empty() ? seen->remarks()[0] : std::string();
  };
  EXPECT_NE(tokens(1024, 768).find(": 266 of its tokens"), std::string::npos) << "19 x 14 of 48 pixels";
  EXPECT_NE(tokens(48000, 48).find(": 280 of its tokens"), std::string::npos) << "one row, cut off";
}

TEST(VisionLanguage, Gemma4sTextHasTheValuesOfItsClass) {
  // Gemma4TextConfig: a full layer behind five others and at the end, heads of 512 there, a second embedding of 256.
  const auto graph = read(R"({"model_type": "gemma4_text", "architectures": ["Gemma4ForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "vocab_size": 100})");
  ASSERT_TRUE(succeeds(graph));
  constexpr std::int64_t kSecond = 262144 * 2 * 256 + 64 * 2 * 256 + 256;
  constexpr std::int64_t kEach = 3 * 64 * 96 + 4 * 64 + 2 * 64 * 256 + 64;
  constexpr std::int64_t kSliding = 2 * 64 * 4 * 256 + 2 * 64 * 2 * 256 + 2 * 256;
  constexpr std::int64_t kFull = 2 * 64 * 4 * 512 + 2 * 64 * 2 * 512 + 2 * 512;
  EXPECT_EQ(graph->parameters(), 100 * 64 + 64 + kSecond + 2 * kEach + kSliding + kFull);
}

/// What a job takes at its peak, allocated.
std::int64_t peak(const TrainingJob& job) {
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(succeeds(answer));
  return answer && answer->allocated ? answer->allocated->count() : 0;
}

TrainingJob job_of(std::string_view config) {
  TrainingJob job(*read(config), 2);
  job.sequence_length = 512;
  job.image = {256, 256};
  return job;
}

TEST(VisionLanguage, ThePeakFollowsTheImages) {
  const TrainingJob one = job_of(small());
  TrainingJob two = one;
  two.images = 2;
  TrainingJob larger = one;
  larger.image = {512, 512};
  TrainingJob none = one;
  none.images = 0;
  none.image = {};
  EXPECT_LT(peak(one), peak(two));
  EXPECT_LT(peak(two), peak(larger)) << "twice the patches";
  EXPECT_LT(peak(none), peak(one));
}

TEST(VisionLanguage, AFrozenTowerKeepsNothing) {
  const TrainingJob all = job_of(small());
  TrainingJob frozen = all;
  frozen.freeze = "model.visual";
  TrainingJob projector = all;
  projector.train = "model.visual.merger";
  EXPECT_LT(peak(frozen), peak(all));
  EXPECT_LT(peak(projector), peak(all));
}

TEST(VisionLanguage, SamplesMustHoldTheirImages) {
  TrainingJob job = job_of(small());
  job.sequence_length = 32;
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(fails(answer, ErrorCode::invalid_argument, 0, "take 64 tokens, and samples have 32"));
}

TEST(VisionLanguage, AJobOfAnotherModelNamesTheOption) {
  TrainingJob job(*read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 96, "vocab_size": 100})"),
                  1);
  job.sequence_length = 16;
  job.frames = 4;
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(fails(answer, ErrorCode::invalid_argument, 0, "leave `frames` out"));
}

TEST(VisionLanguage, ImagesOutOfRangeAreRefused) {
  TrainingJob job = job_of(small());
  job.image = {256};
  EXPECT_TRUE(fails(model::validate(job), ErrorCode::invalid_argument, 0, "width and its height"));
  job.image = {256, 0};
  EXPECT_TRUE(fails(model::validate(job), ErrorCode::invalid_argument, 0, "a side of an image is 0"));
  job.image = {};
  job.images = -1;
  EXPECT_TRUE(fails(model::validate(job), ErrorCode::invalid_argument, 0, "-1 images"));
  job.images = 1;
  job.frames = 0;
  EXPECT_TRUE(fails(model::validate(job), ErrorCode::invalid_argument, 0, "0 frames"));
}

TEST(VisionLanguage, APerceiverMakesAsManyTokensOfAnyImage) {
  for (const Published& model : kPublishedVision) {
    if (model.name != "idefics2-8b") continue;
    const auto large = read(model.config, sized(2000, 1500, 2));
    ASSERT_TRUE(succeeds(large));
    EXPECT_NE(large->remarks().back().find(": 640 of its tokens"), std::string::npos) << "five parts of 64 each";
  }
}

TEST(VisionLanguage, APerceiverHasTheTextModelsWidth) {
  const auto with = [](const std::string& perceiver) {
    return read(R"({"model_type": "idefics2", "vision_config": {"num_hidden_layers": 2}, "text_config": {
        "model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100}, "perceiver_config": )" +
                perceiver + "}");
  };
  const auto said = with(R"({"hidden_size": 64})");
  ASSERT_TRUE(succeeds(said));
  for (const char* perceiver : {"{}", R"({"hidden_size": 128})"}) {
    const auto other = with(perceiver);
    ASSERT_TRUE(succeeds(other)) << perceiver;
    EXPECT_EQ(other->parameters(), said->parameters()) << perceiver;
    EXPECT_EQ(other->remarks().size(), said->remarks().size() + 1) << perceiver << " is not what it has";
  }
}

}  // namespace
}  // namespace gpumem::architectures
