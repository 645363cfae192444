"""What a compiled program keeps for backward: PyTorch's own on the CPU, against a recording on the pretended GPU.

    python3 tests/recorder/compiled.py                 # compares with tests/golden/recordings/compiled_saved.json
    python3 tests/recorder/compiled.py --update        # writes it, and compiled.json.gz

The golden is made without gpumem: real tensors, Dynamo, AOTAutograd and Inductor's passes and partitioner on the joint graph,
whose halves are then run as they are. It needs PyTorch 2.6.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch._inductor.compile_fx import compile_fx  # noqa: E402
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper  # noqa: E402
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts  # noqa: E402

import gpumem  # noqa: E402
import programs  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "golden" / "recordings"
Made = tuple[nn.Module, Tensor]


class Block(nn.Module):
    """A transformer's feed-forward part: nearly all of it is elementwise."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.widen, self.gate = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.dropout(self.narrow(nn.functional.gelu(self.widen(y)) * torch.sigmoid(self.gate(y))))


def block(device: str) -> Made:
    return Block(64).to(device), torch.ones(8, 32, 64, device=device)


def resnet(device: str) -> Made:
    last = torch.channels_last  # Inductor copies other convolutions to it, but on a GPU alone.
    x = torch.ones(2, 3, 64, 64, device=device).to(memory_format=last)
    return programs.ResNet((1, 1, 1, 1), deep=True).to(device).to(memory_format=last), x


def llama(device: str) -> Made:
    model = programs.Llama(layers=2, width=128, heads=4, kv_heads=4, hidden=352)
    return model.to(device), torch.zeros(2, 64, dtype=torch.long, device=device)


def checkpointed(device: str) -> Made:
    model = programs.Llama(layers=2, width=128, heads=4, kv_heads=4, hidden=352, checkpointing=True)
    return model.to(device), torch.zeros(2, 64, dtype=torch.long, device=device)


_KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
}


def _contexts() -> Any:
    """As torchtitan's selective checkpoints: attention and every second product are kept."""
    products = {True: 0, False: 0}

    def policy(context: Any, func: Any, *_arguments: Any, **_options: Any) -> CheckpointPolicy:
        if func is torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            if products[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if func in _KEPT else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def selective(device: str) -> Made:
    model = programs.Llama(layers=2, width=128, heads=4, kv_heads=4, hidden=352)
    for place, layer in enumerate(model.layers):
        model.layers[place] = checkpoint_wrapper(layer, context_fn=_contexts, preserve_rng_state=False)
    return model.to(device), torch.zeros(2, 64, dtype=torch.long, device=device)


PROGRAMS: dict[str, Callable[[str], Made]] = {
    "block": block,
    "resnet": resnet,
    "llama": llama,
    "llama, checkpoints": checkpointed,
    "llama, selective checkpoints": selective,
}


def saved(made: Made, backend: Any) -> list[list[Any]]:
    """Type and shape of each tensor that is kept for backward, and is neither a parameter nor the input. States of random
    numbers (uint8) are larger on the CPU."""
    model, x = made
    given = {each.untyped_storage()._cdata for each in (x, *model.parameters(), *model.buffers())}
    kept = []

    def pack(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage()._cdata not in given and tensor.numel() > 1 and tensor.dtype != torch.uint8:
            kept.append([str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
        return tensor

    compiled = torch.compile(model, backend=backend)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        compiled(x)
    return sorted(kept)


def _as_it_is(graph: torch.fx.GraphModule, _inputs: Any, **_options: Any) -> Any:
    return graph


def on_cpu(make: Callable[[str], Made]) -> list[list[Any]]:
    torch._dynamo.reset()
    # Inductor's operators of random numbers return views where they run as they are.
    importlib.import_module("torch._library.utils").check_aliasing_constraint = lambda *_arguments, **_options: None
    return saved(make("cpu"), functools.partial(compile_fx, inner_compile=_as_it_is))


def recorded(make: Callable[[str], Made]) -> list[list[Any]]:
    with recording():
        return saved(make("cuda"), "inductor")


def make_step(batch: int) -> Callable[[], None]:
    model = Block(64).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model)

    def step() -> None:
        compiled(torch.empty(batch, 32, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> int:
    warnings.simplefilter("ignore")
    golden = GOLDENS / "compiled_saved.json"
    if "--update" in sys.argv:
        of_cpu = {name: on_cpu(make) for name, make in PROGRAMS.items()}
        lines = ",\n".join(f' {json.dumps(name)}: {json.dumps(kept)}' for name, kept in of_cpu.items())
        golden.write_text("{\n" + lines + "\n}\n")
        gpumem.record.step(make_step, 8, path=GOLDENS / "compiled.json.gz", scale=False, title="compiled")
    known = json.loads(golden.read_text())
    failed = 0
    for name, make in PROGRAMS.items():
        ours = recorded(make)
        failed += ours != known[name]
        print(f"{'ok  ' if ours == known[name] else 'FAIL'} {name}: {len(ours)} tensors kept, {len(known[name])} by PyTorch")
        for each in ours + known[name]:
            if ours.count(each) != known[name].count(each):
                print(f"    {each}: {ours.count(each)} times, {known[name].count(each)} by PyTorch")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
