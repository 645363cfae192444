"""The jobs that every peer is given, and what gpumem reads of them: a graph JSON each. Without PyTorch."""

from __future__ import annotations

import dataclasses
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

# An MLP of the size of GPUMemNet's larger ones.
MLP_WIDTHS = (784, 4096, 4096, 4096, 10)


@dataclasses.dataclass(frozen=True)
class Job:
    model: str
    batch: int

    @property
    def name(self):
        return f"{self.model}, batch {self.batch}"


BATCHES = {
    "resnet50": (32, 128),
    "vgg16": (32, 128),
    "mobilenet_v2": (32, 128),
    "bert_like": (8, 32),
    "gpt_like": (1, 8),
    "mlp": (64, 1024),
}
JOBS = [Job(model, batch) for model, batches in BATCHES.items() for batch in batches]


def mlp_graph():
    nodes, previous = [], "x"
    for index, (inputs, outputs) in enumerate(zip(MLP_WIDTHS, MLP_WIDTHS[1:])):
        if index > 0:
            nodes.append({"name": str(2 * index - 1), "op": "relu", "class": "ReLU", "inputs": [previous]})
            previous = nodes[-1]["name"]
        attrs = {"in_features": inputs, "out_features": outputs}
        nodes.append({"name": str(2 * index), "op": "linear", "class": "Linear", "inputs": [previous], "attrs": attrs})
        previous = nodes[-1]["name"]
    head = {"name": "x", "shape": ["N", MLP_WIDTHS[0]], "dtype": "float32"}
    return json.dumps({"format": "gpumem-graph", "version": 1, "inputs": [head], "nodes": nodes})


def graph_text(model):
    """The graph JSON of a model: a shipped one, or the MLP's."""
    return mlp_graph() if model == "mlp" else (ROOT / "models" / "graphs" / f"{model}.json").read_text()
