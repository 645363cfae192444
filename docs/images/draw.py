#!/usr/bin/env python3
"""Draws the pictures of docs/replay.md and docs/post-training.md.

    docs/images/draw.py [--check]

Input: the segments and blocks that a program of docs/replay.md prints, and the first table of phases of
       docs/post-training.md, as the pages show them.
Output: docs/images/pipeline.svg, allocator.svg and phases.svg; with --check nothing is written, and exit code 1 says
        that one is not what would be.
Units: of the pictures pixels; of blocks KiB; of phases GiB.
"""

import html
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
STYLE = """<style>
  .card { fill: #ffffff; } .box { fill: #eef3fa; stroke: #4a6fa5; } .big { fill: #1b1f24; } .small { fill: #57606a; }
  .line { stroke: #57606a; fill: none; } .head { fill: #57606a; } .used { fill: #4a7ebb; stroke: #ffffff; }
  .waste { fill: #e0a23c; stroke: #ffffff; } .free { fill: #e6e9ed; stroke: #8c959f; } .on { fill: #ffffff; }
  .edge { fill: none; stroke: #1b1f24; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #161b22; } .box { fill: #1f2c40; stroke: #7aa2dc; } .big { fill: #e6edf3; } .small { fill: #9da7b3; }
    .line { stroke: #9da7b3; } .head { fill: #9da7b3; } .used { fill: #3d6ea8; stroke: #161b22; }
    .waste { fill: #b97f22; stroke: #161b22; } .free { fill: #2d333b; stroke: #768390; } .on { fill: #ffffff; }
    .edge { stroke: #e6edf3; }
  }
  text { font-family: system-ui, sans-serif; }
</style>"""


def text(x: float, y: float, words: str, kind: str = "big", size: int = 14, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, round_: int = 0) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_}"/>'


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    return "\n".join([head, f"<title>{html.escape(title)}</title>", STYLE, rect(0, 0, width, height, "card", 8), *parts, "</svg>", ""])


STAGES = (
    ("summary", ("text, config.json,", "graph or recording")),
    ("graph", ("layers, shapes,", "parameters")),
    ("wired graph", ("what each layer", "reads; adapters")),
    ("rank's part", ("on several GPUs:", "one GPU's share")),
    ("plan", ("two steps as events:", "allocate, release")),
    ("allocator", ("blocks, segments,", "workspaces")),
    ("estimate", ("peak, range,", "what it is made of")),
)
VERBS = ("read", "wire, adapt", "split", "plan", "replay", "+ context")


def pipeline() -> str:
    """The stages in two rows, the second from left to right below the first."""
    parts, width, height, gap = [], 176, 78, 72
    places = [(24 + (index % 4) * (width + gap), 34 + (index // 4) * 150) for index in range(len(STAGES))]
    for (x, y), (name, lines) in zip(places, STAGES):
        parts += [rect(x, y, width, height, "box", 8), text(x + width / 2, y + 26, name, size=16)]
        parts += [text(x + width / 2, y + 47 + 18 * row, line, "small", 13) for row, line in enumerate(lines)]
    for index, verb in enumerate(VERBS):
        (x, y), (to_x, to_y) = places[index], places[index + 1]
        if y == to_y:
            parts.append(arrow([(x + width + 4, y + height / 2), (to_x - 4, y + height / 2)]))
            parts.append(text(x + width + gap / 2, y + height / 2 - 10, verb, "small", 12))
        else:
            middle, turn = x + width / 2, y + height + 36
            parts.append(arrow([(middle, y + height + 4), (middle, turn), (to_x + width / 2, turn), (to_x + width / 2, to_y - 4)]))
            parts.append(text((middle + to_x + width / 2) / 2, turn - 8, verb, "small", 12))
    return picture(4 * width + 3 * gap + 48, 280, "From a summary to an estimate", parts)


def arrow(points: list[tuple[float, float]]) -> str:
    way = " ".join(f"{x:g},{y:g}" for x, y in points)
    (before_x, before_y), (x, y) = points[-2:]
    along = (x > before_x) - (x < before_x), (y > before_y) - (y < before_y)
    side = (-along[1], along[0])
    corners = [(x, y)] + [(x - 8 * along[0] + turn * 4 * side[0], y - 8 * along[1] + turn * 4 * side[1]) for turn in (1, -1)]
    head = " ".join(f"{a:g},{b:g}" for a, b in corners)
    return f'<polyline class="line" points="{way}"/><polygon class="head" points="{head}"/>'


def segments() -> tuple[list[list[tuple[bool, int, int]]], str]:
    """Of each segment its blocks: whether it is used, its size, what was asked for. And the line below them."""
    page = (FOLDER.parent / "replay.md").read_text()
    lines = re.findall(r"(?m)^segment  .*$", page)
    found = []
    for line in lines:
        blocks = re.findall(r"(used|free) (\d+) KiB(?: for (\d+))?", line)
        found.append([(state == "used", int(size), int(asked or size)) for state, size, asked in blocks])
    sums = re.search(r"(?m)^allocated (\d+) KiB, reserved (\d+) KiB$", page)
    if not found or sums is None:
        sys.exit("docs/replay.md does not show what its program prints")
    allocated, reserved = (int(each) / 1024 for each in sums.groups())
    return found, f"allocated {allocated:.1f} MiB (blue and orange), reserved {reserved:.1f} MiB (all segments)"


def size_text(kib: int) -> str:
    return f"{kib} KiB" if kib < 1024 else f"{kib / 1024:g} MiB"


def allocator() -> str:
    """A row a segment, each as wide as it is large, but for the small one, which would hardly be seen."""
    shown, sums = segments()
    parts, left, width = [], 150, 780
    largest = max(sum(size for _, size, _ in blocks) for blocks in shown)
    for row, blocks in enumerate(shown):
        y, whole = 30 + 84 * row, sum(size for _, size, _ in blocks)
        scale = (0.34 * width if whole < 4096 else width * whole / largest) / whole
        parts.append(text(left - 14, y + 20, f"segment {row + 1}", size=14, anchor="end"))
        parts.append(text(left - 14, y + 38, size_text(whole), "small", 13, "end"))
        x = float(left)
        for used, size, asked in blocks:
            parts.append(rect(x, y, size * scale, 46, "used" if used else "free"))
            if asked < size:
                parts.append(rect(x + asked * scale, y, (size - asked) * scale, 46, "waste"))
            words = size_text(asked if used else size) if used else f"free {size_text(size)}"
            parts.append(text(x + (asked if used else size) * scale / 2, y + 28, words, "on" if used else "small", 13))
            x += size * scale
        parts.append(rect(left, y, whole * scale, 46, "edge"))
    y = 30 + 84 * len(shown)
    for index, (kind, words) in enumerate((("used", "a tensor"), ("waste", "too little to be given back"), ("free", "free: in the cache"))):
        parts += [rect(left + 230 * index, y, 16, 16, kind), text(left + 24 + 230 * index, y + 13, words, "small", 13, "start")]
    parts.append(text(left, y + 42, sums + "; segment 1 is drawn larger", "small", 13, "start"))
    return picture(left + width + 24, y + 60, "Segments and blocks of the caching allocator", parts)


def phases() -> str:
    """A row a phase: live tensors, what the allocator has cached, the engine, and the rest, which is the context."""
    page = (FOLDER.parent / "post-training.md").read_text()
    table = re.search(r"(?m)^phase +allocated +reserved +vLLM +on the GPU\n((?:.+\n)+)", page)
    if table is None:
        sys.exit("docs/post-training.md shows no table of phases with vLLM")
    rows = re.findall(r"(?m)^(.+?) +<?([\d.]+) GiB +<?([\d.]+) GiB +<?([\d.]+) GiB +<?([\d.]+) GiB$", table.group(1))
    parts, left, width = [], 190, 640
    scale = width / max(float(row[4]) for row in rows)
    for row, (name, *figures) in enumerate(rows):
        allocated, reserved, engine, whole = (float(figure) for figure in figures)
        y, x = 24 + 40 * row, float(left)
        parts.append(text(left - 14, y + 20, name, size=14, anchor="end"))
        for kind, size in (("used", allocated), ("free", reserved - allocated), ("waste", engine)):
            parts.append(rect(x, y, size * scale, 28, kind))
            x += size * scale
        parts.append(rect(left, y, whole * scale, 28, "edge"))
        parts.append(text(left + whole * scale + 8, y + 19, f"{whole:.1f} GiB", "small", 13, "start"))
    y = 24 + 40 * len(rows) + 8
    for index, (kind, words) in enumerate((("used", "live tensors"), ("free", "cached by the allocator"), ("waste", "vLLM"), ("edge", "the context"))):
        parts += [rect(left + 170 * index, y, 16, 16, kind), text(left + 24 + 170 * index, y + 13, words, "small", 13, "start")]
    return picture(left + width + 90, y + 34, "What each phase of an iteration takes", parts)


def main() -> int:
    stale = 0
    for name, draw in (("pipeline.svg", pipeline), ("allocator.svg", allocator), ("phases.svg", phases)):
        file, drawn = FOLDER / name, draw()
        if "--check" not in sys.argv[1:]:
            file.write_text(drawn)
        elif not file.exists() or file.read_text() != drawn:
            stale += 1
            print(f"{file} is not what docs/images/draw.py draws")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
