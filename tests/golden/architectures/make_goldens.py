"""Writes the goldens next to this file: what PyTorch holds in training steps of the models in models/, at two sizes.

    python3 tests/golden/architectures/make_goldens.py [--adapted | --peft] [NAME...]

It needs PyTorch 2.6, whose attention the recordings take, and no GPU. Each golden is one model: its config.json, and for
each way to train it the most bytes that live tensors hold in two steps with AdamW, as gpumem.record sees them. With
--adapted they go to adapted/, and what is trained are adapters on a frozen base, quantised or not; with --peft to peft/,
and the adapters are those of PEFT's other methods.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src" / "python"), str(HERE)]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from configs import (  # noqa: E402
    ADAPTED,
    ADAPTED_EMBEDDINGS,
    CONFIGS,
    PEFT_RUNS,
    adapting_runs,
    embedding_runs,
    sizes_of,
)
from diffusers_configs import IMAGE_SIDE, TEXT_TOKENS  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from live import live_peak  # noqa: E402
from models import BUILDERS  # noqa: E402
from models.adapters import LoraEmbedding, adapt, require_input_gradients  # noqa: E402
from models.peft_layers import adapt_by_peft  # noqa: E402
from vision_configs import PIXELS  # noqa: E402

#: The precisions as gpumem names them: the type of the weights, and autocast's.
PRECISIONS: dict[str, tuple[torch.dtype, Any]] = {
    "fp32": (torch.float32, None),
    "amp-bf16": (torch.float32, torch.bfloat16),
    "bf16": (torch.bfloat16, None),
}


def type_of(config: dict[str, Any]) -> str:
    return str(config.get("model_type") or config["_class_name"])


def images_of(config: dict[str, Any], dtype: torch.dtype, batch: int) -> list[torch.Tensor]:
    """Of a diffusers model: what it reads, and the target."""
    side = IMAGE_SIDE

    def numbers(*sizes: int) -> torch.Tensor:
        return torch.zeros(batch, *sizes, dtype=dtype, device="cuda")

    if type_of(config) == "AutoencoderKL":
        return [numbers(3, side, side), numbers(3, side, side)]
    if type_of(config) == "UNet2DModel":
        pixels = config["in_channels"], side, side
        return [numbers(*pixels), numbers(config["block_out_channels"][0]), numbers(*pixels)]
    latents = config["in_channels"], side // 8, side // 8
    pooled = config.get("projection_class_embeddings_input_dim")
    added = [numbers(pooled)] if pooled else []
    text = numbers(TEXT_TOKENS, config["cross_attention_dim"])
    return [numbers(*latents), numbers(config["block_out_channels"][0]), *added, text, numbers(*latents)]


def batch_of(config: dict[str, Any], dtype: torch.dtype, batch: int, tokens: int = 0) -> list[torch.Tensor]:
    if "_class_name" in config:
        return images_of(config, dtype, batch)
    if "image_size" in config:
        side = config["image_size"]
        images = torch.zeros(batch, 3, side, side, dtype=dtype, device="cuda")
        segments = config["architectures"][0].endswith("ForSemanticSegmentation")
        labels = (batch, side, side) if segments else (batch,)
        return [images, torch.zeros(labels, dtype=torch.int64, device="cuda")]
    ids = [torch.zeros(batch, tokens, dtype=torch.int64, device="cuda") for _ in range(2)]
    if config["model_type"] == "csm":
        return [*ids, torch.zeros(batch, tokens, config["num_codebooks"], dtype=torch.int64, device="cuda")]
    if config["model_type"] in PIXELS:
        rows, *sizes = PIXELS[config["model_type"]]
        return [*ids, torch.zeros(batch * rows, *sizes, dtype=dtype, device="cuda")]
    if "vision_config" in config:
        side = config["vision_config"]["image_size"]
        return [*ids, torch.zeros(batch, 3, side, side, dtype=dtype, device="cuda")]
    if "num_mel_bins" in config:
        frames = 2 * config["max_source_positions"]
        return [torch.zeros(batch, config["num_mel_bins"], frames, dtype=dtype, device="cuda"), *ids]
    further = 2 if config["model_type"] == "xlnet" else 1  # with the segments' ids
    return [*ids, *(torch.zeros(batch, tokens, dtype=torch.int64, device="cuda") for _ in range(further))]


def adapt_model(model: torch.nn.Module, adapting: dict[str, Any], precision: str, checkpointing: bool) -> None:
    dtype, autocast = PRECISIONS[precision]
    if "peft" in adapting:
        adapt_by_peft(model, adapting)
    else:
        adapt(model, adapting, dtype, autocast or dtype)
    if checkpointing:
        tables = (torch.nn.Embedding, LoraEmbedding)
        require_input_gradients(next(each for each in model.modules() if isinstance(each, tables)))


def program(
    config: dict[str, Any], precision: str, checkpointing: bool, *sizes: int, adapting: dict[str, Any] | None = None
) -> Callable[[], None]:
    """The training loop of a plain script: outputs keep their name until the next step."""
    dtype, autocast = PRECISIONS[precision]
    model = BUILDERS[type_of(config)](config).to("cuda", dtype)
    if adapting is not None:
        adapt_model(model, adapting, precision, checkpointing)
    for module in model.modules():
        if hasattr(module, "checkpointing"):
            module.checkpointing = checkpointing
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4)
    outputs = None

    def step() -> None:
        nonlocal outputs
        batch = batch_of(config, dtype, *sizes)
        optimizer.zero_grad()
        context = torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext()
        with context:
            outputs = model(*batch)
        outputs.loss.backward()
        optimizer.step()

    return step


def measure(
    config: dict[str, Any], precision: str, checkpointing: bool, *sizes: int, adapting: dict[str, Any] | None = None
) -> dict[str, Any]:
    with recording() as recorder:
        step = program(config, precision, checkpointing, *sizes, adapting=adapting)
        for _ in range(2):
            recorder.steps.next_step()
            step()
    return {
        "precision": precision,
        "activation_checkpointing": checkpointing,
        **dict(zip(("batch_size", "sequence_length"), sizes)),
        **({"image": [IMAGE_SIDE, IMAGE_SIDE]} if "_class_name" in config else {}),
        **({"transformers": config["transformers_version"]} if "transformers_version" in config else {}),
        **(adapting or {}),
        "peak_bytes": live_peak(recorder.run),
    }


def count_parameters(config: dict[str, Any]) -> int:
    with torch.device("meta"):
        return sum(each.numel() for each in BUILDERS[type_of(config)](config).parameters())


def write(path: pathlib.Path, config: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    golden = {"config": config, "parameters": count_parameters(config), "runs": runs}
    path.write_text(json.dumps(golden, indent=1) + "\n")
    print(path.stem, golden["parameters"], [run["peak_bytes"] >> 20 for run in runs], flush=True)


def write_adapted(name: str) -> None:
    model, _, embeddings = name.partition("_")
    config = CONFIGS[model]
    runs = [
        measure(config, precision, checkpointing, *sizes_of(config)[0], adapting=adapting)
        for precision in PRECISIONS
        for checkpointing in (False, True)
        for adapting in (embedding_runs(precision) if embeddings else adapting_runs(ADAPTED[model], precision))
    ]
    write(HERE / "adapted" / f"{name}.json", config, runs)


def write_peft(name: str) -> None:
    config = CONFIGS[name]
    runs = [
        measure(config, precision, checkpointing, *sizes_of(config)[0], adapting=adapting)
        for precision in ("fp32", "bf16")
        for checkpointing in (False, True)
        for adapting in PEFT_RUNS
    ]
    write(HERE / "peft" / f"{name}.json", config, runs)


def main() -> None:
    warnings.simplefilter("ignore")
    if "--peft" in sys.argv:
        for name in sys.argv[2:] or ["llama"]:
            write_peft(name)
        return
    if "--adapted" in sys.argv:
        for name in sys.argv[2:] or [*ADAPTED, *ADAPTED_EMBEDDINGS]:
            write_adapted(name)
        return
    for name in sys.argv[1:] or CONFIGS:
        config = CONFIGS[name]
        runs = [
            measure(config, precision, checkpointing, *sizes)
            for precision in PRECISIONS
            for checkpointing in (False, True)
            for sizes in sizes_of(config)
        ]
        write(HERE / f"{name}.json", config, runs)


if __name__ == "__main__":
    main()
