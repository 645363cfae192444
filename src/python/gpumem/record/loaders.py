"""Data loaders during a recording: batches are loaded in the process itself, for neither worker processes nor pinned memory
change what the GPU holds, and a fake tensor does not travel between processes.

Processes that the program starts itself run as they are, and what they put on a GPU is not seen. So a program that trains in such
processes alone is run once more, with the first of them in the program's own."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

from torch.utils.data import DataLoader

from .places import is_users, users_line
from .pretended_cuda import Replacements
from .run import NOT_RECORDED

_IN_PROCESS = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory": False,
    "timeout": 0,
    "multiprocessing_context": None,
}


def load_in_process(replaced: Replacements) -> None:
    init = DataLoader.__init__
    signature = inspect.signature(init)

    @functools.wraps(init)
    def without_workers(loader: Any, /, *arguments: Any, **options: Any) -> None:
        given = signature.bind(loader, *arguments, **options)
        for name, value in _IN_PROCESS.items():
            if name in given.arguments:
                given.arguments[name] = value
        init(*given.args, **given.kwargs)

    without_workers.__signature__ = signature  # type: ignore[attr-defined]  # Programs that build loaders of a file read it.
    replaced.set(DataLoader, "__init__", without_workers)


_first_runs_here = False


@contextlib.contextmanager
def first_process_here() -> Iterator[None]:
    """While it lasts, a recorded program's first process is run by the program itself, and the others (the other GPUs') are not."""
    global _first_runs_here
    _first_runs_here = True
    try:
        yield
    finally:
        _first_runs_here = False


def follow_processes(replaced: Replacements, warn: Callable[[str, str, str], None]) -> None:
    """warn: takes the kind, the text and the user's line. Processes of libraries (trackers, pools) are no training."""
    start, join = BaseProcess.start, BaseProcess.join
    left: list[Any] = []  # Processes that were not started.

    @functools.wraps(start)
    def started(process: Any, /) -> None:
        target = getattr(process, "_target", None)
        code = getattr(target, "__code__", None)
        if code is None or not is_users(code.co_filename):
            start(process)
        elif not _first_runs_here:
            warn("rule", f"{NOT_RECORDED}{code.co_name}() is not recorded", users_line())
            start(process)
        else:
            left.append(process)
            if len(left) == 1:
                warn("rule", f"{code.co_name}() is recorded, which the program runs in a process for each GPU", users_line())
                process.run()

    @functools.wraps(join)
    def joined(process: Any, timeout: float | None = None, /) -> None:
        if all(process is not each for each in left):
            join(process, timeout)

    replaced.set(BaseProcess, "start", started)
    replaced.set(BaseProcess, "join", joined)
