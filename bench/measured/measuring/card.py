"""The card of a folder of measurements: what was measured, on what, by which command, and what failed."""

from __future__ import annotations

import collections
import json
import pathlib

from .journal import rows_of

FILES = {
    "runs.csv": "random training jobs, in gpumem's RUNS.csv form",
    "traces.csv": "recorded runs, in the same form; the recordings are in traces/, for `gpumem replay-trace`",
    "capped.csv": "the same jobs with all memory and capped near their peak, in the same form",
    "workspaces.csv": "what cuDNN takes for single convolutions, in bytes",
    "constants.csv": "what the context and the libraries take, each stage in a fresh process",
}


def write(folder: pathlib.Path, command: str, runs: int) -> None:
    """folder/README.md. Commands are collected over all calls in this folder."""
    path = folder / "machine.json"
    machine = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = [f"# Measured on {machine.get('gpu') or 'no GPU: a dry run, without figures'}", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| {name.replace('_', ' ')} | {value} |" for name, value in machine.items() if value not in (None, "")]
    lines += ["", "Commands (bench/measured/measure.py), in order:", "", *_commands(folder, command), ""]
    lines += [f"- `{name}`: {about}" for name, about in FILES.items() if (folder / name).exists()]
    lines += ["- `summaries/`: the models, as graph JSON (with edges), as module trees and as config.json", ""]
    lines += [
        "`bench/measured/measure.py unpack FOLDER --out DIR` unpacks them; its README says what the columns mean.",
        "",
    ]
    lines += _tally(folder, runs)
    lines += _failed(rows_of(folder / "trainers.jsonl"))
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")


def _commands(folder: pathlib.Path, command: str) -> list[str]:
    path = folder / "commands.txt"
    known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if command not in known and " pack " not in f"{command} ":
        known.append(command)
        path.write_text("\n".join(known) + "\n", encoding="utf-8")
    return [f"    {line}" for line in known]


def _tally(folder: pathlib.Path, runs: int) -> list[str]:
    rows = rows_of(folder / "runs.jsonl")
    if not rows:
        return []
    by_family = collections.Counter((row["job"]["family"], row["result"]["status"]) for row in rows)
    families = sorted({family for family, _ in by_family})
    statuses = sorted({status for _, status in by_family})
    lines = [f"{runs} of {len(rows)} runs are in runs.csv; the others failed or have no summary.", ""]
    lines += ["| family | " + " | ".join(statuses) + " |", "| --- |" + " ---: |" * len(statuses)]
    for family in families:
        lines.append(f"| {family} | " + " | ".join(str(by_family[family, status]) for status in statuses) + " |")
    return [*lines, "", *_failed(rows)]


def _failed(rows: list[dict]) -> list[str]:
    """A line a run that has no row in a table."""
    failed = [row for row in rows if row["result"]["status"] in ("error", "unavailable")]
    if not failed:
        return []
    named = [f"- {row['job']['name']} ({_model(row)}): {_first_line(row['result']['error'])}" for row in failed[:50]]
    return ["What failed:", "", *named, ""]


def _model(row: dict) -> str:
    """Of a job, or of one that a trainer runs."""
    job = row["job"]
    spec = job.get("model") or {}
    return " ".join(filter(None, (job.get("family", job.get("trainer")), spec.get("name") or spec.get("model"))))


def _first_line(text: str) -> str:
    return text.splitlines()[0][:160] if text else ""
