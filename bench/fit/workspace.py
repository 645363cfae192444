#!/usr/bin/env python3
"""Fits the convolution workspace rule of a GPU profile to measured runs, on one half of them, and reports the error on
the other half.

    bench/fit/workspace.py RUNS.csv --gpumem build/release/src/cli/gpumem --profile models/gpus/a100-40gb.json

RUNS.csv: a table that `gpumem evaluate` reads, such as GPUMemNet's CNN runs. The halves are the odd and the even lines;
in GPUMemNet's tables every line is a net of its own, so no net is in both. Coordinate descent over the values below, on
the mean relative error of the runs that fitted. Nothing is written: the profile's values are changed by hand, with the
figures that this prints. Needs Python 3.8 and no packages.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

MIB = 1 << 20
CANDIDATES = {
    "wide_slices": [1, 2, 3, 4, 6, 8],
    "wide_split_most_bytes": [4 * MIB, 8 * MIB, 12 * MIB, 16 * MIB, 24 * MIB, 1 << 40],
    "narrow_channels": [128, 160, 200, 256],
    "narrow_split_bytes": [3 * MIB, 4 * MIB, 5 * MIB, 6 * MIB, 8 * MIB],
    "narrow_least_inputs": [1, 16, 32, 40, 48],
    "first_layer_channels": [96, 104, 112, 120, 128],
}


class Evaluator:
    """Runs gpumem evaluate under changed rules, and keeps what it has seen."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.profile = json.loads(pathlib.Path(arguments.profile).read_text())
        self.seen = {}

    def rule(self):
        return {name: self.profile["convolution_workspace"][name] for name in CANDIDATES}

    def predictions(self, rule):
        key = tuple(sorted(rule.items()))
        if key not in self.seen:
            self.seen[key] = self.run(rule)
        return self.seen[key]

    def run(self, rule):
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder, "profile.json")
            out = pathlib.Path(folder, "predictions.csv")
            changed = dict(self.profile)
            changed["convolution_workspace"] = {**changed["convolution_workspace"], **rule}
            profile.write_text(json.dumps(changed))
            command = [self.arguments.gpumem, "evaluate", self.arguments.runs, "--estimator", "replay"]
            subprocess.run([*command, "--gpu", str(profile), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
            with out.open(newline="") as rows:
                return [row for row in csv.DictReader(rows) if row["status"] == "ok"]

    def errors(self, rule, half):
        """Signed relative errors over the odd (1) or even (0) lines."""
        return [
            float(row["expected_mib"]) / float(row["measured_mib"]) - 1.0
            for row in self.predictions(rule)
            if int(row["line"]) % 2 == half
        ]


def describe(errors):
    absolute = sorted(abs(error) for error in errors)
    mean, median = statistics.mean(absolute), statistics.median(absolute)
    p90 = absolute[int(0.9 * len(absolute))]
    return f"{len(errors)} runs: mean {mean:.2%}, median {median:.2%}, p90 {p90:.2%}, signed {statistics.mean(errors):+.2%}"


def fit(evaluator, half):
    rule = evaluator.rule()
    score = lambda candidate: statistics.mean(abs(error) for error in evaluator.errors(candidate, half))
    best = score(rule)
    for _ in range(2):
        for name, values in CANDIDATES.items():
            for value in values:
                candidate = {**rule, name: value}
                if score(candidate) < best - 1e-5:
                    rule, best = candidate, score(candidate)
    return rule


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs")
    parser.add_argument("--gpumem", default="gpumem")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1, help="lines to fit on: odd (1) or even (0)")
    arguments = parser.parse_args()
    evaluator = Evaluator(arguments)
    now = evaluator.rule()
    print("as the profile has it")
    print("  fitting half   ", describe(evaluator.errors(now, arguments.half)))
    print("  the other half ", describe(evaluator.errors(now, 1 - arguments.half)))
    rule = fit(evaluator, arguments.half)
    print("fitted", json.dumps(rule))
    print("  fitting half   ", describe(evaluator.errors(rule, arguments.half)))
    print("  the other half ", describe(evaluator.errors(rule, 1 - arguments.half)))


if __name__ == "__main__":
    main()
