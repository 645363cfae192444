"""Data loaders during a recording: batches are loaded in the process itself, for neither worker processes nor pinned memory
change what the GPU holds, and a fake tensor does not travel between processes. Processes that the program starts itself are told of:
they run as they are, and what they put on a GPU is not seen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from torch.utils.data import DataLoader

from .places import is_users, users_line
from .pretended_cuda import Replacements

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


def tell_of_processes(replaced: Replacements, warn: Callable[[str, str, str], None]) -> None:
    """warn: takes the kind, the text and the user's line. Processes of libraries (trackers, pools) are no training."""
    start = BaseProcess.start

    @functools.wraps(start)
    def told(process: Any, /) -> None:
        target = getattr(process, "_target", None)
        code = getattr(target, "__code__", None)
        if code is not None and is_users(code.co_filename):
            warn("rule", f"the process that runs {code.co_name}() is not recorded", users_line())
        start(process)

    replaced.set(BaseProcess, "start", told)
