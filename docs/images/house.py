#!/usr/bin/env python3
"""Draws house.svg, the rooms of the library and the way of an estimate through them.

Input: the tables below, which name every room of include/gpumem.
Output: house.svg next to this file, or with --check an error if it is not what this script draws.
Units: pixels, the origin at the top left.

    python3 docs/images/house.py [--check]
"""

import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1308, 676
PITCH, BOX, LEFT = 162, 142, 16

STYLE = """
  text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 11px; fill: #333; }
  .name { font-size: 14px; font-weight: 600; fill: #111; }
  .value { font-size: 11px; font-style: italic; fill: #0b5cad; }
  .room { fill: #eef4fb; stroke: #4a7db5; stroke-width: 1.2; }
  .help { fill: #f4f1e8; stroke: #a08c4a; stroke-width: 1.2; }
  .use { fill: #eaf5ec; stroke: #4c9060; stroke-width: 1.2; }
  .base { fill: #f0f0f0; stroke: #888; stroke-width: 1.2; }
  .outside { fill: none; stroke: #888; stroke-width: 1.2; stroke-dasharray: 4 3; }
  .arrow { fill: none; stroke: #555; stroke-width: 1.4; marker-end: url(#head); }
  .line { fill: none; stroke: #555; stroke-width: 1.4; }
  #head path { fill: #555; }
  .paper { fill: #fff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #ccc; } .name { fill: #fff; } .value { fill: #8ec1ff; }
    .room { fill: #17283b; stroke: #6fa3da; } .help { fill: #2f2a18; stroke: #c2ab63; }
    .use { fill: #16301d; stroke: #6dbb85; } .base { fill: #2a2a2a; stroke: #999; }
    .arrow, .line { stroke: #aaa; } #head path { fill: #aaa; } .paper { fill: #0d1117; }
  }
"""

# What a box is: kind, name, lines of text, column, columns that it spans, top, height. The front door stands above all
# others, whose tops are counted from below it.
FRONT = ("use", "session", ["the front door: answers every question about a job; makes profiles, estimators, trained models "
                            "and analyses once"], 0, 8, 18, 46)
BELOW_FRONT = 48
BOXES = [
    ("help", "architectures", ["each forward(), once:", "of a config or a tree"], 1, 1, 34, 62),
    ("help", "ops", ["every kind of layer: its names, its shapes, what autograd keeps and allocates"], 2, 4, 34, 62),
    ("help", "device", ["GPU profiles, PyTorch's", "allocator, workspaces"], 6, 1, 34, 62),
    ("help", "ml", ["features and trained", "networks"], 7, 1, 34, 62),
    ("outside", "a model", ["summary, config.json,", "module, recording"], 0, 1, 158, 66),
    ("room", "summary", ["one file a format:", "recognise and parse"], 1, 1, 158, 66),
    ("room", "connect", ["edges and shapes", "that are not printed"], 2, 1, 158, 66),
    ("room", "adapt", ["LoRA, frozen and", "quantised layers"], 3, 1, 158, 66),
    ("room", "parallel", ["one GPU's part", "of the model"], 4, 1, 158, 66),
    ("room", "plan", ["what a step allocates", "and frees, in order"], 5, 1, 158, 66),
    ("room", "analysis", ["makes each stage once;", "plan through allocator"], 6, 1, 158, 66),
    ("room", "estimate", ["one file a method:", "range and breakdown"], 7, 1, 158, 66),
    ("room", "record", ["the plan of a recorded step, at any batch size"], 3, 2, 282, 58),
    ("room", "utilisation", ["how busy the job", "keeps the GPU"], 6, 1, 282, 58),
    ("outside", "a request", ["words, JSON, C,", "Python, annotations"], 0, 1, 410, 62),
    ("room", "job", ["the list of options", "of a job"], 1, 1, 410, 62),
    ("use", "serve", ["an inference server:", "its start, by version"], 3, 1, 410, 62),
    ("use", "posttrain", ["models in phases,", "one allocator"], 2, 1, 410, 62),
    ("use", "search", ["which layouts over many", "GPUs fit, fastest first"], 4, 1, 410, 62),
    ("use", "monitor", ["the GPUs of this", "machine, from NVML"], 5, 1, 410, 62),
    ("use", "place", ["which GPUs of a server", "a job gets"], 6, 1, 410, 62),
    ("use", "request", ["what to ask a", "scheduler for"], 7, 1, 410, 62),
    ("base", "model", ["the values that all rooms read: ModelGraph, TrainingJob, optimizers, training loops, layouts"], 0, 8, 508, 46),
    ("base", "core", ["bytes, checked sums, shapes, errors and Result, files, deadlines, plain JSON and CSV"], 0, 8, 568, 46),
]


def left(column):
    return LEFT + PITCH * column


def right(column):
    return left(column) + BOX


def middle(column):
    return left(column) + BOX // 2


# Rows: help above at 34 to 96, the main way at 158 to 224, below it 282 to 340, its users 410 to 472.
MAIN, BELOW, USERS = 191, 311, 441
JOIN = (right(5) + left(6)) // 2  # where a recorded plan joins the main way

# Arrows as points; the last one has the head.
ARROWS = [
    *[[(right(column), MAIN), (left(column + 1), MAIN)] for column in range(7)],
    *[[(middle(column), 96), (middle(column), 158)] for column in range(1, 8)],
    [(middle(1), 224), (middle(1), BELOW), (left(3), BELOW)],
    [(middle(6), 224), (middle(6), 282)],
    [(middle(7), 224), (middle(7), 410)],
    [(middle(6), 340), (middle(6), 410)],
    [(middle(4), 380), (middle(4), 410)],
    [(right(0), USERS), (left(1), USERS)],
    [(right(1) - 14, 410), (right(1) - 14, 380), (middle(2), 380), (middle(2), 224)],
    [(right(5), USERS), (left(6), USERS)],
]
LINES = [[(middle(7), 380), (middle(4), 380)], [(right(4), BELOW), (JOIN, BELOW), (JOIN, MAIN)]]

# Values on their way: text, centre, baseline.
VALUES = [
    ("ModelGraph", (right(1) + left(2)) // 2, 150), ("WiredGraph", (right(2) + left(3)) // 2, 150),
    ("StepPlan", JOIN, 150), ("a recording", (middle(1) + middle(2)) // 2, 304),
    ("StepPlan", middle(5), 304), ("MemoryEstimate, UtilisationEstimate", middle(5), 374),
    ("TrainingJob", (right(1) + middle(2)) // 2 - 2, 374), ("Server", JOIN, 404),
]


def drawn_box(kind, name, lines, column, span, top, height):
    width = PITCH * (span - 1) + BOX
    centre = left(column) + width / 2
    parts = [f'<rect class="{kind}" x="{left(column)}" y="{top}" width="{width}" height="{height}" rx="7"/>']
    first = top + height / 2 - 7 * len(lines) + 4
    parts.append(f'<text class="name" x="{centre:g}" y="{first:g}" text-anchor="middle">{escape(name)}</text>')
    for number, line in enumerate(lines, 1):
        parts.append(f'<text x="{centre:g}" y="{first + 2 + 14 * number:g}" text-anchor="middle">{escape(line)}</text>')
    return parts


def drawn_path(kind, points):
    return f'<path class="{kind}" d="M' + " L".join(f"{x} {y}" for x, y in points) + '"/>'


def drawing():
    title = "The rooms of gpumem: a model becomes a graph, a plan of allocations, and an estimate"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{title}</title>", f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    parts += drawn_box(*FRONT) + [f'<g transform="translate(0 {BELOW_FRONT})">']
    parts += [drawn_path("line", points) for points in LINES] + [drawn_path("arrow", points) for points in ARROWS]
    for box in BOXES:
        parts += drawn_box(*box)
    for text, centre, baseline in VALUES:
        parts.append(f'<text class="value" x="{centre}" y="{baseline}" text-anchor="middle">{escape(text)}</text>')
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def main():
    target = pathlib.Path(__file__).with_suffix(".svg")
    if "--check" in sys.argv[1:]:
        if target.read_text(encoding="utf-8") != drawing():
            sys.exit(f"{target}: is not what {sys.argv[0]} draws; run it without --check")
        return
    target.write_text(drawing(), encoding="utf-8")


if __name__ == "__main__":
    main()
