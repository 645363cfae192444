"""Small configs of models that read text and images, as config.json has them."""

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
}

#: Batch and tokens of each run, which hold those of one image of 1024 x 768 pixels.
SIZES_WITH_IMAGES = {"ernie4_5_vl_moe": ((2, 1200), (3, 1100))}
