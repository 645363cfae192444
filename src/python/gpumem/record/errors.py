"""The exception of gpumem.record, which needs neither PyTorch nor the compiled module."""

from __future__ import annotations

from .._errors import Error


class RecordError(Error):
    """A training step that cannot be recorded. The text names the user's line and tells what to do.

    code: "not_recordable". element: the user's line, "train.py:31", where it is known.
    """

    exit_code = 4

    def __init__(self, text: str, code: str = "not_recordable", *place: object) -> None:
        super().__init__(text, code, *place)  # type: ignore[arg-type]


def record_error(problem: str, remedy: str, where: str = "") -> RecordError:
    """The error of a problem at a line of the user's, with the way round it."""
    text = f"{where}: {problem}; {remedy}" if where else f"{problem}; {remedy}"
    return RecordError(text, "not_recordable", f"{problem}; {remedy}", None, None, where or None)
