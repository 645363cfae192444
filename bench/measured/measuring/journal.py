"""Keeps what was measured: a journal that loses no finished run, the tables made of it, and what is packed of them.
Units: MiB (2^20 bytes) in tables, bytes in journals.

A journal is a file of JSON objects, one a line; each is written and flushed to the disk when it is known. What a killed
process leaves of a line is cut off. Tables are made again from journals, whole or not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pathlib
import shutil
import statistics
import tarfile
from typing import Any, Iterable, Iterator

from . import language, summaries
from .jobs import FAMILIES, Job

Row = dict[str, Any]

MIB = 2**20
MOST_PACKED = 15 * MIB
"""Bytes of a packed file, with room below the 16 MiB that a file may have."""
MOST_IN_PART = 150 * MIB
"""Bytes of the files in one packed part, before they are packed; text packs to a tenth and less."""


class Journal:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.rows = rows_of(path)
        self.file = open(path, "a", encoding="utf-8")

    def add(self, row: Row) -> None:
        self.file.write(json.dumps(row, separators=(",", ":")) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.rows.append(row)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def rows_of(path: pathlib.Path) -> list[Row]:
    """The journal's whole rows; what is left of another is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return [json.loads(line) for line in whole.decode("utf-8").split("\n")[:-1]]


# ------------------------------------------------------------------------------------------------ tables

FIGURES = ("reserved", "device", "allocated")
"""Of runs::Figure: which may be in measured_mib."""

COLUMNS = (
    "name", "summary", "batch_size", "input", "seq_length", "image", "images", "frames", "optimizer", "fused",
    "precision", "loss", "zero_grad", "gradient_accumulation", "checkpointing", "attention", "padding", "lora",
    "lora_targets", "lora_dropout", "base_dtype", "freeze", "transformers", "gpu", "figure", "measured_mib",
    "status", "allocated_mib", "reserved_mib", "requested_mib", "device_mib", "context_mib",
    "first_allocated_mib", "first_reserved_mib", "capacity_mib", "gpu_utilisation", "gract", "smact", "smocc",
    "fp32", "step_ms", "steps", "retries", "runs_before", "left_mib", "family", "parameters", "torch", "cuda",
    "cudnn", "driver", "allocator", "model",
)  # fmt: skip
"""Of RUNS.csv: what `gpumem evaluate` reads (gpumem_datasets/runs_tables.hpp), and what else was measured or set."""

COUNTERS = ("gpu_utilisation", "gract", "smact", "smocc", "fp32")


def mib(row: Row, name: str) -> str:
    return f"{row[name] / MIB:.3f}" if isinstance(row.get(name), (int, float)) else ""


def run_cells(row: Row, folder: pathlib.Path, figure: str, kinds: tuple[str, ...]) -> Row | None:
    """The cells of a journal's row in RUNS.csv. None if there is no run: its model is missing or failed, or no
    summary of it is at hand (yet)."""
    job, result, machine = Job.from_json(row["job"]), row["result"], row["machine"]
    summary = summaries.found(job, folder / "summaries", kinds)
    if result["status"] not in ("ok", "oom") or summary is None or "sample" not in result:
        return None
    shape, counters = result["sample"], result.get("counters", {})
    cells = {
        "name": job.name,
        "summary": str(summary.relative_to(folder)),
        "batch_size": job.batch_size,
        "input": "" if result["tokens"] else "x".join(map(str, shape)),
        "seq_length": shape[0] if result["tokens"] else "",
        "optimizer": job.optimizer,
        "fused": _flag(job.fused),
        "precision": job.precision,
        "loss": job.loss,
        "zero_grad": "before-forward",
        "gradient_accumulation": job.accumulation,
        "checkpointing": _flag(result["checkpointing"]),
        "gpu": row["gpu"],
        "figure": figure,
        "measured_mib": mib(result, figure),
        "status": result["status"],
        "capacity_mib": mib(row, "capacity"),
        "step_ms": _step_ms(result),
        "steps": result.get("steps", ""),
        "retries": result.get("retries", ""),
        "runs_before": row["runs_before"],
        "family": job.family,
        "parameters": result["parameters"],
        "model": json.dumps(job.model, separators=(",", ":")),
    }
    if job.family in ("hf", "llm", "newest", "delta", "vlm"):
        cells["transformers"] = language.release_rule(machine.get("transformers"))
    published = FAMILIES[job.family].published
    if published:
        cells.update(published.cells(job.model))
    for name in ("allocated", "reserved", "requested", "device", "context", "first_allocated", "first_reserved"):
        cells[f"{name}_mib"] = mib(result, name)
    cells["left_mib"] = mib(result, "left_before")
    cells.update({name: f"{counters[name]:.4f}" for name in COUNTERS if name in counters})
    cells.update({name: machine.get(name) or "" for name in ("torch", "cuda", "cudnn", "driver", "allocator")})
    return cells


def _flag(value: object) -> str:
    return "yes" if value else "no"


def _step_ms(result: Row) -> str:
    """The median; the first step loads kernels."""
    seconds = result.get("step_seconds", [])
    return f"{1e3 * statistics.median(seconds[1:] or seconds):.3f}" if seconds else ""


def write_runs(
    rows: Iterable[Row], folder: pathlib.Path, figure: str = "reserved", kinds: tuple[str, ...] = summaries.KINDS
) -> int:
    """folder/runs.csv; the number of its rows."""
    cells = [one for row in rows if (one := run_cells(row, folder, figure, kinds)) is not None]
    write_table(folder / "runs.csv", COLUMNS, cells)
    return len(cells)


def write_table(path: pathlib.Path, columns: Iterable[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    part = path.with_name(path.name + ".part")
    part.write_text(text.getvalue(), encoding="utf-8")
    part.replace(path)


# ------------------------------------------------------------------------------------------------ packing


PACKED_FOLDERS = ("summaries", "traces", "configs")


def pack(folder: pathlib.Path, limit: int = MOST_PACKED) -> list[pathlib.Path]:
    """folder/packed: tables as NAME.gz, its folders as NAME-1.tar.gz, ..., each of at most `limit`
    bytes; and machine.json and README.md as they are."""
    packed = folder / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    packed.mkdir()
    for table in sorted(folder.glob("*.csv")):
        pack_file(table, packed / (table.name + ".gz"))
    for name in PACKED_FOLDERS:
        files = sorted(path for path in (folder / name).glob("*") if path.suffix not in (".part", ".none"))
        pack_folder(files, packed, name, limit)
    for name in ("machine.json", "README.md"):
        if (folder / name).exists():
            shutil.copy(folder / name, packed / name)
    made = sorted(packed.iterdir())
    large = [path.name for path in made if path.stat().st_size > limit]
    if large:
        raise ValueError(f"{', '.join(large)}: larger than {limit} bytes; measure into several folders")
    return made


def pack_file(source: pathlib.Path, target: pathlib.Path) -> None:
    # Without a time and a name, equal tables pack to equal files.
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as file:
        file.write(source.read_bytes())


def pack_folder(files: list[pathlib.Path], packed: pathlib.Path, name: str, limit: int) -> None:
    """Halves what does not fit one file."""
    parts = list(_parts(files))
    number = 0
    while parts:
        part = parts.pop(0)
        number += 1
        target = packed / f"{name}-{number}.tar.gz"
        _pack_part(part, target, name)
        if target.stat().st_size > limit and len(part) > 1:
            parts[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
            number -= 1


def _parts(files: list[pathlib.Path]) -> Iterator[list[pathlib.Path]]:
    part: list[pathlib.Path] = []
    size = 0
    for path in files:
        if part and size + path.stat().st_size > MOST_IN_PART:
            yield part
            part, size = [], 0
        part.append(path)
        size += path.stat().st_size
    if part:
        yield part


def _pack_part(files: list[pathlib.Path], target: pathlib.Path, name: str) -> None:
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as zipped:
        with tarfile.open(fileobj=zipped, mode="w") as archive:
            for path in files:
                entry = tarfile.TarInfo(f"{name}/{path.name}")
                entry.size = path.stat().st_size
                with open(path, "rb") as file:
                    archive.addfile(entry, file)


def unpack(packed: pathlib.Path, folder: pathlib.Path) -> None:
    """What pack() made, as it was before. Only plain files of its folders are taken."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(packed.glob("*.csv.gz")):
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    for path in sorted(packed.glob("*.tar.gz")):
        with tarfile.open(path, "r:gz") as archive:
            for entry in archive:
                _unpack_entry(archive, entry, folder)


def _unpack_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: pathlib.Path) -> None:
    place = pathlib.PurePosixPath(entry.name)
    content = archive.extractfile(entry)
    if content is None or len(place.parts) != 2 or place.parts[0] not in PACKED_FOLDERS or ".." in place.parts:
        raise ValueError(f"{entry.name} is not what measure.py packs")
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content.read())
