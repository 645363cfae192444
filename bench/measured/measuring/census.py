"""The workspace census, as far as one process has a part in it: what cuDNN takes for single convolutions, and recorded
runs. Units: bytes, pixels, channels.

Workspaces: each of a convolution's three calls (forward, data gradient, weight gradient) is made alone; what the
allocator's peak rose by, less what the result holds, is its workspace.
Traces: the first two steps of a job with PyTorch's own recording of the allocator (torch.cuda.memory._snapshot()),
which `gpumem replay-trace` reads.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
from typing import Callable

import torch

from . import training
from .convolutions import Shape
from .device import BROKEN, OUT_OF_MEMORY, Device
from .jobs import Job

MOST_ENTRIES = 1_000_000
"""Of a recording."""


def measure_convolution(shape: Shape, device: Device) -> Shape:
    """The shape with forward_bytes, data_gradient_bytes and weight_gradient_bytes; or an error."""
    device.reset()
    mode = str(shape["mode"])
    device.set_precision("fp32-strict" if mode == "fp32-strict" else "fp32")
    torch.backends.cudnn.benchmark = mode.endswith("benchmark")
    try:
        return {**shape, **_workspaces(shape, mode, device)}
    except RuntimeError as error:
        text = str(error)
        if any(words in text for words in OUT_OF_MEMORY):
            return {**shape, "error": "oom"}
        return {**shape, "error": text[:160], "broken": any(words in text for words in BROKEN)}
    finally:
        torch.backends.cudnn.benchmark = False


def _workspaces(shape: Shape, mode: str, device: Device) -> Shape:
    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16}
    dtype = kinds.get(mode.split("-")[0], torch.float32)
    layout = torch.channels_last if mode.endswith("nhwc") else torch.contiguous_format
    kernel, stride, groups, side = (shape[name] for name in ("kernel", "stride", "groups", "side"))
    pad = kernel // 2

    def tensor(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, device=device.torch_device, dtype=dtype).to(memory_format=layout)

    x = tensor(shape["batch"], shape["in_channels"], side, side)
    weight = tensor(shape["out_channels"], shape["in_channels"] // groups, kernel, kernel)
    y, forward = workspace_of(lambda: torch.conv2d(x, weight, None, stride, pad, 1, groups), device)
    gradient = torch.randn_like(y)
    del y

    def backward(wanted: list[bool]) -> int:
        return workspace_of(
            lambda: torch.ops.aten.convolution_backward(
                gradient, x, weight, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, wanted
            ),
            device,
        )[1]

    return {
        "forward_bytes": forward,
        "data_gradient_bytes": backward([True, False, False]),
        "weight_gradient_bytes": backward([False, True, False]),
    }


def workspace_of(call: Callable[[], object], device: Device) -> tuple[object, int | None]:
    """The call's result, and the bytes that it took above it; None without a GPU."""
    if not device.cuda:
        return call(), None
    device.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    device.synchronize()
    return result, torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()


# ------------------------------------------------------------------------------------------------ recorded runs


def record(on: bool) -> None:
    history = torch.cuda.memory._record_memory_history
    if not on:
        # 2.0 wants False, later ones None.
        history(None if _torch_version() >= (2, 1) else False)
    elif _torch_version() >= (2, 1):
        history("all", context=None, stacks="python", max_entries=MOST_ENTRIES)
    else:
        history(True, trace_alloc_max_entries=MOST_ENTRIES, trace_alloc_record_context=False)


def _torch_version() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def slim(snapshot: dict, device_number: int = 0) -> dict:
    """What a replay needs of a snapshot: the device's requests and frees, without stacks."""
    fields = ("action", "addr", "size", "stream")
    trace = snapshot["device_traces"][device_number]
    return {"device_traces": [[{name: event[name] for name in fields if name in event} for event in trace]]}


def trace_job(job: Job, device: Device, path: pathlib.Path) -> training.Result:
    """Runs two steps and writes the recording, gzip'd JSON, to path; the recording begins before the model comes."""
    job = dataclasses.replace(job, steps=2, counters=False)
    device.reset()
    if device.cuda:
        record(True)
    try:
        result = training.run(job, device)
        snapshot = torch.cuda.memory._snapshot() if device.cuda else {"device_traces": [[]]}
    finally:
        if device.cuda:
            record(False)
    if result["status"] in ("ok", "oom"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(slim(snapshot), file, separators=(",", ":"))
        result["trace"] = path.name
    return result
