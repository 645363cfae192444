"""torchsummary's layout: a row for each call, children before the module that holds them."""

from __future__ import annotations

import math

import torch
from torch import nn

from .calls import trace_calls
from .models import count_parameters, example_input, sample_shape
from .sizes_block import sizes_lines, totals_lines


def torchsummary_lines(model, options):
    sample = sample_shape(options)
    _, calls = trace_calls(model, example_input(options.model, 2, sample))
    shown = [call for call in calls if is_torchsummary_row(call.module, model)]
    rows = [
        (
            f"{type(call.module).__name__}-{index}",
            torchsummary_shape(call, options.batch),
            weight_and_bias_size(call.module),
        )
        for index, call in enumerate(shown, start=1)
    ]

    lines = ["-" * 64, torchsummary_row("Layer (type)", "Output Shape", "Param #"), "=" * 64]
    lines += [torchsummary_row(name, str(shape), f"{size:,}") for name, shape, size in rows]
    lines += ["=" * 64, *totals_lines(*count_parameters(model)), "-" * 64]
    lines += torchsummary_sizes(model, [shape for _, shape, _ in rows], sample, options.batch)
    return [*lines, "-" * 64]


def is_torchsummary_row(module, model):
    return module is not model and not isinstance(module, (nn.Sequential, nn.ModuleList))


def torchsummary_row(name, shape, size):
    return f"{name:>20}  {shape:>25} {size:>15}"


def torchsummary_shape(call, batch):
    """The batch replaces the first dimension, whatever that is; several outputs make a list."""
    shapes = [[batch, *output.shape[1:]] for output in call.outputs]
    return shapes[0] if len(shapes) == 1 else shapes


def weight_and_bias_size(module):
    """torchsummary knows no other parameters: those of, say, an attention layer's inputs are 0."""
    tensors = [getattr(module, name, None) for name in ("weight", "bias")]
    return sum(tensor.numel() for tensor in tensors if isinstance(tensor, torch.Tensor))


def torchsummary_sizes(model, shapes, sample, batch):
    """MiB at 4 bytes a value, outputs doubled for their gradients; a batch of -1 counts as one."""

    def elements(shape):
        is_list = bool(shape) and isinstance(shape[0], list)
        return sum(map(elements, shape)) if is_list else abs(math.prod(shape))

    mib = 4 / 1024**2
    inputs = math.prod(sample) * abs(batch) * mib
    outputs = 2 * sum(elements(shape) for shape in shapes) * mib
    parameters = count_parameters(model)[0] * mib
    return sizes_lines(inputs, outputs, parameters)
