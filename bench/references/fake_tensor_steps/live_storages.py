"""The storages that are alive, op by op, and their sum."""

from __future__ import annotations

import dataclasses

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


@dataclasses.dataclass
class Storage:
    alive: StorageWeakRef
    size: int
    maker: str


class LiveStorages(TorchDispatchMode):
    """Keeps the books on every storage that an op's outputs have, from its making to its end.

    A storage's end is noticed when the next op begins: nothing is made in between. What counts is the
    storage and not the Python tensor, which may die while autograd still holds the storage.
    """

    def __init__(self, trace=None):
        super().__init__()
        self.storages = {}
        self.total = 0
        self.peak = 0
        self.peak_op = ""
        self.trace = trace
        self.module = ""

    def hold(self, tensors, maker):
        """The bytes these tensors' storages add to what is live."""
        made = 0
        for tensor in tensors:
            storage = tensor.storage()
            known = self.storages.get(storage._cdata)
            size = storage.nbytes()
            if known and not known.alive.expired():
                made += size - known.size
                known.size = size
            else:
                self.storages[storage._cdata] = Storage(StorageWeakRef(storage), size, maker)
                made += size
        self.total += made
        return made

    def sweep(self):
        """Strikes out the storages that ended, and gives the bytes still live."""
        for key in [key for key, storage in self.storages.items() if storage.alive.expired()]:
            ended = self.storages.pop(key)
            self.total -= ended.size
            self.note(f"{'':40} - {ended.size:>13,}  {self.total:>15,}  of {ended.maker}")
        return self.total

    def start_peak(self):
        self.peak, self.peak_op = self.sweep(), "start"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.prim.device.default:
            return func(*args, **(kwargs or {}))
        self.sweep()
        result = func(*args, **(kwargs or {}))
        outputs = [item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor)]
        name = str(func).removesuffix(".default")
        made = self.hold(outputs, f"{name} {self.module}".rstrip())
        shapes = " ".join("x".join(map(str, output.shape)) or "scalar" for output in outputs)
        self.note(f"{name:<40} + {made:>13,}  {self.total:>15,}  {shapes:<24} {self.module}".rstrip())
        if self.total > self.peak:
            self.peak, self.peak_op = self.total, name
        return result

    def note(self, line):
        if self.trace is not None:
            self.trace.append(line)
