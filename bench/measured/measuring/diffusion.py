"""Denoisers of images and videos by their published sizes, as diffusers' example scripts train them: whole or with LoRA,
latents, timesteps and the prompts' embeddings made beforehand. Needs no PyTorch until a model is built.

The summary of such a job is the config.json that the model is built from: diffusers' class, and the fields in which the
published model differs from its defaults. A name that ends in "-cut" has the published widths and fewer blocks.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
from typing import Any, Callable

Spec = dict[str, Any]

LORA_RANKS = (4, 8, 16, 32, 64)
LORA_TARGETS = ("to_k", "to_q", "to_v", "to_out.0")
"""Of examples/text_to_image/train_text_to_image_lora.py and its like."""

MOST_WORK = {"fp32": 3e13}
"""Floating-point operations of one step; without TF32 a GPU is several times slower."""
MOST_WORK_IN_HALF = 2e14

MOST_STATES = 6e10
"""Bytes of weights, gradients and the optimizer's states."""

SIZES = ((256, 256), (512, 512), (512, 512), (768, 512), (512, 768), (768, 768), (1024, 768), (1024, 1024))
"""Width and height of images, in pixels."""
VIDEO_SIZES = ((256, 256), (480, 288), (512, 320), (640, 384), (832, 480))


@dataclasses.dataclass(frozen=True)
class Sample:
    """Of a batch of so many; pixels, frames, tokens of the prompt."""

    batch: int
    width: int
    height: int
    frames: int
    text: int


# ------------------------------------------------------------------------------------------------ batches

# `make` draws tensors (zoo.Maker), `config` is the built model's, with all defaults. Each gives what forward() is called
# with, and the shape of what it predicts.
Inputs = tuple[Spec, tuple[int, ...]]


def latents(sample: Sample, config: Any, side: int = 8) -> tuple[int, ...]:
    """The shape of a batch's; side: pixels that make one."""
    return sample.batch, config["in_channels"], sample.height // side, sample.width // side


def unet(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = latents(sample, config)
    inputs = {
        "sample": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["cross_attention_dim"]),
    }
    if config["addition_embed_type"] == "text_time":
        pooled = config["projection_class_embeddings_input_dim"] - 6 * config["addition_time_embed_dim"]
        inputs["added_cond_kwargs"] = {
            "text_embeds": make.numbers(sample.batch, pooled),
            "time_ids": make.numbers(sample.batch, 6),
        }
    return inputs, shape


def flux(make: Any, sample: Sample, config: Any) -> Inputs:
    """FLUX.1, FLUX.2 and Chroma: pixels of latents come as tokens, four as one."""
    tokens, axes = sample.width // 16 * (sample.height // 16), len(config["axes_dims_rope"])
    shape = (sample.batch, tokens, config["in_channels"])
    inputs = {
        "hidden_states": make.numbers(*shape),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["joint_attention_dim"]),
        "timestep": make.shares(sample.batch),
        "img_ids": make.numbers(tokens, axes),
        "txt_ids": make.numbers(sample.text, axes),
    }
    if config.get("guidance_embeds"):
        inputs["guidance"] = make.shares(sample.batch)
    if axes == 3 and config.get("pooled_projection_dim"):
        inputs["pooled_projections"] = make.numbers(sample.batch, config["pooled_projection_dim"])
    return inputs, shape


def sd3(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = latents(sample, config)
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["joint_attention_dim"]),
        "pooled_projections": make.numbers(sample.batch, config["pooled_projection_dim"]),
    }, shape


def qwen_image(make: Any, sample: Sample, config: Any) -> Inputs:
    rows, columns = sample.height // 16, sample.width // 16
    shape = (sample.batch, rows * columns, config["in_channels"])
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.shares(sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["joint_attention_dim"]),
        "img_shapes": [[(1, rows, columns)]] * sample.batch,
    }, shape


def auraflow(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = latents(sample, config)
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.shares(sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["joint_attention_dim"]),
    }, shape


def of_captions(make: Any, sample: Sample, config: Any, side: int) -> Inputs:
    """PixArt and Sana: with a mask of the prompt's padding."""
    shape = latents(sample, config, side)
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["caption_channels"]),
        "encoder_attention_mask": make.ones(sample.batch, sample.text),
    }, shape


def pixart(make: Any, sample: Sample, config: Any) -> Inputs:
    inputs, shape = of_captions(make, sample, config, 8)
    return {**inputs, "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}, shape


def sana(make: Any, sample: Sample, config: Any) -> Inputs:
    return of_captions(make, sample, config, 32)


def cogview4(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = latents(sample, config)
    sizes = {name: make.numbers(sample.batch, 2) for name in ("original_size", "target_size", "crop_coords")}
    return {
        "hidden_states": make.numbers(*shape),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["text_embed_dim"]),
        "timestep": make.whole(1000, sample.batch),
        **sizes,
    }, shape


def frames_of(frames: int, each: int = 4) -> int:
    """Of latents: the first frame is one by itself."""
    return (frames - 1) // each + 1


def wan(make: Any, sample: Sample, config: Any) -> Inputs:
    side = 16 if config["in_channels"] == 48 else 8
    shape = (sample.batch, config["in_channels"], frames_of(sample.frames), sample.height // side, sample.width // side)
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["text_dim"]),
    }, shape


def cogvideox(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = (sample.batch, frames_of(sample.frames), config["in_channels"], sample.height // 8, sample.width // 8)
    inputs = {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["text_embed_dim"]),
    }
    if config["use_rotary_positional_embeddings"]:
        tokens = shape[1] * (shape[3] // 2) * (shape[4] // 2)
        inputs["image_rotary_emb"] = tuple(make.numbers(tokens, config["attention_head_dim"], single=True) for _ in "cs")
    return inputs, shape


def hunyuan_video(make: Any, sample: Sample, config: Any) -> Inputs:
    shape = (sample.batch, config["in_channels"], frames_of(sample.frames), sample.height // 8, sample.width // 8)
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["text_embed_dim"]),
        "encoder_attention_mask": make.whole(1, sample.batch, sample.text) + 1,
        "pooled_projections": make.numbers(sample.batch, config["pooled_projection_dim"]),
        "guidance": make.shares(sample.batch),
    }, shape


def ltx(make: Any, sample: Sample, config: Any) -> Inputs:
    frames, rows, columns = frames_of(sample.frames, 8), sample.height // 32, sample.width // 32
    shape = (sample.batch, frames * rows * columns, config["in_channels"])
    return {
        "hidden_states": make.numbers(*shape),
        "timestep": make.whole(1000, sample.batch),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["caption_channels"]),
        "encoder_attention_mask": make.ones(sample.batch, sample.text),
        "num_frames": frames,
        "height": rows,
        "width": columns,
    }, shape


def kandinsky5(make: Any, sample: Sample, config: Any) -> Inputs:
    frames, rows, columns = frames_of(sample.frames), sample.height // 8, sample.width // 8
    shape = (sample.batch, frames, rows, columns, config["in_visual_dim"])
    # Where it is told a first frame, that comes as further channels, with one that says which are told.
    channels = 2 * config["in_visual_dim"] + 1 if config["visual_cond"] else config["in_visual_dim"]
    return {
        "hidden_states": make.numbers(*shape[:-1], channels),
        "encoder_hidden_states": make.numbers(sample.batch, sample.text, config["in_text_dim"]),
        "timestep": make.numbers(sample.batch),
        "pooled_projections": make.numbers(sample.batch, config["in_text_dim2"]),
        "visual_rope_pos": [make.places(size) for size in (frames, rows // 2, columns // 2)],
        "text_rope_pos": make.places(sample.text),
    }, shape


# ------------------------------------------------------------------------------------------------ models


@dataclasses.dataclass(frozen=True)
class Denoiser:
    """states: billions of parameters; billions: those that see each token, of a UNet, for the work of a step; token: pixels of
    a side that make one; frame: frames that make one, of videos; texts: tokens of a prompt that are drawn."""

    kind: str
    batch: Callable[[Any, Sample, Any], Inputs]
    states: float
    fields: Spec
    token: int = 16
    texts: tuple[int, ...] = (512,)
    frame: int = 0
    frames: tuple[int, ...] = (1,)
    least: int = 0
    """Pixels of an image at least."""
    billions: float = 0.0
    targets: tuple[str, ...] = LORA_TARGETS


_XL = {
    "addition_embed_type": "text_time", "addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20],
    "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10],
    "use_linear_projection": True, "sample_size": 128,
}  # fmt: skip
_PIXART = {
    "activation_fn": "gelu-approximate", "attention_bias": True, "attention_head_dim": 72, "caption_channels": 4096,
    "cross_attention_dim": 1152, "in_channels": 4, "interpolation_scale": 2, "norm_elementwise_affine": False,
    "norm_eps": 1e-06, "norm_type": "ada_norm_single", "num_attention_heads": 16, "num_embeds_ada_norm": 1000,
    "num_layers": 28, "out_channels": 8, "patch_size": 2, "sample_size": 128, "use_additional_conditions": False,
}  # fmt: skip
_SD3 = {"num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536}
_KLEIN = {
    "num_layers": 5, "num_single_layers": 20, "num_attention_heads": 24, "joint_attention_dim": 7680,
    "guidance_embeds": False,
}  # fmt: skip
_WAN = {"num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960}
_WAN_5B = {"num_attention_heads": 24, "num_layers": 10, "ffn_dim": 14336, "in_channels": 48, "out_channels": 48}
_KANDINSKY = {
    "in_visual_dim": 16, "in_text_dim": 3584, "in_text_dim2": 768, "time_dim": 512, "out_visual_dim": 16,
    "patch_size": [1, 2, 2], "model_dim": 1792, "ff_dim": 7168, "num_text_blocks": 2, "num_visual_blocks": 32,
    "axes_dims": [16, 24, 24], "visual_cond": True,
}  # fmt: skip
_UNET = "UNet2DConditionModel"
_FRAMES = (9, 17, 33, 49)
# Sources: diffusers 0.40, scripts/convert_*.py and the defaults of its classes; the config files of the models.
MODELS: dict[str, Denoiser] = {
    "stable-diffusion-v1-5": Denoiser(
        _UNET, unet, 0.86, {"cross_attention_dim": 768, "attention_head_dim": 8, "sample_size": 64}, 8, (77,), billions=0.1
    ),
    "FLUX.1-dev-cut": Denoiser(
        "FluxTransformer2DModel", flux, 4.0, {"guidance_embeds": True, "num_layers": 6, "num_single_layers": 12},
        texts=(256, 512),
    ),
    "Wan2.1-T2V-1.3B": Denoiser("WanTransformer3DModel", wan, 1.42, _WAN, frame=4, frames=_FRAMES),
    "stable-diffusion-3-medium": Denoiser(
        "SD3Transformer2DModel", sd3, 2.03, {**_SD3, "pos_embed_max_size": 192}, texts=(154, 333)
    ),
    "FLUX.2-klein-4B": Denoiser("Flux2Transformer2DModel", flux, 3.88, _KLEIN),
    "stable-diffusion-xl-base-1.0": Denoiser(_UNET, unet, 2.57, _XL, 8, (77,), billions=0.18),
    "Qwen-Image-cut": Denoiser(
        "QwenImageTransformer2DModel", qwen_image, 3.5, {"num_layers": 10}, texts=(128, 256, 512, 1024)
    ),
    "CogVideoX-2b": Denoiser(
        "CogVideoXTransformer3DModel", cogvideox, 1.69, {"num_layers": 30}, texts=(226,), frame=4, frames=_FRAMES
    ),
    "PixArt-Sigma-XL-2-1024": Denoiser("PixArtTransformer2DModel", pixart, 0.61, _PIXART, texts=(120, 300)),
    "LTX-Video": Denoiser(
        "LTXVideoTransformer3DModel", ltx, 1.92, {"num_layers": 28}, 32, (128, 256), frame=8, frames=(25, 49, 97, 121)
    ),
    "Sana-1600M-1024": Denoiser("SanaTransformer2DModel", sana, 1.6, {"num_layers": 20}, 32, (300,), least=512),
    "stable-diffusion-3.5-medium": Denoiser(
        "SD3Transformer2DModel", sd3, 2.24,
        {**_SD3, "pos_embed_max_size": 384, "qk_norm": "rms_norm", "dual_attention_layers": list(range(13))},
        texts=(154, 333),
    ),
    "HunyuanVideo-cut": Denoiser(
        "HunyuanVideoTransformer3DModel", hunyuan_video, 3.4, {"num_layers": 5, "num_single_layers": 10}, texts=(256,),
        frame=4, frames=_FRAMES,
    ),
    "stable-diffusion-2-1": Denoiser(
        _UNET, unet, 0.87,
        {"cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], "use_linear_projection": True,
         "sample_size": 96}, 8, (77,), billions=0.1,
    ),
    "Wan2.2-TI2V-5B-cut": Denoiser("WanTransformer3DModel", wan, 1.8, _WAN_5B, 32, frame=4, frames=_FRAMES),
    "AuraFlow-v0.3-cut": Denoiser(
        "AuraFlowTransformer2DModel", auraflow, 2.6,
        {"pos_embed_max_size": 9216, "num_mmdit_layers": 2, "num_single_dit_layers": 10}, texts=(256,),
    ),
    "Chroma1-cut": Denoiser(
        "ChromaTransformer2DModel", flux, 2.9, {"num_layers": 6, "num_single_layers": 12}, texts=(256, 512)
    ),
    "CogView4-6B-cut": Denoiser(
        "CogView4Transformer2DModel", cogview4, 2.4,
        {"num_layers": 10, "num_attention_heads": 32, "attention_head_dim": 128}, texts=(224,),
    ),
    "Kandinsky-5.0-T2V-Lite": Denoiser(
        "Kandinsky5Transformer3DModel", kandinsky5, 2.0, _KANDINSKY, texts=(256, 512), frame=4, frames=_FRAMES,
        targets=("to_query", "to_key", "to_value"),
    ),
    "CogVideoX-5b-cut": Denoiser(
        "CogVideoXTransformer3DModel", cogvideox, 2.2,
        {"num_attention_heads": 48, "num_layers": 14, "use_rotary_positional_embeddings": True}, texts=(226,), frame=4,
        frames=_FRAMES,
    ),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ draws


def tokens_of(model: Denoiser, width: int, height: int, frames: int) -> int:
    latent = frames_of(frames, model.frame) if model.frame else 1
    return latent * (width // model.token) * (height // model.token)


def step_work(model: Denoiser, spec: Spec, batch: int) -> float:
    """Floating-point operations, roughly: two a parameter and token, and those of attention, whose share is taken from
    a transformer of 3072 and the parameters' depth; three times for forward and backward."""
    tokens = tokens_of(model, *spec["image"], spec["frames"])
    seen = tokens + (spec["text"] if not model.billions else 0)
    billions = model.billions or model.states
    forward = 2e9 * billions * seen + (0.0 if model.billions else 4 * seen**2 * 1e9 * billions / (12 * 2048))
    return batch * forward * (4 if spec["checkpointing"] else 3)


def states_of(spec: Spec) -> float:
    """Bytes of weights, gradients and states."""
    each = 2 if spec["lora"] else 8 if spec["precision"] == "bf16" else 16
    return 1e9 * MODELS[spec["name"]].states * each


def draw_denoiser(draw: random.Random, name: str) -> tuple[Spec, int]:
    """Half of the jobs with LoRA; a batch that a step can compute."""
    model = MODELS[name]
    while True:
        lora = draw.choice(LORA_RANKS) if draw.random() < 0.5 else 0
        spec: Spec = {
            "name": name,
            "image": draw.choice(VIDEO_SIZES if model.frame else SIZES),
            "frames": draw.choice(model.frames),
            "text": draw.choice(model.texts),
            "lora": lora,
            "precision": draw.choice(("amp-bf16", "bf16") if lora else ("bf16", "bf16", "amp-bf16", "fp32")),
            "checkpointing": draw.random() < 0.4,
        }
        batch = round(math.exp(draw.uniform(0.0, math.log(8))))
        most = MOST_WORK.get(spec["precision"], MOST_WORK_IN_HALF)
        fits = states_of(spec) <= MOST_STATES and min(spec["image"]) >= model.least
        if fits and step_work(model, spec, batch) <= most:
            return {**spec, "image": list(spec["image"])}, batch


def draw_training(draw: random.Random, spec: Spec) -> Spec:
    return {
        "optimizer": "adamw",
        "fused": draw.random() < 0.2,
        "precision": spec["precision"],
        "accumulation": 1,
        "checkpointing": spec["checkpointing"],
        "loss": "mse",
    }


def small(spec: Spec) -> Spec:
    """The job for a CPU without figures."""
    model = MODELS[spec["name"]]
    side = 16 * model.token
    return {**spec, "small": True, "image": [max(side, 128), side], "frames": 9, "text": 226 if model.texts == (226,) else 16}


def cells(spec: Spec) -> Spec:
    """The columns of RUNS.csv."""
    lora, model = spec["lora"], MODELS[spec["name"]]
    return {
        "input": "",
        "seq_length": spec["text"],
        "image": "x".join(map(str, spec["image"])),
        "frames": spec["frames"] if model.frame else "",
        "lora": lora or "",
        "lora_targets": "+".join(model.targets) if lora else "",
        "base_dtype": "bf16" if lora else "",
    }


# ------------------------------------------------------------------------------------------------ the model


def fields_of(spec: Spec) -> Spec:
    fields = dict(MODELS[spec["name"]].fields)
    return {**fields, **_small_fields(spec["name"])} if spec.get("small") else fields


def _small_fields(name: str) -> Spec:
    """Of a model of the same class, with few and narrow blocks."""
    model = MODELS[name]
    if model.kind == _UNET:
        heads = {"attention_head_dim": [2] * len(model.fields.get("block_out_channels", "four"))}
        width = {"block_out_channels": [32, 64, 64, 64][: len(heads["attention_head_dim"])], "cross_attention_dim": 32}
        return {**heads, **width, "layers_per_block": 1, "transformer_layers_per_block": 1}
    layers = {
        key: 2
        for key in ("num_layers", "num_single_layers", "num_mmdit_layers", "num_single_dit_layers", "num_visual_blocks")
        if key in model.fields
    }
    heads = {"num_attention_heads": 2}
    return layers | {
        "PixArtTransformer2DModel": {**heads, "cross_attention_dim": 144, "caption_channels": 32},
        "SD3Transformer2DModel": {**heads, "caption_projection_dim": 128, "pos_embed_max_size": 32,
                                  **({"dual_attention_layers": [0]} if "qk_norm" in model.fields else {})},
        "SanaTransformer2DModel": {"num_attention_heads": 4, "num_cross_attention_heads": 2,
                                   "cross_attention_head_dim": 64, "cross_attention_dim": 128, "caption_channels": 32},
        "LTXVideoTransformer3DModel": {**heads, "cross_attention_dim": 128, "caption_channels": 32},
        "AuraFlowTransformer2DModel": {**heads, "caption_projection_dim": 512, "pos_embed_max_size": 1024},
        "Kandinsky5Transformer3DModel": {"model_dim": 128, "ff_dim": 64, "in_text_dim": 32, "time_dim": 64},
        "WanTransformer3DModel": {**heads, "ffn_dim": 64, "text_dim": 32},
        "ChromaTransformer2DModel": {**heads, "approximator_hidden_dim": 64},
    }.get(model.kind, heads)  # fmt: skip


def config_json(spec: Spec) -> str:
    return json.dumps({"_class_name": MODELS[spec["name"]].kind, **fields_of(spec)}, indent=1) + "\n"


def sample_of(spec: Spec, batch: int) -> Sample:
    return Sample(batch, *spec["image"], spec["frames"] if MODELS[spec["name"]].frame else 1, spec["text"])
