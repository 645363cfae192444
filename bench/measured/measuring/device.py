"""What a run asks of the machine: a CUDA device, or none for a dry run. Units: bytes, seconds.

Figures of a run, each a peak since reset():
  allocated, reserved, requested  PyTorch's own (torch.cuda.memory_stats)
  device                          all used memory of the GPU as NVML has it: contexts and what allocators hold
  context                         device less reserved and less what was in use before this process came
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from importlib import metadata
from typing import ContextManager, Iterator, Protocol

import torch

from .nvml import Gpu, open_gpu

Figures = dict[str, int]

AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
OUT_OF_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
BROKEN = ("CUDA error", "device-side assert", "CUBLAS_STATUS_NOT_INITIALIZED", "an illegal memory access")


class Device(Protocol):
    torch_device: torch.device
    cuda: bool

    def reset(self) -> None:
        """Gives all memory back and forgets the peaks."""

    def forget_peak(self) -> None:
        """Peaks are taken from here on; nothing is given back."""

    def limit(self, size: int | None) -> None:
        """Lets the allocator take no more than this many bytes; None: all that there is."""

    def check(self, size: int) -> None:
        """Raises RuntimeError (out of memory) if that many bytes cannot be had at all; a GPU says so by itself."""

    def set_precision(self, precision: str) -> None:
        ...

    def autocast(self, precision: str) -> ContextManager[None]:
        ...

    def scaler(self, precision: str):
        ...

    def synchronize(self) -> None:
        ...

    def watched(self) -> ContextManager[None]:
        """The device's peak is taken within."""

    def figures(self) -> Figures:
        ...

    def left(self) -> int:
        """Bytes that the allocator holds still."""

    def counters(self) -> ContextManager[dict[str, float]]:
        """Filled when left: counters (runs::Counters) averaged over the time within, as far as the driver has them."""


class CudaDevice:
    """GPU 0 of this process."""

    cuda = True

    def __init__(self, limit_bytes: int | None = None):
        self.gpu: Gpu | None = open_gpu()
        # Before this process has a context: what others use.
        self.others = self.gpu.used() if self.gpu else 0
        self.torch_device = torch.device("cuda", 0)
        torch.zeros(1, device=self.torch_device)
        self.total = torch.cuda.get_device_properties(0).total_memory
        self.whole = limit_bytes
        self.peak = 0
        self.limit(None)

    def used(self) -> int:
        if self.gpu:
            return self.gpu.used()
        free, total = torch.cuda.mem_get_info(0)
        return total - free

    def reset(self) -> None:
        gc.collect()
        # What has stayed is packages': the next collection need not go through it.
        gc.freeze()
        torch.cuda.synchronize()
        clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear is not None:
            clear()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        self.peak = 0

    def forget_peak(self) -> None:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()

    def limit(self, size: int | None) -> None:
        size = self.whole if size is None else size
        torch.cuda.set_per_process_memory_fraction(min(1.0, size / self.total) if size else 1.0)

    def check(self, size: int) -> None:
        pass

    def set_precision(self, precision: str) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = precision != "fp32-strict"

    def autocast(self, precision: str) -> ContextManager[None]:
        if precision not in AUTOCAST:
            return contextlib.nullcontext()
        return torch.autocast("cuda", AUTOCAST[precision])

    def scaler(self, precision: str):
        if precision != "amp-fp16":
            return None
        # From 1 on: no step is skipped because the loss was scaled too far.
        newer = getattr(torch.amp, "GradScaler", None)
        return newer("cuda", init_scale=1.0) if newer else torch.cuda.amp.GradScaler(init_scale=1.0)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                self.peak = max(self.peak, self.gpu.used())

        # Where only the CUDA runtime tells, its lock would be held against the run.
        watcher = threading.Thread(target=watch, daemon=True) if self.gpu else None
        if watcher:
            watcher.start()
        try:
            yield
        finally:
            done.set()
            if watcher:
                watcher.join()

    def figures(self) -> Figures:
        stats = torch.cuda.memory_stats()
        now, reserved_now = self.used(), stats["reserved_bytes.all.current"]
        return {
            "allocated": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"],
            "requested": stats.get("requested_bytes.all.peak", 0),
            "device": max(self.peak, now),
            "context": now - reserved_now - self.others,
            "retries": stats["num_alloc_retries"],
        }

    def left(self) -> int:
        return torch.cuda.memory_reserved()

    @contextlib.contextmanager
    def counters(self) -> Iterator[dict[str, float]]:
        found: dict[str, float] = {}
        if self.gpu is None:
            yield found
            return
        with self.gpu.counters() as read:
            yield found
        found.update(read)


class DryDevice:
    """A CPU that measures nothing: no figure is made up."""

    cuda = False

    def __init__(self, limit_bytes: int | None = None):
        self.torch_device = torch.device("cpu")
        self.whole = limit_bytes
        self.limit(None)
        torch.set_num_threads(1)

    def reset(self) -> None:
        gc.collect()

    def forget_peak(self) -> None:
        pass

    def limit(self, size: int | None) -> None:
        self.capacity = self.whole if size is None else size

    def check(self, size: int) -> None:
        if self.capacity is not None and size > self.capacity:
            raise RuntimeError("out of memory: the parameters alone are larger than --limit-gib (dry run)")

    def set_precision(self, precision: str) -> None:
        pass

    def autocast(self, precision: str) -> ContextManager[None]:
        if precision not in AUTOCAST:
            return contextlib.nullcontext()
        return torch.autocast("cpu", torch.bfloat16)

    def scaler(self, precision: str):
        return None

    def synchronize(self) -> None:
        pass

    def watched(self) -> ContextManager[None]:
        return contextlib.nullcontext()

    def figures(self) -> Figures:
        return {}

    def left(self) -> int:
        return 0

    def counters(self) -> ContextManager[dict[str, float]]:
        return contextlib.nullcontext({})


def trouble(text: str, device: Device, result: dict[str, object]) -> dict[str, object]:
    """The status that an error's text means, oom or error; `broken` where no CUDA call will succeed any more. Where
    memory was out, the result is given the figures."""
    if any(words in text for words in OUT_OF_MEMORY):
        result.update(device.figures())
        return {"status": "oom", "error": text[:300]}
    broken = {"broken": True} if any(words in text for words in BROKEN) else {}
    return {"status": "error", "error": text[:300], **broken}


def package_versions() -> dict[str, str]:
    """Of the packages that models come from, as far as they are installed."""
    versions: dict[str, str] = {}
    for name in ("torchvision", "timm", "transformers", "diffusers", "peft", "accelerate", "trl", "datasets"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def machine(device: Device) -> dict[str, object]:
    """The hardware and software that figures were taken with."""
    about: dict[str, object] = {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "cuda": torch.version.cuda,
        **package_versions(),
        "date": time.strftime("%Y-%m-%d"),
        "allocator": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", os.environ.get("PYTORCH_ALLOC_CONF", "")),
        "module_loading": os.environ.get("CUDA_MODULE_LOADING", ""),
    }
    if not isinstance(device, CudaDevice):
        return {**about, "gpu": None, "dry_run": True}
    properties = torch.cuda.get_device_properties(0)
    about.update(
        gpu=properties.name,
        total_bytes=properties.total_memory,
        multiprocessors=properties.multi_processor_count,
        capability=f"{properties.major}.{properties.minor}",
        cudnn=torch.backends.cudnn.version(),
        driver=device.gpu.driver() if device.gpu else None,
        used_memory_from="NVML" if device.gpu else "cudaMemGetInfo",
        counters_from=device.gpu.counter_source() if device.gpu else None,
        used_by_others_bytes=device.others,
    )
    return about
