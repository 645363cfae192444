#!/usr/bin/env python3
"""Policies and estimators on traces of jobs: crashes and times of `gpumem simulate`, averaged over seeds.

    placement.py --gpumem build/release/src/cli/gpumem philly_heavy_60.csv philly_mix_90.csv [-- --smact 0.6 ...]

Prints one table a trace. Total times are compared with the exclusive policy's. What follows -- goes to every
simulation.
"""
import argparse
import json
import subprocess
import sys

WAYS = [
    ("round-robin, streams", ["--policy", "round-robin", "--sharing", "streams"]),
    ("round-robin", ["--policy", "round-robin"]),
    ("magm, no estimate", []),
    ("magm, horus", ["--estimator", "horus"]),
    ("magm, faketensor", ["--estimator", "faketensor"]),
    ("magm, gpumemnet", ["--estimator", "gpumemnet"]),
    ("magm, true need", ["--estimator", "true"]),
    ("magm, true x 1.15", ["--estimator", "true", "--margin", "1.15x"]),
]


def totals(gpumem, trace, options, seed):
    command = [gpumem, "simulate", trace, "--json", "--seed", str(seed), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["totals"]


def mean(rows, name):
    return sum(row[name] for row in rows) / len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--gpumem", default="gpumem")
    parser.add_argument("--seeds", type=int, default=10)
    words = sys.argv[1:]
    more = words[words.index("--") + 1:] if "--" in words else []
    args = parser.parse_args(words[:words.index("--")] if "--" in words else words)
    for trace in args.traces:
        alone = totals(args.gpumem, trace, ["--policy", "exclusive", *more], 1)
        print(f"{trace}\n{'':22} {'OOMs':>6} {'total':>8} {'':>6} {'wait':>8} {'SMACT':>6} {'memory':>6}")
        print(f"{'exclusive':22} {0:6.1f} {alone['total_s'] / 3600:6.2f} h {'':6} {alone['mean_wait_s'] / 3600:6.2f} h "
              f"{alone['mean_smact']:6.2f} {alone['mean_memory']:6.2f}")
        for name, options in WAYS:
            rows = [totals(args.gpumem, trace, options + more, seed) for seed in range(1, args.seeds + 1)]
            change = 100 * (mean(rows, "total_s") / alone["total_s"] - 1)
            print(f"{name:22} {mean(rows, 'out_of_memory'):6.1f} {mean(rows, 'total_s') / 3600:6.2f} h {change:+4.0f} % "
                  f"{mean(rows, 'mean_wait_s') / 3600:6.2f} h {mean(rows, 'mean_smact'):6.2f} "
                  f"{mean(rows, 'mean_memory'):6.2f}")


if __name__ == "__main__":
    main()
