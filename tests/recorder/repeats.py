"""Evaluations that repeat one forward: how many of 100 run, and that the peak is that of a recording in which all run.

    python3 tests/recorder/repeats.py

It needs PyTorch 2.1 or later, by hand.
"""

from __future__ import annotations

import json
import pathlib
import sys
import unittest.mock
from collections.abc import Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import gpumem  # noqa: E402
from gpumem.record.repeats import Repeats  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from gpumem.record.run import Allocate, Free, Run  # noqa: E402
from gpumem.record.writer import recording_text  # noqa: E402

TIMES = 100


class Net(nn.Module):
    """asks: for a value. keeps: its last hidden tensor."""

    def __init__(self, asks: bool = False, keeps: bool = False) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(64, 512), nn.Linear(512, 8)
        self.asks, self.keeps, self.runs, self.kept = asks, keeps, 0, []

    def forward(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        self.runs += 1
        hidden = self.widen(x * scale).relu()
        if self.asks and bool((hidden > 0).any()):
            hidden = hidden * 2
        if self.keeps:
            self.kept.append(hidden)
        y = self.narrow(hidden)
        return y, y[:, :1]


def batch() -> Tensor:
    return torch.randn(32, 64, device="cuda")


def plain(net: Net) -> Any:
    return [net(batch())[0].sum().item() for _ in range(TIMES)]


def gathered(net: Net) -> Any:
    return [net(batch())[0] for _ in range(TIMES)]


def scaled(net: Net) -> Any:
    return [net(batch(), scale=1.0 + place)[0].sum().item() for place in range(TIMES)]


def hooked(net: Net) -> Any:
    seen: list[Any] = []
    handle = net.widen.register_forward_hook(lambda _module, _arguments, out: seen.append(tuple(out.shape)))
    plain(net)
    handle.remove()
    assert len(seen) == TIMES
    return seen


def with_gradients(net: Net) -> Any:
    with torch.enable_grad():
        return plain(net)


#: The net, its evaluation, and how many forwards run.
CASES: dict[str, tuple[Callable[[], Net], Callable[[Net], Any], int]] = {
    "results that are read": (Net, plain, 2),  # Once before the first forward has begun, and once after.
    "results that are gathered": (Net, gathered, 8),  # The 1st, and of the 99 after it the 1st, 2nd, 4th ... 64th.
    "another number each time": (Net, scaled, TIMES),
    "hooks": (Net, hooked, TIMES),
    "for a backward": (Net, with_gradients, TIMES),
    "values are asked for": (lambda: Net(asks=True), plain, TIMES),
    "a forward that keeps tensors": (lambda: Net(keeps=True), plain, TIMES),
}


def recorded(make: Callable[[], Net], evaluate: Callable[[Net], Any]) -> tuple[Run, int]:
    """An evaluation and a step."""
    with recording() as recorder:
        net = make().to("cuda")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with torch.no_grad():
            results = evaluate(net)
        runs = net.runs
        del results
        net(batch())[0].sum().backward()
        optimizer.step()
    recording_text([recorder.run], [()], "")
    return recorder.run, runs


def peak(run: Run) -> int:
    sizes: dict[int, int] = {}
    most = 0
    for event in run.events:
        if isinstance(event, Allocate):
            sizes[event.number] = event.item * int(torch.Size(event.shape).numel())
            most = max(most, sum(sizes.values()))
        elif isinstance(event, Free):
            sizes.pop(event.number, 0)
    return most


def is_right(name: str) -> bool:
    make, evaluate, expected = CASES[name]
    run, runs = recorded(make, evaluate)
    with unittest.mock.patch.object(Repeats, "forward", lambda _self, _module, forward, *_rest: forward()):
        whole, all_of_them = recorded(make, evaluate)
    assert all_of_them == TIMES
    low = 0.9 if evaluate is gathered else 1.0  # The last that runs is the 65th.
    right = runs == expected and low * peak(whole) <= peak(run) <= peak(whole)
    print(f"{'ok  ' if right else 'FAIL'} {name}: {runs} of {TIMES} run, peak {peak(run)} of {peak(whole)}")
    return right


def kernels_are_counted() -> bool:
    """A teacher that runs in each step takes its time, whether its forward is left out or not."""

    def make_step(size: int) -> Callable[[], None]:
        teacher, net = Net().to("cuda"), Net().to("cuda")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def step() -> None:
            for _ in range(5):
                x = torch.randn(size, 64, device="cuda")
                with torch.no_grad():
                    wanted, _ = teacher(x)
                (net(x)[0] - wanted).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    document = json.loads(gpumem.record.step(make_step, 8))
    with unittest.mock.patch.object(Repeats, "forward", lambda _self, _module, forward, *_rest: forward()):
        whole = json.loads(gpumem.record.step(make_step, 8))
    products = [
        sum(count for call, count in each["kernels"] if each["strings"][each["calls"][call][0]] == "aten::addmm")
        for each in (document, whole)
    ]
    right = products[0] == products[1] == 20
    print(f"{'ok  ' if right else 'FAIL'} kernels of a teacher: {products[0]} products, {products[1]} if all run")
    return right


def main() -> int:
    results = [is_right(name) for name in CASES] + [kernels_are_counted()]
    print(f"PyTorch {torch.__version__}: {results.count(False)} failed")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
