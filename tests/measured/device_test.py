"""The GPU's side, with stand-ins for the driver's library and for CUDA's calls: that figures reach the table."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import time
import unittest
from unittest import mock

import torch

from support import FolderTest
from measuring import device, jobs, nvml, training

MIB = 2**20


class Driver:
    """As libnvidia-ml, of a GPU that is half busy."""

    used = 500 * MIB
    gpm = 1

    def nvmlDeviceGetMemoryInfo_v2(self, _handle: object, memory) -> int:
        memory._obj.used = self.used
        return 0

    def nvmlSystemGetDriverVersion(self, text, _length: object) -> int:
        text.value = b"580.1"
        return 0

    def nvmlDeviceGetUtilizationRates(self, _handle: object, rates) -> int:
        rates._obj.gpu = 50
        return 0

    def nvmlGpmQueryDeviceSupport(self, _handle: object, support) -> int:
        support._obj.supported = self.gpm
        return 0

    def nvmlGpmSampleAlloc(self, sample) -> int:
        sample._obj.value = 1
        return 0

    def nvmlGpmSampleGet(self, _handle: object, _sample: object) -> int:
        return 0

    def nvmlGpmSampleFree(self, _sample: object) -> int:
        return 0

    def nvmlGpmMetricsGet(self, request) -> int:
        asked = request._obj
        for place in range(asked.count):
            metric = asked.metrics[place]
            metric.value, metric.result = 10.0 * metric.id, 3 if metric.id == 3 else 0
        return 0


class OlderDriver(Driver):
    """Without the newer calls."""

    nvmlDeviceGetMemoryInfo_v2 = None
    gpm = 0

    def nvmlDeviceGetMemoryInfo(self, _handle: object, memory) -> int:
        memory._obj.used = 70 * MIB
        return 0


class Nvml(unittest.TestCase):
    def gpu(self, driver: type[Driver] = Driver) -> nvml.Gpu:
        return nvml.Gpu(driver(), ctypes.c_void_p(1))

    def test_reads_the_driver(self) -> None:
        gpu = self.gpu()
        self.assertEqual(gpu.used(), 500 * MIB)
        self.assertEqual(gpu.driver(), "580.1")
        self.assertEqual(gpu.counter_source(), "NVML utilisation and GPM")

    def test_counters(self) -> None:
        with self.gpu().counters() as counters:
            time.sleep(0.45)
        # What the driver does not have (smocc here) is left out; a share is never above 1.
        self.assertEqual(counters, {"gract": 0.1, "smact": 0.2, "fp32": 1.0, "gpu_utilisation": 0.5})

    def test_an_older_driver(self) -> None:
        gpu = self.gpu(OlderDriver)
        self.assertEqual(gpu.used(), 70 * MIB)
        with gpu.counters() as counters:
            time.sleep(0.45)
        self.assertEqual(counters, {"gpu_utilisation": 0.5})


class Cuda(FolderTest):
    """CudaDevice computes on the CPU here."""

    STATS = {
        "allocated_bytes.all.peak": 100 * MIB,
        "reserved_bytes.all.peak": 120 * MIB,
        "reserved_bytes.all.current": 110 * MIB,
        "requested_bytes.all.peak": 99 * MIB,
        "num_alloc_retries": 1,
    }

    def setUp(self) -> None:
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.calls = {
            name: stack.enter_context(mock.patch.object(torch.cuda, name))
            for name in (
                "synchronize",
                "empty_cache",
                "reset_peak_memory_stats",
                "reset_accumulated_memory_stats",
                "set_per_process_memory_fraction",
                "get_device_properties",
                "memory_stats",
                "memory_reserved",
                "mem_get_info",
            )
        }
        self.calls["get_device_properties"].return_value.total_memory = 1000 * MIB
        self.calls["memory_stats"].return_value = self.STATS
        self.calls["memory_reserved"].return_value = 0
        self.calls["mem_get_info"].return_value = (600 * MIB, 1000 * MIB)

    def device(self, gpu: nvml.Gpu | None, limit: int | None = None) -> device.CudaDevice:
        with mock.patch.object(device, "open_gpu", return_value=gpu), mock.patch.object(torch, "zeros"):
            made = device.CudaDevice(limit)
        made.torch_device = torch.device("cpu")
        return made

    def job(self) -> jobs.Job:
        made = jobs.shrunk(jobs.Series(3, ("mlp",)).job(0))
        return dataclasses.replace(made, precision="fp32", fused=False)

    def test_figures(self) -> None:
        gpu = nvml.Gpu(Driver(), ctypes.c_void_p(1))
        made = self.device(gpu)
        made.others = 90 * MIB
        gpu.library.used = 650 * MIB
        result = training.run(self.job(), made)
        self.assertEqual(result["status"], "ok", result)
        found = {name: result[name] // MIB for name in ("allocated", "reserved", "requested", "device", "context")}
        self.assertEqual(found, {"allocated": 100, "reserved": 120, "requested": 99, "device": 650, "context": 450})
        self.assertEqual((result["first_reserved"] // MIB, result["retries"]), (120, 1))

    def test_a_peak_that_is_over_is_kept(self) -> None:
        made = self.device(nvml.Gpu(Driver(), ctypes.c_void_p(1)))
        with made.watched():
            made.gpu.library.used = 800 * MIB
            time.sleep(0.1)
            made.gpu.library.used = 400 * MIB
        self.assertEqual(made.figures()["device"], 800 * MIB)
        made.reset()
        self.assertEqual(made.figures()["device"], 400 * MIB)

    def test_without_nvml(self) -> None:
        result = training.run(self.job(), self.device(None))
        self.assertEqual(result["device"], 400 * MIB)
        self.assertEqual(result["context"], 290 * MIB)

    def test_limits(self) -> None:
        made = self.device(None, 250 * MIB)
        fraction = self.calls["set_per_process_memory_fraction"]
        fraction.assert_called_with(0.25)
        made.limit(500 * MIB)
        fraction.assert_called_with(0.5)
        made.limit(None)
        fraction.assert_called_with(0.25)
        self.device(None)
        fraction.assert_called_with(1.0)

    def test_memory_that_stays_is_said(self) -> None:
        self.calls["memory_reserved"].return_value = 2 * MIB
        result = training.run(self.job(), self.device(None))
        self.assertEqual((result["left_before"], result["left"]), (2 * MIB, 2 * MIB))

    def failing(self, text: str) -> training.Result:
        with mock.patch.object(training, "put", side_effect=RuntimeError(text)):
            return training.run(self.job(), self.device(None))

    def test_out_of_memory(self) -> None:
        result = self.failing("CUDA out of memory. Tried to allocate 2.00 GiB")
        self.assertEqual((result["status"], result["reserved"]), ("oom", 120 * MIB))
        self.assertNotIn("broken", result)

    def test_a_broken_context(self) -> None:
        before = self.calls["empty_cache"].call_count
        result = self.failing("CUDA error: an illegal memory access was encountered")
        self.assertEqual((result["status"], result["broken"]), ("error", True))
        # Nothing was asked of it any more, except the reset before the run.
        self.assertEqual(self.calls["empty_cache"].call_count, before + 1)

    def test_machine(self) -> None:
        properties = self.calls["get_device_properties"].return_value
        properties.name, properties.major, properties.minor, properties.multi_processor_count = "NVIDIA H200", 9, 0, 132
        about = device.machine(self.device(nvml.Gpu(Driver(), ctypes.c_void_p(1))))
        self.assertEqual((about["gpu"], about["capability"], about["driver"]), ("NVIDIA H200", "9.0", "580.1"))


if __name__ == "__main__":
    unittest.main()
