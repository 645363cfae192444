"""Writes golden.json next to this file: what PyTorch holds while a cross entropy runs whose vocabulary two ranks share, as
torchtitan runs it (loss_parallel(), logits in bfloat16 and the loss in float32).

    python3 tests/golden/loss_parallel/make_golden.py

It needs PyTorch 2.6, and no GPU: the other rank is pretended. The figures are in bytes that live tensors hold, in addition to
the logits of the rank, by pass.
"""

from __future__ import annotations

import json
import pathlib
import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensor
from torch.distributed._tensor import DTensor, Shard, init_device_mesh
from torch.distributed.tensor.parallel import loss_parallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

TOKENS = 256
WORDS = 4096
RANKS = 2


class LiveBytes(TorchDispatchMode):
    """The most bytes of storages that calls have made and that are alive at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()
        self.now = 0
        self.peak = 0

    def take(self, result: Any) -> None:
        if isinstance(result, (list, tuple)):
            for each in result:
                self.take(each)
        # DTensor asks for shapes by fake tensors, which hold nothing.
        if not isinstance(result, torch.Tensor) or isinstance(result, (DTensor, FakeTensor)):
            return
        storage = result.untyped_storage()
        key = storage._cdata
        if key in self.known:
            return
        self.known.add(key)
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.end, key, storage.nbytes())

    def end(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # its calls on the rank's own tensors come here one by one
        result = func(*args, **(kwargs or {}))
        self.take(result)
        return result


def measured() -> dict[str, int]:
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    local = torch.randn(TOKENS, WORDS // RANKS, dtype=torch.bfloat16)
    logits = DTensor.from_local(local, mesh, [Shard(1)], run_check=False).requires_grad_()
    labels = torch.randint(0, WORDS // RANKS, (TOKENS,))
    with loss_parallel(), LiveBytes() as live:
        loss = F.cross_entropy(logits.float(), labels)
        forward, kept = live.peak, live.now
        live.peak = live.now
        loss.backward()
    return {"tokens": TOKENS, "words": WORDS, "ranks": RANKS, "forward": forward, "kept": kept, "backward": live.peak}


if __name__ == "__main__":
    golden = pathlib.Path(__file__).with_name("golden.json")
    golden.write_text(json.dumps(measured(), indent=1) + "\n")
