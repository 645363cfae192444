"""estimate_module() and export_module(): what PyTorch's modules take, without a summary.

It is what examples/pytorch/export_graph.py and the command line say one after the other."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import gpumem
from support import SOURCE, command_line

try:
    import torch
    import torchvision
    from torch import nn
except ImportError as missing:
    raise unittest.SkipTest(f"PyTorch and torchvision are not installed: {missing}") from missing


def numbers(printed):
    """An estimate without what depends on where the graph was read from."""
    told = json.loads(printed)
    return told["job"], [
        {k: v for k, v in each.items() if k != "seconds"} for each in told["estimates"]
    ]


warnings.filterwarnings("ignore", "Lazy modules")


class Images(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, size, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
        self.net(torch.zeros(1, 3, 16, 16))

    def forward(self, images, scale=None):
        out = self.net(images)
        return out if scale is None else out * scale


class EstimateModule(unittest.TestCase):
    def test_agrees_with_the_exporter_and_the_command_line(self):
        exporter = SOURCE / "examples" / "pytorch" / "export_graph.py"
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder, "graph.json")
            arguments = ["--model", "torchvision.resnet18", "--input", "3x224x224", "-o", graph]
            subprocess.run([sys.executable, exporter, *arguments], check=True)
            printed = command_line("estimate", graph, "--batch", 32, "--optimizer", "sgd", "--json")
        module = torchvision.models.resnet18(weights=None)
        made = gpumem.estimate_module(
            module, torch.zeros(2, 3, 224, 224), batch_size=32, optimizer="sgd"
        )
        self.assertEqual(numbers(made.json()), numbers(printed.stdout))
        self.assertGreater(made.expected_bytes, 1 << 30)

    def test_every_question_takes_a_module(self):
        module, inputs = Images(), torch.empty(4, 3, 16, 16)
        made = gpumem.estimate(module, inputs, optimizer="sgd")
        self.assertEqual(numbers(made.json()), numbers(gpumem.estimate_module(module, inputs, optimizer="sgd").json()))
        self.assertEqual(made.batch_size, 4)
        self.assertIn("Images", str(made).splitlines()[0])
        read = gpumem.read_module(module, inputs)
        self.assertEqual(gpumem.fit(module, inputs, gpu="t4-16gb").batch_size, gpumem.fit(read, gpu="t4-16gb").batch_size)
        advice = gpumem.advise(module, inputs, batch_size=8)
        self.assertEqual(advice.json(), gpumem.advise(read, batch_size=8).json())
        plan = gpumem.plan(module, inputs, global_batch=8, gpus=2, framework="fsdp2")
        self.assertEqual(plan.layouts[0].options, gpumem.plan(read, global_batch=8, gpus=2, framework="fsdp2").layouts[0].options)
        with self.assertRaises(gpumem.UsageError):
            gpumem.estimate(module, inputs, input=(3, 16, 16))
        with self.assertRaisesRegex(TypeError, "example_inputs, such as"):
            gpumem.fit(module)
        with self.assertRaisesRegex(TypeError, "for a module"):
            gpumem.estimate(read, inputs, batch_size=8)
        with self.assertRaisesRegex(TypeError, "batch_size"):
            gpumem.estimate(read)

    def test_agrees_with_the_shipped_graph(self):
        module = torchvision.models.resnet18(weights=None)
        ours = gpumem.export_module(module, torch.empty(2, 3, 224, 224, device="meta"))
        shipped = gpumem.read_summary(SOURCE / "models" / "graphs" / "resnet18.json")
        self.assertEqual((ours.layers, ours.parameters), (shipped.layers, shipped.parameters))
        for batch_size in (1, 100):
            expected = gpumem.estimate(shipped, batch_size=batch_size, input="3x224x224")
            made = gpumem.estimate(ours, batch_size=batch_size)
            self.assertEqual(made.expected_bytes, expected.expected_bytes)

    def test_package_holds_the_very_exporter(self):
        from gpumem import export_graph

        package, examples = pathlib.Path(export_graph.__file__).parent, SOURCE / "examples" / "pytorch"
        files = [pathlib.Path("export_graph.py")]
        files += [path.relative_to(examples) for path in (examples / "graph_exporter").glob("*.py")]
        self.assertGreater(len(files), 10)
        for file in files:
            self.assertEqual((package / file).read_bytes(), (examples / file).read_bytes(), file)

    def test_exporter_copied_without_its_folder_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = pathlib.Path(folder, "export_graph.py")
            alone.write_bytes((SOURCE / "examples" / "pytorch" / "export_graph.py").read_bytes())
            ran = subprocess.run([sys.executable, alone, "--check"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("the folder graph_exporter next to it: copy that too", ran.stderr)

    def test_what_nothing_reads_is_no_output(self):
        """timm's Res2Net names a part of a split that it does not use, and DLA a shortcut."""

        class Dead(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.unused = nn.Linear(8, 8), nn.Linear(8, 4)

            def forward(self, x):
                parts = torch.split(self.net(x), 4, 1)
                first = parts[0]  # noqa: F841 - a name that nothing reads
                self.unused(x).exp()
                return parts[0].relu_().mul(2), parts[1]

        from gpumem import export_graph

        graph = json.loads(export_graph.export_graph(Dead(), [torch.zeros(2, 8)]))
        nodes = {node["name"]: node for node in graph["nodes"]}
        read = {name for node in graph["nodes"] for name in node.get("inputs", ())}
        outputs = [name for name in nodes if name not in read and nodes[name]["op"] != "parameter"]
        self.assertEqual([nodes[name]["op"] for name in outputs], ["mul", "item"])
        self.assertTrue(nodes["unused.weight"]["frozen"])

    def test_batch_of_the_examples(self):
        made = gpumem.estimate_module(Images(), torch.zeros(6, 3, 16, 16))
        self.assertEqual(made.batch_size, 6)
        self.assertEqual(
            made, gpumem.estimate_module(Images(), [torch.zeros(2, 3, 16, 16)], batch_size=6)
        )

    def test_every_option(self):
        made = gpumem.estimate_module(
            torchvision.models.resnet18(weights=None),
            torch.zeros(2, 3, 64, 64),
            batch_size=4,
            gpu="t4-16gb",
            estimator="gpumemnet-mlp",
            optimizer="sgd",
            precision="bf16",
            model="gpumemnet-mlp-cnn",
            samples=10,
            zero_grad="step-start",
            alloc_conf="expandable_segments:True",
            accumulate=2,
            foreach=False,
            fused=False,
            weight_decay=True,
            prefetch=True,
            cudnn_benchmark=True,
            compile=True,
            validation=True,
            checkpointing=True,
            deadline_ms=60_000,
        )
        job = json.loads(made.json())["job"]
        expected = {
            "batch_size": 4,
            "optimizer": "sgd",
            "precision": "bf16",
            "samples": 10,
            "zero_grad": "step-start",
            "alloc_conf": "expandable_segments:True",
            "accumulate": 2,
            "foreach": False,
            "weight_decay": True,
            "prefetch": True,
            "cudnn_benchmark": True,
            "compile": True,
            "validation": True,
            "checkpointing": True,
        }
        self.assertEqual({name: job[name] for name in expected}, expected)
        self.assertEqual((made.gpu, made.model), ("t4-16gb", "gpumemnet-mlp-cnn"))
        self.assertTrue(made.bins)
        software = next(gpu for gpu in gpumem.gpus() if gpu.name == "a100-40gb").software[-1]
        made = gpumem.estimate_module(Images(), torch.zeros(2, 3, 16, 16), software=software)
        self.assertEqual(json.loads(made.json())["job"]["software"], software)

    def test_inputs_by_name(self):
        by_name = {"scale": torch.zeros(2, 10), "images": torch.zeros(2, 3, 16, 16)}
        in_order = [by_name["images"], by_name["scale"]]
        self.assertEqual(
            gpumem.estimate_module(Images(), by_name), gpumem.estimate_module(Images(), in_order)
        )
        with self.assertRaises(gpumem.UsageError) as caught:
            gpumem.estimate_module(Images(), {"scale": torch.zeros(2, 10)})
        self.assertIn("forward() begins with images", str(caught.exception))

    def test_tokens(self):
        module = nn.Sequential(nn.Embedding(100, 16), nn.Flatten(), nn.Linear(16 * 12, 2))
        summary = gpumem.export_module(module, torch.zeros(4, 12, dtype=torch.int64), name="words")
        self.assertEqual(
            (summary.format, summary.parameters), ("graph_json", 1600 + 16 * 12 * 2 + 2)
        )

    def test_module_is_left_as_it_was(self):
        module = Images().eval()
        kept = {name: value.clone() for name, value in module.state_dict().items()}
        gpumem.estimate_module(module, torch.zeros(2, 3, 16, 16))
        self.assertFalse(module.training)
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, kept[name]))
        self.assertEqual(module(torch.zeros(1, 3, 16, 16)).shape, (1, 10))

    def test_exports_of_many_threads(self):
        modules = [Images(size) for size in (4, 8, 12, 16)]
        examples = torch.zeros(2, 3, 16, 16)
        alone = [gpumem.estimate_module(module, examples) for module in modules]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(
                pool.map(lambda module: gpumem.estimate_module(module, examples), modules)
            )
        self.assertEqual(together, alone)


class Branching(nn.Module):
    """Its graph depends on values: it can only be recorded."""

    def __init__(self):
        super().__init__()
        self.net = Images()

    def forward(self, images):
        out = self.net(images)
        return out if out.sum() > 0 else -out


RECORDS = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 1)


class WithoutAGraph(unittest.TestCase):
    def test_says_what_it_was_made_from(self):
        self.assertEqual(gpumem.estimate_module(Images(), torch.zeros(2, 3, 16, 16)).made_from, "graph")
        self.assertEqual(gpumem.read_module(Images(), torch.zeros(2, 3, 16, 16)).format, "graph_json")

    @unittest.skipIf(RECORDS, "this PyTorch records")
    def test_an_older_pytorch_is_told_the_remedy(self):
        with self.assertRaises(gpumem.ExportError) as caught:
            gpumem.estimate_module(Branching(), torch.zeros(2, 3, 16, 16))
        self.assertIn("install torch 2.1 or later", str(caught.exception))

    @unittest.skipUnless(RECORDS, "only PyTorch 2.1 and later record")
    def test_a_step_is_recorded(self):
        images = torch.zeros(8, 3, 16, 16)
        made = gpumem.estimate_module(Branching(), images, optimizer="sgd", zero_grad="step-end")
        self.assertEqual(made.made_from, "recording")
        graph = gpumem.estimate_module(Images(), images, optimizer="sgd", zero_grad="step-end")
        self.assertAlmostEqual(made.reserved_bytes / graph.reserved_bytes, 1.0, delta=0.01)

    @unittest.skipUnless(RECORDS, "only PyTorch 2.1 and later record")
    def test_a_recording_is_read_for_any_batch(self):
        summary = gpumem.read_module(Branching(), torch.zeros(4, 3, 16, 16))
        self.assertEqual(summary.format, "recording")
        small, large = (gpumem.estimate(summary, batch_size=batch).reserved_bytes for batch in (8, 4096))
        self.assertLess(small, large)

    def test_what_a_recording_cannot_hold_is_refused(self):
        for option in ({"samples": 10}, {"validation": True}, {"estimator": "horus"}):
            with self.assertRaises(gpumem.ExportError) as caught:
                gpumem.estimate_module(Branching(), torch.zeros(2, 3, 16, 16), **option)
            self.assertIn("it would be recorded instead", str(caught.exception))


@unittest.skipUnless(RECORDS, "only PyTorch 2.1 and later record")
class EstimateStep(unittest.TestCase):
    """A program's own step, from the recording to the figures."""

    def make_step(self, batch_size, device="cuda"):
        model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(device)
        optimizer = torch.optim.AdamW(model.parameters())

        def step():
            labels = torch.zeros(batch_size, dtype=torch.long, device=device)
            nn.functional.cross_entropy(model(torch.empty(batch_size, 512, device=device)), labels).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    def test_a_step_is_estimated_as_its_module_is(self):
        step = gpumem.estimate_step(self.make_step, batch_size=64)
        module = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10))
        graph = gpumem.estimate_module(module, torch.empty(64, 512), optimizer="adamw", zero_grad="step-end")
        self.assertEqual(step.made_from, "recording")
        self.assertEqual(step.breakdown["optimizer"], graph.breakdown["optimizer"])
        self.assertAlmostEqual(step.allocated_bytes / graph.allocated_bytes, 1.0, delta=0.01)

    def test_a_step_on_the_processor_is_refused(self):
        with self.assertRaisesRegex(gpumem.RecordError, "puts nothing on the GPU"):
            gpumem.estimate_step(lambda batch_size: self.make_step(batch_size, "cpu"), batch_size=4)


class Errors(unittest.TestCase):
    def test_branch_on_values(self):
        class Branch(nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        with self.assertRaises(gpumem.ExportError) as caught:
            gpumem.estimate_module(Branch(), torch.zeros(2, 3))
        self.assertIsInstance(caught.exception, gpumem.InputError)
        self.assertEqual((caught.exception.code, caught.exception.exit_code), ("not_exportable", 3))
        self.assertIn("Python branches on this tensor's values", str(caught.exception))

    def test_wrong_shape(self):
        with self.assertRaises(gpumem.ExportError) as caught:
            gpumem.estimate_module(Images(), torch.zeros(2, 5))
        self.assertIn("Images does not run on samples of 5", str(caught.exception))

    def test_no_op(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.i0(x)

        with self.assertRaises(gpumem.ExportError) as caught:
            gpumem.estimate_module(Odd(), torch.zeros(2, 3))
        self.assertIn("has no op in graph JSON", str(caught.exception))

    def test_no_inputs(self):
        for inputs in ([], {}, [3], torch.tensor(1.0)):
            with self.assertRaises(gpumem.UsageError):
                gpumem.estimate_module(Images(), inputs)

    def test_errors_of_the_estimate(self):
        with self.assertRaises(gpumem.UsageError):
            gpumem.estimate_module(Images(), torch.zeros(2, 3, 16, 16), optimizer="adamm")


if __name__ == "__main__":
    unittest.main(verbosity=2)
