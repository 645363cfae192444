#!/usr/bin/env python3
"""A launcher that chooses the largest batch before the job starts, instead of trying until nothing
runs out of memory.

  largest_batch.py SUMMARY [--gpu G] [--optimizer O] [--precision P] [--most N] -- COMMAND...

COMMAND is started with BATCH_SIZE and GRADIENT_ACCUMULATION in its environment. The batch is the
largest power of two whose whole range, up to `upper_bytes`, leaves 5 % of the GPU free. Where it is
smaller than --most, gradients are accumulated over several passes, so that
a step still sees --most samples. Exits with 1, and starts nothing, if there is no room for even one
sample.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import gpumem


LARGEST_SHARE = 0.95  # of the GPU


def gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def passes(most: int, batch: int) -> int:
    """Of forward and backward, for a step of `most` samples."""
    return -(-most // batch)


def choose(summary: gpumem.Summary, options: argparse.Namespace) -> tuple[gpumem.Estimate, bool]:
    """The estimate at the largest power of two up to --most that has room; or at 1, and False."""
    batch = 1 << (options.most.bit_length() - 1)
    while True:
        need = gpumem.estimate(
            summary,
            batch_size=batch,
            gpu=options.gpu,
            optimizer=options.optimizer,
            precision=options.precision,
            accumulate=passes(options.most, batch),
        )
        has_room = need.fits and need.upper_bytes <= LARGEST_SHARE * need.capacity_bytes
        if has_room or batch == 1:
            return need, has_room
        batch //= 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Starts a job with the largest batch that fits.")
    parser.add_argument("summary", help="a model summary in any format that gpumem reads")
    parser.add_argument("--gpu", default="a100-40gb")
    parser.add_argument("--optimizer", default="adam", choices=gpumem.OPTIMIZERS)
    parser.add_argument("--precision", default="fp32", choices=gpumem.PRECISIONS)
    parser.add_argument("--most", type=int, default=256, help="samples a step (default: 256)")
    parser.add_argument("command", nargs="+", help="the job, after --")
    options = parser.parse_args()
    if options.most < 1:
        parser.error("--most is at least 1")
    return options


def main() -> int:
    options = parse_arguments()
    try:
        need, has_room = choose(gpumem.read_summary(options.summary), options)
    except gpumem.Error as error:
        print(f"largest_batch.py: {error}", file=sys.stderr)
        return error.exit_code
    of_gpu = f"of {gib(need.capacity_bytes)} on {need.gpu}"
    if not has_room:
        print(f"not started: one sample may take {gib(need.upper_bytes)} {of_gpu}")
        return 1
    accumulate = passes(options.most, need.batch_size)
    print(
        f"batch {need.batch_size}, {accumulate} passes a step: "
        f"{gib(need.expected_bytes)} expected, perhaps {gib(need.upper_bytes)}, {of_gpu}",
        flush=True,
    )
    environment = {"BATCH_SIZE": str(need.batch_size), "GRADIENT_ACCUMULATION": str(accumulate)}
    return subprocess.run(options.command, env={**os.environ, **environment}).returncode


if __name__ == "__main__":
    sys.exit(main())
