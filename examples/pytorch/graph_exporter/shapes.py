"""Functions that change a tensor's shape or the order of its axes."""

from __future__ import annotations

import dataclasses
import math

import torch

from .calls import Arguments, handles, refuse, target_name
from .graph import dim_json
from .modules import plain
from .steps import Steps


@handles("input start_dim end_dim", "flatten")
def flatten(exporter, node, arguments, _):
    start, end = arguments.get("start_dim", 0), arguments.get("end_dim", -1)
    exporter.add(node, "flatten", [arguments["input"]], {"start_dim": start, "end_dim": end})


@handles("input dim sizes", "unflatten")
def unflatten(exporter, node, arguments, _):
    reshape(exporter, node, arguments, False)


@handles("input shape", "view", "reshape", "view_as", "reshape_as")
def reshape(exporter, node, arguments, _):
    if isinstance(arguments.get("shape"), torch.dtype):
        refuse(node, "sees a tensor as another type")
    before, after = exporter.dims(arguments["input"]), exporter.dims(node)
    steps = Steps(exporter, node, arguments["input"])
    if not add_reshape(steps, before, after):
        steps = Steps(exporter, node, arguments["input"])
        if not exporter.value(node)._is_view():
            steps.then("contiguous", {})
        if not add_reshape_of_batch(steps, before, after):
            refuse(node, "a view that moves elements across the batch axis has no op in graph JSON")
    steps.finish()


def add_reshape_of_batch(steps, before, after):
    """The steps where the first axis is a multiple of the batch before or after, or no axis grows."""
    if not before or not after:
        return False
    if all(dim.fixed for dim in (*before, *after)):
        if len(before) > 1:
            steps.then("flatten", {"start_dim": 0, "end_dim": -1})
        if len(after) > 1:
            add_unflatten(steps, 0, after)
        return True
    if before[0].grows != "N" or after[0].grows != "N":
        return False
    apart, together = taken_apart(before), taken_apart(after)
    if len(apart) > len(before):
        add_unflatten(steps, 0, apart[:2])
    if product(apart[1:]) != product(together[1:]):
        return False
    if apart != together:
        add_inner_reshape(steps, apart, together)
    if len(together) > len(after):
        steps.then("flatten", {"start_dim": 0, "end_dim": 1})
    return True


def taken_apart(dims):
    """With only the batch as the first axis."""
    first = dims[0]
    if first.factor == 1:
        return dims
    batches = tuple(size // first.factor for size in first.sizes)
    batch = dataclasses.replace(first, size=batches[0], factor=1, sizes=batches)
    rest = dataclasses.replace(
        first, size=first.factor, grows="", factor=0, sizes=(first.factor,) * len(batches)
    )
    return [batch, rest, *dims[1:]]


def product(dims):
    """What some dimensions have at every tracing, as one."""
    sizes = tuple(map(math.prod, zip(*(dim.sizes for dim in dims))))
    return sizes


def add_reshape(steps, before, after):
    """The steps from one shape to another of as many elements. A graph's reshape leaves the first
    axis alone; where that changes, flatten joins it with others, or unflatten takes it apart."""
    if before == after:
        return True
    if not before or not after:
        return False
    if before[0] == after[0]:
        add_inner_reshape(steps, before, after)
        return True
    for count in range(2, len(before) + 1):
        if product(before[:count]) == product(after[:1]):
            steps.then("flatten", {"start_dim": 0, "end_dim": count - 1})
            return add_reshape(steps, [after[0], *before[count:]], after)
    for count in range(2, len(after) + 1):
        if product(after[:count]) == product(before[:1]):
            add_unflatten(steps, 0, after[:count])
            return add_reshape(steps, [*after[:count], *before[1:]], after)
    return False


def add_inner_reshape(steps, before, after):
    open_axes = [axis for axis, dim in enumerate(after[1:]) if not dim.fixed]
    if len(open_axes) > 1:
        # Only one size can be left open; flatten and unflatten do not touch other axes.
        first = same_axes(before, after)
        last = same_axes(before[::-1], after[::-1])
        left, right = before[first : len(before) - last], after[first : len(after) - last]
        if len(right) == 1:
            steps.then("flatten", {"start_dim": first, "end_dim": first + len(left) - 1})
            return
        if len(left) == 1 and sum(not dim.fixed for dim in right) < 2:
            add_unflatten(steps, first, right)
            return
    sizes = [dim.size for dim in after[1:]]
    if not sizes:
        steps.then("flatten", {"start_dim": 0, "end_dim": -1})
        return
    if len(open_axes) == 1:
        sizes[open_axes[0]] = -1
    steps.then("reshape", {"shape": sizes})


def same_axes(one, other):
    """How many axes two shapes begin with alike."""
    return next(i for i, (left, right) in enumerate(zip(one, other)) if left != right)


def add_unflatten(steps, axis, dims):
    open_axes = [at for at, dim in enumerate(dims) if not dim.fixed]
    sizes = [dim.size for dim in dims]
    if len(open_axes) == 1:
        sizes[open_axes[0]] = -1
    steps.then("unflatten", {"dim": axis, "sizes": sizes})


@handles("input dims", "permute")
def permute(exporter, node, arguments, _):
    exporter.add(node, "permute", [arguments["input"]], {"dims": arguments.sizes("dims")})


@handles("input dim0 dim1", "transpose", "swapaxes", "swapdims", "t")
def transpose(exporter, node, arguments, _):
    rank = exporter.value(arguments["input"]).dim()
    dims = list(range(rank))
    if rank > 1:
        one, other = arguments.named.get("dim0", 0) % rank, arguments.named.get("dim1", 1) % rank
        dims[one], dims[other] = dims[other], dims[one]
    exporter.add(node, "permute", [arguments["input"]], {"dims": dims})


@handles("input source destination", "movedim", "moveaxis")
def movedim(exporter, node, arguments, _):
    rank = exporter.value(arguments["input"]).dim()
    sources = [axis % rank for axis in as_list(arguments["source"])]
    targets = [axis % rank for axis in as_list(arguments["destination"])]
    dims = [axis for axis in range(rank) if axis not in sources]
    for target, source in sorted(zip(targets, sources)):
        dims.insert(target, source)
    exporter.add(node, "permute", [arguments["input"]], {"dims": dims})


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


@handles("input dim", "unsqueeze")
def unsqueeze(exporter, node, arguments, _):
    exporter.add(node, "unsqueeze", [arguments["input"]], {"dim": arguments["dim"]})


@handles("input dim", "squeeze")
def squeeze(exporter, node, arguments, _):
    shape = exporter.value(arguments["input"]).shape
    axes = range(len(shape))
    if arguments.named.get("dim") is not None:
        axes = [axis % len(shape) for axis in as_list(arguments["dim"])]
    steps = Steps(exporter, node, arguments["input"])
    for axis in sorted(axes, reverse=True):
        if shape[axis] == 1:
            steps.then("squeeze", {"dim": axis})
    steps.finish()


@handles("input sizes", "expand", "expand_as", "broadcast_to")
def expand(exporter, node, arguments, _):
    before, after = exporter.dims(arguments["input"]), exporter.dims(node)
    kept = [None] * (len(after) - len(before)) + before
    steps = Steps(exporter, node, arguments["input"])
    wanted = [-1 if left == right else dim_json(right) for left, right in zip(kept, after)]
    if any(dim.grows not in ("", "N") for left, dim in zip(kept, after) if left != dim):
        exporter.traces.note = f"only for this input size: node {node.name} expands to it"
    if any(size != -1 for size in wanted):
        steps.then("expand", {"shape": wanted})
    steps.finish()


@handles("input sizes", "repeat", "tile")
def repeat(exporter, node, arguments, _):
    before, after = exporter.dims(arguments["input"]), exporter.dims(node)
    kept = [None] * (len(after) - len(before)) + before
    wanted = [-1 if left == right else dim_json(right) for left, right in zip(kept, after)]
    if any(dim.grows not in ("", "N") for left, dim in zip(kept, after) if left != dim):
        exporter.traces.note = f"only for this input size: node {node.name} repeats to it"
    exporter.add(node, "repeat", [arguments["input"]], {"shape": wanted})


@handles("input dim size step", "unfold")
def unfold(exporter, node, arguments, _):
    """Tensor.unfold, which slides over one axis; the function of that name is another."""
    if node.op == "call_function" and "functional" in target_name(node):
        image_windows(exporter, node, ["kernel_size", "dilation", "padding", "stride"], "unfold")
        return
    attributes = {name: arguments[name] for name in ("dim", "size", "step")}
    exporter.add(node, "sliding_window", [arguments["input"]], attributes)


@handles("input output_size", "fold")
def fold(exporter, node, arguments, _):
    names = ["output_size", "kernel_size", "dilation", "padding", "stride"]
    image_windows(exporter, node, names, "fold")


def image_windows(exporter, node, names, op):
    arguments = Arguments(node, ["input", *names])
    attributes = {name: plain(arguments[name]) for name in names if name in arguments.named}
    exporter.add(node, op, [arguments["input"]], attributes)


@handles("input shifts dims", "roll")
def roll(exporter, node, arguments, _):
    exporter.add(node, "roll", [arguments["input"]], {})


@handles("input pad mode value", "pad")
def pad(exporter, node, arguments, _):
    attributes = {"padding": list(arguments["pad"])}
    if arguments.get("mode", "constant") != "constant":
        attributes["mode"] = arguments["mode"]
    exporter.add(node, "pad", [arguments["input"]], attributes)


@handles("input size scale_factor mode", "interpolate", "upsample")
def interpolate(exporter, node, arguments, _):
    attributes = {"mode": arguments.get("mode", "nearest")}
    for name in ("size", "scale_factor"):
        if arguments.get(name) is not None:
            attributes[name] = plain(arguments[name])
    exporter.add(node, "upsample", [arguments["input"]], attributes)
