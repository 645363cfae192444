"""Models and their training steps, on the CPU."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import sys
import types
import unittest
from unittest import mock

import torch
from torch import nn

from support import GPUMEM, FolderTest, gpumem
from measuring import census, convolutions, device, jobs, nets, nvml, profiles, summaries, training, zoo
from measuring.constants import STAGES, measure_stage

CPU = device.DryDevice()
HERE = jobs.available_families()


def drawn(family: str, count: int) -> list[jobs.Job]:
    series = jobs.Series(3, (family,))
    return [jobs.shrunk(series.job(index)) for index in range(count)]


class Training(unittest.TestCase):
    def ran(self, job: jobs.Job, **changes: object) -> training.Result:
        result = training.run(dataclasses.replace(job, **changes), CPU)
        self.assertEqual(result["status"], "ok", (job, result))
        return result

    def test_every_family_trains(self) -> None:
        for family in HERE:
            for job in drawn(family, 12 if family not in jobs.PACKAGES else 2):
                # This CPU build cannot compute all activations in half precision; a GPU can.
                result = self.ran(job, precision="fp32")
                self.assertEqual(result["steps"], 3)
                self.assertGreater(result["parameters"], 0)

    def test_every_optimizer_and_precision(self) -> None:
        (job,) = drawn("transformer", 1)
        for optimizer in set(jobs.OPTIMIZERS):
            self.ran(job, optimizer=optimizer, precision="fp32")
        for precision in set(jobs.PRECISIONS):
            self.ran(job, precision=precision)

    def test_accumulation_and_checkpointing(self) -> None:
        (job,) = drawn("transformer", 1)
        self.assertTrue(self.ran(job, accumulation=2, checkpointing=True)["checkpointing"])
        (job,) = drawn("mlp", 1)
        self.assertFalse(self.ran(job, precision="fp32", checkpointing=True)["checkpointing"])

    def test_one_that_runs_on_for_counters(self) -> None:
        (job,) = drawn("mlp", 1)
        job = dataclasses.replace(job, counters=True, precision="fp32")
        result = training.run(job, CPU, 0.2)
        self.assertEqual(result["counters"], {})
        self.assertGreater(len(result["step_seconds"]), 3)
        self.assertLessEqual(len(result["step_seconds"]), 16)

    def test_out_of_memory_is_a_result(self) -> None:
        small = device.DryDevice(1000)
        result = training.run(drawn("cnn", 1)[0], small)
        self.assertEqual(result["status"], "oom")
        # What the table needs all the same.
        self.assertGreater(result["parameters"], 250)
        self.assertEqual(len(result["sample"]), 3)

    def test_a_model_that_fails_is_a_result(self) -> None:
        job = drawn("cnn", 1)[0]
        broken = dataclasses.replace(job, model={**job.model, "activation": "none such"})
        result = training.run(broken, CPU)
        self.assertEqual(result["status"], "error")
        self.assertIn("none such", result["error"])

    def test_a_model_that_is_not_here_is_a_result(self) -> None:
        result = training.run(jobs.Job("n", "timm", {"name": "none_such", "classes": 2}, 1), CPU)
        self.assertEqual(result["status"], "unavailable")

    def test_losses_of_several_outputs_are_added(self) -> None:
        one, labels = torch.randn(4, 3), torch.zeros(4, dtype=torch.long)
        single = training.loss_of(one, labels, "cross-entropy")
        self.assertTrue(torch.allclose(training.loss_of((one, None, one), labels, "cross-entropy"), 2 * single))


class Foreign(unittest.TestCase):
    """What is asked of timm and transformers, by stand-ins for them."""

    class Encoder(nn.Module):
        """As transformers' classes for tokens: gives an object with logits."""

        supports_gradient_checkpointing = True

        def __init__(self, config: types.SimpleNamespace):
            super().__init__()
            self.words = nn.Embedding(config.vocab_size, config.hidden_size)
            self.head = nn.Linear(config.hidden_size, config.vocab_size)
            self.checkpointing = False

        def gradient_checkpointing_enable(self) -> None:
            self.checkpointing = True

        def forward(self, input_ids: torch.Tensor) -> types.SimpleNamespace:
            return types.SimpleNamespace(logits=self.head(self.words(input_ids)))

    class Picture(nn.Module):
        """As timm's models."""

        default_cfg = {"input_size": (3, 8, 8)}

        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3 * 64, 10)
            # A model that reads its own parameters cannot be built without their storage.
            self.scale = self.head.weight.sum().item()

        def set_grad_checkpointing(self) -> None:
            raise AssertionError("not supported")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x.flatten(1))

    def test_transformers(self) -> None:
        stub = types.SimpleNamespace(
            __name__="transformers", BertConfig=types.SimpleNamespace, BertForMaskedLM=self.Encoder
        )
        job = next(job for job in drawn("hf", 100) if job.model["model"] == "BertForMaskedLM")
        job = dataclasses.replace(job, precision="fp32", checkpointing=True)
        with mock.patch.dict(sys.modules, transformers=stub):
            result = training.run(job, CPU)
            graph = json.loads(summaries.graph_of(zoo.built(job), "net"))
        self.assertEqual(result["status"], "ok", result)
        self.assertTrue(result["tokens"])
        self.assertTrue(result["checkpointing"])
        self.assertEqual([node["op"] for node in graph["nodes"]], ["embedding", "linear"])

    def test_an_older_transformers(self) -> None:
        stub = types.SimpleNamespace(__name__="transformers")
        with mock.patch.dict(sys.modules, transformers=stub):
            self.assertEqual(training.run(drawn("hf", 1)[0], CPU)["status"], "unavailable")

    def test_timm(self) -> None:
        stub = types.SimpleNamespace(
            __name__="timm",
            __version__="1",
            is_model=lambda name: name == "picture",
            create_model=lambda name, pretrained, num_classes: self.Picture(),
        )
        job = jobs.Job("n", "timm", {"name": "picture", "classes": 10}, 2, checkpointing=True)
        with mock.patch.dict(sys.modules, timm=stub):
            result = training.run(job, CPU)
            unknown = training.run(dataclasses.replace(job, model={"name": "none", "classes": 2}), CPU)
        self.assertEqual(result["status"], "ok", result)
        self.assertFalse(result["checkpointing"])
        self.assertEqual(result["sample"], [3, 8, 8])
        self.assertEqual(unknown["status"], "unavailable")


class Placing(unittest.TestCase):
    def placed(self, make) -> nn.Module:
        with zoo.without_storage():
            module = make()
        zoo.place(module, torch.device("cpu"))
        return module

    def test_parameters_have_no_storage_before(self) -> None:
        module = zoo.built(drawn("cnn", 1)[0]).module
        self.assertTrue(all(parameter.is_meta for parameter in module.parameters()))

    def test_what_was_shared_is_shared(self) -> None:
        def tied() -> nn.Module:
            module = nn.ModuleDict({"words": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
            module["head"].weight = module["words"].weight
            return module

        module = self.placed(tied)
        self.assertIs(module["head"].weight, module["words"].weight)
        self.assertFalse(module["head"].weight.is_meta)

    def test_buffers_keep_their_values(self) -> None:
        module = self.placed(lambda: nn.BatchNorm1d(3))
        self.assertEqual(module.running_var.tolist(), [1, 1, 1])
        self.assertEqual(module.num_batches_tracked.dtype, torch.int64)

    def test_half_precision_is_of_numbers_alone(self) -> None:
        with zoo.without_storage():
            module = nn.BatchNorm1d(3)
        zoo.place(module, torch.device("cpu"), torch.bfloat16)
        self.assertEqual(module.weight.dtype, torch.bfloat16)
        self.assertEqual(module.running_mean.dtype, torch.bfloat16)
        self.assertEqual(module.num_batches_tracked.dtype, torch.int64)

    def test_the_order_is_that_of_to(self) -> None:
        """Children first, then a module's own."""
        seen: list[torch.Size] = []

        class Outer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.own = nn.Parameter(torch.zeros(7))
                self.child = nn.Linear(2, 3)

        outer = Outer()
        outer._apply(lambda tensor: (seen.append(tensor.shape), tensor)[1])
        made: list[torch.Size] = []
        plain = torch.empty_like

        def noted(tensor, **more):
            made.append(tensor.shape)
            return plain(tensor, **more)

        torch.empty_like = noted
        try:
            zoo.place(outer, torch.device("cpu"))
        finally:
            torch.empty_like = plain
        self.assertEqual(made, seen)


class Nets(unittest.TestCase):
    SPEC = {"inputs": 100, "outputs": 10, "depth": 3, "activation": "relu", "dropout": 0.2, "batch_norm": True}

    def widths(self, shape: str) -> list[int]:
        return nets.hidden_widths({**self.SPEC, "shape": shape})

    def test_widths_of_mlps(self) -> None:
        self.assertEqual(self.widths("pyramid"), [50, 25, 12])
        self.assertEqual(self.widths("uniform"), [100, 100, 100])
        self.assertEqual(self.widths("bottleneck"), [50, 25, 12, 10])
        self.assertEqual(self.widths("gradual"), [70, 40, 10])

    def test_layers_of_an_mlp(self) -> None:
        module = nets.mlp({**self.SPEC, "shape": "pyramid"})
        kinds = [type(layer).__name__ for layer in module]
        self.assertEqual(kinds, ["Linear", "BatchNorm1d", "ReLU", "Dropout"] * 3 + ["Linear", "Softmax"])

    def test_channels_of_cnns(self) -> None:
        def channels(shape: str) -> list[int]:
            spec = {"shape": shape, "base_filters": 32, "depth": 4}
            return [jobs.cnn_channels(spec, block) for block in range(4)]

        self.assertEqual(channels("uniform"), [32] * 4)
        self.assertEqual(channels("pyramid"), [32, 90, 256, 724])
        self.assertEqual(channels("gradual"), [32, 53, 90, 152])
        self.assertEqual(channels("bottleneck"), [64, 32, 128, 512])
        self.assertEqual(channels("hourglass"), [32, 256, 256, 32])

    def test_linear_layers_of_transformers(self) -> None:
        for packed, each in ((True, 4), (False, 6)):
            spec = {**jobs.draw_transformer(random.Random(1))[0], "packed": packed, "layers": 2}
            with zoo.without_storage():
                module = nets.Transformer(spec)
            count = sum(isinstance(part, nn.Linear) for part in module.modules())
            # A packed projection is a parameter of nn.MultiheadAttention.
            self.assertEqual(count + (2 if packed else 0), 2 * each + 1)


class Summaries(FolderTest):
    def test_every_family_has_a_graph(self) -> None:
        for family in set(HERE) - {"timm", "hf"}:
            for job in drawn(family, 4 if family != "vision" else 1):
                written = summaries.write(job, self.folder)
                self.assertNotIn("error", written)
                graph = json.loads((self.folder / written[summaries.GRAPH]).read_text())
                self.assertEqual(graph["format"], "gpumem-graph")
                self.assertEqual(summaries.found(job, self.folder).suffix, ".json")
                self.assertTrue(summaries.finished(job, self.folder))

    def test_what_cannot_be_traced_has_its_tree(self) -> None:
        job = drawn("mlp", 1)[0]
        plain = summaries.graph_of
        summaries.graph_of = lambda model, name: 1 / 0
        try:
            written = summaries.write(job, self.folder)
        finally:
            summaries.graph_of = plain
        self.assertIn("ZeroDivisionError", written["error"])
        self.assertEqual(summaries.found(job, self.folder).name, summaries.stem(job) + summaries.TREE)
        self.assertTrue(summaries.finished(job, self.folder))

    def test_the_same_model_has_one_name(self) -> None:
        job = drawn("mlp", 1)[0]
        self.assertEqual(summaries.stem(job), summaries.stem(dataclasses.replace(job, name="other", batch_size=9)))


class Census(FolderTest):
    def test_convolutions_are_drawn_in_their_ranges(self) -> None:
        shapes = [convolutions.draw_convolution(1, index) for index in range(2000)]
        self.assertEqual(shapes[77], convolutions.draw_convolution(1, 77))
        self.assertEqual({shape["in_channels"] for shape in shapes}, set(convolutions.CHANNELS))
        self.assertEqual({shape["mode"] for shape in shapes}, set(convolutions.MODES))
        depthwise = [shape for shape in shapes if shape["groups"] > 1]
        self.assertTrue(all(shape["groups"] == shape["in_channels"] == shape["out_channels"] for shape in depthwise))
        self.assertTrue(all(convolutions.size_of(shape) <= convolutions.MOST_BYTES for shape in shapes))

    def test_a_convolution(self) -> None:
        row = census.measure_convolution(convolutions.small(convolutions.draw_convolution(1, 0)), CPU)
        self.assertNotIn("error", row)
        self.assertIn("weight_gradient_bytes", row)

    def test_a_convolution_that_fails_is_a_row(self) -> None:
        shape = {
            **convolutions.small(convolutions.draw_convolution(1, 0)),
            "groups": 7,
            "in_channels": 3,
            "out_channels": 3,
        }
        self.assertIn("error", census.measure_convolution(shape, CPU))

    def test_every_stage_of_the_constants(self) -> None:
        for stage in STAGES:
            marks = [row["mark"] for row in measure_stage(stage, CPU)]
            self.assertEqual((marks[0], marks[-1]), ("context", "end"))

    @unittest.skipUnless(GPUMEM, "no gpumem program was named")
    def test_recordings_can_be_replayed(self) -> None:
        def event(action: str, address: int, size: int) -> dict:
            return {"action": action, "addr": address, "size": size, "stream": 0, "frames": ["long"], "time_us": 5}

        trace = [event("alloc", 4096, 1000), event("alloc", 8192, 3 << 20), event("free_completed", 4096, 1000)]
        path = self.folder / "trace.json"
        path.write_text(json.dumps(census.slim({"segments": [1], "device_traces": [trace]})))
        self.assertNotIn("frames", path.read_text())
        replayed = gpumem("replay-trace", path, "--gpu", "t4-16gb")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)

    def test_a_dry_recording(self) -> None:
        path = self.folder / "trace.json.gz"
        result = census.trace_job(dataclasses.replace(drawn("mlp", 1)[0], precision="fp32"), CPU, path)
        self.assertEqual((result["status"], result["steps"]), ("ok", 2))
        self.assertEqual(json.loads(gzip.decompress(path.read_bytes())), {"device_traces": [[]]})


class Machines(unittest.TestCase):
    GIB = 2**30

    def test_profiles(self) -> None:
        for name, gib, profile in (
            ("NVIDIA H200", 139.8, "h200-141gb"),
            ("NVIDIA A100-SXM4-40GB", 39.6, "a100-40gb"),
            ("NVIDIA A100 80GB PCIe", 79.2, "a100-80gb"),
            ("Tesla T4", 14.7, "t4-16gb"),
            ("NVIDIA GeForce RTX 4090", 23.6, "rtx4090-24gb"),
            ("Tesla V100-SXM2-32GB", 31.7, "v100-32gb"),
            ("NVIDIA L40S", 44.4, "l40s-48gb"),
            ("Some GPU", 10.0, "Some GPU"),
        ):
            self.assertEqual(profiles.profile_of(name, int(gib * self.GIB)), profile)

    def test_the_drivers_structures_have_its_sizes(self) -> None:
        """Of nvml.h on 64-bit machines."""
        import ctypes

        self.assertEqual(ctypes.sizeof(nvml.Memory), 24)
        self.assertEqual(ctypes.sizeof(nvml.MemoryV2), 40)
        self.assertEqual(ctypes.sizeof(nvml.GpmMetric), 40)
        self.assertEqual(nvml.GpmMetrics.metrics.offset, 24)

    def test_no_driver_is_no_gpu(self) -> None:
        plain = nvml.ctypes.CDLL

        def missing(name: str):
            raise OSError(name)

        nvml.ctypes.CDLL = missing
        try:
            self.assertIsNone(nvml.open_gpu())
        finally:
            nvml.ctypes.CDLL = plain


if __name__ == "__main__":
    unittest.main()
