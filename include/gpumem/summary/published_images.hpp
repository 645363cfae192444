// Input: none.
// Output: the published sizes of denoisers of images and videos, by the names of their pipelines on the hub. Fields are
// those that differ from the defaults of diffusers' class. The other parts of a pipeline (autoencoder, text encoders)
// are not here: a diffusers folder has them.
// Source: diffusers 0.40, scripts/convert_*.py; the config files of the models' repositories. Parameters: of diffusers'
// class.
#pragma once

#include "gpumem/summary/published_rows.hpp"

namespace gpumem::summary::published_models_detail {

inline constexpr PublishedRow kImageRows[] = {
    {"stable-diffusion-v1-5/stable-diffusion-v1-5 runwayml/stable-diffusion-v1-5 CompVis/stable-diffusion-v1-4",
     "apart", 859'520'964, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 768, "attention_head_dim": 8)"},
    {"stabilityai/stable-diffusion-2-1-base stabilityai/stable-diffusion-2-base", "apart", 865'910'724, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], )"
     R"("use_linear_projection": true)"},
    // Trained with images of 768 pixels.
    {"stabilityai/stable-diffusion-2-1", "apart", 865'910'724, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], )"
     R"("use_linear_projection": true, "sample_size": 96)"},
    {"stabilityai/stable-diffusion-xl-base-1.0", "apart", 2'567'463'684, "",
     R"("_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time", "addition_time_embed_dim": 256, )"
     R"("attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048, )"
     R"("down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"], )"
     R"("up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], )"
     R"("projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10], )"
     R"("use_linear_projection": true)"},
    {"stabilityai/stable-diffusion-3-medium-diffusers", "apart", 2'028'328'000, "",
     R"("_class_name": "SD3Transformer2DModel", "num_layers": 24, "num_attention_heads": 24, )"
     R"("caption_projection_dim": 1536, "pos_embed_max_size": 192)"},
    {"stabilityai/stable-diffusion-3.5-medium", "apart", 2'243'171'520, "",
     R"("_class_name": "SD3Transformer2DModel", "num_layers": 24, "num_attention_heads": 24, )"
     R"("caption_projection_dim": 1536, "pos_embed_max_size": 384, "qk_norm": "rms_norm", )"
     R"("dual_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])"},
    {"stabilityai/stable-diffusion-3.5-large", "apart", 8'056'627'520, "",
     R"("_class_name": "SD3Transformer2DModel", "num_layers": 38, "num_attention_heads": 38, )"
     R"("caption_projection_dim": 2432, "pos_embed_max_size": 192, "qk_norm": "rms_norm")"},
    {"black-forest-labs/FLUX.1-dev", "apart", 11'901'408'320, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true)"},
    {"black-forest-labs/FLUX.1-schnell", "apart", 11'891'178'560, "", R"("_class_name": "FluxTransformer2DModel")"},
    {"black-forest-labs/FLUX.2-dev", "apart", 32'223'281'152, "", R"("_class_name": "Flux2Transformer2DModel")"},
    {"black-forest-labs/FLUX.2-klein-4B black-forest-labs/FLUX.2-klein-base-4B", "apart", 3'875'544'576, "",
     R"("_class_name": "Flux2Transformer2DModel", "num_layers": 5, "num_single_layers": 20, )"
     R"("num_attention_heads": 24, "joint_attention_dim": 7680, "guidance_embeds": false)"},
    {"black-forest-labs/FLUX.2-klein-9B black-forest-labs/FLUX.2-klein-base-9B", "apart", 9'078'581'248, "",
     R"("_class_name": "Flux2Transformer2DModel", "num_layers": 8, "num_single_layers": 24, )"
     R"("num_attention_heads": 32, "joint_attention_dim": 12288, "guidance_embeds": false)"},
    {"lodestones/Chroma1-Base lodestones/Chroma1-HD lodestones/Chroma1-Flash", "apart", 8'899'983'424, "",
     R"("_class_name": "ChromaTransformer2DModel")"},
    {"Qwen/Qwen-Image Qwen/Qwen-Image-2512", "apart", 20'430'401'088, "",
     R"("_class_name": "QwenImageTransformer2DModel")"},
    {"Tongyi-MAI/Z-Image Tongyi-MAI/Z-Image-Turbo", "apart", 6'154'908'736, "",
     R"("_class_name": "ZImageTransformer2DModel")"},
    {"HiDream-ai/HiDream-I1-Full HiDream-ai/HiDream-I1-Dev HiDream-ai/HiDream-I1-Fast", "apart", 17'106'716'416, "",
     R"("_class_name": "HiDreamImageTransformer2DModel")"},
    {"Alpha-VLLM/Lumina-Image-2.0", "apart", 2'606'818'752, "", R"("_class_name": "Lumina2Transformer2DModel")"},
    {"Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers Efficient-Large-Model/Sana_1600M_1024px_diffusers",
     "apart", 1'604'462'752, "", R"("_class_name": "SanaTransformer2DModel")"},
    {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "apart", 1'418'996'800, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960)"},
    {"Wan-AI/Wan2.1-T2V-14B-Diffusers Wan-AI/Wan2.2-T2V-A14B-Diffusers", "apart", 14'288'491'584, "",
     R"("_class_name": "WanTransformer3DModel")"},
    {"Wan-AI/Wan2.2-TI2V-5B-Diffusers", "apart", 4'999'787'712, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 24, "num_layers": 30, "ffn_dim": 14336, )"
     R"("in_channels": 48, "out_channels": 48)"},
    {"THUDM/CogVideoX-2b zai-org/CogVideoX-2b", "apart", 1'693'783'872, "",
     R"("_class_name": "CogVideoXTransformer3DModel")"},
    {"THUDM/CogVideoX-5b zai-org/CogVideoX-5b", "apart", 5'570'283'072, "",
     R"("_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42, )"
     R"("use_rotary_positional_embeddings": true)"},
    {"hunyuanvideo-community/HunyuanVideo", "apart", 12'821'012'544, "",
     R"("_class_name": "HunyuanVideoTransformer3DModel")"},
    {"Lightricks/LTX-Video", "apart", 1'923'385'472, "", R"("_class_name": "LTXVideoTransformer3DModel")"},
    {"Lightricks/LTX-2", "apart", 18'876'174'592, "",
     R"("_class_name": "LTX2VideoTransformer3DModel", "rope_type": "split")"},
};

}  // namespace gpumem::summary::published_models_detail
