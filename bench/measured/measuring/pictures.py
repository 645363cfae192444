"""What the processors of models that read images make of one: the size that they resize it to, the tiles that they cut,
the tokens of text that it takes. Units: pixels, tiles, patches, tokens. Source: transformers 5.16,
models/*/image_processing_*.py and processing_*.py; functions name their own.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable

Spec = dict[str, Any]


def resized(width: int, height: int, factor: int, least: int) -> tuple[int, int]:
    """Both sides as multiples of the factor, of so many pixels at least (qwen2_vl/image_processing_qwen2_vl.py,
    smart_resize). The images that are drawn here are below what its processors allow at most."""
    sides = [round(side / factor) * factor for side in (width, height)]
    if sides[0] * sides[1] < least:
        beta = math.sqrt(least / (width * height))
        sides = [math.ceil(side * beta / factor) * factor for side in (width, height)]
    return sides[0], sides[1]


def _grids_of(most: int) -> list[tuple[int, int]]:
    """All grids of at most so many tiles, columns and rows, the smaller ones first."""
    grids = [(columns, tiles // columns) for tiles in range(1, most + 1) for columns in range(1, tiles + 1)
             if tiles % columns == 0]  # fmt: skip
    return sorted(grids, key=lambda grid: grid[0] * grid[1])


def closest_grid(width: int, height: int, tile: int, most: int) -> tuple[int, int]:
    """Columns and rows of the tiles whose shape is most like the image's; of two alike the larger one, where the image
    fills half of it (got_ocr2/image_processing_got_ocr2.py, get_optimal_tiled_canvas)."""
    best, least = (1, 1), math.inf
    for columns, rows in _grids_of(most):
        apart = abs(width / height - columns / rows)
        if apart < least or (apart == least and width * height > 0.5 * tile * tile * columns * rows):
            best, least = (columns, rows), apart
    return best


def least_scaled_grid(width: int, height: int, tile: int, most: int) -> tuple[int, int]:
    """Of the grids that hold the image the one that enlarges it least, else the one that shrinks it least; of those alike
    the smallest (llama4/image_processing_llama4.py, get_best_fit)."""
    scales = {grid: min(grid[0] * tile / width, grid[1] * tile / height) for grid in _grids_of(most)}
    holding = [scale for scale in scales.values() if scale >= 1]
    chosen = min(holding) if holding else max(scales.values())
    return next(grid for grid, scale in scales.items() if scale == chosen)


def best_canvas(width: int, height: int, canvases: list[list[int]]) -> tuple[int, int]:
    """Width and height of the canvas that keeps most of the image, then wastes least (image_processing_utils.py,
    select_best_resolution). Canvases are told as height and width."""

    def worth(canvas: list[int]) -> tuple[int, int]:
        scale = min(canvas[1] / width, canvas[0] / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - canvas[0] * canvas[1]

    best = max(canvases, key=worth)
    return best[1], best[0]


def unpadded(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Columns and rows of features that are left when the padding is cut off (llava_next, unpad_image)."""
    if width / height > columns / rows:
        new = int(round(height * (columns / width), 7))
        return columns, rows - (rows - new) // 2 * 2
    new = int(round(width * (rows / height), 7))
    return columns - (columns - new) // 2 * 2, rows


@dataclasses.dataclass(frozen=True)
class Picture:
    """What a processor makes of one image: tokens of text that it takes, patches that the tower sees, and the tensors of
    `count` images; where `nested`, those of each sample are an axis of their own."""

    tokens: int
    patches: int
    shape: tuple[int, ...]
    nested: bool = False
    more: Callable[[Any, int], Spec] | None = None


def packed(fields: Spec, width: int, height: int) -> Picture:
    """Qwen-VL, GLM-4V, PaddleOCR-VL: sides become multiples of merged patches; patches of all images are rows."""
    vision = fields["vision_config"]
    patch, merge = vision["patch_size"], vision["spatial_merge_size"]
    least = {"qwen3_vl": 65536, "paddleocr_vl": 147384}.get(fields["model_type"], 3136)
    columns, rows = (side // patch for side in resized(width, height, patch * merge, least))
    frames = vision.get("temporal_patch_size", 0)
    row = (3 * frames * patch * patch,) if frames else (3, patch, patch)

    def grid(make: Any, count: int) -> Spec:
        return {"image_grid_thw": make.given([[1, rows, columns]] * count)}

    return Picture(rows * columns // merge**2, rows * columns, (rows * columns, *row), more=grid)


def fixed(fields: Spec, _width: int, _height: int) -> Picture:
    """LLaVA 1.5, Gemma 3, PaliGemma, DeepSeek-VL: every image is resized to one size."""
    vision = fields["vision_config"]
    side, patches = vision["image_size"], (vision["image_size"] // vision["patch_size"]) ** 2
    return Picture(fields.get("mm_tokens_per_image", patches), patches, (1, 3, side, side))


def tiled(fields: Spec, width: int, height: int) -> Picture:
    """InternVL, Aya Vision and Command A Vision, Llama 4: tiles, and the whole image where there are several."""
    vision = fields["vision_config"]
    side, patch = (of[0] if isinstance(of, list) else of for of in (vision["image_size"], vision["patch_size"]))
    if fields["model_type"] == "llama4":
        columns, rows = least_scaled_grid(width, height, side, 16)
        each = (side // patch) ** 2 // 4
    else:
        columns, rows = closest_grid(width, height, side, 12)
        each = (side // patch // 2) ** 2
    tiles = columns * rows + (columns * rows > 1)
    return Picture(tiles * each, tiles * (side // patch) ** 2, (tiles, 3, side, side))


def any_resolution(fields: Spec, width: int, height: int) -> Picture:
    """LLaVA-NeXT, LLaVA-OneVision: the best canvas of tiles, and the whole image once more; a token ends each row."""
    vision = fields["vision_config"]
    side, grid = vision["image_size"], vision["image_size"] // vision["patch_size"]
    canvas = best_canvas(width, height, fields["image_grid_pinpoints"])
    tiles = canvas[0] // side * (canvas[1] // side)
    columns, rows = unpadded(width, height, grid * (canvas[0] // side), grid * (canvas[1] // side))
    if fields["model_type"] == "llava_onevision":  # anyres_max_9
        ratio = math.sqrt(columns * rows / (9 * grid**2))
        if ratio > 1.1:
            columns, rows = int(columns // ratio), int(rows // ratio)

    def sizes(make: Any, count: int) -> Spec:
        return {"image_sizes": make.given([[height, width]] * count)}

    tokens = grid**2 + rows * (columns + 1)
    return Picture(tokens, (tiles + 1) * grid**2, (tiles + 1, 3, side, side), nested=True, more=sizes)


def covered(fields: Spec, width: int, height: int) -> Picture:
    """Idefics3, SmolVLM: the longer side becomes four tiles long, tiles cover the image, and it comes as a whole too."""
    vision = fields["vision_config"]
    side, longest, wide = vision["image_size"], 4 * vision["image_size"], width >= height
    other = max(1, int(longest * (height / width if wide else width / height)))
    other += other % 2
    columns, rows = (4, math.ceil(other / side)) if wide else (math.ceil(other / side), 4)
    tiles, patches = columns * rows + 1, (side // vision["patch_size"]) ** 2

    def mask(make: Any, count: int) -> Spec:
        return {"pixel_attention_mask": make.whole(1, count * tiles, side, side) + 1}

    each = patches // fields["scale_factor"] ** 2
    return Picture(tiles * each, tiles * patches, (tiles, 3, side, side), nested=True, more=mask)


def as_it_is(fields: Spec, width: int, height: int) -> Picture:
    """Pixtral, Mistral 3: whole patches of the image in its own size."""
    vision, merge = fields["vision_config"], fields.get("spatial_merge_size", 1)
    cut = vision["patch_size"] * merge
    scale = max(1.0, max(width, height) / vision["image_size"])
    columns, rows = (math.ceil(math.floor(side / scale) / cut) for side in (width, height))

    def sizes(make: Any, count: int) -> Spec:
        return {"image_sizes": make.given([[rows * cut, columns * cut]] * count)}

    return Picture(rows * columns, rows * columns * merge**2, (1, 3, rows * cut, columns * cut), more=sizes)
