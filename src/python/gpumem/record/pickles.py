"""pickle, copy and torch.save of tensors without values: checkpoints and snapshots inside of a recording.

A fake tensor is written as its shape and type. Read again inside of a recording it is one without values, and zeros elsewhere.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .pretended_cuda import Replacements


def _again(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: str, learned: bool
) -> torch.Tensor:
    recorded = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    place = device if recorded else "cpu"
    if recorded:
        return torch.empty_strided(shape, strides, dtype=dtype, device=place).requires_grad_(learned)
    return torch.zeros(shape, dtype=dtype, device=place).requires_grad_(learned)


def _reduced(tensor: Any, _protocol: int) -> Any:
    plain = tensor.detach() if tensor.requires_grad else tensor
    strides = tuple(plain.stride()) if plain.layout == torch.strided else ()
    arguments = (tuple(plain.shape), strides, plain.dtype, str(plain.device), tensor.requires_grad and tensor.is_leaf)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter, (_Unread(arguments[:4]), tensor.requires_grad)
    return _again, arguments


class _Unread:
    """What a parameter is made of."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return _again, (*self.arguments, False)


def install_pickles(replaced: Replacements) -> None:
    replaced.set(FakeTensor, "__reduce_ex__", _reduced)
    serialization = torch.serialization
    safe = getattr(serialization, "add_safe_globals", None)
    if safe is not None:  # torch.load(weights_only=True)
        before = serialization.get_safe_globals()
        safe([_again, torch.nn.Parameter])
        replaced.callback(_restore, before)


def _restore(before: list[Any]) -> None:
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(before)
