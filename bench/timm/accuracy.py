#!/usr/bin/env python3
"""gpumem against measured runs of timm's models on an A100-40GB.

    python3 bench/timm/accuracy.py --timm DIR --runs runs.csv -o JOURNAL [--by module|graph|recording] [--half 0|1|all]
                                   [--every N] [--gpumem PROGRAM] [--option=--NAME...] [--worst N]

runs.csv: model, batch, measured_mib (device memory, context included), truth (fit, oom or unclear), spike (1: one batch size
took far more than its neighbours, as trial runs of cudnn.benchmark do). The job is timm's train.py: SGD with Nesterov
momentum 0.9, weight decay 2e-5, fp32, its prefetcher, gradients zeroed after the step, software with eager module loading.

`module` takes the graph, or a recording where there is none, as estimate_module() does. A recording is made at two batch
sizes and a third that checks; every batch size is estimated from it. The journal has one JSON line a model with its
estimates; models that it has are not done again. --half parts the models by a hash of their names: what is learned on one
half is reported on the other. A row counts as caught if gpumem says that it does not fit.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import pathlib
import statistics
import subprocess
import tempfile
from typing import Any

import models

MIB = 1 << 20
JOB = ["--optimizer", "sgd-momentum", "--software", "eager-loading", "--gpu", "a100-40gb"]
#: What a recording holds, as the command line and as record.module() have it.
OF_THE_STEP = ["--zero-grad", "step-end", "--weight-decay", "--prefetch"]
RECORDED = {"optimizer": "sgd-momentum", "zero_grad": "step-end", "weight_decay": True, "prefetch": True}
Row = dict[str, str]


def half_of(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] % 2


def estimate(program: pathlib.Path, text: str, batches: list[int], options: list[str]) -> dict[str, Any]:
    """By batch size: bytes on the device, and whether it fits; or the error."""
    answers: dict[str, Any] = {}
    options = [*JOB, *options, *([] if '"gpumem-recording"' in text[:200] else OF_THE_STEP)]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "model.json")
        file.write_text(text)
        for batch in batches:
            command = [str(program), "estimate", str(file), "--json", "--batch", str(batch), *options]
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode not in (0, 1):
                raise RuntimeError(ran.stderr.strip().splitlines()[0].replace(str(file), ""))
            made = json.loads(ran.stdout)["estimates"][0]
            answers[str(batch)] = [made["expected_bytes"], made["fits"], made["reserved_bytes"], made["allocated_bytes"]]
    return answers


def answer(timm: Any, program: pathlib.Path, name: str, batches: list[int], arguments: Any) -> dict[str, Any]:
    """A model's line of the journal."""

    def graph() -> str:
        model, shape = models.build(timm, name)
        return json.dumps(estimate(program, models.graph_of(model, shape, name), batches, arguments.option))

    def recording() -> str:
        model, shape = models.build(timm, name)
        text = models.recording_of(model, shape, name, scale=True, batch=8, **RECORDED)
        return json.dumps(estimate(program, text, batches, arguments.option))

    ways = {"module": [graph, recording], "graph": [graph], "recording": [recording]}[arguments.by]
    line: dict[str, Any] = {"model": name, "way": "", "error": ""}
    for way in ways:
        text = models.in_a_process(way, 400)
        if text.startswith("error "):
            line["error"] += f"{way.__name__}: {text[6:]} "
            continue
        line.update(way=way.__name__, answers=json.loads(text))
        break
    return line


# ------------------------------------------------------------------------------------------------------- the report


def judged(rows: list[Row], lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Each row with its estimate and error; rows without an estimate are left out."""
    out = []
    for row in rows:
        line = lines.get(row["model"])
        if line is None or row["batch"] not in line.get("answers", {}):
            continue
        expected, fits, *_ = line["answers"][row["batch"]]
        measured = float(row["measured_mib"])
        error = expected / MIB / measured - 1
        out.append({**row, "error": error, "fits": fits, "expected_mib": expected / MIB, "way": line["way"]})
    return out


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def summary(name: str, rows: list[dict[str, Any]]) -> str:
    """One line of the table: of runs that fit."""
    errors = [abs(row["error"]) for row in rows]
    if not errors:
        return f"| {name} | 0 | | | | | |"
    within = sum(error <= 0.10 for error in errors) / len(errors)
    signed = statistics.median(row["error"] for row in rows)
    figures = [statistics.median(errors), statistics.fmean(errors), quantile(errors, 0.9), signed]
    shown = " | ".join(f"{100 * figure:.2f} %" for figure in figures)
    return f"| {name} | {len(rows)} | {shown} | {100 * within:.1f} % |"


def report(rows: list[Row], lines: dict[str, Any], worst: int) -> str:
    known = judged(rows, lines)
    fit = [row for row in known if row["truth"] == "fit"]
    out_of_memory = [row for row in known if row["truth"] == "oom"]
    plain = [row for row in fit if row["spike"] != "1"]
    text = [
        "| runs | n | median | mean | 90 % within | signed median | within 10 % |",
        "|---|---|---|---|---|---|---|",
        summary("that fit", fit),
        summary("without spikes", plain),
        summary("spikes", [row for row in fit if row["spike"] == "1"]),
    ]
    for way in ("graph", "recording"):
        text.append(summary(f"without spikes, by {way}", [row for row in plain if row["way"] == way]))
    caught = sum(not row["fits"] for row in out_of_memory)
    alarms = [row for row in fit if not row["fits"]]
    text.append(f"\nout of memory: {caught} of {len(out_of_memory)} caught; false alarms: {len(alarms)} of {len(fit)}")
    text += [f"  false alarm: {row['model']} batch {row['batch']}" for row in alarms]
    missed = [row for row in out_of_memory if row["fits"]]
    text += [f"  missed: {row['model']} batch {row['batch']}" for row in missed]
    answered = sum(1 for line in lines.values() if line.get("answers"))
    text.append(f"models: {answered} answered of {len({row['model'] for row in rows} & set(lines))} tried")
    by_error = sorted(plain, key=lambda row: -abs(row["error"]))[:worst]
    text += [
        f"  {row['model']} batch {row['batch']} ({row['way']}): {100 * row['error']:+.1f} %, measured {row['measured_mib']}"
        for row in by_error
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timm", required=True, metavar="DIR")
    parser.add_argument("--runs", required=True, type=pathlib.Path, metavar="FILE")
    parser.add_argument("-o", "--journal", required=True, type=pathlib.Path, metavar="FILE")
    parser.add_argument("--by", choices=("module", "graph", "recording"), default="module")
    parser.add_argument("--half", choices=("0", "1", "all"), default="all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth model")
    parser.add_argument("--gpumem", type=pathlib.Path, default=models.ROOT / "build" / "dev" / "src" / "cli" / "gpumem")
    parser.add_argument("--option", action="append", default=[], metavar="--NAME", help="one more word for gpumem estimate")
    parser.add_argument("--worst", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(arguments.runs.open()))
    rows = [row for row in rows if arguments.half in ("all", str(half_of(row["model"])))]
    names = list(dict.fromkeys(row["model"] for row in rows))[:: arguments.every]
    rows = [row for row in rows if row["model"] in set(names)]
    lines: dict[str, Any] = {}
    if arguments.journal.exists():
        lines = {line["model"]: line for line in map(json.loads, arguments.journal.read_text().splitlines())}
    timm = models.use_timm(arguments.timm)
    for name in names:
        if name in lines:
            continue
        batches = sorted({int(row["batch"]) for row in rows if row["model"] == name})
        lines[name] = answer(timm, arguments.gpumem.resolve(), name, batches, arguments)
        with arguments.journal.open("a") as journal:
            journal.write(json.dumps(lines[name]) + "\n")
    print(report(rows, lines, arguments.worst))


if __name__ == "__main__":
    main()
