#!/usr/bin/env python3
"""A trace of jobs through `gpumem run` for real, on pretended GPUs, and what `gpumem simulate` says about it.

    traces.py --gpumem build/bench/src/cli/gpumem --pretended build/bench/tests/support/nvml --scale 300 \\
        philly_heavy_60.csv philly_mix_90.csv

Each job is handed to `gpumem run` at its arrival, takes its measured memory of the GPUs that it gets, and sleeps for its
duration; all times are divided by --scale. The simulation gets the same policy, conditions and margin, no window between
placements (without estimates 30 s, in which `gpumem run` closes the GPUs of a job that has just come), no slowdown (an SM
activity of 0: a job that sleeps slows nobody down), and jobs that grow to what they need at once. Durations that nobody measured are the median, in both. Traces are read as gpumem_datasets/trace.hpp says.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# The A100-40GB of the profiles, which the simulation takes.
TOTAL = 42_949_672_960
CAPACITY = 42_474_471_424
GPUS = 4
WAYS = [
    ("exclusive", "exclusive", "none"),
    ("magm, no estimate", "magm", "none"),
    ("magm, gpumemnet", "magm", "gpumemnet"),
    ("magm, true need", "magm", "true"),
]
MARGIN_MIB = 2048
SETTLE = 30  # seconds after which it can be seen what a job without an estimate takes


def read_trace(path):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    middle = statistics.median(float(row["duration_s"]) for row in rows if row["duration_s"])
    jobs = []
    for row in rows:
        estimate = {"none": None, "true": float(row["measured_mib"])}
        mib = float(row.get("gpumemnet_mb") or 40000)
        estimate["gpumemnet"] = mib if mib < 40000 else None
        jobs.append({"arrival": float(row["arrival_s"]), "task": row["task"], "gpus": int(row["gpus"]),
                     "duration": float(row["duration_s"] or middle), "mib": float(row["measured_mib"]),
                     "estimates": estimate})
    return jobs


def simulated(options, trace, policy, estimator):
    window = str(SETTLE) if estimator == "none" and policy != "exclusive" else "0"
    floor = "5GiB" if estimator == "none" else "0"
    command = [options.gpumem, "simulate", trace, "--json", "--policy", policy, "--estimator", estimator,
               "--window", window, "--ramp", "0", "--smact", "0", "--free-floor", floor]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    totals = json.loads(done.stdout)["totals"]
    return totals["out_of_memory"], totals["total_s"], totals["mean_wait_s"]


class Road:
    """A machine that is made up, a queue of its own, and the times of its jobs."""

    def __init__(self, options, folder):
        self.options = options
        self.marks = os.path.join(folder, "marks")
        for name in ("queue", "jobs", "marks"):
            os.mkdir(os.path.join(folder, name))
        machine = os.path.join(folder, "machine.json")
        gpus = [{"uuid": f"GPU-{index}", "name": "NVIDIA A100-SXM4-40GB", "memory_total": TOTAL,
                 "reserved": TOTAL - CAPACITY} for index in range(GPUS)]
        with open(machine, "w") as file:
            json.dump({"driver": "550.54.15", "jobs": os.path.join(folder, "jobs"), "gpus": gpus}, file)
        self.environment = dict(os.environ, GPUMEM_QUEUE=os.path.join(folder, "queue"), GPUMEM_PRETENDED_NVML=machine,
                                GPUMEM_NVML=os.path.join(options.pretended, "libnvidia-ml.so.1"))
        self.lock = threading.Lock()
        self.rows = []

    def run_job(self, number, job, policy, estimator):
        mark = os.path.join(self.marks, str(number))
        estimate = job["estimates"][estimator]
        memory = [] if estimate is None else ["--memory", f"{int(estimate) + MARGIN_MIB}MiB"]
        if estimator == "gpumemnet" and estimate is None:
            policy = "first-fit"  # the simulation starts such a job on an idle GPU, where others may join it
        if estimator != "none" and estimate is not None and estimate + MARGIN_MIB > CAPACITY >> 20:
            memory = ["--memory", f"{CAPACITY >> 20}MiB"]
        program = os.path.join(self.options.pretended, "pretended_job")
        seconds = job["duration"] / self.options.scale
        script = f'date +%s.%N >> {mark}; exec {program} {int(job["mib"]) << 20} {seconds}'
        words = [self.options.gpumem, "run", "--policy", policy, "--gpus", str(job["gpus"]), "--idle-first", "--settle",
                 str(SETTLE / self.options.scale), "--free-floor",
                 "5GiB" if estimator == "none" else "0", *memory, "--", "sh", "-c", script]
        begin = time.time()
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        end = time.time()
        with open(mark) as file:
            starts = [float(line) for line in file]
        with self.lock:
            self.rows.append({"begin": begin, "end": end, "start": starts[-1], "crashes": len(starts) - 1,
                              "code": done.returncode, "errors": done.stderr})


def for_real(options, jobs, policy, estimator):
    with tempfile.TemporaryDirectory(prefix="gpumem_traces_") as folder:
        road = Road(options, folder)
        threads = []
        first = jobs[0]["arrival"]
        begin = time.monotonic()
        for number, job in enumerate(jobs):
            time.sleep(max(0.0, begin + (job["arrival"] - first) / options.scale - time.monotonic()))
            thread = threading.Thread(target=road.run_job, args=(number, job, policy, estimator))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
    failed = [row for row in road.rows if row["code"] != 0]
    if failed:
        sys.exit(f"{len(failed)} jobs failed: {failed[0]['errors']}")
    total = max(row["end"] for row in road.rows) - min(row["begin"] for row in road.rows)
    wait = statistics.mean(row["start"] - row["begin"] for row in road.rows)
    return sum(row["crashes"] for row in road.rows), total * options.scale, wait * options.scale


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--gpumem", default="gpumem")
    parser.add_argument("--pretended", required=True, help="the folder of libnvidia-ml.so.1 and pretended_job")
    parser.add_argument("--scale", type=float, default=300.0)
    parser.add_argument("--ways", default="", help="only ways whose name holds this")
    options = parser.parse_args()
    for trace in options.traces:
        jobs = read_trace(trace)
        print(f"{trace}, times divided by {options.scale:.0f}\n{'':20} {'crashes':>15} {'total time':>29} {'mean wait':>29}")
        print(f"{'':20} {'simulated, run':>15} {'simulated, run':>29} {'simulated, run':>29}")
        for name, policy, estimator in WAYS:
            if options.ways not in name:
                continue
            ooms, total, wait = simulated(options, trace, policy, estimator)
            own = for_real(options, jobs, policy, estimator)
            parts = [f"{a:8.0f} s, {b:8.0f} s {100 * (b / a - 1) if a else 0:+5.1f} %" for a, b in
                     ((total, own[1]), (wait, own[2]))]
            print(f"{name:20} {ooms:>8}, {own[0]:>5} {parts[0]:>29} {parts[1]:>29}", flush=True)


if __name__ == "__main__":
    main()
