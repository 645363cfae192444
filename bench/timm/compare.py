#!/usr/bin/env python3
"""What only print(model) tells about timm's models, compared with the answer from the module.

    python3 bench/timm/compare.py --trees FOLDER --journal JOURNAL [--gpumem PROGRAM] [--batch 32]

FOLDER is what print_model.py wrote, JOURNAL what accuracy.py did. Every tree is estimated; where the journal has the same
batch size, the two are compared. A tree counts as within 20 %, or as a guess if its answer says so (`assumed` of a guess, or
a lower bound). Needs no PyTorch.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import pathlib
import statistics
import subprocess

from accuracy import JOB, OF_THE_STEP

NEAR = 0.2


@dataclasses.dataclass(frozen=True)
class Answer:
    expected: int
    is_guess: bool


def answer(program: pathlib.Path, tree: pathlib.Path, shape: str, batch: int) -> Answer | None:
    """None: gpumem refuses it."""
    command = [str(program), "estimate", str(tree), "--json", "--batch", str(batch), "--input", shape, *JOB, *OF_THE_STEP]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        return None
    made = json.loads(ran.stdout)["estimates"][0]
    guesses = any(each["about"] == "guess" for each in made["assumed"])
    return Answer(made["expected_bytes"], guesses or made["lower_bound"])


def of_modules(journal: pathlib.Path, batch: int) -> dict[str, int]:
    """By model: bytes on the device, from the module."""
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return {row["model"]: row["answers"][str(batch)][0] for row in rows if str(batch) in row.get("answers", {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--journal", type=pathlib.Path, required=True)
    parser.add_argument("--gpumem", type=pathlib.Path, default=pathlib.Path("build/release/src/cli/gpumem"))
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    with (options.trees / "inputs.csv").open(newline="") as table:
        shapes = {row["model"]: row["input"] for row in csv.DictReader(table)}
    answers = {}
    for model, shape in shapes.items():
        found = answer(options.gpumem, options.trees / f"{model}.txt", shape, options.batch)
        if found:
            answers[model] = found
    modules = of_modules(options.journal, options.batch)
    apart = {model: answers[model].expected / modules[model] - 1 for model in answers if model in modules}
    far = {model: error for model, error in apart.items() if abs(error) > NEAR}
    silent = {model: error for model, error in far.items() if not answers[model].is_guess}
    print(f"trees: {len(answers)} answered of {len(shapes)}")
    median = statistics.median(map(abs, apart.values()))
    print(f"compared with the module at batch {options.batch}: {len(apart)}, {median:.2%} apart in the median")
    print(f"within {NEAR:.0%}: {len(apart) - len(far)}; further, and said to be a guess: {len(far) - len(silent)}")
    for model, error in sorted(silent.items(), key=lambda item: -abs(item[1])):
        print(f"  further, and not said: {model} {error:+.1%}")


if __name__ == "__main__":
    main()
