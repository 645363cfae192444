#include "image_models.hpp"

#include <algorithm>
#include <iterator>

namespace gpumem::datasets {

namespace {
namespace image_models_detail {

/// As its repository publishes it: 10,292,556,288 parameters, 8 blocks of two streams and 32 of one.
constexpr std::string_view kBooguImage =
    R"({"_class_name": "BooguImageTransformer2DModel", "hidden_size": 3360, "num_layers": 40,
        "num_double_stream_layers": 8, "num_refiner_layers": 2, "num_attention_heads": 28, "num_kv_heads": 7,
        "instruction_feature_configs": {"instruction_feat_dim": 4096, "reduce_type": "mean",
                                        "num_instruction_feat_layers": 1}})";

constexpr KnownModel kModels[] = {
    {"Lykon/dreamshaper-8", "SD1.5-unet.json", "", Intervals::ignored},
    {"stable-diffusion-v1-5/stable-diffusion-v1-5", "SD1.5-unet.json", "", Intervals::ignored},
    {"runwayml/stable-diffusion-v1-5", "SD1.5-unet.json", "", Intervals::ignored},
    {"CompVis/stable-diffusion-v1-4", "SD1.5-unet.json", "", Intervals::ignored},
    {"stabilityai/stable-diffusion-xl-base-1.0", "SDXL-unet.json", "", Intervals::ignored},
    {"terminusresearch/kwai-kolors-1.0", "",
     R"({"_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
         "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
         "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
         "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], "encoder_hid_dim": 4096,
         "encoder_hid_dim_type": "text_proj", "projection_class_embeddings_input_dim": 5632,
         "transformer_layers_per_block": [1, 2, 10], "use_linear_projection": true})",
     Intervals::ignored},
    {"black-forest-labs/FLUX.1-dev", "FLUX.1-dev-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-dev", "FLUX.2-dev-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-klein-base-4B", "FLUX.2-klein-4B-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-klein-base-9B", "FLUX.2-klein-9B-transformer.json", "", Intervals::joined},
    {"THUDM/CogVideoX-2b", "CogVideoX-2b-transformer.json"},
    {"THUDM/CogVideoX-5b", "CogVideoX-5b-transformer.json"},
    // Of Wan, Sana, LTX-2 and Ideogram SimpleTuner has copies that keep other tensors.
    {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "",
     R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner", "num_attention_heads": 12, "num_layers": 30,
         "ffn_dim": 8960})",
     Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.1-T2V-14B-Diffusers", "", R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner"})",
     Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.2-T2V-A14B-Diffusers", "", R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner"})",
     Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.1-I2V-14B-480P-Diffusers", "",
     R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner", "in_channels": 36, "image_dim": 1280,
         "added_kv_proj_dim": 5120})",
     Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.2-I2V-A14B-Diffusers", "",
     R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner", "in_channels": 36})", Intervals::joined, true,
     false, 32},
    {"Wan-AI/Wan2.2-TI2V-5B-Diffusers", "",
     R"({"_class_name": "WanTransformer3DModel", "_code": "simpletuner", "num_attention_heads": 24, "num_layers": 30,
         "ffn_dim": 14336, "in_channels": 48, "out_channels": 48})",
     Intervals::joined, true},
    {"lodestones/Chroma1-Base", "Chroma1-transformer.json"},
    {"lodestones/Chroma1-HD", "Chroma1-transformer.json"},
    {"lodestones/Chroma1-Flash", "Chroma1-transformer.json"},
    {"terminusresearch/auraflow-v0.3", "AuraFlow-v0.3-transformer.json", "", Intervals::separate, false, false, 64,
     120},
    {"fal/AuraFlow-v0.3", "AuraFlow-v0.3-transformer.json", "", Intervals::separate, false, false, 64, 120},
    {"nvidia/Cosmos-Predict2-2B-Text2Image", "",
     R"({"_class_name": "CosmosTransformer3DModel", "in_channels": 16, "out_channels": 16, "num_attention_heads": 16,
         "attention_head_dim": 128, "num_layers": 28, "mlp_ratio": 4.0, "text_embed_dim": 1024, "adaln_lora_dim": 256,
         "patch_size": [1, 2, 2], "concat_padding_mask": true, "extra_pos_embed_type": null})",
     Intervals::separate, false, false, 16},
    {"nvidia/Cosmos-Predict2-14B-Text2Image", "",
     R"({"_class_name": "CosmosTransformer3DModel", "in_channels": 16, "out_channels": 16, "num_attention_heads": 40,
         "attention_head_dim": 128, "num_layers": 36, "mlp_ratio": 4.0, "text_embed_dim": 1024, "adaln_lora_dim": 256,
         "patch_size": [1, 2, 2], "concat_padding_mask": true, "extra_pos_embed_type": null})",
     Intervals::separate, false, false, 16},
    {"terminusresearch/sana-1.6b-1024px", "", R"({"_class_name": "SanaTransformer2DModel", "_code": "simpletuner"})",
     Intervals::no_effect},
    {"Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers", "",
     R"({"_class_name": "SanaTransformer2DModel", "_code": "simpletuner"})", Intervals::no_effect},
    {"Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers", "",
     R"({"_class_name": "SanaTransformer2DModel", "_code": "simpletuner", "num_layers": 60,
         "qk_norm": "rms_norm_across_heads"})",
     Intervals::no_effect},
    {"Efficient-Large-Model/SANA-Video_2B_480p_diffusers", "SanaVideo-transformer.json", "", Intervals::no_effect},
    {"HiDream-ai/HiDream-I1-Full", "HiDream-I1-transformer-defaults.json", "", Intervals::ignored},
    {"HiDream-ai/HiDream-I1-Dev", "HiDream-I1-transformer-defaults.json", "", Intervals::ignored},
    // As its loaders make it; the class' own defaults are of a smaller model.
    {"baidu/ERNIE-Image", "",
     R"({"_class_name": "ErnieImageTransformer2DModel", "hidden_size": 4096, "num_attention_heads": 32,
         "num_layers": 36, "ffn_hidden_size": 12288, "in_channels": 128, "out_channels": 128, "patch_size": 1,
         "text_in_dim": 3072, "rope_axes_dim": [32, 48, 48], "qk_layernorm": true})",
     Intervals::separate, false, false, 64, 5},
    {"ideogram-ai/ideogram-4-fp8", "", R"({"_class_name": "Ideogram4Transformer2DModel", "_code": "simpletuner"})"},
    {"krea/Krea-2", "Krea-2-transformer.json", "", Intervals::joined},
    {"krea/Krea-2-Raw", "Krea-2-transformer.json", "", Intervals::joined},
    {"krea/Krea-2-Turbo", "Krea-2-transformer.json", "", Intervals::joined},
    // Five tokens of the template follow the prompt; the prompt's own are cut to what it has.
    {"Qwen/Qwen-Image", "Qwen-Image-transformer.json", "", Intervals::separate, false, false, 32, 9},
    {"Qwen/Qwen-Image-2512", "Qwen-Image-transformer.json", "", Intervals::separate, false, false, 32, 9},
    // Captions are cut to their tokens, and padded to a multiple of 32 (SEQ_MULTI_OF).
    {"Tongyi-MAI/Z-Image", "Z-Image-transformer.json", "", Intervals::joined, false, false, 64, 32},
    {"Tongyi-MAI/Z-Image-Turbo", "Z-Image-transformer.json", "", Intervals::joined, false, false, 64, 32},
    {"bghira/zlab-i1-diffusers", "", R"({"_class_name": "ZlabI1Transformer2DModel"})", Intervals::joined, false, false,
     64, 256, "qkv_image+qkv_text+proj_image+proj_text+w12+w3+linear"},
    {"Lightricks/LTX-Video", "LTX-Video-0.9.x-2B-transformer.json", "", Intervals::joined, false, false, 64, 226},
    {"Lightricks/LTX-Video-0.9.5", "LTX-Video-0.9.x-2B-transformer.json", "", Intervals::joined, false, false, 64, 226},
    {"Lightricks/LTX-2", "",
     R"({"_class_name": "LTX2VideoTransformer3DModel", "_code": "simpletuner", "rope_type": "split"})",
     Intervals::joined},
    {"dg845/LTX-2.3-Diffusers", "",
     R"({"_class_name": "LTX2VideoTransformer3DModel", "_code": "simpletuner", "rope_type": "split",
         "gated_attn": true, "cross_attn_mod": true, "audio_gated_attn": true, "audio_cross_attn_mod": true,
         "use_prompt_embeddings": false, "perturbed_attn": true})",
     Intervals::joined},
    // The template of its system prompt is 24 tokens around the prompt's own four.
    {"SimpleTuner/Boogu-Image-0.1-Base", "", kBooguImage, Intervals::int8_alone, false, false, 64, 28},
    {"SimpleTuner/Boogu-Image-0.1-Turbo", "", kBooguImage, Intervals::int8_alone, false, false, 64, 28},
    {"Alpha-VLLM/Lumina-Image-2.0", "Lumina2-transformer.json", "", Intervals::joined},
    // The sentence that OmniGenMultiModalProcessor puts before a prompt, one word, and three tokens of the template.
    {"Shitao/OmniGen-v1-diffusers", "OmniGen-transformer.json", "", Intervals::ignored, false, false, 64, 20},
    {"hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v", "HunyuanVideo-1.5-transformer.json", "",
     Intervals::joined},
    {"hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_t2v", "HunyuanVideo-1.5-transformer.json", "",
     Intervals::joined},
    {"tencent/HunyuanVideo-1.5", "HunyuanVideo-1.5-transformer.json", "", Intervals::joined},
    {"meituan-longcat/LongCat-Image", "LongCat-Image-transformer.json"},
    {"meituan-longcat/LongCat-Image-Dev", "LongCat-Image-transformer.json"},
    // T5's 154 tokens (check_user_config()) after CLIP's 77.
    {"stabilityai/stable-diffusion-3-medium-diffusers", "SD3-medium-transformer.json", "", Intervals::joined, false,
     false, 64, 231},
    // The published configs of more, as their repositories have them.
    {"stabilityai/stable-diffusion-3.5-medium", "",
     R"({"_class_name": "SD3Transformer2DModel", "attention_head_dim": 64, "caption_projection_dim": 1536,
         "dual_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "in_channels": 16,
         "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers": 24, "out_channels": 16, "patch_size": 2,
         "pooled_projection_dim": 2048, "pos_embed_max_size": 384, "qk_norm": "rms_norm", "sample_size": 128})",
     Intervals::joined, false, false, 64, 231},
    {"stabilityai/stable-diffusion-3.5-large", "",
     R"({"_class_name": "SD3Transformer2DModel", "attention_head_dim": 64, "caption_projection_dim": 2432,
         "in_channels": 16, "joint_attention_dim": 4096, "num_attention_heads": 38, "num_layers": 38,
         "out_channels": 16, "patch_size": 2, "pooled_projection_dim": 2048, "pos_embed_max_size": 192,
         "qk_norm": "rms_norm", "sample_size": 128})",
     Intervals::joined, false, false, 64, 231},
    {"kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers", "",
     R"({"_class_name": "Kandinsky5Transformer3DModel", "in_visual_dim": 16, "in_text_dim": 3584, "in_text_dim2": 768,
         "time_dim": 512, "out_visual_dim": 16, "patch_size": [1, 2, 2], "model_dim": 2560, "ff_dim": 10240,
         "num_text_blocks": 2, "num_visual_blocks": 50, "axes_dims": [32, 48, 48], "visual_cond": false})",
     Intervals::separate, false, true},
    {"kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers", "",
     R"({"_class_name": "Kandinsky5Transformer3DModel", "in_visual_dim": 16, "in_text_dim": 3584, "in_text_dim2": 768,
         "time_dim": 512, "out_visual_dim": 16, "patch_size": [1, 2, 2], "model_dim": 1792, "ff_dim": 7168,
         "num_text_blocks": 2, "num_visual_blocks": 32, "axes_dims": [16, 24, 24], "visual_cond": true})",
     Intervals::separate, false, true},
    {"terminusresearch/pixart-900m-1024-ft-v0.6", "",
     R"({"_class_name": "PixArtTransformer2DModel", "activation_fn": "gelu-approximate", "attention_bias": true,
         "attention_head_dim": 72, "caption_channels": 4096, "cross_attention_dim": 1152, "in_channels": 4,
         "interpolation_scale": 2, "norm_elementwise_affine": false, "norm_eps": 1e-06, "norm_type": "ada_norm_single",
         "num_attention_heads": 16, "num_embeds_ada_norm": 1000, "num_layers": 42, "out_channels": 8, "patch_size": 2,
         "sample_size": 128, "use_additional_conditions": false})",
     Intervals::joined},
};

char lower_of(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool same_name(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower_of, lower_of);
}

}  // namespace image_models_detail
}  // namespace

const KnownModel* known_image_model(std::string_view name) {
  namespace detail = image_models_detail;
  const auto* const found = std::ranges::find_if(
      detail::kModels, [&](const KnownModel& known) { return detail::same_name(known.name, name); });
  return found == std::end(detail::kModels) ? nullptr : found;
}

}  // namespace gpumem::datasets
