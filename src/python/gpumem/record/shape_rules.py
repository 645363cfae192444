"""Shapes of what operators return that PyTorch has no rule for, and what a user says of compiled extensions.

    gpumem.record.stand_in("my_extension::pool", lambda x, size: x.new_empty(x.shape[0], x.shape[1], size, size))
    gpumem.record.stand_in("my_extension._C.nms", lambda boxes, scores, threshold: boxes.new_empty(100, dtype=torch.int64))

A name with `::` is an operator of PyTorch's dispatcher; one with dots is a function of a Python module (pybind11), which is
replaced while a recording lasts. `shapes` gets the arguments and returns tensors of the shapes that the function returns.

Source: aten/src/ATen/native/cuda/Normalization.cu and native_functions.yaml of PyTorch 2.1 to 2.6 (batch_norm_*);
torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu of torchvision 0.16 to 0.21; SpectralOps.cpp (_exec_fft), LossCTC.cu
(ctc_loss_gpu_template), WeightNorm.cu and RNN.cu (_thnn_fused_gru_cell_cuda) of aten/src/ATen/native/cuda, PyTorch 2.6.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
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


def _deformed(x: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor, *_rest: Any) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[0], offset.shape[2], offset.shape[3])


def _deformed_gradients(
    _gradient: Any, x: Any, weight: Any, offset: Any, mask: Any, bias: Any, *_rest: Any
) -> tuple[torch.Tensor, ...]:
    return tuple(torch.empty_like(each) for each in (x, weight, offset, mask, bias))


def _like_second(_gradient: Any, x: torch.Tensor, *_rest: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _least_squares(a: torch.Tensor, b: torch.Tensor, *_rest: Any, **_options: Any) -> tuple[torch.Tensor, ...]:
    """The solution and its residuals; the GPU's one driver tells neither rank nor singular values."""
    (*batch, rows, columns), wanted = a.shape, b.shape[a.dim() - 1 :]
    residuals = a.new_empty((*batch, *wanted)) if rows > columns else a.new_empty(0)
    return a.new_empty((*batch, columns, *wanted)), residuals, a.new_empty(0, dtype=torch.int64), a.new_empty(0)


def _transducer(logits: torch.Tensor, *_rest: Any, **_options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return logits.new_empty(logits.shape[0]), torch.empty_like(logits)


def _gru_cell(_of_input: Any, _of_hidden: Any, hidden: torch.Tensor, *_biases: Any) -> tuple[torch.Tensor, ...]:
    return torch.empty_like(hidden), hidden.new_empty(hidden.shape[0], 5 * hidden.shape[1])


def _gru_cell_gradients(gradient: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> tuple[Any, ...]:
    sequences, gates = workspace.shape[0], workspace.shape[1] // 5 * 3
    biases = (workspace.new_empty(gates), workspace.new_empty(gates)) if has_bias else (None, None)
    return (*(workspace.new_empty(sequences, gates) for _ in range(2)), torch.empty_like(gradient), *biases)


def _normed_weight_gradients(_gradient: Any, v: torch.Tensor, g: torch.Tensor, *_rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(v, memory_format=torch.contiguous_format), torch.empty_like(g)


_COMPLEX = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}
_REAL = {made: dtype for dtype, made in _COMPLEX.items()}


def _spectrum(x: torch.Tensor, axes: Sequence[int], sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """As _exec_fft lays it out: axes that stay come first, in the order of their strides, then those transformed."""
    x_strides = tuple(x.stride())
    order = sorted(set(range(x.dim())) - set(axes), key=lambda axis: -int(x_strides[axis])) + list(axes)
    strides, inner = [0] * x.dim(), 1
    for axis in reversed(order):
        strides[axis] = inner
        inner *= sizes[axis]
    return torch.empty_strided(list(sizes), strides, dtype=dtype, device=x.device)


def _spectrum_of_real(x: torch.Tensor, dim: Sequence[int], _normalised: int, onesided: bool) -> torch.Tensor:
    sizes, axes = list(x.shape), [axis % x.dim() for axis in dim]
    if onesided:
        sizes[axes[-1]] = sizes[axes[-1]] // 2 + 1
    return _spectrum(x, axes, sizes, _COMPLEX[x.dtype])


def _real_of_spectrum(x: torch.Tensor, dim: Sequence[int], _normalised: int, last_size: int) -> torch.Tensor:
    sizes, axes = list(x.shape), [axis % x.dim() for axis in dim]
    sizes[axes[-1]] = last_size
    return _spectrum(x, axes, sizes, _REAL[x.dtype])


def _spectrum_of_complex(x: torch.Tensor, dim: Sequence[int], _normalised: int, _forward: bool) -> torch.Tensor:
    return _spectrum(x, [axis % x.dim() for axis in dim], x.shape, x.dtype)


def _without_cudnn(*_arguments: Any) -> bool:
    """CTC loss takes PyTorch's own kernel: cuDNN's needs targets on the CPU, in one row and of type int."""
    return False


def _alignments(log_probs: torch.Tensor, _targets: Any, _lengths: Any, of_targets: Sequence[int], *_rest: Any) -> Any:
    """The loss of each sequence and the alphas: of each step, twice the longest target and one."""
    sequences = log_probs.shape[1]
    alphas = (sequences, log_probs.shape[0], 2 * max(of_targets, default=0) + 1)
    return log_probs.new_empty(sequences), log_probs.new_empty(alphas)


_RULES: dict[str, Shapes] = {
    "aten::batch_norm_stats": _statistics,
    "aten::batch_norm_gather_stats": _statistics,
    "aten::batch_norm_gather_stats_with_counts": _statistics,
    "aten::batch_norm_elemt": _normalised,
    "aten::batch_norm_backward_reduce": _sums,
    "aten::batch_norm_backward_elemt": _like_second,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_gradients,
    "aten::_weight_norm_interface_backward": _normed_weight_gradients,
    "aten::_fft_r2c": _spectrum_of_real,
    "aten::_fft_c2r": _real_of_spectrum,
    "aten::_fft_c2c": _spectrum_of_complex,
    "aten::_use_cudnn_ctc_loss": _without_cudnn,
    "aten::_ctc_loss": _alignments,
    "aten::_ctc_loss_backward": _like_second,
    "aten::multi_margin_loss_backward": _like_second,
    "aten::multilabel_margin_loss_backward": _like_second,
    "aten::linalg_lstsq": _least_squares,
    "torchaudio::rnnt_loss": _transducer,
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
