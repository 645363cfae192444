"""Processes that answer line by line: their CPU time and their memory."""

from __future__ import annotations

import os
import pathlib
import subprocess

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Server:
    """A process that answers a line with a line."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=ENVIRONMENT,
        )  # fmt: skip

    def ask(self, line):
        """(the answer, seconds of CPU time)"""
        before = self.processor_time()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return answer, self.processor_time() - before

    def processor_time(self):
        """Of all its threads so far, in seconds; the kernel counts nanoseconds."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except (OSError, IndexError):  # a thread that has just ended
                continue
        return total * 1e-9

    def memory(self):
        """The most that it has held so far, in bytes."""
        for row in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if row.startswith("VmHWM:"):
                return int(row.split()[1]) * 1024
        return None

    def stop(self):
        """Its CPU time from start to end, in seconds."""
        self.process.stdin.close()
        seconds = wait_for(self.process)
        self.process.stdout.close()
        return seconds


def wait_for(process):
    """The CPU time of a process when it has ended, in seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime
