"""Values that a recording does not have, and what it takes instead: the answer that real training gives.

| what is asked | what is taken |
|---|---|
| any(), all() of a condition that holds for some elements | True |
| isnan(), isinf() | False |
| equal(), allclose() | True |
| a number compared with zero | that the number is positive |
| .item(), numpy(), tolist() | the most that the program lets it be, else 1; False of bool where nothing is known |
| how many elements a condition holds for (nonzero, masks) | as many as the program picked (origins.py), else all, of which masks share |
| unique, nms, repeat_interleave | as many as there can be |

What the program has itself is not invented (known_values.py), and what a user says comes first (assumed.py). Each invented
value is a warning with the user's line. What has no such answer is an error that names the line.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .assumed import said
from .conditions import Condition, Mask, are_disjoint, condition_of, follow, mask_of, parts_noted, scalar_truth
from .errors import RecordError, record_error
from .known_values import KnownValues
from .operators import base_name, is_view
from .origins import follow_origins
from .places import library_line, users_line
from .possible_values import MOST as MOST_VALUES
from .possible_values import (
    DIFFERENT,
    follow_columns,
    follow_exchange,
    follow_greatest,
    follow_marks,
    follow_values,
    greatest,
    how_great,
    marked_at_most,
    possible_values,
    taken,
)
from .pretended_cuda import Replacements
from .shape_rules import rule_of
from .storages import check_layouts, tensors_in

_aten = torch.ops.aten
_DYNAMIC = tuple(
    getattr(fake_tensor, name)
    for name in ("DynamicOutputShapeException", "DataDependentOutputException")
    if hasattr(fake_tensor, name)
)
_UNSUPPORTED = tuple(
    getattr(fake_tensor, name)
    for name in ("UnsupportedOperatorException", "UnsupportedFakeTensorException")
    if hasattr(fake_tensor, name)
)
_OF_OBJECTS = frozenset(("nonzero", "mask", "unique"))
_ASKS = frozenset(
    "_local_scalar_dense nonzero masked_select equal allclose _unique _unique2 unique_consecutive unique_dim "
    "unique_dim_consecutive repeat_interleave bincount nms _pack_padded_sequence".split()
)


def asks(func: Any, args: Any) -> bool:
    """The operator's result has a size, or is a value, that depends on values."""
    name = base_name(func)
    return name in _ASKS or (func is _aten.index.Tensor and any(map(_is_mask, args[1])))


def _is_mask(index: torch.Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _no_shapes(func: Any) -> RecordError:
    """An operator that cannot be asked for the shapes of its results."""
    name = func.name().split(".")[0]
    if "nested" in name:
        return record_error(
            f"{name}() makes a nested tensor of the strided layout, which is not recorded",
            "record with padded batches, or with torch.nested.nested_tensor(..., layout=torch.jagged) where no attention is on it",
            users_line(),
        )
    own = func.namespace not in ("aten", "prims")
    return record_error(
        f"{name}() does not tell which shapes it returns",
        f'register a fake implementation: @torch.library.register_fake("{name}"), or impl_abstract before PyTorch 2.4; '
        f'or say it for recordings alone: gpumem.record.stand_in("{name}", shapes)'
        if own
        else "record with a newer PyTorch, or with other operators in its place",
        users_line(),
    )


def _formatted(tensor: Any, how: str) -> str:
    """As torch.Tensor does it: a single element as a number."""
    return format(tensor.item() if tensor.dim() == 0 else str(tensor), how)


def _numbers_of(data: Any) -> Any:
    """In a row that begins with a number, a tensor of one element is a number, whatever its shape."""
    if isinstance(data, (list, tuple)):
        numbers = bool(data) and isinstance(data[0], (bool, int, float, complex))
        return [
            each.item() if numbers and isinstance(each, FakeTensor) and each.numel() == 1 else _numbers_of(each)
            for each in data
        ]
    return data.tolist() if isinstance(data, FakeTensor) else data


def _of_numbers(original: Callable[..., Any]) -> Callable[..., Any]:
    """torch.tensor([loss, other]) reads the tensors in the list, without the dispatcher."""

    @functools.wraps(original)
    def made(data: Any, *arguments: Any, **options: Any) -> Any:
        return original(_numbers_of(data) if isinstance(data, (list, tuple)) else data, *arguments, **options)

    return made


class Invented:
    """warn: takes the kind, the text and the user's line of each warning. known: what is not invented."""

    def __init__(self, warn: Callable[[str, str, str], None], known: KnownValues) -> None:
        self._warn, self._known = warn, known
        self.asked = 0  # How often the program asked for a value, known or not.
        self._parts_at: dict[str, int] = {}  # By the line of a set's first mask: how many masks part it.

    # ---------------------------------------------------------------------- read without the dispatcher

    def install(self, replaced: Replacements) -> None:
        """Also values that are read without the dispatcher, and compilers that would have to know them."""
        for name in ("numpy", "tolist", "__array__"):
            reader = self._reader(name, getattr(torch.Tensor, name))
            for kind in (torch.Tensor, FakeTensor):
                if kind is torch.Tensor or name in vars(kind):
                    replaced.set(kind, name, reader)
        replaced.set(FakeTensor, "__format__", _formatted)
        for name in ("tensor", "as_tensor"):
            made, scripted = _of_numbers(getattr(torch, name)), torch.jit._builtins._get_builtin_table()
            scripted[id(made)] = f"aten::{name}"  # torch.jit.script compiles it.
            replaced.callback(scripted.pop, id(made), None)
            replaced.set(torch, name, made)
        replaced.set(torch, "ctc_loss", self._ctc_loss(torch.ctc_loss))
        allclose = torch.allclose
        for owner in (torch, torch.Tensor):
            replaced.set(owner, "allclose", self._allclose(allclose))

    def _reader(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
            self.asked += 1
            if isinstance(tensor, FakeTensor):
                known = self._known.of(tensor)
                if known is None:
                    tensor = self._taken_for(name, tensor)
                else:
                    tensor = known.clone()
            with _disable_current_modes():
                return original(tensor, *arguments, **options)

        return read

    def _taken_for(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """The values that numpy() or tolist() gives."""
        value, limit = self._said("item"), greatest(tensor)
        if value is None and limit is not None:
            self._tell("value", f"{name}() has no values: {how_great(tensor)} is taken")
            with _disable_current_modes():
                return limit.to(tensor.dtype).contiguous()
        value = taken(possible_values(tensor)) if value is None else value
        self._tell("value", f"{name}() has no values: each is taken as {value}")
        with _disable_current_modes():
            return torch.full(tuple(tensor.shape), value, dtype=tensor.dtype, device="cpu")

    def _ctc_loss(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """With lengths as numbers, which it makes of tensors on any device. (Of tensor subclasses it does not.)"""

        def lengths(given: Any, longest: int) -> Any:
            if not isinstance(given, torch.Tensor):
                return given
            known = self._known.numbers(given, given.numel())
            if known is None:
                self._tell("size", "the lengths of a CTC loss are values: each is taken as the longest")
            return [longest] * given.numel() if known is None else known

        def ctc_loss(log_probs: Any, targets: Any, of_inputs: Any, of_targets: Any, *arguments: Any, **options: Any) -> Any:
            steps, longest = log_probs.shape[0], targets.shape[-1]
            of_inputs, of_targets = lengths(of_inputs, steps), lengths(of_targets, longest)
            return original(log_probs, targets, of_inputs, of_targets, *arguments, **options)

        return ctc_loss

    def _allclose(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def allclose(first: Any, second: Any, *arguments: Any, **options: Any) -> Any:
            known = all(self._known.of(each) is not None for each in (first, second))
            if known or not isinstance(first, FakeTensor):
                return original(first, second, *arguments, **options)
            return self._truth("equal", "allclose()", True)

        return allclose

    # ---------------------------------------------------------------------------------------- answers

    def _said(self, kind: str) -> Any:
        """What a user says of this line, of the library's line that runs, or of the kind."""
        return said.about(kind, users_line(), library_line())

    def _tell(self, kind: str, text: str) -> None:
        """With the user's line, and the library's that asks."""
        self.asked += 1
        library = library_line()
        self._warn(kind, f"{text} ({library})" if library else text, users_line())

    def _truth(self, kind: str, what: str, otherwise: bool) -> bool:
        value = self._said(kind)
        truth = otherwise if value is None else bool(value)
        self._tell("value", f"{what} is taken as {truth}" + ("" if value is None else ", as was said"))
        return truth

    def _size(self, kind: str, what: str, most: int, otherwise: int, how: str, of_objects: bool = True) -> int:
        """A number of elements, `most` at most. of_objects: no more than a user said that there are."""
        value = self._said(kind)
        if value is not None:
            how = "as was said"
            otherwise = math.ceil(most * value) if isinstance(value, float) else int(value)
        elif of_objects and said.objects is not None and kind in _OF_OBJECTS and otherwise > said.objects:
            otherwise, how = said.objects, "as many objects as was said"
        self._tell("size", f"the size of {what} depends on values: {how}")
        return min(most, otherwise)

    def scalar(self, tensor: torch.Tensor) -> Any:
        """What .item() gives."""
        dtype, condition = tensor.dtype, condition_of(tensor)
        if dtype == torch.bool:
            return self._condition(condition)
        count = getattr(tensor, "_gpumem_count_of", None)
        if condition is not None and count is not None:
            counted = self._count(tensor, count, "mask", "a mask")
            return float(counted) if dtype.is_floating_point else counted
        value, limit = self._said("item"), greatest(tensor)
        how = "is taken" if value is None else "is taken, as was said"
        number: Any = taken(possible_values(tensor)) if value is None else value
        if value is None and limit is not None:
            with _disable_current_modes():
                number, how = limit.item(), f"is taken, {how_great(tensor)}"
        number = float(number) if dtype.is_floating_point else complex(number) if dtype.is_complex else int(number)
        each = value is None and limit is not None and how_great(tensor) == DIFFERENT  # One warning, not one for each of a loop.
        self._tell("value", "the value of a tensor is needed: " + (f"{DIFFERENT} is taken" if each else f"{number} {how}"))
        return number

    def _condition(self, condition: Condition | None) -> bool:
        truth = scalar_truth(condition)
        if condition is not None and condition.expected is not None:
            if condition.counted == -1:
                kind = "all" if condition.zero else "any"
                return self._truth(kind, f"{kind}() of a condition", True)
            what = "whether numbers are finite" if condition.expected else "whether numbers are NaN or infinite"
            return self._truth("isnan", what, condition.expected)
        return self._truth("compare", "a condition", bool(truth))

    # ------------------------------------------------------------------------------- how many elements

    def _count(self, mask: Any, most: int, kind: str, what: str) -> int:
        """Of the elements that a mask picks: the same one each time that it is asked."""
        condition, marked = condition_of(mask), marked_at_most(mask)
        if marked is not None and marked <= most:
            return self._size(kind, what, most, marked, "so many places were marked at most", of_objects=False)
        if condition is None:
            return self._size(kind, what, most, most, "as many as there can be are taken")
        if condition.counted is None or condition.counted < 0:
            share, how, of_objects = most, "as many as there can be are taken", True
            if condition.expected is False:
                share, how = 0, "none are taken, as numbers are finite"
            elif condition.mask is not None and condition.mask.parts.size == most:
                share, how = condition.mask.parts.at_most(condition.mask), "so many can be such, as the program made them"
                of_objects = False
                if share == most:
                    share, how = self._share(condition.mask, most)
                    of_objects = self._may_be_objects(condition.mask)
            condition.counted = self._size(kind, what, most, share, how, of_objects)
            if condition.mask is not None:
                condition.mask.parts.taken.append((condition.mask, condition.counted))
        return condition.counted

    def _may_be_objects(self, mask: Mask) -> bool:
        """What passes a threshold is kept, what is left beside the objects is background, or their other levels, and labels of 0 and
        more are all but those that are marked as ignored."""
        labels = [0.0, *(each for each in mask.constants if each >= 0)]
        valid = all(mask.holds(each) for each in (*labels, max(labels) + 1))
        return not mask.threshold and not valid and not any(are_disjoint(mask, other) for other, _ in mask.parts.taken)

    def _share(self, mask: Mask, most: int) -> tuple[int, str]:
        """Of a mask whose set other masks part with it. How many there are is known from the last time; before, each takes
        half of what is left."""
        parts = mask.parts
        if parts.values:
            held = sum(mask.holds(each) for each in parts.values)
            return -(-most * held // len(parts.values)), f"{held} of the {len(parts.values)} values that there can be"
        name, size, apart = parts.set_of(mask)
        number, place = parts.known.setdefault(name, self._parts_at.get(name, 0)), len(apart)
        self._parts_at[name] = max(self._parts_at.get(name, 1), 1 + place)
        if number > 1 and place < number:
            share = size * (place + 1) // number - size * place // number
            if said.objects is not None:  # The first may have had fewer.
                share = -(-max(0, size - sum(apart)) // (number - place))
            return share, f"it is one of {number} masks that share a set of {size}"
        if apart or (mask.equality and number == 0):
            return -(-max(0, size - sum(apart)) // 2), f"its share of a set of {size} that masks part"
        return size, "as many as there can be are taken"

    # --------------------------------------------------------------------------------------- operators

    def answer(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> tuple[bool, Any]:
        """Whether the operator asks for values, and what it gets."""
        name = base_name(func)
        if name not in _ASKS or not inputs:
            return False, None
        self.asked += 1
        if name == "_pack_padded_sequence":
            return True, self._packed(*args)
        worked_out = self._known.run(func, args, kwargs, inputs)
        if worked_out is not None:
            return True, self._known.faked(worked_out, lambda _: inputs[0].device)
        return self._invented(name, args, kwargs, inputs)

    def _invented(self, name: str, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> tuple[bool, Any]:
        first = inputs[0]
        most, device = first.numel(), first.device
        if name == "_local_scalar_dense":
            return True, self.scalar(first)
        if name in ("equal", "allclose"):
            return True, self._truth("equal", f"{name}()", True)
        if name == "nonzero":
            rows = self._count(first, most, "nonzero", "nonzero()")
            return True, torch.empty((rows, first.ndim), dtype=torch.int64, device=device)
        if name == "masked_select":
            rows = self._count(args[1], most, "mask", "masked_select()")
            return True, torch.empty((rows,), dtype=first.dtype, device=device)
        if name == "nms":
            boxes = first.shape[0]
            kept = self._size("nms", "nms()", boxes, boxes, "all boxes are kept")
            return True, torch.empty((kept,), dtype=torch.int64, device=device)
        if name == "bincount":
            least = int(kwargs.get("minlength", args[2] if len(args) > 2 else 0))
            bins = self._size("bincount", "bincount()", max(least, most), max(least, 1), "its least length is taken")
            weighted = len(inputs) > 1
            return True, torch.empty((bins,), dtype=torch.float64 if weighted else torch.int64, device=device)
        if name == "repeat_interleave":
            return self._repeated(args, kwargs, first)
        return True, self._unique(name, args, first)

    def _repeated(self, args: Any, kwargs: Any, repeats: torch.Tensor) -> tuple[bool, Any]:
        size = kwargs.get("output_size")
        if size is None:
            value = self._said("repeat_interleave")
            each = 1 if value is None else value
            size = math.ceil(repeats.numel() * each)
            how = f"{each} of each are taken"
            self._tell("size", f"the size of repeat_interleave() depends on values: {how}")
        return True, torch.empty((size,), dtype=torch.int64, device=repeats.device)

    def _packed(self, padded: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The steps of all sequences in a row, and on the CPU how many sequences each step has."""
        sequences, longest = (padded.shape[0], padded.shape[1]) if batch_first else (padded.shape[1], padded.shape[0])
        known = self._known.numbers(lengths, lengths.numel())
        if known is None:
            self._tell("size", "the lengths of packed sequences are values: each is taken as the longest")
            known = [longest] * sequences
        steps = [sum(length > step for length in known) for step in range(max(known, default=0))]
        data = torch.empty((sum(steps), *padded.shape[2:]), dtype=padded.dtype, device=padded.device)
        with _disable_current_modes():
            return data, torch.tensor(steps, dtype=torch.int64, device="cpu")

    def _unique(self, name: str, args: Any, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = name in ("unique_dim", "unique_dim_consecutive")
        axis = int(args[1]) if whole else 0
        elements = most = tensor.shape[axis] if whole else tensor.numel()
        how, possible = "all are taken as different", None if whole else possible_values(tensor)
        if possible is not None and len(possible) < elements:
            most, how = len(possible), f"there are {len(possible)} different values at most"
        found = self._size("unique", "unique()", elements, most, how)
        shape = [found] if not whole else [*tensor.shape]
        if whole:
            shape[axis] = found
        values = torch.empty(shape, dtype=tensor.dtype, device=tensor.device)
        if possible is not None and len(possible) == found:
            with _disable_current_modes():
                self._known.keep(values, torch.tensor(sorted(possible), dtype=tensor.dtype, device="cpu"))
        inverse = torch.empty((elements,) if whole else tensor.shape, dtype=torch.int64, device=tensor.device)
        counts = torch.empty((found,), dtype=torch.int64, device=tensor.device)
        return (values, inverse) if name == "_unique" else (values, inverse, counts)

    def without_masks(self, func: Any, args: Any) -> tuple[Any, list[torch.Tensor]]:
        """The arguments, where x[mask] has as many indices as the mask picks; and these indices."""
        if func is not _aten.index.Tensor or all(each is None or each.dtype != torch.bool for each in args[1]):
            return args, []
        indices: list[Any] = []
        made: list[torch.Tensor] = []
        for each in args[1]:
            if each is not None and each.dtype == torch.bool:
                self.asked += 1
                of_mask = self._indices(each)
                indices += of_mask
                made += of_mask
            else:
                indices.append(each)
        return (args[0], indices, *args[2:]), made

    def _indices(self, mask: torch.Tensor) -> list[torch.Tensor]:
        value = self._known.of(mask)
        if value is not None:
            with _disable_current_modes():
                found = list(value.nonzero().unbind(1))
            made = [torch.empty((each.numel(),), dtype=torch.int64, device=mask.device) for each in found]
            with _disable_current_modes():
                for fake, each in zip(made, found):
                    self._known.keep(fake, each)
            return made
        count = self._count(mask, mask.numel(), "mask", "what a mask picks")
        return [torch.empty(count, dtype=torch.int64, device=mask.device) for _ in range(mask.ndim)]

    def called(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The operator's result; what only the shapes do not tell is an error with the user's line."""
        rule = rule_of(func)
        if rule is not None:
            return rule(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except _DYNAMIC as error:
            raise record_error(
                f"the size of what {func.name()} returns depends on values, which a recording does not have",
                "give the size (minlength=, output_size=), leave the operation out of the recorded steps, or say the "
                f'shapes: gpumem.record.stand_in("{func.name().split(".")[0]}", shapes)',
                users_line(),
            ) from error
        except (*_UNSUPPORTED, NotImplementedError) as error:
            check_layouts(tensors_in((args, kwargs)))
            if not func._schema.returns:  # It writes into what it gets: _fused_sgd_, which has no rule in PyTorch 2.6.
                return None
            raise _no_shapes(func) from error
        except RuntimeError as error:
            if "no fake impl" not in str(error) and "no abstract impl" not in str(error):
                raise
            raise _no_shapes(func) from error

    def follow(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Notes what is known of values and of conditions."""
        follow_origins(func, args, kwargs, out, self._constant, mask_of, parts_noted)
        follow_values(func, args, kwargs, out, self._numbers)
        follow_columns(func, args, kwargs, out)
        follow_marks(func, args, out, self._numbers)
        follow_greatest(func, args, kwargs, out, self._known.of)
        follow_exchange(func, args, out)
        if isinstance(out, torch.Tensor) and (out.dtype == torch.bool or out.numel() == 1 or is_view(func)):
            follow(func, args, out, self._constant, lambda: library_line() or users_line())

    def _numbers(self, tensor: Any) -> list[Any] | None:
        return self._known.numbers(tensor, MOST_VALUES)

    def _constant(self, tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1:
            return None
        value = self._known.of(tensor)
        if value is None:
            return None
        with _disable_current_modes():
            return value.item()
