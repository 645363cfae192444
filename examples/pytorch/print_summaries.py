#!/usr/bin/env python3
"""Prints PyTorch models in the layouts of the usual model-summary tools.

  print_summaries.py                    remakes every file in models/summaries
  print_summaries.py --check            exits 1 and names the files that differ from these
  print_summaries.py MODEL --format F   prints one summary to stdout

MODEL is a torchvision model (resnet50, vgg16, ...) or transformer_encoder, a small one built here.
F is one of
  torchsummary         a row for each call, children before the module that holds them
  torchinfo            a tree of calls, containers before their children
  module-tree          what print(model) shows
  module-tree-params   the same with ", N params" behind each module
  keras2, keras3       what model.summary() shows for the same chain of layers, channels last

Only the layouts are imitated, so none of those tools has to be installed. It needs PyTorch 1.13 or
later with torchvision 0.14 or later. The models are run on PyTorch's "meta" device, which works out
shapes without computing or allocating anything: a batch of any size takes milliseconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import pathlib
import shlex
import sys
import textwrap
from collections import Counter

try:
    import torch
    import torchvision
    from torch import nn
except ImportError as error:
    sys.exit(
        f"print_summaries.py: {error}. It needs PyTorch (1.13 or later) and torchvision (0.14 or "
        "later) in the Python that runs it: pip install torch torchvision"
    )

SUMMARIES = pathlib.Path(__file__).resolve().parents[2] / "models" / "summaries"

# Deep enough for every leaf of the models below; torchinfo itself stops at 3 unless told otherwise.
EVERY_LEAF = "--depth 9"

# Each file is what this script prints for the arguments beside its name.
SHIPPED = {
    "resnet50.torchsummary.txt": "resnet50 --format torchsummary --batch -1",
    "vgg16.torchsummary.txt": "vgg16 --format torchsummary --batch 32",
    "mobilenet_v2.torchsummary.txt": "mobilenet_v2 --format torchsummary --batch -1",
    "resnet18.torchinfo.txt": "resnet18 --format torchinfo --closed-branches",
    "resnet50.torchinfo.txt": f"resnet50 --format torchinfo {EVERY_LEAF}",
    "vgg16.torchinfo.txt": f"vgg16 --format torchinfo {EVERY_LEAF}",
    "mobilenet_v2.torchinfo.txt": f"mobilenet_v2 --format torchinfo {EVERY_LEAF}",
    "efficientnet_b0.torchinfo.txt": f"efficientnet_b0 --format torchinfo {EVERY_LEAF}",
    "densenet121.torchinfo.txt": f"densenet121 --format torchinfo {EVERY_LEAF}",
    "inception_v3.torchinfo.txt": f"inception_v3 --format torchinfo {EVERY_LEAF}",
    "vit_b_16.torchinfo.txt": f"vit_b_16 --format torchinfo {EVERY_LEAF}",
    "transformer_encoder.torchinfo.txt": (
        f"transformer_encoder --format torchinfo --batch 8 {EVERY_LEAF}"
    ),
    "transformer_encoder.torchinfo_no_input.txt": (
        f"transformer_encoder --format torchinfo --input none {EVERY_LEAF}"
    ),
    "resnet18.torchinfo_all.txt": (
        "resnet18 --format torchinfo --columns all --rows depth,var_names --column-width 20 "
        + EVERY_LEAF
    ),
    "resnet18.torchinfo_ascii.txt": (
        f"resnet18 --format torchinfo --rows depth,ascii_only {EVERY_LEAF}"
    ),
    "resnet18_frozen.torchinfo.txt": (
        f"resnet18 --format torchinfo --freeze conv1,bn1,layer1,layer2 {EVERY_LEAF}"
    ),
    "resnet50.module_tree.txt": "resnet50 --format module-tree",
    "vgg16.module_tree.txt": "vgg16 --format module-tree",
    "transformer_encoder.module_tree.txt": "transformer_encoder --format module-tree",
    "transformer_encoder.module_tree_repeats.txt": (
        "transformer_encoder --format module-tree --fold-repeats"
    ),
    "resnet18.module_tree_params.txt": "resnet18 --format module-tree-params --data-parallel",
    "vgg16.keras2.txt": "vgg16 --format keras2",
    "vgg16.keras3.txt": "vgg16 --format keras3 --line-length 70",
}


class SummaryError(Exception):
    """What was asked for cannot be printed; the text says why."""


# ---------------------------------------------------------------------------------- models


class TransformerTagger(nn.Module):
    """Token embeddings, four encoder layers and a linear head."""

    def __init__(self, vocabulary=10000, d_model=256, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead=8, dim_feedforward=4 * d_model, batch_first=True
        )
        # Nested tensors would let the encoder skip its layers' own forward functions.
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


class DataParallel(nn.Module):
    """Named as PyTorch's wrapper, which would move the model to whatever GPUs it finds."""

    def __init__(self, module):
        super().__init__()
        self.module = module


@functools.lru_cache(maxsize=None)
def build_model(name):
    """The model on the meta device, in evaluation mode: torchinfo too switches to that."""
    if name == "transformer_encoder":
        # The exception: there an encoder layer runs as one fused kernel and calls no submodule.
        return TransformerTagger().to("meta").train()
    # No weight is ever read: leave out the initialisations that take seconds.
    slow_to_initialise = name.startswith(("vgg", "inception", "googlenet"))
    options = {"init_weights": False} if slow_to_initialise else {}
    try:
        model = torchvision.models.get_model(name, weights=None, **options)
    except ValueError as error:
        raise SummaryError(f"{error}; torchvision.models.list_models() lists them") from error
    return model.to("meta").eval()


def freeze(model, names):
    """Freezes the parameters of the submodules named, and no others: built models are reused."""
    submodules = dict(model.named_modules())
    for name in names:
        if name not in submodules:
            raise SummaryError(f"--freeze {name}: {type(model).__name__} has no such submodule")
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not any(name.startswith(frozen + ".") for frozen in names)


def default_input(name):
    """One sample's shape: a sequence length for the transformer, channels x height x width else."""
    if name == "transformer_encoder":
        return (128,)
    return (3, 299, 299) if name == "inception_v3" else (3, 224, 224)


def example_input(name, batch, sample_shape):
    dtype = torch.int64 if name == "transformer_encoder" else torch.float32
    return torch.empty((batch, *sample_shape), dtype=dtype, device="meta")


def count_parameters(module):
    """(all, trainable); parameters() yields a shared parameter once.

    All totals are these, also where a tool adds up its rows and so misses or repeats some.
    """
    sizes = [(p.numel(), p.requires_grad) for p in module.parameters()]
    return sum(n for n, _ in sizes), sum(n for n, trainable in sizes if trainable)


# ---------------------------------------------------------------------------------- tracing


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


# ---------------------------------------------------------------------------------- torchsummary


def torchsummary_lines(model, options):
    sample = sample_shape(options)
    _, calls = trace_calls(model, example_input(options.model, 2, sample))
    shown = [call for call in calls if is_torchsummary_row(call.module, model)]
    rows = [
        (
            f"{type(call.module).__name__}-{index}",
            torchsummary_shape(call, options.batch),
            weight_and_bias_size(call.module),
        )
        for index, call in enumerate(shown, start=1)
    ]

    lines = ["-" * 64, torchsummary_row("Layer (type)", "Output Shape", "Param #"), "=" * 64]
    lines += [torchsummary_row(name, str(shape), f"{size:,}") for name, shape, size in rows]
    lines += ["=" * 64, *totals_lines(*count_parameters(model)), "-" * 64]
    lines += torchsummary_sizes(model, [shape for _, shape, _ in rows], sample, options.batch)
    return [*lines, "-" * 64]


def is_torchsummary_row(module, model):
    return module is not model and not isinstance(module, (nn.Sequential, nn.ModuleList))


def torchsummary_row(name, shape, size):
    return f"{name:>20}  {shape:>25} {size:>15}"


def torchsummary_shape(call, batch):
    """The batch replaces the first dimension, whatever that is; several outputs make a list."""
    shapes = [[batch, *output.shape[1:]] for output in call.outputs]
    return shapes[0] if len(shapes) == 1 else shapes


def weight_and_bias_size(module):
    """torchsummary knows no other parameters: those of, say, an attention layer's inputs are 0."""
    tensors = [getattr(module, name, None) for name in ("weight", "bias")]
    return sum(tensor.numel() for tensor in tensors if isinstance(tensor, torch.Tensor))


def torchsummary_sizes(model, shapes, sample, batch):
    """MiB at 4 bytes a value, outputs doubled for their gradients; a batch of -1 counts as one."""

    def elements(shape):
        is_list = bool(shape) and isinstance(shape[0], list)
        return sum(map(elements, shape)) if is_list else abs(math.prod(shape))

    mib = 4 / 1024**2
    inputs = math.prod(sample) * abs(batch) * mib
    outputs = 2 * sum(elements(shape) for shape in shapes) * mib
    parameters = count_parameters(model)[0] * mib
    return sizes_lines(inputs, outputs, parameters)


def totals_lines(total, trainable):
    return [
        f"Total params: {total:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}",
    ]


def sizes_lines(inputs, outputs, parameters):
    return [
        f"Input size (MB): {inputs:.2f}",
        f"Forward/backward pass size (MB): {outputs:.2f}",
        f"Params size (MB): {parameters:.2f}",
        f"Estimated Total Size (MB): {inputs + outputs + parameters:.2f}",
    ]


# ---------------------------------------------------------------------------------- torchinfo

TORCHINFO_COLUMNS = {
    "kernel_size": "Kernel Shape",
    "groups": "Groups",
    "input_size": "Input Shape",
    "output_size": "Output Shape",
    "num_params": "Param #",
    "params_percent": "Param %",
    "mult_adds": "Mult-Adds",
    "trainable": "Trainable",
}
TORCHINFO_ROWS = ("depth", "var_names", "ascii_only")


@dataclasses.dataclass
class TorchinfoRow:
    call: LayerCall
    place: Place
    index: int  # among the rows of this depth, from 1
    recursive: bool  # an earlier row already counted this module's parameters
    below: list = dataclasses.field(default_factory=list)

    @property
    def module(self):
        return self.call.module

    @property
    def is_leaf(self):
        return next(self.module.children(), None) is None

    @functools.cached_property
    def parameters(self):
        return {id(parameter): parameter for parameter in self.module.parameters()}

    @functools.cached_property
    def own_size(self):
        """What no row below counts: its own parameters and those of children never called."""
        counted = set().union(*(row.parameters for row in self.below))
        return sum(p.numel() for key, p in self.parameters.items() if key not in counted)

    def size(self, at_max_depth):
        """The rows below a row at the maximal depth are not shown, so it stands for them."""
        if at_max_depth or self.is_leaf:
            return sum(parameter.numel() for parameter in self.parameters.values())
        return self.own_size


def torchinfo_lines(model, options):
    if options.input == "none":
        example, columns = None, ["num_params"]
        calls = [LayerCall(module) for module in model.modules()]
    else:
        example = example_input(options.model, abs(options.batch), sample_shape(options))
        columns = torchinfo_columns(options)
        calls, _ = trace_calls(model, example)
    rows = torchinfo_rows(model, calls)
    visible = [row for row in rows if row.place.depth <= options.depth]

    titles = [torchinfo_title(row, options) for row in rows]
    name_width = torchinfo_name_width(rows, titles)
    divider = "=" * (name_width + len(columns) * options.column_width)

    def line(name, cells):
        cells = "".join(f"{cell:<{options.column_width}} " for cell in cells)
        return f"{name:<{name_width}} {cells}".rstrip()

    total = count_parameters(model)[0]
    lines = [divider]
    lines.append(line(torchinfo_heading(options), [TORCHINFO_COLUMNS[name] for name in columns]))
    lines.append(divider)
    for row, branch in zip(visible, torchinfo_branches(visible, options)):
        cells = torchinfo_cells(row, row.place.depth == options.depth, total)
        name = branch + torchinfo_title(row, options)
        lines.append(line(name, [cells[column] for column in columns]))
    lines += [divider, *totals_lines(*count_parameters(model))]
    if example is not None:
        lines += [f"Total mult-adds{torchinfo_unit(sum(map(leaf_mult_adds, rows)))}", divider]
        lines += torchinfo_sizes(rows, example)
    return [*lines, divider]


def torchinfo_columns(options):
    if options.columns == ["all"]:
        return list(TORCHINFO_COLUMNS)
    return options.columns or ["output_size", "num_params"]


def torchinfo_rows(model, calls):
    """A row for each call, and one before it for each module above it that is not called itself."""
    places = module_places(model)
    rows, path, indices, seen = [], [], Counter(), set()

    def add(call):
        place = places[id(call.module)]
        indices[place.depth] += 1
        has_parameters = next(call.module.parameters(), None) is not None
        recursive = has_parameters and id(call.module) in seen
        rows.append(TorchinfoRow(call, place, indices[place.depth], recursive))
        seen.add(id(call.module))
        path[place.depth :] = [call.module]

    for call in calls:
        # A ModuleList is indexed, not called, and would be missing above its layers.
        for depth, module in enumerate(modules_above(call.module, places)):
            if depth >= len(path) or path[depth] is not module:
                add(LayerCall(module))
        add(call)
    for index, row in enumerate(rows):
        row.below = rows_below(rows, index)
    return rows


def modules_above(module, places):
    above = []
    parent = places[id(module)].parent
    while parent is not None:
        above.append(parent)
        parent = places[id(parent)].parent
    return reversed(above)


def rows_below(rows, index):
    below = []
    for row in rows[index + 1 :]:
        if row.place.depth <= rows[index].place.depth:
            break
        below.append(row)
    return below


def torchinfo_heading(options):
    names = " (var_name)" if "var_names" in options.rows else ""
    depths = ":depth-idx" if "depth" in options.rows else ""
    return f"Layer (type{names}{depths})"


def torchinfo_title(row, options):
    title = type(row.module).__name__
    if "var_names" in options.rows:
        title += f" ({row.place.name})"
    if "depth" in options.rows and row.place.depth > 0:
        title += f": {row.place.depth}-{row.index}"
    return title


def torchinfo_name_width(rows, titles):
    """A multiple of 5 from 40 on; rows too deep to be shown count too."""
    longest = max(5 * row.place.depth + 1 + len(title) for row, title in zip(rows, titles))
    return 40 if longest < 40 else 5 * math.ceil(longest / 5)


def torchinfo_branches(rows, options):
    """What the tree draws before each name.

    Up to 1.8 no branch closes: '├─' at depth 1, '└─' further in. Newer ones draw '└─' for the last
    child only and leave out the line below it.
    """
    ascii_only = "ascii_only" in options.rows
    bar, leave, last = ("|    ", "+ ", "+ ") if ascii_only else ("│    ", "├─", "└─")
    branches = []
    for index, row in enumerate(rows):
        depth = row.place.depth
        if depth == 0:
            branches.append("")
        elif not options.closed_branches:
            branches.append(leave if depth == 1 else bar * (depth - 1) + last)
        else:
            more = [another_row_follows(rows, index, level) for level in range(1, depth + 1)]
            lines = "".join(bar if follows else "     " for follows in more[:-1])
            branches.append(lines + (leave if more[-1] else last))
    return branches


def another_row_follows(rows, index, depth):
    """Whether a later row has this depth before one further out ends the branch."""
    later = (row.place.depth for row in rows[index + 1 :])
    return next((found for found in later if found <= depth), -1) == depth


def torchinfo_cells(row, at_max_depth, total):
    return {
        "kernel_size": shape_cell(getattr(row.module, "kernel_size", None)),
        "groups": shape_cell(getattr(row.module, "groups", None)),
        "input_size": shape_cell(row.call.input_shape),
        "output_size": shape_cell(row.call.output_shape),
        "num_params": size_cell(row, at_max_depth),
        "params_percent": percent_cell(row, at_max_depth, total),
        "mult_adds": mult_adds_cell(row, at_max_depth),
        "trainable": trainable_cell(row),
    }


def shape_cell(value):
    if isinstance(value, tuple):
        value = list(value)
    return str(value) if value else "--"


def size_cell(row, at_max_depth):
    size = row.size(at_max_depth)
    if row.recursive:
        return "(recursive)"
    if size == 0:
        return "--"
    # Parentheses mean frozen, but a container's own parameters never get them.
    stands_for_all = at_max_depth or row.is_leaf
    frozen = not any(p.requires_grad for p in row.parameters.values())
    return f"({size:,})" if stands_for_all and frozen else f"{size:,}"


def percent_cell(row, at_max_depth, total):
    if row.recursive:
        return "(recursive)"
    size = row.size(at_max_depth)
    return f"{size / total:>7.2%}" if size else "     --"


def leaf_mult_adds(row):
    """torchinfo's count: a convolution's parameters times output positions, others' times batch."""
    if not row.is_leaf or not row.call.outputs:
        return 0
    shape = row.call.output_shape
    if "Conv" in type(row.module).__name__:
        uses = math.prod(shape[:1] + shape[2:])
    elif isinstance(row.module, nn.RNNBase):
        uses = math.prod(shape[:2])
    else:
        uses = shape[0]
    return uses * sum(parameter.numel() for parameter in row.parameters.values())


def mult_adds_cell(row, at_max_depth):
    if not row.parameters or not row.call.outputs or not (row.is_leaf or at_max_depth):
        return "--"
    return f"{sum(map(leaf_mult_adds, [row, *row.below])):,}"


def trainable_cell(row):
    trainable = {parameter.requires_grad for parameter in row.parameters.values()}
    if not trainable:
        return "--"
    return "Partial" if len(trainable) == 2 else str(trainable.pop())


def torchinfo_unit(value):
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f" ({unit}): {value / scale:.2f}"
    return f": {value}"


def torchinfo_sizes(rows, example):
    """Decimal megabytes; outputs of leaves with parameters, doubled; parameters of leaves only."""
    leaves = [row for row in rows if row.is_leaf]
    inputs = example.numel() * example.element_size()
    outputs = 2 * sum(row.call.output_bytes for row in leaves if row.parameters)
    parameters = sum(
        parameter.numel() * parameter.element_size()
        for row in leaves
        if not row.recursive
        for parameter in row.parameters.values()
    )
    return sizes_lines(inputs / 1e6, outputs / 1e6, parameters / 1e6)


# ---------------------------------------------------------------------------------- module trees


def module_tree_lines(model, options):
    model = DataParallel(model) if options.data_parallel else model
    return module_tree(model, with_sizes=False, fold=options.fold_repeats)


def module_tree_params_lines(model, options):
    model = DataParallel(model) if options.data_parallel else model
    lines = module_tree(model, with_sizes=True, fold=options.fold_repeats)
    return [*lines, "=" * 71, *totals_lines(*count_parameters(model)), "-" * 71]


def module_tree(module, with_sizes, fold):
    """The lines of print(module), drawn here because print() draws repeats by PyTorch's version."""
    size = f", {count_parameters(module)[0]:,} params" if with_sizes else ""
    if next(module.children(), None) is None:
        # Some leaves, such as torchvision's StochasticDepth, word their line themselves.
        lines = repr(module).split("\n")
    else:
        inner = module.extra_repr().split("\n") if module.extra_repr() else []
        for name, subtree in named_subtrees(module, with_sizes, fold):
            inner += [f"({name}): {subtree[0]}", *subtree[1:]]
        lines = [type(module).__name__ + "(", *("  " + line for line in inner), ")"]
    return [*lines[:-1], lines[-1] + size]


def named_subtrees(module, with_sizes, fold):
    subtrees = [
        (name, module_tree(child, with_sizes, fold)) for name, child in module.named_children()
    ]
    # From 2.0 on PyTorch prints equal neighbours in a ModuleList once, but not in a Sequential.
    return folded(subtrees) if fold and isinstance(module, nn.ModuleList) else subtrees


def folded(subtrees):
    runs = []
    for name, subtree in subtrees:
        if runs and runs[-1][2] == subtree:
            runs[-1][1] = name
        else:
            runs.append([name, name, subtree])
    for first, last, subtree in runs:
        if first == last:
            yield first, subtree
        else:
            count = int(last) - int(first) + 1
            yield f"{first}-{last}", [f"{count} x {subtree[0]}", *subtree[1:]]


# ---------------------------------------------------------------------------------- Keras

# The first two leave no layer behind: Keras users pass activation="relu" to the layer before, and
# the adaptive pooling of a chain does nothing at its usual input size.
KERAS_LAYERS = {
    nn.ReLU: None,
    nn.AdaptiveAvgPool2d: None,
    nn.Conv2d: ("conv2d", "Conv2D"),
    nn.MaxPool2d: ("max_pooling2d", "MaxPooling2D"),
    nn.Linear: ("dense", "Dense"),
    nn.Dropout: ("dropout", "Dropout"),
}


@dataclasses.dataclass
class KerasRow:
    name: str
    shape: str
    size: int


def keras_rows(model, options):
    """The model's layers under the names that Keras would give them in a Sequential model."""
    _, calls = trace_calls(model, example_input(options.model, 1, sample_shape(options)))
    used, rows, rank = Counter(), [], None

    def add(name, class_name, shape, size):
        number = f"_{used[name]}" if used[name] else ""
        used[name] += 1
        rows.append(KerasRow(f"{name}{number} ({class_name})", channels_last(shape), size))

    for call in calls:
        if call.module is model or isinstance(call.module, nn.Sequential):
            continue
        layer = keras_layer(call)
        if layer is None:
            continue
        # torchvision flattens with a function, which no hook sees.
        if rank == 4 and len(call.input_shape) == 2:
            add("flatten", "Flatten", call.input_shape, 0)
        add(*layer, call.output_shape, count_parameters(call.module)[0])
        rank = len(call.output_shape)
    return rows


def keras_layer(call):
    """(name, class) or None; anything but a plain chain of layers is refused."""
    kind = type(call.module)
    if kind not in KERAS_LAYERS:
        raise SummaryError(f"the Keras layouts are for chains of layers; {kind.__name__} is none")
    if kind is nn.AdaptiveAvgPool2d and call.input_shape != call.output_shape:
        raise SummaryError("Keras has no adaptive pooling; at another --input it does nothing")
    return KERAS_LAYERS[kind]


def channels_last(shape):
    _, *rest = shape
    if len(rest) == 3:
        rest = [*rest[1:], rest[0]]
    return f"({', '.join(['None', *map(str, rest)])})"


def keras_memory(parameters, byte_unit):
    value, units = float(4 * parameters), [byte_unit, "KB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"({value:.2f} {units[0]})"


def keras2_lines(model, options):
    width = options.line_length or 65
    ends = [int(width * part) for part in (0.45, 0.85, 1.0)]
    lines = [f'Model: "{options.model}"', "_" * width]
    lines += keras2_row(["Layer (type)", "Output Shape", "Param #"], ends)
    lines.append("=" * width)
    for row in keras_rows(model, options):
        lines += [*keras2_row([row.name, row.shape, str(row.size)], ends), " " * width]
    lines.append("=" * width)
    total, trainable = count_parameters(model)
    for label, size in keras_totals(total, trainable):
        lines.append(f"{label}: {size} {keras_memory(size, 'Byte')}")
    return [*lines, "_" * width]


def keras2_row(cells, ends):
    """Cells that are too long are cut at the column's width, in mid-word, and go on below."""
    starts = [1, *ends[:-1]]
    # Each column but the last gives up two spaces to the next one and one to the left margin.
    widths = [end - start - 3 for start, end in zip([0, *ends], ends)]
    widths[-1] += 3
    lines = []
    while any(cells):
        line = ""
        for cell, start, width in zip(cells, starts, widths):
            line = line.ljust(start) + cell[:width]
        lines.append(line.ljust(ends[-1]))
        cells = [cell[width:] for cell, width in zip(cells, widths)]
    return lines


def keras3_lines(model, options):
    # 76 is what Keras takes on a terminal of 80 columns and in a notebook.
    widths = keras3_widths(options.line_length or 76)
    lines = [f'Model: "{options.model}"', keras3_rule("┏━┳┓", widths)]
    lines += keras3_row(["Layer (type)", "Output Shape", "Param #"], widths, "┃")
    lines.append(keras3_rule("┡━╇┩", widths))
    for index, row in enumerate(keras_rows(model, options)):
        if index > 0:
            lines.append(keras3_rule("├─┼┤", widths))
        lines += keras3_row([row.name, row.shape, f"{row.size:,}"], widths, "│")
    lines.append(keras3_rule("└─┴┘", widths))
    total, trainable = count_parameters(model)
    for label, size in keras_totals(total, trainable):
        lines.append(f" {label}: {size:,} {keras_memory(size, 'B')}")
    return lines


def keras3_widths(line_length):
    """Keras asks for 45, 35 and 20 % of the line; the borders and margins are taken off evenly."""
    ends = [int(line_length * part) for part in (0.45, 0.80, 1.0)]
    widths = [end - start for start, end in zip([0, *ends], ends)]
    excess = sum(widths) + 10 - line_length
    for index in range(3):
        share = round(excess / (3 - index))
        widths[index] -= share
        excess -= share
    if min(widths) < 1:
        raise SummaryError("the line is too short for the table")
    return widths


def keras3_rule(characters, widths):
    left, line, cross, right = characters
    return left + cross.join(line * (width + 2) for width in widths) + right


def keras3_row(cells, widths, border):
    """Cells that are too long go on below at a space; a word that is too long ends in '…'."""
    columns = [keras3_cell(cell, width) for cell, width in zip(cells, widths)]
    lines = []
    for index in range(max(map(len, columns))):
        left, shape, right = (column[index] if index < len(column) else "" for column in columns)
        parts = (left.ljust(widths[0]), shape.ljust(widths[1]), right.rjust(widths[2]))
        lines.append(border + border.join(f" {part} " for part in parts) + border)
    return lines


def keras3_cell(text, width):
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]


def keras_totals(total, trainable):
    return [
        ("Total params", total),
        ("Trainable params", trainable),
        ("Non-trainable params", total - trainable),
    ]


# ---------------------------------------------------------------------------------- command line

FORMATS = {
    "torchsummary": torchsummary_lines,
    "torchinfo": torchinfo_lines,
    "module-tree": module_tree_lines,
    "module-tree-params": module_tree_params_lines,
    "keras2": keras2_lines,
    "keras3": keras3_lines,
}


def sample_shape(options):
    if options.input is None:
        return default_input(options.model)
    try:
        shape = tuple(int(size) for size in options.input.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise SummaryError(f"--input {options.input}: expected sizes like 3x224x224")
    return shape


def list_of(choices):
    """An argparse type: names from choices, separated by commas."""

    def parse(text):
        names = text.split(",")
        unknown = [name for name in names if name not in choices]
        if unknown:
            expected = ", ".join(choices)
            raise argparse.ArgumentTypeError(f"unknown {unknown[0]!r}; expected {expected}")
        return names

    return parse


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="the one model to print")
    add("--check", action="store_true", help="compare with the files instead of writing them")
    add("--format", choices=FORMATS, help="the layout to print MODEL in")
    add("--batch", type=int, help="batch size (torchsummary: -1, torchinfo: 1)")
    add("--input", metavar="SIZES", help="a sample's shape: 3x224x224; torchinfo also takes none")
    add("--freeze", metavar="NAMES", default="", help="submodules whose parameters are frozen")
    torchinfo = parser.add_argument_group("torchinfo")
    add = torchinfo.add_argument
    columns = ", ".join(TORCHINFO_COLUMNS)
    add("--columns", type=list_of(["all", *TORCHINFO_COLUMNS]), help=f"all, or some of {columns}")
    add("--rows", type=list_of(TORCHINFO_ROWS), default=["depth"], help=", ".join(TORCHINFO_ROWS))
    add("--column-width", type=int, default=25, help="width of the columns (25)")
    add("--depth", type=int, default=3, help="deepest rows to show (3)")
    add("--closed-branches", action="store_true", help="draw the tree as newer versions do")
    trees = parser.add_argument_group("module trees")
    add = trees.add_argument
    add("--data-parallel", action="store_true", help="wrap the model in DataParallel")
    add("--fold-repeats", action="store_true", help="fold equal layers as PyTorch 2 does")
    keras = parser.add_argument_group("Keras")
    keras.add_argument("--line-length", type=int, help="table width (keras2: 65, keras3: 76)")
    options = parser.parse_args(arguments)
    refuse_bad_combinations(parser, options)
    if options.batch is None:
        options.batch = -1 if options.format == "torchsummary" else 1
    return options


def refuse_bad_combinations(parser, options):
    if (options.model is None) != (options.format is None):
        parser.error("MODEL and --format go together")
    if options.model is not None and options.check:
        parser.error("--check takes no MODEL")
    if options.batch is not None and (options.batch == 0 or options.batch < -1):
        parser.error("--batch must be positive, or -1")
    if options.columns is not None and "all" in options.columns and len(options.columns) > 1:
        parser.error("--columns: all stands alone")
    if options.input == "none" and options.format != "torchinfo":
        parser.error("--input none is for torchinfo only")


def summarize(options):
    """The summary's text; it ends in a newline."""
    model = build_model(options.model)
    freeze(model, options.freeze.split(",") if options.freeze else [])
    return "\n".join(FORMATS[options.format](model, options)) + "\n"


def differing_files(write):
    """Names of the files that are not what this script prints; brings them up to date if asked."""
    differing = []
    for name, arguments in SHIPPED.items():
        path = SUMMARIES / name
        # Bytes, so that line ends are the same on every system.
        expected = summarize(parse_arguments(shlex.split(arguments))).encode("utf-8")
        if not path.exists() or path.read_bytes() != expected:
            differing.append(name)
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(expected)
    return differing


def main(arguments):
    options = parse_arguments(arguments)
    # Nothing here computes; more threads would only cost their start.
    torch.set_num_threads(1)
    if options.model is not None:
        sys.stdout.buffer.write(summarize(options).encode("utf-8"))
        return 0
    differing = differing_files(write=not options.check)
    for name in differing:
        print(f"models/summaries/{name} " + ("differs" if options.check else "written"))
    if not differing:
        print(f"models/summaries: all {len(SHIPPED)} files are up to date")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SummaryError as error:
        sys.exit(f"print_summaries.py: {error}")
