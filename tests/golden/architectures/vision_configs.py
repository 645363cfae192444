"""Small configs of models that read text and images, and of one that speaks, as config.json has them."""

from __future__ import annotations

from typing import Any

DECODER = {
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "intermediate_size": 704,
    "hidden_act": "silu",
}

VISION: dict[str, dict[str, Any]] = {
    "ernie_vl": {
        "model_type": "ernie4_5_vl_moe",
        "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
        "transformers_version": "5.5",
        "text_config": {
            **DECODER,
            "num_key_value_heads": 2,
            "moe_num_experts": 8,
            "moe_k": 2,
            "moe_intermediate_size": [128, 64],
            "moe_num_shared_experts": 2,
        },
        "vision_config": {"depth": 2, "hidden_size": 64, "num_heads": 2, "intermediate_size": 256},
    },
    "florence2": {
        "model_type": "florence2",
        "architectures": ["Florence2ForConditionalGeneration"],
        "transformers_version": "4.56",
        "text_config": {
            "model_type": "bart",
            "vocab_size": 1000,
            "d_model": 256,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 1024,
            "decoder_ffn_dim": 1024,
            "max_position_embeddings": 1024,
            "dropout": 0.0,
        },
        "vision_config": {
            "embed_dim": [32, 64, 96, 128],
            "num_heads": [2, 2, 3, 4],
            "num_groups": [2, 2, 3, 4],
            "depths": [1, 1, 2, 1],
            "projection_dim": 256,
            "window_size": 12,
            "drop_path_rate": 0.1,
        },
    },
    "ovis2": {
        "model_type": "ovis2",
        "architectures": ["Ovis2ForConditionalGeneration"],
        "transformers_version": "4.56",
        "text_config": {"model_type": "qwen2", **DECODER, "num_key_value_heads": 2},
        "vision_config": {
            "hidden_size": 128,
            "intermediate_size": 352,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 448,
            "vocab_size": 2000,
            "hidden_stride": 2,
        },
    },
    "minicpmv": {
        "model_type": "minicpmv",
        "architectures": ["MiniCPMV"],
        "transformers_version": "4.56",
        **DECODER,
        "num_key_value_heads": 2,
        "version": 2.6,
        "query_num": 64,
        "vision_config": {
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 980,
            "patch_size": 14,
        },
    },
    "dots_ocr": {
        "model_type": "dots_ocr",
        "architectures": ["DotsOCRForCausalLM"],
        "transformers_version": "4.56",
        **DECODER,
        "num_key_value_heads": 2,
        "vision_config": {
            "embed_dim": 128,
            "intermediate_size": 352,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
        },
    },
    "csm": {
        "model_type": "csm",
        "architectures": ["CsmForConditionalGeneration"],
        "transformers_version": "5.5",
        **{key: of for key, of in DECODER.items() if key != "vocab_size"},
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 300,
        "text_vocab_size": 1000,
        "num_codebooks": 8,
        "depth_decoder_config": {
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "vocab_size": 300,
            "num_codebooks": 8,
            "backbone_hidden_size": 256,
            "hidden_act": "silu",
        },
        "codec_config": {
            "num_filters": 8,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 1,
            "head_dim": 8,
            "upsample_groups": 64,
            "vector_quantization_hidden_dimension": 32,
            "codebook_dim": 32,
            "codebook_size": 64,
            "num_quantizers": 4,
        },
    },
}

#: Batch and tokens of each run, which hold those of one image of 1024 x 768 pixels.
SIZES_WITH_IMAGES = {
    "ernie4_5_vl_moe": ((2, 1200), (3, 1100)),
    "florence2": ((2, 800), (3, 700)),
    "ovis2": ((2, 2048), (3, 1900)),
    "minicpmv": ((2, 1024), (3, 900)),
    "dots_ocr": ((2, 1200), (3, 1100)),
}

#: Rows and their sizes that the processors make of it.
PIXELS = {
    "ernie4_5_vl_moe": (4 * 37 * 27, 3 * 14 * 14),
    "florence2": (1, 3, 768, 768),
    "ovis2": (7, 3, 448, 448),
    "minicpmv": (5, 3, 14, 37 * 28 * 14),
    "dots_ocr": (54 * 74, 3, 14, 14),
}
