"""The recorder itself where PyTorch 2.1 or later is installed; without it, what it wrote (tests/golden/recordings)."""

from __future__ import annotations

import gzip
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest
from typing import Any

import gpumem

SOURCE = pathlib.Path(os.environ["GPUMEM_SOURCE_DIR"])
RECORDINGS = SOURCE / "tests" / "golden" / "recordings"


def has_torch(oldest: tuple[int, int] = (2, 4)) -> bool:
    try:
        import torch
        import torchvision  # noqa: F401
    except ImportError:
        return False
    return tuple(int(part) for part in str(torch.__version__).split("+")[0].split(".")[:2]) >= oldest


def recording(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes()))
    return document


class Programs(unittest.TestCase):
    """tests/recorder's programs, each in a process of its own."""

    @unittest.skipUnless(has_torch(), "PyTorch 2.4 or later and torchvision are not installed")
    def test_record(self) -> None:
        for script in ("values.py", "odd.py", "older.py"):
            done = subprocess.run(
                [sys.executable, str(SOURCE / "tests" / "recorder" / script)], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Detector(unittest.TestCase):
    """tests/recorder/detector.py, as PyTorch 2.6 recorded it."""

    def setUp(self) -> None:
        self.document = recording("detector")
        self.warnings = {(kind, text, where) for kind, text, where, _ in self.document["warnings"]}

    def texts(self, kind: str) -> set[str]:
        return {text for each, text, _ in self.warnings if each == kind}

    def shapes(self, operator: str) -> list[list[tuple[int, ...]]]:
        """Of the outputs of each of its calls."""
        tensors, dims, strings = (self.document[each] for each in ("tensors", "dims", "strings"))
        found = []
        for call in self.document["calls"]:
            if strings[call[0]] == operator:
                found.append([tuple(dims[each][0] for each in tensors[number][1]) for number in call[5]])
        return found

    def test_every_invented_value_has_its_line(self) -> None:
        for kind, text, where in self.warnings:
            if kind in ("value", "size"):
                self.assertRegex(where, r"^detector\.py:\d+$", text)

    def test_levels_are_as_many_as_the_program_made(self) -> None:
        suppressed = self.shapes("torchvision::nms")
        self.assertTrue(suppressed)
        self.assertEqual({shapes[0] for shapes in suppressed}, {(200,)}, "the program has the numbers of levels itself")
        self.assertIn("the size of unique() depends on values: there are 1 different values at most", self.texts("size"))

    def test_masks_that_part_the_boxes_do_not_each_take_all(self) -> None:
        self.assertTrue(any("masks that share a set of 600" in each for each in self.texts("size")), self.warnings)
        self.assertTrue(any("masks that share a set of 64" in each for each in self.texts("size")), self.warnings)
        pooled = [shapes[0][0] for shapes in self.shapes("torchvision::roi_align")]
        self.assertGreaterEqual(len(pooled), 2)
        self.assertLess(max(pooled), 64)

    def test_what_was_sampled_is_bounded(self) -> None:
        self.assertTrue(any("places were marked" in each for each in self.texts("size")), self.warnings)

    def test_what_the_program_sets_and_where_it_runs(self) -> None:
        self.assertEqual(self.document["settings"], {"cudnn_benchmark": True})
        self.assertEqual((self.document["world_size"], self.document["rank"]), (2, 0))
        self.assertIn("aten::batch_norm_gather_stats_with_counts", self.document["strings"])

    def test_the_estimate_names_what_was_invented(self) -> None:
        estimate = gpumem.estimate(RECORDINGS / "detector.json.gz", batch_size=2, gpu="a100-40gb")
        self.assertTrue(any("detector.py" in str(each) for each in estimate.assumed), estimate.assumed)
        self.assertLess(estimate.lower_bytes, estimate.expected_bytes)


class Compiled(unittest.TestCase):
    """tests/recorder/compiled.py: what torch.compile keeps for backward is what PyTorch 2.6 keeps on a CPU."""

    @unittest.skipUnless(has_torch((2, 6)), "PyTorch 2.6 or later and torchvision are not installed")
    def test_kept_as_by_pytorch(self) -> None:
        script = SOURCE / "tests" / "recorder" / "compiled.py"
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def kept(self, step: int) -> list[int]:
        """Bytes of what is made in the step's forward and lives as its backward begins, in the recording of a block."""
        document = recording("compiled")
        events, dims, live = document["events"], document["dims"], {}
        made, place, within = 0, 0, False
        while place < len(events):
            kind, what = events[place], events[place + 1]
            if kind == 0:
                item, axes = document["sizes"][what]
                for axis in axes:
                    item *= dims[axis][0]
                live[made] = item if within else 0
                made += 1
            elif kind == 1:
                live.pop(made - what)
            elif kind == 5 and events[place + 2] == step:
                within = what == 1
                if what == 2:
                    return sorted(size for size in live.values() if size)
            place += {0: 5, 1: 2, 2: 2, 3: 3, 4: 2, 5: 3}[kind]
        return []

    def test_the_recording_keeps_as_much(self) -> None:
        width = {"float32": 4, "bool": 1, "uint8": 1, "int64": 8}
        golden = json.loads((RECORDINGS / "compiled_saved.json").read_text())["block"]
        expected = [width[dtype] * math.prod(shape) for dtype, shape in golden]
        loss, gradient = 4, 4  # Of sum(), which does not keep the output.
        self.assertEqual(self.kept(2), sorted([*expected, loss, gradient]))

    def test_the_estimate_says_so(self) -> None:
        estimate = gpumem.estimate(RECORDINGS / "compiled.json.gz", batch_size=8, gpu="a100-40gb")
        self.assertTrue(any("Inductor" in str(each) for each in estimate.assumed), estimate.assumed)


if __name__ == "__main__":
    unittest.main()
