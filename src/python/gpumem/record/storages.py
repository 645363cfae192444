"""Storages on the pretended GPU: when each is made and when it dies, with its size, stream, call and category."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable
from typing import Any

import torch

from .errors import record_error
from .places import users_line
from .pretended_cuda import Stream
from .run import Allocate, Category, Event, Free, TensorForm


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    found: list[torch.Tensor] = []
    _gather((value,), found)
    return found


def _gather(values: Iterable[Any], found: list[torch.Tensor]) -> None:
    for each in values:
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, list):
            if each and not isinstance(each[0], int):  # Most lists are sizes and strides.
                _gather(each, found)
        elif isinstance(each, tuple):
            _gather(each, found)
        elif isinstance(each, dict):
            _gather(each.values(), found)


@functools.cache
def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def form_of(tensor: torch.Tensor) -> TensorForm:
    return TensorForm(_name_of(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()))


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor that is spread over ranks."""
    return getattr(tensor, "_local_tensor", tensor)


def check_layouts(tensors: Iterable[torch.Tensor]) -> None:
    """An error if one of them is sparse."""
    for each in tensors:
        if each.layout != torch.strided:
            raise record_error(
                f"a tensor is {str(each.layout).removeprefix('torch.')}: of sparse tensors only those in coordinates (COO) are recorded",
                "record with a dense tensor or a COO one in its place, or leave it out of the recorded steps",
                users_line(),
            )


class _Live:
    """A storage that is alive."""

    __slots__ = ("reference", "number", "bytes", "stream")

    def __init__(self, reference: weakref.ref[Any], number: int, size: int, stream: int) -> None:
        self.reference, self.number, self.bytes, self.stream = reference, number, size, stream


class Storages:
    """Watches storages, and writes down their allocations and frees among the events."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.count = 0
        self.bytes_alive = 0
        self.categories: dict[int, Category] = {}
        self._live: dict[int, _Live] = {}  # By the address of the storage.

    def watch(self, tensor: torch.Tensor, call: int, category: Category) -> None:
        """Notes the tensor's storage, if it is new and on the GPU."""
        if tensor.device.type != "cuda":
            return
        check_layouts((tensor,))
        storage = tensor.untyped_storage()
        known = self._live.get(storage._cdata)
        if known is not None and known.reference() is storage:
            return
        item, size = tensor.element_size(), storage.nbytes()
        shape = tuple(tensor.shape)
        if size != tensor.numel() * item:
            item, shape = (item, (size // item,)) if size % item == 0 else (1, (size,))
        self._allocate(storage, item, shape, call, category)

    def resized(self, storage: Any) -> None:
        """Follows storage.resize_(), with which FSDP gives back and takes its buffers."""
        known = self._live.get(storage._cdata)
        if known is None or known.reference() is not storage or storage.nbytes() == known.bytes:
            return
        self.bytes_alive -= known.bytes
        self.events.append(Free(known.number))
        self._allocate(storage, 1, (storage.nbytes(),), -1, self.categories[known.number])

    def _allocate(self, storage: Any, item: int, shape: tuple[int, ...], call: int, category: Category) -> None:
        number, key = self.count, storage._cdata
        self.count += 1

        def gone(_reference: object) -> None:
            known = self._live.get(key)
            if known is not None and known.number == number:
                del self._live[key]
                self.bytes_alive -= known.bytes
                self.events.append(Free(number))

        stream = Stream.current[-1].number
        self.bytes_alive += storage.nbytes()
        self._live[key] = _Live(weakref.ref(storage, gone), number, storage.nbytes(), stream)
        self.categories[number] = category
        self.events.append(Allocate(number, item, shape, stream, call))

    def alive_since(self, number: int) -> int:
        """How many there are of those that were made from this number on."""
        return sum(each.number >= number for each in self._live.values())

    def number_of(self, tensor: torch.Tensor | None) -> int:
        """The number of the allocation in which the tensor lies; -1: of none."""
        known = None if tensor is None else self._live_of(tensor)
        return -1 if known is None else known.number

    def stream_of(self, tensor: torch.Tensor) -> int:
        """The stream on which it was allocated; -1: it is none of these."""
        known = self._live_of(tensor)
        return -1 if known is None else known.stream

    def _live_of(self, tensor: torch.Tensor) -> _Live | None:
        try:
            storage = local(tensor).untyped_storage()
        except (RuntimeError, NotImplementedError, ValueError):  # Sparse tensors and parameters of lazy modules have none.
            return None
        known = self._live.get(storage._cdata)
        return known if known is not None and known.reference() is storage else None

    def categorise(self, tensors: Iterable[torch.Tensor | None], category: Category) -> None:
        for tensor in tensors:
            number = self.number_of(tensor)
            if number >= 0:
                self.categories[number] = category

    def category_of(self, tensor: torch.Tensor) -> Category | None:
        return self.categories.get(self.number_of(tensor))
