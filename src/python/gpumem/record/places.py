"""Lines of the user's program, for warnings and errors: the innermost that is of no installed package, or else the innermost
that is not PyTorch's."""

from __future__ import annotations

import functools
import pathlib
import sys
import sysconfig
import traceback
import types
from collections.abc import Iterable

_PACKAGE = pathlib.Path(__file__).resolve().parent
_STANDARD = pathlib.Path(sysconfig.get_path("stdlib")).resolve()


@functools.cache
def _rank(file: str) -> int:
    """0: a file of the user's. 1: of an installed package or of Python. 2: PyTorch's or gpumem's."""
    path = pathlib.Path(file)
    if file.startswith("<") or "torch" in path.parts or _PACKAGE in path.resolve().parents:
        return 2
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return 1 if installed or _STANDARD in path.resolve().parents else 0


def is_users(file: str) -> bool:
    """The file is of no installed package."""
    return _rank(file) == 0


def _best(places: Iterable[tuple[str, int | None]]) -> str:
    """Of places from the innermost outwards."""
    of_package = ""
    for file, line in places:
        rank = _rank(file)
        if rank == 0:
            return f"{pathlib.PurePath(file).name}:{line}"
        if rank == 1 and not of_package and "contextlib" not in file and "runpy" not in file:
            of_package = f"{pathlib.PurePath(file).name}:{line}"
    return of_package


def _running() -> Iterable[tuple[str, int | None]]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def users_line() -> str:
    """The line that runs now; empty where there is none."""
    return _best(_running())


def library_line() -> str:
    """The innermost line that is not PyTorch's; empty where it is the user's line."""
    for file, line in _running():
        rank = _rank(file)
        if rank < 2:
            return "" if rank == 0 else f"{pathlib.PurePath(file).name}:{line}"
    return ""


def line_of(error: BaseException) -> str:
    """The line from which the error came."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return _best((frame.filename, frame.lineno) for frame in frames)
