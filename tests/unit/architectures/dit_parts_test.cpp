// Denoising transformers: their parameters are as many as diffusers' classes hold, the blocks that gradient
// checkpointing wraps are found, and sizes that cannot be are refused.
#include "gpumem/architectures/dit_parts.hpp"

#include <string>
#include <string_view>

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

std::string of_class(std::string_view name, std::string_view fields = {}) {
  return R"({"_class_name": ")" + std::string(name) + "\"" + (fields.empty() ? "" : ", ") + std::string(fields) + "}";
}

void expect_refused(const std::string& config) {
  const auto graph = read(config);
  ASSERT_FALSE(graph) << config;
  EXPECT_EQ(graph.error().code, core::ErrorCode::malformed_input) << config;
}

/// A model as its config has it, the parameters that diffusers 0.40's class of it has, and its blocks.
struct Known {
  std::string_view name;
  std::string_view class_name;
  std::string_view fields;
  std::int64_t parameters;
  std::size_t blocks;
};
constexpr Known kKnown[] = {
    {"FLUX.1-dev", "FluxTransformer2DModel", R"("guidance_embeds": true)", 11'901'408'320, 57},
    {"Chroma1", "ChromaTransformer2DModel", "", 8'899'983'424, 57},
    {"LongCat-Image", "LongCatImageTransformer2DModel", R"("num_layers": 10, "num_single_layers": 20)", 6'270'668'864,
     30},
    {"FLUX.2-dev", "Flux2Transformer2DModel", "", 32'223'281'152, 56},
    {"FLUX.2-klein-4B", "Flux2Transformer2DModel",
     R"("num_layers": 5, "num_single_layers": 20, "num_attention_heads": 24, "joint_attention_dim": 7680,
        "guidance_embeds": false)",
     3'875'544'576, 25},
    {"FLUX.2-klein-9B", "Flux2Transformer2DModel",
     R"("num_layers": 8, "num_single_layers": 24, "num_attention_heads": 32, "joint_attention_dim": 12288,
        "guidance_embeds": false)",
     9'078'581'248, 32},
    {"CogVideoX-2b", "CogVideoXTransformer3DModel", "", 1'693'783'872, 30},
    {"CogVideoX-5b", "CogVideoXTransformer3DModel",
     R"("num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": true)", 5'570'283'072, 42},
    {"CogVideoX1.5-5B", "CogVideoXTransformer3DModel",
     R"("num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": true, "patch_size_t": 2,
        "patch_bias": false)",
     5'570'676'352, 42},
    {"CogView 4", "CogView4Transformer2DModel", "", 2'848'836'672, 30},
    {"LTX-2", "LTX2VideoTransformer3DModel", R"("rope_type": "split")", 18'876'174'592, 48},
    {"LTX-2.3", "LTX2VideoTransformer3DModel",
     R"("rope_type": "split", "gated_attn": true, "cross_attn_mod": true, "audio_gated_attn": true,
        "audio_cross_attn_mod": true, "use_prompt_embeddings": false)",
     18'988'838'144, 48},
    {"LTX-2.5", "LTX2VideoTransformer3DModel",
     R"("rope_type": "split", "gated_attn": true, "cross_attn_mod": true, "audio_gated_attn": true,
        "audio_cross_attn_mod": true, "use_prompt_embeddings": false, "ff_bias": false,
        "use_keyframes_abs_pos_embedding": true)",
     18'987'859'200, 48},
    {"Wan2.1-T2V-1.3B", "WanTransformer3DModel", R"("num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960)",
     1'418'996'800, 30},
    {"Wan2.1-T2V-14B", "WanTransformer3DModel", "", 14'288'491'584, 40},
    {"Wan2.1-I2V-14B", "WanTransformer3DModel",
     R"("in_channels": 36, "out_channels": 16, "image_dim": 1280, "added_kv_proj_dim": 5120)", 16'394'878'784, 40},
    {"Wan2.2-TI2V-5B", "WanTransformer3DModel",
     R"("num_attention_heads": 24, "num_layers": 30, "ffn_dim": 14336, "in_channels": 48, "out_channels": 48)",
     4'999'787'712, 30},
    {"Ovis-Image-7B", "OvisImageTransformer2DModel", "", 7'370'449'728, 33},
    {"PRX-1.2B", "PRXTransformer2DModel", "", 1'170'691'648, 16},
    {"Wan2.1-VACE-1.3B", "WanVACETransformer3DModel",
     R"("num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960, "vace_layers": [0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
        20, 22, 24, 26, 28])",
     2'153'972'032, 45},
    {"Wan2.1-VACE-14B", "WanVACETransformer3DModel", "", 17'337'592'896, 48},
    {"SkyReels-V2-I2V-14B", "SkyReelsV2Transformer3DModel",
     R"("num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824, "in_channels": 36, "out_channels": 16,
        "image_dim": 1280, "added_kv_proj_dim": 5120)",
     16'394'878'784, 40},
    {"SkyReels-V2, as its class", "SkyReelsV2Transformer3DModel", R"("inject_sample_info": true)", 2'221'256'768, 32},
    {"ChronoEdit-14B", "ChronoEditTransformer3DModel", "", 14'288'491'584, 40},
    {"HunyuanImage-2.1", "HunyuanImageTransformer2DModel",
     R"("text_embed_2_dim": 1472, "guidance_embeds": true, "use_meanflow": true)", 17'453'334'976, 60},
    {"FramePack", "HunyuanVideoFramepackTransformer3DModel", R"("has_image_proj": true, "has_clean_x_embedder": true)",
     12'874'314'816, 60},
    {"ERNIE-Image", "ErnieImageTransformer2DModel", "", 2'821'119'104, 24},
    {"AuraFlow-v0.3", "AuraFlowTransformer2DModel", R"("pos_embed_max_size": 9216)", 6'858'605'568, 36},
    {"SD3-medium", "SD3Transformer2DModel",
     R"("num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536, "pos_embed_max_size": 192)",
     2'028'328'000, 24},
    {"SD3.5-medium", "SD3Transformer2DModel",
     R"("num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536, "pos_embed_max_size": 384,
        "qk_norm": "rms_norm", "dual_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])",
     2'243'171'520, 24},
    {"Qwen-Image", "QwenImageTransformer2DModel", "", 20'430'401'088, 60},
    {"PixArt", "PixArtTransformer2DModel", "", 605'301'152, 28},
    {"Sana", "SanaTransformer2DModel", "", 1'604'462'752, 20},
    {"Sana-Video", "SanaVideoTransformer3DModel", "", 1'905'841'344, 20},
    {"Kandinsky 5", "Kandinsky5Transformer3DModel", "", 2'147'285'776, 34},
    {"Z-Image", "ZImageTransformer2DModel", "", 6'154'908'736, 34},
    {"Ideogram 4", "Ideogram4Transformer2DModel", "", 9'279'288'448, 34},
    {"HiDream-I1", "HiDreamImageTransformer2DModel", "", 17'106'716'416, 48},
    {"HunyuanVideo", "HunyuanVideoTransformer3DModel", "", 12'821'012'544, 60},
    {"HunyuanVideo 1.5", "HunyuanVideo15Transformer3DModel", "", 8'326'608'160, 54},
    {"LTX-Video 2B", "LTXVideoTransformer3DModel", "", 1'923'385'472, 28},
    {"Lumina-Image 2", "Lumina2Transformer2DModel", "", 2'606'818'752, 30},
    {"Krea 2", "Krea2Transformer2DModel", "", 12'820'073'036, 28},
    {"Mochi", "MochiTransformer3DModel", "", 10'027'677'744, 48},
    {"Cosmos", "CosmosTransformer3DModel", "", 7'236'192'256, 28},
    {"ACE-Step 1.5", "AceStepTransformer1DModel", "", 1'575'458'880, 24},
    {"ACE-Step 1.5 XL", "AceStepTransformer1DModel",
     R"("hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 32, "num_attention_heads": 32,
        "encoder_hidden_size": 2048)",
     4'168'897'088, 32},
    {"Cosmos 3 Nano", "Cosmos3OmniTransformer",
     R"("action_gen": true, "action_dim": 64, "sound_gen": true, "sound_dim": 64)", 15'173'669'120, 36},
    {"Cosmos 3 Edge", "Cosmos3OmniTransformer",
     R"("hidden_size": 2048, "intermediate_size": 9216, "num_attention_heads": 16, "num_hidden_layers": 28,
        "vocab_size": 131072, "hidden_act": "relu2", "qk_norm_for_text": false, "use_und_k_norm_for_gen": true,
        "action_gen": true, "action_dim": 64)",
     3'369'657'024, 28},
    {"Mage-Flow", "MageFlowTransformer2DModel", "", 4'115'745'408, 12},
    {"OmniGen", "OmniGenTransformer2DModel", "", 3'762'072'592, 32},
};

TEST(DitParts, HoldWhatDiffusersClassesHold) {
  for (const Known& known : kKnown) {
    const auto graph = read(of_class(known.class_name, known.fields));
    ASSERT_TRUE(succeeds(graph)) << known.name;
    EXPECT_EQ(graph->parameters(), known.parameters) << known.name;
    EXPECT_EQ(graph->unknown_layers(), 0) << known.name;
    EXPECT_TRUE(graph->doubts().empty()) << known.name;
    EXPECT_EQ(connect::repeated_blocks(*graph).size(), known.blocks) << known.name;
  }
}

bool has_layer(const model::ModelGraph& graph, std::string_view ending) {
  for (const model::Layer& layer : graph.layers()) {
    if (graph.path(layer).ends_with(ending)) return true;
  }
  return false;
}

TEST(DitParts, SayWhoseCodeRuns) {
  const std::string copied = R"("_code": "simpletuner")";
  const auto wan = read(of_class("WanTransformer3DModel", copied));
  ASSERT_TRUE(succeeds(wan));
  EXPECT_EQ(wan->parameters(), 14'288'491'584);
  EXPECT_TRUE(wan->doubts().empty());
  const auto ideogram = read(of_class("Ideogram4Transformer2DModel", copied));
  const auto own = read(of_class("Ideogram4Transformer2DModel"));
  ASSERT_TRUE(succeeds(ideogram));
  ASSERT_TRUE(succeeds(own));
  EXPECT_EQ(ideogram->parameters(), own->parameters());
  EXPECT_TRUE(has_layer(*ideogram, "attention.qkv") && has_layer(*ideogram, "attention.o"));
  EXPECT_TRUE(has_layer(*own, "attention.to_q") && !has_layer(*own, "attention.qkv"));
  const auto sana = read(of_class("SanaTransformer2DModel", copied));
  ASSERT_TRUE(succeeds(sana));
  EXPECT_TRUE(has_layer(*sana, "cross_norm") && !has_layer(*read(of_class("SanaTransformer2DModel")), "cross_norm"));
  expect_refused(of_class("WanTransformer3DModel", R"("_code": "nonsense")"));
}

TEST(DitParts, RefuseSizesThatCannotBe) {
  for (const Known& known : kKnown) {
    expect_refused(of_class(known.class_name, R"("in_channels": 2000000000, "in_visual_dim": 2000000000,
      "patch_latent_dim": 2000000000)"));
    expect_refused(of_class(known.class_name, R"("num_attention_heads": 2000000000, "n_heads": 2000000000,
      "num_heads": 2000000000, "axes_dims": [1000000, 1000000, 1000000])"));
  }
}

TEST(DitParts, ReadLongCatVideo) {
  const auto graph = read(of_class("LongCatVideoTransformer3DModel"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 13'581'071'424);  // of SimpleTuner's class
  EXPECT_EQ(connect::repeated_blocks(*graph).size(), 48U);
  expect_refused(of_class("LongCatVideoTransformer3DModel", R"("num_heads": 2000000000)"));
  expect_refused(of_class("LongCatVideoTransformer3DModel", R"("num_heads": 30)"));
  expect_refused(of_class("LongCatVideoTransformer3DModel", R"("enable_bsa": true)"));
}

TEST(DitParts, ReadZlabsI1) {
  const auto graph = read(of_class("ZlabI1Transformer2DModel"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 3'174'025'844);  // of SimpleTuner's class
  EXPECT_EQ(connect::repeated_blocks(*graph).size(), 29U);
  expect_refused(of_class("ZlabI1Transformer2DModel", R"("num_heads": 27)"));
  expect_refused(of_class("ZlabI1Transformer2DModel", R"("num_heads": 1008)"));
  expect_refused(of_class("ZlabI1Transformer2DModel", R"("input_size": 1000000)"));
}

TEST(DitParts, ReadBooguImage) {
  const std::string published = R"("hidden_size": 3360, "num_layers": 40, "num_double_stream_layers": 8,
    "num_attention_heads": 28, "num_kv_heads": 7, "instruction_feature_configs": {"instruction_feat_dim": 4096,
    "reduce_type": "mean", "num_instruction_feat_layers": 1})";
  const auto graph = read(of_class("BooguImageTransformer2DModel", published));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 10'292'556'288);  // of SimpleTuner's class
  EXPECT_EQ(connect::repeated_blocks(*graph).size(), 40U);
  EXPECT_TRUE(has_layer(*graph, "img_instruct_attn.processor.instruct_to_k") &&
              has_layer(*graph, "ref_image_refiner.1.attn.to_q"));
  expect_refused(of_class("BooguImageTransformer2DModel", R"("num_double_stream_layers": 27)"));
  expect_refused(of_class("BooguImageTransformer2DModel", R"("num_kv_heads": 7)"));
  expect_refused(of_class("BooguImageTransformer2DModel", R"("prompt_tuning_configs": {"use_prompt_tuning": true})"));
}

TEST(DitParts, RefuseListsOfOtherLengths) {
  expect_refused(of_class("WanTransformer3DModel", R"("patch_size": [1, 2])"));
  expect_refused(of_class("FluxTransformer2DModel", R"("axes_dims_rope": [16, 56])"));
  expect_refused(of_class("Flux2Transformer2DModel", R"("axes_dims_rope": [16, 56, 56, 128])"));
}

TEST(DitParts, RefuseWhatLtx2DoesNotHave) {
  expect_refused(of_class("LTX2VideoTransformer3DModel", R"("rope_type": "spilt")"));
  expect_refused(of_class("LTX2VideoTransformer3DModel", R"("audio_cross_attention_dim": 1024)"));
  EXPECT_TRUE(succeeds(read(of_class("LTX2VideoTransformer3DModel",
                                     R"("use_prompt_embeddings": false, "audio_cross_attention_dim": 1024)"))));
}

}  // namespace
}  // namespace gpumem::architectures
