#!/usr/bin/env python3
"""Writes PyTorch models as gpumem's graph JSON: every operation of a training step's forward pass,
with its attributes, its inputs and its parameters.

  export_graph.py                          remakes models/graphs and tests/golden/graphs
  export_graph.py --check                  exits 1 and names the files there that differ
  export_graph.py --model MODEL -o FILE    writes one graph (without -o: to stdout)
  export_graph.py --model MODEL --shapes   the shape of every node at two sizes, as PyTorch has them

MODEL is bert_like or gpt_like (plain transformers of the sizes of BERT-base and GPT-2 small, made
here), torchvision.NAME (torchvision.resnet50), or package.module.NAME: a class or function that
makes a module when called without arguments. From Python: export_graph(module, [example]). The parts
are in the folder graph_exporter next to this file: copy both. The package gpumem has both as well:
estimate_module() uses them, -m gpumem.export_graph runs them.

The model is traced by torch.fx in training mode on PyTorch's "meta" device, which works out shapes
without computing or allocating anything; so what Python decides by shapes is decided as in a real
run. It is traced at several batch sizes and, where the model takes them, at two input sizes: what
grows with them is left open in the graph. What the graph cannot say is an error, never left out;
run from the package gpumem (-m gpumem.export_graph), under PyTorch 2.1 or later, it then records a
training step of the model and writes that, which gpumem takes in a graph's place.

It needs PyTorch 1.13 or later; torchvision 0.14 or later for its models.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

try:
    import torch

    if __package__:  # as a part of the package gpumem
        from .graph_exporter import models, one_model
    else:
        from graph_exporter import models, one_model
except ImportError as error:
    missing = f"export_graph.py: {error}. It needs "
    if (error.name or "").endswith("graph_exporter"):
        missing += "the folder graph_exporter next to it: copy that too"
    else:
        missing += (
            "PyTorch (1.13 or later) in the Python that runs it: pip install torch torchvision"
        )
    if __name__ == "__main__":
        sys.exit(missing)
    raise ImportError(missing) from error

# What others import from here.
ExportError, export_graph = one_model.ExportError, one_model.export_graph
BertLike, GptLike = models.BertLike, models.GptLike
scaled_dot_product_attention = models.scaled_dot_product_attention

# The folder of gpumem's own graphs; only to make and check these.
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GRAPHS = ROOT / "models" / "graphs"
SHAPES = ROOT / "tests" / "golden" / "graphs"

SHIPPED = [
    "bert_like",
    "gpt_like",
    "torchvision.densenet121",
    "torchvision.efficientnet_b0",
    "torchvision.inception_v3",
    "torchvision.mobilenet_v2",
    "torchvision.resnet18",
    "torchvision.resnet50",
    "torchvision.vgg16",
    "torchvision.vit_b_16",
]


def differing_files(write):
    """The files that are not what this script makes; brings them up to date if asked."""
    differing = []
    for name in SHIPPED:
        graph, shapes, _ = one_model.export_named(name)
        for path, text in (
            (GRAPHS / f"{one_model.short_name(name)}.json", graph),
            (SHAPES / f"{one_model.short_name(name)}.shapes", shapes),
        ):
            # Bytes, so that line ends are the same on every system.
            expected = text.encode("utf-8")
            if not path.exists() or path.read_bytes() != expected:
                differing.append(path.relative_to(ROOT))
                if write:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(expected)
    return differing


def sample_of(text, tokens):
    try:
        shape = tuple(int(size) for size in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise ExportError(f"--input {text}: expected sizes like 3x224x224")
    return models.Sample(shape, None, torch.int64 if tokens else torch.float32)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", metavar="MODEL", help="the one model to export")
    add("-o", "--output", metavar="FILE", type=pathlib.Path, help="where to write it")
    add("--num-classes", type=int, help="classes of MODEL's head")
    add("--input", metavar="SIZES", help="one sample's shape (3x224x224), to trace at that alone")
    add("--tokens", action="store_true", help="the input is integer ids: --input 128 --tokens")
    add("--shapes", action="store_true", help="write the shapes instead of the graph")
    add("--check", action="store_true", help="compare with the files instead of writing them")
    options = parser.parse_args(arguments)
    if options.model is None and (
        options.output or options.num_classes or options.input or options.shapes
    ):
        parser.error("-o, --num-classes, --input and --shapes go with --model")
    if options.model is not None and options.check:
        parser.error("--check takes no --model")
    return options


def one_text(options, sample):
    """The graph of --model, its shapes, or a recording where there is no graph."""
    try:
        graph, shapes, note = one_model.export_named(options.model, options.num_classes, sample)
    except ExportError as error:
        return recorded_text(options, sample, error)
    if note:
        print(f"export_graph.py: {options.model}: {note}", file=sys.stderr)
    return shapes if options.shapes else graph


def recorded_text(options, sample, error):
    """The recording of a training step of --model, which has no graph, as `error` says."""
    remedy = "its training step can be recorded: python3 -m gpumem.export_graph does so"
    if options.shapes or not __package__:
        raise ExportError(f"{error}; {remedy}") from error
    from .record import RecordError, record

    sample = sample or models.SAMPLES.get(options.model, models.IMAGE)
    try:
        model = models.build_model(options.model, options.num_classes)
        text = record.module(model, [sample.tensor(8)], 8, title=one_model.short_name(options.model))
    except RecordError as other:
        raise ExportError(f"{error}; nor can it be recorded: {other}") from other
    print(f"export_graph.py: {options.model}: a recording, as {error}", file=sys.stderr)
    return text


def main(arguments):
    options = parse_arguments(arguments)
    # Nothing here computes; more threads would only cost their start.
    torch.set_num_threads(1)
    if options.model is not None:
        sample = sample_of(options.input, options.tokens) if options.input else None
        text = one_text(options, sample).encode("utf-8")
        if options.output is None:
            sys.stdout.buffer.write(text)
        else:
            options.output.write_bytes(text)
        return 0
    differing = differing_files(write=not options.check)
    for path in differing:
        print(f"{path} " + ("differs" if options.check else "written"))
    if not differing:
        print(f"models/graphs: all {len(SHIPPED)} graphs and their shapes are up to date")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ExportError as error:
        sys.exit(f"export_graph.py: {error}")
