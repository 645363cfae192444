#!/usr/bin/env python3
"""Many short jobs from many shells through `gpumem run` on GPUs that are made up, while launchers and jobs are killed,
launchers are stopped for a while, disks are full and clocks jump.

    soak.py GPUMEM FOLDER [--jobs 300] [--shells 64] [--seed 1] [--seconds 0.05] [--clock LIBRARY]

FOLDER holds the libnvidia-ml and the pretended_job of tests/support/nvml. Estimates are true. What must hold:
- a job whose launcher nobody killed, and whose disk was not full when it joined, ran exactly once, and ended well;
- no job ran twice; none ran out of memory; at no time was more promised of a GPU than it has;
- the journal could be read at any time, and in the end nobody is in the queue.
Exit code 1, with what did not hold, if something did not.
"""
import argparse
import collections
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOTAL = 42_949_672_960
GPUS = 4


class Site:
    """The queue, the machine, and what became of each job."""

    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.queue = os.path.join(folder, "queue")
        self.marks = os.path.join(folder, "marks")
        for name in ("queue", "jobs", "marks"):
            os.mkdir(os.path.join(folder, name))
        machine = os.path.join(folder, "machine.json")
        gpus = [{"uuid": f"GPU-{index}", "name": "NVIDIA A100-SXM4-40GB", "memory_total": TOTAL} for index in range(GPUS)]
        with open(machine, "w") as file:
            json.dump({"driver": "550.54.15", "jobs": os.path.join(folder, "jobs"), "gpus": gpus}, file)
        self.environment = dict(os.environ, GPUMEM_QUEUE=self.queue, GPUMEM_PRETENDED_NVML=machine,
                                GPUMEM_NVML=os.path.join(arguments.folder, "libnvidia-ml.so.1"))
        self.lock = threading.Lock()
        self.launchers = {}  # tag -> process
        self.killed = set()
        self.starved = set()  # whose disk was full at some time
        self.outcomes = {}
        self.faults = []
        self.left = arguments.jobs
        self.shells_done = 0
        self.counts = collections.Counter()

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def read_queue(self):
        done = subprocess.run([self.arguments.gpumem, "queue", "--json"], env=self.environment, capture_output=True,
                              text=True)
        if done.returncode != 0 or done.stderr:
            self.fault(f"gpumem queue: {done.returncode} {done.stderr}")
            return []
        return json.loads(done.stdout)["jobs"]


def run_job(site, tag, random_):
    options = site.arguments
    memory = random_.choice([2, 5, 9, 14, 20, 33]) << 30
    gpus = 2 if random_.random() < 0.1 else 1
    seconds = random_.uniform(0, 2 * options.seconds)
    job = os.path.join(options.folder, "pretended_job")
    # The mark is a folder: making it is atomic, and needs no room for a file.
    script = f"mkdir {site.marks}/{tag} || exit 99; {job} {memory} {seconds} && mkdir {site.marks}/{tag}/done"
    words = [options.gpumem, "run", "--memory", f"{memory >> 30}GiB", "--gpus", str(gpus), "--free-floor", "0",
             "--name", tag, "--", "sh", "-c", script]
    environment = site.environment
    if options.clock and random_.random() < 0.3:
        environment = dict(environment, LD_PRELOAD=options.clock)
        site.counts["with jumping clocks"] += 1
    if random_.random() < 0.02:  # a disk that is full from the beginning
        words = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *words]
        site.starved.add(tag)
        site.counts["on a full disk"] += 1
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    with site.lock:
        site.launchers[tag] = process
    errors = process.stderr.read()
    code = process.wait()
    with site.lock:
        del site.launchers[tag]
        site.outcomes[tag] = (code, errors)


def shell(site, seed):
    random_ = random.Random(seed)
    while True:
        with site.lock:
            if site.left == 0:
                site.shells_done += 1
                return
            site.left -= 1
            tag = f"t{site.left}"
        run_job(site, tag, random_)


def check_promises(site, jobs):
    promised = collections.Counter()
    for job in jobs:
        for gpu in job["gpus"]:
            promised[gpu] += job["promised_bytes"]
    for gpu, memory in promised.items():
        if memory > TOTAL:
            site.fault(f"{memory} bytes are promised of {gpu}")


def kill(pid, group=False):
    try:
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def starve(site, job):
    """Its disk is full for a while, at whatever it does then."""
    pid = job["launcher_pid"]
    try:
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        site.starved.add(job["name"])
        time.sleep(0.1)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        site.counts["on a disk that was full for a while"] += 1
    except (ProcessLookupError, PermissionError):
        pass


def stop(site, job, seconds):
    """Its launcher stops, and goes on later: others go past it meanwhile."""
    with site.lock:
        process = site.launchers.get(job["name"])
        if process is None or process.pid != job["launcher_pid"]:
            return
        process.send_signal(signal.SIGSTOP)
        site.counts["stopped for a while"] += 1
    threading.Timer(seconds, process.send_signal, (signal.SIGCONT,)).start()


def chaos(site, seed):
    random_ = random.Random(seed)
    while site.shells_done < site.arguments.shells:
        time.sleep(random_.uniform(0, 2 * site.arguments.pause))
        jobs = site.read_queue()
        check_promises(site, jobs)
        if not jobs:
            continue
        job = random_.choice(jobs)
        what = random_.choice(["launcher", "job", "both", "disk", "head", "stop"])
        if what == "head":
            waiting = [one for one in jobs if one["state"] == "waiting"]
            job, what = (waiting[0] if waiting else job), "launcher"
        if what == "stop":
            stop(site, job, random_.uniform(0, 5))
            continue
        if what == "disk":
            starve(site, job)
            continue
        if what != "launcher" and job["pid"] is None:
            continue
        with site.lock:
            if job["name"] not in site.launchers:
                continue
            site.killed.add(job["name"])
        if what != "job":
            kill(job["launcher_pid"])
        if what != "launcher":
            kill(job["pid"], group=True)
        site.counts["killed: " + what] += 1


def judge(site):
    """What did not hold of each job."""
    for number in range(site.arguments.jobs):
        tag = f"t{number}"
        code, errors = site.outcomes.get(tag, (None, ""))
        started = os.path.isdir(os.path.join(site.marks, tag))
        ended = os.path.isdir(os.path.join(site.marks, tag, "done"))
        if "out of memory" in errors:
            site.fault(f"{tag}: {errors}")
        if code == 99:
            site.fault(f"{tag} ran twice")
        if tag in site.killed:
            continue
        if code == 0 and started and ended:
            site.counts["ended well"] += 1
            continue
        if tag in site.starved and not started and code == 3:
            site.counts["refused for a full disk"] += 1
            continue
        # A job that began while its launcher's disk was full has that disk, too, and dies of what it writes.
        if tag in site.starved and started and code == 128 + signal.SIGXFSZ:
            site.counts["died of a full disk"] += 1
            continue
        site.fault(f"{tag}: exit code {code}, started {started}, ended {ended}: {errors}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpumem")
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--shells", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.02, help="that a job takes on average")
    parser.add_argument("--pause", type=float, default=0.15, help="seconds from one blow to the next, on average")
    parser.add_argument("--clock", help="a library that lets the clocks jump")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpumem_soak_") as folder:
        site = Site(arguments, folder)
        begin = time.monotonic()
        threads = [threading.Thread(target=shell, args=(site, arguments.seed * 1000 + index))
                   for index in range(arguments.shells)]
        threads.append(threading.Thread(target=chaos, args=(site, arguments.seed)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        wait_for_orphans(site)
        judge(site)
        size = os.path.getsize(os.path.join(site.queue, "journal"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{arguments.jobs} jobs from {arguments.shells} shells in {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of "
          f"CPU time; the journal has {size:,} bytes")
    for name, count in sorted(site.counts.items()):
        print(f"  {count:6} {name}")
    for fault in site.faults[:20]:
        print("FAULT " + fault.strip(), file=sys.stderr)
    print(f"{len(site.faults)} faults")
    sys.exit(1 if site.faults else 0)


def wait_for_orphans(site):
    """Jobs whose launcher was killed run to their end; then nobody is left in the queue."""
    for _ in range(300):
        jobs = site.read_queue()
        if not jobs:
            return
        time.sleep(0.1)
    site.fault(f"still in the queue: {jobs}")


if __name__ == "__main__":
    main()
