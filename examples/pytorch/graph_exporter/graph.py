"""Graph JSON as it is written: nodes with unique names, types and dimensions."""

from __future__ import annotations

import json


class Graph:
    """The nodes of graph JSON, as they are added."""

    def __init__(self):
        self.inputs = []
        self.nodes = []
        self.names = set()

    def unique(self, name):
        candidate, count = name, 1
        while candidate in self.names:
            count += 1
            candidate = f"{name}#{count}"
        self.names.add(candidate)
        return candidate

    def text(self, name):
        lines = [f'{{"format": "gpumem-graph", "version": 1, "name": {json.dumps(name)},']
        lines.append(f' "inputs": {json.dumps(self.inputs)},')
        lines.append(' "nodes": [')
        lines.append(",\n".join("  " + json.dumps(node) for node in self.nodes))
        return "\n".join(lines) + "\n ]}\n"


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def dim_json(dim):
    if dim.grows == "N":
        return "N" if dim.factor == 1 else f"{dim.factor}N"
    return dim.size
