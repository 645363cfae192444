"""Part "jobs": random training jobs, one after another, each in a fresh allocator; their models' summaries are written
beside. Units: seconds."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import time
from typing import Any, Iterator

from . import jobs, journal, summaries
from .session import Session
from .workers import CannotMeasure, Pool

TABLE_EVERY = 20.0
"""Seconds between two tables; the journal has every run at once."""


def drawn_jobs(session: Session, done: set[str]) -> Iterator[jobs.Job]:
    """The series' jobs that are not done and whose package is installed. Raises CannotMeasure if there are none."""
    here = jobs.available_families()
    wanted = session.options.only
    if not set(wanted) & set(here):
        missing = ", ".join(jobs.PACKAGES[family] for family in wanted)
        raise CannotMeasure(f"{missing} cannot be imported; install it, or choose other families with --only")
    series, suffix = jobs.Series(session.options.seed, wanted), session.suffix()
    for index in itertools.count():
        job = series.job(index)
        job = dataclasses.replace(job, name=job.name + suffix)
        if job.name not in done and job.family in here:
            yield jobs.shrunk(job) if session.options.dry_run else job


class Exporter:
    """Has the summaries of models written, each once."""

    def __init__(self, session: Session, pool: Pool):
        self.folder = session.folder / "summaries"
        self.pool = pool
        self.asked: set[str] = set()

    def submit(self, job: jobs.Job) -> None:
        name = summaries.stem(job)
        if name in self.asked or summaries.finished(job, self.folder):
            return
        self.asked.add(name)
        self.pool.submit({"do": "summaries", "job": job.to_json(), "folder": str(self.folder)})


def wants_summary(row: dict[str, Any]) -> bool:
    return row["result"]["status"] in ("ok", "oom")


def measure_jobs(session: Session) -> None:
    pool = session.new_pool()
    try:
        with journal.Journal(session.folder / "runs.jsonl") as book:
            exporter = Exporter(session, pool)
            for row in filter(wants_summary, book.rows):
                exporter.submit(jobs.Job.from_json(row["job"]))
            _measure_all(session, book, exporter)
        session.tell("waiting for summaries")
        if not pool.wait(session.deadline):
            session.tell("some summaries are missing: start again with more time")
    finally:
        pool.stop()


def _measure_all(session: Session, book: journal.Journal, exporter: Exporter) -> None:
    counts = collections.Counter(row["result"]["status"] for row in book.rows)
    table_at = time.monotonic() + TABLE_EVERY
    done = {row["job"]["name"] for row in book.rows}
    for number, job in enumerate(drawn_jobs(session, done), 1):
        # What is still to be written needs its time as well.
        if session.left(session.deadline) <= exporter.pool.backlog_seconds():
            return
        row = measure_one(session, job)
        if row is None:
            return
        book.add(row)
        counts[row["result"]["status"]] += 1
        if wants_summary(row):
            exporter.submit(job)
        if time.monotonic() >= table_at:
            write_table(session, book.rows)
            table_at = time.monotonic() + TABLE_EVERY
        tally = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        session.tell(f"{tally}; last {job.name} {job.family} batch {job.batch_size}", now=number % 25 == 0)
        if number == session.options.most:
            return


def measure_one(
    session: Session, job: jobs.Job, until: float | None = None, limit: int | None = None
) -> dict[str, Any] | None:
    """The run as a journal's row; None where the time was over."""
    if session.worker.process is None:
        session.runs_of_process = 0
    runs_before = session.runs_of_process
    session.runs_of_process += 1
    request = {"do": "job", "job": job.to_json(), "limit_bytes": limit}
    result = session.ask(request, session.deadline if until is None else until)
    return None if result is None else session.row(job, result, runs_before)


def write_table(session: Session, rows: list[dict[str, Any]] | None = None) -> int:
    """runs.csv, of the journal's rows; how many runs are in it."""
    if rows is None:
        rows = journal.rows_of(session.folder / "runs.jsonl")
    return journal.write_runs(rows, session.folder, session.options.figure)
