#include "image_models.hpp"

#include <algorithm>
#include <iterator>

namespace gpumem::datasets {

namespace {
namespace image_models_detail {

/// SimpleTuner's copy of the published model's class.
constexpr std::string_view kSimpleTuners = R"("_code": "simpletuner")";

constexpr KnownModel kModels[] = {
    {"Lykon/dreamshaper-8", "SD1.5-unet.json", "", Intervals::ignored},
    {"stable-diffusion-v1-5/stable-diffusion-v1-5", "SD1.5-unet.json", "", Intervals::ignored},
    {"runwayml/stable-diffusion-v1-5", "SD1.5-unet.json", "", Intervals::ignored},
    {"CompVis/stable-diffusion-v1-4", "SD1.5-unet.json", "", Intervals::ignored},
    {"stabilityai/stable-diffusion-xl-base-1.0", "SDXL-unet.json", "", Intervals::ignored},
    {"terminusresearch/kwai-kolors-1.0", "", "", Intervals::ignored},
    {"black-forest-labs/FLUX.1-dev", "FLUX.1-dev-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-dev", "FLUX.2-dev-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-klein-base-4B", "FLUX.2-klein-4B-transformer.json", "", Intervals::joined},
    {"black-forest-labs/FLUX.2-klein-base-9B", "FLUX.2-klein-9B-transformer.json", "", Intervals::joined},
    {"THUDM/CogVideoX-2b", "CogVideoX-2b-transformer.json"},
    {"THUDM/CogVideoX-5b", "CogVideoX-5b-transformer.json"},
    // Of Wan, Sana, LTX-2 and Ideogram SimpleTuner has copies that keep other tensors.
    {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "", kSimpleTuners, Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.1-T2V-14B-Diffusers", "", kSimpleTuners, Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.2-T2V-A14B-Diffusers", "", kSimpleTuners, Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.1-I2V-14B-480P-Diffusers", "", kSimpleTuners, Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.2-I2V-A14B-Diffusers", "", kSimpleTuners, Intervals::joined, true, false, 32},
    {"Wan-AI/Wan2.2-TI2V-5B-Diffusers", "", kSimpleTuners, Intervals::joined, true},
    {"lodestones/Chroma1-Base", "Chroma1-transformer.json"},
    {"lodestones/Chroma1-HD", "Chroma1-transformer.json"},
    {"lodestones/Chroma1-Flash", "Chroma1-transformer.json"},
    {"terminusresearch/auraflow-v0.3", "AuraFlow-v0.3-transformer.json", "", Intervals::separate, false, false, 64,
     120},
    {"fal/AuraFlow-v0.3", "AuraFlow-v0.3-transformer.json", "", Intervals::separate, false, false, 64, 120},
    {"nvidia/Cosmos-Predict2-2B-Text2Image", "", "", Intervals::separate, false, false, 16},
    {"nvidia/Cosmos-Predict2-14B-Text2Image", "", "", Intervals::separate, false, false, 16},
    {"terminusresearch/sana-1.6b-1024px", "", R"({"_class_name": "SanaTransformer2DModel", "_code": "simpletuner"})",
     Intervals::no_effect},
    {"Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers", "", kSimpleTuners, Intervals::no_effect},
    {"Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers", "", kSimpleTuners, Intervals::no_effect},
    {"Efficient-Large-Model/SANA-Video_2B_480p_diffusers", "SanaVideo-transformer.json", "", Intervals::no_effect},
    {"HiDream-ai/HiDream-I1-Full", "HiDream-I1-transformer-defaults.json", "", Intervals::ignored},
    {"HiDream-ai/HiDream-I1-Dev", "HiDream-I1-transformer-defaults.json", "", Intervals::ignored},
    {"baidu/ERNIE-Image", "", "", Intervals::separate, false, false, 64, 5},
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
    {"bghira/zlab-i1-diffusers", "", "", Intervals::joined, false, false, 64, 256,
     "qkv_image+qkv_text+proj_image+proj_text+w12+w3+linear"},
    {"Lightricks/LTX-Video", "LTX-Video-0.9.x-2B-transformer.json", "", Intervals::joined, false, false, 64, 226},
    {"Lightricks/LTX-Video-0.9.5", "LTX-Video-0.9.x-2B-transformer.json", "", Intervals::joined, false, false, 64, 226},
    {"Lightricks/LTX-2", "", kSimpleTuners, Intervals::joined},
    {"dg845/LTX-2.3-Diffusers", "",
     R"({"_class_name": "LTX2VideoTransformer3DModel", "_code": "simpletuner", "rope_type": "split",
         "gated_attn": true, "cross_attn_mod": true, "audio_gated_attn": true, "audio_cross_attn_mod": true,
         "use_prompt_embeddings": false, "perturbed_attn": true})",
     Intervals::joined},
    // The template of its system prompt is 24 tokens around the prompt's own four.
    {"SimpleTuner/Boogu-Image-0.1-Base", "", "", Intervals::int8_alone, false, false, 64, 28},
    {"SimpleTuner/Boogu-Image-0.1-Turbo", "", "", Intervals::int8_alone, false, false, 64, 28},
    {"natalie5/Mage-Flow-Turbo", "", "", Intervals::joined},
    {"natalie5/Mage-Flow-Base", "", "", Intervals::joined},
    {"nvidia/Cosmos3-Edge", "", kSimpleTuners},
    {"nvidia/Cosmos3-Nano", "", kSimpleTuners},
    {"Alpha-VLLM/Lumina-Image-2.0", "Lumina2-transformer.json", "", Intervals::joined},
    // The sentence that OmniGenMultiModalProcessor puts before a prompt, one word, and three tokens of the template.
    {"Shitao/OmniGen-v1-diffusers", "OmniGen-transformer.json", "", Intervals::ignored, false, false, 64, 20},
    {"hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v", "HunyuanVideo-1.5-transformer.json", "",
     Intervals::joined},
    {"hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_t2v", "HunyuanVideo-1.5-transformer.json", "",
     Intervals::joined},
    {"tencent/HunyuanVideo-1.5", "HunyuanVideo-1.5-transformer.json", "", Intervals::joined},
    {"meituan-longcat/LongCat-Video", "", "", Intervals::separate, true},
    {"meituan-longcat/LongCat-Image", "LongCat-Image-transformer.json"},
    {"meituan-longcat/LongCat-Image-Dev", "LongCat-Image-transformer.json"},
    // T5's 154 tokens (check_user_config()) after CLIP's 77.
    {"stabilityai/stable-diffusion-3-medium-diffusers", "SD3-medium-transformer.json", "", Intervals::joined, false,
     false, 64, 231},
    // The published configs of more, as their repositories have them.
    {"stabilityai/stable-diffusion-3.5-medium", "", "", Intervals::joined, false, false, 64, 231},
    {"stabilityai/stable-diffusion-3.5-large", "", "", Intervals::joined, false, false, 64, 231},
    {"kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers", "", "", Intervals::separate, false, true},
    {"kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers", "", "", Intervals::separate, false, true},
    {"terminusresearch/pixart-900m-1024-ft-v0.6", "", "", Intervals::joined},
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
