"""What the context and the libraries take, each stage in a process of its own. Units: bytes.

At each mark: what is in use, less what the allocator holds and what others use, is the context with the kernels that
were loaded. At the last mark, "end", all has been given back.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn

from .device import CudaDevice, Device

LOADINGS = ("LAZY", "EAGER")
"""Of CUDA_MODULE_LOADING."""

Mark = Callable[[str], None]


def matmul(device: torch.device, mark: Mark, dtype: torch.dtype = torch.float32, backward: bool = False) -> None:
    layer = nn.Linear(64, 64).to(device, dtype)
    out = layer(torch.randn(8, 64, device=device, dtype=dtype))
    mark("matmul")
    if backward:
        out.sum().backward()
        mark("matmul_backward")


def convolution(device: torch.device, mark: Mark, dtype: torch.dtype = torch.float32, backward: bool = False) -> None:
    layer = nn.Conv2d(16, 32, 3, padding=1).to(device, dtype)
    out = layer(torch.randn(4, 16, 32, 32, device=device, dtype=dtype))
    mark("convolution")
    if backward:
        out.sum().backward()
        mark("convolution_backward")


def batch_norm(device: torch.device, mark: Mark) -> None:
    convolution(device, mark, backward=True)
    layer = nn.BatchNorm2d(32).to(device)
    layer(torch.randn(4, 32, 32, 32, device=device, requires_grad=True)).sum().backward()
    mark("batch_norm")


def layer_norm(device: torch.device, mark: Mark) -> None:
    layer = nn.LayerNorm(64).to(device)
    layer(torch.randn(8, 64, device=device, requires_grad=True)).sum().backward()
    mark("layer_norm")


def attention(device: torch.device, mark: Mark) -> None:
    from .exporting import scaled_dot_product_attention

    query = torch.randn(2, 4, 64, 32, device=device, requires_grad=True)
    scaled_dot_product_attention(query, query, query).sum().backward()
    mark("attention")


STAGES: dict[str, Callable[[torch.device, Mark], None]] = {
    "context": lambda device, mark: None,
    "matmul": matmul,
    "matmul_backward": lambda device, mark: matmul(device, mark, backward=True),
    "convolution": convolution,
    "convolution_backward": lambda device, mark: convolution(device, mark, backward=True),
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "attention": attention,
    "bf16_matmul": lambda device, mark: matmul(device, mark, torch.bfloat16, backward=True),
    "bf16_convolution": lambda device, mark: convolution(device, mark, torch.bfloat16, backward=True),
}


def measure_stage(stage: str, device: Device) -> list[dict[str, object]]:
    """One row a mark of the stage; reserved_bytes: what the allocator holds before it is emptied."""
    rows: list[dict[str, object]] = []

    def mark(name: str) -> None:
        row: dict[str, object] = {"mark": name}
        if isinstance(device, CudaDevice):
            device.synchronize()
            figures = device.figures()
            row.update(context_bytes=figures["context"], reserved_bytes=figures["reserved"])
            row["allocated_bytes"] = torch.cuda.memory_allocated()
        rows.append(row)

    device.reset()
    mark("context")
    STAGES[stage](device.torch_device, mark)
    device.reset()
    mark("end")
    return rows
