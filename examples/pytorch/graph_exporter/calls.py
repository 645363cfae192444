"""Calls of functions: their names, their arguments, and the table of handlers, which the modules of
functions fill."""

from __future__ import annotations

from .error import ExportError
from .models import scaled_dot_product_attention


def target_name(node):
    target = node.target
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', None) or 'torch'}.{getattr(target, '__name__', target)}"


OPERATORS = {"iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "truediv": "div"}


def function_key(node):
    """The name that handlers are registered by; of functions of PyTorch and Python only."""
    target = node.target
    name = getattr(target, "__name__", str(target))
    package = (getattr(target, "__module__", None) or "torch").partition(".")[0]
    if package in ("_operator", "operator"):
        return OPERATORS.get(name, name)
    if package == "torch" or target is scaled_dot_product_attention:
        return name
    return target_name(node)


# ---------------------------------------------------------------------------------- functions


class Arguments:
    """The arguments of a call by name; rest holds those beyond the names."""

    def __init__(self, node, names):
        self.node = node
        self.named = dict(zip(names, node.args))
        self.rest = node.args[len(names) :]
        self.named.update(node.kwargs)
        # Methods call their first argument self.
        if "self" in self.named and names:
            self.named.setdefault(names[0], self.named["self"])

    def __getitem__(self, name):
        return self.named[name]

    def get(self, name, default=None):
        value = self.named.get(name, default)
        return default if value is None else value

    def sizes(self, name):
        """view(2, 3) and view((2, 3)) alike."""
        first = self.named.get(name)
        if isinstance(first, (list, tuple)):
            return list(first)
        return [first, *self.rest]


HANDLERS = {}


def handles(names, *keys):
    """Registers a handler for functions of these names, whose arguments are called so."""

    def register(function):
        function.names = names.split()
        for key in keys:
            HANDLERS[key] = function
        return function

    return register


def refuse(node, why):
    raise ExportError(f"node {node.name} ({target_name(node)}): {why}")


def function_name(node):
    return node.target if isinstance(node.target, str) else node.target.__name__
