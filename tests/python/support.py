"""What the tests of the Python package share. The environment says where things are:
PYTHONPATH (the package), GPUMEM_SOURCE_DIR, GPUMEM_CLI (the command line; may be missing)."""

from __future__ import annotations

import os
import pathlib
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["GPUMEM_SOURCE_DIR"])
RESNET50 = SOURCE / "models" / "summaries" / "resnet50.torchsummary.txt"
VGG16 = SOURCE / "models" / "graphs" / "vgg16.json"
GPT_LIKE = SOURCE / "models" / "graphs" / "gpt_like.json"


def program() -> str:
    """The command line."""
    path = os.environ.get("GPUMEM_CLI")
    if not path:
        raise unittest.SkipTest("the command line is not built")
    return path


def command_line(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What the command line makes of these arguments."""
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True)


def linear_tree(layers: int) -> str:
    """A summary of so many layers."""
    layer = "Linear(in_features=64, out_features=64, bias=True)"
    rows = "".join(f"  ({index}): {layer}\n" for index in range(layers))
    return f"Sequential(\n{rows})\n"


def resident_bytes() -> int:
    """Of this process, now."""
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
