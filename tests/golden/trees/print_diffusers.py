"""Writes diffusers.json.gz next to this file: configs of diffusers' classes, and what print(model) shows of each.

    python3 tests/golden/trees/print_diffusers.py

It needs PyTorch 2.0 or later and diffusers 0.38 or later, and no memory: the models are made on the meta device.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import diffusers  # noqa: E402
import torch  # noqa: E402
from diffusers_configs import CONFIGS  # noqa: E402


def golden(class_name: str, fields: dict[str, Any]) -> dict[str, Any]:
    with torch.device("meta"):
        model = getattr(diffusers, class_name)(**fields)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"config": {"_class_name": class_name, **fields}, "parameters": parameters, "tree": str(model)}


def main() -> None:
    goldens = {name: golden(*config) for name, config in CONFIGS.items()}
    text = json.dumps(goldens, indent=1)
    (HERE / "diffusers.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
