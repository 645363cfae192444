"""gpumem.record as far as it needs no PyTorch: expressions, the file, errors. Steps, the guard and the launcher are in
test_record_steps.py. What needs PyTorch 2.1 or later is in tests/recorder."""

import gzip
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import gpumem
from gpumem.record import _need_torch, _points
from gpumem.record.expressions import (
    Expressions,
    batch_sizes,
    dense_order,
    order_of_strides,
    sequence_lengths,
    value_of,
)
from gpumem.record.run import (
    Allocate,
    Begin,
    Call,
    Category,
    End,
    Free,
    Mark,
    Marked,
    Parameter,
    Phase,
    Run,
    TensorForm,
    Warning,
    Workspace,
)
from gpumem.record.writer import in_order, recording_text, write_recording
from support import SOURCE

RECORDINGS = SOURCE / "tests" / "golden" / "recordings"


class ExpressionsOfSizes(unittest.TestCase):
    def test_one_run_gives_numbers(self):
        self.assertEqual(Expressions([()]).of([7]), (7,))

    def test_two_runs_give_lines(self):
        found = Expressions([(8,), (16,), (11,)])
        self.assertEqual(found.of([64, 64, 64]), (64,))
        self.assertEqual(found.of([8, 16, 11]), (0, 1))
        self.assertEqual(found.of([25, 49, 34]), (1, 3))
        self.assertEqual(found.of([92, 84, 89]), (100, -1))

    def test_four_runs_give_products(self):
        points = [(4, 64), (4, 128), (8, 64), (8, 128), (5, 96)]
        found = Expressions(points)
        self.assertEqual(found.of([batch * length for batch, length in points]), (0, 0, 0, 1))
        self.assertEqual(found.of([length - 1 for _, length in points]), (-1, 0, 1))

    def test_what_the_runs_gave_comes_back(self):
        draw = random.Random(7)
        for _ in range(300):
            points = [(4, 6), (4, 12), (8, 6), (8, 12), (5, 9)]
            factors = tuple(draw.randrange(-50, 50) for _ in range(4))
            found = Expressions(points).of([value_of(factors, point) for point in points])
            for point in [*points, (31, 77), (1, 1)]:
                self.assertEqual(value_of(found, point), value_of(factors, point), factors)

    def test_no_whole_number(self):
        self.assertIsNone(Expressions([(8,), (16,)]).of([1, 2]))

    def test_the_check_refuses(self):
        # A quarter of the batch, rounded up; and a square.
        self.assertIsNone(Expressions([(8,), (16,), (11,)]).of([16, 32, 24]))
        self.assertIsNone(Expressions([(2,), (4,), (3,)]).of([4, 16, 9]))

    def test_sizes_of_runs(self):
        self.assertEqual(batch_sizes(8), (8, 16, 12))
        self.assertEqual(batch_sizes(7), (7, 14, 10))
        self.assertEqual(batch_sizes(1), (2, 4, 3))
        self.assertEqual(sequence_lengths(2048), (1024, 2048, 1536))
        self.assertEqual(sequence_lengths(200), (64, 128, 96))
        self.assertEqual(_points(8, None, True), [(8,), (16,), (12,)])
        self.assertEqual(_points(2, 256, True), [(2, 128), (2, 256), (4, 128), (4, 256), (3, 192)])
        self.assertEqual(_points(1, 77, False), [(1, 77)])
        for batch, length in ((0, None), (8, 0)):
            with self.assertRaises(gpumem.RecordError):
                _points(batch, length, True)


class Layouts(unittest.TestCase):
    def test_contiguous(self):
        self.assertEqual(dense_order((2, 3, 4), (12, 4, 1)), [])
        self.assertEqual(dense_order((), ()), [])
        self.assertEqual(dense_order((2, 1, 4), (4, 999, 1)), [])

    def test_permuted(self):
        self.assertEqual(dense_order((2, 3, 4, 5), (60, 1, 15, 3)), [0, 2, 3, 1])
        self.assertEqual(dense_order((3, 4), (1, 3)), [1, 0])

    def test_gaps_and_repeats(self):
        self.assertIsNone(dense_order((2, 3), (6, 1)))
        self.assertIsNone(dense_order((2, 3), (0, 1)))

    def test_order_of_strides(self):
        self.assertEqual(order_of_strides((6, 1)), [])
        self.assertEqual(order_of_strides((1, 7)), [1, 0])


def form(*shape, dtype="float32", strides=None):
    packed = []
    size = 1
    for each in reversed(shape):
        packed.insert(0, size)
        size *= each
    return TensorForm(dtype, shape, tuple(packed) if strides is None else strides)


def run_of(batch, **changes):
    """A linear layer: its parameter, an input, a product, a loss' gradient, one step."""
    weight, x, y = form(3, 4), form(batch, 4), form(batch, 3)
    calls = [
        Call("aten::_to_copy", "", Phase.CONSTRUCTION, 0, (weight,), (weight,), ()),
        Call("aten::empty.memory_format", "", Phase.OTHER, 0, (), (x,), ()),
        Call("aten::mm", "fc", Phase.FORWARD, 0, (x, form(4, 3, strides=(1, 4))), (y,), ()),
        Call("aten::mm", "fc", Phase.BACKWARD, 1, (form(3, batch, strides=(1, 3)), x), (weight,), ()),
        Call("aten::add_.Tensor", "", Phase.OPTIMIZER, 0, (weight, weight), (), ()),
    ]
    events = [
        Marked(Mark.CONSTRUCTION, 0, 0),
        Allocate(0, 4, (3, 4), 0, 0),
        Marked(Mark.BETWEEN, 1, 1),
        Allocate(1, 4, (batch, 4), 0, 1),
        Marked(Mark.FORWARD, 1, 2),
        Begin(2),
        Allocate(2, 4, (batch, 3), 0, 2),
        Workspace(2, 0),
        End(2),
        Marked(Mark.BACKWARD, 1, 3),
        Allocate(3, 4, (3, 4), 0, 3),
        Free(2),
        Marked(Mark.OPTIMIZER, 1, 4),
        Free(1),
    ]
    run = Run(
        torch="2.6.0",
        optimizer="sgd",
        precision="fp32",
        calls=calls,
        events=events,
        categories={0: Category.PARAMETER, 1: Category.INPUT, 2: Category.ACTIVATION, 3: Category.GRADIENT},
        parameters=[Parameter("fc.weight", weight, True, 0, 3)],
        warnings={Warning("value", "a value is needed", "train.py:3"): 2},
    )
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def recorded(*runs, points=((8,), (16,), (11,))):
    return json.loads(recording_text(runs, points[: len(runs)], "train.py"))


class File(unittest.TestCase):
    def setUp(self):
        self.whole = recorded(run_of(8), run_of(16), run_of(11))

    def test_head(self):
        head = {name: self.whole[name] for name in list(self.whole)[:12]}
        self.assertEqual(
            head,
            {
                "format": "gpumem-recording",
                "version": 1,
                "title": "train.py",
                "torch": "2.6.0",
                "capability": [8, 0],
                "world_size": 1,
                "rank": 0,
                "axes": ["batch"],
                "recorded_at": [[8], [16]],
                "checked_at": [[11]],
                "optimizer": "sgd",
                "precision": "fp32",
            },
        )
        self.assertEqual(self.whole["warnings"], [["value", "a value is needed", "train.py:3", 2]])

    def test_tables(self):
        names = self.whole["strings"]
        self.assertEqual(self.whole["dims"], [[3], [4], [0, 1]])
        # The weight, the input, the weight's transpose, the product, its gradient's transpose.
        float32 = names.index("float32")
        self.assertEqual(
            self.whole["tensors"],
            [
                [float32, [0, 1], []],
                [float32, [2, 1], []],
                [float32, [1, 0], [1, 0]],
                [float32, [2, 0], []],
                [float32, [0, 2], [1, 0]],
            ],
        )
        self.assertEqual(self.whole["sizes"], [[4, [0, 1]], [4, [2, 1]], [4, [2, 0]]])
        self.assertEqual(self.whole["calls"][2], [names.index("aten::mm"), names.index("fc"), 1, 0, [1, 2], [3], []])
        self.assertEqual(self.whole["parameters"], [[names.index("fc.weight"), 0, 1, 0, 3]])

    def test_events(self):
        self.assertEqual(
            self.whole["events"],
            [5, 0, 0, 0, 0, 0, 0, 0, 5, 4, 1, 0, 1, 0, 1, 2, 5, 1, 1, 2, 2, 0, 2, 0, 2, 3, 3, 2, 0, 4, 2]
            + [5, 2, 1, 0, 0, 0, 3, 5, 1, 2, 5, 3, 1, 1, 3],
        )

    def test_kernels_of_the_last_step(self):
        # Neither the construction nor what only takes memory.
        self.assertEqual(self.whole["kernels"], [[2, 1], [3, 1], [4, 1]])

    def test_one_run(self):
        one = recorded(run_of(8), points=((),))
        self.assertEqual((one["axes"], one["recorded_at"], one["checked_at"]), ([], [[]], []))
        self.assertEqual(one["dims"], [[3], [4], [8]])
        known = recorded(run_of(8), points=((8,),))
        self.assertEqual((known["axes"], known["recorded_at"], known["checked_at"]), ([], [[8]], []))

    def test_strides_that_are_expressions(self):
        def with_slice(batch):
            run = run_of(batch)
            run.calls[4] = run.calls[4]._replace(inputs=(form(batch, 4, strides=(2 * batch, 2)),))
            return run

        tensors = recorded(with_slice(8), with_slice(16), with_slice(11))["tensors"]
        self.assertEqual(tensors[-1][2], [[0, 2], [2]])

    def test_axes_that_only_follow_the_batch_together(self):
        """A data set as rows of a batch each: as many elements at any batch."""

        def with_rows(batch):
            run = run_of(batch)
            run.calls[4] = run.calls[4]._replace(inputs=(form(4800 // batch, batch),))
            return run

        whole = recorded(with_rows(8), with_rows(16), with_rows(12), points=((8,), (16,), (12,)))
        self.assertEqual([whole["dims"][each] for each in whole["tensors"][-1][1]], [[4800], [1]])
        self.assertFalse(any(kind == "shape" for kind, *_ in whole["warnings"]))

    def test_strides_that_are_none(self):
        def with_square(batch):
            run = run_of(batch)
            run.calls[4] = run.calls[4]._replace(inputs=(form(4, batch, strides=(1, batch * batch)),))
            return run

        whole = recorded(with_square(8), with_square(16), with_square(11))
        self.assertEqual(whole["tensors"][-1][2], [1, 0])
        self.assertEqual(whole["warnings"][-1][0], "shape")
        self.assertIn("aten::add_.Tensor", whole["warnings"][-1][1])

    def test_releases_that_follow_each_other_have_no_order(self):
        first, second, mark = Free(0), Free(2), Marked(Mark.BETWEEN, 1, 5)
        self.assertEqual(in_order([second, first, mark, second]), [first, second, mark, second])
        swapped = run_of(16)
        swapped.events[-1:] = [Free(3), Free(1)]
        others = [run_of(8), run_of(12)]
        for each in others:
            each.events[-1:] = [Free(1), Free(3)]
        whole = recorded(others[0], swapped, others[1], points=((8,), (16,), (12,)))
        self.assertEqual(whole["events"][-4:], [1, 3, 1, 1])

    def test_written_and_compressed(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, packed = pathlib.Path(folder, "a.json"), pathlib.Path(folder, "a.json.gz")
            write_recording(plain, "{}\n")
            write_recording(str(packed), "{}\n")
            self.assertEqual(plain.read_text(), "{}\n")
            self.assertEqual(gzip.decompress(packed.read_bytes()), b"{}\n")
            before = packed.read_bytes()
            write_recording(packed, "{}\n")
            self.assertEqual(packed.read_bytes(), before)

    def test_what_was_there_stays_until_all_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.json")
            path.write_text("the last one")
            with unittest.mock.patch("pathlib.Path.write_bytes", side_effect=OSError("the disk is full")):
                with self.assertRaises(OSError):
                    write_recording(path, "{}\n")
            self.assertEqual(path.read_text(), "the last one")
            self.assertEqual([each.name for each in pathlib.Path(folder).iterdir()], ["run.json"])

    def test_a_link_stays_one_and_a_file_keeps_its_mode(self):
        with tempfile.TemporaryDirectory() as folder:
            path, link = pathlib.Path(folder, "run.json"), pathlib.Path(folder, "latest.json")
            path.write_text("the last one")
            path.chmod(0o640)
            link.symlink_to(path.name)
            write_recording(link, "{}\n")
            self.assertTrue(link.is_symlink())
            self.assertEqual(path.read_text(), "{}\n")
            self.assertEqual(path.stat().st_mode & 0o777, 0o640)
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 2)

    def test_a_new_file_has_the_mode_of_any_other(self):
        with tempfile.TemporaryDirectory() as folder:
            path, other = pathlib.Path(folder, "run.json"), pathlib.Path(folder, "other")
            other.write_text("")
            write_recording(path, "{}\n")
            self.assertEqual(path.stat().st_mode, other.stat().st_mode)

    def test_standard_output_is_written_and_not_replaced(self):
        with tempfile.TemporaryFile() as file:
            write_recording(f"/dev/fd/{file.fileno()}", "{}\n")
            file.seek(0)
            self.assertEqual(file.read(), b"{}\n")

    def test_a_program_that_stays_on_the_processor_is_refused(self):
        on_the_processor = run_of(8, events=[Marked(Mark.FORWARD, 1, 2)])
        with self.assertRaisesRegex(gpumem.RecordError, 'puts nothing on the GPU.*"cuda"'):
            recorded(on_the_processor, points=((8,),))


class RunsThatDiffer(unittest.TestCase):
    def refused(self, *runs):
        with self.assertRaises(gpumem.RecordError) as caught:
            recorded(*runs)
        self.assertEqual(caught.exception.code, "not_recordable")
        return str(caught.exception)

    def changed(self, place, **fields):
        calls = list(run_of(16).calls)
        calls[place] = calls[place]._replace(**fields)
        return run_of(16, calls=calls)

    def test_another_operator(self):
        text = self.refused(run_of(8), self.changed(2, operator="aten::bmm"))
        self.assertIn("aten::mm in fc is aten::bmm in fc", text)
        self.assertIn("8 and 16 (batch)", text)
        self.assertIn("scale=False", text)

    def test_other_arguments(self):
        self.assertIn("other arguments", self.refused(run_of(8), self.changed(2, inputs=())))
        self.assertIn("other arguments", self.refused(run_of(8), self.changed(2, extra=(1,))))

    def test_another_type(self):
        half = (form(16, 3, dtype="float16"),)
        self.assertIn("different types", self.refused(run_of(8), self.changed(2, outputs=half)))

    def test_other_axes(self):
        self.assertIn("axes", self.refused(run_of(8), self.changed(2, outputs=(form(48),))))

    def test_more_calls(self):
        calls = run_of(16).calls
        self.assertIn("5, 6 calls", self.refused(run_of(8), run_of(16, calls=[*calls, calls[4]])))

    def test_events(self):
        events = run_of(16).events
        self.assertIn("another order", self.refused(run_of(8), run_of(16, events=[*events[:-1], Begin(4)])))
        self.assertIn("another place", self.refused(run_of(8), run_of(16, events=[*events[:-1], Free(0)])))
        self.assertIn("has ended", self.refused(run_of(8), run_of(16, events=[*events, End(2)])))
        other = [*events[:3], events[3]._replace(stream=1), *events[4:]]
        self.assertIn("other memory", self.refused(run_of(8), run_of(16, events=other)))

    def test_parameters(self):
        self.assertIn("different parameters", self.refused(run_of(8), run_of(16, parameters=[])))
        frozen = [run_of(16).parameters[0]._replace(trained=False)]
        self.assertIn("another parameter", self.refused(run_of(8), run_of(16, parameters=frozen)))

    def test_no_expression(self):
        # A small tensor gets an upper bound; these are to count as large.
        with unittest.mock.patch("gpumem.record.writer._SMALL", 0):
            text = self.refused(run_of(8), run_of(16), run_of(12))
        self.assertIn("no whole-number expression", text)
        self.assertIn("axis 0", text)


class Torch(unittest.TestCase):
    def refused(self, module):
        with unittest.mock.patch.dict(sys.modules, torch=module):
            with self.assertRaises(gpumem.RecordError) as caught:
                _need_torch()
        return str(caught.exception)

    def test_none(self):
        self.assertIn("install torch 2.1 or later", self.refused(None))

    def test_too_old(self):
        for version in ("1.13.1", "2.0.1+cpu"):
            text = self.refused(types.SimpleNamespace(__version__=version))
            self.assertIn(f"PyTorch {version} is too old", text)

    def test_recent(self):
        for version in ("2.1.0", "2.6.0+cu124", "2.10.0a0+git1234", "3.0"):
            with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(__version__=version)):
                _need_torch()

    def test_record_and_step_refuse(self):
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(__version__="1.13.1")):
            with self.assertRaises(gpumem.RecordError):
                with gpumem.record("run.json"):
                    self.fail("the block ran")
            with self.assertRaises(gpumem.RecordError):
                gpumem.record.step(lambda batch: None, 8)
            with self.assertRaises(gpumem.RecordError):
                gpumem.record.pretend_world(8)


class WithoutTheCompiledPart(unittest.TestCase):
    def test_recording_is_there_and_the_rest_says_what_is_missing(self):
        package = pathlib.Path(gpumem.__file__).parent
        program = """
import gpumem
print(callable(gpumem.record), callable(gpumem.record.step))
try:
    gpumem.estimate
except ImportError as error:
    print(error)
"""
        with tempfile.TemporaryDirectory() as folder:
            ignored = shutil.ignore_patterns("libgpumem_c*", "__pycache__")
            shutil.copytree(package, pathlib.Path(folder, "gpumem"), ignore=ignored)
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=folder, env={"PYTHONPATH": folder}, capture_output=True, text=True
            )
        self.assertEqual(done.stderr, "")
        self.assertIn("True True\ngpumem.estimate needs the compiled part of gpumem", done.stdout)


class Goldens(unittest.TestCase):
    """Recordings that PyTorch 2.6 made (tests/recorder/make_goldens.py): every index is one of its table."""

    def test_are_whole(self):
        files = sorted(RECORDINGS.glob("*.json.gz"))
        self.assertGreaterEqual(len(files), 3)
        for file in files:
            with self.subTest(file.name):
                self.check(json.loads(gzip.decompress(file.read_bytes())))

    def check(self, data):
        self.assertEqual((data["format"], data["version"]), ("gpumem-recording", 1))
        self.assertEqual(set(data) - {"settings"}, set(recorded(run_of(8), points=((),))))
        counts = {name: len(data[name]) for name in ("strings", "dims", "tensors", "sizes", "calls")}
        for dtype, dims, _layout in data["tensors"]:
            self.assertLess(dtype, counts["strings"])
            self.assertTrue(all(0 <= each < counts["dims"] for each in dims))
        for operator, module, phase, thread, inputs, outputs, _extra in data["calls"]:
            self.assertLess(max(operator, module), counts["strings"])
            self.assertIn(phase, set(Phase))
            self.assertIn(thread, (0, 1))
            self.assertTrue(all(0 <= each < counts["tensors"] for each in [*inputs, *outputs]))
        self.assertTrue(all(0 <= call < counts["calls"] and times > 0 for call, times in data["kernels"]))
        self.walk(data["events"], counts, len(data["parameters"]))

    def walk(self, events, counts, parameters):
        place, live = 0, []
        lengths = {0: 5, 1: 2, 2: 2, 3: 3, 4: 2, 5: 3}
        while place < len(events):
            kind, *rest = events[place : place + lengths[events[place]]]
            place += lengths[kind]
            if kind == 0:
                self.assertLess(rest[0], counts["sizes"])
                self.assertTrue(-1 <= rest[2] < counts["calls"])
                self.assertIn(rest[3], set(Category))
                live.append(True)
            elif kind == 1:
                self.assertTrue(live[-rest[0]], "a release of what is not there")
                live[-rest[0]] = False
            elif kind == 5:
                self.assertIn(rest[0], set(Mark))
            else:
                self.assertTrue(0 <= rest[0] < counts["calls"])
        self.assertGreater(parameters, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
