"""Writes the goldens next to this file: what diffusers' transformers hold in training steps, at small sizes.

    python3 tests/golden/denoisers/make_goldens.py [NAME...]

It needs PyTorch 2.6, diffusers 0.38 or later, and no GPU; for classes that SimpleTuner brings, its sources on PYTHONPATH. Each golden is one model: its config, what a sample is, and for
each way to train it the most bytes that live tensors hold in two steps with AdamW, as gpumem.record sees them.

torch.nn.functional.rms_norm is replaced by what PyTorch 2.9 and later run on a GPU: one kernel that keeps its input and a figure a
row (aten::_fused_rms_norm in derivatives.yaml).
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src" / "python"), str(HERE.parent / "architectures"), str(HERE)]
sys.dont_write_bytecode = True

import diffusers  # noqa: E402
import torch  # noqa: E402
from guided import GUIDED  # noqa: E402
from models_more import MORE  # noqa: E402
from models_small import CONFIGS  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from inputs import INPUTS  # noqa: E402
from live import live_peak  # noqa: E402
from models.adapters import adapt  # noqa: E402

# Classes that a trainer brings.
BROUGHT = {
    "BooguImageTransformer2DModel": "simpletuner.helpers.models.boogu_image.transformer",
    "MageFlowTransformer2DModel": "simpletuner.helpers.models.mageflow.transformer",
    "LongCatVideoTransformer3DModel": "simpletuner.helpers.models.longcat_video.transformer",
}
BATCH = {"Cosmos3OmniTransformer": 1}
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


class FusedRmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        _ = x.contiguous()
        figures = x.new_empty(*x.shape[:-1], 1, dtype=torch.float32)
        ctx.save_for_backward(x, weight, figures)
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, _ = ctx.saved_tensors
        _ = x.contiguous(), gradient.contiguous()
        of_input = torch.empty_like(x, memory_format=torch.contiguous_format) if ctx.needs_input_grad[0] else None
        return of_input, torch.empty_like(weight) if ctx.needs_input_grad[1] else None


def fuse_norms() -> None:
    def rms_norm(x: torch.Tensor, shape: Any, weight: torch.Tensor | None = None, eps: float | None = None) -> torch.Tensor:
        return FusedRmsNorm.apply(x, weight)

    torch.nn.functional.rms_norm = rms_norm


def build(config: dict[str, Any]) -> torch.nn.Module:
    fields = {name: value for name, value in config.items() if not name.startswith("_")}
    name = config["_class_name"]
    if name in BROUGHT:
        return getattr(importlib.import_module(BROUGHT[name]), name)(**fields)
    guided = GUIDED.get(name)
    return guided(fields) if guided else getattr(diffusers, name)(**fields)


def program(golden: dict[str, Any], precision: str, checkpointing: bool, batch: int, lora: str) -> Callable[[], None]:
    """The training loop of diffusers' examples: the prediction keeps its name until the next step."""
    dtype = PRECISIONS[precision]
    model = build(golden["config"]).to("cuda", dtype)
    if lora:
        run = {"lora_targets": lora, "lora_dtype": "fp32", "lora": 8, "lora_dropout": 0.0, "quantize": "none"}
        adapt(model, run, dtype, dtype)
    if checkpointing:
        # diffusers' own function takes no arguments by name, by which HunyuanImage's blocks are called.
        named = golden["config"]["_class_name"] == "HunyuanImageTransformer2DModel"
        again = functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)
        model.enable_gradient_checkpointing(*[again] if named else [])
    model.train()
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4)
    prediction = None

    def step() -> None:
        nonlocal prediction
        inputs = INPUTS[golden["config"]["_class_name"]](golden, batch, dtype)
        optimizer.zero_grad()
        outputs = model(**inputs, return_dict=False)
        while not torch.is_tensor(outputs[0]):  # Cosmos3OmniTransformer: a list of each kind of sample
            outputs = outputs[0]
        outputs = (outputs,) if torch.is_tensor(outputs) else outputs
        sounds = "audio_hidden_states" in inputs
        prediction = torch.cat([each.flatten(1) for each in outputs], 1) if sounds else outputs[0]
        if golden["config"]["_class_name"] == "DiTTransformer2DModel":  # the other half is a variance
            prediction = prediction.chunk(2, dim=1)[0]
        target = torch.zeros_like(prediction)
        loss = torch.nn.functional.mse_loss(prediction.float(), target.float())
        loss.backward()
        optimizer.step()

    return step


def measure(golden: dict[str, Any], precision: str, checkpointing: bool, batch: int, lora: str) -> dict[str, Any]:
    with recording() as recorder:
        step = program(golden, precision, checkpointing, batch, lora)
        for _ in range(2):
            recorder.steps.next_step()
            step()
    return {
        "precision": precision,
        "activation_checkpointing": checkpointing,
        "batch_size": batch,
        "lora_targets": lora,
        "peak_bytes": live_peak(recorder.run),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    fuse_norms()
    configs = CONFIGS | MORE
    for name in sys.argv[1:] or configs:
        golden = dict(configs[name])
        with torch.device("meta"):
            golden["parameters"] = sum(each.numel() for each in build(golden["config"]).parameters())
        golden["runs"] = [
            measure(golden, precision, checkpointing, BATCH.get(golden["config"]["_class_name"], 2), lora)
            for precision in PRECISIONS
            for checkpointing in (False, True)
            for lora in dict.fromkeys(("", golden["lora_targets"]))
        ]
        (HERE / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(name, golden["parameters"], [run["peak_bytes"] >> 20 for run in golden["runs"]], flush=True)


if __name__ == "__main__":
    main()
