"""Sizes as expressions in batch and sequence length, from runs at several sizes.

Input: a number as it was in each run. Output: the coefficients of 1, batch, sequence and batch * sequence, whole
numbers, the zeros at the end left out; or None where there are no such coefficients.

With one axis two runs give them, with two axes four (all pairs of two values each). All further runs are checks: an
expression that does not give them exactly is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[int, ...]  # The values of the axes in a run.
Expression = tuple[int, ...]


def value_of(expression: Expression, point: Point) -> int:
    batch, sequence = (*point, 0, 0)[:2]
    return sum(factor * term for factor, term in zip(expression, (1, batch, sequence, batch * sequence)))


def _quotient(dividend: int, divisor: int) -> int | None:
    return dividend // divisor if dividend % divisor == 0 else None


def _solve(values: Sequence[int], points: Sequence[Point]) -> Expression | None:
    if not points[0]:
        return (values[0],)
    if len(points[0]) == 1:
        slope = _quotient(values[1] - values[0], points[1][0] - points[0][0])
        return None if slope is None else (values[0] - slope * points[0][0], slope)
    (batch, sequence), (more_batch, more_sequence) = points[0], points[3]
    v11, v12, v21, v22 = values[:4]
    wide, long = more_batch - batch, more_sequence - sequence
    both = _quotient(v22 - v21 - v12 + v11, wide * long)
    by_batch, by_sequence = _quotient(v21 - v11, wide), _quotient(v12 - v11, long)
    if both is None or by_batch is None or by_sequence is None:
        return None
    by_batch, by_sequence = by_batch - both * sequence, by_sequence - both * batch
    return v11 - by_batch * batch - by_sequence * sequence - both * batch * sequence, by_batch, by_sequence, both


def _shortened(expression: Expression) -> Expression:
    length = len(expression)
    while length > 1 and expression[length - 1] == 0:
        length -= 1
    return expression[:length]


def runs_needed(axes: int) -> int:
    """How many runs give expressions in this many axes."""
    return 1 << axes


class Expressions:
    """Finds expressions for numbers that were seen at these points."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = [tuple(point) for point in points]
        self._known: dict[tuple[int, ...], Expression | None] = {}

    def of(self, values: Sequence[int]) -> Expression | None:
        key = tuple(values)
        if key not in self._known:
            self._known[key] = self._find(key)
        return self._known[key]

    def _find(self, values: tuple[int, ...]) -> Expression | None:
        if all(value == values[0] for value in values):
            return (values[0],)
        found = _solve(values, self.points)
        if found is None:
            return None
        exact = all(value_of(found, point) == value for point, value in zip(self.points, values))
        return _shortened(found) if exact else None

    def above(self, values: Sequence[int]) -> Expression | None:
        """The least line in the batch size that is nowhere below the values: of sizes that rounding or the data decide."""
        if len(self.points[0]) != 1:
            return None
        sizes = [point[0] for point in self.points]
        first, last = sizes.index(min(sizes)), sizes.index(max(sizes))
        slope = max(0, -((values[first] - values[last]) // (sizes[last] - sizes[first])))
        return _shortened((max(value - slope * size for value, size in zip(values, sizes)), slope))


def batch_sizes(size: int) -> tuple[int, int, int]:
    """Two batch sizes to record at, and one to check with, from the one that is asked for. 1 is not among them: strides
    of an axis of 1 mean nothing. They divide by 2 where `size` divides by 4, as some programs ask of a batch."""
    first = max(2, size)
    return first, 2 * first, first + first // 2


def sequence_lengths(length: int) -> tuple[int, int, int]:
    """The same for lengths. None is longer than the one that is asked for, as a model may know no longer ones; kernels of
    attention round them up to 32, so from 128 on all are multiples of 32."""
    top = length - length % 128 if length >= 128 else max(4, length)
    return top // 2, top, 3 * top // 4


# ----------------------------------------------------------------------------------------- layouts


def dense_order(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """The axes from the outermost to the innermost in memory, [] if that is their order; None: not dense."""
    if math.prod(shape) == 0:
        return []
    axes = range(len(shape))
    for order in (list(axes), sorted(axes, key=lambda axis: (-strides[axis], axis))):
        expected = 1
        for axis in reversed(order):
            if shape[axis] != 1 and strides[axis] != expected:
                break
            expected *= shape[axis]
        else:
            return [] if order == list(axes) else order
    return None


def order_of_strides(strides: Sequence[int]) -> list[int]:
    """The layout of a dense tensor whose axes lie in this order."""
    order = sorted(range(len(strides)), key=lambda axis: (-strides[axis], axis))
    return [] if order == list(range(len(strides))) else order
