"""One tracing as the nodes of graph JSON."""

from __future__ import annotations

import torch
import torch.fx
from torch import nn

from . import elementwise, layer_functions, parts, products, shapes  # noqa: F401 - they fill HANDLERS
from .calls import HANDLERS, Arguments, function_key, refuse, target_name
from .error import ExportError
from .graph import Graph, dim_json, dtype_name
from .modules import leaf_of, module_attributes
from .tracing import mapped


def writes(node, modules):
    """Whether a node changes a tensor that others may read, as far as its name and arguments tell."""
    if node.op == "call_module":
        return getattr(modules[node.target], "inplace", False)
    name = node.target if node.op == "call_method" else function_key(node)
    flags = [*node.args, *node.kwargs.values()]  # inplace is an argument of many functions
    return name.endswith("_") or "out" in node.kwargs or any(flag is True for flag in flags)


def unread(nodes, modules):
    """What a model makes and nothing reads: names that end with their function.

    In a graph they would be outputs, each with a loss of its own."""
    found = set()
    for node in reversed(nodes):
        kept = node.op in ("placeholder", "output") or any(user not in found for user in node.users)
        if not kept and (node.op == "get_attr" or not writes(node, modules)):
            found.add(node)
    return found


class Exporter:
    """Turns one tracing into a Graph; what grows is looked up in all of them."""

    def __init__(self, traces, trace):
        self.traces = traces
        self.trace = trace
        self.index = {node: index for index, node in enumerate(trace.nodes)}
        self.graph = Graph()
        self.emitted = {}  # fx node -> name of the graph's node that holds its tensor
        self.shape_lines = []  # (name, index of the fx node whose shape the node has)
        self.held = set()  # ids of parameters that a node holds
        self.modules = dict(trace.model.named_modules())

    def run(self):
        left_out = unread(self.trace.nodes, self.modules)
        for node in self.trace.nodes:
            if node in left_out:
                continue
            try:
                getattr(self, node.op)(node)
            except ExportError:
                raise
            except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
                raise ExportError(
                    f"node {node.name} ({target_name(node)}): cannot be exported: {error!r}"
                ) from error
        self.add_unused_parameters()
        return self.graph

    # -- kinds of fx nodes

    def placeholder(self, node):
        tensor = self.value(node)
        shape = [dim_json(dim) for dim in self.dims(node)]
        if self.dims(node) and self.dims(node)[0].grows == "":
            raise ExportError(f"the input {node.name} does not have the batch as its first axis")
        name = self.graph.unique(node.name)
        self.graph.inputs.append({"name": name, "shape": shape, "dtype": dtype_name(tensor.dtype)})
        self.emitted[node] = name

    def get_attr(self, node):
        """Added where it is first read: weights that an op holds are no nodes."""

    def call_module(self, node):
        module = self.modules[node.target]
        leaf = leaf_of(module)
        attributes = module_attributes(module, leaf)
        inputs = [arg for arg in node.args if isinstance(arg, torch.fx.Node)]
        inputs += [arg for arg in node.kwargs.values() if isinstance(arg, torch.fx.Node)]
        if leaf.op == "multihead_attention" and node.kwargs.get("need_weights") is False:
            attributes["need_weights"] = False
        self.add(
            node,
            leaf.op,
            inputs,
            attributes,
            name=node.target,
            class_name=type(module).__name__,
            parameters=list(module.parameters()),
        )

    def call_method(self, node):
        self.call(node, node.target)

    def call_function(self, node):
        self.call(node, function_key(node))

    def output(self, node):
        mapped(node.args, lambda item: self.check_output(item))

    def check_output(self, item):
        """What the model returns and also computes with stays alive as long as what it returns alone."""
        if not isinstance(item, torch.fx.Node):
            return
        name = self.input_name(item)
        entry = next((each for each in self.graph.nodes if each["name"] == name), None)
        if entry is not None and any(name in each.get("inputs", ()) for each in self.graph.nodes):
            entry["returned"] = True

    def call(self, node, key):
        in_place = key.endswith("_") and key[:-1] in HANDLERS
        handler = HANDLERS.get(key[:-1] if in_place else key)
        if handler is None:
            raise ExportError(
                f"node {node.name}: the function {target_name(node)} has no op in graph JSON"
            )
        if self.is_empty(node):
            return  # x[..., size:], which code that splits each head has where no part is left.
        handler(self, node, Arguments(node, handler.names), in_place)
        overwritten = node.args[0] if in_place and node.args else None
        if overwritten in self.emitted and node in self.emitted:
            self.emitted[overwritten] = self.emitted[node]  # Both are names of the one tensor.

    # -- what handlers use

    def value(self, node):
        return self.trace.values[self.index[node]]

    def dims(self, node):
        return self.traces.dims(self.index[node])

    def size_here(self, dim):
        """A dimension's size at this tracing."""
        return dim.sizes[self.traces.all.index(self.trace)]

    def is_empty(self, node):
        value = self.value(node)
        return isinstance(value, torch.Tensor) and value.numel() == 0

    def keeps_type(self, node, source):
        return self.traces.keeps_type(self.index[node], self.index[source])

    def dtype_name(self, node):
        return self.traces.dtype_name(self.index[node])

    def input_name(self, node):
        if node not in self.emitted:
            if node.op != "get_attr":
                refuse(node, "is not its layer's first output; graph JSON has no others")
            self.add_attribute(node)
        return self.emitted[node]

    def add_attribute(self, node):
        tensor = self.value(node)
        shape = list(tensor.shape)
        if isinstance(tensor, nn.Parameter):
            self.add(node, "parameter", [], {"shape": shape}, name=node.target, parameters=[tensor])
            return
        attributes = {"shape": shape, "dtype": self.dtype_name(node)}
        self.add(node, "constant", [], attributes, name=node.target)

    def is_parameter(self, node):
        if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
            return False
        return isinstance(self.value(node), nn.Parameter)

    def parameter(self, node):
        """The parameter that an argument is, or None for an argument that is None."""
        if node is None:
            return None
        if self.is_parameter(node):
            return self.value(node)
        raise ExportError(f"node {node}: a weight that is computed has no op in graph JSON")

    def alias(self, node, source):
        self.emitted[node] = self.input_name(source)

    def add(
        self, node, op, inputs, attributes, name=None, class_name=None, parameters=(), last=True
    ):
        """Adds a node; the fx node's tensor is the last one added for it."""
        entry = {"name": None, "op": op}
        if class_name is not None:
            entry["class"] = class_name
        names = [item if isinstance(item, str) else self.input_name(item) for item in inputs]
        entry["name"] = self.graph.unique(name or node.name)
        if names:
            entry["inputs"] = names
        if attributes:
            entry["attrs"] = attributes
        self.add_parameter_counts(entry, parameters)
        self.graph.nodes.append(entry)
        if last:
            self.emitted[node] = entry["name"]
            self.shape_lines.append((entry["name"], self.index[node]))
        return entry["name"]

    def add_parameter_counts(self, entry, parameters):
        distinct = {id(parameter): parameter for parameter in parameters if parameter is not None}
        if not distinct:
            return
        entry["parameters"] = sum(parameter.numel() for parameter in distinct.values())
        tied = sum(p.numel() for key, p in distinct.items() if key in self.held)
        if tied:
            entry["tied_parameters"] = tied
        trained = {parameter.requires_grad for parameter in distinct.values()}
        if len(trained) > 1:
            name = entry["name"]
            raise ExportError(f"node {name}: some of its parameters are frozen, not all of them")
        if trained == {False}:
            entry["frozen"] = True
        self.held.update(distinct)

    def add_unused_parameters(self):
        """Parameters that forward does not read: they take memory, but never get a gradient."""
        for name, parameter in self.trace.model.named_parameters():
            if id(parameter) not in self.held:
                self.graph.nodes.append(
                    {
                        "name": self.graph.unique(name),
                        "op": "parameter",
                        "parameters": parameter.numel(),
                        "frozen": True,
                    }
                )
