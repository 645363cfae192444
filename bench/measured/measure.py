#!/usr/bin/env python3
"""Measures what training steps take on this machine's GPU: gpumem's own ground truth.

  measure.py all --out DIR --minutes 20       constants, census and random jobs, sharing the time
  measure.py jobs --out DIR --minutes 20      random training jobs: DIR/runs.csv and the models in DIR/summaries
  measure.py census --out DIR --minutes 10    cuDNN's workspaces, recorded runs, runs near capacity
  measure.py constants --out DIR              what the context and the libraries take, each in a fresh process
  measure.py trainers --out DIR --minutes 5   post-training with TRL's trainers: DIR/trainers.csv and DIR/sft.csv
  measure.py pack --out DIR                   writes the tables and DIR/packed again; the others end with this
  measure.py unpack PACKED --out DIR          the tables and summaries of a packed folder
  gpumem evaluate DIR/runs.csv --estimator replay

It needs a CUDA GPU and PyTorch 2.0 or later, and takes models of torchvision, timm and transformers where these are
installed; it downloads nothing. The same --seed draws the same jobs. Started again with the same --out it goes on where
it stopped; a run that dies costs at most itself. --dry-run goes through everything on a CPU, with small models, and
measures nothing. README.md in this folder says what the columns mean.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from measuring import jobs, journal, parts, session, workers  # noqa: E402


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    parts = ["all", "jobs", "census", "constants", "trainers", "pack", "unpack"]
    add("part", choices=parts, metavar="PART", help=f"one of {', '.join(parts)}")
    add("packed", nargs="?", type=pathlib.Path, metavar="PACKED", help="unpack: a folder that was packed")
    add("--out", type=pathlib.Path, required=True, metavar="DIR", help="where results are kept")
    add("--minutes", type=float, default=20.0, help="time budget, for all parts together (20)")
    add("--seed", type=int, default=1, help="which jobs are drawn (1)")
    add("--only", default="", metavar="LIST", help=f"families of jobs: {','.join(jobs.FAMILIES)}")
    add("--most", type=int, default=0, metavar="N", help="stop after this many of each kind")
    add("--dry-run", action="store_true", help="on a CPU, with small models, without figures")
    add("--limit-gib", type=float, default=0.0, metavar="G", help="act as a GPU of this much memory")
    add("--allocator", default="", metavar="SETTINGS", help="PYTORCH_CUDA_ALLOC_CONF of the runs")
    add("--gpu", default="", metavar="NAME", help="the profile in models/gpus, if its name cannot be told")
    add("--figure", choices=journal.FIGURES, default="reserved", help="what measured_mib holds (reserved)")
    add("--counter-seconds", type=float, default=1.0, metavar="S", help="how long a quarter of the jobs run on")
    add("--run-seconds", type=float, default=60.0, metavar="S", help="a run that takes longer is given up")
    add("--exporters", type=int, default=0, metavar="N", help="processes that write summaries (one a core but one)")
    options = parser.parse_args(arguments)
    if (options.part == "unpack") != (options.packed is not None):
        parser.error("unpack, and nothing else, takes a packed folder")
    try:
        options.only = jobs.families_of(options.only)
    except ValueError as error:
        parser.error(f"--only: {error}")
    return options


def main(arguments: list[str]) -> int:
    begin = time.monotonic()
    options = parse_arguments(arguments)
    if options.part == "unpack":
        journal.unpack(options.packed, options.out)
        return 0
    try:
        with session.Session(options, begin) as run:
            parts.measure(run)
    except workers.CannotMeasure as error:
        print(f"measure.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmeasure.py: stopped; start it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
