"""Writes tests/golden/recordings: the recordings that the tests read. It needs PyTorch 2.6 and torchvision: others record other
calls.

    python3 tests/recorder/make_goldens.py FOLDER
"""

from __future__ import annotations

import pathlib
import sys
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True

import detector  # noqa: E402
import gpumem  # noqa: E402
import masks  # noqa: E402
import programs  # noqa: E402

#: By the golden's name: what is recorded, and at which sizes.
GOLDENS = {
    "mlp": (programs.mlp, (8,)),
    "resnet18": (programs.resnet18, (8,)),
    "resnet50": (programs.resnet50, (8,)),
    "gpt": (programs.gpt, (4, 256)),
    "gpt_bf16": (programs.gpt_bf16, (4, 256)),
    "lora": (programs.lora, (2, 1024)),
    "masks": (masks.masks, (8,)),
}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, (program, sizes) in GOLDENS.items():
        gpumem.record.step(program, *sizes, path=folder / f"{name}.json.gz", title=name)
        print(name, (folder / f"{name}.json.gz").stat().st_size)
    with gpumem.record.pretend_world(2):
        gpumem.record.step(detector.detector, 2, path=folder / "detector.json.gz", scale=False, title="detector")


if __name__ == "__main__":
    main()
