"""The Meta kernels that PyTorch 1.13 lacks, and what else its FakeTensorMode needs to run training steps."""

from __future__ import annotations

import contextlib
import functools
import sys

import torch
from torch._subclasses import fake_tensor


class FakeTensorError(Exception):
    """What was asked for cannot be measured; the text says why."""


def convolution_backward(
    grad_output, x, weight, bias_sizes, _stride, _padding, _dilation, _transposed, _output_padding, _groups, mask
):
    return (
        torch.empty_like(x) if mask[0] else None,
        torch.empty_like(weight) if mask[1] else None,
        grad_output.new_empty(bias_sizes) if mask[2] else None,
    )


def like_second(_grad_output, x, *_):
    return torch.empty_like(x)


def max_pool3d_with_indices(x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    def along(values, axis, otherwise):
        values = [values] if isinstance(values, int) else list(values) or [otherwise]
        return values[axis] if len(values) > 1 else values[0]

    sizes = []
    for axis, length in enumerate(x.shape[-3:]):
        window = along(kernel, axis, 1)
        step = along(stride, axis, window)
        room = length + 2 * along(padding, axis, 0) - along(dilation, axis, 1) * (window - 1) - 1
        sizes.append((-(-room // step) if ceil_mode else room // step) + 1)
    shape = [*x.shape[:-3], *sizes]
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def embedding_bag_dense_backward(grad, _indices, _offsets, _bags, _maxima, rows, *_):
    return grad.new_empty((rows, grad.shape[1]))


META_KERNELS = {
    torch.ops.aten._adaptive_avg_pool2d_backward.default: like_second,
    torch.ops.aten._adaptive_avg_pool3d_backward.default: like_second,
    torch.ops.aten.max_pool3d_with_indices.default: max_pool3d_with_indices,
    torch.ops.aten.max_pool3d_with_indices_backward.default: like_second,
    torch.ops.aten.reflection_pad2d_backward.default: like_second,
    torch.ops.aten._embedding_bag_dense_backward.default: embedding_bag_dense_backward,
}

run_real_kernel = fake_tensor.run_fallback_kernel


def run_fallback_kernel(mode, func, args, kwargs, error):
    """Called by FakeTensorMode for an op without a Meta kernel."""
    if mode.as_published:
        return run_real_kernel(mode, func, args, kwargs, error)
    if func not in META_KERNELS:
        raise FakeTensorError(f"{func} has no Meta kernel; add one to META_KERNELS") from error
    with fake_tensor.in_kernel_invocation_manager(mode):
        result = META_KERNELS[func](*args, **kwargs)
    return mode.wrap_meta_outputs_with_default_device_logic(result, func, args, kwargs)


@functools.lru_cache(maxsize=None)
def prepare():
    """Makes 1.13's FakeTensorMode fit to run training steps; what it returns must stay alive."""
    if torch.__version__.startswith("2."):
        return None  # has them
    if not torch.__version__.startswith("1.13"):
        print(f"fake_tensor.py: made for PyTorch 1.13; this is {torch.__version__}", file=sys.stderr)
    fake_tensor.run_fallback_kernel = run_fallback_kernel
    # Under a dispatch mode, 1.13 hands the profiler's record_function one argument too many.
    torch.autograd.profiler.record_function = lambda *_, **__: contextlib.nullcontext()
    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("convolution_backward", convolution_backward)
    return library
