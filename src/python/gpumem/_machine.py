"""The GPUs of this machine; `import gpumem` has it."""

from __future__ import annotations

import warnings
from typing import Any

from . import _gpumem
from ._arguments import integer
from ._errors import UsageError


def read_server(*, window_ms: int = 0) -> dict[str, Any]:
    """The GPUs of this machine as `gpumem server` prints them: what `gpumem place --server` reads.

    window_ms: how long SM activity is watched, at most an hour, and the call takes as long; 0: what
        the driver has kept of the last seconds.

    A GPU that is left out, or of which something is not known, is a RuntimeWarning. Raises InputError
    if there is no driver; NoEstimateError if it does not answer, or no GPU can take a job.
    """
    window = integer("window_ms", window_ms, 0)
    if window > 3_600_000:
        raise UsageError("window_ms is at most 3,600,000: an hour")
    report = _gpumem.ask("server", [("window_ms", str(window))])
    for line in report.figures()["warnings"]:
        warnings.warn(line, RuntimeWarning, stacklevel=2)
    server: dict[str, Any] = report.fields()
    return server
