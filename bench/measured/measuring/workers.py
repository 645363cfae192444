"""Starts worker processes, asks them, and starts them again when they die or hang. Units: seconds."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Sequence

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_AT_START = 180.0
"""What a fresh process may need on top of a request's own time, for importing PyTorch and its packages."""


class CannotMeasure(Exception):
    """What was asked for cannot be done here; the text says why, and what to do."""


class WorkerDied(Exception):
    """The process ended, or did not answer in time, and is gone; the text says which."""


class Worker:
    """One process at a time; it comes with the first request and again with the first after its end."""

    def __init__(self, arguments: Sequence[str], log: pathlib.Path, environment: dict[str, str] | None = None):
        self.command = [sys.executable, "-m", f"{HERE.name}.worker", *arguments]
        self.log = log
        path = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH", ""))))
        self.environment = {**os.environ, **(environment or {}), "PYTHONPATH": path}
        self.process: subprocess.Popen | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()

    def ask(self, request: dict[str, Any], seconds: float) -> Any:
        """Raises WorkerDied."""
        process, patience = self.process, seconds
        if process is None:
            process = self._start()
            patience += PATIENCE_AT_START
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self.answers.get(timeout=patience)
        except (OSError, ValueError):  # It is gone, or was stopped meanwhile.
            line = None
        except queue.Empty:
            self.stop()
            raise WorkerDied(f"no answer in {seconds:.0f} s") from None
        if line is None:
            code = process.wait()
            self.stop()
            raise WorkerDied(f"the process ended with code {code}; {self.log.name} has its last words")
        return json.loads(line)["answer"]

    def stop(self) -> None:
        """Ends the process; the next request starts another."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        process.stdin.close()

    def _start(self) -> subprocess.Popen:
        self.answers = queue.Queue()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
            )
        threading.Thread(target=_pass_on, args=(self.process, self.answers), daemon=True).start()
        return self.process


def _pass_on(process: subprocess.Popen, answers: queue.Queue) -> None:
    with process.stdout:
        for line in process.stdout:
            answers.put(line)
    answers.put(None)


class Pool:
    """Workers that take requests from one queue; what fails is left undone."""

    def __init__(self, make: Callable[[int], Worker], count: int, seconds: float):
        self.waiting: collections.deque[dict[str, Any]] = collections.deque()
        self.condition = threading.Condition()
        self.busy = 0
        self.closed = False
        self.spent = 0.0
        self.done = 0
        self.seconds = seconds
        self.workers = [make(number) for number in range(count)]
        self.threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self.workers]
        for thread in self.threads:
            thread.start()

    def submit(self, request: dict[str, Any]) -> None:
        with self.condition:
            self.waiting.append(request)
            self.condition.notify()

    def backlog_seconds(self) -> float:
        """How long what is waiting will take, by what was done so far."""
        with self.condition:
            each = self.spent / self.done if self.done else 1.0
            return each * (len(self.waiting) + self.busy) / max(1, len(self.workers))

    def wait(self, until: float) -> bool:
        """Until all is done, or it is that late (time.monotonic()); whether all is done."""
        with self.condition:
            return self.condition.wait_for(
                lambda: not self.waiting and not self.busy, max(0.0, until - time.monotonic())
            )

    def stop(self) -> None:
        with self.condition:
            self.closed = True
            self.waiting.clear()
            self.condition.notify_all()
        for worker in self.workers:
            worker.stop()
        for thread in self.threads:
            thread.join(timeout=10)

    def _serve(self, worker: Worker) -> None:
        while True:
            with self.condition:
                self.condition.wait_for(lambda: self.waiting or self.closed)
                if self.closed:
                    return
                request = self.waiting.popleft()
                self.busy += 1
            begin = time.monotonic()
            try:
                worker.ask(request, self.seconds)
            except WorkerDied:
                pass
            with self.condition:
                self.busy -= 1
                self.done += 1
                self.spent += time.monotonic() - begin
                self.condition.notify_all()
