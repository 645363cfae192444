"""What PyTorch's CUDA build does otherwise than its CPU build, above the operators that a recording sees.

Each rule names the source that it follows. A kernel for the dispatch key AutogradCUDA is below autocast and above
autograd, so modules, functions, autocast and recomputed checkpoints all pass through it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .errors import record_error
from .places import users_line
from .pretended_cuda import Replacements

_aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


# ------------------------------------------------------------------------------------- attention


def _takes_flash(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, grouped: bool) -> bool:
    """As check_flash_attention of sdp_utils.cpp decides, on Ampere and later."""
    heads_fit = grouped or q.shape[1] == k.shape[1]
    return (
        torch.cuda.get_device_capability() >= (8, 0)
        and torch.backends.cuda.flash_sdp_enabled()
        and q.dtype in _HALF
        and mask is None
        and q.shape[-1] == v.shape[-1]
        and q.shape[-1] <= 256
        and q.shape[0] == k.shape[0]
        and heads_fit
    )


def _takes_efficient(q: Tensor, k: Tensor, v: Tensor, grouped: bool) -> bool:
    """As check_mem_efficient_attention of sdp_utils.cpp decides."""
    aligned = 8 if q.dtype in _HALF else 4
    return (
        torch.backends.cuda.mem_efficient_sdp_enabled()
        and q.dtype in (torch.float32, *_HALF)
        and q.shape[-1] % aligned == 0
        and v.shape[-1] % aligned == 0
        and not grouped
        and q.shape[:2] == k.shape[:2]
    )


def _flash(q: Tensor, k: Tensor, v: Tensor, dropout: float, causal: bool, scale: float | None) -> Tensor:
    """The head size is padded to a multiple of 8, as _scaled_dot_product_attention of attention.cpp does."""
    size = q.shape[-1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if size % 8:
        q, k, v = (F.pad(each, (0, -size % 8)) for each in (q, k, v))
    out: Tensor = _aten._scaled_dot_product_flash_attention(q, k, v, dropout, causal, False, scale=scale)[0]
    return out[..., :size] if size % 8 else out


def _bias_of(mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """The mask as the memory-efficient kernel takes it (convert_boolean_attn_mask, preprocess_mask)."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    keys = mask.shape[-1]
    if keys % 16:
        mask = F.pad(mask, (0, 16 - keys % 16))[..., :keys]
    return mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    **grouped: bool,
) -> Tensor:
    """scaled_dot_product_attention: flash, memory-efficient or written out, in this order (_fused_sdp_choice_cuda)."""
    many = grouped.get("enable_gqa", False)
    if query.ndim == key.ndim == value.ndim == 4:
        if _takes_flash(query, key, value, attn_mask, many):
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if _takes_efficient(query, key, value, many):
            bias = None if attn_mask is None else _bias_of(attn_mask, query, key)
            learns = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
            out: Tensor = _aten._scaled_dot_product_efficient_attention(
                query, key, value, bias, learns, dropout_p, is_causal, scale=scale
            )[0]
            return out
    written_out: Tensor = _aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped
    )[0]
    return written_out


def follow_traces(replaced: Replacements, warn: Callable[[str, str, str], None]) -> None:
    """torch.jit.trace() runs what it traces once, and checks its values, which are not there. What it returns makes the same calls."""

    def traced(func: Any, example_inputs: Any = None, *_arguments: Any, **options: Any) -> Any:
        named = options.get("example_kwarg_inputs") or {}
        given = (example_inputs,) if isinstance(example_inputs, Tensor) else tuple(example_inputs or ())
        func(*given, **named)
        warn("rule", "torch.jit.trace: what is traced is recorded as it is, without TorchScript's fused kernels", users_line())
        return func

    replaced.set(torch.jit, "trace", traced)


def refuse_flex_attention(mode: type) -> None:
    """FlexAttention that is not compiled. PyTorch writes it out with all scores, below the operators that a recording sees."""
    try:
        flex = importlib.import_module("torch._higher_order_ops.flex_attention")  # The package's name of it is the operator.
    except ImportError:  # Before PyTorch 2.5.
        return

    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise record_error(
            "FlexAttention that is not compiled is not recorded",
            "compile it, as training does: flex_attention = torch.compile(flex_attention)",
            users_line(),
        )

    if mode not in flex.flex_attention.python_key_table:
        flex.flex_attention.py_impl(mode)(refuse)


# ----------------------------------------------------------------------------------- other kernels


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """at::linear as it is for tensors that are no subclasses: a bias outside of the product is added in place."""
    if bias is None:
        return torch.matmul(input, weight.t())
    if bias.ndim != 1:
        return torch.matmul(input, weight.t()) + bias
    if input.ndim == 2:
        return torch.addmm(bias, input, weight.t())
    if input.ndim == 3 and input.is_contiguous():
        flat = torch.addmm(bias, input.reshape(-1, input.shape[-1]), weight.t())
        return flat.view(*input.shape[:-1], weight.shape[0])
    return torch.matmul(input, weight.t()).add_(bias)


_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _convolution_format(input: Tensor, weight: Tensor, _backend: object) -> torch.memory_format:
    """cudnn_conv_suggest_memory_format: channels last if input or weight is; never in float64, nor in PyTorch's own
    depthwise kernels."""
    last = _CHANNELS_LAST.get(input.ndim)
    depthwise = weight.shape[1] == 1 and input.shape[1] > 1 and input.dtype == torch.float32
    if last is None or depthwise or input.dtype == torch.float64:
        return torch.contiguous_format
    for each in (input, weight):
        if each.is_contiguous(memory_format=last) and not each.is_contiguous():
            return last
    return torch.contiguous_format


def _never(*_arguments: Any, **_options: Any) -> None:
    """A kernel that is not called: the recorder answers before it."""


def _composite_on_cpu_builds() -> list[str]:
    """Operators whose composite fallback a CPU build takes for CUDA, and a CUDA build does not: those that have a kernel
    of their own for the CPU. channel_shuffle has none on CUDA."""
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    both = set(registered("CPU")) & set(registered("CompositeImplicitAutograd"))
    names = (name for name in sorted(both) if "channel_shuffle" not in name)
    return [name for name in names if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA")]


def _close(library: torch.library.Library) -> None:
    destroy = getattr(library, "_destroy", None)
    if destroy is not None:
        destroy()
    else:  # 2.1
        library.m = None


def install_kernels(replaced: Replacements) -> None:
    """Until `replaced` is closed, operators on CUDA tensors go the ways of a CUDA build."""
    library = torch.library.Library("aten", "IMPL")
    replaced.callback(_close, library)
    library.impl("scaled_dot_product_attention", _attention, "AutogradCUDA")
    library.impl("linear", _linear, "AutogradCUDA")
    for name in _composite_on_cpu_builds():
        library.impl(name.split("::")[1], _never, "CUDA")
    replaced.set(torch._C, "_conv_determine_backend_memory_format", _convolution_format)
