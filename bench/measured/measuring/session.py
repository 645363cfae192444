"""One call of measure.py: its folder, its time, its worker, and the parts that share them. Units: seconds, bytes."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pathlib
import re
import sys
import time
from typing import Any

from . import workers
from .profiles import profile_of
from .workers import CannotMeasure

GIB = 2**30
VERSIONS = ("torch", "cuda", "cudnn", "driver", "allocator", "transformers", "peft", "accelerate", "trl")
MOST_DEATHS = 5
"""This many processes that die one after another mean that it is not their runs' fault."""

MOST_UNCLEAN = 3
"""This many in a row that cannot give back all memory mean that none can."""

Json = dict[str, Any]


class Session:
    def __init__(self, options: argparse.Namespace, begin: float):
        self.options = options
        self.begin = begin
        self.deadline = begin + 60 * options.minutes
        self.folder: pathlib.Path = options.out
        try:
            (self.folder / "summaries").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotMeasure(f"--out {self.folder}: {error.strerror}") from error
        self.lock = open(self.folder / ".lock", "w", encoding="utf-8")
        self.worker = self.new_worker({})
        self.deaths = self.unclean = 0
        self.runs_of_process = 0
        self.machine: Json = {}
        self.gpu = ""

    def __enter__(self) -> Session:
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CannotMeasure(
                f"another measure.py works in {self.folder}; wait for it, or choose another --out"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.stop()
        self.lock.close()

    # -------------------------------------------------------------------------------------------- time

    def slice(self, begin: float, end: float, part: float = 1.0) -> float:
        """When `part` of the time from begin to end is over; shares of the whole budget."""
        return self.begin + (begin + (end - begin) * part) * (self.deadline - self.begin)

    @staticmethod
    def left(until: float) -> float:
        return until - time.monotonic()

    def tell(self, text: str, now: bool = True) -> None:
        """Progress: a line that is written over where someone looks on, else one now and then."""
        minutes, seconds = divmod(max(0, int(self.left(self.deadline))), 60)
        line = f"{text}; {minutes}:{seconds:02d} left"
        if sys.stderr.isatty():
            print(f"\r\033[K{line[:150]}", end="", file=sys.stderr, flush=True)
        elif now:
            print(line, file=sys.stderr, flush=True)

    # -------------------------------------------------------------------------------------------- workers

    def new_worker(self, environment: dict[str, str]) -> workers.Worker:
        options = self.options
        arguments = ["--limit-gib", str(options.limit_gib), "--counter-seconds", str(options.counter_seconds)]
        if options.dry_run:
            arguments.append("--dry-run")
            environment = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **environment}
        if options.allocator:
            # The older name, and the one since PyTorch 2.9.
            settings = {"PYTORCH_CUDA_ALLOC_CONF": options.allocator, "PYTORCH_ALLOC_CONF": options.allocator}
            environment = {**settings, **environment}
        return workers.Worker(arguments, self.folder / "worker.log", environment)

    def new_pool(self, seconds: float = 60.0) -> workers.Pool:
        """Processes that write summaries, without a GPU."""
        count = self.options.exporters or max(1, min(8, (os.cpu_count() or 2) - 1))
        environment = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}

        def make(number: int) -> workers.Worker:
            return workers.Worker(["--dry-run"], self.folder / f"exporter-{number}.log", environment)

        return workers.Pool(make, count, seconds)

    def ask(self, request: Json, until: float) -> Json | None:
        """The worker's answer; one with status "error" where the run killed it or took too long; None where the time
        was over before. A worker that is of no more use is ended."""
        seconds = min(self.options.run_seconds, max(1.0, self.left(until)))
        try:
            answer = self.worker.ask(request, seconds)
        except workers.WorkerDied as error:
            if self.left(until) <= 0:
                return None
            self.deaths += 1
            if self.deaths >= MOST_DEATHS:
                raise CannotMeasure(f"{self.deaths} processes in a row died: {error}") from error
            return {"status": "error", "error": str(error)}
        self.deaths = 0
        if answer.get("broken") or self.must_be_fresh(answer.get("left", 0)):
            self.worker.stop()
        return answer

    def must_be_fresh(self, left: int) -> bool:
        """Whether a process that cannot give all memory back must be replaced. If none can, that is useless: the table
        says then what was held (left_mib)."""
        self.unclean = self.unclean + 1 if left else 0
        return 0 < self.unclean <= MOST_UNCLEAN

    def look_at_machine(self) -> None:
        try:
            self.machine = self.worker.ask({"do": "machine"}, self.options.run_seconds)
        except workers.WorkerDied as error:
            raise CannotMeasure(f"{error}:\n{self.last_words()}") from error
        if "error" in self.machine:
            raise CannotMeasure(self.machine["error"])
        self.gpu = self.options.gpu or self.known_profile()
        path = self.folder / "machine.json"
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else self.machine
        if before["gpu"] != self.machine["gpu"]:
            raise CannotMeasure(f"{self.folder} holds runs of {before['gpu'] or 'a dry run'}; choose another --out")
        about = {**self.machine, "profile": self.gpu}
        path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def known_profile(self) -> str:
        if self.machine["gpu"] is None:
            return "a100-40gb"  # A dry run's table needs one to be read.
        return profile_of(self.machine["gpu"], self.machine["total_bytes"])

    def last_words(self) -> str:
        log = self.folder / "worker.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else ""

    # -------------------------------------------------------------------------------------------- rows

    def row(self, job: Any, result: Json, runs_before: int) -> Json:
        """A run as journals have it."""
        capacity = int(self.options.limit_gib * GIB) or self.machine.get("total_bytes")
        machine = {name: self.machine.get(name) for name in VERSIONS}
        return {
            "job": job.to_json(),
            "result": result,
            "machine": machine,
            "gpu": self.gpu,
            "capacity": capacity,
            "runs_before": runs_before,
        }

    def suffix(self) -> str:
        """Of the names of jobs: the same job under other settings is another run."""
        limit = f"{self.options.limit_gib:g}gib" if self.options.limit_gib else ""
        settings = re.sub(r"[^A-Za-z0-9.]+", "-", self.options.allocator)
        return "".join(f"-{part}" for part in (limit, settings) if part)

    def command(self) -> str:
        """As it was given, except for the folder of the results."""
        words = sys.argv[1:]
        where = str(self.options.out)
        return "measure.py " + " ".join(word.replace(where, "DIR") for word in words)
