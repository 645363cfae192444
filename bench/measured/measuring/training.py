"""Runs a job's training steps and reads what they took. Units: bytes, seconds.

The loop is a TrainingJob's default (zero_grad "before-forward"): the last batch is released,
a new one arrives, gradients are set to none, forward, backward, step; outputs and loss live until their variables are assigned again.
Parameters are made on the CPU's side first, so that the allocator sees nothing before model.to(device).
"""

from __future__ import annotations

import time
from typing import Callable, Iterator

import torch
from torch import nn

from . import zoo
from .device import Device, trouble
from .jobs import Job

Result = dict[str, object]

SLOW_STEP = 3.0
"""A step of more seconds than this is followed by one more at most: two show the peak."""


class StepSkipped(Exception):
    """The optimizer made no step, so that its state may be missing in what was measured."""


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "sgd-momentum": lambda parameters, **more: torch.optim.SGD(parameters, momentum=0.9, **more),
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}


def optimizer_of(job: Job, module: nn.Module, device: Device) -> torch.optim.Optimizer:
    form = {"fused": True} if job.fused and device.cuda else {}
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return OPTIMIZERS[job.optimizer](trained, lr=1e-4, **form)


def loss_of(outputs: object, labels: torch.Tensor, name: str) -> torch.Tensor:
    """Of a model with several outputs, the sum over them."""
    if not isinstance(outputs, torch.Tensor):
        losses = [loss_of(part, labels, name) for part in outputs if part is not None]
        return sum(losses[1:], losses[0])
    if name == "bce-with-logits":
        return nn.functional.binary_cross_entropy_with_logits(outputs, labels)
    if name == "mse":
        return nn.functional.mse_loss(outputs.float(), labels.float())
    return nn.functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())


def outputs_and_loss(model: zoo.Model, inputs: object, labels: torch.Tensor, name: str) -> tuple[object, object]:
    """Both live until the next batch, as the variables of a usual loop do."""
    if model.computes_loss:
        outputs = model.call(model.module, inputs, labels)
        return outputs, outputs.loss
    outputs = model.outputs(inputs)
    return outputs, loss_of(outputs, labels, name)


def training_steps(model: zoo.Model, job: Job, device: Device) -> Iterator[float]:
    """Trains without end; gives each step's seconds while its tensors are alive."""
    optimizer = optimizer_of(job, model.module, device)
    scaler = device.scaler(job.precision)
    dtype = torch.bfloat16 if job.precision == "bf16" else torch.float32
    target = device.torch_device
    while True:
        begin = time.perf_counter()
        for part in range(job.accumulation):
            inputs = labels = None
            inputs, labels = model.batch(job.batch_size, target, dtype, job.loss)
            if part == 0:
                optimizer.zero_grad(set_to_none=True)
            with device.autocast(job.precision):
                outputs, loss = outputs_and_loss(model, inputs, labels, job.loss)
            (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() < before:
                raise StepSkipped("the scaler skipped a step: gradients were not finite")
        else:
            optimizer.step()
        device.synchronize()
        yield time.perf_counter() - begin


def put(model: zoo.Model, job: Job, device: Device) -> None:
    """Onto the device. Raises RuntimeError where memory is out."""
    dtype = torch.bfloat16 if job.precision == "bf16" or model.frozen_half else None
    device.check(sum(p.numel() * p.element_size() for p in model.module.parameters()))
    zoo.place(model.module, device.torch_device, dtype, model.adapters)


def about_model(model: zoo.Model, checkpointing: bool) -> Result:
    """What the table says of it; known even of a job that does not fit."""
    return {
        "sample": list(model.sample),
        "tokens": model.vocabulary > 0,
        "parameters": sum(p.numel() for p in model.module.parameters()),
        "buffers": sum(b.numel() for b in model.module.buffers()),
        "checkpointing": checkpointing,
    }


def run(job: Job, device: Device, counter_seconds: float = 0.0) -> Result:
    """Status ok, oom, unavailable or error; and the figures that there are. The device is left empty, unless the result
    says `broken` (no CUDA call will succeed any more) or `left` (bytes that could not be given back)."""
    began = time.perf_counter()
    device.reset()
    device.set_precision(job.precision)
    result: Result = {"left_before": device.left()}
    # What a failed run's frames hold is freed with them.
    with device.watched():
        trouble = _measure(job, device, counter_seconds, result)
    result.update(trouble)
    if not result.get("broken"):
        device.reset()
        left = device.left()
        result.update({"left": left} if left else {})
    result["run_seconds"] = round(time.perf_counter() - began, 3)
    return result


def _measure(job: Job, device: Device, counter_seconds: float, result: Result) -> Result:
    """The status, with what went wrong."""
    try:
        _train(job, device, counter_seconds, result)
        return {"status": "ok"}
    except zoo.Unavailable as error:
        return {"status": "unavailable", "error": str(error)}
    except RuntimeError as error:
        return trouble(str(error), device, result)
    except Exception as error:  # A model that does not run is a row of its own, and no reason to stop.
        return {"status": "error", "error": f"{type(error).__name__}: {error}"[:300]}


def _train(job: Job, device: Device, counter_seconds: float, result: Result) -> None:
    model = zoo.built(job)
    result.update(about_model(model, job.checkpointing and zoo.checkpoint(model)))
    put(model, job, device)
    steps = training_steps(model, job, device)
    seconds = [next(steps)]
    first = device.figures()
    result.update({f"first_{name}": first[name] for name in ("allocated", "reserved") if name in first})
    while len(seconds) < (job.steps if seconds[0] < SLOW_STEP else min(job.steps, 2)):
        seconds.append(next(steps))
    result.update(device.figures())
    result.update(steps=len(seconds), step_seconds=[round(s, 6) for s in seconds])
    if counter_seconds and job.counters:
        result["counters"], result["step_seconds"] = _counted(steps, device, counter_seconds)
    steps.close()


def _counted(steps: Iterator[float], device: Device, seconds: float) -> tuple[dict[str, float], list[float]]:
    """The counters over this many seconds of training, and the last steps' seconds."""
    end = time.perf_counter() + seconds
    taken: list[float] = []
    with device.counters() as counters:
        while not taken or time.perf_counter() < end:
            taken.append(round(next(steps), 6))
    return counters, taken[-16:]
