"""Every function of the package: what it gives is what the command line gives."""

import copy
import dataclasses
import json
import os
import pathlib
import pickle
import re
import sys
import tempfile
import types
import unittest
import unittest.mock

import gpumem
from gpumem import _gpumem
from support import GPT_LIKE, RESNET50, SOURCE, VGG16, command_line, linear_tree


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "seconds"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


class ReadSummary(unittest.TestCase):
    def test_of_a_path(self):
        for path in (RESNET50, str(RESNET50)):
            summary = gpumem.read_summary(path)
            self.assertEqual(summary.file, str(RESNET50))
            self.assertEqual(summary.format, "torchsummary")
            self.assertEqual(summary.layers, 158)
            self.assertEqual(summary.unknown_layers, 0)
            self.assertEqual(summary.parameters, 25_557_032)
            self.assertEqual(summary.trainable_parameters, 25_557_032)
            self.assertIsNone(summary.printed_batch_size)
            self.assertEqual(summary.warnings, ())
            self.assertIn("torchsummary, 158 layers", repr(summary))

    def test_of_a_text(self):
        for text in (RESNET50.read_text(), RESNET50.read_bytes(), bytearray(RESNET50.read_bytes())):
            summary = gpumem.read_summary(text=text)
            self.assertIsNone(summary.file)
            self.assertEqual(summary.parameters, 25_557_032)

    def test_either_a_path_or_a_text(self):
        with self.assertRaises(TypeError):
            gpumem.read_summary()
        with self.assertRaises(TypeError):
            gpumem.read_summary(RESNET50, text="")

    def test_lenient(self):
        odd = "  (odd): OddLayer(3, 4, bias=True), 16 params\n"
        text = f"Net(\n{odd}  (fc): Linear(4, 2), 10 params\n), 26 params\n"
        bounded = gpumem.read_summary(text=text)
        self.assertEqual(bounded.unknown_layers, 0)
        with self.assertRaises(gpumem.InputError) as caught:
            gpumem.estimate(bounded, batch_size=2, input=(4,), strict=True)
        self.assertEqual((caught.exception.code, caught.exception.line), ("unknown_layer", 2))
        self.assertEqual(gpumem.read_summary(text=text, lenient=True).unknown_layers, 1)

    def test_only_regular_files_of_bounded_length(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "pipe")
            os.mkfifo(pipe)
            for path in (pipe, "/dev/zero", folder):
                with self.assertRaises(gpumem.InputError) as caught:
                    gpumem.read_summary(path)
                self.assertEqual(caught.exception.code, "unreadable_file")
        with self.assertRaises(gpumem.InputError):
            gpumem.read_summary(RESNET50, largest_bytes=100)

    def test_names_that_are_no_text(self):
        with self.assertRaises(gpumem.InputError) as caught:
            gpumem.read_summary(os.fsdecode(b"/nowhere/\xff\xfe"))
        self.assertIn("\ufffd", str(caught.exception))
        with self.assertRaises(gpumem.UsageError):
            gpumem.read_summary("a\0b")
        with self.assertRaises(gpumem.InputError):
            gpumem.read_summary(text="\udcff\ud800")

    def test_warnings(self):
        text = RESNET50.read_text().replace("Total params: 25,557,032", "Total params: 25,557,033")
        summary = gpumem.read_summary(text=text)
        self.assertEqual(len(summary.warnings), 1)
        self.assertEqual(gpumem.estimate(summary, batch_size=2).warnings, summary.warnings)


class Estimate(unittest.TestCase):
    def setUp(self):
        self.summary = gpumem.read_summary(RESNET50)

    def test_of_a_path_without_pytorch(self):
        expected = gpumem.estimate(self.summary, batch_size=2).expected_bytes
        for torch in (None, types.ModuleType("torch")):  # barred, and while it is being imported
            with unittest.mock.patch.dict(sys.modules, {"torch": torch}):
                made = gpumem.estimate(RESNET50, batch_size=2)
            self.assertEqual(made.expected_bytes, expected)

    def assert_agrees(self, made, *options):
        printed = command_line("estimate", RESNET50, *options, "--json")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        expected = json.loads(printed.stdout)
        self.assertEqual(without_times(json.loads(made.json())), without_times(expected))
        told = expected["estimates"][0]
        for field in dataclasses.fields(made):
            if field.name in told and field.name not in (
                "assumed",
                "breakdown",
                "peak",
                "bins",
                "out_of_domain",
            ):
                self.assertEqual(getattr(made, field.name), told[field.name], field.name)
        assumed = [dataclasses.asdict(each) for each in made.assumed]
        self.assertEqual(assumed, told["assumed"])
        breakdown = {part: size for part, size in told["breakdown"].items() if size is not None}
        self.assertEqual(made.breakdown, breakdown or None)
        self.assertEqual(list(made.out_of_domain), told.get("out_of_domain", []))
        bins = [(each["lower_bytes"], each["upper_bytes"]) for each in told.get("bins", [])]
        self.assertEqual([(each.lower_bytes, each.upper_bytes) for each in made.bins], bins)
        if told["peak"] is not None:
            peak = made.peak
            self.assertEqual(
                {
                    "layer": peak.layer,
                    "phase": peak.phase,
                    "step": peak.step,
                    "text": peak.text,
                },
                told["peak"],
            )

    def test_a_layout_takes_all_of_its_gpus(self):
        layout = {"data_parallel": 4, "sharding": "ddp"}
        self.assertEqual(gpumem.estimate(self.summary, batch_size=8).gpus, 1)
        self.assertEqual(gpumem.estimate(self.summary, batch_size=8, **layout).gpus, 4)
        self.assertEqual(gpumem.estimate(self.summary, batch_size=8, rank="3", **layout).gpus, 1)

    def test_every_estimator(self):
        for estimator in gpumem.estimators():
            with self.subTest(estimator.name):
                made = gpumem.estimate(self.summary, batch_size=32, estimator=estimator.name)
                self.assertEqual(made.estimator, estimator.name)
                self.assertEqual((made.gpu, made.batch_size), ("a100-40gb", 32))
                self.assertEqual((made.layers, made.unknown_layers), (158, 0))
                self.assert_agrees(made, "--batch", 32, "--estimator", estimator.name)

    def test_every_option(self):
        made = gpumem.estimate(
            self.summary,
            batch_size=16,
            gpu="t4-16gb",
            optimizer="sgd-momentum",
            precision="amp-fp16",
            input=(3, 224, 224),
            samples=1000,
            zero_grad="step-end",
            alloc_conf="expandable_segments:True",
            accumulate=2,
            foreach=False,
            weight_decay=True,
            prefetch=True,
            cudnn_benchmark=True,
            compile=True,
            validation=True,
            checkpointing=True,
        )
        self.assert_agrees(
            made,
            "--batch",
            16,
            "--gpu",
            "t4-16gb",
            "--optimizer",
            "sgd-momentum",
            "--precision",
            "amp-fp16",
            "--input",
            "3x224x224",
            "--samples",
            1000,
            "--zero-grad",
            "step-end",
            "--alloc-conf",
            "expandable_segments:True",
            "--accumulate",
            2,
            "--no-foreach",
            "--weight-decay",
            "--prefetch",
            "--cudnn-benchmark",
            "--compile",
            "--validation",
            "--checkpointing",
        )
        fused = gpumem.estimate(self.summary, batch_size=16, fused=True, input="3x224x224")
        self.assert_agrees(fused, "--batch", 16, "--fused", "--input", "3x224x224")
        stack = next(gpu for gpu in gpumem.gpus() if gpu.name == "a100-40gb").software[-1]
        other = gpumem.estimate(self.summary, batch_size=16, software=stack)
        self.assert_agrees(other, "--batch", 16, "--software", stack)

    def test_tokens(self):
        gpt = SOURCE / "models" / "graphs" / "gpt_like.json"
        made = gpumem.estimate(gpt, batch_size=2, seq_length=512)
        printed = command_line("estimate", gpt, "--batch", 2, "--seq", 512, "--json")
        self.assertEqual(
            without_times(json.loads(made.json())), without_times(json.loads(printed.stdout))
        )

    def test_models_and_profiles_of_ones_own(self):
        made = gpumem.estimate(
            self.summary,
            batch_size=32,
            estimator="gpumemnet-mlp",
            model="gpumemnet-mlp-cnn",
            gpu=SOURCE / "models" / "gpus" / "a100-40gb.json",
        )
        self.assertEqual((made.model, made.gpu), ("gpumemnet-mlp-cnn", "a100-40gb"))
        self.assertAlmostEqual(sum(each.probability for each in made.bins), 1.0, places=5)
        folder = SOURCE / "models" / "gpumemnet-mlp-cnn"
        own = gpumem.estimate(self.summary, batch_size=32, estimator="gpumemnet-mlp", model=folder)
        self.assertEqual(own.bins, made.bins)

    def test_breakdown_sums_to_the_expectation(self):
        made = gpumem.estimate(self.summary, batch_size=32)
        self.assertEqual(sum(made.breakdown.values()), made.expected_bytes)
        self.assertIsNone(
            gpumem.estimate(self.summary, batch_size=32, estimator="horus").reserved_bytes
        )

    def test_text_is_the_table(self):
        printed = command_line("estimate", RESNET50, "--batch", 32).stdout
        self.assertEqual(str(gpumem.estimate(self.summary, batch_size=32)), printed)

    def test_values(self):
        made = gpumem.estimate(self.summary, batch_size=32, estimator="gpumemnet-mlp")
        self.assertEqual(
            made, gpumem.estimate(self.summary, batch_size=32, estimator="gpumemnet-mlp")
        )
        with self.assertRaises(dataclasses.FrozenInstanceError):
            made.fits = False
        for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            self.assertEqual(twin, made)
            self.assertEqual((twin.json(), str(twin)), (made.json(), str(made)))
        self.assertNotIn("report", repr(made))

    def test_numbers_of_other_kinds(self):
        class Three:
            def __index__(self):
                return 3

        self.assertEqual(gpumem.estimate(self.summary, batch_size=Three()).batch_size, 3)
        for wrong in (2.0, "2", None):
            with self.assertRaises(TypeError):
                gpumem.estimate(self.summary, batch_size=wrong)

    def test_outlives_its_summary(self):
        made = gpumem.estimate(gpumem.read_summary(VGG16), batch_size=2)
        largest = gpumem.fit(gpumem.read_summary(VGG16))
        self.assertIn("vgg16", made.json() + str(made) + largest.json() + str(largest.estimate))


class Fit(unittest.TestCase):
    def test_agrees_with_the_command_line(self):
        fit = gpumem.fit(RESNET50, gpu="t4-16gb", optimizer="sgd")
        printed = command_line("fit", RESNET50, "--gpu", "t4-16gb", "--optimizer", "sgd", "--json")
        expected = json.loads(printed.stdout)
        self.assertEqual(without_times(json.loads(fit.json())), without_times(expected))
        self.assertEqual(fit.batch_size, expected["largest_batch"])
        self.assertEqual(fit.estimates_made, expected["estimates_made"])
        self.assertEqual(fit.estimate.expected_bytes, expected["estimate"]["expected_bytes"])
        self.assertEqual(fit.one_more.expected_bytes, expected["one_more"]["expected_bytes"])
        self.assertEqual(fit.one_more.batch_size, fit.batch_size + 1)
        self.assertEqual((fit.estimate.verdict, fit.one_more.verdict), ("tight", "does_not_fit"))
        self.assertFalse(fit.one_more.fits or fit.at_least)
        self.assertTrue(0 < fit.safe <= fit.without_flushes <= fit.batch_size)
        lines = command_line("fit", RESNET50, "--gpu", "t4-16gb", "--optimizer", "sgd").stdout
        self.assertTrue(lines.endswith("\n" + str(fit) + "\n"), lines)
        self.assertEqual(pickle.loads(pickle.dumps(fit)).json(), fit.json())

    def test_estimate_is_that_of_the_batch(self):
        fit = gpumem.fit(RESNET50)
        self.assertEqual(fit.estimate, gpumem.estimate(RESNET50, batch_size=fit.batch_size))

    def test_of_lengths(self):
        # The longest sample is in a batch of any size, also where a few steps hardly ever draw it.
        llama = SOURCE / "tests" / "golden" / "cli" / "configs" / "llama_made_up.json"
        fit = gpumem.fit(llama, lengths="128x4000+1024", lengths_options="steps=5")
        printed = command_line("fit", llama, "--lengths", "128x4000+1024", "--lengths-options", "steps=5", "--json")
        expected = json.loads(printed.stdout)
        self.assertEqual(without_times(json.loads(fit.json())), without_times(expected))
        self.assertEqual(expected["job"]["seq_length"], 1024)

    def test_finds_the_longest_sequence_at_a_batch(self):
        found = gpumem.fit(GPT_LIKE, batch_size=2, gpu="t4-16gb")
        printed = command_line("fit", GPT_LIKE, "--batch", "2", "--gpu", "t4-16gb", "--json")
        expected = json.loads(printed.stdout)
        self.assertEqual(without_times(json.loads(found.json())), without_times(expected))
        self.assertEqual(found.sequence_length, expected["longest_sequence"])
        self.assertEqual(found.batch_size, 2)
        self.assertIsNone(gpumem.fit(RESNET50).sequence_length)
        with self.assertRaises(gpumem.UsageError):
            gpumem.fit(GPT_LIKE, batch_size=2, seq_length=128)

    def test_where_nothing_fits(self):
        fit = gpumem.fit(VGG16, gpu="a100-40gb-mig-1g.5gb", input=(3, 2048, 2048))
        printed = command_line(
            "fit", VGG16, "--gpu", "a100-40gb-mig-1g.5gb", "--input", "3x2048x2048"
        )
        self.assertEqual((fit.batch_size, fit.estimate, fit.one_more.batch_size), (0, None, 1))
        self.assertEqual(printed.returncode, 4)
        self.assertEqual(printed.stderr, f"gpumem: error: {fit}\n")


class Library(unittest.TestCase):
    def test_a_summary_is_made_by_read_summary_alone(self):
        for arguments in ((), (5,)):
            with self.assertRaisesRegex(TypeError, "read_summary"):
                gpumem.Summary(*arguments)

    def test_one_that_is_older_than_the_package(self):
        with unittest.mock.patch.object(_gpumem, "_library_path", return_value="libm.so.6"):
            with self.assertRaisesRegex(gpumem.LibraryMissingError, "libm.so.6 is older than this package"):
                _gpumem._load()


class Lists(unittest.TestCase):
    def test_gpus(self):
        listed = json.loads(command_line("gpus", "--json").stdout)
        self.assertEqual([gpu.name for gpu in gpumem.gpus()], [gpu["name"] for gpu in listed])
        for gpu in gpumem.gpus():
            self.assertLessEqual(gpu.capacity_bytes, gpu.memory_bytes)
            made = gpumem.estimate(VGG16, batch_size=1, gpu=gpu.name)
            self.assertEqual((made.gpu, made.capacity_bytes), (gpu.name, gpu.capacity_bytes))

    def test_names(self):
        self.assertIn("adamw", gpumem.OPTIMIZERS)
        self.assertIn("bf16", gpumem.PRECISIONS)
        for optimizer in gpumem.OPTIMIZERS:
            gpumem.estimate(VGG16, batch_size=1, optimizer=optimizer)
        for precision in gpumem.PRECISIONS:
            gpumem.estimate(VGG16, batch_size=1, precision=precision)
        for zero_grad in gpumem.ZERO_GRADS:
            gpumem.estimate(VGG16, batch_size=1, zero_grad=zero_grad)
        for loop in gpumem.LOOPS:
            gpumem.estimate(VGG16, batch_size=1, loop=loop)

    def test_options_that_the_loop_or_the_model_decides(self):
        def report(model="meta-llama/Llama-3.2-1B", **options):
            return str(gpumem.estimate(model, batch_size=4, seq_length=256, precision="bf16", loop="hf-trainer", **options))

        self.assertEqual(report(), report(padding=True))
        self.assertNotEqual(report(), report(padding=False))
        self.assertEqual(report(), report(zero_grad="step-end"))
        self.assertNotEqual(report(), report(zero_grad="before-forward"))
        young = "Qwen/Qwen3-8B"
        self.assertNotEqual(report(young), report(young, transformers="4.48"))

    def test_version(self):
        self.assertIn(gpumem.__version__, command_line("--version").stdout)


def on_command_line(text):
    """A pattern for the same words where options are spelled with dashes: `lora=16` is --lora 16."""
    words = re.split(r"`\w+(?:=([^`]*))?`", text)
    found = re.escape(words[0])
    for value, after in zip(words[1::2], words[2::2]):
        found += "--[a-z-]+" + ("" if value is None else "[ =]" + re.escape(value)) + re.escape(after)
    return found


class Errors(unittest.TestCase):
    """The same words, and the exit code that the command line has for them."""

    def assert_agrees(self, kind, code, call, *arguments):
        with self.assertRaises(kind) as caught:
            call()
        error = caught.exception
        printed = command_line(*arguments)
        self.assertRegex(printed.stderr, rf"\Agpumem: error: {on_command_line(str(error))}\n\Z")
        self.assertEqual((error.exit_code, error.code), (printed.returncode, code))
        self.assertIn(error.message, str(error))
        twin = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(twin), str(twin), vars(twin)), (kind, str(error), vars(error)))
        return error

    def test_usage(self):
        estimate = ("estimate", RESNET50, "--batch")
        self.assert_agrees(
            gpumem.UsageError,
            "invalid_argument",
            lambda: gpumem.estimate(RESNET50, batch_size=0),
            *estimate,
            0,
        )
        for option, value in (
            ("gpu", "gtx-9000"),
            ("optimizer", "adamm"),
            ("precision", "fp8"),
            ("estimator", "guess"),
            ("input", "3x"),
            ("zero_grad", "never"),
            ("alloc_conf", "a:b"),
            ("accumulate", 0),
            ("samples", 0),
        ):
            with self.subTest(option):
                code = "unknown_gpu" if option == "gpu" else "invalid_argument"
                self.assert_agrees(
                    gpumem.UsageError,
                    code,
                    lambda: gpumem.estimate(RESNET50, batch_size=2, **{option: value}),
                    *estimate,
                    2,
                    "--" + option.replace("_", "-"),
                    value,
                )

    def test_input(self):
        missing = self.assert_agrees(
            gpumem.InputError,
            "unreadable_file",
            lambda: gpumem.read_summary("no/such.txt"),
            "estimate",
            "no/such.txt",
            "--batch",
            2,
        )
        self.assertEqual((missing.file, missing.line), ("no/such.txt", None))
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder, "broken.json")
            broken.write_text(VGG16.read_text().replace('"op": "conv2d"', '"op": "convolve"', 1))
            error = self.assert_agrees(
                gpumem.InputError,
                "unknown_layer",
                lambda: gpumem.estimate(broken, batch_size=2),
                "estimate",
                broken,
                "--batch",
                2,
            )
            self.assertEqual(error.file, str(broken))
            self.assertTrue(error.element)

    def test_no_estimate(self):
        error = self.assert_agrees(
            gpumem.NoEstimateError,
            "overflow",
            lambda: gpumem.estimate(RESNET50, batch_size=1 << 62),
            "estimate",
            RESNET50,
            "--batch",
            1 << 62,
        )
        self.assertGreater(error.line, 0)

    def test_kinds(self):
        for kind in (gpumem.UsageError, gpumem.InputError, gpumem.NoEstimateError):
            self.assertTrue(issubclass(kind, gpumem.Error))
            self.assertEqual(kind.__module__, "gpumem")
        self.assertIn("code='unknown_gpu'", repr(gpumem.UsageError("there is none", "unknown_gpu")))

    def test_deadline(self):
        tree = linear_tree(50_000)
        with self.assertRaises(gpumem.NoEstimateError) as caught:
            summary = gpumem.read_summary(text=tree, deadline_ms=1)
            gpumem.estimate(summary, batch_size=2, input=(64,), deadline_ms=1)
        self.assertEqual(caught.exception.code, "deadline_exceeded")
        with self.assertRaises(gpumem.UsageError):
            gpumem.read_summary(text=tree, deadline_ms=-1)

    def test_numbers_beyond_64_bits(self):
        for value in (1 << 63, -(1 << 63) - 1, 1 << 200):
            with self.assertRaises(gpumem.UsageError):
                gpumem.estimate(RESNET50, batch_size=value)

    def test_wrong_types(self):
        for options in ({"optimizer": 3}, {"gpu": 3}, {"software": 3}, {"input": (3, "x")}):
            with self.subTest(options), self.assertRaises(TypeError):
                gpumem.estimate(RESNET50, batch_size=2, **options)
        with self.assertRaises(gpumem.UsageError):
            gpumem.estimate(RESNET50, batch_size=2, optimizer="ad\ud800m")


class EstimateStep(unittest.TestCase):
    def test_the_recording_is_what_is_estimated(self):
        # Recording needs PyTorch 2.1 or later; a summary replaces the recording's text, and the recorder is never called.
        make_step = unittest.mock.Mock()

        with unittest.mock.patch.object(gpumem._api, "record") as record:
            record.step.return_value = RESNET50.read_text()
            need = gpumem.estimate_step(make_step, batch_size=7, gpu="v100-16gb")
        record.step.assert_called_once_with(make_step, 7, None, scale=False)
        self.assertEqual(need, gpumem.estimate(RESNET50, batch_size=7, gpu="v100-16gb"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
