"""What Keras' model.summary() shows for the same chain of layers, channels last."""

from __future__ import annotations

from collections import Counter
import dataclasses
import textwrap

from torch import nn

from .calls import trace_calls
from .models import SummaryError, count_parameters, example_input, sample_shape

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
