"""The phase of a training run: construction, forward, backward, optimizer, between; and in which step."""

from __future__ import annotations

import collections
import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .run import Mark

if TYPE_CHECKING:
    import torch


class Stop(BaseException):
    """Enough steps are recorded. No `except Exception` of the user's script catches it."""


class Steps:
    """Writes marks as phases begin.

    on_mark: takes a mark and its step. before, after: are called around every step of an optimizer. made: the optimizers
    that there are. most: after this many steps of every optimizer the next forward raises Stop; None: never.

    A program without an optimizer of PyTorch's updates its parameters itself: its step ends where a forward follows a backward.
    """

    def __init__(
        self,
        on_mark: Callable[[Mark, int], None],
        before: Callable[[torch.optim.Optimizer], None],
        after: Callable[[torch.optim.Optimizer], None],
        made: Iterable[torch.optim.Optimizer] = (),
        most: int | None = None,
    ) -> None:
        self.now, self.step = Mark.CONSTRUCTION, 0
        self.optimizers: list[torch.optim.Optimizer] = []
        self.without_optimizer = 0  # Steps of a program that has none.
        self._paused = self._has_trained = False
        self._counts: collections.Counter[int] = collections.Counter()
        self._on_mark, self._before, self._after = on_mark, before, after
        self._made, self._most = made, most
        self._handles: list[Any] = []

    def follow(self) -> None:
        hooks = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name.
        self._handles = [
            hooks.register_optimizer_step_pre_hook(self._optimizer_begins),
            hooks.register_optimizer_step_post_hook(self._optimizer_ends),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()

    def mark(self, mark: Mark, step: int | None = None) -> None:
        self.now = mark
        self.step = self.step if step is None else step
        self._has_trained |= mark in (Mark.BACKWARD, Mark.OPTIMIZER)
        self._on_mark(mark, self.step)

    def next_step(self) -> None:
        """A step begins, as the caller knows: loading and zero_grad come first."""
        self.mark(Mark.BETWEEN, self.step + 1)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What runs inside is of the phase that there is: a set-up that warms up, and makes no steps."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    @property
    def where(self) -> tuple[int, bool]:
        """The number of the step, and whether the program has trained already."""
        return self.step, self._has_trained

    def forward_begins(self) -> None:
        if self._paused:
            return
        if self.now == Mark.BACKWARD and not self._all():
            self.without_optimizer += 1
        if self._most is not None and self._done() >= self._most:
            raise Stop
        if self.now == Mark.CONSTRUCTION:
            self.mark(Mark.FORWARD, 1)
        elif self.now != Mark.FORWARD:
            self.mark(Mark.FORWARD, max(self.step, self._done() + 1))

    def backward_begins(self) -> None:
        if self.now != Mark.BACKWARD and not self._paused:
            self.mark(Mark.BACKWARD, max(self.step, 1))

    def _done(self) -> int:
        """Steps that every optimizer has made; one that is two steps late is not waited for."""
        counts = [self._counts[key] for key in self._all()]
        most = max(counts, default=0)
        return min((count for count in counts if count > most - 2), default=self.without_optimizer)

    @property
    def made(self) -> int:
        """How often all optimizers have made a step."""
        return self._done()

    def _all(self) -> set[int]:
        """The optimizers that there are."""
        return {id(each) for each in (*self.optimizers, *self._made)}

    def _optimizer_begins(self, optimizer: torch.optim.Optimizer, *_arguments: Any) -> None:
        if all(optimizer is not each for each in self.optimizers):
            self.optimizers.append(optimizer)
        self.mark(Mark.OPTIMIZER, max(self.step, 1))
        self._before(optimizer)

    def _optimizer_ends(self, optimizer: torch.optim.Optimizer, *_arguments: Any) -> None:
        self._counts[id(optimizer)] += 1
        self._after(optimizer)
        self.mark(Mark.BETWEEN)


def name_of(optimizer: torch.optim.Optimizer) -> str:
    """As the command line names it."""
    momentum = any(group.get("momentum") for group in optimizer.param_groups)
    name = type(optimizer).__name__.lower()
    return "sgd-momentum" if name == "sgd" and momentum else name
