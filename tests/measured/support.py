"""What the tests share: the path to the tool, a folder that goes away, and dry runs."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURE = ROOT / "bench" / "measured" / "measure.py"
GPUMEM = os.environ.get("GPUMEM")
sys.path.insert(0, str(MEASURE.parent))


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def journal(self, name: str = "runs.jsonl") -> list[dict]:
        """The whole lines that there are."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(MEASURE), *map(str, arguments)]


def measure(*arguments: str, seconds: float = 240) -> subprocess.CompletedProcess:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=seconds, check=False)


def gpumem(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([GPUMEM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
