"""Values that a program has itself: small tensors that it made of numbers, also on the pretended GPU.

A fake tensor's storage may have a twin on the CPU that holds its values. An operator whose tensors all have twins also runs on
these, so that views, writes in place and copies to the GPU keep what is known. What is random, uninitialised or learned has no
twin: its values are another run's others.

Units: elements.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from .operators import base_name, is_factory, largest_size
from .storages import tensors_in

#: Of a tensor whose values are kept.
MOST = 1 << 20
#: Their time grows faster than their tensors; no index or size is worked out by them.
_HEAVY = frozenset(
    "mm addmm bmm baddbmm addbmm mv addmv convolution convolution_backward native_batch_norm cudnn_batch_norm "
    "_native_batch_norm_legit linear _scaled_dot_product_flash_attention".split()
)
_UNSET = frozenset("empty empty_strided empty_like new_empty new_empty_strided empty_permuted resize_".split())
_WHOLE = frozenset("fill_ zero_ copy_".split())
#: What they write into stays as it is: a gradient scaler finds no overflow, another process sends what this one has.
_KEEPING = frozenset(("_amp_foreach_non_finite_check_and_unscale_", "broadcast_"))


@functools.cache
def _is_random(func: Any) -> bool:
    tag = getattr(torch.Tag, "nondeterministic_seeded", None)
    return tag in func.tags or base_name(func) in ("rand", "randn", "randint", "randperm", "normal_", "uniform_")


@functools.cache
def _written(func: Any) -> tuple[int, ...]:
    """The places of arguments that the operator writes into."""
    arguments = func._schema.arguments
    return tuple(
        place for place, each in enumerate(arguments) if each.alias_info is not None and each.alias_info.is_write
    )


def _written_tensors(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    places = _written(func)
    if not places:
        return []
    arguments = func._schema.arguments
    found = [args[place] if place < len(args) else kwargs.get(arguments[place].name) for place in places]
    return tensors_in(found)


def _key(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


class _ByStorage:
    """What is noted of storages, for as long as they live."""

    def __init__(self) -> None:
        self._noted: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    def get(self, tensor: torch.Tensor) -> Any:
        known = self._noted.get(_key(tensor))
        return None if known is None or known[0]() is None else known[1]

    def note(self, tensor: torch.Tensor, what: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata

        def gone(reference: object) -> None:
            if key in self._noted and self._noted[key][0] is reference:
                del self._noted[key]

        self._noted[key] = (weakref.ref(storage, gone), what)

    def drop(self, tensor: torch.Tensor) -> None:
        self._noted.pop(_key(tensor), None)


class KnownValues:
    """The twins of fake tensors, and which real tensors of the CPU hold nothing that the program said."""

    def __init__(self) -> None:
        self._twins = _ByStorage()
        self._arbitrary = _ByStorage()
        self._tolist = torch.Tensor.tolist  # As PyTorch has it: what the recorder reads, the program has not asked for.

    # ------------------------------------------------------------------------- real tensors of the CPU

    def ran_on_cpu(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor], out: Any) -> None:
        """Follows which values are random or were never set."""
        if _is_random(func) or base_name(func) in _UNSET:
            arbitrary = True
        elif self._arbitrary:
            of_self = base_name(func) in _WHOLE and bool(inputs)
            sources = inputs[1:] if of_self else inputs
            arbitrary = any(self._is_arbitrary(each) for each in sources)
            if of_self and not arbitrary and inputs[0].numel() * inputs[0].element_size() == _bytes(inputs[0]):
                self._arbitrary.drop(inputs[0])
                return
        else:
            return
        if arbitrary:
            for each in [*tensors_in(out), *_written_tensors(func, args, kwargs)]:
                if not isinstance(each, FakeTensor) and _has_storage(each):
                    self._arbitrary.note(each, True)

    def note_unset(self, tensor: torch.Tensor) -> None:
        """Notes that a real tensor's values mean nothing."""
        self._arbitrary.note(tensor, True)

    def _is_arbitrary(self, tensor: torch.Tensor) -> bool:
        return _has_storage(tensor) and self._arbitrary.get(tensor) is not None

    # -------------------------------------------------------------------------------------- fake tensors

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The values of a tensor, as one of the CPU that shares memory with its aliases' values."""
        if not isinstance(tensor, FakeTensor):
            learned = tensor.requires_grad or self._is_arbitrary(tensor) or tensor.numel() > MOST
            return None if learned or not _has_storage(tensor) else tensor
        if not self._twins or tensor.requires_grad or not _has_storage(tensor):
            return None
        twin = self._twins.get(tensor)
        if twin is None:
            return None
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        with _disable_current_modes():
            flat = twin if twin.dtype == tensor.dtype else twin.view(torch.uint8).view(tensor.dtype)
            return flat.as_strided(shape, strides, tensor.storage_offset())

    def numbers(self, tensor: torch.Tensor, most: int) -> list[Any] | None:
        """The values, if they are known and no more than this many."""
        value = self.of(tensor)
        if value is None or value.numel() > most:
            return None
        with _disable_current_modes():
            numbers: list[Any] = self._tolist(value.flatten())
        return numbers

    def forget(self, tensor: torch.Tensor) -> None:
        if isinstance(tensor, FakeTensor) and _has_storage(tensor):
            self._twins.drop(tensor)

    def keep(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Notes the values of a new fake tensor; of one that is not dense, or large, nothing."""
        if not isinstance(tensor, FakeTensor) or tensor.numel() > MOST or not _has_storage(tensor):
            return
        size = tensor.element_size()
        if tuple(value.shape) != tuple(tensor.shape) or value.dtype != tensor.dtype or _bytes(tensor) > MOST * size:
            return
        twin = torch.zeros(_bytes(tensor) // size, dtype=tensor.dtype, device="cpu")
        if tensor.numel():
            twin.as_strided(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()).copy_(value)
        self._twins.note(tensor, twin)

    def run(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> Any:
        """The operator's result on the values, None where they are not known. What it writes into is written."""
        worked_out = self._worked_out(func, args, kwargs, inputs)
        if worked_out is None and base_name(func) not in _KEEPING:
            for each in _written_tensors(func, args, kwargs) if self._twins else ():
                self.forget(each)
        return worked_out

    def _worked_out(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> Any:
        if base_name(func) in _UNSET or base_name(func) in _HEAVY or _is_random(func):
            return None
        if not inputs and (not is_factory(func) or largest_size(args) > MOST):
            return None
        values: dict[int, torch.Tensor] = {}
        with _disable_current_modes():
            for each in inputs:
                value = self.of(each)
                if value is None:
                    return None
                values[id(each)] = value

            def valued(leaf: Any) -> Any:
                if isinstance(leaf, torch.Tensor):
                    return values[id(leaf)]
                return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

            on_cpu = pytree.tree_map(valued, (args, {k: v for k, v in kwargs.items() if k != "pin_memory"}))
            try:
                return _Result(func(*on_cpu[0], **on_cpu[1]))
            except Exception:  # noqa: B902: what the CPU cannot do stays unknown.
                return None

    def made(self, result: Any, out: Any) -> None:
        """The fake results of an operator that ran on values as well."""
        if result is None:
            return
        real, fake = tensors_in(result.value), tensors_in(out)
        if len(real) == len(fake):
            with _disable_current_modes():
                for value, each in zip(real, fake):
                    if isinstance(each, FakeTensor) and _has_storage(each) and self._twins.get(each) is None:
                        self.keep(each, value)

    def faked(self, result: Any, device: Callable[[torch.Tensor], torch.device]) -> Any:
        """The result on values as fake tensors, which know them."""

        def fake(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            made = torch.empty(tuple(leaf.shape), dtype=leaf.dtype, device=device(leaf))
            with _disable_current_modes():
                self.keep(made, leaf)
            return made

        return pytree.tree_map(fake, result.value)


class _Result:
    """What an operator returned, which may be nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _bytes(tensor: torch.Tensor) -> int:
    size: int = tensor.untyped_storage().nbytes()
    return size


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and hasattr(tensor, "untyped_storage")
