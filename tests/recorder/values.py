"""Programs whose course depends on values: each records, and what it does with the values is checked. Every case of these was
once an error, or another program than the one that trains. It needs PyTorch 2.1 or later, by hand:

    python3 tests/recorder/values.py [CASE...]
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import pathlib
import pickle
import sys
import tempfile
from collections.abc import Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402

import torchvision  # noqa: E402

import commands  # noqa: E402
import newer  # noqa: E402
import gpumem  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from gpumem.record.run import Allocate, Marked, Run  # noqa: E402

record = gpumem.record
Body = Callable[[nn.Module, Tensor], None]
Text = dict[str, Any]


def gpu(*numbers: Any, **options: Any) -> Tensor:
    return torch.tensor(*numbers, **options).cuda()


def constants(_model: nn.Module, y: Tensor) -> None:
    assert torch.tensor(2000, device=y.device) > 0
    assert math.log(gpu([3.0, 4.0])[0].item()) > 1
    assert torch.arange(4, device="cuda").mul(3)[2:].tolist() == [6, 9]
    sizes = torch.zeros(3, dtype=torch.long, device="cuda")
    sizes[1] = 7
    assert sizes.sum().item() == 7 and sizes.max().cpu().numpy() == 7
    sizes[:1].add_(1)
    assert torch.nonzero(sizes).shape[0] == 2
    assert torch.arange(2).cuda().repeat_interleave(gpu([3, 4])).tolist() == [0] * 3 + [1] * 4
    causal = torch.full((8, 8), float("-inf"), device="cuda").triu(1)
    assert causal[:4].shape == (4, 8) and math.isnan(torch.tensor([math.nan, 1.0]).cuda()[:1].item())
    assert torch.tensor([2.5, gpu([3.0]), gpu(4.0)], device="cuda").tolist() == [2.5, 3, 4]
    assert torch.equal(gpu([1, 2]), gpu([1, 2])) and not torch.equal(gpu([1, 2]), gpu([1, 3]))


def unknown_again(_model: nn.Module, y: Tensor) -> None:
    """What a value that is not known is written into is not known either, nor what is random or was never set."""
    known = gpu([5.0, 6.0])
    known[0] = y.sum()
    assert known[1].item() == 1.0
    assert torch.randint(5, 9, (4,)).cuda()[0].item() == 1
    assert torch.full((), 3.0).cuda().copy_(y.sum()).item() == 1.0


def conditions(_model: nn.Module, y: Tensor) -> None:
    assert (y > 0).any() and torch.all(y.square() >= 0) and not (y > 3).any().logical_not()
    assert not torch.isnan(y).any() and torch.isfinite(y).all() and not torch.isinf(y.sum())
    assert not ~torch.isfinite(y).all()
    unknown = torch.empty(9, dtype=torch.bool).cuda()
    assert unknown.any() and torch.all(unknown)
    assert torch.allclose(y, y * 2) and torch.equal(y, y * 2)
    assert (y > 1).sum() > 0 and (y > 1).sum().item() == y.numel()


def limits(_model: nn.Module, y: Tensor) -> None:
    """Numbers that the program limits: StyleGAN2-ADA pads images by a margin below their width and height."""
    margin = y.sum() * torch.rand(4).cuda()
    margin = margin.max(gpu([0.0] * 4)).min(gpu([30.5, 14.0, 30.5, 14.0]))
    left, top, right, below = margin.ceil().to(torch.int32)
    assert nn.functional.pad(y[:1, :1].expand(1, 4), [left, right]).shape == (1, 66)
    assert (int(top), below.item()) == (14, 14)
    assert y.sum().clamp(max=0.5).item() == 0.5 and y.sum().clamp(1, 3).clamp_max(5).item() == 3
    assert y.sum().clamp(max=math.inf).item() == 1.0
    assert y.sum().clamp(max=6).round().tolist() == 6
    limited = y[0, :1].detach().clamp(max=9)
    assert limited[0].item() == 9
    limited.add_(1)
    assert limited[0].item() == 1, "written since"
    with record.assume(item=7):
        assert y.sum().clamp(max=9).item() == 7


def sizes(_model: nn.Module, y: Tensor) -> None:
    rows = y.shape[0]
    assert torch.nonzero(y[:, 0] > 0).squeeze(-1).unique().shape[0] == rows
    picked = y[:, 0] > 1
    assert y[picked].shape[0] == y[:, 0].masked_select(picked).shape[0] == rows
    assert torch.isnan(y[:, 0]).nonzero().shape[0] == 0


def nms(_model: nn.Module, y: Tensor) -> None:
    boxes, scores = torch.empty(100, 4).cuda(), torch.empty(100).cuda()
    assert torchvision.ops.nms(boxes, scores, 0.7).shape[0] == 100
    features = torch.empty(1, 4, 32, 32, device="cuda", requires_grad=True)
    pooled = torchvision.ops.roi_align(features, [boxes], 7)
    assert pooled.shape == (100, 4, 7, 7)
    offset, weight = torch.empty(1, 18, 32, 32, device="cuda"), torch.empty(6, 4, 3, 3, device="cuda", requires_grad=True)
    deformed = torchvision.ops.deform_conv2d(features, offset, weight, padding=1)
    assert deformed.shape == (1, 6, 32, 32)
    (pooled.sum() + deformed.sum()).backward()
    assert features.grad is not None and weight.grad is not None


def bounded(_model: nn.Module, y: Tensor) -> None:
    """Values that are not known, of which there are only so many."""
    levels = torch.cat([torch.full((40000,), level, device="cuda") for level in range(5)])
    picked = levels[torch.empty(1000, device="cuda").topk(700).indices]
    assert picked.unique().tolist() == [0, 1, 2, 3, 4]
    taken = [torch.where(picked == level)[0].shape[0] for level in picked.unique()]
    assert taken == [140] * 5, taken
    regions = [torch.cat([y.new_full((50, 1), image), torch.empty(50, 4, device="cuda")], dim=-1) for image in range(3)]
    assert torch.cat(regions)[:, 0].long().unique(sorted=True).tolist() == [0, 1, 2]
    assert torch.empty(900, 7, device="cuda").argmax(1).unique().shape[0] == 7
    sampled = torch.zeros(2000, dtype=torch.uint8, device="cuda")
    sampled[torch.empty(2000, device="cuda").topk(128).indices] = 1
    also = torch.zeros_like(sampled)
    also[torch.empty(2000, device="cuda").topk(384).indices] = 1
    assert torch.where(sampled | also)[0].shape[0] == 512
    assert torch.where(torch.cat([sampled, also]))[0].shape[0] == 512
    sampled[torch.empty(2000, device="cuda") > 0] = 1
    assert torch.where(sampled)[0].shape[0] == 2000


def objects(_model: nn.Module, y: Tensor) -> None:
    """There are so many at most; what is left of a set is background, and levels share them."""
    with record.assume(objects=93):
        for _ in range(2):
            assert torch.where(torch.empty(1000, device="cuda") >= 0.05)[0].shape[0] == 1000
            labels = torch.empty(50000, dtype=torch.long, device="cuda")
            positive, negative = torch.where(labels >= 1)[0], torch.where(labels == 0)[0]
            assert positive.shape[0] == 93 and negative.shape[0] > 20000
            regions = torch.empty(50000, dtype=torch.long, device="cuda")
            assert torch.where(torch.empty_like(labels) >= 0)[0].shape[0] == 50000  # All but those that are marked as ignored.
            assert torch.where((regions != -1) & (regions != 80))[0].shape[0] == 93
            sampled = torch.zeros(50000, dtype=torch.uint8, device="cuda")
            sampled[positive[:128]] = 1
            sampled[negative[: 512 - 93]] = 1
            assert torch.where(sampled)[0].shape[0] == 512
            levels = torch.empty(512, device="cuda").log2().floor()
            taken = [torch.where(levels == level)[0].shape[0] for level in range(4)]
            assert taken[0] == 93
        assert sum(taken) == 512, taken


def evaluated(model: nn.Module, y: Tensor) -> None:
    """Also with inference tensors, whose operators PyTorch does not take apart."""
    with torch.inference_mode():
        logits = model(y.detach()).softmax(1)
        best = logits.topk(1, 1).indices.t()
        assert best.eq(torch.zeros_like(best)).flatten().sum(dtype=torch.float32).mul_(2).item() >= 0
    assert torch.is_grad_enabled() and f"{y.sum():.2f}" == "1.00"


def parts(_model: nn.Module, y: Tensor) -> None:
    levels = torch.empty(1000).cuda().long()
    taken = [torch.nonzero(levels == level).shape[0] for level in range(4)]
    assert min(taken) > 0 and sum(taken) <= 1000, taken
    parts.seen.append(taken)
    masks = [levels == level for level in range(4)]
    picked = sum(each.nonzero().shape[0] for each in masks)
    assert torch.empty(4000, 2).cuda()[torch.cat(masks)].shape[0] == picked < 4000
    labels = torch.empty(600).cuda().long()
    foreground, background = (labels >= 0) & (labels < 80), labels == 80
    assert foreground.nonzero().shape[0] + background.nonzero().shape[0] <= 601


parts.seen = []  # type: ignore[attr-defined]


def pickled(model: nn.Module, y: Tensor) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert [each.shape for each in again.parameters()] == [each.shape for each in model.parameters()]
    assert next(again.parameters()).is_cuda and next(again.parameters()).requires_grad
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"model": model.state_dict(), "y": y}, f"{folder}/weights.pt")
        loaded = torch.load(f"{folder}/weights.pt")
        read_from_a_file(folder)
    assert loaded["y"].shape == y.shape
    assert copy.deepcopy(model)(y.detach()).shape == y.shape


def read_from_a_file(folder: str) -> None:
    """What another process saved, with real tensors: small ones are known, large ones are not read, and ties are kept."""
    with _disable_current_modes():
        weight = torch.randn(1024, 1024)
        torch.save({"weight": weight, "row": weight[1], "sizes": torch.tensor([3, 5])}, f"{folder}/real.pt")
    for place in ("cpu", "cuda"):
        loaded = torch.load(f"{folder}/real.pt", map_location=place)
        assert {each.device.type for each in loaded.values()} == {place}
        assert loaded["weight"].shape == (1024, 1024) and loaded["sizes"].tolist() == [3, 5]
        assert loaded["row"].untyped_storage()._cdata == loaded["weight"].untyped_storage()._cdata
    model = nn.Linear(1024, 1024, bias=False).to("cuda")
    model.load_state_dict({"weight": loaded["weight"]})


def scaler(model: nn.Module, y: Tensor) -> None:
    scale = torch.amp.GradScaler("cuda", init_scale=512.0) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler(512.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    taken: list[int] = []
    optimizer.register_step_post_hook(lambda *_: taken.append(1))
    scale.scale(model(y.detach()).sum()).backward()
    scale.step(optimizer)
    scale.update()
    assert taken, "the step was left out, as if gradients had overflown"
    assert scale.get_scale() == 512.0


def told(_model: nn.Module, y: Tensor) -> None:
    with record.assume(any=False, nonzero=0.25, item=7):
        assert not (y > 0).any() and y.sum().item() == 7.0
        assert (y > 0).nonzero().shape[0] == y.numel() // 4
    with record.assume(objects=3):
        assert (y.long() > 0).nonzero().shape[0] == 3 and (y > 0).nonzero().shape[0] == y.numel()


def stands_in(_model: nn.Module, y: Tensor) -> None:
    import colorsys

    assert colorsys.rgb_to_hsv(y, 3).shape == (y.shape[0], 3)  # type: ignore[arg-type]


def varying(_model: nn.Module, y: Tensor) -> None:
    import random

    (torch.zeros(random.randint(3, 9), 5).cuda() * 2).sum()


BODIES: dict[str, Body] = {
    "constants": constants,
    "unknown again": unknown_again,
    "limits": limits,
    "conditions": conditions,
    "sizes": sizes,
    "nms and regions": nms,
    "values that are bounded": bounded,
    "objects": objects,
    "inference mode": evaluated,
    "parts of a set": parts,
    "pickle and save": pickled,
    "gradient scaler": scaler,
    "assume": told,
    "stand-in": stands_in,
    "targets of varying count": varying,
}


def program(body: Body, wrap: Callable[[nn.Module], nn.Module] = lambda model: model) -> Callable[[int], Any]:
    def make_step(batch: int) -> Callable[[], None]:
        model = wrap(nn.Linear(8, 8).cuda())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step() -> None:
            optimizer.zero_grad()
            y = model(torch.empty(batch, 8).cuda())
            body(model, y)
            y.sum().backward()
            optimizer.step()

        return step

    return make_step


def nothing(_model: nn.Module, _y: Tensor) -> None:
    pass


def with_unused() -> None:
    def wrap(model: nn.Module) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model, device_ids=[0], find_unused_parameters=True)

    with record.pretend_world(2):
        record.step(program(nothing, wrap), batch_size=4)


def with_synchronised_norms() -> None:
    def make_step(batch: int) -> Callable[[], None]:
        plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(plain).cuda(), device_ids=[0])
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step() -> None:
            optimizer.zero_grad()
            model(torch.empty(batch, 3, 8, 8).cuda()).sum().backward()
            optimizer.step()

        return step

    with record.pretend_world(2):
        document: Text = json.loads(record.step(make_step, batch_size=4))
    assert "aten::batch_norm_stats" in document["strings"]
    assert document["world_size"] == 2


def derailed() -> None:
    """Ends in the program's own error, which says where values were invented."""

    def body(_model: nn.Module, y: Tensor) -> None:
        assert y.sum().item() == 3.0, "as it should be"

    try:
        record.step(program(body), batch_size=4)
    except AssertionError as error:
        assert str(error) == "as it should be"
        assert sys.version_info < (3, 11) or "invented at: values.py:" in error.__notes__[0]
    else:
        raise AssertionError("it records")


def settings() -> None:
    def body(_model: nn.Module, _y: Tensor) -> None:
        torch.backends.cudnn.benchmark = True
        torch.cuda.set_per_process_memory_fraction(0.5)

    seen = json.loads(record.step(program(body), batch_size=4))["settings"]
    assert seen == {"cudnn_benchmark": True, "memory_fraction": 0.5}, seen
    assert not torch.backends.cudnn.benchmark
    assert "settings" not in json.loads(record.step(program(nothing), batch_size=4))


def pools(run: Run) -> dict[int, int]:
    """Bytes that were made on each stream, but the first."""
    made: dict[int, int] = {}
    for event in run.events:
        if isinstance(event, Allocate) and event.stream:
            made[event.stream] = made.get(event.stream, 0) + event.item * math.prod(event.shape)
    return made


def cuda_graphs() -> None:
    with recording() as recorder:
        model = nn.Linear(8, 16).to("cuda")
        graph, x = torch.cuda.CUDAGraph(), torch.empty(4, 8, device="cuda")
        with torch.cuda.graph(graph):
            model(x)
        graph.replay()
    assert recorder.run.settings == {"cuda_graphs": 1}, recorder.run.settings
    assert list(pools(recorder.run).values()) == [4 * 4 * 16], pools(recorder.run)

    with recording() as recorder:
        model = torch.cuda.make_graphed_callables(nn.Linear(8, 16).to("cuda"), (torch.empty(4, 8, device="cuda"),))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(torch.empty(4, 8, device="cuda")).sum().backward()
            optimizer.step()
    assert recorder.run.settings == {"cuda_graphs": 2}, recorder.run.settings
    steps = {event.step for event in recorder.run.events if isinstance(event, Marked)}
    assert steps == {0, 1, 2}, f"the warm-up is no step: {steps}"


def unread_tables() -> None:
    """A large tensor of a file is not read, so nothing is known of its values on the GPU either."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.pt"
        torch.save([torch.full((200_000,), 5), torch.full((20,), 5)], path)
        with recording():
            large, small = torch.load(path, map_location="cpu")
            assert small.cuda()[0].item() == 5
            assert large.cuda()[0].item() == 1
            large.fill_(7)
            assert large.cuda()[0].item() == 7


def others_calls() -> None:
    """What another has put in the place of nn.Module.__call__ is there afterwards, and what is put there meanwhile too."""
    before, seen = nn.Module.__call__, []

    def wrapped(inner: Callable[..., Any], name: str) -> Callable[..., Any]:
        return lambda module, *arguments: (seen.append(name), inner(module, *arguments))[1]

    try:
        first = nn.Module.__call__ = wrapped(before, "first")
        with recording():
            nn.Linear(8, 8).cuda()(torch.empty(4, 8).cuda())
        assert nn.Module.__call__ is first and seen == ["first"], seen
        with recording():
            second = nn.Module.__call__ = wrapped(nn.Module.__call__, "second")
        nn.Linear(8, 8)(torch.empty(4, 8))
        assert nn.Module.__call__ is second and seen == ["first", "second", "first"], seen
    finally:
        nn.Module.__call__ = before


def bodies() -> dict[str, Callable[[], Any]]:
    def recorded(body: Body) -> Callable[[], Any]:
        return lambda: record.step(program(body), batch_size=4)

    return {name: recorded(body) for name, body in BODIES.items()}


CASES: dict[str, Callable[[], Any]] = {
    **bodies(),
    "find_unused_parameters": with_unused,
    "SyncBatchNorm": with_synchronised_norms,
    "a derailed program": derailed,
    "settings": settings,
    "CUDA graphs": cuda_graphs,
    **commands.CASES,
    **newer.CASES,
    "tables that are not read": unread_tables,
    "others' calls of modules": others_calls,
}


def main() -> int:
    record.stand_in("colorsys.rgb_to_hsv", lambda x, columns: x.new_empty(x.shape[0], columns))
    failed = 0
    for name in sys.argv[1:] or CASES:
        outcome = "ok  "
        problem = ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                CASES[name]()
        except Exception as error:  # noqa: B902: whatever it is, it is reported.
            outcome, problem = "FAIL", f"{type(error).__name__}: {error}"
            failed += 1
        print(f"{outcome} {name:26} {problem}", flush=True)
    print(f"PyTorch {torch.__version__}: {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
