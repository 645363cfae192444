"""Writes the goldens of transformers' own classes that translate, see images, hear and read next to this file, as
make_series_goldens.py writes its own.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/architectures/make_class_goldens.py [NAME...]

It needs PyTorch 2.6, transformers (5.16 made these) and no GPU. No sample is padded or packed, so attention has no mask:
transformers sees that in values, which the recorded tensors do not have, so that it is told. Functions of autograd stand
for kernels: torch._grouped_mm of experts, and those of OLMo Hybrid's delta nets (models/experts.py, models/hybrids.py).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from class_configs import CONFIGS, NEVER_CHECKPOINTED
from make_sound_goldens import BATCH, PRECISIONS, measure, write_golden
from models.experts import GroupedProduct
from models.hybrids import CausalConv1d, ChunkGatedDeltaRule, NormGated

import torch
import transformers
from torch import Tensor
from transformers import masking_utils
from transformers.integrations import moe
from transformers.models.olmo_hybrid import modeling_olmo_hybrid

#: Rows and columns of patches that a processor makes of an image of 1024 x 768 pixels, of those that take any size.
GRID = (54, 74)
#: Tiles of the same image, with the whole one.
TILES = {"vipllava": 1, "llava_next": 5, "aya_vision": 13, "cohere2_vision": 13, "deepseek_vl": 1}
#: The same of MiniCPM-V's slices, and how many it makes.
SLICE = (28, 36)
SLICES = 5
#: And the tiles of DeepSeek-OCR 2.
LOCAL = 6
#: Frames of a patch.
FRAMES = {"glm_ocr": 2, "paddleocr_vl": 1}


def pictures_of(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    """One image a sample, of a model that reads text too."""
    kind = config["model_type"]
    if kind in TILES:
        side = config["vision_config"]["image_size"]
        tiles = (BATCH, TILES[kind]) if kind == "llava_next" else (BATCH * TILES[kind],)
        pixels = torch.zeros(*tiles, 3, side, side, dtype=dtype, device="cuda")
        sizes = {"image_sizes": torch.tensor([[768, 1024]] * BATCH)} if kind == "llava_next" else {}
        return {"pixel_values": pixels, **sizes}
    if kind == "deepseek_ocr2":
        whole = torch.zeros(BATCH, 3, 1024, 1024, dtype=dtype, device="cuda")
        local = torch.zeros(BATCH * LOCAL, 3, 768, 768, dtype=dtype, device="cuda")
        return {"pixel_values": whole, "pixel_values_local": local, "num_local_patches": [LOCAL] * BATCH}
    if kind == "minicpmv4_6":
        sides = torch.tensor([SLICE] * SLICES * BATCH)
        wide = SLICE[0] * SLICE[1] * SLICES * BATCH * 14
        return {"pixel_values": torch.zeros(1, 3, 14, wide, dtype=dtype, device="cuda"), "target_sizes": sides}
    patch = (3, 14, 14) if kind == "paddleocr_vl" else (3 * FRAMES[kind] * 14 * 14,)
    pixels = torch.zeros(BATCH * GRID[0] * GRID[1], *patch, dtype=dtype, device="cuda")
    kinds = torch.ones(BATCH, length, dtype=torch.int64, device="cuda")
    return {"pixel_values": pixels, "mm_token_type_ids": kinds, "image_grid_thw": torch.tensor([[1, *GRID]] * BATCH).to("cuda")}


def batch_of(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    """What a sample brings: tokens that are all those of a sound, where the model has them; an image."""

    def numbers(*shape: int) -> Tensor:
        return torch.zeros(BATCH, *shape, dtype=dtype, device="cuda")

    if "num_mel_bins" in config:
        return {"input_features": numbers(config["num_mel_bins"], 2 * config["max_source_positions"])}
    if config["model_type"] == "data2vec-audio":
        return {"input_values": numbers(length)}
    ids = torch.zeros(BATCH, length, dtype=torch.int64, device="cuda")
    batch = {"input_ids": ids} if length else {}
    if config["model_type"] == "deberta":  # where it gets none, it makes one of float32
        batch |= {"attention_mask": torch.zeros_like(ids)}
    if "image_token_index" in config or "image_token_id" in config:
        return batch | {"labels": torch.zeros_like(ids), **pictures_of(config, dtype, length)}
    if "vision_config" in config:
        side = config["vision_config"]["image_size"]
        return batch | {"pixel_values": numbers(3, side, side)}
    if length:
        batch |= {"labels": torch.zeros_like(ids)}
    if "audio_config" in config:
        frames = 2 * config["audio_config"]["max_source_positions"]
        batch |= {"input_features": numbers(config["audio_config"]["num_mel_bins"], frames)}
    return batch


def grouped_linear(rows: Tensor, weight: Tensor, *_: Any, is_transposed: bool = False, **__: Any) -> Tensor:
    """moe._grouped_linear, without a bias."""
    return GroupedProduct.apply(rows.to(weight.dtype), weight if is_transposed else weight.transpose(-2, -1))


def stand_for_kernels() -> None:
    moe._grouped_linear = grouped_linear
    nets = modeling_olmo_hybrid
    nets.causal_conv1d_fn = lambda states, weight, **_: CausalConv1d.apply(states, weight)
    nets.torch_chunk_gated_delta_rule = lambda q, k, v, g, beta, **_: (ChunkGatedDeltaRule.apply(q, k, v, g, beta), None)
    nets.OlmoHybridRMSNormGated.forward = lambda self, states, gate: NormGated.apply(states, gate, self.weight)


def main() -> None:
    warnings.simplefilter("ignore")
    stand_for_kernels()
    transformers.logging.set_verbosity_error()
    masking_utils._ignore_causal_mask_sdpa = lambda *_, **__: True
    masking_utils._ignore_bidirectional_mask_sdpa = lambda *_, **__: True
    masking_utils.find_packed_sequence_indices = lambda *_, **__: None
    for name in sys.argv[1:] or CONFIGS:
        config, length = CONFIGS[name]
        checkpointed = (False,) if name in NEVER_CHECKPOINTED else (False, True)
        ways = [(precision, again) for precision in PRECISIONS for again in checkpointed]
        measured = [measure(config, *way, length, batch_of) for way in ways]
        if length == 0:
            measured = [({key: of for key, of in run.items() if key != "sequence_length"}, n) for run, n in measured]
        measured = [(run | {"transformers": "5.5"}, n) for run, n in measured]
        write_golden(name, config, measured)


if __name__ == "__main__":
    main()
