"""The most bytes that are alive at a time in a recording, in the tensors' own bytes."""

from __future__ import annotations

import functools

from gpumem.record.run import Allocate, Free, Run


def live_peak(run: Run) -> int:
    live: dict[int, int] = {}
    now = peak = 0
    for event in run.events:
        if isinstance(event, Allocate):
            size = functools.reduce(int.__mul__, event.shape, event.item)
            live[event.number] = size
            now += size
        elif isinstance(event, Free):
            now -= live.pop(event.number)
        peak = max(peak, now)
    return peak
