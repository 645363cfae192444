"""What one call of measure.py does: its parts one after the other, and what is written at the end."""

from __future__ import annotations

import sys

from . import card, journal, sampling, surveys, trainers
from .session import Session


def measure(session: Session) -> None:
    if session.options.part != "pack":
        session.look_at_machine()
    try:
        measure_part(session, session.options.part)
    finally:  # Also of what was broken off.
        finish(session)


def measure_part(session: Session, part: str) -> None:
    if part in ("constants", "all"):
        surveys.measure_constants(session, session.slice(0.0, 0.1) if part == "all" else session.deadline)
    if part in ("census", "all"):
        begin, end = (0.1, 0.4) if part == "all" else (0.0, 1.0)
        surveys.measure_workspaces(session, session.slice(begin, end, 0.5))
        surveys.record_traces(session, session.slice(begin, end, 0.75))
        surveys.measure_capped(session, session.slice(begin, end))
    if part in ("jobs", "all"):
        sampling.measure_jobs(session)
    if part == "trainers":
        trainers.measure_trainers(session)


def finish(session: Session) -> None:
    """Tables, card and packed files, from what the journals hold."""
    runs = sampling.write_table(session)
    surveys.write_tables(session)
    trainers.write_table(session)
    card.write(session.folder, session.command(), runs)
    packed = journal.pack(session.folder)
    size = sum(path.stat().st_size for path in packed)
    print(
        f"\n{runs} runs in {session.folder}/runs.csv; packed: {len(packed)} files, {size / 2**20:.1f} MiB",
        file=sys.stderr,
    )
