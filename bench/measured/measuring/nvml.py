"""NVIDIA's management library, through ctypes: it comes with every driver. Reads used memory and counters of one GPU.
Units: bytes; counters from 0 to 1.

Counters: gpu_utilisation is nvmlDeviceGetUtilizationRates, the share of time with a kernel running, which the driver
averages over 1/6 s to 1 s. From Hopper on the driver has what DCGM calls by the same names as we do ("GPM" in NVML):
gract (graphics engine active), smact (multiprocessors busy), smocc (warps resident, of those that would fit) and fp32
(FP32 pipe active, without tensor cores). Source: NVIDIA's NVML API reference, groups nvmlDeviceQueries and nvmlGpm*.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from ctypes import Structure, byref, c_char_p, c_double, c_uint, c_ulonglong, c_void_p
from typing import Iterator

GPM = {"gract": 1, "smact": 2, "smocc": 3, "fp32": 12}
"""Ids of nvmlGpmMetricId_t."""
MOST_METRICS = 512
"""No version of nvml.h has room for more in nvmlGpmMetricsGet_t; numMetrics says how many are read."""


class Memory(Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(Structure):
    """Its `used` is without what the driver keeps for itself, as nvidia-smi shows it."""

    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class Utilization(Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class GpmSupport(Structure):
    _fields_ = [("version", c_uint), ("supported", c_uint)]


class GpmMetric(Structure):
    _fields_ = [
        ("id", c_uint),
        ("result", c_uint),
        ("value", c_double),
        ("short_name", c_char_p),
        ("long_name", c_char_p),
        ("unit", c_char_p),
    ]


class GpmMetrics(Structure):
    _fields_ = [
        ("version", c_uint),
        ("count", c_uint),
        ("first", c_void_p),
        ("second", c_void_p),
        ("metrics", GpmMetric * MOST_METRICS),
    ]


class Gpu:
    """One GPU, or one instance of a GPU that is partitioned (MIG)."""

    def __init__(self, library: ctypes.CDLL, handle: c_void_p):
        self.library, self.handle = library, handle
        self.gpm = self._has_gpm()

    def used(self) -> int:
        memory = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
        if self._call("nvmlDeviceGetMemoryInfo_v2", byref(memory)):
            return memory.used
        older = Memory()
        self._call("nvmlDeviceGetMemoryInfo", byref(older))
        return older.used

    def driver(self) -> str | None:
        text = ctypes.create_string_buffer(96)
        failed = self.library.nvmlSystemGetDriverVersion(text, c_uint(len(text)))
        return None if failed else text.value.decode()

    def utilisation(self) -> float | None:
        rates = Utilization()
        return rates.gpu / 100 if self._call("nvmlDeviceGetUtilizationRates", byref(rates)) else None

    def counter_source(self) -> str | None:
        if self.gpm:
            return "NVML utilisation and GPM"
        return None if self.utilisation() is None else "NVML utilisation"

    @contextlib.contextmanager
    def counters(self) -> Iterator[dict[str, float]]:
        """Filled when left; at least 0.1 s must lie between."""
        read: dict[str, float] = {}
        rates: list[float] = []
        done = threading.Event()

        def watch() -> None:
            # The driver's own average reaches back this far.
            while not done.wait(0.17):
                rate = self.utilisation()
                if rate is not None:
                    rates.append(rate)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        first = self._gpm_sample()
        try:
            yield read
        finally:
            second = self._gpm_sample()
            done.set()
            watcher.join()
            read.update(self._gpm_values(first, second))
            # What the first reading averages over lies before this window.
            if rates[1:]:
                read["gpu_utilisation"] = sum(rates[1:]) / len(rates[1:])

    def _call(self, name: str, *arguments: object) -> bool:
        function = getattr(self.library, name, None)
        return function is not None and function(self.handle, *arguments) == 0

    def _has_gpm(self) -> bool:
        support = GpmSupport(version=1)
        return self._call("nvmlGpmQueryDeviceSupport", byref(support)) and support.supported == 1

    def _gpm_sample(self) -> c_void_p | None:
        if not self.gpm:
            return None
        sample = c_void_p()
        if self.library.nvmlGpmSampleAlloc(byref(sample)) != 0:
            return None
        return sample if self._call("nvmlGpmSampleGet", sample) else None

    def _gpm_values(self, first: c_void_p | None, second: c_void_p | None) -> dict[str, float]:
        if first is None or second is None:
            return {}
        request = GpmMetrics(version=1, count=len(GPM), first=first, second=second)
        for place, number in enumerate(GPM.values()):
            request.metrics[place].id = number
        failed = self.library.nvmlGpmMetricsGet(byref(request))
        for sample in (first, second):
            self.library.nvmlGpmSampleFree(sample)
        if failed:
            return {}
        found = zip(GPM, request.metrics)
        return {name: min(metric.value / 100, 1.0) for name, metric in found if metric.result == 0}


def open_gpu() -> Gpu | None:
    """The GPU that CUDA calls 0 in this process; None where NVML cannot be had."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if library.nvmlInit_v2() != 0:
        return None
    for name in ("nvmlGpmSampleGet", "nvmlGpmSampleFree"):
        if hasattr(library, name):
            getattr(library, name).argtypes = [c_void_p, c_void_p][: 1 if name.endswith("Free") else 2]
    handle = _handle(library, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip())
    return None if handle is None else Gpu(library, handle)


def _handle(library: ctypes.CDLL, visible: str) -> c_void_p | None:
    """visible: as in CUDA_VISIBLE_DEVICES, a number or a UUID. CUDA counts GPUs as NVML does where there is one, or
    where CUDA_DEVICE_ORDER is PCI_BUS_ID."""
    handle = c_void_p()
    if visible.startswith(("GPU-", "MIG-")):
        failed = library.nvmlDeviceGetHandleByUUID(visible.encode(), byref(handle))
    else:
        number = int(visible) if visible.isdigit() else 0
        failed = library.nvmlDeviceGetHandleByIndex_v2(c_uint(number), byref(handle))
    return None if failed else handle
