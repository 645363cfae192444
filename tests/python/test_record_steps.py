"""gpumem.record without PyTorch: the steps that are recorded, the device guard, the user's lines, the launcher."""

import contextlib
import ctypes
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

import gpumem
from gpumem.record import guard, hooks, launcher
from gpumem.record.places import line_of, users_line
from gpumem.record.run import Mark, Run
from gpumem.record.steps import Steps, Stop


class StepsOfTraining(unittest.TestCase):
    """What marks are written, and where a script is stopped."""

    def setUp(self):
        self.marks = []
        self.optimizers = [types.SimpleNamespace(), types.SimpleNamespace()]

    def steps(self, optimizers, most=None):
        def nothing(_optimizer):
            pass

        return Steps(lambda mark, step: self.marks.append((mark.name, step)), nothing, nothing, optimizers, most)

    def step_of(self, steps, optimizer):
        steps._optimizer_begins(optimizer)
        steps._optimizer_ends(optimizer)

    def test_one_optimizer(self):
        first = self.optimizers[0]
        steps = self.steps([first], most=2)
        steps.mark(Mark.CONSTRUCTION, 0)
        for _ in range(2):
            steps.forward_begins()
            steps.forward_begins()  # The loss, a module of its own.
            steps.backward_begins()
            steps.backward_begins()
            self.step_of(steps, first)
        with self.assertRaises(Stop):
            steps.forward_begins()
        one = ["FORWARD", "BACKWARD", "OPTIMIZER", "BETWEEN"]
        self.assertEqual(
            self.marks, [("CONSTRUCTION", 0)] + [(name, 1) for name in one] + [(name, 2) for name in one]
        )

    def test_the_caller_may_say_that_a_step_begins(self):
        steps = self.steps([])
        steps.mark(Mark.CONSTRUCTION, 0)
        for _ in range(2):
            steps.next_step()
            steps.forward_begins()
            self.step_of(steps, self.optimizers[0])
        self.assertEqual([step for name, step in self.marks if name == "FORWARD"], [1, 2])
        self.assertEqual([step for name, step in self.marks if name == "OPTIMIZER"], [1, 2])

    def test_accumulated_gradients_are_one_step(self):
        steps = self.steps([self.optimizers[0]], most=1)
        for _ in range(3):
            steps.forward_begins()
            steps.backward_begins()
        self.step_of(steps, self.optimizers[0])
        self.assertEqual({step for _, step in self.marks}, {1})
        self.assertEqual([name for name, _ in self.marks].count("FORWARD"), 3)
        with self.assertRaises(Stop):
            steps.forward_begins()

    def test_two_optimizers_that_take_turns(self):
        steps = self.steps(self.optimizers, most=2)
        for _ in range(2):
            for each in self.optimizers:
                steps.forward_begins()
                steps.backward_begins()
                self.step_of(steps, each)
        self.assertEqual([step for name, step in self.marks if name == "FORWARD"], [1, 1, 2, 2])
        with self.assertRaises(Stop):
            steps.forward_begins()

    def test_an_optimizer_that_never_steps_is_not_waited_for(self):
        steps = self.steps(self.optimizers, most=2)
        for _ in range(2):
            steps.forward_begins()
            self.step_of(steps, self.optimizers[0])
        with self.assertRaises(Stop):
            steps.forward_begins()

    def test_a_program_without_an_optimizer_stops_as_well(self):
        steps = self.steps([], most=2)
        for _ in range(2):
            steps.forward_begins()
            steps.backward_begins()
        with self.assertRaises(Stop):
            steps.forward_begins()
        self.assertEqual([each for each in self.marks if each[0] == "FORWARD"], [("FORWARD", 1), ("FORWARD", 2)])

    def test_what_has_been_made(self):
        steps = self.steps([self.optimizers[0]])
        self.assertEqual((steps.where, steps.made), ((0, False), 0))
        steps.forward_begins()  # An evaluation before the training.
        self.assertEqual(steps.where, (1, False))
        steps.backward_begins()
        self.step_of(steps, self.optimizers[0])
        self.assertEqual((steps.where, steps.made), ((1, True), 1))
        steps.forward_begins()
        self.assertEqual(steps.where, (2, True))

    def test_no_except_of_the_script_catches_the_stop(self):
        self.assertFalse(issubclass(Stop, Exception))


class DeviceGuard(unittest.TestCase):
    """The table of functions of a guard is used only if it answers as a guard does."""

    def table(self, kind=14, device=14, stream=14):
        def answers(value):
            return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int16)(lambda *_: value)

        self.functions = [answers(kind), *[answers(device)] * 2, *[answers(0)] * 2, answers(stream), *[answers(0)] * 40]
        addresses = [ctypes.cast(each, ctypes.c_void_p).value for each in self.functions]
        self.words = (ctypes.c_void_p * (2 + len(addresses)))(0, 0, *addresses)
        self.object = (ctypes.c_void_p * 1)(ctypes.addressof(self.words) + 16)
        return ctypes.addressof(self.object)

    def test_a_guard_is_taken(self):
        words = guard._checked_table(self.table())
        self.assertEqual(words[:30], [value or 0 for value in self.words[:30]])

    def test_a_new_guard_says_that_it_is_of_cuda(self):
        made = guard._new_guard(self.table())
        table = ctypes.cast(made, ctypes.POINTER(ctypes.c_void_p))[0]
        functions = (ctypes.c_void_p * 11).from_address(table)
        ask = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)
        self.assertEqual([ask(functions[slot])(made) for slot in (0, 1, 2)], [1, 1, 1])
        stream = ctypes.CFUNCTYPE(guard._Stream, ctypes.c_void_p, ctypes.c_int16)(functions[5])(made, 1)
        self.assertEqual((stream.device_type, stream.device_index, stream.stream_id), (1, 0, 0))
        self.assertEqual([functions[slot] for slot in (6, 7, 8, 9)], [functions[5]] * 4)
        self.assertEqual(functions[10], self.words[12])

    def test_other_answers_are_refused(self):
        for changed in ({"kind": 0}, {"device": 1}, {"stream": 2}):
            with self.assertRaises(gpumem.RecordError) as caught:
                guard._checked_table(self.table(**changed))
            self.assertIn("not laid out as gpumem.record knows them", str(caught.exception))

    def test_other_systems_are_refused(self):
        with unittest.mock.patch.object(guard.platform, "system", return_value="Darwin"):
            with self.assertRaises(gpumem.RecordError) as caught:
                guard.loaded_library("libc10.so")
        self.assertIn("Darwin", str(caught.exception))


class Hooks(unittest.TestCase):
    """The functions of the CUDA hooks are told apart by their machine code."""

    def test_functions_that_return_false(self):
        for code, false in (("31c0c3", True), ("f30f1efa31c0c390", True), ("f30f1efab801000000c3", False), ("c3", False)):
            self.assertEqual(hooks.returns_false(bytes.fromhex(code), "x86_64"), false, code)
        self.assertTrue(hooks.returns_false(bytes.fromhex("00008052c0035fd6"), "aarch64"))

    def flags(self, text):
        return [each == "f" for each in text]

    def test_places(self):
        # As in 2.14, and as before isBuilt and isAvailable came.
        self.assertEqual(hooks.places_of_answers(self.flags("..ff..f....f....fffffffff...ffffff...")), [2, 4, 16])
        self.assertEqual(hooks.places_of_answers(self.flags("......ffffff..ff")), [2, 6])

    def test_what_is_not_clear_is_refused(self):
        for text in ("", "..ff....ffff", "..fffff..fffff", "........"):
            self.assertEqual(hooks.places_of_answers(self.flags(text)), [], text)


class Places(unittest.TestCase):
    def test_the_innermost_line_that_is_no_packages(self):
        def users():
            json.loads("{")

        try:
            users()
        except ValueError as error:
            self.assertRegex(line_of(error), r"^test_record_steps\.py:\d+$")
        self.assertRegex(users_line(), r"^test_record_steps\.py:\d+$")


class Launcher(unittest.TestCase):
    def filled(self, arguments, point, batch="batch-size", sequence=None):
        options = types.SimpleNamespace(arguments=arguments, batch_arg=batch, sequence_arg=sequence)
        slots, values = launcher._slots(options)
        return launcher._filled(slots, point), values

    def test_arguments_are_found(self):
        for given, then in (
            (["-q", "--batch-size", "32", "x"], ["-q", "--batch-size", "64", "x"]),
            (["--batch-size=32"], ["--batch-size=64"]),
            (["train.lr=1", "batch-size=32"], ["train.lr=1", "batch-size=64"]),
        ):
            self.assertEqual(self.filled(given, (64,)), (then, [32]))
        self.assertEqual(self.filled(["-b", "8"], (2,), batch="-b"), (["-b", "2"], [8]))

    def test_two_arguments(self):
        given = ["--length=128", "--batch-size", "4"]
        self.assertEqual(
            self.filled(given, (8, 64), sequence="--length"), (["--length=64", "--batch-size", "8"], [4, 128])
        )

    def test_arguments_that_are_not_there(self):
        for arguments in ([], ["--batch-size"], ["--batch-size", "many"], ["batch-size", "8"]):
            with self.assertRaises(gpumem.RecordError):
                self.filled(arguments, (8,))

    def test_arguments_that_there_are_instead(self):
        with self.assertRaisesRegex(gpumem.RecordError, "or name one of these: --batch-size, --lr$"):
            self.filled(["--batch-size", "4", "--lr=0.1"], (8,), batch="batchsize")

    def test_capabilities(self):
        self.assertEqual([launcher._capability_of(each) for each in ("8.0", "9", "12.1")], [(8, 0), (9, 0), (12, 1)])
        for text in ("x", "8.x", "", "-8.0"):
            with self.assertRaisesRegex(gpumem.RecordError, "no compute capability; give it as 8.0"):
                launcher._capability_of(text)

    def test_older_requirements_are_told(self):
        asked = {
            "torch==1.7.1": ("torch==1.7", "1.7"),
            "numpy\n  - pytorch=1.9.1  # conda\n": ("pytorch=1.9", "1.9"),
            "torch<=1.4": ("torch<=1.4", "1.7"),
            "torch >=1.8, < 2.0": ("torch<2.0", ""),
            "mmcv-full>=1.3.1,<=1.4.0": ("mmcv-full<=1.4", ""),
            'ARG PYTORCH="1.6.0"\nARG CUDA="10.1"\n': ("PyTorch 1.6", "1.7"),
            "FROM pytorch/pytorch:1.12.1-cuda11.3-cudnn8-devel\n": ("PyTorch 1.12", "1.12"),
            "FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel\n": None,
            "torch>=1.7": None,
            "torch==2.1\nmmcv>=2.0,<2.2\ntorchvision==0.8\ntorch<2.4": None,
        }
        for text, found in asked.items():
            self.assertEqual(launcher._older_torch(text), found, text)

    def test_requirements_of_the_folder_above(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder, "tools")
            tools.mkdir()
            asked = launcher._parser().parse_args([str(tools / "train.py")])
            runs = [Run(torch="2.6.0"), Run(torch="2.6.0")]
            self.assertEqual(launcher._note_age(asked, runs), "")
            self.assertFalse(runs[0].warnings)
            pathlib.Path(folder, "requirements-dev.txt").write_text("torch~=1.13.0\n")
            self.assertIn("asks for torch~=1.13: --torch-version 1.13 records", launcher._note_age(asked, runs))
            text = "requirements-dev.txt asks for torch~=1.13, whose PyTorch keeps more than PyTorch 2.6.0, which recorded it"
            self.assertEqual([[(each.kind, each.text) for each in run.warnings] for run in runs], [[("rule", text)]] * 2)
            asked.torch_version = "1.13"
            self.assertEqual(launcher._note_age(asked, runs), "")

    def main(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = launcher.main(arguments)
        return code, errors.getvalue()

    def test_errors_are_lines(self):
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(__version__="1.13.1")):
            code, text = self.main("train.py")
        self.assertEqual(code, 4)
        self.assertTrue(text.startswith("gpumem: error: PyTorch 1.13.1 is too old to record with; "), text)
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(__version__="2.6.0")):
            self.assertIn("there is no script nowhere.py", self.main("nowhere.py")[1])
            self.assertIn("--sequence-arg needs --batch-arg", self.main("--sequence-arg", "t", "nowhere.py")[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
