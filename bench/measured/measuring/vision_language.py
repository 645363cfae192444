"""Models that read images and text, by their published sizes, as people fine-tune them: whole, with a frozen tower, or with
LoRA. Batches are as the models' processors make them: pixels of the size or the tiles that their rules say, and as many
tokens of images among those of the text. Needs no PyTorch until a model is built.

The summary of such a job is the config.json that the model is built from. A name that ends in "-cut" has the published
widths and fewer layers of text.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import random
from typing import Any, Callable

from .pictures import Picture, Spec, any_resolution, as_it_is, covered, fixed, packed, tiled

MOST_TOKENS = 16384
"""Of a step."""
MOST_WORK = 2e14
"""Floating-point operations of a step."""
MOST_BYTES = 6e10
"""Of weights, gradients, the optimizer's states and the logits."""
BYTES_OF_LOGIT = 14
"""In two bytes, in four, and the gradients of both, with a copy."""

LORA_RANKS = (4, 8, 16, 32, 64)
SIZES = ((256, 256), (336, 336), (448, 448), (512, 384), (640, 480), (480, 640), (768, 768), (1024, 768), (1280, 720))
"""Width and height of images, in pixels, before a processor resizes or cuts them."""
TEXTS = (64, 128, 256, 512, 1024)


# ------------------------------------------------------------------------------------------------ models


@dataclasses.dataclass(frozen=True)
class Reader:
    """billions: parameters of the text model; seeing: of the tower. tower: what is frozen, if it is; kinds: what tells an
    image's tokens apart, by the name that forward() has for it."""

    model: str
    picture: Callable[[Spec, int, int], Picture]
    tower: str
    billions: float
    seeing: float
    fields: Spec
    kinds: str = ""
    autocast: bool = True
    """Whether its class runs under autocast with weights in float32."""
    all_linear: bool = True
    """Whether adapters may be on all linear layers: a router that returns two tensors is none that PEFT can wrap."""


def text(kind: str, sizes: tuple[int, int, int, int, int, int], **more: Any) -> Spec:
    """sizes: width, of the feed-forward, layers, heads, heads of keys, words."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
             "vocab_size")  # fmt: skip
    return {"model_type": kind, **dict(zip(names, sizes)), "max_position_embeddings": 32768, **more}


def tower(kind: str, sizes: tuple[int, int, int, int], side: int, patch: int, **more: Any) -> Spec:
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    return {"model_type": kind, **dict(zip(names, sizes)), "image_size": side, "patch_size": patch, **more}


def _sections(sections: list[int], theta: float, **more: Any) -> Spec:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, "mrope_section": sections, **more}}


def _qwen(name: str, kind: str, billions: float, sizes: tuple, vision: Spec, tied: bool, **more: Any) -> Reader:
    fields = {
        "model_type": kind, "image_token_id": 5, "tie_word_embeddings": tied,
        "text_config": text(f"{kind}_text", sizes, **more),
        "vision_config": {**vision, "patch_size": vision.get("patch_size", 14), "spatial_merge_size": 2},
    }  # fmt: skip
    seeing = {"qwen3_vl": 0.4, "glm4v": 1.1, "paddleocr_vl": 0.41, "glm_ocr": 0.5}.get(kind, 0.67)
    return Reader(name + "ForConditionalGeneration", packed, "model.visual", billions, seeing, fields, "mm_token_type_ids")


_QWEN_2 = {**_sections([16, 24, 24], 1e6)}
_QWEN_3 = {"head_dim": 128, **_sections([24, 20, 20], 5e6, mrope_interleaved=True)}
_SEES_2 = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "temporal_patch_size": 2}
_SEES_25 = {
    "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2,
}  # fmt: skip
_SEES_3 = {
    "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "patch_size": 16,
    "temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17],
}  # fmt: skip
_SEES_GLM = {
    "depth": 24, "hidden_size": 1536, "num_heads": 12, "image_size": 336, "out_hidden_size": 4096,
    "intermediate_size": 13696, "temporal_patch_size": 2,
}  # fmt: skip
_SO400M = (1152, 4304, 27, 16)
_CLIP = tower("clip_vision_model", (1024, 4096, 24, 16), 336, 14, projection_dim=768)


def _internvl(billions: float, text_config: Spec) -> Reader:
    fields = {
        "model_type": "internvl", "image_token_id": 5, "downsample_ratio": 0.5, "image_seq_length": 256,
        "text_config": {**text_config, "tie_word_embeddings": False}, "tie_word_embeddings": False,
        "vision_config": tower("internvl_vision", (1024, 4096, 24, 16), [448, 448], [14, 14], attention_bias=True),
    }  # fmt: skip
    return Reader("InternVLForConditionalGeneration", tiled, "model.vision_tower", billions, 0.3, fields)


def _covered(kind: str, model: str, billions: float, seeing: float, scale: int, text_config: Spec, vision: Spec) -> Reader:
    fields = {
        "model_type": kind, "image_token_id": 5, "scale_factor": scale, "tie_word_embeddings": False,
        "text_config": text_config, "vision_config": vision,
    }  # fmt: skip
    autocast = kind != "smolvlm"  # its inputs_merger() needs images and text of one type
    return Reader(
        model + "ForConditionalGeneration", covered, "model.vision_model", billions, seeing, fields, autocast=autocast
    )


def _tower_of(kind: str, model: str, picture: Any, billions: float, seeing: float, text_config: Spec, vision: Spec,
              kinds: str = "", **more: Any) -> Reader:  # fmt: skip
    fields = {"model_type": kind, **more, "text_config": text_config, "vision_config": vision}
    fields.setdefault("image_token_id" if kind in _NEWER else "image_token_index", 5)
    path = "model.vision_model" if kind == "deepseek_vl" else "model.vision_tower"
    return Reader(model + "ForConditionalGeneration", picture, path, billions, seeing, fields, kinds)


_NEWER = ("cohere2_vision", "deepseek_vl")
_TILES = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
_MANY_TILES = [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)]
_PIXTRAL = {"head_dim": 64, "hidden_act": "silu"}
_MISTRAL = {"head_dim": 128, "sliding_window": None}
_GEMMA_2 = {
    "head_dim": 256, "sliding_window": 4096, "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
# Sources: the models' config files and cards; transformers 5.16, models/*/configuration_*.py.
MODELS: dict[str, Reader] = {
    "Qwen2.5-VL-3B": _qwen(
        "Qwen2_5_VL", "qwen2_5_vl", 3.1, (2048, 11008, 36, 16, 2, 151936), {**_SEES_25, "out_hidden_size": 2048}, True,
        **_QWEN_2,
    ),
    "llava-1.5-7b-cut": _tower_of(
        "llava", "Llava", fixed, 1.9, 0.3, text("llama", (4096, 11008, 8, 32, 32, 32064)), _CLIP,
        vision_feature_layer=-2, vision_feature_select_strategy="default", tie_word_embeddings=False,
    ),
    "Qwen3-VL-2B": _qwen(
        "Qwen3VL", "qwen3_vl", 1.72, (2048, 6144, 28, 16, 8, 151936), {**_SEES_3, "out_hidden_size": 2048}, True,
        **_QWEN_3,
    ),
    "InternVL3-1B": _internvl(0.63, text("qwen2", (896, 4864, 24, 14, 2, 151674))),
    "gemma-3-4b": _tower_of(
        "gemma3", "Gemma3", fixed, 3.9, 0.42,
        text("gemma3_text", (2560, 10240, 34, 8, 4, 262208), head_dim=256, sliding_window=1024),
        tower("siglip_vision_model", _SO400M, 896, 14, vision_use_head=False), "token_type_ids",
        mm_tokens_per_image=256, tie_word_embeddings=True,
    ),
    "SmolVLM2-2.2B": _covered(
        "smolvlm", "SmolVLM", 1.8, 0.42, 3, text("llama", (2048, 8192, 24, 32, 32, 49280)),
        tower("smolvlm_vision", _SO400M, 384, 14),
    ),
    "llava-v1.6-mistral-7b-cut": _tower_of(
        "llava_next", "LlavaNext", any_resolution, 2.0, 0.3, text("mistral", (4096, 14336, 8, 32, 8, 32064), **_MISTRAL),
        _CLIP, image_grid_pinpoints=_TILES, vision_feature_layer=-2, vision_feature_select_strategy="default",
        tie_word_embeddings=False,
    ),
    "paligemma2-3b-224": _tower_of(
        "paligemma", "PaliGemma", fixed, 2.6, 0.41,
        text("gemma2", (2304, 9216, 26, 8, 4, 257216), **_GEMMA_2, attn_logit_softcapping=None),
        tower("siglip_vision_model", _SO400M, 224, 14, vision_use_head=False, projection_dim=2304), "token_type_ids",
        projection_dim=2304, tie_word_embeddings=True,
    ),
    "Qwen2-VL-2B": _qwen(
        "Qwen2VL", "qwen2_vl", 1.54, (1536, 8960, 28, 12, 2, 151936), {**_SEES_2, "hidden_size": 1536}, True, **_QWEN_2
    ),
    "Mistral-Small-3.1-24B-cut": _tower_of(
        "mistral3", "Mistral3", as_it_is, 3.6, 0.4, text("mistral", (5120, 32768, 4, 32, 8, 131072), **_MISTRAL),
        tower("pixtral", (1024, 4096, 24, 16), 1540, 14, **_PIXTRAL), spatial_merge_size=2, vision_feature_layer=-1,
        multimodal_projector_bias=False, tie_word_embeddings=False,
    ),
    "SmolVLM-500M": _covered(
        "smolvlm", "SmolVLM", 0.41, 0.09, 4, text("llama", (960, 2560, 32, 15, 5, 49280), head_dim=64),
        tower("smolvlm_vision", (768, 3072, 12, 12), 512, 16),
    ),
    "llava-onevision-qwen2-0.5b": _tower_of(
        "llava_onevision", "LlavaOnevision", any_resolution, 0.5, 0.41, text("qwen2", (896, 4864, 24, 14, 2, 152000)),
        tower("siglip_vision_model", (1152, 4304, 26, 16), 384, 14, vision_use_head=False), image_token_id=5,
        image_grid_pinpoints=_MANY_TILES, vision_feature_layer=-1, vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9", tie_word_embeddings=True,
    ),
    "GLM-4.1V-9B-cut": _qwen(
        "Glm4v", "glm4v", 2.6, (4096, 13696, 8, 32, 2, 151552), _SEES_GLM, False, attention_bias=True,
        **_sections([8, 12, 12], 1e4, partial_rotary_factor=0.5),
    ),
    "Qwen3-VL-4B": _qwen(
        "Qwen3VL", "qwen3_vl", 4.0, (2560, 9728, 36, 32, 8, 151936), {**_SEES_3, "out_hidden_size": 2560}, True,
        **_QWEN_3,
    ),
    "aya-vision-8b-cut": _tower_of(
        "aya_vision", "AyaVision", tiled, 2.6, 0.42,
        text("cohere2", (4096, 14336, 6, 32, 8, 256000), head_dim=128, sliding_window=4096),
        tower("siglip_vision_model", _SO400M, 364, 14, vision_use_head=False), alignment_intermediate_size=28672,
        vision_feature_layer=-1, vision_feature_select_strategy="full", tie_word_embeddings=True,
    ),
    "pixtral-12b-cut": _tower_of(
        "llava", "Llava", as_it_is, 2.9, 0.4, text("mistral", (5120, 14336, 6, 32, 8, 131072), **_MISTRAL),
        tower("pixtral", (1024, 4096, 24, 16), 1024, 16, **_PIXTRAL), vision_feature_layer=-1,
        vision_feature_select_strategy="full", tie_word_embeddings=False,
    ),
    "InternVL3-2B": _internvl(1.78, text("qwen2", (1536, 8960, 28, 12, 2, 151674))),
    "Qwen2.5-VL-7B-cut": _qwen(
        "Qwen2_5_VL", "qwen2_5_vl", 2.95, (3584, 18944, 8, 28, 4, 152064), {**_SEES_25, "out_hidden_size": 3584}, False,
        **_QWEN_2,
    ),
    "Idefics3-8B-cut": _covered(
        "idefics3", "Idefics3", 2.4, 0.42, 2, text("llama", (4096, 14336, 6, 32, 8, 128259)),
        tower("idefics3_vision", _SO400M, 364, 14),
    ),
    "PaddleOCR-VL": _qwen(
        "PaddleOCRVL", "paddleocr_vl", 0.47, (1024, 3072, 18, 16, 2, 103424),
        {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}, False,
        head_dim=128, **_sections([16, 24, 24], 5e5),
    ),
    "GLM-OCR": _qwen(
        "GlmOcr", "glm_ocr", 0.6, (1536, 4608, 16, 16, 8, 59392),
        {"depth": 24, "hidden_size": 1024, "num_heads": 16, "intermediate_size": 4096, "out_hidden_size": 1536,
         "temporal_patch_size": 2, "image_size": 336}, False, head_dim=128,
        **_sections([16, 24, 24], 1e4, partial_rotary_factor=1.0),
    ),
    "deepseek-vl-1.3b": _tower_of(
        "deepseek_vl", "DeepseekVL", fixed, 1.65, 0.32, text("llama", (2048, 5632, 24, 16, 16, 102400)),
        tower("siglip_vision_model", (1024, 4096, 24, 16), 384, 16, vision_use_head=False), tie_word_embeddings=False,
    ),
    "Llama-4-Scout-17B-16E-cut": Reader(
        "Llama4ForConditionalGeneration", tiled, "vision_model", 6.4, 0.86,
        {
            "model_type": "llama4", "image_token_index": 5, "tie_word_embeddings": False,
            "text_config": text(
                "llama4_text", (5120, 8192, 2, 40, 8, 202048), head_dim=128, intermediate_size_mlp=16384,
                num_local_experts=16, num_experts_per_tok=1, interleave_moe_layer_step=1, attention_chunk_size=8192,
                use_qk_norm=True,
            ),
            "vision_config": tower(
                "llama4_vision_model", (1408, 5632, 34, 16), 336, 14, pixel_shuffle_ratio=0.5, vision_output_dim=4096,
                projector_input_dim=4096, projector_output_dim=4096,
            ),
        },
        all_linear=False,
    ),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ draws


def picture_of(spec: Spec) -> Picture:
    return MODELS[spec["name"]].picture(fields_of(spec), *spec["image"])


def tokens_of(spec: Spec) -> int:
    return spec["text"] + spec["images"] * picture_of(spec).tokens


def step_work(spec: Spec, batch: int) -> float:
    """Floating-point operations, roughly."""
    model, picture = MODELS[spec["name"]], picture_of(spec)
    again = 4 if spec["checkpointing"] else 3
    of_tower = 1 if spec["frozen"] else again
    reading = 2e9 * model.billions * tokens_of(spec) * again
    seeing = (2e9 * model.seeing * picture.patches + 4 * picture.patches**2 * 1e5) * of_tower * spec["images"]
    return batch * (reading + seeing)


def states_of(spec: Spec) -> float:
    model = MODELS[spec["name"]]
    each = 8 if spec["precision"] == "bf16" else 16
    return 1e9 * (model.billions * (2 if spec["lora"] else each) + model.seeing * (2 if spec["frozen"] else each))


def draw_model(draw: random.Random, name: str) -> tuple[Spec, int]:
    """Half of the jobs with LoRA; of the others most have a frozen tower; a batch that a step can compute."""
    model = MODELS[name]
    words = model.fields["text_config"]["vocab_size"]
    while True:
        lora = draw.choice(LORA_RANKS) if draw.random() < 0.5 else 0
        spec: Spec = {
            "name": name,
            "image": list(draw.choice(SIZES)),
            "images": draw.choice((1, 1, 1, 2, 3)),
            "text": draw.choice(TEXTS),
            "padding": draw.random() < 0.3,
            "lora": lora,
            "frozen": draw.random() < 0.6 and not lora,
            "precision": draw.choice(("bf16", "bf16", "amp-bf16") if lora or model.autocast else ("bf16",)),
            "checkpointing": draw.random() < 0.4,
        }
        if lora:
            targets = ("q_proj+v_proj", "q_proj+k_proj+v_proj+o_proj", "text")
            spec["targets"] = draw.choice(targets if model.all_linear else targets[:2])
        batch = round(math.exp(draw.uniform(0.0, math.log(8))))
        tokens = batch * tokens_of(spec)
        held = states_of(spec) + BYTES_OF_LOGIT * tokens * words
        if tokens <= MOST_TOKENS and held <= MOST_BYTES and step_work(spec, batch) <= MOST_WORK:
            return spec, batch


def draw_training(draw: random.Random, spec: Spec) -> Spec:
    return {
        "optimizer": "adamw",
        "fused": draw.random() < 0.2,
        "precision": spec["precision"],
        "accumulation": draw.choice((1, 1, 1, 1, 2)),
        "checkpointing": spec["checkpointing"],
        "loss": "cross-entropy",
    }


def small(spec: Spec) -> Spec:
    """The job for a CPU without figures."""
    return {**spec, "small": True, "image": [224, 224], "images": min(spec["images"], 2), "text": 16}


def targets_of(spec: Spec) -> str:
    """Of LoRA, as gpumem names them: "text" is all linear layers but those of the tower."""
    return f"all-linear+not:{MODELS[spec['name']].tower}" if spec["targets"] == "text" else spec["targets"]


def cells(spec: Spec) -> Spec:
    """The columns of RUNS.csv."""
    lora = spec["lora"]
    return {
        "seq_length": tokens_of(spec),
        "image": "x".join(map(str, spec["image"])),
        "images": spec["images"],
        "attention": "sdpa",
        "padding": "yes" if spec["padding"] else "no",
        "lora": lora or "",
        "lora_targets": targets_of(spec) if lora else "",
        "base_dtype": "bf16" if lora else "",
        "freeze": MODELS[spec["name"]].tower if spec["frozen"] else "",
    }


# ------------------------------------------------------------------------------------------------ the model


def fields_of(spec: Spec) -> Spec:
    """The fields of the model's config.json that say its sizes."""
    model = MODELS[spec["name"]]
    fields = model.fields
    if not spec.get("small"):
        return fields
    heads = fields["text_config"].get("head_dim", 64)
    heads = 128 if "qwen" in fields["model_type"] else heads
    text_sizes = {
        "hidden_size": 2 * heads, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 128, "intermediate_size_mlp": 64,
    }  # fmt: skip
    if fields["model_type"] == "glm4v":
        text_sizes["hidden_size"] = 256
    vision_sizes = {
        "hidden_size": 128, "embed_dim": 128, "intermediate_size": 64, "num_hidden_layers": 2, "depth": 2,
        "num_attention_heads": 2, "num_heads": 2, "deepstack_visual_indexes": [1], "fullatt_block_indexes": [1],
        "out_hidden_size": text_sizes["hidden_size"], "projection_dim": text_sizes["hidden_size"], "head_dim": 64,
        "vision_output_dim": 64, "projector_input_dim": 64, "projector_output_dim": 64,
    }  # fmt: skip
    if "mm_tokens_per_image" in fields:
        vision_sizes["image_size"] = 16 * fields["vision_config"]["patch_size"]
    if model.picture in (tiled, covered):
        patch = fields["vision_config"]["patch_size"]
        vision_sizes["image_size"] = [12 * of for of in patch] if isinstance(patch, list) else 12 * patch
    if "pixel_shuffle_ratio" in fields["vision_config"]:
        vision_sizes["intermediate_size"] = 4 * vision_sizes["hidden_size"]
    if "embed_dim" in fields["vision_config"]:
        vision_sizes["hidden_size"] = text_sizes["hidden_size"]

    def made(old: Spec, sizes: Spec) -> Spec:
        return {name: sizes.get(name, value) for name, value in old.items()}

    outer = {"projection_dim": text_sizes["hidden_size"], "alignment_intermediate_size": 64}
    parts = {
        "text_config": made(fields["text_config"], text_sizes),
        "vision_config": made(fields["vision_config"], vision_sizes),
    }
    return {**made(fields, outer), **parts}


def config_json(spec: Spec) -> str:
    fields = fields_of(spec)
    text = {**fields["text_config"], "use_cache": False}  # as the module is built
    return json.dumps({"architectures": [MODELS[spec["name"]].model], **fields, "text_config": text}, indent=1) + "\n"


def module_of(spec: Spec, transformers: Any) -> Any:
    """The module, with its adapters or a frozen tower."""
    model = MODELS[spec["name"]]
    fields = json.loads(json.dumps({key: value for key, value in fields_of(spec).items() if key != "model_type"}))
    config = transformers.AutoConfig.for_model(fields_of(spec)["model_type"], **fields)
    config.get_text_config().use_cache = False
    module = getattr(transformers, model.model)(config)
    if spec["frozen"]:
        module.get_submodule(model.tower).requires_grad_(False)
    if not spec["lora"]:
        return module
    peft = importlib.import_module("peft")
    words = spec["targets"].split("+")
    targets: Spec = {"target_modules": words}
    if words == ["text"]:
        targets = {"target_modules": "all-linear", "exclude_modules": rf".*{model.tower.replace('.', '[.]')}[.].*"}
    return peft.get_peft_model(module, peft.LoraConfig(r=spec["lora"], task_type="CAUSAL_LM", **targets))


def batch_of(make: Any, spec: Spec) -> Spec:
    """What the processor gives: each image's tokens follow one of the text; the rest of the text comes last."""
    fields, picture = fields_of(spec), picture_of(spec)
    token = fields.get("image_token_id", fields.get("image_token_index"))
    words = fields["text_config"]["vocab_size"]
    one = ([0] + [1] * picture.tokens) * spec["images"]
    kinds = make.given([one + [0] * (tokens_of(spec) - len(one))] * make.batch)
    ids = make.whole(words - 10, *kinds.shape) + 10
    ids[kinds == 1] = token
    mask = kinds * 0 + 1
    if spec["padding"]:
        mask[:, -1] = 0
    count = make.batch * spec["images"]
    shape = (count * picture.shape[0], *picture.shape[1:])
    if picture.nested and fields["model_type"] in ("idefics3", "smolvlm"):
        shape = (make.batch, spec["images"] * picture.shape[0], *picture.shape[1:])
    elif picture.nested:
        shape = (count, *picture.shape)
    inputs = {"input_ids": ids, "attention_mask": mask, "pixel_values": make.numbers(*shape)}
    if picture.more:
        inputs.update(picture.more(make, count))
    if "pixel_attention_mask" in inputs:
        inputs["pixel_attention_mask"] = inputs["pixel_attention_mask"].view(*shape[:2], *shape[-2:])
    kind = MODELS[spec["name"]].kinds
    return {**inputs, kind: kinds} if kind else inputs
