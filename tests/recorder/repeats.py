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

import numpy as np  # noqa: E402
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

    runs = 0  # Of all nets: a module that counts itself is in another state each time.

    def __init__(self, asks: bool = False, keeps: bool = False) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(64, 512), nn.Linear(512, 8)
        self.asks, self.keeps, self.kept = asks, keeps, []

    def example(self) -> tuple[Tensor, ...]:
        return (batch(),)

    def forward(self, x: Tensor, scale: Any = 1.0) -> tuple[Tensor, Tensor]:
        Net.runs += 1
        hidden = self.widen(x * scale).relu()
        if self.asks and bool((hidden > 0).any()):
            hidden = hidden * 2
        if self.keeps:
            self.kept.append(hidden)
        y = self.narrow(hidden)
        return y, y[:, :1]


class Counts(Net):
    """Every second forward is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.forwards = 0

    def forward(self, x: Tensor, scale: Any = 1.0) -> tuple[Tensor, Tensor]:
        self.forwards += 1
        return super().forward(x, scale + self.forwards % 2)


class Logs(Net):
    """Tells its caller something in a list."""

    def forward(self, x: Tensor, seen: list[int] | None = None) -> tuple[Tensor, Tensor]:
        if seen is not None:
            seen.append(len(x))
        return super().forward(x)


class Masks(Net):
    """Returns a mask that its caller uses, and numbers that its caller reads."""

    def forward(self, x: Tensor, scale: Any = 1.0) -> tuple[Tensor, Tensor]:
        y, _ = super().forward(x, scale)
        return y, y > 0


class Places(Net):
    """Returns numbers that are known."""

    def forward(self, x: Tensor, scale: Any = 1.0) -> tuple[Tensor, Tensor]:
        y, _ = super().forward(x, scale)
        return y, torch.arange(8, device="cuda") * 2


class Packs(Net):
    """Reads lengths, as recurrent nets do."""

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, part = super().forward(x)
        if lengths is not None:
            y = y[torch.arange(len(lengths))[lengths > 4]]
        return y, part


class Tokens(Net):
    """A small language model, as nanoGPT's is called."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(65, 64), nn.Linear(8, 65)
        self.register_buffer("mask", torch.ones(64, 64).tril())

    def example(self) -> tuple[Tensor, ...]:
        return tokens()

    def forward(self, ids: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(ids.shape[1], device=ids.device)
        scores = self.mask.masked_fill(self.mask[: len(places)] == 0, float("-inf")).softmax(-1)
        y, _ = super().forward(scores @ (self.embed(ids) + self.embed(places % 65)))
        logits = self.head(y)
        return logits, nn.functional.cross_entropy(logits.view(-1, 65), targets.view(-1), ignore_index=-1)


def tokens() -> tuple[Tensor, Tensor]:
    """nanoGPT's get_batch(): ids of a file, whose values are known."""
    text = np.arange(5000, dtype=np.uint16) % 65
    starts = torch.randint(len(text) - 64, (8,))
    ids = torch.stack([torch.from_numpy(text[at : at + 64].astype(np.int64)) for at in starts])
    targets = torch.stack([torch.from_numpy(text[at + 1 : at + 65].astype(np.int64)) for at in starts])
    return ids.pin_memory().to("cuda", non_blocking=True), targets.pin_memory().to("cuda", non_blocking=True)


def batch() -> Tensor:
    return torch.randn(32, 64, device="cuda")


def plain(net: Net) -> Any:
    return [net(batch())[0].sum().item() for _ in range(TIMES)]


def gathered(net: Net) -> Any:
    return [net(batch())[0] for _ in range(TIMES)]


def scaled(net: Net) -> Any:
    return [net(batch(), scale=1.0 + place)[0].sum().item() for place in range(TIMES)]


def joined(net: Net) -> Any:
    results = torch.zeros(0, 8, device="cuda")
    for _ in range(TIMES):
        results = torch.cat([results, net(batch())[0]])
    return results


def scaled_by_tensors(net: Net) -> Any:
    return [net(batch(), torch.tensor(1.0 + place))[0].sum().item() for place in range(TIMES)]


def with_lengths(net: Net) -> Any:
    """The first lengths are longer than the others."""
    sizes = [len(net(batch(), torch.tensor([8, 8 if place == 0 else 2]))[0]) for place in range(TIMES)]
    assert sizes == [2] + [1] * (TIMES - 1)
    return sizes


def factors_of_the_net(net: Net) -> Any:
    """A module's own tensor of the CPU is replaced by one of the same shape."""
    for place in range(TIMES):
        net.factor = torch.tensor(1.0 + place)
        net(batch())
    return None


def parts_that_train(net: Net) -> Any:
    return [net.narrow.train(place % 2 == 0) and net(batch())[0].sum().item() for place in range(TIMES)]


def logged(net: Net) -> Any:
    seen: list[int] = []
    for _ in range(TIMES):
        net(batch(), seen)
    assert len(seen) == TIMES
    return seen


def masked(net: Net) -> Any:
    """There are as many as the mask's condition says."""
    return [y[mask].sum() + mask.float().mean() for y, mask in (net(batch()) for _ in range(TIMES))]


def read(net: Net) -> Any:
    places = [net(batch())[1].tolist() for _ in range(TIMES)]
    assert places == [[*range(0, 16, 2)]] * TIMES
    return places


def written_into(net: Net) -> Any:
    """What is made without gradients gets some."""
    weight = torch.ones(8, device="cuda", requires_grad=True)
    for _ in range(TIMES):
        y, part = net(batch())
        with torch.enable_grad():
            y.mul_(weight).sum().backward()
        part.add_(1)
    return None


def losses(net: Net) -> Any:
    return [net(*tokens())[1].item() for _ in range(TIMES)]


def hooked_everywhere(net: Net) -> Any:
    seen: list[Any] = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, _arguments, _out: seen.append(module))
    plain(net)
    handle.remove()
    assert sum(each is net for each in seen) == TIMES
    return seen


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
    "results that are joined": (Net, joined, 8),
    "results that are written into": (Net, written_into, 2),
    "a language model's losses": (Tokens, losses, 2),
    "parts that train": (Net, parts_that_train, 3),
    "another number each time": (Net, scaled, TIMES),
    "hooks": (Net, hooked, TIMES),
    "hooks on every module": (Net, hooked_everywhere, TIMES),
    "a tensor of the CPU": (Net, scaled_by_tensors, TIMES),
    "lengths of the CPU": (Packs, with_lengths, TIMES),
    "a tensor of the CPU in the net": (Net, factors_of_the_net, TIMES),
    "a net that counts": (Counts, plain, TIMES),
    "a list that is told": (Logs, logged, TIMES),
    "a mask that is used outside": (Masks, masked, TIMES),
    "numbers that are known": (Places, read, TIMES),
    "for a backward": (Net, with_gradients, TIMES),
    "values are asked for": (lambda: Net(asks=True), plain, TIMES),
    "a forward that keeps tensors": (lambda: Net(keeps=True), plain, TIMES),
}


def recorded(make: Callable[[], Net], evaluate: Callable[[Net], Any]) -> tuple[Run, int]:
    """An evaluation and a step."""
    with recording() as recorder:
        net = make().to("cuda")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        Net.runs = 0
        with torch.no_grad():
            results = evaluate(net)
        runs = Net.runs
        del results
        net(*net.example())[0].sum().backward()
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
    low = 0.9 if evaluate in (gathered, joined) else 1.0  # The last that runs is the 65th.
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
