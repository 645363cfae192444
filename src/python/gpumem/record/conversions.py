"""module.to(...) with fake tensors.

PyTorch writes a converted parameter into the old one, which keeps what else refers to it: tied weights, optimizers. A fake
tensor cannot change its device so. Here a new parameter takes the old one's place, and all that referred to the old one
(other modules, optimizers' groups) gets the new one.

What a lazy module has not made yet goes there when it is made.
"""

from __future__ import annotations

import contextlib
import importlib
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from .pretended_cuda import Replacements
from .storages import local

_Conversion = Callable[[Any], Any]


def _new_parameter(old: nn.Parameter, converted: torch.Tensor) -> nn.Parameter:
    """As torch.nn.Module._apply makes it where it overwrites; what was noted on the old one is kept."""
    new = nn.Parameter(converted, old.requires_grad)
    for name, value in vars(old).items():
        if name not in vars(new):
            setattr(new, name, value)
    return new


def _moved_later(lazy: Any, fn: _Conversion) -> Any:
    lazy._gpumem_moves = (*getattr(lazy, "_gpumem_moves", ()), fn)
    return lazy


def _as_moved(tensor: Any) -> Any:
    for move in vars(tensor).pop("_gpumem_moves", ()):
        tensor = move(tensor)
    return tensor


class Conversions:
    """Stands in for Module._apply while a recording lasts. optimizers: all that were made."""

    def __init__(self) -> None:
        self.optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._made: dict[int, tuple[nn.Parameter, nn.Parameter]] | None = None  # Old and new, while a conversion runs.

    def install(self, replaced: Replacements) -> None:
        this = self
        init = torch.optim.Optimizer.__init__

        def apply(module: nn.Module, fn: _Conversion, recurse: bool = True) -> nn.Module:
            return this._convert(module, fn, recurse)

        def note_optimizer(optimizer: torch.optim.Optimizer, /, *arguments: Any, **options: Any) -> None:
            init(optimizer, *arguments, **options)
            this.optimizers.add(optimizer)

        replaced.set(nn.Module, "_apply", apply)
        replaced.set(torch.optim.Optimizer, "__init__", note_optimizer)
        self._install_lazy(replaced)
        self._install_fsdp(replaced)

    def _convert(self, module: nn.Module, fn: _Conversion, recurse: bool) -> nn.Module:
        """Of a module and its parts; those with an _apply of their own call this one for what is the same."""
        outermost = self._made is None
        if self._made is None:
            self._made = {}
        try:
            if recurse:
                for part in module.children():
                    part._apply(fn)
            self._convert_own(module, fn, self._made)
            if outermost:
                self._tell_optimizers(self._made)
        finally:
            if outermost:
                self._made = None
        return module

    def _install_lazy(self, replaced: Replacements) -> None:
        """A lazy module makes its parameters when it first runs: real ones on the CPU, which go where it was moved before."""
        lazy: Any = nn.modules.lazy.LazyModuleMixin
        infer = lazy._infer_parameters

        def inferred(this: Any, module: Any, arguments: Any, options: Any = None) -> None:
            with _disable_current_modes():
                infer(this, module, arguments, options)
            made: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}
            self._convert_own(module, _as_moved, made)
            self._tell_optimizers(made)

        replaced.set(lazy, "_infer_parameters", inferred)

    def _install_fsdp(self, replaced: Replacements) -> None:
        """Both kinds move modules by writing into parameters. A build may lack them, or have them elsewhere."""
        kinds: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
            ("torch.distributed.fsdp._init_utils", "_move_module_to_device", lambda _before: self._move_for_fsdp),
            ("torch.distributed.fsdp._fully_shard._fully_shard", "_get_managed_states", self._moved_for_fsdp2),
            ("torch.distributed._composable.fsdp.fully_shard", "_get_managed_states", self._moved_for_fsdp2),
        )
        for name, function, own in kinds:
            with contextlib.suppress(ImportError, AttributeError):
                module = importlib.import_module(name)
                replaced.set(module, function, own(getattr(module, function)))

    def _moved_for_fsdp2(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """fully_shard(module): what the modules have themselves goes to the GPU, but for what has no memory yet."""

        def moved(modules: list[nn.Module], ignored: Any = None, *rest: Any) -> Any:
            made: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}

            def own(tensor: torch.Tensor) -> torch.Tensor:
                stays = tensor.device.type != "cpu" or (ignored is not None and tensor in ignored)
                return tensor if stays else tensor.cuda()

            for module in modules:
                self._convert_own(module, own, made)
            self._tell_optimizers(made)
            return original(modules, *(() if ignored is None else (ignored,)), *rest)

        return moved

    def _move_for_fsdp(self, module: nn.Module, ignored: Any, ignored_buffers: Any, device: torch.device | None) -> None:
        """FullyShardedDataParallel(module, device_id=0) moves what is on the CPU, and nothing of modules that are sharded already
        (_move_module_to_device of torch/distributed/fsdp/_init_utils.py). It writes into parameters as well."""
        if device is None:
            return

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            stays = tensor.device.type != "cpu" or tensor in ignored or tensor in ignored_buffers
            return tensor if stays else tensor.to(device)

        sharded = importlib.import_module("torch.distributed.fsdp").FullyShardedDataParallel
        made: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}
        left = [module]
        while left:
            part = left.pop()
            self._convert_own(part, moved, made)
            left.extend(each for each in part.children() if not isinstance(each, sharded))
        self._tell_optimizers(made)

    def _convert_own(
        self, module: nn.Module, fn: _Conversion, made: dict[int, tuple[nn.Parameter, nn.Parameter]]
    ) -> None:
        for name, old in module._parameters.items():
            if old is None:
                continue
            if id(old) not in made:
                made[id(old)] = (old, self._converted(old, fn))
            module._parameters[name] = made[id(old)][1]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = _moved_later(buffer, fn) if nn.parameter.is_lazy(buffer) else fn(buffer)

    def _converted(self, old: nn.Parameter, fn: _Conversion) -> nn.Parameter:
        if nn.parameter.is_lazy(old):
            later: nn.Parameter = _moved_later(old, fn)
            return later
        with torch.no_grad():
            converted = fn(old)
            if converted is old or local(converted) is local(old):
                return old
            new = _new_parameter(old, converted)
            if old.grad is not None:
                new.grad = fn(old.grad).requires_grad_(old.grad.requires_grad)
        return new

    def _tell_optimizers(self, made: dict[int, tuple[nn.Parameter, nn.Parameter]]) -> None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [made[id(each)][1] if id(each) in made else each for each in group["params"]]
