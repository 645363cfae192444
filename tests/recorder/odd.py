"""Programs that ask for values, shapes or memory that a recording does not have: what comes out of each, as a warning that
names the line or an error that does. It needs PyTorch 2.4 or later, by hand:

    python3 tests/recorder/odd.py
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import gpumem  # noqa: E402

Loss = Callable[[nn.Module, Tensor], Tensor]


@torch.library.custom_op("odd::without_shapes", mutates_args=())
def without_shapes(x: Tensor) -> Tensor:
    return x * 2


@torch.library.custom_op("odd::with_shapes", mutates_args=())
def with_shapes(x: Tensor) -> Tensor:
    return x * 2


with_shapes.register_fake(lambda x: torch.empty_like(x))
with_shapes.register_autograd(lambda _context, gradient: gradient * 2)


def assigned(model: nn.Module, x: Tensor) -> Tensor:
    x[x > 0] = 0.0
    return model(x).sum()


COMPILES = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 6)


def fails(*_arguments: object) -> None:
    raise RuntimeError("no such compiler")


#: What the loss is, the warnings (kind and text), and the error.
CASES: dict[str, tuple[Loss, list[tuple[str, str]], str]] = {
    "nothing odd": (lambda m, x: m(x).sum(), [], ""),
    "item": (lambda m, x: m(x).sum() * (1 + x.sum().item()), [("value", "the value of a tensor is needed: 1.0")], ""),
    "branch": (lambda m, x: m(x).sum() if x.sum() > 5 else m(x).mean(), [("value", "a condition is taken as False")], ""),
    "positive": (lambda m, x: m(x).sum() if x.sum() > 0 else 1 / 0, [("value", "a condition is taken as True")], ""),
    "numpy": (lambda m, x: m(x).sum() * float(x.detach().cpu().numpy().sum()), [("value", "numpy() has no")], ""),
    "tolist": (lambda m, x: m(x).sum() * len(x.tolist()), [("value", "tolist() has no values")], ""),
    "where": (lambda m, x: m(x)[torch.where(x[:, 0] > 0)].sum(), [("size", "nonzero() depends")], ""),
    "masked_select": (lambda m, x: m(x).masked_select(x[:, :8] > 0).sum(), [("size", "masked_select() depends")], ""),
    "mask": (lambda m, x: m(x)[x[:, :8] > 0].sum(), [("size", "the size of what a mask picks")], ""),
    "mask assigned": (assigned, [], ""),
    "compile": (lambda m, x: torch.compile(m)(x).sum(), [] if COMPILES else [("rule", "recorded uncompiled")], ""),
    "compile of what cannot be": (
        lambda m, x: torch.compile(m, backend=fails)(x).sum(),
        [("rule", "a graph is recorded uncompiled (no such compiler)" if COMPILES else "recorded uncompiled")],
        "",
    ),
    "custom op": (lambda m, x: with_shapes(m(x)).sum(), [("rule", "no rule is known for odd::with_shapes")], ""),
    "custom op without shapes": (lambda m, x: without_shapes(m(x)).sum(), [], 'register_fake("odd::without_shapes")'),
    "unique": (lambda m, x: m(x).sum() + x.unique().sum(), [("size", "unique() depends on values: all")], ""),
    "bincount": (lambda m, x: m(x).sum() + torch.bincount(x.long().view(-1)).sum(), [("size", "bincount() depends")], ""),
    "sparse": (lambda m, x: m(x).sum() + x.to_sparse().sum(), [], "sparse"),
    "half a batch": (lambda m, x: m(x[: len(x) // 2]).repeat(1, 400).sum(), [], ""),
    "a path by size": (lambda m, x: m(x).sum() if len(x) > 10 else m(x).relu().sum(), [], "do different things"),
    "double backward": (
        lambda m, x: torch.autograd.grad(m(x.requires_grad_()).sum(), x, create_graph=True)[0].pow(2).sum(),
        [],
        "",
    ),
}


def program(loss: Loss) -> Callable[[int], Callable[[], None]]:
    def make_step(batch: int) -> Callable[[], None]:
        model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).to("cuda")
        optimizer = torch.optim.Adam(model.parameters())

        def step() -> None:
            loss(model, torch.randn(batch, 32, device="cuda")).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return make_step


def outcome(loss: Loss) -> tuple[list[list[str]], str]:
    try:
        return json.loads(gpumem.record.step(program(loss), 8))["warnings"], ""
    except gpumem.RecordError as error:
        return [], str(error)


def is_expected(name: str) -> bool:
    loss, warnings, error = CASES[name]
    seen, message = outcome(loss)
    kinds = [(kind, text) for kind, text, _where, _count in seen]
    fits = len(kinds) == len(warnings) and all(
        kind == wanted_kind and wanted in text for (kind, text), (wanted_kind, wanted) in zip(kinds, warnings)
    )
    named = all(where.startswith("odd.py:") for _kind, _text, where, _count in seen)
    right = fits and named and (error in message if error else not message)
    print(f"{'ok  ' if right else 'FAIL'} {name:26} {message or seen}")
    return right


def machine_is_as_before() -> bool:
    """After recordings the process knows of no GPU, and trains on the CPU as ever."""
    layer = nn.Linear(4, 4)
    layer(torch.ones(2, 4)).sum().backward()
    right = not torch.cuda.is_available() and layer.weight.grad is not None and float(layer.weight.grad.sum()) == 32.0
    print(f"{'ok  ' if right else 'FAIL'} the process afterwards")
    return right


def main() -> int:
    results = [is_expected(name) for name in CASES] + [machine_is_as_before()]
    print(f"PyTorch {torch.__version__}: {results.count(False)} failed")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
