"""A forward that repeats an earlier one is not run again: of the 400 that an evaluation makes, the first ones are recorded.

A forward of an outermost module without gradients is an earlier one's repetition if it is of the same step, has the same
arguments (shapes, types, numbers), and the earlier one asked for no value and left nothing but its results on the GPU. Its
results are made, and its calls are noted, as they take time. It is run all the same at the 1st, 2nd, 4th, 8th ... time that
there are more storages than before: a loop that gathers results has its peak near its end.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from .pretended_cuda import Stream
from .run import Call
from .shortcuts import PLAIN, Unknown, described
from .storages import Storages, tensors_in

def _tells_others(module: nn.Module) -> bool:
    """A hook takes what the forward makes."""
    return any(each._forward_hooks or each._forward_pre_hooks for each in module.modules())


class _Piece(NamedTuple):
    """A result: the number of its storage among those of the results, and how it lies there."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class _Results:
    """How to make the results again."""

    def __init__(self, leaves: list[Any], structure: Any, storages: list[tuple[torch.dtype, int]]) -> None:
        self._leaves, self._structure, self._storages = leaves, structure, storages

    def made(self) -> Any:
        bases = [torch.empty(elements, dtype=dtype, device="cuda") for dtype, elements in self._storages]
        leaves = [
            bases[each.storage].as_strided(each.shape, each.strides, each.offset) if isinstance(each, _Piece) else each
            for each in self._leaves
        ]
        return pytree.tree_unflatten(leaves, self._structure)


class _Kind:
    """Forwards that repeat each other. results: of the last one that ran; None: the next one runs as well."""

    def __init__(self) -> None:
        self.times = 0
        self.alive = 0
        self.results: _Results | None = None
        self.calls: list[Call] = []

    def runs(self, alive: int) -> bool:
        grown = alive > self.alive and self.times & (self.times - 1) == 0
        return self.results is None or grown


class Repeats:
    """asked: how often a value was asked for, so far. step: which it is, and whether one has trained. calls: all of the run."""

    def __init__(
        self, storages: Storages, calls: list[Call], asked: Callable[[], int], step: Callable[[], tuple[int, bool]]
    ) -> None:
        self.left_out = 0
        self._storages, self._calls, self._asked, self._step = storages, calls, asked, step
        self._kinds: weakref.WeakKeyDictionary[nn.Module, dict[Hashable, _Kind]] = weakref.WeakKeyDictionary()

    def forward(
        self, module: nn.Module, run: Callable[[], Any], begins: Callable[[], None], args: Any, kwargs: Any
    ) -> Any:
        """Of an outermost module. begins: is called where run() would say that a forward begins."""
        kind = self._kind(module, args, kwargs)
        if kind is None:
            return run()
        kind.times += 1
        if not kind.runs(self._storages.alive):
            self.left_out += 1
            begins()
            if self._step()[1]:
                self._calls.extend(kind.calls)
            assert kind.results is not None
            return kind.results.made()
        kind.results, kind.alive = None, self._storages.alive
        made_before, calls_before, asked_before = self._storages.count, len(self._calls), self._asked()
        out = run()
        if self._asked() == asked_before:
            kind.results = self._results(out, made_before)
            kind.calls = self._calls[calls_before:]
        return out

    def _kind(self, module: nn.Module, args: Any, kwargs: Any) -> _Kind | None:
        """None: it is not known what the forward depends on, or it is for a backward."""
        trains = torch.is_grad_enabled()
        if trains and any(each.requires_grad for each in tensors_in((args, kwargs))):
            return None
        if trains and any(each.requires_grad for each in module.parameters()):
            return None
        if _tells_others(module):
            return None
        try:
            arguments = described((args, kwargs))
        except Unknown:
            return None
        autocast = torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype()
        types = frozenset((each.dtype, each.device.type) for each in module.parameters())
        stream = Stream.current[-1].number
        key = (arguments, module.training, autocast, types, stream, self._step()[0])
        return self._kinds.setdefault(module, {}).setdefault(key, _Kind())

    def _results(self, out: Any, made_before: int) -> _Results | None:
        """None: they are not all that the forward left, or are more than tensors on the GPU and numbers."""
        leaves, structure = pytree.tree_flatten(out)
        numbers: dict[int, int] = {}  # By the storage's number among all: among those of the results.
        storages: list[tuple[torch.dtype, int]] = []
        pieces: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, PLAIN):
                pieces.append(leaf)
                continue
            number = self._storages.number_of(leaf) if type(leaf) is FakeTensor and not leaf.requires_grad else -1
            if number < made_before:  # An argument, a parameter, or what is not on the GPU.
                return None
            if number not in numbers:
                numbers[number] = len(numbers)
                storages.append((leaf.dtype, leaf.untyped_storage().nbytes() // leaf.element_size()))
            if storages[numbers[number]][0] != leaf.dtype:
                return None
            place = numbers[number]
            pieces.append(_Piece(place, tuple(leaf.shape), tuple(leaf.stride()), int(leaf.storage_offset())))
        if self._storages.alive_since(made_before) != len(numbers):
            return None
        return _Results(pieces, structure, storages)
