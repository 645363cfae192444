"""Kinds of training programs of 2024 to 2026 as cases of values.py: each ended in an error once, or was another program."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import gpumem
from gpumem.record.recorder import recording
from gpumem.record.run import Run

record = gpumem.record
WIDTH, EXPERTS = 32, 8


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def trained(model: nn.Module, loss: Callable[[Tensor], Tensor]) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        loss(torch.randn(8, WIDTH, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()


def recorded(body: Callable[[], None], world: int = 1) -> Run:
    with record.pretend_world(world), recording() as recorder:
        body()
    return recorder.run


def calls(run: Run, name: str) -> int:
    return sum(name in each.operator.replace("_all_gather", "_allgather") for each in run.calls)


def sharded_from_the_cpu() -> None:
    """FullyShardedDataParallel(module, device_id=0) and fully_shard(module) move a module that is on the CPU."""
    fsdp = importlib.import_module("torch.distributed.fsdp")

    def first() -> None:
        kind = functools.partial(fsdp.FullyShardedDataParallel, device_id=0, use_orig_params=True)
        model = kind(nn.Sequential(kind(perceptron()), kind(perceptron())))
        trained(model, lambda x: model(x).sum())

    def second(**options: Any) -> None:
        model = nn.Sequential(perceptron(), perceptron())
        for part in (*model, model):
            fsdp.fully_shard(part, **options)
        trained(model, lambda x: model(x).sum())

    def third() -> None:  # DINOv3
        with torch.device("meta"):
            model = nn.Sequential(perceptron(), perceptron())
        fsdp.fully_shard(model)
        model.to_empty(device="cuda")
        model.apply(lambda part: [nn.init.trunc_normal_(each) for each in part.parameters(recurse=False)])
        trained(model, lambda x: model(x).sum())

    whole = 4 * sum(each.numel() for each in perceptron().parameters())
    for body in (first, second, third) if hasattr(fsdp, "fully_shard") else (first,):
        run = recorded(body, world=4)
        assert calls(run, "_allgather"), {each.operator for each in run.calls if each.operator.startswith("c10d")}
        held = sum(torch.Size(each.form.shape).numel() * 4 for each in run.parameters)
        assert whole * 2 / 4 <= held < whole, (held, whole)  # A quarter of each, with what makes them even.
    if hasattr(fsdp, "fully_shard"):
        run = recorded(functools.partial(second, offload_policy=fsdp.CPUOffloadPolicy()), world=4)
        assert calls(run, "_allgather")


def communication_hook() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    def body() -> None:
        model = nn.parallel.DistributedDataParallel(perceptron().cuda(), gradient_as_bucket_view=True)
        model.register_comm_hook(state=None, hook=default_hooks.bf16_compress_hook)
        trained(model, lambda x: model(x).sum())

    assert calls(recorded(body, world=4), "addmm")


def weight_norm() -> None:
    """HiFi-GAN's and wav2vec 2's layers."""

    def body() -> None:
        model = nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)).cuda()
        trained(model, lambda x: model(x).sum())

    assert calls(recorded(body), "_weight_norm_interface_backward") == 2


def sorted_experts() -> None:
    """Tokens in the order of their experts, of whom each gets its count: all counts together are all tokens."""

    def body(count: Callable[[Tensor], Tensor]) -> None:
        router = nn.Linear(WIDTH, EXPERTS).cuda()
        weight = nn.Parameter(torch.zeros(EXPERTS, WIDTH, WIDTH, device="cuda"))
        router.register_parameter("experts", weight)

        def loss(x: Tensor) -> Tensor:
            scores, chosen = router(x).softmax(-1).topk(3)
            order = chosen.flatten().argsort(stable=True)
            counts = count(chosen.flatten()).cpu().tolist()
            assert sum(counts) == chosen.numel() and max(counts) - min(counts) <= 1, counts
            rows = torch.split(x[order // 3], counts)
            mixed = torch.cat([each @ weight[place] for place, each in enumerate(rows)])
            return (mixed * scores.flatten()[order, None]).sum()

        trained(router, loss)

    for count in (
        lambda chosen: torch.histc(chosen.float(), bins=EXPERTS, min=0, max=EXPERTS - 1).int(),
        lambda chosen: torch.bincount(chosen, minlength=EXPERTS),
    ):
        run = recorded(functools.partial(body, count))
        assert any("an even share of what is counted" in each.text for each in run.warnings)
        products = [each for each in run.calls if each.operator == "aten::mm" and each.inputs[0].shape == (3, WIDTH)]
        assert len(products) >= 2 * EXPERTS, len(products)


def exchanged_tokens() -> None:
    """Experts on other ranks: counts go round first, and then as many tokens as they say."""

    def body() -> None:
        router = nn.Linear(WIDTH, EXPERTS).cuda()
        router.register_parameter("experts", nn.Parameter(torch.zeros(EXPERTS // 4, WIDTH, WIDTH, device="cuda")))

        def loss(x: Tensor) -> Tensor:
            chosen = router(x).topk(4).indices.flatten()
            sent = torch.bincount(chosen, minlength=EXPERTS)
            received = torch.empty_like(sent)
            torch.distributed.all_to_all_single(received, sent)
            splits = [each.view(4, -1).sum(1).tolist() for each in (received, sent)]
            assert splits == [[8] * 4] * 2, splits
            tokens = x.new_empty(sum(splits[0]), WIDTH)
            torch.distributed.all_to_all_single(tokens, x[chosen.argsort() // 4], *splits)
            of_each = received.view(4, -1).sum(0).tolist()
            return torch.cat([part @ router.experts[at] for at, part in enumerate(tokens.split(of_each))]).sum()

        trained(router, loss)

    run = recorded(body, world=4)
    assert sum(each.operator == "aten::mm" and each.inputs[0].shape == (16, WIDTH) for each in run.calls) >= 4
    with recording():  # Sums of weights are no counts.
        weights = torch.ones(4, device="cuda")
        assert torch.bincount(torch.randint(2, (4,), device="cuda"), weights, 2).tolist() == [1.0, 1.0]


def pipeline() -> None:
    """A stage of torch.distributed.pipelining, which sends and receives in groups."""
    try:
        pipelining = importlib.import_module("torch.distributed.pipelining")
    except ImportError:  # Before PyTorch 2.4.
        return

    def body(**shapes: Any) -> None:
        model = perceptron().cuda()
        stage = pipelining.PipelineStage(model, 1, 4, torch.device("cuda"), **shapes)
        schedule = pipelining.Schedule1F1B(stage, 4, loss_fn=lambda y, _: y.sum())
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            schedule.step()
            optimizer.step()
            optimizer.zero_grad()

    def of_a_batch() -> tuple[Tensor]:
        return (torch.zeros(2, WIDTH, device="cuda"),)

    run = recorded(lambda: body(input_args=of_a_batch(), output_args=of_a_batch()), world=4)
    assert calls(run, "addmm") >= 2 * 2 * 4 and calls(run, "send") and calls(run, "recv_")


def sent_objects() -> None:
    """What processes send each other as pickles: the others have what this one has, and nothing comes from one that is not there."""
    distributed = torch.distributed

    def body() -> None:
        here = [{"step": 1}]
        distributed.broadcast_object_list(here, src=0)
        of_all, of_root, mine = [None] * 4, [None] * 4, [None]
        distributed.all_gather_object(of_all, here[0])
        distributed.gather_object(here[0], of_root)
        distributed.scatter_object_list(mine, [1, 2, 3, 4])
        assert of_all == of_root == here * 4 and mine == [1], (of_all, of_root, mine)
        try:
            distributed.broadcast_object_list([None], src=3)
        except gpumem.RecordError as error:
            assert "process 3, which is not there" in str(error) and "newer.py:" in str(error), error
        else:
            raise AssertionError("it came from nowhere")

    recorded(body, world=4)


def lazy_modules() -> None:
    """They are moved before they have run, after they have run on the CPU, or not at all."""

    def body(run_before: bool) -> None:
        model = nn.Sequential(nn.LazyLinear(4 * WIDTH), nn.LazyBatchNorm1d(), nn.LazyLinear(WIDTH))
        if run_before:
            model(torch.zeros(2, WIDTH))
        optimizer = torch.optim.AdamW(model.parameters())
        model = model.cuda().bfloat16()
        for _ in range(2):
            model(torch.randn(8, WIDTH, device="cuda", dtype=torch.bfloat16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        found = [*model.parameters(), model[1].running_mean]
        assert all(each.device.type == "cuda" and each.dtype == torch.bfloat16 for each in found)
        assert len(optimizer.state) == 6 and all(each in optimizer.state for each in model.parameters())

    for run_before in (False, True):
        run = recorded(functools.partial(body, run_before))
        shapes = [each.form.shape for each in run.parameters]
        assert shapes[0] == (4 * WIDTH, WIDTH) and len(shapes) == 6, shapes


def numbers_of_their_own() -> None:
    """Experts that were chosen are different ones, and places of a sorted row are places of it."""

    def body() -> None:
        experts = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS)]).cuda()

        def loss(x: Tensor) -> Tensor:
            hit = (x.sum(0)[:EXPERTS] > 0).nonzero()
            assert [int(each) for each in hit] == hit.flatten().cpu().tolist() == list(range(EXPERTS))
            for place in torch.sort(x[:, :1], dim=1).indices[0]:
                assert int(place) == 0 and int(place + 7) == 7
            return torch.stack([experts[each](x) for each in hit.flatten()]).sum()

        trained(experts, loss)

    run = recorded(body)
    assert sum(each.operator == "aten::addmm" for each in run.calls) == 2 * EXPERTS
    asked = [each for each in run.warnings if each.text == "the value of a tensor is needed: a number of its own is taken"]
    assert len({each.where for each in asked}) == len(asked) > 0, "a line is told once, not for each number"


def balanced_samples() -> None:
    """Libra R-CNN takes as many boxes of each object, which it asks for one by one, and then as many others at random."""

    model = perceptron()

    def loss(x: Tensor) -> Tensor:
        owner = torch.full((2000,), -1, device="cuda")
        overlap, nearest = torch.randn(93, 2000, device="cuda").max(0)
        owner[overlap < 0.5] = 0
        owner[overlap >= 0.5] = nearest[overlap >= 0.5] + 1
        taken = (owner > 0).nonzero().squeeze(1)
        objects = owner[taken].unique()
        assert len(objects) == 93, objects.shape
        for each in objects:
            found = (owner == each.item()).nonzero()
            assert len(found) > 0 or len(taken) == 2000, (each, len(taken))
            assert len(found) <= 12 or len(taken) == 2000, (len(found), len(taken))
        others = (owner == 0).nonzero().squeeze(1)
        if len(taken) < 2000:  # The first time, nobody knows of other sets.
            assert len(taken) == len(others) == 1000, (len(taken), len(others))
            known = torch.tensor(list(range(500)), device="cuda")
            assert len(known[torch.randperm(500)[:128].cuda()].cpu().unique()) == 128
        return model(x).sum()

    recorded(lambda: trained(model.cuda(), loss))


def sampled_labels() -> None:
    """detectron2's sampler marks 128 regions with an object and 384 without; who asks later finds as many."""

    model = perceptron()

    def loss(x: Tensor) -> Tensor:
        every = []
        for _ in range(2):
            labels = torch.randn(2000, 80, device="cuda").argmax(1)
            labels[torch.randn(2000, device="cuda") > 1] = 80
            taken = ((labels != -1) & (labels != 80)).nonzero(as_tuple=True)[0]
            others = (labels == 80).nonzero(as_tuple=True)[0]
            taken = taken[torch.randperm(len(taken), device="cuda")[:128]]
            others = others[torch.randperm(len(others), device="cuda")[:384]]
            every.append(labels[torch.cat([taken, others])])
            marks = labels.clone()
            marks.fill_(-1).scatter_(0, taken, 1).scatter_(0, others, 0)
            assert len((marks == 1).nonzero()) == len(taken) == 128
            assert (marks >= 0).sum().item() == len(taken) + len(others)
            assert (every[-1] == 80).sum().item() == len(others)
        assert len(every[1]) == 512, "the masks of the first one are known"
        joined = torch.cat(every)
        assert len(((joined >= 0) & (joined < 80)).nonzero()) == 256
        joined[joined < 0] = 3  # Written into: what was known of it is gone.
        assert len(((joined >= 0) & (joined < 80)).nonzero()) == len(joined)
        return model(x).sum()

    recorded(lambda: trained(model.cuda(), loss))


def sparse_tensors() -> None:
    """A graph's adjacency, FreeAnchor's boxes of classes, and the gradients of embeddings."""
    vertices, edges = 64, 300

    def graph() -> None:
        places = torch.randint(0, vertices, (2, edges))
        adjacency = torch.sparse_coo_tensor(places, torch.ones(edges), (vertices, vertices)).coalesce().cuda()
        model = nn.Linear(WIDTH, WIDTH).cuda()
        trained(model, lambda x: torch.sparse.mm(adjacency, model(x.repeat(vertices // 8, 1))).sum())
        kept.append(adjacency._nnz())

    kept: list[int] = []
    run = recorded(graph)
    products = [each for each in run.calls if each.operator == "aten::sparse _sparse_addmm"]
    assert len(products) >= 2 and all(each.outputs[0].shape == (vertices, WIDTH) for each in products), run.calls
    moved = [each.outputs for each in run.calls if each.operator == "aten::sparse _to_copy"]
    assert [form.shape for form in moved[0]] == [(2, kept[0]), (kept[0],)] and moved[0][0].dtype == "int64", moved

    def anchors() -> None:
        model = nn.Linear(WIDTH, 100).cuda()

        def loss(x: Tensor) -> Tensor:
            scores = model(x)[:3]
            with torch.no_grad():
                classes = torch.stack([torch.arange(3).cuda(), torch.tensor([4, 0, 7]).cuda()])
                dense = torch.sparse.sum(torch.sparse_coo_tensor(classes, scores), dim=0).to_dense()
                assert dense.shape == (8, 100)
                found = torch.nonzero(dense).t()
                assert torch.sparse_coo_tensor(found.flip([0]), torch.zeros(found.shape[1]).cuda(), size=(100, 8)).to_dense().ndim == 2
            return scores.sum()

        trained(model, loss)

    recorded(anchors)

    def embeddings() -> None:
        table = nn.Embedding(1000, WIDTH, sparse=True).cuda()
        optimizers = torch.optim.SparseAdam(table.parameters()), torch.optim.SGD(table.parameters(), 0.1)
        for optimizer in optimizers * 2:
            table(torch.zeros(8, dtype=torch.long, device="cuda")).sum().backward()
            assert table.weight.grad is not None and table.weight.grad._values().shape == (8, WIDTH)
            optimizer.step()
            optimizer.zero_grad()

    recorded(embeddings)
    for body, word in ((lambda x: torch.sparse_coo_tensor(x[:2].long(), x[0]), "size"), (lambda x: x.to_sparse(), "_to_sparse")):
        try:
            recorded(lambda: trained(nn.Linear(4, 4).cuda(), lambda x, made=body: made(x).to_dense().sum()))
        except gpumem.RecordError as error:
            assert word in str(error) and "newer.py:" in str(error), error
        else:
            raise AssertionError(f"{word}: it is recorded")


def arguments_by_name() -> None:
    """Configurations name all arguments: D-FINE's loaders have one that is called loader, and the module of DDP is one too."""

    class Loader(torch.utils.data.DataLoader[Any]):
        def __init__(self, loader: str, **options: Any) -> None:
            super().__init__(**options)
            self.kind = loader

    class Named(nn.Linear):
        def forward(self, module: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(module)

    def body() -> None:
        loader = Loader(loader="plain", dataset=[torch.zeros(WIDTH)] * 8, batch_size=8, num_workers=2)
        names = inspect.getfullargspec(torch.utils.data.DataLoader.__init__).args
        assert "dataset" in names and "batch_size" in names, names
        model = nn.parallel.DistributedDataParallel(module=Named(WIDTH, WIDTH).cuda(), device_ids=[0])
        optimizer = torch.optim.SGD(params=model.parameters(), lr=0.1)
        for _ in range(2):
            for batch in loader:
                model(module=batch.cuda()).sum().backward()
            optimizer.step()

    assert calls(recorded(body, world=2), "addmm")


def default_type() -> None:
    """NeRF makes torch.Tensor([1e10]) where the default type is one of the GPU."""

    def body() -> None:
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        model = perceptron()
        far = torch.Tensor([1e10])
        assert far.is_cuda and far.item() == 1e10 and torch.Tensor(3, 4).is_cuda and torch.Tensor(far).is_cuda
        trained(model, lambda x: model(torch.cat([x, far.expand(8)[:, None] * x], 0)).sum())
        torch.set_default_tensor_type("torch.FloatTensor")
        assert not torch.Tensor([1.0]).is_cuda and isinstance(nn.Parameter(torch.zeros(2)), nn.Parameter)

    recorded(body)
    assert torch.Tensor([2.0]).tolist() == [2.0] and torch.Tensor(2, 3).shape == (2, 3)


def traced_module() -> None:
    """torch.jit.trace(model, batch), which trains as the model itself; and nested tensors, which are refused by name."""

    def body() -> None:
        model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU()).cuda()
        module = torch.jit.trace(model, torch.randn(8, 1, WIDTH, device="cuda"))
        trained(module, lambda x: module(x[:, None]).sum())
        assert torch.jit.trace(lambda x: x + 1, torch.zeros(2))(torch.ones(2)).tolist() == [2, 2]

    assert calls(recorded(body), "convolution") == 2 * 2 + 1

    def nested() -> None:
        model = perceptron().cuda()
        trained(model, lambda x: torch.nested.nested_tensor([model(x)[0], model(x)[1]]).to_padded_tensor(0.0).sum())

    try:
        recorded(nested)
    except gpumem.RecordError as error:
        assert "nested tensor" in str(error) and "torch.jagged" in str(error) and "newer.py:" in str(error), error
    else:
        raise AssertionError("it is recorded")


def evaluated_encoder() -> None:
    """nn.TransformerEncoder evaluates with a padding mask before it trains."""

    def body() -> None:
        layer = nn.TransformerEncoderLayer(WIDTH, 4, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).cuda().eval()
        padding = torch.zeros(4, 2, dtype=torch.bool, device="cuda")
        with torch.no_grad():
            model(torch.randn(4, 2, WIDTH, device="cuda"), src_key_padding_mask=padding)
        model.train()
        trained(model, lambda x: model(x.view(4, 2, WIDTH), src_key_padding_mask=padding).sum())

    before = torch.backends.mha.get_fastpath_enabled()
    assert calls(recorded(body), "addmm") and torch.backends.mha.get_fastpath_enabled() == before


def flex_attention() -> None:
    """Not compiled, it is refused with the way round it."""
    try:
        flex = importlib.import_module("torch.nn.attention.flex_attention")
    except ImportError:  # Before PyTorch 2.5.
        return

    def body() -> None:
        projection = nn.Linear(WIDTH, WIDTH).cuda()
        trained(projection, lambda x: flex.flex_attention(*3 * [projection(x).view(1, 2, 8, 16)]).sum())

    try:
        recorded(body)
    except gpumem.RecordError as error:
        assert "torch.compile(flex_attention)" in str(error) and "newer.py:" in str(error), error
    else:
        raise AssertionError("it is recorded")


def fused_sgd() -> None:
    """An operator that returns nothing needs no rule, and this one has none in PyTorch 2.6."""

    def body() -> None:
        model = perceptron().cuda()
        model(torch.randn(8, WIDTH, device="cuda")).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1, fused=True).step()

    if "fused" in inspect.signature(torch.optim.SGD).parameters:
        assert calls(recorded(body), "_fused_sgd_") == 1


def autotuned() -> None:
    """airbench: what max-autotune compiled is forgotten afterwards, also by a PyTorch without CUDA graphs."""

    def body() -> None:
        model = perceptron().cuda()
        model.compile(mode="max-autotune")
        trained(model, lambda x: model(x).sum())

    recorded(body)


CASES: dict[str, Callable[[], Any]] = {
    "fused SGD": fused_sgd,
    "max-autotune": autotuned,
    "sharded from the CPU": sharded_from_the_cpu,
    "a communication hook": communication_hook,
    "weight norm": weight_norm,
    "sorted experts": sorted_experts,
    "exchanged tokens": exchanged_tokens,
    "a pipeline": pipeline,
    "sent objects": sent_objects,
    "lazy modules": lazy_modules,
    "numbers of their own": numbers_of_their_own,
    "balanced samples": balanced_samples,
    "sampled labels": sampled_labels,
    "sparse tensors": sparse_tensors,
    "arguments by name": arguments_by_name,
    "a traced module": traced_module,
    "a default type": default_type,
    "an encoder's evaluation": evaluated_encoder,
    "FlexAttention": flex_attention,
}
