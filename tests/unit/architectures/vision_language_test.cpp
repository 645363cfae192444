#include "gpumem/architectures/vision_language.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
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
    const bool mixes = model.config.find("num_experts") != std::string_view::npos;
    EXPECT_EQ(graph->warnings().size(), mixes ? 2U : 1U) << model.name << ": the routing depends on the data";
    EXPECT_EQ(graph->remarks().size(), 1U) << model.name << " says what its samples bring";
    EXPECT_EQ(graph->config(), model.config);
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

/// `type` with the fields of its parts, and a tower for sound where it has one.
std::string omni(const std::string& type, const std::string& text, std::string_view sound, bool third) {
  const std::string experts = R"(, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2)";
  return R"({"model_type": ")" + type + R"(", "text_config": {"model_type": ")" + text +
         R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 96, "vocab_size": 100, "tie_word_embeddings": false)" +
         (third ? experts : "") + R"(}, "vision_config": {"depth": 2,
         "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64)" +
         (third ? R"(, "num_position_embeddings": 16, "deepstack_visual_indexes": [0])" : "") + "}" +
         std::string(sound) + "}";
}

TEST(VisionLanguage, AnOmniModelIsItsThinkerWhichHearsToo) {
  constexpr std::string_view kSound = R"(, "audio_config": {"d_model": 8, "encoder_ffn_dim": 16, "encoder_layers": 2,
    "num_mel_bins": 10, "output_dim": 64, "downsample_hidden_size": 4})";
  // Counted from the modules of Qwen2_5OmniAudioEncoder and Qwen3OmniMoeAudioEncoder.
  constexpr std::int64_t kSecondSound = 2352;
  constexpr std::int64_t kThirdSound = 2264;
  const auto second = read(omni("qwen2_5_omni_thinker", "qwen2_5_omni_text", kSound, false));
  const auto third = read(omni("qwen3_omni_moe_thinker", "qwen3_omni_moe_text", kSound, true));
  const auto sees_second = read(omni("qwen2_5_vl", "qwen2_5_vl_text", "", false));
  const auto sees_third = read(omni("qwen3_vl_moe", "qwen3_vl_moe_text", "", true));
  ASSERT_TRUE(succeeds(second) && succeeds(third) && succeeds(sees_second) && succeeds(sees_third));
  EXPECT_EQ(second->parameters(), sees_second->parameters() + kSecondSound);
  EXPECT_EQ(third->parameters(), sees_third->parameters() + kThirdSound);
  EXPECT_EQ(second->parameters() - second->trainable_parameters(), kSecondSound) << "what is not called learns nothing";
  for (const char* path : {"visual.blocks.1.attn.q", "visual.merger.mlp.2", "model.layers.1.mlp.up_proj", "lm_head"}) {
    EXPECT_TRUE(has(*second, path)) << path;
  }
  const std::string inner = omni("qwen2_5_omni_thinker", "qwen2_5_omni_text", kSound, false);
  const auto whole =
      read(R"({"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"], "thinker_config": )" + inner +
           R"(, "talker_config": {"hidden_size": 32}, "token2wav_config": {"dit_config": {}}})");
  ASSERT_TRUE(succeeds(whole));
  EXPECT_EQ(whole->parameters(), second->parameters());
  EXPECT_TRUE(has(*whole, "lm_head"));
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
  const auto missing = read(small(R"("text_config": {"model_type": "opt", "hidden_size": 64})"));
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

}  // namespace
}  // namespace gpumem::architectures
