"""Values that a recording does not have, and what it takes instead.

.item() is 0 (False for bool, 1 for whole numbers): with 0 the gradient scaler of float16 sees no overflow. What depends
on how many elements a condition holds for (nonzero, masks) is as large as it can be. Each is noted as a warning with the
user's line. What has no such answer is an error that names the line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .errors import RecordError, record_error
from .places import users_line
from .pretended_cuda import Replacements

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


def _no_shapes(func: Any) -> RecordError:
    """An operator that cannot be asked for the shapes of its results."""
    name = func.name().split(".")[0]
    own = func.namespace not in ("aten", "prims")
    return record_error(
        f"{name}() does not tell which shapes it returns",
        f'register a fake implementation: @torch.library.register_fake("{name}"), or impl_abstract before PyTorch 2.4'
        if own
        else "record with a newer PyTorch, or with other operators in its place",
        users_line(),
    )


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        return torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)


class Invented:
    """warn: takes the kind, the text and the user's line of each warning."""

    def __init__(self, warn: Callable[[str, str, str], None]) -> None:
        self._warn = warn

    def install(self, replaced: Replacements) -> None:
        """Also values that are read without the dispatcher, and compilers that would have to know them."""
        for name in ("numpy", "tolist", "__array__"):
            reader = self._reader(name, getattr(torch.Tensor, name))
            for kind in (torch.Tensor, FakeTensor):
                if kind is torch.Tensor or name in vars(kind):
                    replaced.set(kind, name, reader)
        replaced.set(torch, "compile", self._uncompiled)

    def _reader(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
            if isinstance(tensor, FakeTensor):
                self._warn("value", f"{name}() has no values: zeros are taken", users_line())
                tensor = _zeros(tensor)
            with _disable_current_modes():
                return original(tensor, *arguments, **options)

        return read

    def _uncompiled(self, model: Any = None, *_arguments: Any, **_options: Any) -> Any:
        self._warn("rule", "torch.compile: the model is recorded uncompiled", users_line())
        return model if model is not None else lambda function: function

    def answer(self, func: Any, inputs: list[torch.Tensor]) -> tuple[bool, Any]:
        """Whether the operator asks for values, and what it gets."""
        if func is _aten._local_scalar_dense.default:
            dtype = inputs[0].dtype
            value = 0.0 if dtype.is_floating_point else 0j if dtype.is_complex else False if dtype == torch.bool else 1
            self._warn("value", f"the value of a tensor is needed: {value} is taken", users_line())
            return True, value
        if func is _aten.nonzero.default:
            self._warn("value", "nonzero() depends on values: as many as there can be are taken", users_line())
            rows, columns = inputs[0].numel(), inputs[0].ndim
            return True, torch.empty((rows, columns), dtype=torch.int64, device=inputs[0].device)
        if func is _aten.masked_select.default:
            self._warn("value", "masked_select() depends on values: all elements are taken", users_line())
            return True, torch.empty((inputs[0].numel(),), dtype=inputs[0].dtype, device=inputs[0].device)
        if func is _aten.equal.default:
            self._warn("value", "equal() depends on values: True is taken", users_line())
            return True, True
        return False, None

    def without_masks(self, func: Any, args: Any) -> tuple[Any, list[torch.Tensor]]:
        """The arguments, where x[mask] has as many indices as there can be; and these indices."""
        if func is not _aten.index.Tensor or all(each is None or each.dtype != torch.bool for each in args[1]):
            return args, []
        self._warn("value", "an index by a mask depends on values: all elements are taken", users_line())
        indices: list[Any] = []
        made: list[torch.Tensor] = []
        for each in args[1]:
            if each is not None and each.dtype == torch.bool:
                count, device = each.numel(), each.device
                of_mask = [torch.empty(count, dtype=torch.int64, device=device) for _ in range(each.ndim)]
                indices += of_mask
                made += of_mask
            else:
                indices.append(each)
        return (args[0], indices, *args[2:]), made

    def called(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The operator's result; what only the shapes do not tell is an error with the user's line."""
        try:
            return func(*args, **kwargs)
        except _DYNAMIC as error:
            raise record_error(
                f"the size of what {func.name()} returns depends on values, which a recording does not have",
                "give the size (minlength=, output_size=) or leave the operation out of the recorded steps",
                users_line(),
            ) from error
        except (*_UNSUPPORTED, NotImplementedError) as error:
            raise _no_shapes(func) from error
        except RuntimeError as error:
            if "no fake impl" not in str(error) and "no abstract impl" not in str(error):
                raise
            raise _no_shapes(func) from error
