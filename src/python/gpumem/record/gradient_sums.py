"""Sums of two gradients in the backward.

Where a tensor is used twice, autograd's engine adds the two gradients: in place if one of them is dense and nothing else
holds it (can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp), but never for a subclass of Tensor, which a fake
tensor is. So the recorder adds in place where the engine would. Whether something else holds a gradient is told by its counts
of references; what they are for one that the engine alone holds is measured at the start.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import record_error
from .expressions import dense_order
from .hooks import pretended_accelerator
from .pretended_cuda import Replacements

_AFTER_TABLE = 8  # c10::intrusive_ptr_target: a pointer to the table of functions, then the count, in its low 32 bits.


def _references(held: Any) -> int:
    """How often C++ holds a tensor or a storage."""
    address: int = held._cdata + _AFTER_TABLE
    return ctypes.c_uint32.from_address(address).value


def _is_sum(func: Any, kwargs: Any) -> bool:
    in_backward = torch._C._current_graph_task_id() != -1
    return bool(in_backward and func is torch.ops.aten.add.Tensor and not kwargs)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Without gaps and overlaps, in some order of its axes."""
    return dense_order(tuple(tensor.shape), tuple(tensor.stride())) is not None


class _Counts(TorchDispatchMode):  # type: ignore[misc]
    """Notes the references of what the engine adds."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _is_sum(func, kwargs):
            for each in args:
                self.seen.append(_counts_of(each))
        return func(*args, **kwargs)


def _small_backward() -> None:
    x = torch.empty(4, device="cuda", requires_grad=True)
    y = x * 1.0
    ((y * 2.0) + (y * 3.0)).sum().backward()


def _counts_of(tensor: torch.Tensor) -> tuple[int, int]:
    return _references(tensor.untyped_storage()), _references(tensor)


class GradientSums:
    """Decides which sums are in place. made, made_in_place: how many there were."""

    def __init__(self) -> None:
        self.made = self.made_in_place = 0
        self._storage = self._tensor = 0

    def learn_counts(self, replaced: Replacements) -> None:
        """Runs a small backward of fake tensors in which the engine adds two gradients that only it holds. It fails where
        PyTorch wants an accelerator, which it then gets."""
        with _Counts() as counts:
            try:
                _small_backward()
            except RuntimeError:
                replaced.enter_context(pretended_accelerator())
                try:
                    _small_backward()
                except RuntimeError as error:
                    raise record_error(
                        f"autograd does not run on the pretended GPU ({error})",
                        "record before any backward of the process, or in one of its own: "
                        "python3 -m gpumem.record script.py",
                    ) from error
        if counts.seen:
            self._storage = min(storage for storage, _ in counts.seen)
            self._tensor = min(tensor for _, tensor in counts.seen)

    def in_place(self, func: Any, args: Any, kwargs: Any, recomputes: bool) -> torch.Tensor | None:
        """The sum, if the operator is the engine's and is made in place."""
        if recomputes or not _is_sum(func, kwargs) or len(args) != 2:
            return None
        first, second = args
        if not isinstance(first, FakeTensor) or not isinstance(second, FakeTensor):
            return None
        self.made += 1
        for into, other in ((first, second), (second, first)):
            if type(into) is FakeTensor and into.shape == other.shape and into.dtype == other.dtype:
                # `into` and the loop's tuple count in Python only: C++ counts each tensor that Python holds once.
                if self._held_once(into):
                    self.made_in_place += 1
                    into.add_(other)
                    return into
        return None

    def _held_once(self, tensor: torch.Tensor) -> bool:
        storage, whole = _counts_of(tensor)
        return _is_dense(tensor) and storage <= self._storage and whole <= self._tensor
