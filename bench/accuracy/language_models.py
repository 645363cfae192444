#!/usr/bin/env python3
"""The table of docs/accuracy.md on language models: by source, on one GPU and on several.

    language_models.py --gpumem build/release/src/cli/gpumem RUNS.csv [--readme docs/accuracy.md [--check]]

Input: a table of published runs, as `gpumem evaluate` reads it, and the program.
Output: the table, also between its two marks on the page; --check says with exit code 1 that the page has another one.
Units: MiB; errors are |expected - measured| / measured, and percentiles are interpolated between ranks, as `gpumem evaluate`
        has them.
"""

import argparse
import csv
import dataclasses
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

from tables import put_into  # noqa: E402

MARKS = ("<!-- bench/accuracy/language_models: begin -->", "<!-- bench/accuracy/language_models: end -->")


@dataclasses.dataclass(frozen=True)
class Run:
    source: str
    figure: str
    gpus: int
    compiled: bool
    measured: float
    expected: "float | None"  # None: gpumem gives no answer.
    upper: "float | None"

    @property
    def error(self):
        return abs(self.expected - self.measured) / self.measured


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    source: str  # What the run's source begins with; empty: any.
    several: bool  # GPUs.
    compiled: "bool | None" = None  # None: either.

    def has(self, run):
        right = run.source.startswith(self.source) and (run.gpus > 1) == self.several
        return right and self.compiled in (None, run.compiled)


ROWS = [
    Row("foundation-model-stack/fms-acceleration, one A100-80GB, HuggingFace's Trainer: full, LoRA, nf4, GPTQ", "foundation-model-stack", False),
    Row("litgpt's tables, LoRA and QLoRA, one GPU", "Lightning-AI/litgpt", False),
    Row("torchao's optimizers of few bits on ViT-H, compiled, one RTX 4070 Ti SUPER", "pytorch/ao", False),
    Row("transformers' guide, BERT-large on a V100 in 2022", "huggingface/transformers", False),
    Row("**all on one GPU**", "", False),
    Row("fms-acceleration, FSDP1 on 2 and 4 GPUs", "foundation-model-stack", True),
    Row("fsdp_qlora, FSDP1 with QLoRA on two GPUs", "AnswerDotAI/fsdp_qlora", True),
    Row("torchtitan, FSDP2, not compiled", "pytorch/torchtitan", True, False),
    Row("torchtitan, FSDP2, compiled, some with float8", "pytorch/torchtitan", True, True),
    Row("torchao's page of June 2025, FSDP2, compiled", "pytorch/ao", True),
    Row("SimuMax, Megatron on 8 B200", "MooreThreads/SimuMax", True),
    Row("Megatron-LM's golden values: small models, last rank", "NVIDIA/Megatron-LM", True),
    Row("**all on several GPUs**", "", True),
]


def read_runs(program, table):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "predictions.csv"
        subprocess.run([program, "evaluate", table, "--out", out], check=True, stdout=subprocess.DEVNULL)
        with open(out) as file:
            answers = {row["name"]: row for row in csv.DictReader(file) if row["estimator"] == "replay"}
    with open(table) as file:
        return [run_of(row, answers.get(row["name"])) for row in csv.DictReader(file)]


def run_of(row, answer):
    answered = answer is not None and answer["status"] == "ok"
    return Run(source=row["source"], figure=row["figure"], gpus=int(row["gpus"]), compiled=row["compile"] not in ("", "no"),
               measured=float(row["measured_mib"]), expected=float(answer["expected_mib"]) if answered else None,
               upper=float(answer["upper_mib"]) if answered else None)


def percentile(values, share):
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def table_of(runs):
    lines = ["| runs | figure | answered | relative error: median, 90 % within |", "|---|---|---:|---:|"]
    for row in ROWS:
        those = [run for run in runs if row.has(run)]
        answered = [run for run in those if run.expected is not None]
        if not answered:
            continue
        errors = [run.error for run in answered]
        figure = ", ".join(sorted({run.figure for run in those})) if row.source else "mixed"
        lines.append(f"| {row.title} | {figure} | {len(answered)} of {len(those)} | "
                     f"{100 * statistics.median(errors):.1f} %, {100 * percentile(errors, 0.9):.1f} % |")
    return "\n".join(lines) + "\n"


def foot(runs):
    """How often `upper` covers what was measured, and how much it is."""
    said = []
    for several in (False, True):
        those = [run for run in runs if run.expected is not None and (run.gpus > 1) == several]
        covered = 100 * sum(run.measured <= run.upper for run in those) / len(those)
        ratio = statistics.mean(run.upper / run.measured for run in those)
        said.append(f"{covered:.1f} % of the runs on {'several GPUs' if several else 'one GPU'} at {ratio:.2f} times the measured value on average")
    return f"\n`upper` covers {said[0]}, and {said[1]}.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path, metavar="RUNS.csv")
    parser.add_argument("--gpumem", type=pathlib.Path, required=True)
    parser.add_argument("--readme", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    runs = read_runs(options.gpumem, options.table)
    table = table_of(runs) + foot(runs)
    print(table, end="")
    if options.readme and options.check:
        return 0 if f"{MARKS[0]}\n{table}{MARKS[1]}" in options.readme.read_text() else 1
    if options.readme:
        put_into(options.readme, table, MARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
