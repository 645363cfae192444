"""More small configs, as models_small.py has them."""

from __future__ import annotations

from typing import Any

from models_small import HEADS, QKV, small

MORE: dict[str, dict[str, Any]] = {
    "bria": small(
        {
            "_class_name": "BriaTransformer2DModel",
            **HEADS,
            "num_layers": 3,
            "num_single_layers": 4,
            "joint_attention_dim": 512,
            "axes_dims_rope": [8, 12, 12],
        }
    ),
    "dit": small(
        {
            "_class_name": "DiTTransformer2DModel",
            **HEADS,
            "num_layers": 4,
            "sample_size": 64,
            "out_channels": 8,
            "num_embeds_ada_norm": 100,
        },
        (512, 512),
        text=1,
        lora=QKV,
    ),
}
