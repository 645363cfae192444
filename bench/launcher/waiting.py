#!/usr/bin/env python3
"""How soon a job of `gpumem run` starts once memory is free, and what waiting costs.

    waiting.py --gpumem build/bench/src/cli/gpumem --pretended build/bench/tests/support/nvml [--times 20] [--waiters 64]

On one made-up GPU. First, one job after another in the queue: from the end of what the first one runs to the beginning of
what the second one runs. Then the same where the first one is not a job of the queue. Then many waiters after one job for
--seconds: the CPU time of the head of the queue and of all others.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

TOTAL = 42_949_672_960


def make_site(options, folder):
    for name in ("queue", "jobs"):
        os.mkdir(os.path.join(folder, name))
    machine = os.path.join(folder, "machine.json")
    with open(machine, "w") as file:
        json.dump({"driver": "550.54.15", "jobs": os.path.join(folder, "jobs"),
                   "gpus": [{"uuid": "GPU-0", "name": "NVIDIA A100-SXM4-40GB", "memory_total": TOTAL}]}, file)
    return dict(os.environ, GPUMEM_QUEUE=os.path.join(folder, "queue"), GPUMEM_PRETENDED_NVML=machine,
                GPUMEM_NVML=os.path.join(options.pretended, "libnvidia-ml.so.1"))


def launch(options, environment, *command):
    words = [options.gpumem, "run", "--quiet", "--memory", "30GiB", "--free-floor", "0", "--", *command]
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL)


def gap(options, environment, folder, in_queue):
    """Seconds from the end of the first program to the start of the second."""
    marks = [os.path.join(folder, name) for name in ("end", "start")]
    first = [os.path.join(options.pretended, "pretended_job"), str(30 << 30), "0.7"]
    script = f'"$@"; date +%s.%N > {marks[0]}'
    if in_queue:
        one = launch(options, environment, "sh", "-c", script, "sh", *first)
    else:
        one = subprocess.Popen(["sh", "-c", script, "sh", *first], env=environment)
    time.sleep(0.3)
    # The time first: to make a file may take longer than all that is measured.
    two = launch(options, environment, "sh", "-c", f"now=$(date +%s.%N); echo $now > {marks[1]}")
    one.wait()
    two.wait()
    times = []
    for mark in marks:
        with open(mark) as file:
            times.append(float(file.read()))
    return times[1] - times[0]


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpumem", default="gpumem")
    parser.add_argument("--pretended", required=True, help="the folder of libnvidia-ml.so.1 and pretended_job")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--waiters", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpumem_waiting_") as folder:
        environment = make_site(options, folder)
        for name, in_queue in (("a job of the queue", True), ("something else", False)):
            gaps = sorted(gap(options, environment, folder, in_queue) for _ in range(options.times))
            print(f"after {name} has ended: a job starts {1000 * statistics.median(gaps):.1f} ms later in the median, "
                  f"{1000 * gaps[-1]:.1f} ms at most, of {len(gaps)}")
        holder = launch(options, environment, "sleep", str(options.seconds + 30))
        time.sleep(1)
        waiters = []
        for _ in range(options.waiters):
            waiters.append(launch(options, environment, "true"))
            time.sleep(0.05)
        time.sleep(5)
        before = [processor_seconds(waiter.pid) for waiter in waiters]
        time.sleep(options.seconds)
        used = [processor_seconds(waiter.pid) - start for waiter, start in zip(waiters, before)]
        print(f"in {options.seconds:.0f} s the head of the queue takes {1000 * used[0]:.0f} ms of CPU time, the other "
              f"{len(used) - 1} waiters {1000 * sum(used[1:]):.0f} ms together")
        for process in [*waiters, holder]:
            process.terminate()
        for process in [*waiters, holder]:
            process.wait()


if __name__ == "__main__":
    main()
