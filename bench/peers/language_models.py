#!/usr/bin/env python3
"""Published formulas and gpumem on the same measured runs of language models, in one run on one machine.

  language_models.py --gpumem build/release/src/cli/gpumem RUNS.csv [--rounds 3] [--times 20] [--readme docs/peers.md]

RUNS.csv is a table that `gpumem evaluate` reads, its configs in `configs` next to it. formulas.py says what each formula
is, and what it has no term for: such a run it does not answer. A formula and gpumem are compared on the runs that both
answer, each held to the run's own figure (allocated, reserved or device).

  error   |estimate / measured - 1|: median, and the share within which 90 % lie; how many estimates are too low
  time    CPU time of a process from start to end that answers one run ("formulas.py NAME ONE.csv", "gpumem
          evaluate ONE.csv"): median of --rounds rounds, in turn, over --times runs spread over the table; and of a
          formula called again in a process that is up

The formulas are restated, so the time of Accelerate's own command, which makes the model first, is not here: peers.py
has it. --readme puts the table between its two marks there.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import formulas  # noqa: E402
from processes import ENVIRONMENT, wait_for  # noqa: E402
from tables import put_into, seconds  # noqa: E402

MARKS = ("<!-- bench/peers/language_models: begin -->", "<!-- bench/peers/language_models: end -->")
TITLES = {
    "accelerate": "Accelerate's estimate-memory",
    "eleuther": "EleutherAI's calculator",
    "fitcheck": "fitcheck-llm's formula",
}


@dataclasses.dataclass(frozen=True)
class Errors:
    """Signed relative errors of one way on some runs."""

    signed: list

    @property
    def median(self):
        return statistics.median(abs(error) for error in self.signed)

    @property
    def p90(self):
        """90 % lie within it; of few runs, the next one above."""
        ordered = sorted(abs(error) for error in self.signed)
        return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]

    @property
    def below(self):
        return sum(error < 0 for error in self.signed)

    def __str__(self):
        return f"{100 * self.median:.1f} %, {100 * self.p90:.1f} %, {self.below} too low"


def gpumem_answers(program, table):
    """{run: MiB} of the runs that gpumem answers."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "answers.csv"
        subprocess.run([program, "evaluate", table, "--out", out], check=True, stdout=subprocess.DEVNULL)
        with out.open(newline="", encoding="utf-8") as file:
            return {row["name"]: float(row["expected_mib"]) for row in csv.DictReader(file) if row["expected_mib"]}


def formula_answers(formula, runs):
    """{run: MiB} of the runs that the formula answers."""
    found = {run["name"]: formulas.answer(formula, run)[0] for run in runs}
    return {name: size / formulas.MIB for name, size in found.items() if size is not None}


def kind_of(run):
    if run.count("gpus") > 1:
        return "several GPUs"
    if not run.is_adapted:
        return "full fine-tuning"
    return "QLoRA" if run["quantization"] else "LoRA"


def errors_by_kind(runs, theirs, ours):
    """{kind: (their errors, gpumem's)} over the runs that both answer, "all" first."""
    signed = {}
    for run in runs:
        name, measured = run["name"], float(run["measured_mib"])
        if name in theirs and name in ours:
            for kind in ("all", kind_of(run)):
                pair = signed.setdefault(kind, ([], []))
                pair[0].append(theirs[name] / measured - 1)
                pair[1].append(ours[name] / measured - 1)
    if len(signed) == 2:  # only one kind, which is all
        signed.pop("all")
    return {kind: (Errors(left), Errors(right)) for kind, (left, right) in signed.items()}


def one_run_table(run, configs, folder):
    """A table with only this run, and its config next to it."""
    folder.mkdir()
    (folder / "configs").symlink_to(configs, target_is_directory=True)
    table = folder / "runs.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(run.row))
        writer.writeheader()
        writer.writerow(run.row)
    return table


def processor_time(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    return wait_for(process)


def process_times(options, runs):
    """{way: median seconds of a process}; each round puts each run through every way."""
    taken = {name: [] for name in (*formulas.FORMULAS, "gpumem")}
    spread = runs[:: max(1, len(runs) // options.times)][: options.times]
    with tempfile.TemporaryDirectory() as folder:
        configs = options.table.resolve().parent / "configs"
        tables = [one_run_table(run, configs, pathlib.Path(folder) / str(index)) for index, run in enumerate(spread)]
        for _ in range(options.rounds):
            for table in tables:
                taken["gpumem"].append(processor_time([options.gpumem, "evaluate", table]))
                for name in formulas.FORMULAS:
                    taken[name].append(processor_time([sys.executable, str(HERE / "formulas.py"), name, table]))
    return {name: statistics.median(values) for name, values in taken.items()}


def warm_time(formula, runs):
    """Seconds of one more answer in a process that is up: over all runs that it answers."""
    answered = [run for run in runs if formulas.answer(formula, run)[0] is not None]
    start = time.process_time()
    for run in answered:
        formulas.answer(formula, run)
    return (time.process_time() - start) / len(answered)


def table_of(runs, answers, ours, times, warm):
    text = (
        "| formula | runs of both | the formula's error: median, 90 %, too low | gpumem's error "
        "| process: the formula's, gpumem's |\n"
    )
    text += "|---|---|---|---|---|\n"
    for name, theirs in answers.items():
        for row, (kind, (left, right)) in enumerate(errors_by_kind(runs, theirs, ours).items()):
            title = f"{TITLES[name]}, {kind}" if kind != "all" else TITLES[name]
            took = f"{seconds(times[name])} (warm {seconds(warm[name])}), {seconds(times['gpumem'])}" if row == 0 else ""
            text += f"| {title} | {len(left.signed)} | {left} | {right} | {took} |\n"
    return text


def foot(runs, answers, ours):
    said = ", ".join(f"{TITLES[name]} {len(theirs)}" for name, theirs in answers.items())
    return f"\nOf {len(runs)} runs gpumem answers {len(ours)}, {said}.\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path, metavar="RUNS.csv")
    parser.add_argument("--gpumem", type=pathlib.Path, required=True, help="the command line, built as Release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=20, help="runs whose time is taken (default: %(default)s)")
    parser.add_argument("--readme", type=pathlib.Path)
    options = parser.parse_args()
    if options.rounds < 1 or options.times < 1:
        parser.error("--rounds and --times: at least 1")
    for path in (options.table, options.gpumem):
        if not path.is_file():
            parser.error(f"there is no file {path}")
    return options


def main():
    options = arguments()
    runs = formulas.read_runs(options.table)
    ours = gpumem_answers(options.gpumem, options.table)
    answers = {name: formula_answers(name, runs) for name in formulas.FORMULAS}
    answers = {name: theirs for name, theirs in answers.items() if theirs}
    warm = {name: warm_time(name, runs) for name in answers}
    table = table_of(runs, answers, ours, process_times(options, runs), warm) + foot(runs, answers, ours)
    print(table, end="")
    if options.readme:
        put_into(options.readme, table, MARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
