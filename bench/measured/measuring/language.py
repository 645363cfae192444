"""Language models by their published sizes (published.py), as people fine-tune them: whole or with LoRA, in three
precisions, with and without checkpointing, padding and the fused kernels of attention. Needs no PyTorch until a model is
built.

The summary of such a job is the config.json that the model is built from.
"""

from __future__ import annotations

import importlib
import json
import math
import random
from typing import Any

from .published import EAGER, LANGUAGE, MODELS, NEWEST, NEWEST_WITHOUT_FLA, WITH_FLA, Spec

MOST_TOKENS = 32768
"""Of a step."""

MOST_LOGITS = 3e9
"""Tokens times vocabulary."""

MOST_WORK = {"fp32": 6e13}
"""Floating-point operations of one step; without TF32 a GPU is several times slower."""
MOST_WORK_IN_HALF = 3e14

LORA_RANKS = (8, 16, 32, 64)
PEFT_KNOWS = ("GPT2", "GPTNeoX", "OPT", "Bloom", "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2")
"""Classes for which every release of PEFT has a choice of layers, if none is given."""


# ------------------------------------------------------------------------------------------------ draws


def draw_language_model(draw: random.Random) -> tuple[Spec, int]:
    return draw_one_of(tuple(LANGUAGE), draw)


def draw_newest(draw: random.Random, name: str) -> tuple[Spec, int]:
    return draw_one_of((name,), draw)


def draw_one_of(names: tuple[str, ...], draw: random.Random) -> tuple[Spec, int]:
    """Half of the models with LoRA; a batch that a step can compute."""
    while True:
        name = draw.choice(names)
        model = MODELS[name]
        sequence = draw.choice((256, 512, 1024, 2048, 4096))
        batch = round(math.exp(draw.uniform(0.0, math.log(32))))
        spec: Spec = {
            "name": name,
            "sequence": sequence,
            "attention": draw.choice(("sdpa", "sdpa", "sdpa", "eager")) if name not in EAGER else "eager",
            "padding": draw.random() < 0.3,
            "lora": draw.choice(LORA_RANKS) if draw.random() < 0.5 else 0,
        }
        if spec["lora"]:
            own = model.config.removesuffix("Config") in PEFT_KNOWS
            spec["targets"] = draw.choice(("", "all-linear")) if own else "all-linear"
            # PEFT adapts fused experts too, which it refuses with dropout.
            spec["dropout"] = 0.0 if name in NEWEST else draw.choice((0.0, 0.0, 0.05))
        spec["precision"] = draw.choice(("bf16", "bf16", "bf16", "amp-bf16") if spec["lora"] else
                                        ("bf16", "bf16", "amp-bf16", "amp-bf16", "fp32"))  # fmt: skip
        tokens = batch * sequence
        work = 6e9 * model.billions * tokens
        words = model.fields["vocab_size"]
        most = MOST_WORK.get(spec["precision"], MOST_WORK_IN_HALF)
        if sequence <= model.longest and tokens <= MOST_TOKENS and tokens * words <= MOST_LOGITS and work <= most:
            return spec, batch


def draw_training(draw: random.Random, spec: Spec) -> Spec:
    """What of a job is drawn otherwise than for other families."""
    return {
        "optimizer": draw.choice(("adamw", "adamw", "adamw", "sgd")),
        "fused": False,
        "precision": spec["precision"],
        "accumulation": draw.choice((1, 1, 1, 1, 2)),
        "checkpointing": draw.random() < 0.4,
        "loss": "cross-entropy",
    } | ({"optimizer": "adamw", "fused": True} if draw.random() < 0.3 else {})


def small(spec: Spec) -> Spec:
    """The job for a CPU without figures."""
    return {**spec, "small": True, "sequence": 8}


def cells(spec: Spec) -> Spec:
    """The columns of RUNS.csv that other families leave empty."""
    lora = spec["lora"]
    return {
        "attention": spec["attention"],
        "padding": "yes" if spec["padding"] else "no",
        "lora": lora or "",
        "lora_targets": spec["targets"] if lora else "",
        "lora_dropout": spec["dropout"] if lora else "",
    }


RULES = ("4.45", "4.48", "4.51", "4.52", "4.56", "5.0", "5.5", "5.11")
"""Releases of transformers from which a causal model is computed otherwise: gpumem's option."""


def release_rule(version: str | None) -> str:
    """The last of these that is no later than the version; empty: not known."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")[:2]]

    earlier = [rule for rule in RULES if version and numbers(rule) <= numbers(version)]
    return earlier[-1] if earlier else ""


# ------------------------------------------------------------------------------------------------ models


SMALL = {
    "hidden_size": 64, "word_embed_proj_dim": 64, "n_embd": 64, "num_hidden_layers": 2, "n_layer": 2,
    "num_attention_heads": 4, "n_head": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 64,
    "ffn_dim": 64, "vocab_size": 128, "pad_token_id": 0, "num_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip

SMALL_NEWEST = {
    "hidden_size": 64, "intermediate_size": 64, "vocab_size": 128, "pad_token_id": 0, "num_attention_heads": 4,
    "num_key_value_heads": 4, "head_dim": 16, "kv_channels": 16, "rotary_dim": 16, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "prefix_dense_intermediate_size": 64, "intermediate_size_mlp": 64,
    "num_experts": 8, "n_routed_experts": 8, "num_local_experts": 8, "moe_num_experts": 8, "num_experts_per_tok": 2,
    "moe_k": 2, "top_k_experts": 2, "n_group": 1, "topk_group": 1, "q_lora_rank": 32, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "qk_head_dim": 32, "v_head_dim": 16, "index_n_heads": 2,
    "index_head_dim": 32, "o_groups": 2, "o_lora_rank": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 128, "num_global_key_value_heads": 2, "global_head_dim": 32,
}  # fmt: skip


def fields_of(spec: Spec) -> Spec:
    """The fields of the model's config.json that say its sizes."""
    fields = dict(MODELS[spec["name"]].fields)
    shrunk = spec.get("small") and spec["name"] not in NEWEST
    return {name: SMALL.get(name, value) for name, value in fields.items()} if shrunk else fields


def config_of(spec: Spec, transformers: Any) -> Any:
    """What the model is built from; the newest, whose classes have most sizes themselves, are made small by fields that
    they have. Raises AttributeError where the class is not there."""
    config = getattr(transformers, MODELS[spec["name"]].config)
    fields = fields_of(spec)
    if spec["name"] in NEWEST and spec.get("small"):
        fields |= {name: size for name, size in SMALL_NEWEST.items() if name in config().to_dict()}
    return config(**fields, use_cache=False, attn_implementation=spec["attention"])


def config_json(spec: Spec) -> str:
    """config.json: the fields above, the class and the type; of the newest, as transformers saves it. Raises
    AttributeError where the class is not there."""
    transformers = importlib.import_module("transformers")
    model = MODELS[spec["name"]]
    if spec["name"] in NEWEST:
        config = config_of(spec, transformers)
        config.architectures = [model.model]
        return config.to_json_string()
    about = {
        "architectures": [model.model],
        "model_type": getattr(transformers, model.config).model_type,
        "use_cache": False,  # as the module is built: nothing but the loss and the logits is returned
    }
    return json.dumps({**about, **fields_of(spec)}, indent=1) + "\n"


def module_of(spec: Spec, transformers: Any) -> Any:
    """The module, with its adapters; dropout and attention as the spec says."""
    model = MODELS[spec["name"]]
    module = getattr(transformers, model.model)(config_of(spec, transformers))
    if not spec["lora"]:
        return module
    peft = importlib.import_module("peft")
    adapters = peft.LoraConfig(
        r=spec["lora"], target_modules=spec["targets"] or None, lora_dropout=spec["dropout"], task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(module, adapters)
