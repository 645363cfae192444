"""What is known of conditions on tensors without values: whether one plausibly holds, and which masks part a set.

`levels == 0`, `levels == 1` and so on pick each element once at most, and so do `labels >= 0` and `labels < 0`. A mask's
predicate is held on its tensor object, with the tensor that it compares.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from .operators import base_name
from .origins import Counts, Segments, counts_of, holds_in
from .possible_values import Values, Written, possible_values

Predicate = Callable[[float], bool]
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_AND = frozenset(("logical_and", "bitwise_and", "logical_and_", "bitwise_and_", "__and__", "__iand__"))
_OR = frozenset(("logical_or", "bitwise_or", "logical_or_", "bitwise_or_", "__or__", "__ior__"))
_NOT = frozenset(("logical_not", "bitwise_not", "logical_not_", "bitwise_not_"))


class Parts:
    """The masks over one tensor, and how many elements each was given. size: of the tensor. line: of the first mask. values:
    that its elements can have, each as often as another."""

    def __init__(self, size: int, line: str, values: Values) -> None:
        self.size, self.line, self.values = size, line, None if isinstance(values, Written) else values
        self.known: dict[str, int] = {}  # By set: how many masks parted it the last time, 0: this is the first.
        self.taken: list[tuple["Mask", int]] = []
        self.segments: Segments | None = None  # Masks of another tensor that hold for its elements.
        self.counts: Counts | None = None

    def at_most(self, mask: "Mask") -> int:
        """Elements for which the mask can hold, by what the program did."""
        limit = self.size
        if self.counts is not None:
            limit = min(limit, sum(count for number, count in self.counts.items() if mask.holds(number)))
        if self.segments is not None:
            can_hold = [count for count, other in self.segments if other is None or not are_disjoint(mask, other)]
            limit = min(limit, sum(can_hold))
        return limit

    def set_of(self, mask: "Mask") -> tuple[str, int, list[int]]:
        """The set that the mask parts with others: what an earlier mask picked that holds wherever it does (`x == 3` is of `x > 0`),
        else the whole tensor. With its name, its size, and what masks were given that part it with this one."""
        around = [place for place, (other, _) in enumerate(self.taken) if is_within(mask, other)]
        if around:
            place = min(around, key=lambda each: self.taken[each][1])
            outer, size = self.taken[place]
            members = [each for each in self.taken if is_within(each[0], outer)]
            name = f"{self.line}#{place}"
        else:
            name, size = self.line, self.size
            members = [each for each in self.taken if not any(is_within(each[0], other) for other, _ in self.taken)]
        return name, size, [count for other, count in members if are_disjoint(mask, other)]


class Mask(NamedTuple):
    """A predicate on the elements of a tensor; constants: where it may change. threshold: of scores, sizes or other floating
    numbers, which are not what objects are told by."""

    parts: Parts
    holds: Predicate
    constants: frozenset[float]
    equality: bool
    threshold: bool = False


class Condition:
    """expected: of each element, None where it is true of some. mask: what it is of. counted: elements that it was given."""

    def __init__(self, expected: Optional[bool], mask: Optional[Mask] = None, zero: bool = False) -> None:
        self.expected, self.mask, self.zero = expected, mask, zero
        self.counted: int | None = None


def _points(first: Mask, second: Mask) -> list[float]:
    """One of each stretch of numbers on which neither changes."""
    points = sorted(first.constants | second.constants)
    between = [(low + high) / 2 for low, high in zip(points, points[1:])]
    outside = [points[0] - 1, points[-1] + 1] if points else [0.0]
    return [*points, *between, *outside]


def are_disjoint(first: Mask, second: Mask) -> bool:
    return not any(first.holds(at) and second.holds(at) for at in _points(first, second))


def is_within(inner: Mask, outer: Mask) -> bool:
    """The outer one holds wherever the inner one does, and elsewhere too."""
    held = [(inner.holds(at), outer.holds(at)) for at in _points(inner, outer)]
    return (True, False) not in held and (False, True) in held


def condition_of(tensor: Any) -> Condition | None:
    return getattr(tensor, "_gpumem_condition", None)


def _set(tensor: Any, condition: Condition) -> None:
    tensor._gpumem_condition = condition


def _parts_of(tensor: Any, line: str) -> Parts:
    known = getattr(tensor, "_gpumem_parts", None)
    if known is None or known[0] != tensor._version:
        known = (tensor._version, Parts(tensor.numel(), line, possible_values(tensor)))
        known[1].segments, known[1].counts = holds_in(tensor), counts_of(tensor)
        tensor._gpumem_parts = known
    parts: Parts = known[1]
    return parts


def parts_noted(tensor: Any) -> Parts | None:
    """What masks parted it, as it is now."""
    known = getattr(tensor, "_gpumem_parts", None)
    return known[1] if known is not None and known[0] == tensor._version else None


def mask_of(tensor: Any) -> Mask | None:
    condition = condition_of(tensor)
    return condition.mask if condition is not None else None


def _comparison(name: str, args: Any, value: Callable[[Any], Any], line: str) -> Condition:
    left, right = args[0], args[1]
    if left is right:  # isfinite() and isnan() are written so
        return Condition(name in ("eq", "le", "ge"))
    constant = right if isinstance(right, (int, float)) else value(right)
    if not isinstance(constant, (int, float)):
        return Condition(None)
    if math.isinf(constant):
        return Condition({"eq": False, "ne": True}.get(name))
    holds = _COMPARISONS[name]
    threshold = left.dtype.is_floating_point and name not in ("eq", "ne")
    parts, constants = _parts_of(left, line), frozenset((float(constant),))
    mask = Mask(parts, lambda x: holds(x, constant), constants, name == "eq", threshold)
    return Condition(None, mask, zero=constant == 0)


def _joined(conditions: list[Condition | None], both: bool) -> Condition:
    known = [each.expected if each is not None else None for each in conditions]
    if (not both) in known:
        expected: bool | None = not both
    else:
        expected = both if all(each is both for each in known) else None
    masks = [each.mask for each in conditions if each is not None and each.mask is not None]
    if len(masks) != 2 or masks[0].parts is not masks[1].parts:
        return Condition(expected, masks[0] if both and masks else None)
    first, second = masks
    if both:
        predicate: Predicate = lambda x: first.holds(x) and second.holds(x)  # noqa: E731
    else:
        predicate = lambda x: first.holds(x) or second.holds(x)  # noqa: E731
    return Condition(
        expected,
        Mask(first.parts, predicate, first.constants | second.constants, False, first.threshold and second.threshold),
    )


def _opposite(condition: Condition) -> Condition:
    expected = None if condition.expected is None else not condition.expected
    mask = condition.mask
    if mask is None:
        return Condition(expected)
    holds = mask.holds
    opposite = Mask(mask.parts, lambda x: not holds(x), mask.constants, False, mask.threshold)
    return Condition(expected, opposite, condition.zero)


def _one_after_the_other(conditions: list[Condition | None]) -> Condition | None:
    """Masks in a row pick as many as each of them was given, once that is known."""
    counts = [each.counted for each in conditions if each is not None and each.counted is not None and each.counted >= 0]
    if len(counts) < len(conditions):
        return None
    joined = Condition(None)
    joined.counted = sum(counts)
    return joined


def _reduced(name: str, condition: Condition) -> Condition:
    """any() and all(): of what holds for some elements, True."""
    if condition.expected is None:
        made = Condition(True)
        made.counted = -1  # It was decided here, and is told as any or all.
        made.zero = name == "all"
        return made
    return Condition(condition.expected)


def follow(func: Any, args: Any, out: Any, value: Callable[[Any], Any], line: Callable[[], str]) -> None:
    """Notes what is known of the operator's result. value: of a tensor with one known element."""
    if not isinstance(out, torch.Tensor):
        return
    name = base_name(func)
    if out.dtype != torch.bool:
        _follow_number(name, args, out)
        return
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    found = [condition_of(each) for each in tensors]
    if name in _COMPARISONS and tensors and args[0] is tensors[0]:
        condition: Condition | None = _comparison(name, args, value, line())
    elif name in ("isnan", "isinf"):
        condition = Condition(False)
    elif name == "cat":
        condition = _one_after_the_other([condition_of(each) for each in args[0]])
    elif name in _AND or name in _OR or (name in ("mul", "add") and len(tensors) == 2):
        condition = _joined(found, name in _AND or name == "mul")
    elif name in ("any", "all"):
        condition = _reduced(name, (found and found[0]) or Condition(None))
    elif not found or found[0] is None:
        return
    elif name in _NOT:
        condition = _opposite(found[0])
    elif len(tensors) == 1 and out.numel() == tensors[0].numel():
        condition = found[0]
    elif len(tensors) == 1:  # A part of it, of which the count says nothing.
        condition = Condition(found[0].expected)
    else:
        return
    if condition is not None:
        _set(out, condition)


def _follow_number(name: str, args: Any, out: Any) -> None:
    """A mask as numbers, and its sum: how many it picks."""
    if not args or not isinstance(args[0], torch.Tensor):
        return
    condition = condition_of(args[0])
    if condition is not None and name in ("_to_copy", "sum", "clone", "count_nonzero", "view", "squeeze"):
        _set(out, condition)
        if out.numel() == 1:
            out._gpumem_count_of = getattr(args[0], "_gpumem_count_of", args[0].numel())


def scalar_truth(condition: Condition | None) -> bool | None:
    """Of a condition on one number: what is compared with zero is taken to be positive, as counts and losses are."""
    if condition is None:
        return None
    if condition.expected is not None:
        return condition.expected
    if condition.zero and condition.mask is not None:
        return condition.mask.holds(1.0)
    return None
