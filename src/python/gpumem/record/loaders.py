"""Data loaders during a recording: batches are loaded in the process itself, for neither worker processes nor pinned memory
change what the GPU holds, and a fake tensor does not travel between processes."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from torch.utils.data import DataLoader

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
