"""What older programs say of tensors on the GPU, and a build of PyTorch for CPUs refuses: types and random generators.

    Tensor = torch.cuda.FloatTensor
    Tensor(64, 100), Tensor(array), x.type(Tensor), isinstance(x, Tensor), torch.set_default_tensor_type(Tensor)
    torch.randn(3, device="cuda", generator=torch.Generator("cuda"))

Source: torch/csrc/utils/tensor_new.cpp (legacy_tensor_generic_ctor_new) and torch/csrc/tensor/python_tensor.cpp of PyTorch 2.6.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from .pretended_cuda import Replacements

_NAMES = "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"


def _made_of(arguments: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
    """Sizes make an empty tensor; a tensor, a sequence or an array gives its values."""
    if len(arguments) == 1 and isinstance(arguments[0], torch.Tensor):
        return arguments[0].to("cuda", dtype)
    if len(arguments) == 1 and isinstance(arguments[0], torch.Size):
        return torch.empty(arguments[0], dtype=dtype, device="cuda")
    try:
        sizes = [operator.index(each) for each in arguments]
    except TypeError:
        return torch.tensor(arguments[0], dtype=dtype, device="cuda")
    return torch.empty(sizes or (0,), dtype=dtype, device="cuda")


class _Kind(type):
    """The type of torch.cuda.FloatTensor and its like, which have no instances: they make plain tensors."""

    dtype: torch.dtype
    is_cuda = True

    def __call__(cls, *arguments: Any, **_options: Any) -> torch.Tensor:
        return _made_of(arguments, cls.dtype)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "cuda" and value.dtype == cls.dtype


def _kinds() -> dict[str, _Kind]:
    made = {}
    for name in _NAMES.split():
        kind = _Kind(name, (), {"__module__": "torch.cuda"})
        kind.dtype = getattr(torch.cuda, name).dtype
        made[f"torch.cuda.{name}"] = kind
    return made


def _of_default_type(original: Any, default: dict[str, Any]) -> Any:
    """torch.Tensor([1e10]) and torch.Tensor(64, 100), which ask for no device: they are of the default type."""

    def new(cls: Any, *arguments: Any, **options: Any) -> Any:
        if cls is torch.Tensor and not options and default["kind"] is not None:
            return _made_of(arguments, torch.get_default_dtype())
        return original(cls, *arguments, **options)

    return staticmethod(new)


def _replace_types(replaced: Replacements) -> None:
    kinds = _kinds()
    for name, kind in kinds.items():
        replaced.set(torch.cuda, name.rpartition(".")[2], kind)

    def found(named: Any) -> _Kind | None:
        return named if isinstance(named, _Kind) else kinds.get(named) if isinstance(named, str) else None

    convert, set_default = torch.Tensor.type, torch.set_default_tensor_type
    default: dict[str, Any] = {"kind": None}

    def as_type(tensor: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        kind = found(dtype)
        if kind is not None:
            return tensor.to("cuda", kind.dtype, non_blocking=non_blocking)
        return convert(tensor, dtype, non_blocking, **options)

    def set_default_type(named: Any) -> None:
        kind = default["kind"] = found(named)
        if kind is None:
            torch.set_default_device(None)  # As the type says, the CPU.
            set_default(named)
            return
        replaced.callback(torch.set_default_dtype, torch.get_default_dtype())
        replaced.callback(torch.set_default_device, None)
        torch.set_default_dtype(kind.dtype)
        torch.set_default_device("cuda")
        if "__new__" not in vars(torch.Tensor):
            replaced.set(torch.Tensor, "__new__", _of_default_type(torch.Tensor.__new__, default))

    replaced.set(torch.Tensor, "type", as_type)
    replaced.set(torch, "set_default_tensor_type", set_default_type)


_PlainGenerator: Any = torch.Generator


class _AnyGenerator(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _PlainGenerator)


class _Generator(_PlainGenerator, metaclass=_AnyGenerator):  # type: ignore[misc]
    """A generator of the GPU is one of the CPU that says otherwise: no value of the GPU's is drawn."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return _PlainGenerator.__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self._device = torch.device(device)

    @property
    def device(self) -> torch.device:
        return self._device


def without_generator(options: dict[str, Any]) -> dict[str, Any]:
    """An operator's options, where no values are drawn."""
    return {**options, "generator": None} if options.get("generator") is not None else options


def replace_legacy(replaced: Replacements) -> None:
    _replace_types(replaced)
    replaced.set(torch, "Generator", _Generator)
