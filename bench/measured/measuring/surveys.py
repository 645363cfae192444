"""Parts "constants" and "census": what the context and the libraries take, cuDNN's workspaces, recorded runs, and runs
near capacity. Each goes on where it stopped. Units: seconds, bytes; MiB in tables."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

from . import jobs, journal, summaries
from .convolutions import draw_convolution, small
from .sampling import drawn_jobs, measure_one
from .session import Session
from .workers import WorkerDied

Row = dict[str, Any]

CONVOLUTIONS_AT_ONCE = 20
MOST_TRACES = 60
MOST_CAPPED = 40
CAPS = (0.95, 1.0, 1.05)
"""Of the memory that a run has reserved at its peak when it could have all."""

WORKSPACE_COLUMNS = (
    "mode", "in_channels", "out_channels", "kernel", "stride", "side", "batch", "groups", "forward_bytes",
    "data_gradient_bytes", "weight_gradient_bytes", "error",
)  # fmt: skip
CONSTANT_COLUMNS = ("loading", "stage", "mark", "context_mib", "reserved_mib", "allocated_mib", "error")
TRACE_COLUMNS = (*journal.COLUMNS, "trace")
CAPPED_COLUMNS = (*journal.COLUMNS, "cap", "free_reserved_mib")


def measure_constants(session: Session, until: float) -> None:
    from .constants import LOADINGS, STAGES

    with journal.Journal(session.folder / "constants.jsonl") as book:
        done = {(row["loading"], row["stage"]) for row in book.rows}
        for loading in LOADINGS:
            for stage in STAGES:
                enough = 0 < session.options.most <= len(book.rows)
                if (loading, stage) not in done and session.left(until) > 0 and not enough:
                    session.tell(f"constants: {stage}, {loading} module loading")
                    book.add(_constants_of(session, loading, stage))


def _constants_of(session: Session, loading: str, stage: str) -> Row:
    row: Row = {"loading": loading, "stage": stage, "marks": []}
    worker = session.new_worker({"CUDA_MODULE_LOADING": loading})
    try:
        row["marks"] = worker.ask({"do": "constants", "stage": stage}, session.options.run_seconds)
    except WorkerDied as error:
        row["error"] = str(error)
    finally:
        worker.stop()
    return row


def constant_rows(book: list[Row]) -> Iterator[Row]:
    for row in book:
        about = {"loading": row["loading"], "stage": row["stage"]}
        for mark in row["marks"]:
            figures = {
                f"{name}_mib": journal.mib(mark, f"{name}_bytes") for name in ("context", "reserved", "allocated")
            }
            yield {**about, "mark": mark["mark"], **figures}
        if "error" in row:
            yield {**about, "error": row["error"]}


# ------------------------------------------------------------------------------------------------ workspaces


def measure_workspaces(session: Session, until: float) -> None:
    with journal.Journal(session.folder / "workspaces.jsonl") as book:
        seed = session.options.seed
        index = sum(row["seed"] == seed for row in book.rows)
        while session.left(until) > 0 and not 0 < session.options.most <= index:
            shapes = [draw_convolution(seed, index + more) for more in range(CONVOLUTIONS_AT_ONCE)]
            if session.options.dry_run:
                shapes = [small(shape) for shape in shapes]
            rows = _convolutions(session, shapes, until)
            if rows is None:
                break
            for row in rows:
                book.add({"seed": seed, **row})
            index += len(rows)
            session.tell(f"workspaces: {index} convolutions", now=index % 200 == 0)


def _convolutions(session: Session, shapes: list[Row], until: float) -> list[Row] | None:
    """Rows of the first shapes, as far as it came; None where the time was over. Where a process dies of one of
    several, each is asked for by itself."""
    answer = session.ask({"do": "convolutions", "shapes": shapes}, until)
    if answer is None:
        return None
    if answer.get("rows"):
        return answer["rows"]
    if len(shapes) == 1:
        return [{**shapes[0], "error": answer["error"]}]
    rows: list[Row] = []
    for shape in shapes:
        rows += _convolutions(session, [shape], until) or []
        if session.left(until) <= 0:
            break
    return rows or None


# ------------------------------------------------------------------------------------------------ recorded runs


def record_traces(session: Session, until: float) -> None:
    with journal.Journal(session.folder / "traces.jsonl") as book:
        (session.folder / "traces").mkdir(exist_ok=True)
        for job in _survey_jobs(session, book, until, MOST_TRACES):
            path = session.folder / "traces" / f"{job.name}.json.gz"
            result = session.ask({"do": "trace", "job": job.to_json(), "file": str(path)}, until)
            if result is None:
                break
            book.add(session.row(job, result, 0))
            _write_summary(session, job, result)
            session.tell(f"traces: {len(book.rows)}", now=len(book.rows) % 10 == 0)


def measure_capped(session: Session, until: float) -> None:
    """Each job with all memory, and then with a little less than it reserved, as much, and a little more."""
    with journal.Journal(session.folder / "capped.jsonl") as book:
        for job in _survey_jobs(session, book, until, MOST_CAPPED * (1 + len(CAPS))):
            free = measure_one(session, job, until)
            if free is None:
                break
            book.add({**free, "cap": None})
            _write_summary(session, job, free["result"])
            reserved = free["result"].get("reserved")
            if free["result"]["status"] != "ok" or not reserved:
                continue
            for cap in CAPS:
                row = measure_one(session, job, until, int(cap * reserved))
                if row is not None:
                    book.add({**row, "cap": cap, "capacity": int(cap * reserved), "free_reserved": reserved})
            session.tell(f"near capacity: {len(book.rows)} runs", now=len(book.rows) % 20 == 0)


def _survey_jobs(session: Session, book: journal.Journal, until: float, most: int) -> Iterator[jobs.Job]:
    most = min(most, session.options.most or most)
    for job in drawn_jobs(session, {row["job"]["name"] for row in book.rows}):
        if session.left(until) <= 0 or len(book.rows) >= most:
            return
        yield dataclasses.replace(job, counters=False)


def _write_summary(session: Session, job: jobs.Job, result: Row) -> None:
    """In the series' worker: these are few."""
    folder = session.folder / "summaries"
    if result["status"] in ("ok", "oom") and not summaries.finished(job, folder):
        session.ask({"do": "summaries", "job": job.to_json(), "folder": str(folder)}, session.deadline)


# ------------------------------------------------------------------------------------------------ tables


def write_tables(session: Session) -> None:
    folder = session.folder
    workspaces = journal.rows_of(folder / "workspaces.jsonl")
    if workspaces:
        journal.write_table(folder / "workspaces.csv", WORKSPACE_COLUMNS, workspaces)
    constants = journal.rows_of(folder / "constants.jsonl")
    if constants:
        journal.write_table(folder / "constants.csv", CONSTANT_COLUMNS, constant_rows(constants))
    _write_survey(session, "traces", TRACE_COLUMNS)
    _write_survey(session, "capped", CAPPED_COLUMNS)


def _write_survey(session: Session, name: str, columns: tuple[str, ...]) -> None:
    rows = journal.rows_of(session.folder / f"{name}.jsonl")
    cells = []
    for row in rows:
        run = journal.run_cells(row, session.folder, session.options.figure, summaries.KINDS)
        if run is not None:
            more = {"trace": row["result"].get("trace", ""), "cap": row.get("cap") or ""}
            cells.append({**run, **more, "free_reserved_mib": journal.mib(row, "free_reserved")})
    if rows:
        journal.write_table(session.folder / f"{name}.csv", columns, cells)
