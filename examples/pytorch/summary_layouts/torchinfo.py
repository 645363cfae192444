"""torchinfo's layout: a tree of calls, containers before their children."""

from __future__ import annotations

from collections import Counter
import dataclasses
import functools
import math

from torch import nn

from .calls import LayerCall, Place, module_places, trace_calls
from .models import count_parameters, example_input, sample_shape
from .sizes_block import sizes_lines, totals_lines

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
        """The rows below a row at the maximal depth are not shown, so it represents them."""
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
