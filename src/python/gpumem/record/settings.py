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

        def capture(*_arguments: object, **_options: object) -> None:
            self._seen["cuda_graphs"] = int(self._seen.get("cuda_graphs", 0)) + 1

        replaced.set(torch.cuda, "set_per_process_memory_fraction", set_fraction)
        if hasattr(torch.cuda.memory, "_set_allocator_settings"):
            replaced.set(torch.cuda.memory, "_set_allocator_settings", set_allocator)
        replaced.set(torch.cuda, "CUDAGraph", _graph_class(capture))
        replaced.set(torch.cuda, "graph", _Capture)
        for name in ("benchmark", "deterministic"):  # What the process had before is not the program's.
            before = getattr(torch.backends.cudnn, name)
            replaced.callback(setattr, torch.backends.cudnn, name, before)

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
        text = os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        if text:
            found.setdefault("alloc_conf", text)
        return found


def _graph_class(capture: Any) -> type:
    class Graph:
        """torch.cuda.CUDAGraph: what is captured runs once, as it is recorded; to replay it allocates nothing."""

        capture_begin = staticmethod(capture)

        def capture_end(self) -> None:
            pass

        def replay(self) -> None:
            pass

        def reset(self) -> None:
            pass

        def pool(self) -> tuple[int, int]:
            return (0, 1)

    return Graph


class _Capture:
    """torch.cuda.graph(...)."""

    def __init__(self, graph: Any, *_arguments: object, **_options: object) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *_error: object) -> None:
        self._graph.capture_end()
