"""Configs of diffusers' classes of which trees are printed: published sizes, of few layers, by the golden's name."""

from __future__ import annotations

from typing import Any

SINGLE = {"num_layers": 2, "num_single_layers": 3}
GUIDED = {"guidance_embeds": True}
DOWN = {"down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "block_out_channels": [320, 640]}
ENCODER = {
    "down_block_types": ["DownEncoderBlock2D"] * 4,
    "up_block_types": ["UpDecoderBlock2D"] * 4,
    "block_out_channels": [128, 256, 512, 512],
    "layers_per_block": 2,
}
DEEP = {
    "encoder_block_types": ["ResBlock"] * 3 + ["EfficientViTBlock"] * 3,
    "decoder_block_types": ["ResBlock"] * 3 + ["EfficientViTBlock"] * 3,
    "encoder_layers_per_block": [2, 2, 2, 3, 3, 3],
    "decoder_layers_per_block": [3] * 6,
    "encoder_qkv_multiscales": [[], [], [], [5], [5], [5]],
    "decoder_qkv_multiscales": [[], [], [], [5], [5], [5]],
}
# LTX-Video 0.9.1 and 0.9.5.
LTX_091 = {
    "decoder_block_out_channels": [256, 512, 1024],
    "decoder_layers_per_block": [5, 6, 7, 8],
    "decoder_spatio_temporal_scaling": [True] * 3,
    "decoder_inject_noise": [True, True, True, False],
    "upsample_residual": [True] * 3,
    "upsample_factor": [2, 2, 2],
    "timestep_conditioning": True,
}
LTX_095 = {
    **LTX_091,
    "block_out_channels": [128, 256, 512, 1024, 2048],
    "down_block_types": ["LTXVideo095DownBlock3D"] * 4,
    "layers_per_block": [4, 6, 6, 2, 2],
    "decoder_layers_per_block": [5, 5, 5, 5],
    "spatio_temporal_scaling": [True] * 4,
    "decoder_inject_noise": [False] * 4,
    "downsample_type": ["spatial", "temporal", "spatiotemporal", "spatiotemporal"],
}

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "flux2": ("Flux2Transformer2DModel", SINGLE),
    "flux2_klein": (
        "Flux2Transformer2DModel",
        {**SINGLE, "num_attention_heads": 24, "joint_attention_dim": 7680, "guidance_embeds": False},
    ),
    "flux": ("FluxTransformer2DModel", {**SINGLE, **GUIDED}),
    "chroma": ("ChromaTransformer2DModel", SINGLE),
    "longcat_image": ("LongCatImageTransformer2DModel", SINGLE),
    "ovis_image": ("OvisImageTransformer2DModel", SINGLE),
    "controlnet_flux": ("FluxControlNetModel", {**SINGLE, **GUIDED}),
    "hunyuan_video": ("HunyuanVideoTransformer3DModel", SINGLE),
    "framepack": (
        "HunyuanVideoFramepackTransformer3DModel",
        {**SINGLE, "has_image_proj": True, "has_clean_x_embedder": True},
    ),
    "hunyuan_video15": ("HunyuanVideo15Transformer3DModel", {"num_layers": 2}),
    "hunyuan_image": ("HunyuanImageTransformer2DModel", {**SINGLE, "text_embed_2_dim": 1472}),
    "hunyuan_image_distilled": ("HunyuanImageTransformer2DModel", {**SINGLE, **GUIDED, "use_meanflow": True}),
    "ltx": ("LTXVideoTransformer3DModel", {"num_layers": 2}),
    "ltx_13b": (
        "LTXVideoTransformer3DModel",
        {"num_layers": 2, "attention_head_dim": 128, "cross_attention_dim": 4096},
    ),
    "ltx2": ("LTX2VideoTransformer3DModel", {"num_layers": 2, "rope_type": "split"}),
    "ltx23": (
        "LTX2VideoTransformer3DModel",
        {
            "num_layers": 2,
            "gated_attn": True,
            "cross_attn_mod": True,
            "audio_gated_attn": True,
            "audio_cross_attn_mod": True,
            "use_prompt_embeddings": False,
            "perturbed_attn": True,
            "rope_type": "split",
        },
    ),
    "cogvideox_2b": ("CogVideoXTransformer3DModel", {"num_layers": 2}),
    "cogvideox_5b": (
        "CogVideoXTransformer3DModel",
        {"num_layers": 2, "num_attention_heads": 48, "use_rotary_positional_embeddings": True},
    ),
    "cogvideox_15": (
        "CogVideoXTransformer3DModel",
        {
            "num_layers": 2,
            "num_attention_heads": 48,
            "use_rotary_positional_embeddings": True,
            "patch_size_t": 2,
            "patch_bias": False,
            "ofs_embed_dim": 512,
        },
    ),
    "mochi": ("MochiTransformer3DModel", {"num_layers": 3}),
    "hidream": (
        "HiDreamImageTransformer2DModel",
        {
            "patch_size": 2,
            "in_channels": 16,
            "caption_channels": [4096, 4096],
            "text_emb_dim": 2048,
            "num_routed_experts": 4,
            "num_activated_experts": 2,
            "axes_dims_rope": [64, 32, 32],
            "max_resolution": [128, 128],
            "llama_layers": [0, 1, 2, 3, 4],
            **SINGLE,
        },
    ),
    "sana": ("SanaTransformer2DModel", {"num_layers": 2}),
    "sana_sprint": (
        "SanaTransformer2DModel",
        {"num_layers": 2, "guidance_embeds": True, "qk_norm": "rms_norm_across_heads"},
    ),
    "sana_video": ("SanaVideoTransformer3DModel", {"num_layers": 2}),
    "lumina2": ("Lumina2Transformer2DModel", {"num_layers": 3}),
    "kandinsky5": (
        "Kandinsky5Transformer3DModel",
        {"in_visual_dim": 16, "out_visual_dim": 16, "num_visual_blocks": 2, "visual_cond": True},
    ),
    "kandinsky5_lite": (
        "Kandinsky5Transformer3DModel",
        {
            "in_visual_dim": 16,
            "out_visual_dim": 16,
            "num_visual_blocks": 2,
            "model_dim": 1792,
            "ff_dim": 7168,
            "visual_cond": True,
            "axes_dims": [16, 24, 24],
        },
    ),
    "auraflow": (
        "AuraFlowTransformer2DModel",
        {"num_mmdit_layers": 2, "num_single_dit_layers": 3, "pos_embed_max_size": 9216},
    ),
    "cosmos": ("CosmosTransformer3DModel", {"num_layers": 2}),
    "cosmos2": ("CosmosTransformer3DModel", {"num_layers": 2, "num_attention_heads": 16, "extra_pos_embed_type": None}),
    "cosmos3": ("Cosmos3OmniTransformer", {"num_hidden_layers": 2}),
    "cogview4": ("CogView4Transformer2DModel", {"num_layers": 2}),
    "ernie_image": ("ErnieImageTransformer2DModel", {"num_layers": 2}),
    "ideogram4": ("Ideogram4Transformer2DModel", {"num_layers": 2}),
    "krea2": ("Krea2Transformer2DModel", {"num_layers": 2}),
    "omnigen": (
        "OmniGenTransformer2DModel",
        {"num_layers": 2, "rope_scaling": {"long_factor": [1.0] * 48, "short_factor": [1.0] * 48, "type": "su"}},
    ),
    "prx": ("PRXTransformer2DModel", {"depth": 2}),
    "ace_step": ("AceStepTransformer1DModel", {"num_hidden_layers": 2}),
    "qwen_image": ("QwenImageTransformer2DModel", {"num_layers": 2}),
    "z_image": ("ZImageTransformer2DModel", {"n_layers": 2}),
    "sd3": ("SD3Transformer2DModel", {"num_layers": 3, "pos_embed_max_size": 192, "caption_projection_dim": 1152,
                                      "in_channels": 16, "out_channels": 16}),
    "sd35": (
        "SD3Transformer2DModel",
        {
            "num_layers": 3,
            "num_attention_heads": 24,
            "caption_projection_dim": 1536,
            "pos_embed_max_size": 384,
            "qk_norm": "rms_norm",
            "dual_attention_layers": [0, 1],
        },
    ),
    "wan": ("WanTransformer3DModel", {"num_layers": 2}),
    "wan_image": ("WanTransformer3DModel", {"num_layers": 2, "image_dim": 1280, "added_kv_proj_dim": 5120,
                                            "in_channels": 36, "out_channels": 16}),
    "wan_vace": ("WanVACETransformer3DModel", {"num_layers": 4, "vace_layers": [0, 2]}),
    "skyreels_v2": ("SkyReelsV2Transformer3DModel", {"num_layers": 2}),
    "chronoedit": ("ChronoEditTransformer3DModel", {"num_layers": 2}),
    "pixart": ("PixArtTransformer2DModel", {"num_layers": 2, "caption_channels": 4096}),
    "controlnet": ("ControlNetModel", {**DOWN, "cross_attention_dim": 768}),
    "controlnet_xl": (
        "ControlNetModel",
        {
            "block_out_channels": [320, 640, 1280],
            "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
            "cross_attention_dim": 2048,
            "attention_head_dim": [5, 10, 20],
            "transformer_layers_per_block": [1, 2, 10],
            "use_linear_projection": True,
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 256,
            "projection_class_embeddings_input_dim": 2816,
        },
    ),
    "unet": ("UNet2DConditionModel", {"cross_attention_dim": 768}),
    "unet_2d": ("UNet2DModel", {}),
    "controlnet_sd3": (
        "SD3ControlNetModel",
        {
            "num_layers": 3,
            "num_attention_heads": 24,
            "caption_projection_dim": 1536,
            "qk_norm": "rms_norm",
            "pos_embed_max_size": 192,
        },
    ),
    "autoencoder_kl": ("AutoencoderKL", ENCODER),
    "autoencoder_kl_flux": (
        "AutoencoderKL",
        {**ENCODER, "latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False},
    ),
    "autoencoder_kl_flux2": ("AutoencoderKLFlux2", {**ENCODER, "latent_channels": 32}),
    "autoencoder_kl_cogvideox": (
        "AutoencoderKLCogVideoX",
        {
            "down_block_types": ["CogVideoXDownBlock3D"] * 4,
            "up_block_types": ["CogVideoXUpBlock3D"] * 4,
            "block_out_channels": [128, 256, 256, 512],
        },
    ),
    "autoencoder_kl_hunyuan_video": ("AutoencoderKLHunyuanVideo", {}),
    "autoencoder_kl_hunyuan_image": (
        "AutoencoderKLHunyuanImage",
        {
            "in_channels": 3,
            "out_channels": 3,
            "latent_channels": 64,
            "block_out_channels": [128, 256, 512, 512, 1024, 1024],
            "layers_per_block": 2,
            "spatial_compression_ratio": 32,
            "sample_size": 384,
        },
    ),
    "autoencoder_kl_hunyuan_video15": ("AutoencoderKLHunyuanVideo15", {}),
    "autoencoder_kl_hunyuan_refiner": ("AutoencoderKLHunyuanImageRefiner", {}),
    "autoencoder_kl_mochi": ("AutoencoderKLMochi", {}),
    "autoencoder_kl_wan": ("AutoencoderKLWan", {}),
    "autoencoder_kl_wan22": (
        "AutoencoderKLWan",
        {
            "base_dim": 160,
            "decoder_base_dim": 256,
            "z_dim": 48,
            "is_residual": True,
            "in_channels": 12,
            "out_channels": 12,
            "patch_size": 2,
        },
    ),
    "autoencoder_kl_qwen_image": ("AutoencoderKLQwenImage", {}),
    "autoencoder_kl_ltx": ("AutoencoderKLLTXVideo", {}),
    "autoencoder_kl_ltx_091": ("AutoencoderKLLTXVideo", LTX_091),
    "autoencoder_kl_ltx_095": ("AutoencoderKLLTXVideo", LTX_095),
    "autoencoder_kl_ltx2": ("AutoencoderKLLTX2Video", {}),
    "autoencoder_dc": (
        "AutoencoderDC",
        {**DEEP, "upsample_block_type": "interpolate", "downsample_block_type": "Conv"},
    ),
}
