"""Shapes of what operators return that PyTorch has no rule for, and what a user says of compiled extensions.

    gpumem.record.stand_in("my_extension::pool", lambda x, size: x.new_empty(x.shape[0], x.shape[1], size, size))
    gpumem.record.stand_in("my_extension._C.nms", lambda boxes, scores, threshold: boxes.new_empty(100, dtype=torch.int64))

A name with `::` is an operator of PyTorch's dispatcher; one with dots is a function of a Python module (pybind11), which is
replaced while a recording lasts. `shapes` gets the arguments and returns tensors of the shapes that the function returns.

Source: aten/src/ATen/native/cuda/Normalization.cu and native_functions.yaml of PyTorch 2.1 to 2.6 (batch_norm_*);
torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu of torchvision 0.16 to 0.21.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from .errors import record_error
from .pretended_cuda import Replacements

Shapes = Callable[..., Any]


def _channels(x: torch.Tensor) -> torch.Tensor:
    """A float32 number of each channel, or one of the input's type where that is wider."""
    dtype = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    return torch.empty(x.shape[1], dtype=dtype, device=x.device)


def _statistics(x: torch.Tensor, *_rest: Any, **_options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _channels(x), _channels(x)


def _normalised(x: torch.Tensor, *_rest: Any, **_options: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _sums(_gradient: Any, x: torch.Tensor, _mean: Any, _inverse: Any, _weight: Any, *wanted: bool) -> tuple[Any, ...]:
    _input_wanted, weight_wanted, bias_wanted = wanted
    of_weight = _channels(x) if weight_wanted else None
    return _channels(x), _channels(x), of_weight, _channels(x) if bias_wanted else None


def _gradient_of_input(_gradient: Any, x: torch.Tensor, *_rest: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _deformed(x: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor, *_rest: Any) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[0], offset.shape[2], offset.shape[3])


def _deformed_gradients(
    _gradient: Any, x: Any, weight: Any, offset: Any, mask: Any, bias: Any, *_rest: Any
) -> tuple[torch.Tensor, ...]:
    return tuple(torch.empty_like(each) for each in (x, weight, offset, mask, bias))


_RULES: dict[str, Shapes] = {
    "aten::batch_norm_stats": _statistics,
    "aten::batch_norm_gather_stats": _statistics,
    "aten::batch_norm_gather_stats_with_counts": _statistics,
    "aten::batch_norm_elemt": _normalised,
    "aten::batch_norm_backward_reduce": _sums,
    "aten::batch_norm_backward_elemt": _gradient_of_input,
    "torchvision::deform_conv2d": _deformed,
    "torchvision::_deform_conv2d_backward": _deformed_gradients,
}
_said: dict[str, Shapes] = {}


def stand_in(name: str, shapes: Shapes) -> None:
    if not callable(shapes):
        raise record_error(f"the shapes of {name} are no function", "give a function that returns tensors of its shapes")
    if "::" not in name and "." not in name:
        raise record_error(
            f"{name} names no function to stand in for", 'give an operator ("library::name") or "module.function"'
        )
    _said[name] = shapes


def rule_of(func: Any) -> Shapes | None:
    """What is known of an operator's results before PyTorch is asked."""
    name = func._schema.name
    return _said.get(name) or _RULES.get(name)


def is_said(func: Any) -> bool:
    return func._schema.name in _said


def install_stand_ins(replaced: Replacements) -> None:
    """Puts them in the places of functions of Python modules."""
    for name, shapes in _said.items():
        if "::" in name:
            continue
        owner, _, attribute = name.rpartition(".")
        try:
            module: Any = importlib.import_module(owner)
        except ImportError as error:
            raise record_error(f"{owner}, which has a stand-in, cannot be imported", "name its module as Python does") from error
        replaced.set(module, attribute, shapes)
