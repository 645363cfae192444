"""Which values the elements of a tensor can have, where the values themselves are not known: labels of levels that were picked
by unknown indices are still levels, and argmax() over 80 classes gives at most 80 different numbers.

And how many elements are other than zero, at most: of zeros in which places were marked, as many as there were places. And
the greatest that each element can be, where the program limits it: StyleGAN's augmentation pads images by a random margin that it
keeps below their width. The peak of a training comes from the greatest. What was counted (how many tokens each expert gets) is
shared evenly, as the counts of a set add up to it. What nonzero() and unique() give is different from element to element.

Input: operators as they run. Output: a set of whole numbers, or a number of elements; None where nothing bounds it. It is noted
on the tensor with its version, so what is written into later has none, unless it is known what is written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Optional

import torch

from torch.utils._python_dispatch import _disable_current_modes

from .operators import base_name, is_view
from .origins import Segments, holds_in

Values = Optional[frozenset[int]]


class Written(frozenset[int]):
    """Values of which some were written into places that values decide: nobody knows how many elements have each."""


Numbers = Callable[[Any], Optional[list[Any]]]
#: Different values; what has more is as good as unknown.
MOST = 4096
_NUMBERS = frozenset((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.float32, torch.float16))
_OF_A_NUMBER = {"full": 1, "full_like": 1, "new_full": 2}  # And the place of the number.
_ALIKE = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_PICKS = frozenset(
    "index index_select gather masked_select take clone _to_copy repeat flip roll contiguous repeat_interleave".split()
)
_JOINS = frozenset(("cat", "stack"))
_SHIFTS = {"add": 1, "sub": -1}  # By a number.
#: Writes in place into some elements, with the place of what is written.
_WRITES = {"index_put_": 2, "masked_fill_": 2, "masked_scatter_": 2, "index_fill_": 3, "index_copy_": 3, "scatter_": 3}
#: The result is a place on an axis, or the second one is. With the place of the argument that names the axis.
_PLACES = {"argmax": 1, "argmin": 1, "argsort": 1, "max": 1, "min": 1, "topk": 2, "sort": 1}


def possible_values(tensor: Any) -> Values:
    noted = getattr(tensor, "_gpumem_values", None)
    return noted[1] if noted is not None and noted[0] == tensor._version else None


def _note(tensor: Any, values: Values, later: int = 0) -> None:
    """later: 1 where the operator writes in place. The version is counted up when it has returned."""
    if values is not None and len(values) <= MOST and isinstance(tensor, torch.Tensor) and tensor.dtype in _NUMBERS:
        tensor._gpumem_values = (tensor._version + later, values)


def _of_argument(tensor: Any, known: Numbers) -> Values:
    """Of a tensor whose values are known, these."""
    found = possible_values(tensor)
    if found is not None or not isinstance(tensor, torch.Tensor) or tensor.dtype not in _NUMBERS:
        return found
    numbers = known(tensor)
    if numbers is None or not all(math.isfinite(each) and each == int(each) for each in numbers):
        return None  # a mask of -inf has no whole numbers
    return frozenset(map(int, numbers))


def _of_all(tensors: Any, known: Numbers) -> Values:
    every = [_of_argument(each, known) for each in tensors]
    if not every or None in every:
        return None
    union: frozenset[int] = frozenset().union(*[each for each in every if each is not None])
    return Written(union) if any(isinstance(each, Written) for each in every) else union


def _after_write(target: Any, written: Any, known: Numbers) -> Values:
    """Of a tensor that had few values and got others in some places."""
    before = possible_values(target)
    got = _of_argument(written, known) if isinstance(written, torch.Tensor) else _of_number(written)
    return None if before is None or got is None else Written(before | got)


def _places(name: str, args: Any, kwargs: Any) -> Values:
    """All places on the axis; argmax() without one is a place in the whole tensor."""
    source, at = args[0], _PLACES[name]
    axis = args[at] if len(args) > at else kwargs.get("dim", None if name in ("argmax", "argmin") else -1)
    size = source.numel() if axis is None else source.shape[axis] if source.ndim else 1
    return frozenset(range(size)) if size <= MOST else None


def _of_number(number: Any) -> Values:
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    return frozenset((int(number),)) if whole else None


def _shifted(values: Values, by: int) -> Values:
    return None if values is None else type(values)(each + by for each in values)


def _that_hold(values: Values, segments: Segments | None) -> Values:
    """Of elements that masks picked: values for which one of these holds."""
    if values is None or segments is None or any(mask is None for _, mask in segments):
        return values
    return type(values)(each for each in values if any(mask is not None and mask.holds(each) for _, mask in segments))


def taken(values: Values) -> int:
    """The one that is taken where nothing else is known: 1, or the greatest where 1 is not among them."""
    return 1 if not values or 1 in values else max(values)


def follow_values(func: Any, args: Any, kwargs: Any, out: Any, known: Numbers) -> None:
    """Notes what is known of an operator's results. known: the numbers in a small tensor, None where they are not known."""
    name = base_name(func)
    results = out if isinstance(out, (list, tuple)) else (out,)
    if not any(isinstance(each, torch.Tensor) and each.dtype in _NUMBERS for each in results):
        return
    if name in _PLACES:
        found = _places(name, args, kwargs)
        results = results[-1:]
    elif name in _OF_A_NUMBER:
        place = _OF_A_NUMBER[name]
        found = _of_number(args[place] if len(args) > place else kwargs.get("fill_value"))
    elif name in _ALIKE:
        found = frozenset((_ALIKE[name],))
    elif name in _JOINS:
        found = _of_all(args[0], known)
    elif name in _SHIFTS and isinstance(args[1], int) and kwargs.get("alpha", 1) == 1:
        found = _shifted(_of_argument(args[0], known), args[1] * _SHIFTS[name])
    elif name in _PICKS or is_view(func):
        found = _that_hold(_of_argument(args[0], known), holds_in(out))
    elif name in _WRITES and len(args) > _WRITES[name]:
        _note(args[0], _after_write(args[0], args[_WRITES[name]], known), later=1)
        return
    else:
        return
    for each in results:
        _note(each, found)


# ----------------------------------------------------------------------------------------- columns

_SAME_COLUMNS = frozenset(("_to_copy", "clone", "detach", "alias"))
_Columns = dict[int, frozenset[int]]


def _columns(tensor: torch.Tensor) -> _Columns:
    """What is known of the columns of a table: numbers of images beside the corners of boxes."""
    if tensor.ndim != 2:
        return {}
    noted = getattr(tensor, "_gpumem_columns", None)
    if noted is not None and noted[0] == tensor._version:
        columns: _Columns = noted[1]
        return columns
    values = possible_values(tensor)
    return {} if values is None else dict.fromkeys(range(min(tensor.shape[1], 8)), values)


def _joined_columns(tables: Any, axis: int) -> _Columns:
    every = [_columns(each) for each in tables]
    joined: _Columns = {}
    if axis in (0, -2):
        for column in set(every[0]).intersection(*every[1:]):
            joined[column] = frozenset().union(*[each[column] for each in every])
        return joined
    before = 0
    for table, columns in zip(tables, every):
        joined.update({before + column: values for column, values in columns.items()})
        before += table.shape[-1]
    return joined


def follow_columns(func: Any, args: Any, kwargs: Any, out: Any) -> None:
    """Notes what is known of the columns of an operator's result; of one column alone, that it has these values."""
    name = base_name(func)
    if name == "select" and args[0].ndim == 2 and args[1] == 1:
        _note(out, _columns(args[0]).get(args[2]))
        return
    columns: _Columns = {}
    if name == "cat" and out.ndim == 2:
        columns = _joined_columns(args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0))
    elif name in _SAME_COLUMNS or (name == "slice" and (len(args) < 2 or args[1] == 0)):
        columns = _columns(args[0])
    elif name == "index" and len(args[1]) == 1:  # Rows of it.
        columns = _columns(args[0])
    if columns and isinstance(out, torch.Tensor) and out.ndim == 2:
        out._gpumem_columns = (out._version, columns)


# ------------------------------------------------------------------------------------------- marks

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_EITHER = frozenset("logical_or bitwise_or logical_or_ bitwise_or_ __or__ __ior__ add add_".split())
_BOTH = frozenset("logical_and bitwise_and logical_and_ bitwise_and_ __and__ __iand__ mul mul_".split())
_COPIES = frozenset("_to_copy clone view squeeze unsqueeze _unsafe_view alias detach".split())


def marked_at_most(tensor: Any) -> int | None:
    """Elements that are other than zero."""
    noted = getattr(tensor, "_gpumem_marked", None)
    return noted[1] if noted is not None and noted[0] == tensor._version else None


def _places_written(indices: Any, tensor: Any) -> int | None:
    """Elements of the tensor that the indices name; masks name nobody knows how many."""
    given = [each for each in indices if each is not None]
    if not given or any(each.dtype == torch.bool for each in given) or any(each is None for each in indices):
        return None
    places: int = max(each.numel() for each in given)
    for size in tensor.shape[len(given) :]:
        places *= size
    return places


def _sum_of_all(bounds: list[int | None], most: int = sys.maxsize) -> int | None:
    known = [each for each in bounds if each is not None]
    return min(sum(known), most) if len(known) == len(bounds) else None


def _after_writing(args: Any, zero: bool) -> int | None:
    before = marked_at_most(args[0])
    if before is None or zero:
        return before
    places = _places_written(args[1], args[0])
    return None if places is None else min(before + places, args[0].numel())


def follow_marks(func: Any, args: Any, out: Any, known: Numbers) -> None:
    """Notes how many elements of the result are other than zero, at most."""
    name = base_name(func)
    found = None
    if not isinstance(out, torch.Tensor):
        return
    if name in _ZEROS:
        found = 0
    elif not args or not (isinstance(args[0], torch.Tensor) or name == "cat"):
        return
    elif name in ("index_put_", "index_put"):
        numbers = known(args[2])
        found = _after_writing(args, zero=numbers is not None and not any(numbers))
    elif name == "cat":
        found = _sum_of_all([marked_at_most(each) for each in args[0]])
    elif name in _EITHER or name in _BOTH:
        bounds = [marked_at_most(each) for each in args[:2]]
        if name in _EITHER:
            found = _sum_of_all(bounds, out.numel())
        else:
            found = min((each for each in bounds if each is not None), default=None)
    elif name in _COPIES or (name in ("ne", "gt") and len(args) > 1 and isinstance(args[1], (int, float)) and args[1] == 0):
        found = marked_at_most(args[0])
    elif name in ("eq", "ge", "gt") and len(args) > 1 and isinstance(args[1], (int, float)) and args[1] > 0:
        found = marked_at_most(args[0])
    if found is not None:
        in_place = out is args[0] if args else False  # Its version is counted up after this.
        out._gpumem_marked = (out._version + int(in_place), found)


# ----------------------------------------------------------------------------------------- greatest

_KEEP_THE_ORDER = frozenset("ceil floor round trunc _to_copy clone detach alias".split())
_ADD_UP = frozenset(("sum", "cumsum"))  # What each can be at most, and what is shared, may be added.
_LIMITS = {"clamp": 2, "clamp_max": 1, "minimum": 1}  # And the place of the limit.
_COUNTS = frozenset(("histc", "bincount"))
_DIFFER = frozenset(("nonzero", "_unique2", "unique_dim", "unique_consecutive"))
AT_MOST, EVENLY = "the most that the program lets it be", "an even share of what is counted"
DIFFERENT = "a number of its own"


def greatest(tensor: Any) -> Any:
    """The most that each element can be, as a tensor of the CPU; None where the program sets no limit."""
    noted = getattr(tensor, "_gpumem_greatest", None)
    return noted[1] if noted is not None and noted[0] == tensor._version else None


def how_great(tensor: Any) -> str:
    """Of a tensor that has a greatest: where it comes from."""
    how: str = tensor._gpumem_greatest[2]
    return how


def _even_shares(counted: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    most, number = counted.numel(), max(counts.numel(), 1)
    return torch.tensor([(most * (place + 1)) // number - (most * place) // number for place in range(counts.numel())])


def _noted(func: Any, args: Any, kwargs: Any, out: Any, values_of: Callable[[Any], Any]) -> tuple[Any, str] | None:
    """Of operators that count, and of those that give each number once."""
    name = base_name(func)
    first = out[0] if isinstance(out, (list, tuple)) else out
    if name in _COUNTS and (kwargs.get("weights") if name == "bincount" else None) is None:
        return None if name == "bincount" and len(args) > 1 and args[1] is not None else (_even_shares(args[0], first), EVENLY)
    if name in _DIFFER and args[0].ndim == 1:
        values, number = possible_values(args[0]) if name != "nonzero" else None, first.numel()
        found = sorted(values)[:number] if values is not None and len(values) >= number else range(number)
        return torch.tensor(list(found)).view(tuple(first.shape)), DIFFERENT
    picks = name == "index" and first.ndim == 1 == args[0].ndim and args[1][0].dtype != torch.bool
    different = _different(args[0], values_of) if picks and first.numel() <= args[0].numel() else None
    return None if different is None else (different[: first.numel()], DIFFERENT)


def _different(numbers: Any, values_of: Callable[[Any], Any]) -> Any:
    """The numbers, of which no two are alike; None where some may be. What a random order picks of them is so too."""
    if greatest(numbers) is not None:
        return greatest(numbers) if how_great(numbers) == DIFFERENT else None
    known = values_of(numbers) if not numbers.dtype.is_floating_point and 1 < numbers.numel() <= MOST else None
    return known if known is not None and known.unique().numel() == known.numel() else None


def _limit(given: Any, values_of: Callable[[Any], Any]) -> Any:
    """A limit as a tensor of the CPU, where it is known or has one itself."""
    if not isinstance(given, torch.Tensor):
        return None if given is None else torch.tensor(float(given), dtype=torch.float64, device="cpu")
    found = greatest(given) if values_of(given) is None else values_of(given)
    return None if found is None else found.to(torch.float64)


def _limited(name: str, args: Any, kwargs: Any, values_of: Callable[[Any], Any]) -> Any:
    place = _LIMITS[name]
    given = args[place] if len(args) > place else kwargs.get("max")
    limits = [each for each in (_limit(args[0], values_of), _limit(given, values_of)) if each is not None]
    return None if not limits else limits[0] if len(limits) == 1 else torch.minimum(*limits)


def follow_greatest(func: Any, args: Any, kwargs: Any, out: Any, values_of: Callable[[Any], Any]) -> None:
    """Notes the greatest that the elements of an operator's results can be. values_of: a tensor's values, or None."""
    if not args or not isinstance(args[0], torch.Tensor):
        return
    name = base_name(func)
    limits, before = name in _LIMITS, greatest(args[0])
    results = out if isinstance(out, (list, tuple)) else (out,)
    if isinstance(results[0], torch.Tensor) and results[0].numel() <= MOST and values_of(results[0]) is None:
        with _disable_current_modes():
            noted = _noted(func, args, kwargs, out, values_of)
        if noted is not None:
            results[0]._gpumem_greatest = (results[0]._version, *noted)
            return
    if not limits and (before is None or not (name in _KEEP_THE_ORDER or name in _ADD_UP or is_view(func))):
        return
    if not all(isinstance(each, torch.Tensor) and each.numel() <= MOST for each in results):
        return
    with _disable_current_modes():
        try:
            options = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")}
            found = _limited(name, args, kwargs, values_of) if limits else func(before, *args[1:], **options)
            if found is None or (limits and not torch.isfinite(found).all()):
                return
            how = AT_MOST if limits else how_great(args[0])
            for each, limit in zip(results, found if isinstance(found, (list, tuple)) else (found,)):
                each._gpumem_greatest = (each._version, limit.expand(tuple(each.shape)), how)
        except RuntimeError:  # A view that the values' strides do not allow: its limit is not known.
            return


def follow_exchange(func: Any, args: Any, out: Any) -> None:
    """Counts that ranks exchange, each the same number with each: the others have counted as many of each as this one."""
    name = base_name(func)
    if name == "alltoall_base_" and not args[3] and not args[4]:
        received, sent = args[0], args[1]
    elif name == "all_to_all_single" and len(set(args[1])) < 2 and len(set(args[2])) < 2:
        received, sent = out, args[0]
    else:
        return
    limit = greatest(sent)
    if limit is not None and received.shape == sent.shape:
        received._gpumem_greatest = (received._version, limit, how_great(sent))
