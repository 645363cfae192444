"""What a recording must know of operators: which make no storage, and for which of them rules may add memory.

The rules themselves (workspaces of cuBLAS and cuDNN, copies inside kernels) are the reader's.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch

from .run import Call, TensorForm

#: Make a tensor from nothing.
_FACTORIES = frozenset(
    "empty zeros ones full rand randn randint arange linspace eye scalar_tensor randperm logspace tril_indices "
    "triu_indices hann_window empty_strided empty_permuted range normal".split()
)
_PRODUCTS = frozenset("mm addmm bmm baddbmm addbmm mv addmv dot".split())
#: Their kernels make contiguous copies of inputs that are not dense.
_WANT_DENSE = frozenset(
    "native_batch_norm cudnn_batch_norm _native_batch_norm_legit_functional native_layer_norm native_group_norm _softmax "
    "_log_softmax native_batch_norm_backward cudnn_batch_norm_backward native_layer_norm_backward "
    "native_group_norm_backward _softmax_backward_data _log_softmax_backward_data embedding_dense_backward "
    "max_pool2d_with_indices avg_pool2d glu glu_backward".split()
)


class Rules(NamedTuple):
    """copies: its kernel may copy inputs while it runs. parts: of the library's workspace."""

    copies: bool
    parts: tuple[int, ...]


def base_name(func: Any) -> str:
    name: str = func._schema.name
    return name.split("::")[1]


@functools.cache
def is_factory(func: Any) -> bool:
    return base_name(func) in _FACTORIES


@functools.cache
def is_view(func: Any) -> bool:
    """Its result is an alias of an input, and nothing is written."""
    if base_name(func) in ("_unsafe_view", "_reshape_alias", "lift_fresh", "detach", "alias", "_to_copy_alias"):
        return True
    returned = [each.alias_info for each in func._schema.returns]
    return bool(returned) and all(each is not None and not each.is_write for each in returned)


def largest_size(args: Any) -> int:
    """Elements that a factory makes of these arguments, at most."""
    for each in args:
        if isinstance(each, (list, tuple)):
            elements = 1
            for size in each:
                elements *= size if isinstance(size, int) else 1
            return elements
    numbers = [abs(each) for each in args if isinstance(each, (int, float)) and math.isfinite(each)]
    return int(max(numbers, default=1))


def small_extra(func: Any, args: Any) -> tuple[int, ...]:
    """Of a convolution: transposed, groups, and which of the three gradients are wanted as bits 1, 2, 4."""
    if func is torch.ops.aten.convolution.default:
        return int(bool(args[6])), int(args[8]), 7
    if func is torch.ops.aten.convolution_backward.default:
        mask = sum(int(bool(wanted)) << place for place, wanted in enumerate(args[10]))
        return int(bool(args[7])), int(args[9]), mask
    return ()


def is_dense(form: TensorForm) -> bool:
    """Contiguous or channels last."""

    def packed(axes: tuple[int, ...]) -> bool:
        expected = 1
        for axis in reversed(axes):
            if form.shape[axis] != 1 and form.strides[axis] != expected:
                return False
            expected *= form.shape[axis]
        return True

    axes = tuple(range(len(form.shape)))
    return packed(axes) or (len(axes) in (4, 5) and packed((0, *axes[2:], 1)))


def rules_of(func: Any, call: Call) -> Rules:
    name = base_name(func)
    if name in _PRODUCTS:
        return Rules(True, (0,))
    if name == "convolution":
        return Rules(True, (0,))
    if name == "convolution_backward":
        return Rules(True, (1, 2))
    if "_attention" in name or name == "_softmax_backward_data":
        return Rules(True, ())
    sparse = [form for form in call.inputs[:2] if len(form.shape) > 1 and not is_dense(form)]
    return Rules(name in _WANT_DENSE and bool(sparse), ())
