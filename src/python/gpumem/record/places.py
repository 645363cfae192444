"""Lines of the user's program, for warnings and errors."""

from __future__ import annotations

import pathlib
import sys
import traceback
import types

_PACKAGE = str(pathlib.Path(__file__).resolve().parent)


def _is_users(file: str) -> bool:
    if file.startswith("<") or str(pathlib.Path(file).resolve()).startswith(_PACKAGE):
        return False
    parts = pathlib.PurePath(file).parts
    return "torch" not in parts and "importlib" not in parts and "contextlib.py" not in parts


def _place(file: str, line: int | None) -> str:
    return f"{pathlib.PurePath(file).name}:{line}"


def users_line() -> str:
    """The innermost line that runs now and is no part of PyTorch; empty where there is none."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return _place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def line_of(error: BaseException) -> str:
    """The innermost line of the user's from which the error came."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_users(frame.filename):
            return _place(frame.filename, frame.lineno)
    return ""
