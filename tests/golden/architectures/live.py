"""The most bytes that are alive at a time in a recording: the tensors' own, and what CUDA's kernel of softmax's gradient
makes beside them (gradient times result, native/cuda/SoftMax.cu: softmax_backward_cuda_out)."""

from __future__ import annotations

import functools

from gpumem.record.run import Allocate, Begin, Call, End, Free, Run

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def of_kernel(call: Call) -> int:
    if call.operator != "aten::_softmax_backward_data":
        return 0
    gradient = call.inputs[0]
    return functools.reduce(int.__mul__, gradient.shape, SIZES[gradient.dtype])


def live_peak(run: Run) -> int:
    live: dict[int, int] = {}
    now = peak = kernel = 0
    for event in run.events:
        if isinstance(event, Allocate):
            size = functools.reduce(int.__mul__, event.shape, event.item)
            live[event.number] = size
            now += size
        elif isinstance(event, Free):
            now -= live.pop(event.number)
        elif isinstance(event, Begin):
            kernel = of_kernel(run.calls[event.call])
        elif isinstance(event, End):
            kernel = 0
        peak = max(peak, now + kernel)
    return peak
