// Autoencoders of videos and images: their parameters, as parts of a pipeline and trained by themselves.
#include "gpumem/architectures/video_autoencoders.hpp"

#include <algorithm>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::architectures {

namespace {

using testing::succeeds;

core::Result<model::ModelGraph> read_autoencoder(std::string_view config, const model::Images& images) {
  return read_config(config, ops::vocabulary(), {}, images);
}

/// Of what is a part of a pipeline alone.
std::int64_t part_parameters(std::string_view config) {
  const auto document = core::JsonDocument::parse(config, kConfigLimits);
  EXPECT_TRUE(succeeds(document));
  const auto count = architectures::parameters_of(document->root(), ops::vocabulary());
  EXPECT_TRUE(succeeds(count));
  return count ? *count : 0;
}

TEST(Autoencoders, OfVideosHaveTheirPublishedParameters) {
  // What a config leaves out is as the class has it: Wan 2.1, Qwen-Image, CogVideoX, HunyuanVideo.
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLWan", "temperal_downsample": [false, true, true]})"),
            126892531);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLQwenImage", "temperal_downsample": [false, true, true]})"),
            126892531);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLCogVideoX"})"), 215583907);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLHunyuanVideo"})"), 246478803);
}

TEST(Autoencoders, OfHunyuanImageAndOfSoundsHaveTheirClassesParameters) {
  EXPECT_EQ(part_parameters(R"({"_class_name": "HYVAE2D", "latent_channels": 64, "ffactor_spatial": 32,
    "block_out_channels": [128, 256, 512, 512, 1024, 1024], "layers_per_block": 2})"),
            405575491);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderOobleck"})"), 156112514);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderOobleck", "downsampling_ratios": [2, 4, 4, 6, 10]})"),
            168695426);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AceStepConditionEncoder"})"), 608369664);
}

TEST(Autoencoders, SayHowManyPassesOverAVideoAreCounted) {
  const auto says_so = [](std::int64_t frames) {
    const auto graph =
        read_autoencoder(R"({"_class_name": "WanTransformer3DModel", "num_attention_heads": 2,
      "attention_head_dim": 64, "ffn_dim": 256, "text_dim": 32, "num_layers": 1, "_parts": {"vae": {
      "_class_name": "AutoencoderKLWan", "temperal_downsample": [false, true, true], "base_dim": 8}}})",
                         {.size = model::PictureSize{64, 64}, .frames = frames, .text_tokens = 8, .parts = "vae"});
    EXPECT_TRUE(succeeds(graph));
    return graph && std::ranges::any_of(graph->remarks(), [&](const std::string& remark) {
             return remark.find("in " + std::to_string(1 + (frames - 1) / 4) + " passes") != std::string::npos;
           });
  };
  EXPECT_TRUE(says_so(81)) << "21 passes";
  EXPECT_FALSE(says_so(9)) << "all three are counted";
}

TEST(Autoencoders, OfVideosAreTrainedByThemselves) {
  for (const char* config : {R"({"_class_name": "AutoencoderKLWan", "base_dim": 8})",
                             R"({"_class_name": "AutoencoderKLQwenImage", "base_dim": 8})",
                             R"({"_class_name": "AutoencoderKLCogVideoX", "block_out_channels": [32, 32, 64, 64]})",
                             R"({"_class_name": "AutoencoderKLCausal3D", "block_out_channels": [32, 32, 64, 64]})",
                             R"({"_class_name": "HYVAE2D", "block_out_channels": [32, 64, 64], "latent_channels": 32,
                                 "ffactor_spatial": 4})"}) {
    const bool images = std::string_view(config).find("HYVAE2D") != std::string_view::npos;
    const auto held = [&](std::int64_t frames) {
      model::Images said{.size = model::PictureSize{64, 64}};
      if (!images) said.frames = frames;
      const auto graph = read_autoencoder(config, said);
      EXPECT_TRUE(succeeds(graph)) << config;
      if (!graph) return std::int64_t{0};
      EXPECT_EQ(graph->unknown_layers(), 0) << config;
      const auto estimate = (*make_estimator("replay"))->estimate(TrainingJob(*graph, 1), *find_profile("a100-80gb"));
      EXPECT_TRUE(succeeds(estimate)) << config;
      return estimate && estimate->allocated ? estimate->allocated->count() : 0;
    };
    const std::int64_t few = held(9);
    EXPECT_GT(few, 0) << config;
    if (images) continue;
    EXPECT_GT(held(25), 2 * few) << config << ": what each part keeps adds up";
  }
}

}  // namespace

}  // namespace gpumem::architectures
