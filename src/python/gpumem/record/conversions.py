"""module.to(...) with fake tensors.

PyTorch writes a converted parameter into the old one, which keeps what else refers to it: tied weights, optimizers. A fake
tensor cannot change its device so. Here a new parameter takes the old one's place, and all that referred to the old one
(other modules, optimizers' groups) gets the new one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .pretended_cuda import Replacements

_Apply = Callable[..., nn.Module]


class Conversions:
    """Stands in for Module._apply while a recording lasts."""

    def __init__(self) -> None:
        self.optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._inside = False

    def install(self, replaced: Replacements) -> None:
        future = torch.__future__
        before = future.get_overwrite_module_params_on_conversion()
        replaced.callback(future.set_overwrite_module_params_on_conversion, before)
        future.set_overwrite_module_params_on_conversion(True)

        original: _Apply = nn.Module._apply
        init = torch.optim.Optimizer.__init__
        this = self

        def apply(module: nn.Module, fn: Callable[[Any], Any], *arguments: Any, **options: Any) -> nn.Module:
            if this._inside:
                return original(module, fn, *arguments, **options)
            return this._convert(original, module, fn, arguments, options)

        def note_optimizer(optimizer: torch.optim.Optimizer, *arguments: Any, **options: Any) -> None:
            init(optimizer, *arguments, **options)
            this.optimizers.add(optimizer)

        replaced.set(nn.Module, "_apply", apply)
        replaced.set(torch.optim.Optimizer, "__init__", note_optimizer)

    def _convert(
        self, original: _Apply, module: nn.Module, fn: Callable[[Any], Any], arguments: Any, options: Any
    ) -> nn.Module:
        places = [
            (part, name, parameter)
            for part in module.modules()
            for name, parameter in part._parameters.items()
            if parameter is not None
        ]
        made: dict[int, tuple[Any, Any]] = {}  # What fn made of each, by the old one's id; the old one is kept alive.

        def once(tensor: Any) -> Any:
            if id(tensor) not in made:
                made[id(tensor)] = (tensor, fn(tensor))
            return made[id(tensor)][1]

        self._inside = True
        try:
            result = original(module, once, *arguments, **options)
        finally:
            self._inside = False
        self._replace(places, made)
        return result

    def _replace(self, places: list[tuple[nn.Module, str, nn.Parameter]], made: dict[int, tuple[Any, Any]]) -> None:
        new: dict[int, nn.Parameter] = {}
        for part, name, old in places:
            now = part._parameters.get(name)
            if now is None or now is old or id(old) not in made:
                continue
            unchanged = made[id(old)][1] is old
            part._parameters[name] = new.setdefault(id(old), old if unchanged else now)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [new.get(id(each), each) for each in group["params"]]
