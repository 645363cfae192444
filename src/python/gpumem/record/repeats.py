"""A forward that repeats an earlier one is not run again: of the 400 that an evaluation makes, the first ones are recorded.

A forward of an outermost module without gradients repeats an earlier one if it is of the same step, has the same arguments
(shapes, types, numbers) and finds its module in the same state, and if the earlier one asked for no value and left nothing but
its results. Where it is in doubt, the forward runs. If it does not run, its results are made without values. After the first
backward its calls are noted too, for the time that they take. At the 1st, 2nd, 4th, 8th ... time it runs all the same if more
bytes are alive than before: a loop that gathers results has its peak near its end.
"""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from .known_values import KnownValues
from .pretended_cuda import Stream
from .run import Call
from .shortcuts import PLAIN, Unknown, described
from .storages import Storages, form_of, tensors_in

#: Of a module in a step. A module that counts its forwards has another state each time.
_MOST_KINDS = 256
_MOST_ENTRIES = 64  # Of a list, or a tensor whose values are known: of larger ones the length and the version count.
_LISTS = (list, tuple, dict, set, collections.deque)
_OF_MODULES = ("_parameters", "_buffers", "_modules")


def _tells_others(module: nn.Module) -> bool:
    """A hook takes what the forward makes."""
    return any(each._forward_hooks or each._forward_pre_hooks for each in module.modules())


def _version(tensor: torch.Tensor) -> int:
    version: int = -1 if tensor.is_inference() else tensor._version
    return version


def _notes(tensor: torch.Tensor) -> frozenset[str]:
    """What the recorder knows of a tensor's values. How masks part it is noted wherever it is compared."""
    return frozenset(each for each in vars(tensor) if each.startswith("_gpumem_")) - {"_gpumem_parts"}


class _Piece(NamedTuple):
    """A result: the number of its storage among those of the results, and how it lies there."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class _Base(NamedTuple):
    """A tensor that has a whole storage of the results: the first result in it, if that fills it."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _base_of(first: torch.Tensor) -> _Base:
    shape, strides = tuple(first.shape), tuple(first.stride())
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if first.numel() else 0
    elements = first.untyped_storage().nbytes() // first.element_size()
    if first.storage_offset() or reach != elements:
        return _Base(first.dtype, (elements,), (1,))
    return _Base(first.dtype, shape, strides)


class _Results:
    """How to make the results again."""

    def __init__(self, leaves: list[Any], structure: Any, bases: list[_Base]) -> None:
        self._leaves, self._structure, self._bases = leaves, structure, bases

    def made(self) -> Any:
        bases = [torch.empty_strided(each.shape, each.strides, dtype=each.dtype, device="cuda") for each in self._bases]
        leaves = [self._leaf(each, bases) if isinstance(each, _Piece) else each for each in self._leaves]
        return pytree.tree_unflatten(leaves, self._structure)

    def _leaf(self, piece: _Piece, bases: list[torch.Tensor]) -> torch.Tensor:
        base = self._bases[piece.storage]
        if (piece.shape, piece.strides, piece.offset) == (base.shape, base.strides, 0):
            return bases[piece.storage]
        # Autograd refuses to write into a view that was made without gradients.
        return bases[piece.storage].as_strided(piece.shape, piece.strides, piece.offset).detach()


class _Kind:
    """Forwards that repeat each other. results: of the last one that ran, if the next one need not run."""

    def __init__(self) -> None:
        self.times = 0
        self.bytes_alive = 0
        self.results: _Results | None = None
        self.calls: list[Call] = []

    def runs(self, bytes_alive: int) -> bool:
        grown = bytes_alive > self.bytes_alive and self.times & (self.times - 1) == 0
        return self.results is None or grown


class Repeats:
    """asked: how often a value was asked for, so far. step: which it is, and whether one has trained. calls: all of the run."""

    def __init__(
        self,
        storages: Storages,
        known: KnownValues,
        calls: list[Call],
        asked: Callable[[], int],
        step: Callable[[], tuple[int, bool]],
    ) -> None:
        self.left_out = 0
        self._storages, self._known, self._calls, self._asked, self._step = storages, known, calls, asked, step
        self._kinds: weakref.WeakKeyDictionary[nn.Module, dict[Hashable, _Kind]] = weakref.WeakKeyDictionary()
        self._step_of_kinds = 0

    def forward(
        self, module: nn.Module, run: Callable[[], Any], begins: Callable[[], None], args: Any, kwargs: Any
    ) -> Any:
        """Of an outermost module. begins: is called where run() would say that a forward begins."""
        before = self._seen(module, args, kwargs)
        kind = None if before is None else self._kind(module, before)
        if kind is None:
            return run()
        kind.times += 1
        if not kind.runs(self._storages.bytes_alive):
            self.left_out += 1
            begins()
            if self._step()[1]:
                self._calls.extend(kind.calls)
            assert kind.results is not None
            return kind.results.made()
        kind.results, kind.bytes_alive = None, self._storages.bytes_alive
        made_before, calls_before, asked_before = self._storages.count, len(self._calls), self._asked()
        versions = [_version(each) for each in tensors_in((args, kwargs))]
        out = run()
        if self._asked() == asked_before and self._seen(module, args, kwargs) == before:
            if [_version(each) for each in tensors_in((args, kwargs))] == versions:
                kind.results = self._results(out, made_before)
                kind.calls = self._calls[calls_before:]
        return out

    def _kind(self, module: nn.Module, seen: Hashable) -> _Kind | None:
        """None: too many are known."""
        step = self._step()[0]
        if step != self._step_of_kinds:
            self._step_of_kinds = step
            self._kinds.clear()
        of_module = self._kinds.setdefault(module, {})
        if seen not in of_module and len(of_module) >= _MOST_KINDS:
            return None
        return of_module.setdefault(seen, _Kind())

    # ----------------------------------------------------------------------- what a forward depends on

    def _seen(self, module: nn.Module, args: Any, kwargs: Any) -> Hashable | None:
        """What the forward finds. None: it is not known what it depends on, or it is for a backward."""
        trains = torch.is_grad_enabled()
        tensors = tensors_in((args, kwargs))
        if trains and any(each.requires_grad for each in (*tensors, *module.parameters())):
            return None
        if _tells_others(module):
            return None
        try:
            arguments = described((args, kwargs))
        except Unknown:
            return None
        known = tuple((_notes(each), self._known.of(each) is not None) for each in tensors)
        if any(notes - {"_gpumem_values"} for notes, _ in known):  # The numbers that ids can be make no others of results.
            return None
        autocast = torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype()
        return arguments, known, trains, autocast, Stream.current[-1].number, self._state(module)

    def _state(self, module: nn.Module) -> Hashable:
        """What a forward may read of its module and leave changed: forms, numbers and the lengths of lists."""
        tensors = (*module.parameters(), *module.buffers())
        modules = tuple(module.modules())
        entries = ((name, value) for each in modules for name, value in vars(each).items() if name not in _OF_MODULES)
        return (
            tuple(each.training for each in modules),
            tuple(map(self._told, tensors)),
            tuple((name, self._told(value)) for name, value in entries),
        )

    def _told(self, value: Any) -> Hashable:
        if isinstance(value, torch.Tensor):
            values, numbers = self._known.of(value), self._known.numbers(value, _MOST_ENTRIES)
            form = form_of(value) if value.layout == torch.strided else (value.dtype, tuple(value.shape))
            device = value.fake_device if type(value) is FakeTensor else value.device
            return form, device, None if values is None else _version(values), numbers and tuple(numbers)
        if isinstance(value, PLAIN):
            return type(value), value
        if not isinstance(value, _LISTS):
            return type(value)
        if len(value) > _MOST_ENTRIES:
            return type(value), len(value)
        return type(value), len(value), *map(self._entry, value.values() if isinstance(value, dict) else value)

    def _entry(self, value: Any) -> Hashable:
        """Of a list: those of lists inside are not looked at."""
        return (type(value), len(value)) if isinstance(value, _LISTS) else self._told(value)

    # ------------------------------------------------------------------------------------ what it left

    def _results(self, out: Any, made_before: int) -> _Results | None:
        """None: they are not all that the forward left, or are more than numbers and tensors on the GPU without values."""
        leaves, structure = pytree.tree_flatten(out)
        numbers: dict[int, int] = {}  # By the storage's number among all: among those of the results.
        bases: list[_Base] = []
        pieces: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, PLAIN):
                pieces.append(leaf)
                continue
            number = self._number_of(leaf)
            if number < made_before:  # An argument, a parameter, or what is not on the GPU.
                return None
            if number not in numbers:
                numbers[number] = len(numbers)
                bases.append(_base_of(leaf))
            place = numbers[number]
            if bases[place].dtype != leaf.dtype:
                return None
            pieces.append(_Piece(place, tuple(leaf.shape), tuple(leaf.stride()), int(leaf.storage_offset())))
        if self._storages.alive_since(made_before) != len(numbers):
            return None
        return _Results(pieces, structure, bases)

    def _number_of(self, result: Any) -> int:
        """Of its storage; -1: it is no plain tensor on the GPU, or something is known of its values."""
        if type(result) is not FakeTensor or result.requires_grad:
            return -1
        if _notes(result) or self._known.of(result) is not None:
            return -1
        return self._storages.number_of(result)
