"""Functions that go element by element, casts and reductions."""

from __future__ import annotations

import torch
import torch.fx

from .calls import HANDLERS, function_name, handles, refuse
from .modules import plain


def keeps_shape(op, names="input", keep=(), defaults=None):
    """A handler of a function of one tensor; `keep` are arguments that become attributes."""

    def handler(exporter, node, arguments, in_place):
        if arguments.get("dtype") is not None:
            refuse(node, "casts as well; cast first")
        given = {name: plain(arguments.get(name)) for name in keep}
        attributes = {
            name: value
            for name, value in given.items()
            if value is not None and value != (defaults or {}).get(name)
        }
        if in_place or arguments.get("inplace") is True:
            attributes["inplace"] = True
        exporter.add(node, op, [arguments[handler.names[0]]], attributes)

    handler.names = names.split()
    return handler


for same_name in (
    "selu", "softplus", "softsign", "tanh", "sigmoid", "exp", "sqrt", "rsqrt", "square", "neg",
    "abs", "sin", "cos", "log", "clone",
):  # fmt: skip
    HANDLERS[same_name] = keeps_shape(same_name)
for same_name in ("relu", "relu6", "silu", "mish", "hardswish", "hardsigmoid"):
    HANDLERS[same_name] = keeps_shape(same_name, "input inplace")
HANDLERS["logsigmoid"] = keeps_shape("log_sigmoid")
HANDLERS["contiguous"] = keeps_shape("contiguous")
HANDLERS["gelu"] = keeps_shape("gelu", "input", ("approximate",), {"approximate": "none"})
HANDLERS["leaky_relu"] = keeps_shape(
    "leaky_relu", "input negative_slope inplace", ("negative_slope",)
)
HANDLERS["elu"] = keeps_shape("elu", "input alpha inplace", ("alpha",))
HANDLERS["hardtanh"] = keeps_shape(
    "hardtanh", "input min_val max_val inplace", ("min_val", "max_val")
)
HANDLERS["softmax"] = keeps_shape("softmax", "input dim", ("dim",))
HANDLERS["log_softmax"] = keeps_shape("log_softmax", "input dim", ("dim",))
HANDLERS["glu"] = keeps_shape("glu", "input dim", ("dim",))
HANDLERS["pixel_shuffle"] = keeps_shape(
    "pixel_shuffle", "input upscale_factor", ("upscale_factor",)
)


@handles(
    "input p training inplace", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"
)
def dropout(exporter, node, arguments, in_place):
    if arguments.named.get("training", True) is False:
        exporter.alias(node, arguments["input"])
        return
    attributes = {"p": arguments.get("p", 0.5)}
    if in_place or arguments.get("inplace") is True:
        attributes["inplace"] = True
    exporter.add(node, "dropout", [arguments["input"]], attributes)


def binary(op):
    """Of two tensors, or of one and a number: an op of one input."""

    def handler(exporter, node, arguments, in_place):
        tensors = [arguments[name] for name in ("input", "other")]
        tensors = [item for item in tensors if isinstance(item, torch.fx.Node)]
        if op == "pow" and isinstance(arguments["other"], (int, float)):
            exporter.add(node, op, tensors, {"exponent": arguments["other"]})
            return
        exporter.add(node, op, tensors, {"inplace": True} if in_place else {})

    handler.names = ["input", "other"]
    return handler


for binary_name in ("add", "sub", "mul", "div", "maximum", "pow", "matmul"):
    HANDLERS[binary_name] = binary(binary_name)
HANDLERS["subtract"] = HANDLERS["rsub"] = HANDLERS["sub"]
HANDLERS["multiply"] = HANDLERS["mul"]
HANDLERS["divide"] = HANDLERS["true_divide"] = HANDLERS["div"]
HANDLERS["minimum"] = HANDLERS["maximum"]
HANDLERS["bmm"] = HANDLERS["mm"] = HANDLERS["matmul"]


@handles("input min max", "clamp", "clip", "clamp_min", "clamp_max")
def clamp(exporter, node, arguments, in_place):
    exporter.add(node, "clamp", [arguments["input"]], {"inplace": True} if in_place else {})


@handles("input tensor1 tensor2 value", "addcmul")
def addcmul(exporter, node, arguments, _):
    inputs = [arguments[name] for name in ("input", "tensor1", "tensor2")]
    exporter.add(node, "addcmul", inputs, {})


@handles("input mask value", "masked_fill")
def masked_fill(exporter, node, arguments, in_place):
    inputs = [arguments["input"], arguments["mask"]]
    exporter.add(node, "masked_fill", inputs, {"inplace": True} if in_place else {})


@handles("condition input other", "where")
def where(exporter, node, arguments, _):
    inputs = [arguments[name] for name in ("condition", "input", "other")]
    exporter.add(node, "where", [item for item in inputs if isinstance(item, torch.fx.Node)], {})


@handles(
    "input", "to", "type", "type_as", "float", "half", "bfloat16", "double", "long", "int", "bool"
)
def cast(exporter, node, arguments, _):
    if exporter.keeps_type(node, arguments["input"]):
        exporter.alias(node, arguments["input"])
        return
    exporter.add(node, "cast", [arguments["input"]], {"dtype": exporter.dtype_name(node)})


def reduced(exporter, node, arguments, op):
    if arguments.get("dtype") is not None:
        refuse(node, "casts as well; cast first")
    attributes = {}
    if arguments.get("dim") is not None:
        attributes["dim"] = plain(arguments["dim"])
    if arguments.get("keepdim", False):
        attributes["keepdim"] = True
    exporter.add(node, op, [arguments["input"]], attributes)


@handles("input dim keepdim", "mean", "sum", "amax", "amin")
def reduce(exporter, node, arguments, _):
    name = function_name(node)
    reduced(exporter, node, arguments, "amax" if name == "amin" else name)


@handles("input dim unbiased keepdim", "var")
def variance(exporter, node, arguments, _):
    if isinstance(arguments.get("dim"), bool):
        refuse(node, "has no axes; name them")
    reduced(exporter, node, arguments, "var")


@handles("input p dim keepdim", "norm")
def norm(exporter, node, arguments, _):
    if arguments.get("p", 2) not in (2, 2.0, "fro"):
        refuse(node, "is a norm other than the 2-norm")
    reduced(exporter, node, arguments, "vector_norm")


@handles("input ord dim keepdim", "linalg_vector_norm")
def vector_norm(exporter, node, arguments, _):
    if arguments.get("ord", 2) not in (2, 2.0):
        refuse(node, "is a norm other than the 2-norm")
    reduced(exporter, node, arguments, "vector_norm")


@handles("input dim keepdim", "max", "min")
def largest(exporter, node, arguments, in_place):
    """Of two tensors, or over an axis: then only the values, not their places."""
    if isinstance(arguments.get("dim"), torch.fx.Node) or "other" in arguments.named:
        arguments.named.setdefault("other", arguments.get("dim"))
        HANDLERS["maximum"](exporter, node, arguments, in_place)
    elif arguments.get("dim") is None:
        reduced(exporter, node, arguments, "amax")
    else:
        reduced(exporter, node, arguments, "max_values")
