"""What a program sets that changes its memory beside its tensors: libraries' choices, and the allocator's.

Output: a dictionary; a setting that is at PyTorch's default is left out.
"""

from __future__ import annotations

import os
from typing import Any, Union

import torch

from .pretended_cuda import Replacements

Setting = Union[bool, int, float, str]


class Settings:
    """Watches those that are functions; the others are read when the recording ends."""

    def __init__(self) -> None:
        self._seen: dict[str, Setting] = {}

    def install(self, replaced: Replacements) -> None:
        def set_fraction(fraction: float, device: object = None) -> None:
            self._seen["memory_fraction"] = float(fraction)

        def set_allocator(settings: str) -> None:
            self._seen["alloc_conf"] = str(settings)

        replaced.set(torch.cuda, "set_per_process_memory_fraction", set_fraction)
        if hasattr(torch.cuda.memory, "_set_allocator_settings"):
            replaced.set(torch.cuda.memory, "_set_allocator_settings", set_allocator)
        attention = getattr(torch.backends, "mha", None)  # Evaluation takes kernels of its own there, which have no shapes.
        if attention is not None:
            replaced.callback(attention.set_fastpath_enabled, attention.get_fastpath_enabled())
            attention.set_fastpath_enabled(False)
        for name in ("benchmark", "deterministic"):  # What the process had before is not the program's.
            before = getattr(torch.backends.cudnn, name)
            replaced.callback(setattr, torch.backends.cudnn, name, before)

    def compiles(self) -> None:
        """torch.compile compiles."""
        self._seen["compiled"] = True

    def captured(self) -> None:
        """A CUDA graph is captured."""
        self._seen["cuda_graphs"] = int(self._seen.get("cuda_graphs", 0)) + 1

    def seen(self) -> dict[str, Setting]:
        found: dict[str, Setting] = dict(self._seen)
        cudnn = torch.backends.cudnn
        if cudnn.benchmark:
            found["cudnn_benchmark"] = True
        if cudnn.deterministic or torch.are_deterministic_algorithms_enabled():
            found["deterministic"] = True
        if not cudnn.enabled:
            found["cudnn"] = False
        if torch.backends.cuda.matmul.allow_tf32:
            found["tf32"] = True
        # c10/core/AllocatorConfig.cpp of PyTorch 2.9 and later reads the first name, and the old one where it is not set.
        text = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        if text:
            found.setdefault("alloc_conf", text)
        return found
