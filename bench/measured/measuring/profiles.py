"""Which profile in models/gpus a GPU is. Units: bytes."""

from __future__ import annotations

import json
import pathlib
import re

PROFILES = pathlib.Path(__file__).resolve().parents[3] / "models" / "gpus"


def squashed(name: str) -> str:
    """ "NVIDIA GeForce RTX 4090" and "rtx4090" are the same."""
    return re.sub(r"nvidia|geforce|tesla|quadro|[^a-z0-9]", "", name.lower())


def profile_of(name: str, total_bytes: int, folder: pathlib.Path = PROFILES) -> str:
    """The profile of this name, or of this family (a100, t4) with memory nearest to what PyTorch counts; the GPU's own
    name where there is none: then gpumem must be given one."""
    wanted = squashed(name)
    near: list[tuple[int, str]] = []
    for path in sorted(folder.glob("*.json")):
        profile = json.loads(path.read_text(encoding="utf-8"))
        memory = profile["figures"]["memory_bytes"]["value"]
        if "-mig-" in profile["name"] or not 0.85 * memory <= total_bytes <= 1.05 * memory:
            continue
        if wanted in map(squashed, (profile["name"], *profile.get("aliases", ()))):
            return profile["name"]
        if wanted.startswith(squashed(profile["name"].split("-")[0])):
            near.append((abs(memory - total_bytes), profile["name"]))
    return min(near)[1] if near else name
