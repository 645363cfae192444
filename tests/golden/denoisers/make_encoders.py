"""Writes encoders/*.json next to this file: what autoencoders of videos hold while they make latents, at small sizes.

    python3 tests/golden/denoisers/make_encoders.py

It needs what make_goldens.py needs. Each golden is a config, the video, and the most bytes that live tensors hold.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src" / "python"), str(HERE.parent / "architectures")]
sys.dont_write_bytecode = True

import diffusers  # noqa: E402
import torch  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from live import live_peak  # noqa: E402

WAN = {"base_dim": 32, "dim_mult": [1, 2, 4, 4], "z_dim": 16, "temperal_downsample": [False, True, True]}
VIDEOS = {"wan": ("AutoencoderKLWan", WAN, (192, 128), 17), "qwen_image": ("AutoencoderKLQwenImage", WAN, (384, 256), 1)}


def measure(name: str, fields: dict[str, Any], pixels: tuple[int, int], frames: int) -> int:
    width, height = pixels
    with recording() as recorder:
        vae = getattr(diffusers, name)(**fields).to("cuda")
        vae.requires_grad_(False)
        recorder.steps.next_step()
        video = torch.zeros(1, 3, frames, height, width, device="cuda")
        with torch.no_grad():
            vae.encode(video)
    return live_peak(recorder.run)


def main() -> None:
    warnings.simplefilter("ignore")
    for name, (class_name, fields, pixels, frames) in VIDEOS.items():
        golden = {
            "config": {"_class_name": class_name, **fields},
            "image": pixels,
            "frames": frames,
            "peak_bytes": measure(class_name, fields, pixels, frames),
        }
        (HERE / "encoders" / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(name, golden["peak_bytes"] >> 20, flush=True)


if __name__ == "__main__":
    main()
