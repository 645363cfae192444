"""CUDA graphs: what is captured runs once, as it is recorded; to replay it allocates nothing.

A capture allocates from a private pool, whose memory nothing else gets while the graph lives: not even what was freed during
the capture. A pool is therefore a stream of its own here, which nobody else allocates on.

Source: c10/cuda/CUDACachingAllocator.cpp (beginAllocateToPool), torch/cuda/graphs.py and torch/_inductor/cudagraph_trees.py
of PyTorch 2.6.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .pretended_cuda import Replacements, Stream
from .steps import Steps
from .storages import Storages

_Pool = tuple[int, int]


class Graphs:
    """captured: is called for each graph. storages: tell in which pool a tensor lies. steps: are not those of a warm-up."""

    def __init__(self, captured: Callable[[], None], storages: Storages, steps: Steps) -> None:
        self._captured, self._storages, self._steps = captured, storages, steps
        self._pools: dict[_Pool, Stream] = {}

    def install(self, replaced: Replacements) -> None:
        kind = _graph_class(self)
        graphs = importlib.import_module("torch.cuda.graphs")
        for owner in (torch.cuda, graphs):
            replaced.set(owner, "CUDAGraph", kind)
            replaced.set(owner, "graph_pool_handle", self.new_pool)
        replaced.set(graphs, "is_current_stream_capturing", lambda: False)
        graphed = graphs.make_graphed_callables

        def make_graphed_callables(*arguments: Any, **options: Any) -> Any:
            with self._steps.paused():
                return graphed(*arguments, **options)

        for owner in (torch.cuda, graphs):
            replaced.set(owner, "make_graphed_callables", make_graphed_callables)
        replaced.set(graphs.graph, "default_capture_stream", None)

    def new_pool(self) -> _Pool:
        pool = (0, len(self._pools) + 1)
        self._pools[pool] = Stream()
        return pool

    def begin(self, pool: _Pool | None) -> _Pool:
        """A capture into a pool, or into one of its own."""
        if pool is None or pool not in self._pools:
            pool = self.new_pool()
        Stream.current.append(self._pools[pool])
        return pool

    def end(self) -> None:
        Stream.current.pop()
        self._captured()

    @contextlib.contextmanager
    def _into(self, pool: _Pool) -> Iterator[None]:
        Stream.current.append(self._pools[pool])
        try:
            yield
        finally:
            Stream.current.pop()

    def of_inductor(self) -> Callable[..., Callable[..., Any]]:
        """Stands in for cudagraphify() of mode="reduce-overhead": all graphs share a pool. A graph runs once before it is
        captured, in the pool as well; from then on it has copies of inputs that are neither parameters nor another graph's."""
        pools: list[_Pool] = []

        def cudagraphify(
            model: Callable[..., Any], static_input_idxs: Sequence[int] = (), *_rest: Any, **_options: Any
        ) -> Callable[..., Any]:
            pool = pools[0] if pools else self.new_pool()
            if not pools:
                pools.append(pool)
            runs = 0
            copies: list[torch.Tensor] = []

            def run(inputs: list[Any]) -> Any:
                nonlocal runs
                runs += 1
                with self._into(pool):
                    if runs == 2:
                        copies.extend(self._copies(inputs, frozenset(static_input_idxs), self._pools[pool]))
                        self._captured()
                    return model(inputs)

            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return cudagraphify

    def _copies(self, inputs: Sequence[Any], static: frozenset[int], pool: Stream) -> Iterator[torch.Tensor]:
        for place, each in enumerate(inputs):
            moves = isinstance(each, torch.Tensor) and each.device.type == "cuda" and place not in static
            if moves and self._storages.stream_of(each) != pool.number:
                yield torch.empty_strided(tuple(each.shape), each.stride(), dtype=each.dtype, device=each.device)


def _graph_class(graphs: Graphs) -> type:
    class Graph:
        """torch.cuda.CUDAGraph."""

        def __init__(self, *_arguments: object, **_options: object) -> None:
            self._pool: _Pool | None = None

        def capture_begin(self, pool: _Pool | None = None, capture_error_mode: str = "global") -> None:
            self._pool = graphs.begin(pool)

        def capture_end(self) -> None:
            graphs.end()

        def replay(self) -> None:
            pass

        def reset(self) -> None:
            pass

        def pool(self) -> _Pool:
            if self._pool is None:
                self._pool = graphs.new_pool()
            return self._pool

    return Graph
