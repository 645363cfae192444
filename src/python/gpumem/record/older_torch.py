"""Training with an older PyTorch than the one that records: what it kept for longer, and what it did not copy.

    with gpumem.record.pretend_torch("1.7"):
        gpumem.record.step(make_step, batch_size=8, path="run.json.gz")

A program that asks for PyTorch's version goes the ways of the one that records, unless it is told of the older one. Then the
operators are there that it calls on such a way and that are gone: gradients of cuDNN's convolutions (StyleGAN3's own convolution,
before 1.11).

Source: PyTorch's tools/autograd/derivatives.yaml and torch/optim/optimizer.py of 1.9, 1.13.1 and 2.6, and where they changed:
relu, pull request 63089; in-place hardtanh, issue 95432; softmax, pull request 66018.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .errors import record_error
from .pretended_cuda import Replacements

_Version = tuple[int, int]

#: Of the releases below, the first in which it is as it is now.
_RELU_KEEPS_ITS_RESULT = (1, 10)  # Before, the input: a tensor more, where the next operator keeps the result.
_RELU6_IN_PLACE_COPIES = (1, 10)  # Before, it kept the result and copied nothing.
_SOFTMAX_KEEPS_ITS_RESULT_ALONE = (1, 11)  # Before, the input as well.
_CUDNN_OPERATORS_ARE_GONE = (1, 11)  # Before, aten::cudnn_convolution_backward_weight and its transposed one.
_OPERATORS_COME_WITH_NAMES = (1, 12)  # Of torch._C._jit_get_operation(): a pair. Before, the operator.
_ZERO_GRAD_FREES = (2, 0)  # Before, gradients were filled with zeros.
_OPTIMIZERS_USE_FOREACH = (2, 0)  # Before, they went from parameter to parameter.
_AS_NOW = max(
    _RELU_KEEPS_ITS_RESULT,
    _RELU6_IN_PLACE_COPIES,
    _SOFTMAX_KEEPS_ITS_RESULT_ALONE,
    _ZERO_GRAD_FREES,
    _OPTIMIZERS_USE_FOREACH,
)
_OLDEST = (1, 7)

_SOFTMAX = frozenset(("aten::_softmax", "aten::_log_softmax"))

_pretended: _Version | None = None


def version_of(text: str) -> _Version:
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    if found is None:
        raise record_error(f"{text!r} is no version of PyTorch", "give it as 1.13 or 1.13.1")
    version = int(found[1]), int(found[2])
    if version < _OLDEST:
        raise record_error(f"what PyTorch {text} keeps is not known", "give 1.7 or later; 1.7 is the nearest")
    if version > _this_torch():
        raise record_error(
            f"what PyTorch {text} keeps is not known: PyTorch {torch.version.__version__} records, which is older",
            "record with the newer one, or give the version of this one",
        )
    return version


def _this_torch() -> _Version:
    found = re.match(r"(\d+)\.(\d+)", torch.version.__version__)
    assert found is not None, torch.version.__version__
    return int(found[1]), int(found[2])


@contextlib.contextmanager
def pretended_torch(text: str, tell: bool = False) -> Iterator[None]:
    """While it lasts, recordings are of training with this version. tell: programs read it as torch.__version__ too, and what is
    imported meanwhile."""
    global _pretended
    version, before = version_of(text), _pretended
    with Replacements() as replaced:
        if tell:
            replaced.set(torch, "__version__", type(torch.__version__)(text if text.count(".") > 1 else f"{text}.0"))
            if version < _OPERATORS_COME_WITH_NAMES:
                as_of_now = version >= _CUDNN_OPERATORS_ARE_GONE
                replaced.set(torch._C, "_jit_get_operation", _operators_by_name(torch._C._jit_get_operation, as_of_now))
        _pretended = version
        try:
            yield
        finally:
            _pretended = before


class OlderTorch:
    """Follows the operators of a recording. Without a version that is pretended it does nothing."""

    def __init__(self) -> None:
        self.version = _pretended
        self._softmax = self._before(_SOFTMAX_KEEPS_ITS_RESULT_ALONE)
        self._made: list[tuple[torch.Tensor, Any]] = []  # Results, and the storages of inputs that they keep.

    def install(self, replaced: Replacements) -> None:
        if self._before(_ZERO_GRAD_FREES):
            _fill_with_zeros(replaced)
        if self._before(_OPTIMIZERS_USE_FOREACH):
            _one_parameter_at_a_time(replaced)
        if self._before(_RELU_KEEPS_ITS_RESULT):
            for owner in (torch, torch.Tensor):
                replaced.set(owner, "relu", _relu)
        if self._before(_RELU6_IN_PLACE_COPIES):
            replaced.set(torch._C._nn, "hardtanh_", _hardtanh_in_place)
            replaced.set(torch._C._nn, "relu6_", lambda x: _hardtanh_in_place(x, 0.0, 6.0))

    def _before(self, version: _Version) -> bool:
        return self.version is not None and self.version < version

    def setting(self) -> dict[str, str]:
        """The version for a recording's settings; nothing: none is pretended."""
        return {} if self.version is None else {"torch": ".".join(map(str, self.version))}

    def said(self) -> str:
        """What a recording says of it; empty: no version is pretended."""
        if self.version is None:
            return ""
        name = "PyTorch " + ".".join(map(str, self.version))
        if self._before(_AS_NOW):
            return f"tensors are kept as {name} keeps them"
        return f"tensors are kept as this PyTorch keeps them: nothing of {name} that is known differs"

    def called(self, func: Any, inputs: list[torch.Tensor], out: Any) -> None:
        """An operator ran. Its result has no node yet: autograd makes it when the operator has returned."""
        if self._softmax and func.name() in _SOFTMAX and torch.is_grad_enabled() and inputs[0].requires_grad:
            self._made.append((out, inputs[0].untyped_storage()))

    def settle(self) -> None:
        """The next operator begins: nodes of results keep the inputs until they have run."""
        if not self._made:
            return
        made, self._made = self._made, []
        for result, storage in made:
            if result.grad_fn is not None:
                result.grad_fn.register_hook(_holder(storage))


def _holder(storage: Any) -> Callable[..., None]:
    """A hook that holds the storage until it is called."""
    held = [storage]

    def let_go(*_gradients: object) -> None:
        held.clear()

    return let_go


def _weight_gradient(transposed: bool) -> Callable[..., torch.Tensor]:
    """cudnn_convolution_backward_weight of ConvPlaceholders.cpp in 1.9, of the operator that has taken its place (pull request
    61636): the weight's gradient, of a weight that only its shape is known of."""

    def gradient(
        shape: Any, gradient: torch.Tensor, x: torch.Tensor, padding: Any, stride: Any, dilation: Any, groups: int, *_flags: bool
    ) -> torch.Tensor:
        weight = x[(0,) * x.ndim].expand(tuple(shape))
        zeros, wanted = [0] * len(padding), [False, True, False]
        made = torch.ops.aten.convolution_backward(
            gradient, x, weight, None, stride, padding, dilation, transposed, zeros, groups, wanted
        )
        found: torch.Tensor = made[1]
        return found

    return gradient


def _grid_gradients(*arguments: Any) -> Any:
    """Of both, always: which are wanted is told since 1.11."""
    return torch.ops.aten.grid_sampler_2d_backward(*arguments, [True, True])


def _operators_by_name(original: Callable[[str], Any], as_of_now: bool) -> Callable[[str], Any]:
    """torch._C._jit_get_operation() returned the operator alone, and some have been other ones."""
    other: dict[str, Callable[..., Any]] = {
        "aten::cudnn_convolution_backward_weight": _weight_gradient(transposed=False),
        "aten::cudnn_convolution_transpose_backward_weight": _weight_gradient(transposed=True),
        "aten::grid_sampler_2d_backward": _grid_gradients,
    }

    def operator(name: str) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith(("torch.", "gpumem.")):  # torch.ops finds operators by it.
            return original(name)
        if name in other and not as_of_now:
            return other[name]
        found = original(name)
        return found[0] if isinstance(found, tuple) else found

    return operator


def _fill_with_zeros(replaced: Replacements) -> None:
    for kind in (torch.optim.Optimizer, torch.nn.Module):
        zero_grad = kind.zero_grad

        def older(this: Any, set_to_none: bool = False, *, zero_grad: Any = zero_grad) -> None:
            zero_grad(this, set_to_none=set_to_none)

        replaced.set(kind, "zero_grad", older)


def _one_parameter_at_a_time(replaced: Replacements) -> None:
    name = "_default_to_fused_or_foreach"
    for found in pkgutil.iter_modules(torch.optim.__path__):
        module = importlib.import_module(f"torch.optim.{found.name}")
        if not found.ispkg and hasattr(module, name):
            replaced.set(module, name, lambda *_arguments, **_options: (False, False))


class _Relu(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x.clamp_min(0)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        return torch.ops.aten.threshold_backward(gradient, context.saved_tensors[0], 0)


def _relu(input: torch.Tensor) -> torch.Tensor:  # Programs may call it by PyTorch's name of the parameter.
    return _Relu.apply(input)


class _HardtanhInPlace(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, x: torch.Tensor, least: float, most: float) -> torch.Tensor:
        context.mark_dirty(x)
        context.limits = least, most
        x.clamp_(least, most)
        context.save_for_backward(x)
        return x

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        return torch.ops.aten.hardtanh_backward(gradient, context.saved_tensors[0], *context.limits), None, None


def _hardtanh_in_place(x: torch.Tensor, least: float = -1.0, most: float = 1.0) -> torch.Tensor:
    return _HardtanhInPlace.apply(x, least, most)
