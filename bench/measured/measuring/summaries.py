"""Writes a job's model as the summaries that gpumem reads: its module tree, torchinfo's table where torchinfo is
installed, and its graph. Each model once, whatever it is trained with. Nothing is computed: PyTorch's "meta" device has
shapes alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pathlib

from .jobs import FAMILIES, Job

CONFIG, GRAPH = ".config.json", ".json"
TORCHINFO, TREE = ".torchinfo.txt", ".tree.txt"
KINDS = (CONFIG, GRAPH, TREE, TORCHINFO)
"""Endings of their files, the best first: what is at hand of a job becomes its row's summary."""


def stem(job: Job) -> str:
    """A file name for the model: its family, its name if it has one, and its spec's hash. The file of a published one
    says its sizes alone; the rest is in the row."""
    if FAMILIES[job.family].published:
        return f"{job.family}-{job.model['name']}" + ("-small" if job.model.get("small") else "")
    text = json.dumps([job.family, job.model], sort_keys=True)
    name = job.model.get("name") or job.model.get("model") or ""
    return "-".join(filter(None, (job.family, name, hashlib.sha256(text.encode()).hexdigest()[:10])))


def found(job: Job, folder: pathlib.Path, kinds: tuple[str, ...] = KINDS) -> pathlib.Path | None:
    """The best summary of the job's model that is there."""
    paths = (folder / (stem(job) + kind) for kind in kinds)
    return next((path for path in paths if path.exists()), None)


def finished(job: Job, folder: pathlib.Path) -> bool:
    """Whether write() was through with it, graph or none."""
    written = (folder / (stem(job) + kind) for kind in (CONFIG, GRAPH, ".none"))
    return any(path.exists() for path in written)


def write(job: Job, folder: pathlib.Path) -> dict[str, str]:
    """The names of the files written, by kind; "error" says why there is no graph."""
    folder.mkdir(parents=True, exist_ok=True)
    name = stem(job)
    written: dict[str, str] = {}

    def keep(kind: str, text: str) -> None:
        # Whole or not at all: a process may be ended at any time.
        part = folder / (name + kind + ".part")
        part.write_text(text, encoding="utf-8")
        part.rename(folder / (name + kind))
        written[kind] = name + kind

    try:
        published = FAMILIES[job.family].published
        if published:
            keep(CONFIG, published.config_json(job.model))
            return written
        from . import zoo

        model = zoo.built(job)
        keep(TREE, str(model.module) + "\n")
        table = torchinfo_table(model)
        if table is not None:
            keep(TORCHINFO, table)
        if model.computes_loss:  # what programs print is its tree; a graph would be without the loss
            keep(".none", "the model computes its own loss\n")
            return written
        keep(GRAPH, graph_of(model, name))
    except Exception as error:  # Many models cannot be traced; their trees have to do.
        written["error"] = f"{type(error).__name__}: {error}"[:300]
        keep(".none", written["error"] + "\n")
    return written


def graph_of(model, name: str) -> str:
    """Graph JSON. Raises ExportError and whatever the model's code may."""
    import torch
    from torch import nn

    from .exporting import export_graph

    class Called(nn.Module):
        """The model as the training loop calls it: what else it can give is left out."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model.module

        def forward(self, x):
            return model.call(self.model, x)

    dtype = torch.int64 if model.vocabulary else torch.float32
    example = torch.empty((2, *model.sample), dtype=dtype, device="meta")
    return export_graph(Called() if model.call else model.module, [example], name)


def torchinfo_table(model) -> str | None:
    """None where torchinfo is not installed, or cannot print the model."""
    if importlib.util.find_spec("torchinfo") is None or model.call:
        return None
    import torch
    import torchinfo

    try:
        dtype = torch.int64 if model.vocabulary else torch.float32
        example = torch.zeros((1, *model.sample), dtype=dtype, device="meta")
        table = torchinfo.summary(model.module.to("meta"), input_data=example, device="meta", depth=9, verbose=0)
    except Exception:  # It runs the model, with all that may go wrong in it.
        return None
    return str(table) + "\n"
