"""What a user says about values that only a GPU would have: by kind, or by line of the program.

    gpumem.record.assume(any=True, nonzero=0.25)
    gpumem.record.assume({"train.py:120": 128}, objects=93)
    python3 -m gpumem.record --assume nonzero=0.25 --assume train.py:120=128 train.py

Units: a size is a number of elements (128) or a share of those that there are (0.25; 1.0 is all of them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Union

from .errors import record_error

Value = Union[bool, int, float]

#: What can be said, by kind.
KINDS = {
    "any": "any() of a condition that holds for some elements",
    "all": "all() of such a condition",
    "compare": "a condition on a single element",
    "isnan": "whether numbers are NaN or infinite",
    "equal": "equal() and allclose()",
    "item": "the value of a number: .item(), int(), float(), tolist(), numpy()",
    "nonzero": "how many elements nonzero() finds",
    "mask": "how many elements a mask picks: x[mask], masked_select()",
    "unique": "how many different values unique() finds",
    "nms": "how many boxes nms() keeps",
    "repeat_interleave": "how many elements repeat_interleave() makes, per element",
    "bincount": "how many bins bincount() has",
    "objects": "at most so many elements of nonzero(), masks and unique(); no share",
}
_TRUTHS = frozenset(("any", "all", "compare", "isnan", "equal"))
_LINE = re.compile(r"[^=:]+:\d+")


def _checked(what: str, value: object) -> Value:
    line = _LINE.fullmatch(what) is not None
    if what not in KINDS and not line:
        known = ", ".join(KINDS)
        raise record_error(f"nothing is known of {what!r} in --assume", f"say one of {known}, or a line: train.py:120")
    if not isinstance(value, (bool, int, float)):
        raise record_error(f"{what}={value!r} is neither a number nor True or False", f"say {what}=128, or {what}=0.25")
    if what in _TRUTHS and not isinstance(value, bool):
        raise record_error(f"{what}={value!r} is neither True nor False", f"say {what}=True or {what}=False")
    sizes = set(KINDS) - _TRUTHS - {"item"}
    if what in sizes and (isinstance(value, bool) or value < 0):
        raise record_error(f"{what}={value!r} is no size", f"say a number of elements or a share: {what}=0.25")
    if what == "objects" and isinstance(value, float):
        raise record_error(f"{what}={value!r} is a share", "say how many there are at most: objects=93")
    return value


def parsed(text: str) -> tuple[str, Value]:
    """Of WHAT=VALUE."""
    what, equals, value = text.partition("=")
    if not equals:
        raise record_error(f"--assume {text} has no value", "say --assume WHAT=VALUE, such as --assume nonzero=0.25")
    truth = {"true": True, "false": False}.get(value.lower())
    if truth is not None:
        return what, _checked(what, truth)
    try:
        number: Value = int(value) if re.fullmatch(r"[+-]?\d+", value) else float(value)
    except ValueError:
        number = float("nan")
    if number != number:
        raise record_error(f"--assume {text}: {value!r} is no value", "say a number, True or False")
    return what, _checked(what, number)


class Said:
    """All that was said in this process. As a context manager, what it was made with is unsaid at the end."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def say(self, values: Mapping[str, object]) -> "_Saying":
        before = dict(self._values)
        self._values.update({what: _checked(what, value) for what, value in values.items()})
        return _Saying(self, before)

    def about(self, kind: str, *lines: str) -> Value | None:
        """What was said about one of these lines, or else about a kind."""
        of_lines = [self._values[line] for line in lines if line in self._values]
        return of_lines[0] if of_lines else self._values.get(kind)

    @property
    def objects(self) -> int | None:
        value = self._values.get("objects")
        return None if value is None else int(value)

    def restore(self, values: dict[str, Value]) -> None:
        self._values = values


class _Saying:
    def __init__(self, said: Said, before: dict[str, Value]) -> None:
        self._said, self._before = said, before

    def __enter__(self) -> "_Saying":
        return self

    def __exit__(self, *_error: object) -> None:
        self._said.restore(self._before)


said = Said()
