#!/usr/bin/env python3
"""How many of timm's models gpumem answers from the module, and how: by graph, or by a recording where there is no graph.

    python3 bench/timm/from_module.py --timm DIR [--gpumem PROGRAM] [-o JOURNAL] [--every N [--from K]] [NAME...]

DIR holds timm's source; PROGRAM is the command line (build/dev/src/cli/gpumem). Every model is built without storage,
exported and estimated at batch 32 (SGD with momentum, A100); where that fails, two steps of it are recorded at batch 8 and
estimated there. The journal has one JSON line a model; models that it has are not tried again. It needs PyTorch 2.1 or later;
a graph takes about 2 s of CPU time, a recording 2 to 30 s.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import models

GRAPH, RECORDING = "graph", "recording"


def estimated(program: pathlib.Path, text: str, batch: int) -> str:
    """Nothing if the command line estimates it, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "model.json")
        file.write_text(text)
        command = [program, "estimate", file, "--batch", str(batch), "--optimizer", "sgd-momentum"]
        ran = subprocess.run(command, capture_output=True, text=True)
    return "" if ran.returncode == 0 else ran.stderr.strip().splitlines()[0].replace(str(file), "")


def answered(timm: object, program: pathlib.Path, name: str) -> dict[str, str]:
    """How the model is answered, and why not by what was tried before."""
    row = {"model": name, "answered": "", "graph": "", "recording": ""}

    def graph() -> str:
        model, shape = models.build(timm, name)
        return estimated(program, models.graph_of(model, shape, name), 32)

    def recording() -> str:
        model, shape = models.build(timm, name)
        return estimated(program, models.recording_of(model, shape, name, scale=False), 8)

    for way, work in ((GRAPH, graph), (RECORDING, recording)):
        row[way] = models.in_a_process(work, 300)
        if not row[way]:
            row["answered"] = way
            break
    return row


def alike(reason: str) -> str:
    """A reason without the names and numbers of the one model."""
    return re.sub(r"\d+", "#", re.sub(r"node \S+", "node", reason))[:110]


def table(rows: list[dict[str, str]]) -> str:
    by = collections.Counter(row["answered"] for row in rows)
    lines = [
        "| answered | models |",
        "|---|---|",
        f"| by graph | {by[GRAPH]} |",
        f"| by recording | {by[RECORDING]} |",
        f"| not | {by['']} |",
        f"| all | {len(rows)} |",
    ]
    for way in (GRAPH, RECORDING):
        reasons = collections.Counter(alike(row[way]) for row in rows if row[way])
        lines += [f"| no {way}: {reason} | {count} |" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timm", required=True, metavar="DIR")
    parser.add_argument("--gpumem", type=pathlib.Path, default=models.ROOT / "build" / "dev" / "src" / "cli" / "gpumem")
    parser.add_argument("-o", "--journal", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="K")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    timm = models.use_timm(options.timm)
    names = options.names or timm.list_models()[options.first :: options.every]
    rows = []
    if options.journal and options.journal.exists():
        rows = [json.loads(line) for line in options.journal.read_text().splitlines()]
    done = {row["model"] for row in rows}
    for name in names:
        if name in done:
            continue
        rows.append(answered(timm, options.gpumem.resolve(), name))
        if options.journal:
            with options.journal.open("a") as journal:
                journal.write(json.dumps(rows[-1]) + "\n")
        elif os.isatty(2):
            print(f"{name}: {rows[-1]['answered'] or 'not'}", file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main()
