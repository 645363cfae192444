"""How many elements of a tensor a condition can hold for, where the program itself decided that: a detector's sampler takes 128
regions with an object and 384 without, and asks later which of the 512 have one.

Two things are followed. Places that nonzero() gave are places at which its mask holds, so what is picked there has what the mask asks
for. And a tensor that was filled with one number, and then with others at so many places, has each of these so often at most.

Input: operators as they run. Output: notes on tensors, with the version that they are of. Units: elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import torch

from .operators import base_name

if TYPE_CHECKING:
    from .conditions import Mask, Parts

#: Of consecutive elements of a row: how many, and a mask that holds for each, None where nothing is known of them.
Segments = tuple[tuple[int, Optional["Mask"]], ...]
#: By number: how many elements have it, at most. No element has another number.
Counts = dict[float, int]

_SAME = frozenset("clone _to_copy detach alias squeeze unsqueeze view _unsafe_view reshape unbind select contiguous flatten".split())
_FILLED = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1}  # With the place of the number.
_FILLED_WITH = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_WRITTEN = {"scatter_": (2, 3), "index_fill_": (2, 3), "index_put_": (1, 2), "masked_fill_": (1, 2)}  # Places, and what is written.
_MOST_SEGMENTS = 256
_MOST_NUMBERS = 64


def _noted(tensor: Any, name: str) -> Any:
    """None of what is no tensor."""
    noted = getattr(tensor, name, None)
    return noted[1] if noted is not None and noted[0] == tensor._version else None


def _note(tensor: Any, name: str, what: Any, later: int = 0) -> None:
    """later: 1 where the operator writes in place. The version is counted up when it has returned."""
    if what is not None:
        setattr(tensor, name, (tensor._version + later, what))


def places_of(tensor: Any) -> Segments | None:
    """Of indices: where they come from."""
    return _noted(tensor, "_gpumem_places")  # type: ignore[no-any-return]


def holds_in(tensor: Any) -> Segments | None:
    """Of a row of elements: which masks hold for them."""
    return _noted(tensor, "_gpumem_holds")  # type: ignore[no-any-return]


def counts_of(tensor: Any) -> Counts | None:
    return _noted(tensor, "_gpumem_counts")  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------ segments


def _part_of(segments: Segments | None, elements: int) -> Segments | None:
    """Some of the elements: if one mask holds for all of them, it holds for these."""
    return ((elements, segments[0][1]),) if segments is not None and len(segments) == 1 else None


def _joined(tensors: Any, name: str) -> Segments | None:
    every = [_noted(each, name) for each in tensors]
    if not any(every) or any(each.ndim != 1 for each in tensors):
        return None
    joined: list[tuple[int, Optional["Mask"]]] = []
    for each, segments in zip(tensors, every):
        joined += segments or ((each.numel(), None),)
    return tuple(joined) if len(joined) <= _MOST_SEGMENTS else None


def _picked(source: Any, index: Any, elements: int, parts: Optional["Parts"], mask: Optional["Mask"]) -> Segments | None:
    """What holds for elements that an index picks of a row. mask: the index is this."""
    if mask is not None:
        return ((elements, mask),) if mask.parts is parts else None
    places = places_of(index)
    if places is not None and parts is not None and all(each is None or each.parts is parts for _, each in places):
        return places if sum(count for count, _ in places) == elements else None
    return _part_of(holds_in(source), elements)


def _follow_segments(name: str, args: Any, out: Any, mask_of: Callable[[Any], Any], parts_of: Callable[[Any], Any]) -> None:
    source = args[0]
    if name == "nonzero":
        mask = mask_of(source) if source.ndim == 1 else None
        if mask is not None and mask.parts.size == source.numel():
            _note(out, "_gpumem_places", ((out.shape[0], mask),))
    elif name == "cat":
        for note in ("_gpumem_places", "_gpumem_holds"):
            _note(out, note, _joined(source, note))
    elif name == "index":
        if source.ndim == 1 == out.ndim and len(args[1]) == 1:
            index = args[1][0]
            mask = mask_of(index) if index.dtype == torch.bool else None
            _note(out, "_gpumem_places", _part_of(places_of(source), out.numel()))
            _note(out, "_gpumem_holds", _picked(source, index, out.numel(), parts_of(source), mask))
    elif name == "slice" or name in _SAME:
        for note in ("_gpumem_places", "_gpumem_holds"):
            segments = _noted(source, note)
            for each in out if isinstance(out, (list, tuple)) else (out,):
                whole = each.numel() == source.numel()
                _note(each, note, segments if whole else _part_of(segments, each.numel()))


# -------------------------------------------------------------------------------------------- counts


def _number(given: Any, value_of: Callable[[Any], Any]) -> float | None:
    found = value_of(given) if isinstance(given, torch.Tensor) else given
    return float(found) if isinstance(found, (int, float)) else None


def _places_written(name: str, args: Any) -> int:
    """Elements of the first argument, at most."""
    target, where = args[0], args[_WRITTEN[name][0]]
    if name == "index_put_":
        given = [each for each in where if each is not None]
        if len(given) < len(where) or any(each.dtype == torch.bool for each in given):
            return int(target.numel())
        written = max((each.numel() for each in given), default=0)
        for size in target.shape[len(given) :]:
            written *= size
    elif name == "masked_fill_":
        return int(target.numel())
    else:
        written = where.numel()
        if name == "index_fill_" and target.ndim:
            written *= target.numel() // max(1, target.shape[args[1]])
    return min(int(written), int(target.numel()))


def _after_writing(name: str, args: Any, value_of: Callable[[Any], Any]) -> Counts | None:
    before, of_number = counts_of(args[0]), _WRITTEN[name][1]
    number = _number(args[of_number], value_of) if len(args) > of_number else None
    if before is None or number is None:
        return None
    return {**before, number: min(before.get(number, 0) + _places_written(name, args), args[0].numel())}


def _summed(tensors: Any) -> Counts | None:
    every = [counts_of(each) for each in tensors]
    if not every or None in every:
        return None
    summed: Counts = {}
    for counts in every:
        for number, count in (counts or {}).items():
            summed[number] = summed.get(number, 0) + count
    return summed


def _follow_counts(name: str, args: Any, kwargs: Any, out: Any, value_of: Callable[[Any], Any]) -> None:
    found, later = None, 0
    if name in _FILLED or name in _FILLED_WITH:
        place = _FILLED.get(name, len(args))
        given = args[place] if len(args) > place else kwargs.get("fill_value", _FILLED_WITH.get(name))
        number = _number(given, value_of)
        found, later = None if number is None else {number: out.numel()}, int(name.endswith("_"))
    elif name in _WRITTEN:
        found, later = _after_writing(name, args, value_of), 1
    elif name in ("cat", "stack"):
        found = _summed(args[0])
    elif name in _SAME and isinstance(out, torch.Tensor) and out.numel() == args[0].numel():
        found = counts_of(args[0])
    if found is not None and len(found) <= _MOST_NUMBERS:
        _note(out, "_gpumem_counts", found, later)


def follow_origins(
    func: Any,
    args: Any,
    kwargs: Any,
    out: Any,
    value_of: Callable[[Any], Any],
    mask_of: Callable[[Any], Any],
    parts_of: Callable[[Any], Any],
) -> None:
    """value_of: of a tensor with one known element. mask_of: what is known of a condition. parts_of: what parts a tensor, if a mask
    has done so."""
    name = base_name(func)
    if args and (isinstance(args[0], torch.Tensor) or name in ("cat", "stack")):
        _follow_segments(name, args, out, mask_of, parts_of)
    _follow_counts(name, args, kwargs, out, value_of)
