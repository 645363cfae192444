"""torch.fx's tracing with shapes: a model's operations, each with the meta tensor that it gives."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import operator
from unittest import mock

import torch
import torch.fx
from torch import nn

from .error import ExportError
from .modules import leaf_of


def on_meta(model):
    """A copy of the model in training mode without storage; what shares a tensor still does."""
    copies = {}
    for module in model.modules():
        owned = [*module._parameters.values(), *module._buffers.values(), *vars(module).values()]
        for tensor in owned:
            if isinstance(tensor, nn.Parameter):
                copies[id(tensor)] = nn.Parameter(
                    torch.empty_like(tensor, device="meta"), tensor.requires_grad
                )
            elif isinstance(tensor, torch.Tensor):
                copies[id(tensor)] = torch.empty_like(tensor, device="meta", requires_grad=False)
    return copy.deepcopy(model, copies).train()


def mapped(value, function):
    """The same nest of lists, tuples, dicts and slices with function applied to what is in it."""
    if isinstance(value, (list, tuple)):
        items = [mapped(item, function) for item in value]
        # A named tuple takes its items one by one.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(item, function) for item in (value.start, value.stop, value.step)))
    return function(value)


def holds_tensor(value):
    if isinstance(value, (list, tuple)):
        return any(map(holds_tensor, value))
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    return isinstance(value, torch.Tensor)


class ShapedProxy(torch.fx.Proxy):
    """A proxy that knows its tensor, so that shapes are plain numbers."""

    def __init__(self, node, tracer, value):
        super().__init__(node, tracer)
        self.value = value

    def __getattr__(self, name):
        if name in ("T", "mT"):
            return self.transpose(-2, -1)
        known = getattr(self.value, name)
        return torch.fx.proxy.Attribute(self, name) if callable(known) else known

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[index] for index in range(len(self.value)))


def add_in_place_operators():
    """Python falls back to x = x + y without these, which would hide that no tensor is made."""
    for name in ("iadd", "isub", "imul", "itruediv"):
        function = getattr(operator, name)

        def method(self, other, function=function):
            return self.tracer.create_proxy("call_function", function, (self, other), {})

        setattr(ShapedProxy, f"__{name}__", method)


add_in_place_operators()

# What makes a tensor from only a shape: a constant of the graph.
CREATORS = {
    "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
    "zeros_like", "ones_like", "full_like", "empty_like",
}  # fmt: skip


@contextlib.contextmanager
def no_autocast_on_meta():
    """A model may turn autocast off for its device, and there is none for "meta"."""
    autocast = torch.amp.autocast_mode.autocast
    init, enter, leave = autocast.__init__, autocast.__enter__, autocast.__exit__

    def initialise(self, device_type, *arguments, **options):
        self.on_meta = device_type == "meta"
        if not self.on_meta:
            init(self, device_type, *arguments, **options)

    def begin(self):
        return self if getattr(self, "on_meta", False) else enter(self)

    def end(self, *error):
        return None if getattr(self, "on_meta", False) else leave(self, *error)

    with mock.patch.multiple(autocast, __init__=initialise, __enter__=begin, __exit__=end):
        yield


@contextlib.contextmanager
def joins_of_tuples():
    """torch.cat(x.chunk(2)): PyTorch takes no proxy in a list's place, and it is a list of proxies as well."""

    def unrolled(function):
        def join(tensors, *arguments, **options):
            return function(
                list(tensors) if isinstance(tensors, ShapedProxy) else tensors, *arguments, **options
            )

        return join

    with mock.patch.multiple(torch, cat=unrolled(torch.cat), stack=unrolled(torch.stack)):
        yield


class ShapeTracer(torch.fx.Tracer):
    """torch.fx's tracer with shapes: values holds what each node gives, as meta tensors."""

    proxy_buffer_attributes = True

    def __init__(self, examples):
        super().__init__()
        self.examples = list(examples)
        self.values = {}
        self.running = False

    def trace_model(self, model):
        with no_autocast_on_meta(), joins_of_tuples():
            return self.trace_unhidden(model)

    def trace_unhidden(self, model):
        # What libraries hide from torch.fx, as it computes with shapes, can be traced here.
        # A list of them in PyTorch 1, a dictionary in 2.
        hidden = torch.fx._symbolic_trace._wrapped_fns_to_patch
        kept = copy.copy(hidden)
        hidden.clear()
        try:
            with torch.no_grad():
                return self.trace(model)
        finally:
            (hidden.update if isinstance(hidden, dict) else hidden.extend)(kept)

    def is_leaf_module(self, module, name):
        return leaf_of(module) is not None

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        if self.running:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def call_module(self, module, forward, args, kwargs):
        if self.running:
            return forward(*args, **kwargs)
        if self.is_leaf_module(module, ""):
            self.module, self.forward = module, forward
        return super().call_module(module, forward, args, kwargs)

    def create_arg(self, a):
        # Also a named tuple that a model returns; torch.fx would make its construction a node.
        argument = super().create_arg(tuple(a) if isinstance(a, tuple) else a)
        if isinstance(a, torch.Tensor):
            self.values[argument] = a
        return argument

    def to_bool(self, obj):
        raise ExportError(
            f"node {obj.node.name}: Python branches on this tensor's values, which no graph holds"
        )

    def create_proxy(self, kind, target, args, kwargs, *rest, **named):
        if kind == "placeholder" and not self.examples:
            return self.default_of(target, args)
        value = self.value_of(kind, target, args, kwargs)
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if not holds_tensor(value) or name in CREATORS:
            return value
        named.pop("proxy_factory_fn", None)
        node = super().create_proxy(kind, target, args, kwargs, *rest[:2], **named).node
        self.values[node] = value
        return ShapedProxy(node, self, value)

    @staticmethod
    def default_of(target, default):
        if target.startswith("**"):
            return {}
        if target.startswith("*"):
            return ()
        if not default:
            raise ExportError(f"the model's input {target!r} has no default: give an example of it")
        return default[0]

    def value_of(self, kind, target, args, kwargs):
        if kind == "placeholder":
            return self.examples.pop(0)
        if kind == "get_attr":
            value = self.root
            self.running = True
            for part in target.split("."):
                value = getattr(value, part)
            self.running = False
            return value
        args, kwargs = mapped((args, kwargs), concrete)
        self.running = True
        try:
            if kind == "call_module":
                keeps_shape = leaf_of(self.module).op in ("dropout", "stochastic_depth")
                return torch.empty_like(args[0]) if keeps_shape else self.forward(*args, **kwargs)
            if kind == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)
        finally:
            self.running = False


def concrete(value):
    if isinstance(value, torch.fx.proxy.Attribute):
        return getattr(value.root.value, value.attr)
    if isinstance(value, ShapedProxy):
        return value.value
    if isinstance(value, torch.Tensor) and value.device.type != "meta":
        return torch.empty_like(value, device="meta")
    return value


@dataclasses.dataclass(eq=False)
class Trace:
    """One tracing of the model: its nodes and, for each, what it returns."""

    model: nn.Module
    nodes: list
    values: list


def trace(model, examples, dtype=None):
    """A model's operations; with a type, those of the model in it."""
    model = on_meta(model).to(dtype=dtype)
    tracer = ShapeTracer(examples)
    nodes = list(tracer.trace_model(model).nodes)
    return Trace(model, nodes, [tracer.values.get(node) for node in nodes])


def same_structure(one, other):
    def outline(trace):
        return [(n.op, str(n.target), [str(i) for i in n.all_input_nodes]) for n in trace.nodes]

    return outline(one) == outline(other)
