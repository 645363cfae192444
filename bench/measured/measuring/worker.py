"""A process that measures: reads requests from standard input, one JSON object a line, and answers each with one line.

It keeps no state but the CUDA context, so that it can be ended and started again at any time. Whatever libraries print
goes to standard error.

  {"do": "job", "job": {...}, "limit_bytes": null}       training.run()
  {"do": "trainer", "job": {...}, "configs": "..."}      trainer_runs.run()
  {"do": "trace", "job": {...}, "file": "..."}           census.trace_job()
  {"do": "convolutions", "shapes": [{...}, ...]}         census.measure_convolution(), for each
  {"do": "constants", "stage": "matmul"}                 constants.measure_stage()
  {"do": "summaries", "job": {...}, "folder": "..."}     summaries.write()
  {"do": "machine"}                                      device.machine()
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import warnings
from typing import Callable

GIB = 2**30


class Worker:
    """Answers requests. The device comes with the first that needs one."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.made = None

    @property
    def device(self):
        from . import device

        if self.made is None:
            limit = int(self.options.limit_gib * GIB) or None
            self.made = device.DryDevice(limit) if self.options.dry_run else device.CudaDevice(limit)
        return self.made

    def answer(self, request: dict) -> object:
        handlers: dict[str, Callable[[dict], object]] = {
            "job": self.job,
            "trainer": self.trainer,
            "trace": self.trace,
            "convolutions": self.convolutions,
            "constants": self.constants,
            "summaries": self.summaries,
            "machine": self.machine,
        }
        return handlers[request["do"]](request)

    def job(self, request: dict) -> object:
        from . import training
        from .jobs import Job

        self.device.limit(request.get("limit_bytes"))
        return training.run(Job.from_json(request["job"]), self.device, self.options.counter_seconds)

    def trainer(self, request: dict) -> object:
        from . import trainer_runs
        from .trainers import TrainerJob

        self.device.limit(None)
        return trainer_runs.run(TrainerJob.from_json(request["job"]), self.device, pathlib.Path(request["configs"]))

    def trace(self, request: dict) -> object:
        from . import census
        from .jobs import Job

        self.device.limit(None)
        return census.trace_job(Job.from_json(request["job"]), self.device, pathlib.Path(request["file"]))

    def convolutions(self, request: dict) -> object:
        from . import census

        rows = []
        for shape in request["shapes"]:
            rows.append(census.measure_convolution(shape, self.device))
            if rows[-1].get("broken"):
                break
        return {"rows": rows, "broken": bool(rows and rows[-1].get("broken"))}

    def constants(self, request: dict) -> object:
        from . import constants

        return constants.measure_stage(request["stage"], self.device)

    def summaries(self, request: dict) -> object:
        from . import summaries
        from .jobs import Job

        return summaries.write(Job.from_json(request["job"]), pathlib.Path(request["folder"]))

    def machine(self, request: dict) -> object:
        import torch

        from . import device

        if not self.options.dry_run and not torch.cuda.is_available():
            return {"error": "PyTorch sees no CUDA GPU; --dry-run goes through everything without one"}
        if not self.options.dry_run and int(torch.__version__.split(".")[0]) < 2:
            return {"error": f"PyTorch {torch.__version__} is too old; 2.0 or later is needed"}
        return device.machine(self.device)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--limit-gib", type=float, default=0.0)
    parser.add_argument("--counter-seconds", type=float, default=1.0)
    worker = Worker(parser.parse_args())
    warnings.simplefilter("ignore")
    # Only answers go to standard output; a line that a library prints would be taken for one.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps({"answer": worker.answer(json.loads(line))}), file=answers, flush=True)


if __name__ == "__main__":
    main()
