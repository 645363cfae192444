// Models whose image towers are their publishers' own code, and those of 2026 that see images of any size: what their
// processors make of a picture, the names of their modules, and what a step holds of them.
#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/architectures/dots_ocr.hpp"
#include "gpumem/architectures/glm4v.hpp"
#include "gpumem/architectures/muse_glimmer.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr std::string_view kText = R"("hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000)";
constexpr std::string_view kTower = R"("hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
    "num_attention_heads": 2)";

core::Result<model::ModelGraph> seen(std::string_view config, std::int64_t width = 1024, std::int64_t height = 768,
                                     std::int64_t images = 1) {
  return read_config(config, ops::vocabulary(), {},
                     {.size = model::PictureSize{width, height}, .count = images, .frames = {}});
}

std::string tokens(std::string_view config, std::int64_t width, std::int64_t height) {
  const auto graph = seen(config, width, height);
  EXPECT_TRUE(succeeds(graph));
  const std::string told = graph ? std::string(graph->remarks().back()) : std::string();
  return told.substr(std::min(told.rfind(": "), told.size()));
}

bool has(const model::ModelGraph& graph, std::string_view path) {
  return std::ranges::any_of(graph.layers(), [&](const model::Layer& each) { return graph.path(each) == path; });
}

std::int64_t held(const model::ModelGraph& graph) {
  TrainingJob job(graph, 1);
  job.sequence_length = 2048;
  job.precision = model::Precision::bf16;
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(succeeds(estimate));
  return estimate && estimate->allocated ? estimate->allocated->count() : 0;
}

std::string minicpmv(std::string_view more = "", std::string_view type = "minicpmv", std::string_view version = "2.6") {
  return "{\"model_type\": \"" + std::string(type) + "\", \"architectures\": [\"MiniCPMV\"], " + std::string(kText) +
         R"(, "version": )" + std::string(version) + R"(, "vision_config": {)" + std::string(kTower) +
         R"(, "image_size": 980, "patch_size": 14})" + std::string(more) + "}";
}

std::string minicpmv_of(std::string_view version) { return minicpmv("", "minicpmv", version); }

TEST(MiniCpmV, CutsAPictureIntoSlicesThatAreAllPadded) {
  EXPECT_EQ(tokens(minicpmv(), 448, 448), ": 66 of its tokens") << "the whole: 64 queries and two marks";
  EXPECT_EQ(tokens(minicpmv(), 1024, 768), ": 330 of its tokens") << "2 x 2 slices and the whole";
  EXPECT_EQ(tokens(minicpmv(R"(, "slice_config": {"max_slice_nums": 2})"), 1024, 768), ": 198 of its tokens");
  EXPECT_EQ(tokens(minicpmv(R"(, "query_num": 96)"), 448, 448), ": 98 of its tokens");
}

TEST(MiniCpmV, HasTheTextModelOfItsVersion) {
  const auto graph = seen(minicpmv());
  ASSERT_TRUE(succeeds(graph));
  for (const char* path : {"vpm.encoder.layers.2.self_attn.out_proj", "resampler.kv_proj", "resampler.attn.out_proj",
                           "llm.model.layers.1.self_attn.o_proj", "llm.lm_head"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
  // Qwen3 norms its heads, 64 wide here, where Qwen2 has biases: 256 of queries and 128 each of keys and values.
  const auto third = seen(minicpmv(R"(, "head_dim": 64)", "minicpmv", "\"4.5\""));
  ASSERT_TRUE(succeeds(third));
  EXPECT_EQ(third->parameters(), graph->parameters() + 2 * (2 * 64 - 512));
  const auto llama = seen(minicpmv_of("4"));
  ASSERT_TRUE(succeeds(llama));
  EXPECT_EQ(llama->parameters(), graph->parameters() - 2 * 512);
  EXPECT_TRUE(fails(seen(minicpmv_of("2.0")), ErrorCode::malformed_input, 0, "is none of 2.5, 2.6, 4.0 and 4.5"));
}

TEST(MiniCpmV, ItsFirstEditionDropsTheTowersLastLayer) {
  const auto all = seen(minicpmv());
  const auto fewer = seen(minicpmv(R"(, "drop_vision_last_layer": true)"));
  ASSERT_TRUE(succeeds(all) && succeeds(fewer));
  constexpr std::int64_t kBlock = 4 * (64 * 64 + 64) + 2 * 64 * 96 + 64 + 96 + 4 * 64;
  EXPECT_EQ(all->parameters() - fewer->parameters(), kBlock);
}

TEST(MiniCpmV, HoldsATowerForSoundWhereItHears) {
  const auto sees = seen(minicpmv());
  const auto hears = seen(minicpmv(R"(, "audio_config": {"d_model": 8, "encoder_layers": 2, "encoder_ffn_dim": 16,
      "num_mel_bins": 4, "max_source_positions": 10, "encoder_attention_heads": 2, "model_type": "whisper"},
      "tts_config": {}, "init_tts": true)",
                                   "minicpmo"));
  ASSERT_TRUE(succeeds(sees) && succeeds(hears));
  constexpr std::int64_t kBlock = 4 * 8 * 8 + 3 * 8 + 2 * 8 * 16 + 8 + 16 + 4 * 8;
  constexpr std::int64_t kSound = (3 * 4 * 8 + 8) + (3 * 8 * 8 + 8) + 10 * 8 + 2 * kBlock + 2 * 8;
  EXPECT_EQ(hears->parameters() - sees->parameters(), kSound + (8 * 256 + 256) + (256 * 256 + 256));
  EXPECT_EQ(hears->trainable_parameters(), sees->trainable_parameters()) << "what is not called learns nothing";
  const auto deaf = seen(minicpmv(R"(, "init_audio": false)", "minicpmo"));
  ASSERT_TRUE(succeeds(deaf));
  EXPECT_EQ(deaf->parameters(), sees->parameters());
}

/// Scores of each block: of 5 slices, 2 heads and 1,024 patches at most, in bfloat16 and as a softmax in float32.
TEST(MiniCpmV, KeepsTheScoresOfItsTower) {
  const auto one = seen(minicpmv(), 1024, 768, 1);
  const auto two = seen(minicpmv(), 1024, 768, 2);
  ASSERT_TRUE(succeeds(one) && succeeds(two));
  constexpr std::int64_t kScores = 5 * 2 * 1008LL * 1008;
  EXPECT_GT(held(*two) - held(*one), 3 * kScores * 6) << "three blocks keep both";
}

TEST(DotsOcr, ReadsImagesOfAnySize) {
  const std::string config = R"({"model_type": "dots_ocr", "architectures": ["DotsOCRForCausalLM"], )" +
                             std::string(kText) + R"(, "vision_config": {"embed_dim": 64, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 2}})";
  EXPECT_EQ(tokens(config, 1024, 768), ": 1,001 of its tokens") << "27 x 37 and two marks";
  const auto graph = seen(config);
  ASSERT_TRUE(succeeds(graph));
  for (const char* path : {"vision_tower.patch_embed.patchifier.proj", "vision_tower.blocks.1.mlp.fc3",
                           "vision_tower.merger.mlp.2", "model.layers.1.mlp.down_proj", "lm_head"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
  EXPECT_TRUE(fails(seen(config, 10000, 20), ErrorCode::malformed_input, 0, "more than 200 to 1"));
}

TEST(DotsOcr, OvisHandsOutWhatEachBlockLeaves) {
  const auto config = [](int layers) {
    return R"({"model_type": "ovis2_5", "architectures": ["Ovis2_5"], "hidden_size": 256, "visual_vocab_size": 204,
      "llm_config": {"model_type": "qwen3", "head_dim": 64, )" +
           std::string(kText) +
           R"(}, "vit_config": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": )" +
           std::to_string(layers) + R"(, "num_attention_heads": 2, "num_patches": -1}})";
  };
  EXPECT_EQ(tokens(config(2), 1024, 768), ": 770 of its tokens") << "24 x 32 and two marks";
  const auto graph = seen(config(2));
  ASSERT_TRUE(succeeds(graph));
  for (const char* path : {"visual_tokenizer.vit.vision_model.encoder.layers.1.self_attn.q_proj",
                           "visual_tokenizer.head.0", "vte.weight", "llm.model.layers.0.mlp.up_proj", "llm.lm_head"}) {
    EXPECT_TRUE(has(*graph, path)) << path;
  }
}

TEST(HunyuanVl, EndsEachRowWithATokenOfItsOwn) {
  const auto config = [](std::string_view text) {
    return R"({"model_type": "hunyuan_vl", "architectures": ["HunYuanVLForConditionalGeneration"], )" +
           std::string(text) + R"("vision_config": {)" + std::string(kTower) + "}}";
  };
  const std::string flat = config(std::string(kText) + R"(, "attention_head_dim": 64, "num_experts": 1, )");
  EXPECT_EQ(tokens(flat, 1024, 768), ": 794 of its tokens") << "24 rows of 32 and one more, two at the ends";
  EXPECT_EQ(tokens(flat, 100, 100), ": 274 of its tokens") << "grown to 512 x 512";
  const auto graph = seen(flat);
  const auto nested =
      seen(config(R"("text_config": {"model_type": "hunyuan_vl_text", "head_dim": 64, )" + std::string(kText) + "}, "));
  ASSERT_TRUE(succeeds(graph) && succeeds(nested));
  EXPECT_EQ(graph->parameters(), nested->parameters());
  EXPECT_TRUE(has(*graph, "model.visual.patch_merger.proj_conv"));
  EXPECT_TRUE(fails(seen(config(std::string(kText) + R"(, "num_experts": 8, )")), ErrorCode::malformed_input, 0,
                    "is 1 in this model"));
}

TEST(HunyuanVl, GotReadsOneSquareWhateverThePicture) {
  const std::string config = R"({"model_type": "got_ocr2", "text_config": {"model_type": "qwen2", )" +
                             std::string(kText) + R"(}, "vision_config": {"hidden_size": 64, "num_hidden_layers": 3,
      "num_attention_heads": 2, "mlp_dim": 96, "output_channels": 32, "global_attn_indexes": [2]}})";
  EXPECT_EQ(tokens(config, 100, 2000), ": 256 of its tokens");
  const auto graph = seen(config);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(has(*graph, "model.vision_tower.neck.conv2"));
  EXPECT_TRUE(has(*graph, "model.multi_modal_projector.conv_upsampler2"));
}

TEST(MuseGlimmer, KeepsThePicturesShape) {
  const muse_glimmer::Vision vision;
  const auto grid = [&](std::int64_t width, std::int64_t height, std::int64_t most) {
    const TileGrid made = muse_glimmer::merged_grid(vision, {width, height}, most);
    return std::pair(made.rows, made.columns);
  };
  EXPECT_EQ(grid(1024, 768, 4096), std::pair(std::int64_t{27}, std::int64_t{36}));
  EXPECT_EQ(grid(280, 280, 4096), std::pair(std::int64_t{10}, std::int64_t{10}));
  EXPECT_EQ(grid(4000, 4000, 144), std::pair(std::int64_t{12}, std::int64_t{12})) << "no more than so many tokens";
  EXPECT_EQ(grid(20, 20, 4096), std::pair(std::int64_t{1}, std::int64_t{1}));
}

TEST(MuseGlimmer, IsItsTextModelWithATower) {
  const std::string fields = std::string(kText) + R"(, "head_dim": 64, "tie_word_embeddings": false)";
  const auto text = read_config(R"({"model_type": "muse_glimmer_text", )" + fields + "}", ops::vocabulary());
  const auto whole = seen(R"({"model_type": "muse_glimmer", "out_hidden_size": 256, "projector_hidden_size": 48,
      "text_config": {"model_type": "muse_glimmer_text", )" +
                          fields + R"(}, "vision_config": {)" + std::string(kTower) + "}}");
  ASSERT_TRUE(succeeds(text) && succeeds(whole));
  // A gate beside the heads of each layer, four norms, and no norm of embeddings or heads has weights.
  constexpr std::int64_t kLayer = 3 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 384 + 4 * 256;
  EXPECT_EQ(text->parameters(), 2 * 1000 * 256 + 2 * kLayer + 256);
  constexpr std::int64_t kBlock = 4 * (64 * 64 + 64) + 2 * 64 * 96 + 64 + 96 + 4 * 64;
  constexpr std::int64_t kEmbeds = 2 * 3 * 14 * 14 * 64 + 32 * 32 * 64 + 4 * 64;
  EXPECT_EQ(whole->parameters() - text->parameters(), 3 * kBlock + kEmbeds + 256 * 48 + 48 * 48 + 48 * 256);
  EXPECT_TRUE(fails(seen(R"({"model_type": "muse_glimmer", "out_hidden_size": 100, "text_config": {)" + fields +
                         R"(}, "vision_config": {)" + std::string(kTower) + "}}"),
                    ErrorCode::malformed_input, 0, "is not what merged patches have"));
}

TEST(MuseGlimmer, TurnsAllLayersButEveryFourthFromTheLast) {
  const auto parsed = core::JsonDocument::parse(R"({"model_type": "muse_glimmer_text", "num_hidden_layers": 6,
      "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100})");
  ASSERT_TRUE(succeeds(parsed));
  ConfigFields fields(parsed->root());
  EXPECT_EQ(muse_glimmer::read(fields).turns, (std::vector<bool>{true, false, true, true, true, false}));
}

std::string molmo(std::string_view text = "", std::string_view adapter = "") {
  return R"({"model_type": "molmo2", "architectures": ["Molmo2ForConditionalGeneration"], "text_config": {
      "model_type": "molmo2_text", "head_dim": 64, "additional_vocab_size": 8, "qk_norm_type": "qwen3", )" +
         std::string(kText) + std::string(text) + R"(}, "vit_config": {"hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 6, "num_attention_heads": 2}, "adapter_config": {"hidden_size": 64, "intermediate_size": 48,
      "num_attention_heads": 2, "vit_layers": [-2, -4])" +
         std::string(adapter) + "}}";
}

TEST(Molmo2, PoolsSquaresOfOverlappingCrops) {
  EXPECT_EQ(tokens(molmo(), 378, 378), ": 424 of its tokens") << "one crop, and the whole: 2 x (14 x 15) and its marks";
  EXPECT_EQ(tokens(molmo(), 1024, 768), ": 996 of its tokens") << "2 x 3 crops: 23 rows of 33 and their ends";
}

TEST(Molmo2, BuildsTheLayersThatAreRead) {
  const auto graph = seen(molmo());
  ASSERT_TRUE(succeeds(graph));
  const auto path = [](int layer) {
    return "model.vision_backbone.image_vit.transformer.resblocks." + std::to_string(layer) + ".attention.wq";
  };
  EXPECT_TRUE(has(*graph, path(4)));
  EXPECT_FALSE(has(*graph, path(5))) << "nothing reads it";
  EXPECT_TRUE(has(*graph, "model.transformer.blocks.1.self_attn.att_proj"));
  constexpr std::int64_t kBlock = 4 * (64 * 64 + 64) + 2 * 64 * 96 + 64 + 96 + 4 * 64;
  constexpr std::int64_t kTowers = 5 * kBlock + 3 * 14 * 14 * 64 + 64 + 729 * 64;
  constexpr std::int64_t kPool = 3 * (128 * 64 + 64) + 64 * 64 + 64 + 2 * 64 * 48 + 48 * 256;
  constexpr std::int64_t kLayer = 2 * 256 * 256 + 2 * 256 * 128 + 2 * 64 + 3 * 256 * 384 + 2 * 256;
  EXPECT_EQ(graph->parameters(), kTowers + kPool + 1008 * 256 + 1000 * 256 + 2 * kLayer + 256);
  EXPECT_TRUE(fails(seen(R"({"model_type": "molmo2", "vit_config": {"image_num_pos": 100}, "text_config": {
      "model_type": "molmo2_text", )" +
                         std::string(kText) + "}}"),
                    ErrorCode::malformed_input, 0, "is not as many as an image has patches"));
}

}  // namespace
}  // namespace gpumem::architectures
