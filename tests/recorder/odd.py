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


def older_types(model: nn.Module, x: Tensor) -> Tensor:
    """As programs of before PyTorch 0.4 make tensors."""
    kind = torch.cuda.FloatTensor
    noise = kind(len(x), 32).normal_(0, 1)
    assert isinstance(x, kind) and not isinstance(x.half(), kind) and noise.device.type == "cuda"
    known = torch.cuda.LongTensor([3, 1])
    assert known.tolist() == [3, 1] and known.float().type() == "torch.cuda.FloatTensor"
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    assert torch.zeros(2).device.type == "cuda" and torch.arange(3).tolist() == [0, 1, 2]
    torch.set_default_tensor_type(torch.FloatTensor)
    return model(x.cpu().type(kind) + noise).sum()


def numbered_device(model: nn.Module, x: Tensor) -> Tensor:
    generator = torch.Generator(device="cuda").manual_seed(1)
    noise = torch.randn(len(x), 32, device=0, generator=generator)
    assert isinstance(generator, torch.Generator) and generator.device.type == "cuda"
    return model.cuda(0)(x.to(0) + noise + torch.ones(32).cuda(0)).sum()


def spectrum(model: nn.Module, x: Tensor) -> Tensor:
    waves = torch.fft.rfft2(x.view(len(x), 4, 8))
    assert waves.shape == (len(x), 4, 5) and waves.dtype == torch.complex64
    return model(torch.fft.irfft2(waves, s=(4, 8)).reshape(len(x), 32)).sum()


def packed(model: nn.Module, x: Tensor) -> Tensor:
    """Of eight sequences, all have two steps and half have four."""
    lengths = torch.tensor([4] * (len(x) // 2) + [2] * (len(x) // 2))
    rows = nn.utils.rnn.pack_padded_sequence(x.view(len(x), 4, 8), lengths, batch_first=True)
    assert rows.data.shape == (3 * len(x), 8) and rows.batch_sizes.tolist() == [len(x)] * 2 + [len(x) // 2] * 2
    out, last = nn.GRU(8, 8, batch_first=True).to("cuda")(rows)
    padded, counts = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    assert padded.shape == (len(x), 4, 8) and counts.tolist() == lengths.tolist()
    return model(padded.reshape(len(x), 32)).sum() + last.sum()


def aligned(model: nn.Module, x: Tensor) -> Tensor:
    steps, targets = model(x).log_softmax(1).repeat(6, 1, 1), torch.ones(len(x), 3, dtype=torch.long, device="cuda")
    lengths = torch.full((len(x),), 6), torch.full((len(x),), 2)
    return nn.CTCLoss()(steps, targets, *lengths)


def group_of_its_own(model: nn.Module, x: Tensor) -> Tensor:
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl", init_method="env://")
        vars(model)["wrapped"] = [nn.parallel.DistributedDataParallel(model, device_ids=[0])]
    assert torch.distributed.get_world_size() == 1
    return vars(model)["wrapped"][0](x).sum()


def in_a_spawned_process(model: nn.Module, x: Tensor) -> Tensor:
    made: list[Tensor] = []
    torch.multiprocessing.spawn(lambda rank, y: made.append(model(y).sum() + rank), args=(x,), nprocs=1)
    context = torch.multiprocessing.spawn(lambda rank: made.append(made[0] + rank), join=False)
    assert context.join()
    return made[1]


def jagged(model: nn.Module, x: Tensor) -> Tensor:
    rows = torch.nested.nested_tensor([x[:3], x[3:]], layout=torch.jagged)
    return model(rows).values().sum()


def asks_the_build(model: nn.Module, x: Tensor) -> Tensor:
    """As FSDP's examples decide on bfloat16, and loops write logs."""
    assert torch.version.cuda and torch.cuda.nccl.version() >= (2, 10) and torch.distributed.is_nccl_available()
    assert "CUDA Runtime" in torch.__config__.show(), "torch_geometric asks it while it is imported"
    assert torch.backends.cudnn.version() >= 8000 and torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 0
    torch.cuda.memory._record_memory_history()
    torch.cuda.cudart().cudaProfilerStart()
    return model(x).sum()


def list_of_losses(model: nn.Module, x: Tensor) -> Tensor:
    loss = model(x).sum()
    assert torch.tensor([torch.ones((), device="cuda"), 2.0]).tolist() == [1.0, 2.0]
    return loss * torch.tensor([loss, loss.detach()]).mean()


def margins(model: nn.Module, x: Tensor) -> Tensor:
    out = model(x)
    nearest = torch.linalg.lstsq(x.T, torch.randn(32, 2, device="cuda")).solution
    assert nearest.shape == (len(x), 2)
    return nn.functional.multi_margin_loss(out, torch.zeros(len(x), dtype=torch.long, device="cuda")) + nearest.sum()


def mixed_on_the_cpu(model: nn.Module, x: Tensor) -> Tensor:
    """A real tensor of autograd's beside one that is too large to be real."""
    token = nn.Parameter(torch.zeros(1, 256))
    return model(x).sum() + torch.cat((token.expand(2, 256), torch.randn(300, 256))).sum().to("cuda")


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
    "sparse to the GPU": (lambda m, x: m(x).sum() + torch.eye(3).to_sparse().to("cuda").sum(), [], ""),
    "sparse rows to the GPU": (lambda m, x: m(x).sum() + torch.eye(3).to_sparse_csr().to("cuda").sum(), [], "sparse_csr: of"),
    "older types": (older_types, [], ""),
    "numbered device": (numbered_device, [], ""),
    "spectrum": (spectrum, [], ""),
    "packed": (packed, [("rule", "cuDNN's GRU is recorded")], ""),
    "lengths unknown": (
        lambda m, x: m(nn.utils.rnn.pack_padded_sequence(x[None], x[0, :1].long().cpu()).data).sum(),
        [("size", "the lengths of packed sequences are values")],
        "",
    ),
    "aligned": (aligned, [], ""),
    "group of its own": (group_of_its_own, [], ""),
    "spawned": (in_a_spawned_process, [], ""),
    "DataParallel": (lambda m, x: nn.DataParallel(m)(x).sum(), [], ""),
    "asks the build": (asks_the_build, [], ""),
    "list of losses": (list_of_losses, [("value", "tolist() has no values")], ""),
    "margins": (margins, [], ""),
    "mixed on the CPU": (mixed_on_the_cpu, [], ""),
    "half a batch": (lambda m, x: m(x[: len(x) // 2]).repeat(1, 400).sum(), [], ""),
    "a path by size": (lambda m, x: m(x).sum() if len(x) > 10 else m(x).relu().sum(), [], "do different things"),
    **({"jagged": (jagged, [], "")} if COMPILES else {}),
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
    named = all(where.startswith("odd.py:") or text.startswith("GRU: ") for _kind, text, where, _count in seen)
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
