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

TEST(Parts, AreKnownOfEachFamily) {
  const auto parts = [](const std::string& fields) {
    model::Images said{.parts = "all"};
    if (fields.find("AceStep") == std::string::npos) said.size = model::PictureSize{64, 64};
    const auto graph = read_autoencoder(R"({"_class_name": )" + fields + "}", said);
    EXPECT_TRUE(succeeds(graph)) << fields;
    std::string told;
    if (!graph) return told;
    for (const std::string& remark : graph->remarks()) {
      if (remark.find("other parts are taken") != std::string::npos) told = remark;
    }
    return told;
  };
  struct Family {
    std::string_view fields;
    std::string_view part;
  };
  constexpr Family kFamilies[] = {
      {R"("LTXVideoTransformer3DModel", "num_layers": 1)", "vae (AutoencoderKLLTXVideo), text_encoder (T5-XXL)"},
      {R"("LTXVideoTransformer3DModel", "num_layers": 1, "attention_head_dim": 128, "cross_attention_dim": 4096)",
       "AutoencoderKLLTXVideo 0.9.7"},
      {R"("LTX2VideoTransformer3DModel", "num_layers": 1)", "audio_vae (AutoencoderKLLTX2Audio)"},
      {R"("MochiTransformer3DModel", "num_layers": 1)", "vae (AutoencoderKLMochi), text_encoder (T5-XXL)"},
      {R"("Kandinsky5Transformer3DModel", "num_visual_blocks": 1)", "text_encoder (Qwen2.5-VL-7B)"},
      {R"("ErnieImageTransformer2DModel", "num_layers": 1)", "text_encoder (Ministral-3-3B)"},
      {R"("HunyuanVideo15Transformer3DModel", "num_layers": 1)", "text_encoder_2 (ByT5-small)"},
      {R"("HunyuanImageTransformer2DModel", "num_layers": 1)", "vae (AutoencoderKLHunyuanImage)"},
      {R"("Ideogram4Transformer2DModel", "num_layers": 1)", "text_encoder (Qwen3-VL-8B)"},
      {R"("Krea2Transformer2DModel", "num_layers": 1)", "text_encoder (Qwen3-VL-4B)"},
      {R"("CogView4Transformer2DModel", "num_layers": 1)", "text_encoder (GLM-4-9B without its head)"},
      {R"("AceStepTransformer1DModel", "num_hidden_layers": 1)", "condition_encoder (AceStepConditionEncoder)"},
      {R"("SkyReelsV2Transformer3DModel", "num_layers": 1)", "text_encoder (UMT5-XXL)"}};
  for (const Family& family : kFamilies) {
    EXPECT_NE(parts(std::string(family.fields)).find(family.part), std::string::npos) << family.fields;
  }
}

TEST(Parts, MayBeImageTowersAlone) {
  // The image encoders of Wan 2.1's image to video and of FramePack.
  EXPECT_EQ(part_parameters(R"({"model_type": "clip_vision_model", "architectures": ["CLIPVisionModel"],
    "hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 16, "num_hidden_layers": 32,
    "patch_size": 14, "projection_dim": 1024, "hidden_act": "gelu"})"),
            630766080);
  EXPECT_EQ(part_parameters(R"({"model_type": "siglip_vision_model", "architectures": ["SiglipVisionModel"],
    "hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
    "patch_size": 14, "image_size": 384})"),
            428225600);
}

TEST(Autoencoders, OfDeepLevelsHaveTheirClassesParameters) {
  // DC-AE as Sana has it, and as it cuts sides by 64; HunyuanVideo 1.5's; LTX-Video's releases and LTX-2's; Mochi's.
  constexpr std::string_view kThree = R"(["ResBlock", "ResBlock", "ResBlock", "EfficientViTBlock", "EfficientViTBlock",
    "EfficientViTBlock"])";
  constexpr std::string_view kFour = R"(["ResBlock", "ResBlock", "ResBlock", "EfficientViTBlock", "EfficientViTBlock",
    "EfficientViTBlock", "EfficientViTBlock"])";
  constexpr std::string_view kWidths = "[128, 256, 512, 512, 1024, 1024, 2048]";
  constexpr std::string_view kNone = "[[], [], [], [], [], [], []]";
  const auto both = [](std::string_view field, std::string_view value) {
    std::string text;
    for (const char* half : {"encoder", "decoder"}) {
      text.append(", \"").append(half).append(field).append("\": ").append(value);
    }
    return text;
  };
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderDC", "upsample_block_type": "interpolate",
    "downsample_block_type": "Conv")" +
                            both("_block_types", kThree) + "}"),
            312250275);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderDC", "latent_channels": 128,
    "encoder_layers_per_block": [0, 4, 8, 2, 2, 2, 2], "decoder_layers_per_block": [0, 5, 10, 2, 2, 2, 2])" +
                            both("_block_types", kFour) + both("_block_out_channels", kWidths) +
                            both("_qkv_multiscales", kNone) + "}"),
            676896140);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLHunyuanVideo15"})"), 1260634115);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLLTXVideo"})"), 419193649);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLLTXVideo", "decoder_block_out_channels": [256, 512, 1024],
    "decoder_layers_per_block": [5, 6, 7, 8], "decoder_spatio_temporal_scaling": [true, true, true],
    "decoder_inject_noise": [true, true, true, false], "upsample_residual": [true, true, true],
    "upsample_factor": [2, 2, 2], "timestep_conditioning": true})"),
            934976434);
  EXPECT_EQ(
      part_parameters(R"({"_class_name": "AutoencoderKLLTXVideo", "block_out_channels": [128, 256, 512, 1024, 2048],
    "down_block_types": ["LTXVideo095DownBlock3D", "LTXVideo095DownBlock3D", "LTXVideo095DownBlock3D",
    "LTXVideo095DownBlock3D"], "layers_per_block": [4, 6, 6, 2, 2], "spatio_temporal_scaling": [true, true, true, true],
    "downsample_type": ["spatial", "temporal", "spatiotemporal", "spatiotemporal"],
    "decoder_block_out_channels": [256, 512, 1024], "decoder_layers_per_block": [5, 5, 5, 5],
    "decoder_spatio_temporal_scaling": [true, true, true], "decoder_inject_noise": [false, false, false, false],
    "upsample_residual": [true, true, true], "upsample_factor": [2, 2, 2], "timestep_conditioning": true})"),
      1246913522);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLLTX2Video"})"), 1222479601);
  EXPECT_EQ(part_parameters(R"({"_class_name": "AutoencoderKLMochi"})"), 459748611);
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
                                 "ffactor_spatial": 4})",
                             R"({"_class_name": "AutoencoderDC", "encoder_block_out_channels": [32, 64, 64, 64],
                                 "decoder_block_out_channels": [32, 64, 64, 64], "encoder_layers_per_block": [1, 1, 1, 1],
                                 "decoder_layers_per_block": [1, 1, 1, 1], "encoder_block_types":
                                 ["ResBlock", "ResBlock", "ResBlock", "EfficientViTBlock"]})",
                             R"({"_class_name": "AutoencoderKLHunyuanVideo15", "latent_channels": 8,
                                 "block_out_channels": [32, 64, 64, 64, 64]})",
                             R"({"_class_name": "AutoencoderKLLTXVideo", "block_out_channels": [32, 32, 64, 64],
                                 "decoder_block_out_channels": [32, 32, 64, 64]})",
                             R"({"_class_name": "AutoencoderKLMochi", "encoder_block_out_channels": [32, 32, 64, 64],
                                 "decoder_block_out_channels": [32, 32, 64, 64]})"}) {
    const bool images = std::string_view(config).find("HYVAE2D") != std::string_view::npos ||
                        std::string_view(config).find("AutoencoderDC") != std::string_view::npos;
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
    const bool small = std::string_view(config).find("LTXVideo") != std::string_view::npos;
    EXPECT_GT(held(25), (small ? 1 : 2) * few) << config << ": what each part keeps adds up";
  }
}

}  // namespace

}  // namespace gpumem::architectures
