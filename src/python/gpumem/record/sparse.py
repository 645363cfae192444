"""Sparse tensors (COO): their indices and values are tensors as others are, and take what these take.

How many elements a result has, where values decide it, is the most that there can be: coalesce() and sums join none. Operators
that PyTorch works out by shapes are its own; the rules here are of those for which it has none without a GPU. Other layouts
(CSR) and other operators are an error with the user's line.

Source: PyTorch 2.6, aten/src/ATen/native/sparse/SparseTensor.cpp (_coalesce, sparse_coo_tensor), SparseTensorMath.cpp
(_sparse_sum, add), cuda/SparseCUDATensorMath.cu (s_addmm_out_sparse_dense_cuda: rows and columns as int32).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .errors import record_error
from .operators import base_name
from .places import users_line
from .pretended_cuda import Replacements
from .storages import check_layouts, tensors_in

_aten = torch.ops.aten
_Result = tuple[Any, list[torch.Tensor]]  # What an operator returns, and what it takes while it runs.
_Rule = Callable[..., _Result]


def is_sparse(tensor: torch.Tensor) -> bool:
    return bool(tensor.layout == torch.sparse_coo)


def makes_sparse(func: Any) -> bool:
    return base_name(func) in ("_sparse_coo_tensor_with_dims_and_tensors", "_sparse_coo_tensor_with_dims")


def parts_of(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors, with the indices and values of sparse ones in their places."""
    found: list[torch.Tensor] = []
    for each in tensors:
        found += (each._indices(), each._values()) if is_sparse(each) else (each,)
    return found


def _made(like: torch.Tensor, size: Any, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = _aten._sparse_coo_tensor_with_dims_and_tensors(
        indices.shape[0],
        values.ndim - 1,
        list(size),
        indices,
        values,
        dtype=values.dtype,
        layout=torch.sparse_coo,
        device=like.device,
    )
    return made


def _copied(x: torch.Tensor, **options: Any) -> torch.Tensor:
    """Both parts again, with another type or on another device if so asked."""
    device, dtype = options.get("device") or x.device, options.get("dtype") or x.dtype
    indices, values = x._indices(), x._values()
    like = torch.empty(0, device=device)
    return _made(like, x.shape, indices.to(device=device, copy=True), values.to(device=device, dtype=dtype, copy=True))


def _copy(x: torch.Tensor, *_rest: Any, **options: Any) -> _Result:
    return _copied(x, **options), []


def _with_values(x: torch.Tensor, other: Any = None, *_rest: Any, **_options: Any) -> _Result:
    """A result for each element, at the same places. Of two sparse tensors: where both have one."""
    if not is_sparse(x):
        x, other = other, x
    if isinstance(other, torch.Tensor) and is_sparse(other) and other._nnz() < x._nnz():
        x = other
    return _copied(x), []


def _sum_of_two(x: torch.Tensor, other: Any, *_rest: Any, **_options: Any) -> _Result:
    if not is_sparse(x):
        return torch.empty_like(x), []
    if not is_sparse(other):
        return torch.empty_like(other), []
    indices, values = (torch.cat([part(x), part(other)], axis) for part, axis in ((torch.Tensor._indices, 1), (torch.Tensor._values, 0)))
    return _made(x, x.shape, indices, values), []


def _added_in_place(x: torch.Tensor, other: Any, *_rest: Any, **_options: Any) -> _Result:
    """x.add_(sparse), as SGD does with a sparse gradient: its kernel multiplies the values first."""
    if is_sparse(x):
        raise NotImplementedError
    return x, [torch.empty_like(other._values())]


def _dense(x: torch.Tensor, dtype: Any = None, *_rest: Any, **_options: Any) -> _Result:
    return torch.empty(tuple(x.shape), dtype=dtype or x.dtype, device=x.device), []


def _coalesced(x: torch.Tensor) -> _Result:
    """Its keys are sorted: one number for each element, and its place."""
    keys = [torch.empty(x._nnz(), dtype=torch.int64, device=x.device) for _ in range(2)]
    return _aten._coalesced_(_copied(x), True), keys


def _product(rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> _Result:
    """Of a sparse and a dense matrix. rows: of the result's type."""
    if not is_sparse(x) or is_sparse(y):
        raise NotImplementedError
    as_int32 = [torch.empty(length, dtype=torch.int32, device=x.device) for length in (x._nnz(), x._nnz(), x.shape[0] + 1)]
    return rows.new_empty((x.shape[0], *y.shape[1:])), as_int32


def _mm(x: torch.Tensor, y: torch.Tensor, *_rest: Any) -> _Result:
    return _product(y, x, y)


def _addmm(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *_rest: Any, **_options: Any) -> _Result:
    return _product(bias, x, y)


def _summed(x: torch.Tensor, dim: Any = None, *_rest: Any, **_options: Any) -> _Result:
    values, sparse_dim = x._values(), x.sparse_dim()
    gone = sorted(each % x.ndim for each in ([dim] if isinstance(dim, int) else dim)) if dim is not None else list(range(x.ndim))
    left = [each for each in range(sparse_dim) if each not in gone]
    inner = [each for each in range(sparse_dim, x.ndim) if each not in gone]
    shape = tuple(x.shape[each] for each in (*left, *inner))
    if not left:
        return values.new_empty(shape), []
    nnz = x._nnz()
    indices = torch.empty((len(left), nnz), dtype=torch.int64, device=x.device)
    return _made(x, shape, indices, values.new_empty((nnz, *shape[len(left) :]))), []


def _masked(x: torch.Tensor, mask: torch.Tensor, *_rest: Any) -> _Result:
    """The elements of a dense tensor at the places of a sparse one."""
    values = mask._values()
    return _made(mask, x.shape, mask._indices().clone(), x.new_empty(tuple(values.shape))), []


_RULES: dict[str, _Rule] = {
    "_to_copy": _copy,
    "clone": _copy,
    "_coalesce": _coalesced,
    "to_dense": _dense,
    "_to_dense": _dense,
    "mm": _mm,
    "_sparse_mm": _mm,
    "mv": _mm,
    "addmm": _addmm,
    "_sparse_addmm": _addmm,
    "_sparse_sum": _summed,
    "sum": _summed,
    "sparse_mask": _masked,
    "add": _sum_of_two,
    "sub": _sum_of_two,
    "add_": _added_in_place,
    **dict.fromkeys("mul div neg abs sqrt pow relu sign exp log1p expm1".split(), _with_values),
}


def called(func: Any, args: Any, kwargs: Any) -> _Result:
    """What an operator on sparse tensors returns, and what it takes besides while it runs."""
    check_layouts(each for each in tensors_in((args, kwargs)) if not is_sparse(each))
    rule = _RULES.get(base_name(func))
    try:
        return rule(*args, **kwargs) if rule is not None else (func(*args, **kwargs), [])
    except (NotImplementedError, RuntimeError) as error:
        raise record_error(
            f"{func.name()} of a sparse tensor has no rule",
            "record with a dense tensor in its place, or leave it out of the recorded steps",
            users_line(),
        ) from error


def install_sparse(replaced: Replacements, numbers: Callable[[Any], Any]) -> None:
    """torch.sparse_coo_tensor() without a size reads it from the indices. numbers: values of a tensor, None where they are not known."""
    original = torch.sparse_coo_tensor

    def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **options: Any) -> torch.Tensor:
        if size is None and isinstance(indices, torch.Tensor) and indices.ndim == 2:
            known = numbers(indices)
            if known is None and isinstance(values, torch.Tensor):
                raise record_error(
                    "the size of a sparse tensor is read from its indices, whose values a recording does not have",
                    "give the size: torch.sparse_coo_tensor(indices, values, size)",
                    users_line(),
                )
            if known is not None and isinstance(values, torch.Tensor):
                size = (*(int(each) + 1 for each in known.amax(1)), *values.shape[1:])
        return original(indices, values, **options) if size is None else original(indices, values, size, **options)

    replaced.set(torch, "sparse_coo_tensor", sparse_coo_tensor)
