"""Names of modules, and which of them runs: hooks tell in the forward, the numbers of autograd's nodes in the backward."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module

from .storages import local


class Modules:
    """Follows forward() of every module. on_root: called as the forward of a module begins that is in no other's. on_new:
    called with a module and its name, as it first runs. run_root: runs a forward that is in no other's (repeats.py)."""

    def __init__(
        self,
        on_root: Callable[[], None],
        on_new: Callable[[nn.Module, str], None],
        run_root: Callable[..., Any],
    ) -> None:
        self.roots: list[nn.Module] = []
        self._on_root, self._on_new, self._run_root = on_root, on_new, run_root
        self._ran: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._stack: list[str] = []
        self._of_node: dict[int, str] = {}  # By the sequence number of autograd's node.
        self._handles: list[Any] = []
        self._replaced: tuple[Callable[..., Any], Callable[..., Any]] | None = None  # __call__ before, and ours.

    def follow(self) -> None:
        self._handles = [
            nn_module.register_module_forward_pre_hook(self._enter),
            nn_module.register_module_forward_hook(self._leave, always_call=True),
        ]
        if self._replaced is None:
            before = nn.Module.__call__
            nn.Module.__call__ = self._calling(before)
            self._replaced = before, nn.Module.__call__

    def _calling(self, before: Callable[..., Any]) -> Callable[..., Any]:
        def called(module: nn.Module, /, *arguments: Any, **named: Any) -> Any:
            is_root = self._handles and not self._stack and torch._C._current_graph_task_id() == -1
            if not is_root or self._others_hook():
                return before(module, *arguments, **named)
            run = functools.partial(before, module, *arguments, **named)
            return self._run_root(module, run, self._on_root, arguments, named)

        return called

    def _others_hook(self) -> bool:
        """A hook on every module, beside those here, takes what a forward makes."""
        own = {each.id for each in self._handles}
        return any(hooks.keys() - own for hooks in (nn_module._global_forward_hooks, nn_module._global_forward_pre_hooks))

    def stop(self) -> None:
        """What another has put in the place of __call__ since stays, and calls what was there before."""
        if self._replaced is not None and nn.Module.__call__ is self._replaced[1]:
            nn.Module.__call__ = self._replaced[0]
            self._replaced = None
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @contextlib.contextmanager
    def as_one(self, module: nn.Module | None) -> Iterator[None]:
        """What is compiled has no modules inside, and no hooks. module: what was compiled, if it is one."""
        outside = not self._handles
        entered = module is not None and not outside and not self._stack
        if entered:
            self._enter(module, ())
        self.stop()
        try:
            yield
        finally:
            if not outside:
                self.follow()
            if entered:
                self._leave(module, (), None)

    @property
    def inside(self) -> bool:
        """A forward() runs now."""
        return bool(self._stack)

    def of_forward(self, again: bool = False) -> str:
        """The module that runs now. The first operator after a node of autograd was made belongs to the node; but nodes
        that are made again in the backward are counted again."""
        name = self.of_now()
        if not again:
            self._of_node.setdefault(torch.autograd._get_sequence_nr() - 1, name)
        return name

    def of_backward(self) -> str:
        """The module whose backward runs now."""
        if self._stack:
            return self._stack[-1]
        node = torch._C._current_autograd_node()
        return "" if node is None else self._of_node.get(node._sequence_nr(), "")

    def of_now(self) -> str:
        return self._stack[-1] if self._stack else ""

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Those of all outermost modules, each once, in their order. What a lazy module has not made yet has no size."""
        seen: set[int] = set()
        for root in self.roots:
            prefix = "" if root is self.roots[0] else f"{type(root).__name__}."
            for name, parameter in root.named_parameters():
                if id(parameter) not in seen and not nn.parameter.is_lazy(parameter):
                    seen.add(id(parameter))
                    yield prefix + name.replace("_orig_mod.", ""), parameter

    def _name(self, module: nn.Module, prefix: str) -> None:
        for name, part in module.named_modules():
            self._names.setdefault(part, prefix + name or type(part).__name__)

    def _enter(self, module: nn.Module, _arguments: Any) -> None:
        outermost = not self._stack and torch._C._current_graph_task_id() == -1
        if module not in self._names:
            self._name_new(module)
        if outermost:
            if all(module is not root for root in self.roots) and any(True for _ in module.parameters()):
                self.roots.append(module)
            self._on_root()
        name = self._names.get(module, type(module).__name__)
        if module not in self._ran:
            self._ran.add(module)
            self._on_new(module, name)
        self._stack.append(name)

    def _name_new(self, module: nn.Module) -> None:
        if self._stack:
            self._name(module, f"{self._stack[-1]}.")
        elif not self.roots:
            self._name(module, "")
        else:
            self._names[module] = type(module).__name__
            self._name(module, f"{type(module).__name__}.")

    def _leave(self, _module: nn.Module, _arguments: Any, _result: Any) -> None:
        if self._stack:
            self._stack.pop()


def precision_of(parameters: list[tuple[str, nn.Parameter]], autocast: str) -> str:
    """The name that gpumem has for these types, empty where it has none. autocast: its dtype, empty without."""
    types = {str(local(each).dtype).removeprefix("torch.") for _, each in parameters if each.is_floating_point()}
    if types == {"float32"}:
        return {"": "fp32", "float16": "amp-fp16", "bfloat16": "amp-bf16"}.get(autocast, "")
    if types == {"bfloat16"} and autocast in ("", "bfloat16"):
        return "bf16"
    return ""
