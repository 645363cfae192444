"""Functions that join tensors or take parts of them."""

from __future__ import annotations

import torch
import torch.fx

from .calls import HANDLERS, function_name, handles, refuse, target_name
from .steps import Steps


@handles("tensors dim", "cat", "concat", "concatenate")
def concat(exporter, node, arguments, _):
    tensors = [each for each in arguments["tensors"] if not exporter.is_empty(each)]
    exporter.add(node, "concat", tensors, {"dim": arguments.get("dim", 0)})


@handles("tensors dim", "stack")
def stack(exporter, node, arguments, _):
    dim = arguments.get("dim", 0)
    parts = [
        exporter.add(node, "unsqueeze", [tensor], {"dim": dim}, last=False)
        for tensor in arguments["tensors"]
    ]
    exporter.add(node, "concat", parts, {"dim": dim})


@handles("input sizes dim", "split", "chunk", "tensor_split", "unbind", "split_with_sizes")
def split(exporter, node, arguments, _):
    unbinds = function_name(node) == "unbind"
    dim = arguments.named.get("sizes" if unbinds else "dim", arguments.named.get("dim", 0))
    source = exporter.value(arguments["input"])
    axis = dim % source.dim()
    sizes = [1 if unbinds else part.shape[axis] for part in exporter.value(node)]
    exporter.add(node, "split", [arguments["input"]], {"sizes": sizes, "dim": axis})


def item(exporter, node, source, index):
    """One part of a split, or the tensor of a layer that returns more."""
    if source.op == "call_module" and index == 0:
        exporter.alias(node, source)
        return
    if source.op == "call_module" or source not in exporter.emitted:
        return  # Graph JSON has the first output of a layer only: an error if another one is read.
    if function_name(source) in ("max", "min") and index == 0:
        exporter.alias(node, source)
        return
    if HANDLERS.get(function_name(source)) is not split:
        refuse(node, f"reads a part of what {target_name(source)} gives")
    entry = next(n for n in exporter.graph.nodes if n["name"] == exporter.emitted[source])
    sizes, dim = entry["attrs"]["sizes"], entry["attrs"]["dim"]
    index %= len(sizes)
    attributes = {"dim": dim, "start": sum(sizes[:index]), "length": sizes[index]}
    if function_name(source) != "unbind":
        exporter.add(node, "item", [source], attributes)
        return
    part = exporter.add(node, "item", [source], attributes, last=False)
    exporter.add(node, "squeeze", [part], {"dim": dim})


@handles("input index", "getitem")
def getitem(exporter, node, arguments, _):
    source, index = arguments["input"], arguments["index"]
    if not isinstance(exporter.value(source), torch.Tensor):
        item(exporter, node, source, index)
        return
    index = list(index) if isinstance(index, (list, tuple)) else [index]
    rank = exporter.value(source).dim()
    used = sum(part is not None and part is not Ellipsis for part in index)
    if Ellipsis in [part for part in index if not isinstance(part, torch.fx.Node)]:
        at = next(i for i, part in enumerate(index) if part is Ellipsis)
        index[at : at + 1] = [slice(None)] * (rank - used)
    dims = exporter.dims(source)
    steps = Steps(exporter, node, source)
    axis = from_axis = 0
    for part in index:
        if part is None:
            steps.then("unsqueeze", {"dim": axis})
            axis += 1
            continue
        if isinstance(part, bool) or isinstance(part, (list, tuple)):
            refuse(node, "indexes by a list or a boolean")
        if isinstance(part, int):
            steps.then("select", {"dim": axis, "index": part})
        elif isinstance(part, slice):
            add_slice(exporter, steps, dims[from_axis], axis, part)
            axis += 1
        else:
            if exporter.value(part).dtype == torch.bool:
                refuse(node, "selects by a mask: how much is left depends on values")
            steps.then("index", {"dim": axis}, [part])
            axis += exporter.value(part).dim()
        from_axis += 1
    if sum(isinstance(part, torch.fx.Node) for part in index) > 1:
        refuse(node, "indexes by several tensors")
    steps.finish()


def add_slice(exporter, steps, dim, axis, part):
    size = exporter.size_here(dim)
    start, stop, step = part.indices(size)
    if step < 1:
        refuse(steps.node, "slices backwards")
    length = len(range(start, stop, step))
    if length == size and (part.stop is None or dim in exporter.dims(steps.node)):
        return  # All of the axis, at every size.
    attributes = {"dim": axis, "start": start}
    like = None
    if part.stop is not None:
        like = like_input(exporter, steps.node, length)
        attributes.update({"length": length} if like is None else {"like_dim": like[1]})
    if step != 1:
        attributes["step"] = step
    steps.then("slice", attributes, [like[0]] if like is not None else [])


def like_input(exporter, node, length):
    """The graph input's axis that the length of a slice is, if it changes with the input's size."""
    grown = [dim for dim in exporter.dims(node) if dim.grows == "size"]
    wanted = [dim for dim in grown if exporter.size_here(dim) == length]
    for source in exporter.trace.nodes:
        if source.op != "placeholder" or source not in exporter.emitted:
            continue
        for axis, dim in enumerate(exporter.dims(source)):
            if dim in wanted:
                return source, axis
    return None


@handles("input dim index", "select")
def select(exporter, node, arguments, _):
    attributes = {name: arguments[name] for name in ("dim", "index")}
    exporter.add(node, "select", [arguments["input"]], attributes)


@handles("input dim start length", "narrow")
def narrow(exporter, node, arguments, _):
    attributes = {name: arguments[name] for name in ("dim", "start", "length")}
    exporter.add(node, "slice", [arguments["input"]], attributes)


@handles("input dim index", "index_select")
def index_select(exporter, node, arguments, _):
    inputs = [arguments["input"], arguments["index"]]
    exporter.add(node, "index", inputs, {"dim": arguments["dim"]})
