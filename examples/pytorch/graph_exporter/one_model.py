"""One model: its graph JSON, and the shapes of its nodes as PyTorch has them."""

from __future__ import annotations

import torch

from .error import ExportError
from .exporter import Exporter
from .models import IMAGE, SAMPLES, Sample, build_model
from .sizes import Traces, first_tensor


def export(model, samples):
    """(Graph, Traces, the shape lines) of a model."""
    try:
        traces = Traces(model, samples)
    except ExportError:
        raise
    except Exception as error:  # Whatever the model's own code raises.
        shapes = ", ".join("x".join(map(str, sample.shape)) for sample in samples)
        name = type(model).__name__
        raise ExportError(f"{name} does not run on samples of {shapes}: {error}") from error
    try:
        graphs = [Exporter(traces, trace) for trace in traces.all]
        texts = [exporter.run().text("") for exporter in graphs]
    except ExportError as error:
        if not traces.open_size:
            raise
        traces.note, texts = f"only for this input size: {error}", []  # What both sizes have in common has no op.
    if traces.open_size and (traces.note or len(set(texts)) > 1):
        difference = first_difference(texts) if len(set(texts)) > 1 else ""
        traces.fix_size()
        graphs = [Exporter(traces, trace) for trace in traces.all]
        texts = [exporter.run().text("") for exporter in graphs]
        traces.note = traces.note or f"only for this input size: {difference}"
    if len(set(texts)) > 1:
        raise ExportError(f"something changes with the batch size: {first_difference(texts)}")
    return graphs[0].graph, traces, graphs[0].shape_lines


def first_difference(texts):
    """The first line of the first text that another one has not."""
    other = next(text for text in texts if text != texts[0])
    lines = zip(texts[0].splitlines(), other.splitlines())
    return next(line.strip() for line, another in lines if line != another)


def export_graph(model, examples, name="model"):
    """The graph JSON of a module, for examples of its inputs, whose first axis is the batch."""
    samples = [Sample(tuple(example.shape[1:]), None, example.dtype) for example in examples]
    return export(model, samples)[0].text(name)


def shape_text(traces, lines):
    """The shapes of all nodes at two sizes, as PyTorch has them, and the number of parameters."""
    chosen = [traces.all[0], traces.all[-1]]

    def shapes(index):
        tensors = [first_tensor(trace.values[index]) for trace in chosen]
        return " ".join("x".join(map(str, tensor.shape)) or "scalar" for tensor in tensors)

    parameters = list(traces.first.model.parameters())
    text = [
        f"parameters {sum(p.numel() for p in parameters)}",
        f"trainable {sum(p.numel() for p in parameters if p.requires_grad)}",
    ]
    nodes = traces.first.nodes
    text += [f"input {n.name} {shapes(i)}" for i, n in enumerate(nodes) if n.op == "placeholder"]
    text += [f"{name} {shapes(split_source(traces, index))}" for name, index in lines]
    return "\n".join(text) + "\n"


def split_source(traces, index):
    """A split represents its whole input, so it has the input's shape."""
    node = traces.first.nodes[index]
    value = traces.first.values[index]
    if isinstance(value, torch.Tensor) or node.op == "call_module":
        return index
    return traces.first.nodes.index(node.all_input_nodes[0])


def short_name(name):
    return name.rpartition(".")[2]


def export_named(name, num_classes=None, sample=None):
    """(graph JSON, shapes, a note or None) of a model by name."""
    sample = sample or SAMPLES.get(name, IMAGE)
    graph, traces, lines = export(build_model(name, num_classes), [sample])
    return graph.text(short_name(name)), shape_text(traces, lines), traces.note
