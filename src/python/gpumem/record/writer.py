"""Runs at several sizes become one recording: a JSON object, compressed.

Input: runs (run.py) of the same program, with the sizes that each had. Output: the text of a recording, format
gpumem-recording, version 1. The runs must have done the same things in the same order; where they part is an error.

The object's keys; lists refer to each other by index, from 0; sizes are bytes, shapes and strides elements:

    format, version, title, torch, capability, world_size, rank
    axes            what sizes depend on: [], ["batch"] or ["batch", "sequence"]
    recorded_at     the axes' values in the runs that expressions come from: 2 for one axis, 4 for two. Without axes there
                    is one run: [[]], or its sizes where they are known
    checked_at      those of the runs that the expressions gave exactly
    optimizer       its class in lower case; empty: none, or several
    precision       gpumem's name for the types that were seen; empty: it has none
    settings        an object: cudnn_benchmark, deterministic, cudnn, tf32, alloc_conf, memory_fraction, cuda_graphs, compiled;
                    those that are not at PyTorch's default; torch: the older version that was pretended
    warnings        [kind ("value", "size", "rule", "shape"), text, the user's line or "", how often]
    strings         a table
    dims            coefficients of 1, batch, sequence, batch * sequence; zeros at the end are left out
    tensors         [dtype (a string), [dims], layout]; layout: [] contiguous; [axes from the outermost to the innermost in
                    memory]; or a list of strides, each a list of coefficients
    sizes           [item, [dims]]: a storage of item * product of the dims bytes
    calls           [operator, module (strings), phase, thread, [inputs], [outputs] (tensors), extra]; extra: of convolutions
                    [transposed, groups, wanted gradients as bits 1, 2, 4], else []
    parameters      [name, tensor, trained, allocation, gradient]: allocations are counted from 0 in the order of the
                    events; gradient is that of the last step; -1: none seen
    events          one list of whole numbers: 0 size stream call category (an allocation; call -1: of none);
                    1 back (a release of the one made `back` allocations ago, 1 is the newest); 2 call (it begins: its
                    kernel copies inputs); 3 call part (the library takes its workspace: part 0 forward, 1 gradient of the
                    data, 2 of the weight); 4 call (it ends); 5 mark step (a phase begins)
    kernels         [call, how often it runs in the last whole step]

The numbers of phases, marks and categories are those of run.py. Events 2, 3 and 4 are there for calls to which a rule may
add memory (operators.py).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import pathlib
import shutil
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from .errors import RecordError, record_error
from .expressions import Expression, Expressions, Point, dense_order, order_of_strides, runs_needed, value_of
from .run import (
    NOT_RECORDED,
    Allocate,
    Begin,
    Call,
    Category,
    End,
    Event,
    Free,
    Mark,
    Marked,
    Parameter,
    Run,
    TensorForm,
    Warning,
    Workspace,
)

FORMAT, VERSION = "gpumem-recording", 1
AXES = ("batch", "sequence")
#: They take memory, or name it again, and run nothing on it.
_NO_KERNEL = frozenset(
    "aten::" + name
    for name in (
        "empty.memory_format empty_strided empty_like new_empty new_empty_strided empty_permuted resize_ "
        "set_.source_Storage set_.source_Storage_storage_offset set_.source_Tensor"
    ).split()
)

#: Elements of a tensor whose size need not follow the batch: boxes and labels of the images that were drawn.
_SMALL = 1 << 10
#: What a bound may add to a size that is no expression, as a share of the run's peak; with at most so many bytes an element.
_SLACK, _WIDEST = 1000, 8

_Key = TypeVar("_Key", bound=Hashable)


class _Table(dict[_Key, int]):
    """Distinct things, numbered in the order in which they come."""

    def number(self, key: _Key) -> int:
        return self.setdefault(key, len(self))


def _same_path(sizes: str, what: str) -> RecordError:
    return record_error(
        f"the runs at {sizes} do different things: {what}",
        "leave the program no choice that depends on the size, or record at the one size that you need "
        "(gpumem.record.step(..., scale=False), or without --batch-arg)",
    )


def in_order(events: Sequence[Event]) -> list[Event]:
    """Releases that follow each other, by the number of the allocation. Their own order means nothing to an allocator, and
    differs from run to run: autocast's cache of weights is emptied in the order of addresses."""
    ordered: list[Event] = []
    together: list[Free] = []
    for event in events:
        if isinstance(event, Free):
            together.append(event)
            continue
        ordered += [*sorted(together), event]
        together = []
    return ordered + sorted(together)


def _live_peak(run: Run) -> int:
    """Bytes that are alive at a time, at most."""
    live: dict[int, int] = {}
    now = peak = 0
    for event in run.events:
        if isinstance(event, Allocate):
            live[event.number] = event.item * math.prod(event.shape)
            now += live[event.number]
            peak = max(peak, now)
        elif isinstance(event, Free):
            now -= live.pop(event.number, 0)
    return peak


class _Writer:
    def __init__(self, runs: Sequence[Run], points: Sequence[Point]) -> None:
        self.runs, self.points = runs, points
        self.expressions = Expressions(points)
        self.strings: _Table[str] = _Table()
        self.dims: _Table[tuple[int, ...]] = _Table()
        self.tensors: _Table[tuple[int, tuple[int, ...], str]] = _Table()
        self.layouts: list[Any] = []
        self.sizes: _Table[tuple[int, tuple[int, ...]]] = _Table()
        self.calls: _Table[tuple[Any, ...]] = _Table()
        self.forms: dict[tuple[TensorForm, ...], int] = {}
        self.shape_warnings: dict[str, int] = {}
        self.peaks: list[int] = []  # Of the runs, once they are asked for.

    def sizes_of_runs(self) -> str:
        kind = AXES[: len(self.points[0])]
        return " and ".join("x".join(map(str, point)) for point in self.points) + f" ({' x '.join(kind)})"

    # ------------------------------------------------------------------------------- what is sized

    def shape(self, shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...]:
        """Numbers of the dimensions."""
        if any(len(shape) != len(shapes[0]) for shape in shapes):
            raise _same_path(self.sizes_of_runs(), f"{what} has {len(shapes[0])} axes in one and others in another")
        axes = list(zip(*shapes))
        exact = [self.expressions.of(values) for values in axes]
        elements = [math.prod(shape) for shape in shapes]
        found = exact if None not in exact else self.flat(self.expressions.of(elements), shapes)
        if found is None:
            found = [each or self.about(values, shapes, what) for each, values in zip(exact, axes)]
        if None in found:
            found = self.flat(self.about(elements, [(each,) for each in elements], what), shapes)
        if found is None:
            axis = exact.index(None)
            raise record_error(
                f"axis {axis} of {what} is {', '.join(map(str, axes[axis]))} in runs at {self.sizes_of_runs()}: "
                "no whole-number expression in these gives it",
                "record at sizes that divide well (multiples of 8, for example), or at the one size that you need "
                "(gpumem.record.step(..., scale=False), or without --batch-arg)",
            )
        return tuple(self.dims.number(each) for each in found if each is not None)

    @staticmethod
    def flat(elements: Expression | None, shapes: Sequence[tuple[int, ...]]) -> list[Expression | None] | None:
        """One axis has all elements, where their number has an expression and the axes have none: a data set as so many rows
        of a batch each, images in a grid."""
        return None if elements is None else [elements, *((1,) for _ in shapes[0][1:])]

    def about(self, values: Sequence[int], shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...] | None:
        """Of a small tensor whose size the data decide, or a large one whose size is rounded: an upper bound."""
        found = self.expressions.above(values)
        if found is None:
            return None
        small = max(math.prod(shape) for shape in shapes) <= _SMALL
        bounds = [value_of(found, point) for point in self.points]
        if not small and not self.is_slight(values, bounds, shapes):
            return None
        text = f"{what}: its size is no expression, an upper bound is taken"
        self.shape_warnings[text] = self.shape_warnings.get(text, 0) + 1
        return found

    def is_slight(self, values: Sequence[int], bounds: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> bool:
        """The bounds add a fiftieth to the sizes at most, or next to nothing to what the runs take."""
        if all(bound <= value + value // 50 for bound, value in zip(bounds, values)):
            return True
        if not self.peaks:
            self.peaks = [_live_peak(run) for run in self.runs]
        more = [
            math.prod(shape) // max(value, 1) * (bound - value) * _WIDEST
            for value, bound, shape in zip(values, bounds, shapes)
        ]
        return all(each <= peak // _SLACK for each, peak in zip(more, self.peaks))

    def layout(self, forms: Sequence[TensorForm], what: str) -> list[Any]:
        orders = [dense_order(form.shape, form.strides) for form in forms]
        if orders[0] is not None and all(order == orders[0] for order in orders):
            return orders[0]
        strides = [self.expressions.of(values) for values in zip(*(form.strides for form in forms))]
        known = [list(each) for each in strides if each is not None]
        if len(known) == len(strides):
            return known
        text = f"{what}: its strides are no expression, it is taken as dense"
        self.shape_warnings[text] = self.shape_warnings.get(text, 0) + 1
        return order_of_strides(forms[0].strides)

    def tensor(self, forms: tuple[TensorForm, ...], what: str) -> int:
        known = self.forms.get(forms)
        if known is not None:
            return known
        if any(form.dtype != forms[0].dtype for form in forms):
            raise _same_path(self.sizes_of_runs(), f"{what} has different types")
        dims = self.shape([form.shape for form in forms], what)
        layout = self.layout(forms, what)
        before = len(self.tensors)
        number = self.tensors.number((self.strings.number(forms[0].dtype), dims, str(layout)))
        if number == before:
            self.layouts.append(layout)
        self.forms[forms] = number
        return number

    # --------------------------------------------------------------------------------------- calls

    def call(self, calls: Sequence[Call]) -> int:
        first = calls[0]
        what = f"{first.operator} in {first.module or 'the program'}"
        for each in calls[1:]:
            if (each.operator, each.module, each.phase, each.thread) != first[:4]:
                raise _same_path(self.sizes_of_runs(), f"{what} is {each.operator} in {each.module or 'the program'}")
            if (len(each.inputs), len(each.outputs), each.extra) != (len(first.inputs), len(first.outputs), first.extra):
                raise _same_path(self.sizes_of_runs(), f"{what} has other arguments")
        sides = []
        for side in ("inputs", "outputs"):
            lists = [getattr(each, side) for each in calls]
            sides.append(tuple(self.tensor(forms, f"{side[:-1]} of {what}") for forms in zip(*lists)))
        return self.calls.number(
            (
                self.strings.number(first.operator),
                self.strings.number(first.module),
                int(first.phase),
                first.thread,
                *sides,
                first.extra,
            )
        )

    def all_calls(self) -> list[int]:
        """The number of the distinct call, of every call."""
        lengths = {len(run.calls) for run in self.runs}
        numbers = [self.call(calls) for calls in zip(*(run.calls for run in self.runs))]
        if len(lengths) > 1:
            raise _same_path(self.sizes_of_runs(), f"they make {', '.join(map(str, sorted(lengths)))} calls")
        return numbers

    # -------------------------------------------------------------------------------------- events

    def event(self, alike: tuple[Any, ...], calls: list[int], made: int) -> list[int]:
        first = alike[0]
        if any(type(each) is not type(first) for each in alike):
            raise _same_path(self.sizes_of_runs(), "memory is taken and given back in another order")
        if isinstance(first, Allocate):
            if any(each._replace(shape=first.shape) != first for each in alike):
                raise _same_path(self.sizes_of_runs(), "other memory is taken")
            what = "a storage" if first.call < 0 else f"what {self.runs[0].calls[first.call].operator} returns"
            dims = self.shape([each.shape for each in alike], what)
            category = self.runs[0].categories.get(first.number, Category.TEMPORARY)
            call = calls[first.call] if first.call >= 0 else -1
            return [0, self.sizes.number((first.item, dims)), first.stream, call, int(category)]
        if any(each != first for each in alike):
            raise _same_path(self.sizes_of_runs(), "memory is given back, or a phase begins, at another place")
        if isinstance(first, Free):
            return [1, made - first.number]
        if isinstance(first, Begin):
            return [2, calls[first.call]]
        if isinstance(first, Workspace):
            return [3, calls[first.call], first.part]
        if isinstance(first, End):
            return [4, calls[first.call]]
        return [5, int(first.mark), first.step]

    def all_events(self, calls: list[int]) -> list[int]:
        events: list[int] = []
        made = 0
        for alike in zip(*(in_order(run.events) for run in self.runs)):
            events += self.event(alike, calls, made)
            made += isinstance(alike[0], Allocate)
        if len({len(run.events) for run in self.runs}) > 1:
            raise _same_path(self.sizes_of_runs(), "one goes on where another has ended")
        return events

    def kernels(self, calls: list[int]) -> list[list[int]]:
        """How often each call runs in the last whole step."""
        run = self.runs[0]
        marks = [each for each in run.events if isinstance(each, Marked)]
        finished = max((each.step for each in marks if each.mark == Mark.OPTIMIZER), default=0)
        last = finished or max((each.step for each in marks), default=0)
        begins = [each.calls for each in marks if each.step == last]
        later = [each.calls for each in marks if each.step > last]
        times: dict[int, int] = {}
        for place in range(begins[0] if begins else 0, later[0] if later else len(calls)):
            if run.calls[place].operator not in _NO_KERNEL:
                times[calls[place]] = times.get(calls[place], 0) + 1
        return [[call, count] for call, count in sorted(times.items())]

    # --------------------------------------------------------------------------------------- whole

    def parameter(self, alike: tuple[Parameter, ...]) -> list[int]:
        first = alike[0]
        if any((each.name, each.trained) != (first.name, first.trained) for each in alike):
            raise _same_path(self.sizes_of_runs(), f"{first.name} is another parameter")
        tensor = self.tensor(tuple(each.form for each in alike), first.name)
        return [self.strings.number(first.name), tensor, int(first.trained), first.allocation, first.gradient]

    def warnings(self) -> list[list[Any]]:
        seen: dict[Warning, int] = {}
        for run in self.runs:
            for warning, count in run.warnings.items():
                seen[warning] = max(seen.get(warning, 0), count)
        rows = [[*warning, count] for warning, count in seen.items()]
        return rows + [["shape", text, "", count] for text, count in self.shape_warnings.items()]

    def document(self, title: str) -> dict[str, Any]:
        run = self.runs[0]
        needed = runs_needed(len(self.points[0]))
        numbers = self.all_calls()
        events = self.all_events(numbers)
        if len({len(each.parameters) for each in self.runs}) > 1:
            raise _same_path(self.sizes_of_runs(), "the models have different parameters")
        parameters = [self.parameter(alike) for alike in zip(*(each.parameters for each in self.runs))]
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": title,
            "torch": run.torch,
            "capability": list(run.capability),
            "world_size": run.world_size,
            "rank": run.rank,
            "axes": list(AXES[: len(self.points[0])]),
            "recorded_at": [list(point) for point in self.points[:needed]],
            "checked_at": [list(point) for point in self.points[needed:]],
            "optimizer": run.optimizer,
            "precision": run.precision,
            **({"settings": run.settings} if run.settings else {}),
            "warnings": self.warnings(),
            "strings": list(self.strings),
            "dims": [list(each) for each in self.dims],
            "tensors": [[dtype, list(dims), layout] for (dtype, dims, _), layout in zip(self.tensors, self.layouts)],
            "sizes": [[item, list(dims)] for item, dims in self.sizes],
            "calls": [[*each[:4], list(each[4]), list(each[5]), list(each[6])] for each in self.calls],
            "parameters": parameters,
            "events": events,
            "kernels": self.kernels(numbers),
        }


def recording_text(runs: Sequence[Run], points: Sequence[Point], title: str) -> str:
    """The recording of these runs, of which each had the sizes of its point. That of one run has numbers for sizes, and no
    axes; its point, where it is known, says at which sizes it was. Raises RecordError where nothing is on the GPU."""
    if not any(isinstance(event, Allocate) for run in runs for event in run.events):
        processes = [f"{each.where}: {each.text}" for each in runs[0].warnings if each.text.startswith(NOT_RECORDED)]
        remedy = "record a script that calls that function itself" if processes else 'build its model and its batches on the device "cuda"'
        raise record_error("; ".join(["the program puts nothing on the GPU", *processes[:1]]), remedy)
    one = len(runs) == 1
    document = _Writer(runs, [()] if one else points).document(title)
    if one:
        document["recorded_at"] = [list(points[0])]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def write_recording(path: str | os.PathLike[str], text: str) -> None:
    """To a file; compressed if its name ends in .gz. The same text always gives the same bytes. What the path names, or
    what a link there names, is as it was until all is written, and keeps its mode."""
    content = text.encode("utf-8", "replace")
    if str(path).endswith(".gz"):
        content = gzip.compress(content, 9, mtime=0)
    there = pathlib.Path(path)
    is_open = os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))  # whatever it points to
    if is_open or (there.exists() and not there.is_file()):  # a pipe, a device
        there.write_bytes(content)
        return
    target = pathlib.Path(os.path.realpath(path))
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content)
        if target.exists():
            shutil.copymode(target, unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
