"""Draws single convolutions for the workspace census. Needs no PyTorch. Units: bytes, pixels, channels."""

from __future__ import annotations

import random
from typing import Any

CHANNELS = (
    1, 3, 16, 24, 32, 40, 41, 48, 64, 72, 96, 100, 101, 112, 113, 128, 129, 160, 192, 206, 256, 384, 450, 512, 640, 777,
    1024, 1536,
)  # fmt: skip
SIDES = (4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224)
BATCHES = (1, 2, 8, 16, 32, 64, 128)
MODES = ("fp32",) * 6 + ("fp32-strict", "fp16", "bf16", "fp32-nhwc", "fp16-nhwc", "fp32-benchmark")
"""fp32 allows TF32, as PyTorch does; nhwc: channels last; benchmark: cuDNN tries its algorithms."""
MOST_BYTES = 24 * 2**30
"""Of input and output together."""
MOST_WORK = 2e13
"""Floating-point operations of one call."""

Shape = dict[str, Any]


def draw_convolution(seed: int, index: int) -> Shape:
    """Convolution `index` of a seed's; needs no GPU."""
    draw = random.Random(f"convolution:{seed}:{index}")
    while True:
        channels, out = draw.choice(CHANNELS), draw.choice(CHANNELS)
        depthwise = draw.random() < 0.12
        shape: Shape = {
            "mode": draw.choice(MODES),
            "in_channels": channels,
            "out_channels": channels if depthwise else out,
            "kernel": draw.choice((1, 3, 3, 3, 5, 7)),
            "stride": draw.choice((1, 1, 2)),
            "side": draw.choice(SIDES),
            "batch": draw.choice(BATCHES),
            "groups": channels if depthwise else 1,
        }
        if size_of(shape) <= MOST_BYTES and work_of(shape) <= MOST_WORK:
            return shape


def size_of(shape: Shape) -> int:
    """Input's and output's bytes at most."""
    return 4 * (shape["in_channels"] + shape["out_channels"]) * shape["side"] ** 2 * shape["batch"]


def work_of(shape: Shape) -> float:
    fan_in = shape["kernel"] ** 2 * shape["in_channels"] // shape["groups"]
    return 2.0 * fan_in * shape["out_channels"] * (shape["side"] // shape["stride"]) ** 2 * shape["batch"]


def small(shape: Shape) -> Shape:
    """For dry runs."""
    return {**shape, "mode": "fp32", "side": min(shape["side"], 8), "batch": 1}
