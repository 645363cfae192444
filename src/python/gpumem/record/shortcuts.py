"""Operators on fake tensors that need none of FakeTensorMode's cache: views, and what writes into its own tensors. They are
half of what a step calls, and to look one up there takes longer than to run it on the meta device. What makes new tensors has
a cache here, whose keys are the forms that a recording notes anyway.

It is what FakeTensorMode.dispatch does with them in the end (in_kernel_invocation_manager, from_meta_and_device).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

from .shape_rules import rule_of
from .storages import form_of

#: Values that are what they look like.
PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


#: A cache learns no more than this many; NaN is equal to no number, so a program could fill one.
MOST_LEARNT = 100_000


class Unknown(Exception):
    """A value that cannot be told by shapes and numbers."""


def described(value: Any) -> Hashable:
    """The shapes, types and numbers of arguments, to compare with those of another call. Raises Unknown, also of real
    tensors, which have values."""
    if isinstance(value, torch.Tensor):
        if type(value) is not FakeTensor or value.layout != torch.strided:
            raise Unknown
        return FakeTensor, value.fake_device, form_of(value)
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, (list, tuple)):
        if value and type(value[0]) is int and all(type(each) is int for each in value):
            return (type(value), *value)
        return (type(value), *map(described, value))
    if isinstance(value, dict):
        return (type(value), *((name, described(each)) for name, each in value.items()))
    raise Unknown


def view_of(fakes: FakeTensorMode, func: Any, args: Any, inputs: list[torch.Tensor]) -> FakeTensor | None:
    """The view that func makes of its one tensor; None: it is not that plain."""
    if len(inputs) != 1 or type(inputs[0]) is not FakeTensor or args[0] is not inputs[0]:
        return None
    with in_kernel_invocation_manager(fakes):
        made = func(*args)
    return FakeTensor(fakes, made, inputs[0].fake_device) if type(made) is torch.Tensor else None


@functools.cache
def overwrites(func: Any) -> bool:
    """A foreach operator that writes into the tensors of its first argument and returns nothing."""
    return bool(func._schema.name.startswith("aten::_foreach_")) and not func._schema.returns


def overwrite(fakes: FakeTensorMode, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> bool:
    """Runs it; False: it was not run, as not all of its tensors are fake ones of one device."""
    devices = {each.fake_device if type(each) is FakeTensor else None for each in inputs}
    if len(devices) != 1 or None in devices:
        return False
    with in_kernel_invocation_manager(fakes):
        func(*args, **kwargs)
    return True


@functools.cache
def _is_pure(func: Any) -> bool:
    """Makes new tensors from its arguments alone."""
    schema = func._schema
    return func.namespace in ("aten", "prims") and not schema.is_mutable and all(each.alias_info is None for each in schema.returns)


class _Made(NamedTuple):
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: torch.device


def _plainly_made(value: Any) -> _Made | None:
    """None: it is more than a tensor in a storage of its own size."""
    if type(value) is not FakeTensor or value.layout != torch.strided:
        return None
    if value.dtype.is_complex or value.storage_offset():
        return None
    shape, strides = tuple(value.shape), tuple(value.stride())
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if value.numel() else 0
    if value.untyped_storage().nbytes() != reach * value.element_size():
        return None
    return _Made(value.dtype, shape, strides, value.fake_device)


class ShapeCache:
    """The forms of what operators return, by the forms of what they get."""

    def __init__(self, fakes: FakeTensorMode) -> None:
        self._fakes = fakes
        self._known: dict[Hashable, tuple[Any, tuple[_Made | None, ...]]] = {}  # Of a tuple or list: its type.

    def out_of(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor], run: Callable[..., Any]) -> Any:
        """What run(func, args, kwargs) returns."""
        if not _is_pure(func) or rule_of(func) is not None or any(type(each) is not FakeTensor for each in inputs):
            return run(func, args, kwargs)
        try:
            key = (func, torch.get_default_dtype(), described(args), described(kwargs))
        except Unknown:
            return run(func, args, kwargs)
        known = self._known.get(key)
        if known is not None:
            return self._again(*known)
        out = run(func, args, kwargs)
        self._learn(key, out, inputs)
        return out

    def _learn(self, key: Hashable, out: Any, inputs: list[torch.Tensor]) -> None:
        if len(self._known) >= MOST_LEARNT:
            return
        several = type(out) if type(out) in (tuple, list) else None
        values = out if several else (out,)
        made = tuple(None if each is None else _plainly_made(each) for each in values)
        if any(form is None and each is not None for form, each in zip(made, values)):
            return
        storages = [each.untyped_storage()._cdata for each in (*inputs, *values) if each is not None]
        if len(set(storages[len(inputs) :]) - set(storages[: len(inputs)])) == len(storages) - len(inputs):
            self._known[key] = several, made

    def _again(self, several: Any, made: tuple[_Made | None, ...]) -> Any:
        with in_kernel_invocation_manager(self._fakes):
            metas = [
                None if each is None else torch.empty_strided(each.shape, each.strides, dtype=each.dtype, device="meta")
                for each in made
            ]
        tensors = [
            None if each is None or meta is None else FakeTensor(self._fakes, meta, each.device)
            for each, meta in zip(made, metas)
        ]
        return tensors[0] if several is None else several(tensors)
