"""A model's forward pass, call by call, and the module tree that the calls belong to."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from .models import SummaryError


@dataclasses.dataclass
class LayerCall:
    """One call of one module. A module that never ran has no shapes."""

    module: nn.Module
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)

    @property
    def input_shape(self):
        return list(self.inputs[0].shape) if self.inputs else []

    @property
    def output_shape(self):
        return list(self.outputs[0].shape) if self.outputs else []

    @property
    def output_bytes(self):
        return self.outputs[0].numel() * self.outputs[0].element_size() if self.outputs else 0


def tensors_in(value):
    """The tensors of a module's arguments or result, however they are nested."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def trace_calls(model, example):
    """Runs the model; (calls in the order they began, the same calls in the order they ended)."""
    begun, ended, running = [], [], []

    def begin(module, inputs):
        call = LayerCall(module, inputs=tensors_in(inputs))
        begun.append(call)
        running.append(call)

    def end(_module, _inputs, outputs):
        call = running.pop()
        call.outputs = tensors_in(outputs)
        ended.append(call)

    handles = []
    for module in model.modules():
        handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    try:
        with torch.no_grad():
            model(example)
    except RuntimeError as error:
        shape = "x".join(map(str, example.shape))
        name = type(model).__name__
        raise SummaryError(f"{name} does not run on an input of {shape}: {error}") from error
    finally:
        for handle in handles:
            handle.remove()
    return begun, ended


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a module hangs in the tree of modules; the model itself has depth 0 and no parent."""

    name: str
    depth: int
    parent: nn.Module | None


def module_places(model):
    """Place of each module by id; a module that hangs in several places keeps the first."""
    places = {id(model): Place(type(model).__name__, 0, None)}
    # named_modules() yields parents before their children.
    for _, module in model.named_modules():
        for name, child in module.named_children():
            depth = places[id(module)].depth + 1
            places.setdefault(id(child), Place(name, depth, module))
    return places
