#include "gpumem/architectures/denoiser.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "own_path.hpp"

namespace gpumem::architectures {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// A UNet of two levels, and as much of the fields as it needs.
constexpr std::string_view kSmallUnet = R"({"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64],
  "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
  "layers_per_block": 1, "attention_head_dim": 4, "cross_attention_dim": 48, "sample_size": 64})";
/// A UNet of pixels, which reads no text.
constexpr std::string_view kPixelUnet = R"({"_class_name": "UNet2DModel", "block_out_channels": [32, 64],
  "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
  "layers_per_block": 1, "sample_size": 32})";
/// Two blocks of each kind, distilled.
constexpr std::string_view kSmallFlux = R"({"_class_name": "FluxTransformer2DModel", "num_layers": 2,
  "num_single_layers": 2, "num_attention_heads": 2, "attention_head_dim": 16, "axes_dims_rope": [4, 6, 6],
  "joint_attention_dim": 32, "pooled_projection_dim": 24, "guidance_embeds": true})";
constexpr std::string_view kSmallAutoencoder = R"({"_class_name": "AutoencoderKL", "block_out_channels": [32, 64],
  "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
  "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"], "layers_per_block": 1, "sample_size": 512})";
constexpr std::string_view kLevels = R"("down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D",
  "DownEncoderBlock2D", "DownEncoderBlock2D"], "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D",
  "UpDecoderBlock2D", "UpDecoderBlock2D"], "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2)";

core::Result<model::ModelGraph> read(std::string_view config, const model::Images& images = {}) {
  return read_config(config, ops::vocabulary(), {}, images);
}

std::int64_t parameters(std::string_view config) {
  const auto graph = read(config);
  EXPECT_TRUE(succeeds(graph));
  return graph ? graph->parameters() : 0;
}

TEST(Denoisers, OfPixelsReadNoText) {
  const auto graph = read(kPixelUnet);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->architecture(), "unet_2d");
  const auto smaller = read(kPixelUnet, {.size = model::PictureSize{17, 16}});
  ASSERT_TRUE(succeeds(smaller));
  EXPECT_EQ(smaller->parameters(), graph->parameters());
  const std::string fields(kPixelUnet.substr(0, kPixelUnet.size() - 1));
  for (const std::string_view variant :
       {R"("class_embed_type": "timestep")", R"("num_class_embeds": 10)", R"("resnet_time_scale_shift": "scale_shift")",
        R"("downsample_type": "resnet")", R"("attention_head_dim": 7)", R"("time_embedding_type": "fourier")"}) {
    EXPECT_FALSE(read(fields + ", " + std::string(variant) + "}")) << variant;
  }
}

TEST(Denoisers, HaveTheirPublishedParameters) {
  // Stable Diffusion 1.5 and XL; what a config leaves out is as the class has it.
  EXPECT_EQ(parameters(R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": 768})"), 859520964);
  EXPECT_EQ(parameters(R"({"_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time",
    "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], "use_linear_projection": true,
    "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10]})"),
            2567463684);
  // DDPM: google/ddpm-cifar10-32, and what train_unconditional.py builds, which is google/ddpm-celebahq-256 as well.
  EXPECT_EQ(parameters(R"({"_class_name": "UNet2DModel", "block_out_channels": [128, 256, 256, 256],
    "down_block_types": ["DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"], "attention_head_dim": null,
    "up_block_types": ["UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"]})"),
            35746307);
  EXPECT_EQ(parameters(R"({"_class_name": "UNet2DModel", "block_out_channels": [128, 128, 256, 256, 512, 512],
    "down_block_types": ["DownBlock2D", "DownBlock2D", "DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D", "UpBlock2D", "UpBlock2D"]})"),
            113673219);
  // The autoencoders of Stable Diffusion and of FLUX.1.
  const std::string rest = std::string(kLevels) + "}";
  EXPECT_EQ(parameters(R"({"_class_name": "AutoencoderKL", "latent_channels": 4, )" + rest), 83653863);
  EXPECT_EQ(parameters(R"({"_class_name": "AutoencoderKL", "latent_channels": 16, "use_quant_conv": false,
    "use_post_quant_conv": false, )" +
                       rest),
            83819683);
}

constexpr std::string_view kControlNet = R"({"_class_name": "ControlNetModel", "cross_attention_dim": 768})";
constexpr std::string_view kControlNetXl = R"({"_class_name": "ControlNetModel", "addition_embed_type": "text_time",
  "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
  "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"], "use_linear_projection": true,
  "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10]})";
constexpr std::string_view kControlNetSd3 = R"({"_class_name": "SD3ControlNetModel", "num_layers": 12,
  "num_attention_heads": 24, "caption_projection_dim": 1536, "pos_embed_max_size": 192})";
constexpr std::string_view kControlNetFlux = R"({"_class_name": "FluxControlNetModel", "num_layers": 4,
  "num_single_layers": 0, "guidance_embeds": true})";

std::int64_t trained_parameters(std::string_view config) {
  const auto graph = read(config);
  EXPECT_TRUE(succeeds(graph));
  std::int64_t count = 0;
  if (!graph) return count;
  for (const model::Layer& layer : graph->layers()) count += layer.frozen ? 0 : layer.parameters;
  return count;
}

TEST(ControlNets, AreTrainedWithAFrozenModel) {
  // As diffusers counts them, each with the model that it is made for.
  EXPECT_EQ(trained_parameters(kControlNet), 361279120);
  EXPECT_EQ(parameters(kControlNet), 361279120 + 859520964);
  EXPECT_EQ(trained_parameters(kControlNetXl), 1251014160);
  EXPECT_EQ(parameters(kControlNetXl), 1251014160 + 2567463684);
  EXPECT_EQ(trained_parameters(kControlNetFlux), 1442333696);
  EXPECT_EQ(parameters(kControlNetFlux), 1442333696 + 11901408320);
  EXPECT_EQ(trained_parameters(kControlNetSd3), 1062855168);
  EXPECT_EQ(parameters(kControlNetSd3), 1062855168LL + 2028328000);
}

TEST(ControlNets, HoldTheFrozenModelInTheTypeThatIsGiven) {
  job::JobRequest request;
  request.summary = GPUMEM_SOURCE_DIR "/examples/configs/controlnet/config.json";
  request.training.batch_size = 1;
  request.training.precision = model::Precision::amp_bf16;
  // The examples cast it to autocast's type.
  for (const auto& [type, each] : {std::pair(model::BaseType::precision, 2.0), std::pair(model::BaseType::bf16, 2.0),
                                   std::pair(model::BaseType::fp32, 4.0)}) {
    request.training.base_dtype = type;
    const auto estimate = session::process_session().estimate(request);
    ASSERT_TRUE(succeeds(estimate));
    const double bytes = 4.0 * 361279120 + each * 859520964;
    EXPECT_NEAR(static_cast<double>(estimate->breakdown.parameters.count()) / bytes, 1.0, 0.01);
  }
}

TEST(ControlNets, AreCheckpointedAsTheirExamplesDo) {
  const auto small = read(kControlNet);
  const auto large = read(kControlNetXl);
  ASSERT_TRUE(succeeds(small));
  ASSERT_TRUE(succeeds(large));
  // Of 1.5 its own residual blocks and transformers: 8 + 2 and 6 + 1. Of XL those of the UNet too.
  EXPECT_EQ(connect::repeated_blocks(*small).size(), 10U + 7U);
  EXPECT_EQ(connect::repeated_blocks(*large).size(), (6U + 2U + 2 * 2U + 2 * 10U + 10U) + (17U + 70U));
}

TEST(ControlNets, AreRefusedWhereTheyDiffer) {
  for (const char* config : {R"({"_class_name": "ControlNetModel", "global_pool_conditions": true})",
                             R"({"_class_name": "ControlNetModel", "conditioning_embedding_out_channels": []})",
                             R"({"_class_name": "ControlNetModel", "conditioning_embedding_out_channels": [16, 32]})",
                             R"({"_class_name": "FluxControlNetModel", "num_mode": 10})",
                             R"({"_class_name": "SD3ControlNetModel", "use_pos_embed": false})",
                             R"({"_class_name": "FluxControlNetModel", "conditioning_embedding_channels": 16})"}) {
    EXPECT_TRUE(fails(read(config), core::ErrorCode::malformed_input, 0, "")) << config;
  }
  const auto hinted = read(R"({"_class_name": "FluxControlNetModel", "conditioning_embedding_channels": 16})");
  ASSERT_FALSE(hinted);
  EXPECT_NE(core::to_string(hinted.error()).find("conditioning_embedding_channels"), std::string::npos);
  EXPECT_TRUE(fails(read(R"({"_class_name": "ControlNetModel", "cross_attention_dim": 768,
                             "_guided": {"_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024}})"),
                    core::ErrorCode::malformed_input, 0, "other widths"));
}

TEST(Denoisers, MakeSoundsOfSoManySeconds) {
  const auto graph = read(R"({"_class_name": "AceStepTransformer1DModel", "num_hidden_layers": 2})", {.seconds = 7});
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(core::to_string(graph->graph_inputs()[2].shape), "[N, 175, 128]") << "25 latents a second";
  EXPECT_TRUE(fails(read(kSmallUnet, {.seconds = 7}), core::ErrorCode::invalid_argument, 0, "makes no sounds"));
}

TEST(Denoisers, HoldTheirFamilysPublishedParts) {
  const auto counted = [](const std::string& config, const std::string& parts) {
    const auto graph = read(config, {.size = model::PictureSize{64, 64}, .text_tokens = 8, .parts = parts});
    EXPECT_TRUE(succeeds(graph)) << parts;
    return graph ? graph->parameters() : 0;
  };
  const std::string wan = R"({"_class_name": "WanTransformer3DModel", "num_attention_heads": 2,
      "attention_head_dim": 64, "ffn_dim": 256, "text_dim": 32, "num_layers": 1})";
  constexpr std::int64_t kUmt5 = 5'680'910'336;
  const std::string read_so = with_usual_parts(wan);
  EXPECT_TRUE(tells_parts(read_so));
  EXPECT_EQ(with_usual_parts(read_so), read_so);
  const std::int64_t alone = counted(wan, "none");
  EXPECT_EQ(counted(wan, "text_encoder*") - alone, kUmt5);
  EXPECT_EQ(counted(wan, "all") - alone, kUmt5 + 126'892'531);
  EXPECT_EQ(counted(wan, "text_encoder:int8") - alone, kUmt5 / 2) << "in units of two bytes";
  const std::string flux = R"({"_class_name": "Flux2Transformer2DModel", "joint_attention_dim": 7680, "num_layers": 1,
      "num_single_layers": 1, "num_attention_heads": 4})";
  EXPECT_EQ(counted(flux, "text_encoder") - counted(flux, "none"), 4'022'468'096) << "Qwen3-4B";
  const auto none = read(R"({"_class_name": "KreaTransformer"})", {.parts = "all"});
  EXPECT_FALSE(none);
  EXPECT_TRUE(fails(read(R"({"_class_name": "ZlabI1Transformer2DModel", "num_layers": 1})", {.parts = "all"}),
                    ErrorCode::invalid_argument, 0, "are not known"));
}

TEST(Denoisers, SayOneFrameOfAVideoOfOne) {
  job::JobRequest request;
  request.training.frames = 1;
  EXPECT_EQ(job::remark_on(*job::find_option("frames"), request), "videos of 1 frame");
  request.training.frames = 16;
  EXPECT_EQ(job::remark_on(*job::find_option("frames"), request), "videos of 16 frames");
  const auto graph = read(R"({"_class_name": "MochiTransformer3DModel", "num_layers": 1})", {.frames = 1});
  ASSERT_TRUE(succeeds(graph));
  EXPECT_NE(graph->remarks().front().find("a video of 1 frame of "), std::string::npos) << graph->remarks().front();
}

TEST(Denoisers, TakeNoWordThatTheyDoNotKnow) {
  for (const char* config :
       {R"({"_class_name": "UNet2DConditionModel", "mid_block_type": "nonsense"})",
        R"({"_class_name": "CosmosTransformer3DModel", "extra_pos_embed_type": "nonsense"})",
        R"({"_class_name": "SD3Transformer2DModel", "dual_attention_layers": "0-12"})",
        R"({"_class_name": "HiDreamImageTransformer2DModel", "num_layers": 512, "num_routed_experts": 256})"}) {
    EXPECT_TRUE(fails(read(config), core::ErrorCode::malformed_input, 0, "")) << config;
  }
  const auto whole = read(R"({"_class_name": "UNet2DConditionModel"})");
  const auto halves = read(R"({"_class_name": "UNet2DConditionModel", "mid_block_type": null})");
  ASSERT_TRUE(succeeds(whole));
  ASSERT_TRUE(succeeds(halves));
  EXPECT_LT(halves->parameters(), whole->parameters());
}

TEST(Denoisers, ReadTheJobsSamples) {
  const auto graph = read(kSmallUnet, {.size = model::PictureSize{640, 384}, .text_tokens = 20});
  ASSERT_TRUE(succeeds(graph));
  const auto inputs = graph->graph_inputs();
  EXPECT_EQ(core::to_string(inputs[0].shape), "[N, 4, 48, 80]") << "eight pixels a side make one of latents";
  bool prompt = false;
  for (const model::GraphInput& input : inputs) prompt = prompt || core::to_string(input.shape) == "[N, 20, 48]";
  EXPECT_TRUE(prompt);
  EXPECT_EQ(graph->remarks()[0], "each sample is an image of 640 x 384 pixels, with 20 tokens of text");
}

TEST(Denoisers, RefuseWhatTheyDoNotMake) {
  EXPECT_TRUE(fails(read(kSmallUnet, {.frames = 16}), ErrorCode::malformed_input, 0, "leave `frames` out"));
  EXPECT_TRUE(fails(read(kSmallUnet, {.count = 2}), ErrorCode::malformed_input, 0, "leave `images` out"));
  const auto variant = read(R"({"_class_name": "UNet2DConditionModel", "class_embed_type": "timestep"})");
  ASSERT_TRUE(fails(variant, ErrorCode::malformed_input, 0, "is a variant that is not known"));
  EXPECT_EQ(variant.error().place.element, "/class_embed_type");
  const auto unknown = read(R"({"_class_name": "SomeTransformer2DModel", "num_layers": 4})");
  EXPECT_TRUE(fails(unknown, ErrorCode::missing_information, 0, "'SomeTransformer2DModel', which is not known"));
}

TEST(Denoisers, AreCheckpointedBlockByBlock) {
  const auto graph = read(kSmallUnet);
  ASSERT_TRUE(succeeds(graph));
  // Residual blocks: 1 + 1 on the way down, 2 in the middle, 2 + 2 on the way up; transformers: 1, 1, 2, of one block.
  EXPECT_EQ(connect::repeated_blocks(*graph).size(), 8U + 4U);
}

/// What a step of one video of 5 frames of 256 x 256 pixels holds at most, in kibibytes.
double wan_peak(std::string_view layers, std::string_view code) {
  const auto graph =
      read(R"({"_class_name": "WanTransformer3DModel", "num_attention_heads": 2, "attention_head_dim": 64,
    "ffn_dim": 256, "text_dim": 32, "num_layers": )" +
               std::string(layers) + R"(, "_code": ")" + std::string(code) + "\"}",
           {.size = model::PictureSize{256, 256}, .frames = 5, .text_tokens = 8});
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return 0.0;
  model::TrainingJob job(std::make_shared<const model::ModelGraph>(*graph), 1);
  job.precision = model::Precision::bf16;
  job.lora = 2;
  analysis::Analysis analysis(std::move(job));
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(steps));
  return steps ? static_cast<double>((*steps)->peak_bytes) / 1024.0 : 0.0;
}

TEST(Denoisers, KeepWhatTheTrainersCopyKeeps) {
  // diffusers' class of Attention norms queries and keys step by step: each of three norms a block keeps its input in
  // float32. SimpleTuner's copy multiplies scales in the model's type, and keeps less of them.
  const double each = wan_peak("6", "diffusers") - wan_peak("5", "diffusers");
  const double copied = wan_peak("6", "simpletuner") - wan_peak("5", "simpletuner");
  const double norms = 3.0 * 2 * 16 * 16 * 2 * 64 * 4 / 1024.0;
  EXPECT_NEAR(copied - each, norms, 0.1 * norms) << each << " and " << copied;
}

double megabytes(const std::string& path, const std::string& parts, bool ema = false) {
  job::JobRequest request;
  request.summary = path;
  request.training.batch_size = 1;
  request.training.image = {512, 512};
  request.training.lora = 4;
  request.training.parts = parts;
  request.training.ema = ema;
  const auto estimate = session::process_session().estimate(request);
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? static_cast<double>(estimate->breakdown.parameters.count()) / 1e6 : 0.0;
}

TEST(Denoisers, StandAloneWithoutAFolder) {
  EXPECT_TRUE(fails(read(kSmallUnet, {.parts = "vae"}), ErrorCode::invalid_argument, 0, "or no `parts`"));
  EXPECT_TRUE(succeeds(read(kSmallUnet, {.parts = "none"})));
  job::JobRequest request;
  request.summary = GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt";
  request.training.batch_size = 1;
  request.training.parts = "vae";
  EXPECT_TRUE(fails(session::process_session().estimate(request), ErrorCode::invalid_argument, 0, "or no `parts`"));
  request.training.parts = "none";
  EXPECT_TRUE(succeeds(session::process_session().estimate(request)));
}

class PipelineFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("model_index.json",
          R"({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
      "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"],
      "tokenizer": ["transformers", "CLIPTokenizer"], "safety_checker": [null, null]})");
    write("unet/config.json", kSmallUnet);
    write("vae/config.json", kSmallAutoencoder);
    write("text_encoder/config.json", R"({"model_type": "t5", "architectures": ["T5EncoderModel"], "vocab_size": 100,
      "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4})");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, std::string_view text) const {
    fs::create_directories((fs::path(folder_) / name).parent_path());
    std::ofstream(fs::path(folder_) / name) << text;
  }
  std::string folder_ = testing::own_path("pipeline").string();
};

TEST_F(PipelineFolder, IsItsDenoiser) {
  const auto graph = session::read_summary(folder_);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->architecture(), "unet");
  EXPECT_EQ(graph->parameters(), parameters(kSmallUnet));
}

TEST_F(PipelineFolder, PartsMayBeAllThatAreCalledAlike) {
  const double none = megabytes(folder_, "none");
  const double both = megabytes(folder_, "vae+text_encoder");
  EXPECT_DOUBLE_EQ(megabytes(folder_, "vae+text_encoder*"), both);
  EXPECT_DOUBLE_EQ(megabytes(folder_, "image_encoder*"), none) << "this folder has none";
  write("model_index.json",
        R"({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
      "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"],
      "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"]})");
  write("safety_checker/config.json", R"({"architectures": ["StableDiffusionSafetyChecker"], "projection_dim": 768})");
  EXPECT_DOUBLE_EQ(megabytes(folder_, "all"), both) << "no training loop loads the filter";
}

constexpr std::string_view kGuidedPipeline = R"({"_class_name": "StableDiffusionControlNetPipeline",
  "unet": ["diffusers", "UNet2DConditionModel"], "controlnet": ["diffusers", "ControlNetModel"],
  "vae": ["diffusers", "AutoencoderKL"]})";
constexpr std::string_view kSmallControlNet = R"({"_class_name": "ControlNetModel", "block_out_channels": [32, 64],
  "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "layers_per_block": 1, "attention_head_dim": 4,
  "cross_attention_dim": 48})";

TEST_F(PipelineFolder, IsItsControlNetWhereItHasOne) {
  write("model_index.json", kGuidedPipeline);
  write("controlnet/config.json", kSmallControlNet);
  const auto graph = session::read_summary(folder_);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->architecture(), "controlnet");
  EXPECT_GT(graph->parameters(), parameters(kSmallUnet));
  EXPECT_NEAR(megabytes(folder_, "vae") - megabytes(folder_, ""),
              4e-6 * static_cast<double>(parameters(kSmallAutoencoder)), 0.05);
}

TEST_F(PipelineFolder, TellsTheModelThatItsControlNetGuides) {
  write("model_index.json", kGuidedPipeline);
  write("controlnet/config.json", kSmallControlNet);
  const std::int64_t trained = trained_parameters(kSmallControlNet);
  // Its way up is not as its way down, the other way round: no block of it attends.
  const std::string plain = R"({"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64],
    "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "UpBlock2D"],
    "layers_per_block": 1, "attention_head_dim": 4, "cross_attention_dim": 48})";
  for (const std::string& unet : {std::string(kSmallUnet), plain}) {
    write("unet/config.json", unet);
    const auto graph = session::read_summary(folder_);
    ASSERT_TRUE(succeeds(graph));
    EXPECT_EQ(graph->parameters(), trained + parameters(unet));
  }
  write("model_index.json", R"({"_class_name": "FluxControlNetPipeline",
    "transformer": ["diffusers", "FluxTransformer2DModel"], "controlnet": ["diffusers", "FluxControlNetModel"]})");
  write("transformer/config.json", kSmallFlux);
  write("controlnet/config.json", R"({"_class_name": "FluxControlNetModel", "num_layers": 1, "num_single_layers": 0,
    "num_attention_heads": 2, "attention_head_dim": 16, "axes_dims_rope": [4, 6, 6], "joint_attention_dim": 32,
    "pooled_projection_dim": 24})");
  const auto flux = session::read_summary(folder_);
  ASSERT_TRUE(succeeds(flux));
  std::int64_t frozen = 0;
  for (const model::Layer& layer : flux->layers()) frozen += layer.frozen ? layer.parameters : 0;
  EXPECT_EQ(frozen, parameters(kSmallFlux)) << "of two blocks each, not 19 and 38, and distilled";
}

TEST_F(PipelineFolder, IsItsDenoiserWhereTheControlNetIsNotKnown) {
  write("model_index.json", kGuidedPipeline);
  for (const char* config : {R"({"_class_name": "SD3ControlNetModel", "num_layers": 2})",
                             R"({"_class_name": "ControlNetModel", "global_pool_conditions": true})"}) {
    write("controlnet/config.json", config);
    const auto graph = session::read_summary(folder_);
    ASSERT_TRUE(succeeds(graph)) << config;
    EXPECT_EQ(graph->parameters(), parameters(kSmallUnet));
    const auto& remarks = graph->remarks();
    EXPECT_TRUE(std::ranges::any_of(remarks, [](const std::string& remark) {
      return remark.find("trained in its place") != std::string::npos;
    })) << config;
  }
}

TEST_F(PipelineFolder, HoldsThePartsThatAreNamed) {
  const double alone = megabytes(folder_, "");
  const double with_vae = megabytes(folder_, "vae");
  const double with_all = megabytes(folder_, "all");
  EXPECT_NEAR(with_vae - alone, 4e-6 * static_cast<double>(parameters(kSmallAutoencoder)), 0.05);
  const double text = 100 * 32 + 4 * 32 * 32 + 32 * 4 + 2 * 64 * 32 + 3 * 32;
  EXPECT_NEAR(with_all - with_vae, 4e-6 * text, 0.01);
}

TEST_F(PipelineFolder, MakesLatentsOfOneSampleOrTileAtATime) {
  const auto peak = [&](const std::string& parts, std::int64_t batch, std::int64_t side) {
    job::JobRequest request;
    request.summary = folder_;
    request.training.batch_size = batch;
    request.training.image = {side, side};
    request.training.lora = 4;
    request.training.parts = parts;
    const auto estimate = session::Session().estimate(request);
    EXPECT_TRUE(succeeds(estimate)) << parts;
    return estimate && estimate->allocated ? estimate->allocated->count() : 0;
  };
  const std::int64_t whole = peak("vae", 8, 1024);
  EXPECT_LT(peak("vae:sliced", 8, 1024), whole);
  EXPECT_LT(peak("vae:tiled", 8, 1024), whole) << "tiles have 512 pixels, as sample_size says";
  EXPECT_LE(peak("vae:sliced:tiled", 8, 1024), peak("vae:tiled", 8, 1024));
  EXPECT_EQ(peak("vae:tiled", 8, 256), peak("vae", 8, 256)) << "an image of one tile";
  std::string silent(kSmallAutoencoder);
  silent.erase(silent.find(", \"sample_size\""), 20);
  write("vae/config.json", silent);
  EXPECT_LT(peak("vae:tiled", 8, 256), peak("vae", 8, 256)) << "tiles have 32 pixels, as the class has it";
  job::JobRequest request;
  request.summary = folder_;
  request.training.batch_size = 1;
  request.training.parts = "vae:halved";
  EXPECT_TRUE(fails(session::process_session().estimate(request), ErrorCode::malformed_input, 0, "vae:tiled"));
}

TEST_F(PipelineFolder, SaysWhichPartsItHas) {
  job::JobRequest request;
  request.summary = folder_;
  request.training.batch_size = 1;
  request.training.parts = "vae+unknown";
  const auto estimate = session::process_session().estimate(request);
  ASSERT_FALSE(estimate);
  EXPECT_NE(estimate.error().message.find("has the parts vae, text_encoder"), std::string::npos)
      << estimate.error().message;
  write("model_index.json", R"({"_class_name": "StableDiffusionPipeline", "vae": ["diffusers", "AutoencoderKL"]})");
  EXPECT_TRUE(
      fails(session::read_summary(folder_), ErrorCode::malformed_input, 0, "names neither a transformer nor a unet"));
}

TEST_F(PipelineFolder, KeepsAnAverageOfWhatIsTrained) {
  const double adapters = megabytes(folder_, "", true) - megabytes(folder_, "");
  EXPECT_GT(adapters, 0.0);
  EXPECT_LT(adapters, 1.0) << "of the adapters, not of the frozen base";
}

TEST_F(PipelineFolder, IsAdvisedToDoWithoutItsParts) {
  job::JobRequest request;
  request.summary = folder_;
  request.training.batch_size = 8;
  request.training.image = {1024, 1024};
  request.training.parts = "all";
  request.gpu = "v100-16gb";
  const auto advice = session::process_session().advise(request);
  ASSERT_TRUE(succeeds(advice));
  std::string all;
  for (const estimate::ChangeEffect& row : advice->single) {
    for (const estimate::Setting& set : row.settings) all += std::string(set.option) + "=" + set.value + " ";
  }
  EXPECT_NE(all.find("parts=none"), std::string::npos) << all;
  EXPECT_NE(all.find("image=768x768"), std::string::npos) << all;
  EXPECT_EQ(all.find("lora=16"), std::string::npos) << "adapters take more than so small a UNet";
}

}  // namespace
}  // namespace gpumem::architectures
