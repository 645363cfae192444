#!/usr/bin/env python3
"""A benchmark harness that skips the configurations that will not fit, and says why, instead of
losing a GPU hour to each of them.

  benchmark_harness.py SUMMARY... [--gpu NAME] [--batches 32,256] [--precisions fp32,amp-bf16]

Here `run` only says what it would run; put your benchmark there. A configuration that cannot be
estimated is run: an unsure estimate is not a reason to leave a hole in a table.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys

import gpumem

# Of the GPU, for what else is on it.
MARGIN = 512 << 20


def gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def why_not(need: gpumem.Estimate) -> str | None:
    """Why this configuration is not worth a run; None: it is."""
    room = need.capacity_bytes - MARGIN
    if not need.fits and need.lower_bytes > room:
        return f"needs at least {gib(need.lower_bytes)}, there are {gib(room)}"
    if not need.fits:
        return f"needs {gib(need.expected_bytes)}, there are {gib(room)}"
    if need.retries > 0:
        return f"fits only by emptying PyTorch's cache ({need.retries} x): no fair timing"
    if need.upper_bytes > room:
        return f"may need {gib(need.upper_bytes)}, there are {gib(room)}"
    return None


def run(model: str, batch: int, precision: str, remark: str) -> None:
    print(f"run   {model:<16} batch {batch:>4}  {precision:<9} {remark}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the configurations that fit a GPU.")
    parser.add_argument("summaries", nargs="+", type=pathlib.Path, metavar="SUMMARY")
    parser.add_argument("--gpu", default="rtx3090-24gb")
    parser.add_argument("--batches", default="32,256,512")
    parser.add_argument("--precisions", default="fp32,amp-bf16")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    batches = [int(batch) for batch in options.batches.split(",")]
    skipped = 0
    for path in options.summaries:
        model = path.name.split(".")[0]
        summary = gpumem.read_summary(path)
        for batch, precision in itertools.product(batches, options.precisions.split(",")):
            try:
                need = gpumem.estimate(
                    summary, batch_size=batch, gpu=options.gpu, precision=precision
                )
            except gpumem.NoEstimateError as error:
                run(model, batch, precision, f"not estimated: {error}")
                continue
            reason = why_not(need)
            if reason is None:
                run(model, batch, precision, f"{gib(need.expected_bytes)} expected")
            else:
                print(f"skip  {model:<16} batch {batch:>4}  {precision:<9} {reason}")
                skipped += 1
    print(f"{skipped} skipped")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gpumem.Error as error:
        print(f"benchmark_harness.py: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
