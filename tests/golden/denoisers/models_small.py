"""Small configs of diffusers' transformers, by the golden's name, and what a sample is: pixels, frames, text tokens."""

from __future__ import annotations

from typing import Any

QKV = "to_q+to_k+to_v"


def small(
    config: dict[str, Any],
    pixels: tuple[int, int] = (512, 384),
    frames: int = 0,
    text: int = 96,
    lora: str = QKV,
    seconds: int = 0,
) -> dict[str, Any]:
    """`pixels`: width and height; `seconds`: of a sound, which has none."""
    sample: dict[str, Any] = {"seconds": seconds} if seconds else {"image": pixels, "frames": frames}
    return {"config": config, **sample, "sequence_length": text, "lora_targets": lora}


HEADS = {"num_attention_heads": 8, "attention_head_dim": 32}
# A video with its sound, in two streams.
LTX2 = {
    "_class_name": "LTX2VideoTransformer3DModel",
    **HEADS,
    "num_layers": 4,
    "cross_attention_dim": 256,
    "audio_num_attention_heads": 8,
    "audio_attention_head_dim": 16,
    "audio_cross_attention_dim": 128,
}

HUNYUAN = {**HEADS, "num_layers": 3, "num_single_layers": 4, "num_refiner_layers": 1, "text_embed_dim": 512}

UNET = {"block_out_channels": [64, 128, 256], "layers_per_block": 2, "cross_attention_dim": 128}

# Two towers of blocks.
COSMOS3 = {
    "_class_name": "Cosmos3OmniTransformer",
    "head_dim": 32,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "vocab_size": 4096,
    "rope_axes_dim": [8, 4, 4],
}

CONFIGS: dict[str, dict[str, Any]] = {
    "ace_step": small(
        {
            "_class_name": "AceStepTransformer1DModel",
            "hidden_size": 512,
            "intermediate_size": 1536,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 64,
        },
        seconds=30,
        text=160,
    ),
    "cosmos3": small(COSMOS3, (512, 384), lora="add_q_proj+add_k_proj+add_v_proj+to_add_out"),
    "cosmos3_edge": small(
        {**COSMOS3, "hidden_act": "relu2", "qk_norm_for_text": False, "use_und_k_norm_for_gen": True},
        (512, 384),
        lora="add_q_proj+add_k_proj+add_v_proj+to_add_out",
    ),
    "mage_flow": small(
        {
            "_class_name": "MageFlowTransformer2DModel",
            "hidden_size": 256,
            "num_heads": 8,
            "depth": 4,
            "context_in_dim": 512,
            "axes_dim": [8, 12, 12],
        },
        (1024, 768),
        lora=f"{QKV}+to_out.0+add_q_proj+add_k_proj+add_v_proj+to_add_out",
    ),
    "flux": small(
        {
            "_class_name": "FluxTransformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 4,
            "joint_attention_dim": 512,
            "pooled_projection_dim": 96,
            "guidance_embeds": True,
            "axes_dims_rope": [8, 12, 12],
        }
    ),
    "chroma": small(
        {
            "_class_name": "ChromaTransformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 4,
            "joint_attention_dim": 512,
            "axes_dims_rope": [8, 12, 12],
            "approximator_hidden_dim": 256,
            "approximator_layers": 2,
        }
    ),
    "hunyuan_video": small(
        {
            "_class_name": "HunyuanVideoTransformer3DModel",
            **HUNYUAN,
            "pooled_projection_dim": 96,
            "rope_axes_dim": [8, 12, 12],
        },
        (256, 192),
        17,
    ),
    "hunyuan_image": small(
        {
            "_class_name": "HunyuanImageTransformer2DModel",
            **HUNYUAN,
            "in_channels": 16,
            "out_channels": 16,
            "rope_axes_dim": [16, 16],
            "guidance_embeds": True,
        },
        (1024, 768),
    ),
    "framepack": small(
        {
            "_class_name": "HunyuanVideoFramepackTransformer3DModel",
            **HUNYUAN,
            "pooled_projection_dim": 96,
            "rope_axes_dim": [8, 12, 12],
            "has_image_proj": True,
            "image_proj_dim": 64,
            "has_clean_x_embedder": True,
        },
        (256, 192),
        17,
    ),
    "longcat_image": small(
        {
            "_class_name": "LongCatImageTransformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 4,
            "joint_attention_dim": 512,
            "axes_dims_rope": [8, 12, 12],
        }
    ),
    "flux2": small(
        {
            "_class_name": "Flux2Transformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 5,
            "joint_attention_dim": 512,
            "axes_dims_rope": [8, 8, 8, 8],
            "guidance_embeds": False,
        },
        (1024, 768),
        lora=QKV + "+to_qkv_mlp_proj+linear_in",
    ),
    "wan_vace": small(
        {
            "_class_name": "WanVACETransformer3DModel",
            **HEADS,
            "num_layers": 4,
            "ffn_dim": 704,
            "text_dim": 512,
            "vace_layers": [0, 2],
        },
        (256, 192),
        17,
    ),
    "skyreels_v2": small(
        {
            "_class_name": "SkyReelsV2Transformer3DModel",
            **HEADS,
            "num_layers": 4,
            "ffn_dim": 704,
            "text_dim": 512,
            "inject_sample_info": True,
        },
        (256, 192),
        17,
    ),
    "wan": small(
        {
            "_class_name": "WanTransformer3DModel",
            **HEADS,
            "num_layers": 4,
            "ffn_dim": 704,
            "text_dim": 512,
            "in_channels": 16,
            "out_channels": 16,
        },
        (320, 192),
        17,
    ),
    "cogview4": small(
        {
            "_class_name": "CogView4Transformer2DModel",
            "num_attention_heads": 8,
            "attention_head_dim": 40,
            "num_layers": 4,
            "text_embed_dim": 512,
            "time_embed_dim": 128,
            "condition_dim": 64,
        }
    ),
    "unet_2d": small(
        {
            "_class_name": "UNet2DModel",
            "block_out_channels": [64, 128, 128],
            "down_block_types": ["DownBlock2D", "AttnDownBlock2D", "DownBlock2D"],
            "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D"],
            "layers_per_block": 2,
        },
        (128, 96),
        text=0,
        lora="",
    ),
    "cogvideox": small(
        {
            "_class_name": "CogVideoXTransformer3DModel",
            **HEADS,
            "num_layers": 4,
            "text_embed_dim": 512,
            "sample_width": 40,
            "sample_height": 24,
            "sample_frames": 17,
            "max_text_seq_length": 96,
        },
        (320, 192),
        17,
    ),
    "cogvideox_rotary": small(
        {
            "_class_name": "CogVideoXTransformer3DModel",
            **HEADS,
            "num_layers": 4,
            "text_embed_dim": 512,
            "use_rotary_positional_embeddings": True,
        },
        (320, 192),
        17,
    ),
    "ernie_image": small(
        {
            "_class_name": "ErnieImageTransformer2DModel",
            "hidden_size": 256,
            "num_attention_heads": 8,
            "num_layers": 4,
            "ffn_hidden_size": 704,
            "text_in_dim": 512,
            "rope_axes_dim": [8, 12, 12],
        },
        (640, 512),
    ),
    "auraflow": small(
        {
            "_class_name": "AuraFlowTransformer2DModel",
            "num_attention_heads": 4,
            "attention_head_dim": 64,
            "caption_projection_dim": 256,
            "joint_attention_dim": 512,
            "num_mmdit_layers": 2,
            "num_single_dit_layers": 4,
        },
    ),
    "sd3": small(
        {
            "_class_name": "SD3Transformer2DModel",
            **HEADS,
            "num_layers": 4,
            "joint_attention_dim": 512,
            "caption_projection_dim": 256,
            "pooled_projection_dim": 96,
            "pos_embed_max_size": 64,
            "sample_size": 64,
        },
    ),
    "qwen_image": small(
        {"_class_name": "QwenImageTransformer2DModel", **HEADS, "num_layers": 4, "joint_attention_dim": 512,
         "axes_dims_rope": [8, 12, 12]},
    ),
    "pixart": small(
        {
            "_class_name": "PixArtTransformer2DModel",
            **HEADS,
            "num_layers": 4,
            "cross_attention_dim": 256,
            "caption_channels": 512,
            "sample_size": 64,
            "use_additional_conditions": False,
        },
    ),
    "sana": small(
        {
            "_class_name": "SanaTransformer2DModel",
            **HEADS,
            "num_layers": 4,
            "num_cross_attention_heads": 4,
            "cross_attention_head_dim": 64,
            "cross_attention_dim": 256,
            "caption_channels": 512,
        },
        (1024, 768),
    ),
    "kandinsky5": small(
        {
            "_class_name": "Kandinsky5Transformer3DModel",
            "in_visual_dim": 16,
            "out_visual_dim": 16,
            "in_text_dim": 512,
            "in_text_dim2": 96,
            "time_dim": 128,
            "model_dim": 256,
            "ff_dim": 704,
            "num_text_blocks": 2,
            "num_visual_blocks": 4,
            "axes_dims": [8, 12, 12],
        },
        (320, 192),
        17,
        lora="to_query+to_key+to_value",
    ),
    "longcat_video": small(
        {
            "_class_name": "LongCatVideoTransformer3DModel",
            "hidden_size": 256,
            "num_heads": 8,
            "depth": 4,
            "caption_channels": 512,
            "adaln_tembed_dim": 64,
        },
        (256, 192),
        17,
        lora="qkv+kv_linear",
    ),
    "ltx": small(
        {
            "_class_name": "LTXVideoTransformer3DModel",
            **HEADS,
            "num_layers": 4,
            "cross_attention_dim": 256,
            "caption_channels": 512,
        },
        (512, 384),
        25,
    ),
    "ltx2": small(
        {
            **LTX2,
            "caption_channels": 512,
            "rope_type": "split",
        },
        (512, 384),
        25,
    ),
    "ltx23": small(
        {
            **LTX2,
            "gated_attn": True,
            "cross_attn_mod": True,
            "audio_gated_attn": True,
            "audio_cross_attn_mod": True,
            "rope_type": "split",
            "use_prompt_embeddings": False,
            "perturbed_attn": True,
        },
        (512, 384),
        25,
    ),
    "krea2": small(
        {
            "_class_name": "Krea2Transformer2DModel",
            **HEADS,
            "num_layers": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 704,
            "text_hidden_dim": 128,
            "num_text_layers": 3,
            "text_num_attention_heads": 4,
            "text_num_key_value_heads": 4,
            "text_intermediate_size": 256,
            "axes_dims_rope": [8, 12, 12],
        },
    ),
    "ideogram4": small(
        {
            "_class_name": "Ideogram4Transformer2DModel",
            **HEADS,
            "num_layers": 4,
            "intermediate_size": 704,
            "adaln_dim": 64,
            "llm_features_dim": 512,
            "mrope_section": [4, 6, 6],
        },
        (768, 512),
    ),
    "controlnet": small(
        {
            "_class_name": "ControlNetModel",
            **UNET,
            "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
            "attention_head_dim": 8,
        },
        lora="",
    ),
    "controlnet_flux": small(
        {
            "_class_name": "FluxControlNetModel",
            **HEADS,
            "num_layers": 2,
            "num_single_layers": 1,
            "joint_attention_dim": 512,
            "pooled_projection_dim": 96,
            "guidance_embeds": True,
            "axes_dims_rope": [8, 12, 12],
        },
        lora="",
    ),
    "controlnet_sd3": small(
        {
            "_class_name": "SD3ControlNetModel",
            **HEADS,
            "num_layers": 3,
            "joint_attention_dim": 512,
            "caption_projection_dim": 256,
            "pooled_projection_dim": 96,
            "qk_norm": "rms_norm",
        },
        lora="",
    ),
    "ovis_image": small(
        {
            "_class_name": "OvisImageTransformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 4,
            "joint_attention_dim": 512,
            "axes_dims_rope": [8, 12, 12],
        }
    ),
    "prx": small(
        {
            "_class_name": "PRXTransformer2DModel",
            "hidden_size": 256,
            "num_heads": 8,
            "depth": 4,
            "context_in_dim": 512,
            "axes_dim": [16, 16],
        },
        lora="img_qkv_proj+txt_kv_proj",
    ),
    "controlnet_xl": small(
        {
            "_class_name": "ControlNetModel",
            **UNET,
            "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
            "attention_head_dim": [2, 4, 8],
            "transformer_layers_per_block": [1, 2, 4],
            "use_linear_projection": True,
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 64,
            "projection_class_embeddings_input_dim": 512,
        },
        (640, 512),
        lora="",
    ),
    "boogu_image": small(
        {
            "_class_name": "BooguImageTransformer2DModel",
            "hidden_size": 480,
            "num_layers": 6,
            "num_double_stream_layers": 2,
            "num_refiner_layers": 2,
            "num_attention_heads": 4,
            "num_kv_heads": 2,
            "instruction_feature_configs": {
                "instruction_feat_dim": 256,
                "reduce_type": "mean",
                "num_instruction_feat_layers": 1,
            },
        },
        (512, 512),
        text=40,
        lora="to_k+to_q+to_v+to_out.0",
    ),
}
