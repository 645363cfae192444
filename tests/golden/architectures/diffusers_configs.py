"""Small configs of diffusers' models, as their config.json has them."""

from __future__ import annotations

from typing import Any

#: Pixels of a side, and tokens of a prompt, of diffusers' models.
IMAGE_SIDE = 256
TEXT_TOKENS = 77
UNET = {
    "_class_name": "UNet2DConditionModel",
    "in_channels": 4,
    "out_channels": 4,
    "block_out_channels": [128, 256],
    "layers_per_block": 2,
    "attention_head_dim": 4,
    "cross_attention_dim": 96,
    "norm_num_groups": 32,
    "transformer_layers_per_block": 1,
    "use_linear_projection": False,
}

DIFFUSERS: dict[str, dict[str, Any]] = {
    "unet": {**UNET, "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]},
    "unet_xl": {
        **UNET,
        "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D"],
        "up_block_types": ["CrossAttnUpBlock2D", "UpBlock2D"],
        "transformer_layers_per_block": 2,
        "use_linear_projection": True,
        "addition_embed_type": "text_time",
        "projection_class_embeddings_input_dim": 320,
    },
    "unet_2d": {
        "_class_name": "UNet2DModel",
        "in_channels": 3,
        "out_channels": 3,
        "block_out_channels": [64, 128],
        "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
        "layers_per_block": 2,
        "attention_head_dim": 8,
        "norm_num_groups": 32,
    },
    "autoencoder_kl": {
        "_class_name": "AutoencoderKL",
        "block_out_channels": [64, 128],
        "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
        "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"],
        "layers_per_block": 1,
        "latent_channels": 4,
        "norm_num_groups": 32,
    },
}
