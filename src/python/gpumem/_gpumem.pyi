from typing import Any

VERSION: str
# Name, kind, default and choices of each option of a job.
OPTIONS: tuple[tuple[str, str, object, tuple[str, ...]], ...]
ATTENTIONS: tuple[str, ...]
FRAMEWORKS: tuple[str, ...]
LOOPS: tuple[str, ...]
LOSSES: tuple[str, ...]
OFFLOADS: tuple[str, ...]
OPTIMIZERS: tuple[str, ...]
PRECISIONS: tuple[str, ...]
SCHEDULES: tuple[str, ...]
SHARDINGS: tuple[str, ...]
SERVING_OPTIONS: tuple[str, ...]
TRANSFORMERS: tuple[str, ...]
ZERO_GRADS: tuple[str, ...]

class Summary:
    @property
    def file(self) -> str | None: ...
    @property
    def format(self) -> str: ...
    @property
    def layers(self) -> int: ...
    @property
    def unknown_layers(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def trainable_parameters(self) -> int: ...
    @property
    def printed_batch_size(self) -> int | None: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...

class Job:
    def __init__(self, options: dict[str, object]) -> None: ...
    def options(self) -> dict[str, object]: ...

class Report:
    def json(self) -> str: ...
    def text(self) -> str: ...

def read_file(path: bytes, lenient: bool, largest_bytes: int, deadline_ms: int) -> Summary: ...
def read_text(text: bytes, lenient: bool, deadline_ms: int) -> Summary: ...
def estimate(summary: Summary, job: Job, deadline_ms: int) -> dict[str, Any]: ...
def fit(summary: Summary, job: Job, deadline_ms: int) -> dict[str, Any]: ...
def plan(
    summary: Summary,
    job: Job,
    global_batch: int,
    gpus: int | None,
    framework: str,
    gpus_per_node: int | None,
    network_gbps: float | None,
    show: int,
    deadline_ms: int,
) -> Report: ...
def serve(
    question: str,
    model: bytes,
    gpu: bytes,
    version: str,
    command: list[str],
    options: dict[str, str],
    deadline_ms: int,
) -> Report: ...
def posttrain(
    question: str,
    model: bytes,
    gpu: bytes,
    settings: list[tuple[str, str]],
    command: list[str],
    options: dict[str, str],
    gpus: int,
    deadline_ms: int,
) -> Report: ...
def gpus() -> list[dict[str, Any]]: ...
def read_server(window_ms: int) -> tuple[str, tuple[str, ...]]: ...
def estimators() -> list[tuple[str, str]]: ...
def close() -> None: ...
def forget() -> None: ...
