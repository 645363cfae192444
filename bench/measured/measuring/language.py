"""Language models by their published sizes, as people fine-tune them: whole or with LoRA, in three precisions, with and
without checkpointing, padding and the fused kernels of attention. Needs no PyTorch until a model is built.

The summary of such a job is the config.json that the model is built from.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import random
from typing import Any

Spec = dict[str, Any]

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


@dataclasses.dataclass(frozen=True)
class LanguageModel:
    """billions: parameters, roughly, for the work of a step."""

    config: str
    model: str
    billions: float
    longest: int
    fields: Spec


def _llama(config: str, billions: float, sizes: tuple[int, int, int, int, int, int], **more: Any) -> LanguageModel:
    """sizes: width, layers, heads, heads of keys, width of the feed-forward, words."""
    names = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
    )
    fields = {**dict(zip(names, sizes)), "max_position_embeddings": 4096, "tie_word_embeddings": False, **more}
    return LanguageModel(config + "Config", config + "ForCausalLM", billions, 4096, fields)


def _gpt2(billions: float, width: int, layers: int, heads: int) -> LanguageModel:
    fields = {"n_embd": width, "n_layer": layers, "n_head": heads, "vocab_size": 50257, "n_positions": 1024}
    return LanguageModel("GPT2Config", "GPT2LMHeadModel", billions, 1024, fields)


def _neox(billions: float, width: int, layers: int, heads: int) -> LanguageModel:
    fields = {
        "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 4 * width,
        "vocab_size": 50304, "max_position_embeddings": 2048,
    }  # fmt: skip
    return LanguageModel("GPTNeoXConfig", "GPTNeoXForCausalLM", billions, 2048, fields)


_OPT = {
    "hidden_size": 2048, "word_embed_proj_dim": 2048, "num_hidden_layers": 24, "num_attention_heads": 32,
    "ffn_dim": 8192, "vocab_size": 50272, "max_position_embeddings": 2048,
}  # fmt: skip
_BLOOM = {"hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880}
TIED = {"tie_word_embeddings": True}
MODELS: dict[str, LanguageModel] = {
    "gpt2": _gpt2(0.12, 768, 12, 12),
    "gpt2-medium": _gpt2(0.35, 1024, 24, 16),
    "gpt2-xl": _gpt2(1.56, 1600, 48, 25),
    "pythia-410m": _neox(0.41, 1024, 24, 16),
    "pythia-1.4b": _neox(1.41, 2048, 24, 16),
    "opt-1.3b": LanguageModel("OPTConfig", "OPTForCausalLM", 1.3, 2048, _OPT),
    "bloom-560m": LanguageModel("BloomConfig", "BloomForCausalLM", 0.56, 2048, _BLOOM),
    "SmolLM2-360M": _llama("Llama", 0.36, (960, 32, 15, 5, 2560, 49152), **TIED),
    "SmolLM2-1.7B": _llama("Llama", 1.7, (2048, 24, 32, 32, 8192, 49152), **TIED),
    "TinyLlama-1.1B": _llama("Llama", 1.1, (2048, 22, 32, 4, 5632, 32000)),
    "Llama-3.2-1B": _llama("Llama", 1.24, (2048, 16, 32, 8, 8192, 128256), **TIED),
    "Llama-3.2-3B": _llama("Llama", 3.2, (3072, 28, 24, 8, 8192, 128256), **TIED),
    "Llama-3.1-8B": _llama("Llama", 8.0, (4096, 32, 32, 8, 14336, 128256)),
    "Mistral-7B-v0.3": _llama("Mistral", 7.2, (4096, 32, 32, 8, 14336, 32768), sliding_window=None),
    "Qwen2.5-0.5B": _llama("Qwen2", 0.49, (896, 24, 14, 2, 4864, 151936), **TIED),
    "Qwen2.5-1.5B": _llama("Qwen2", 1.54, (1536, 28, 12, 2, 8960, 151936), **TIED),
    "Qwen2.5-3B": _llama("Qwen2", 3.1, (2048, 36, 16, 2, 11008, 151936), **TIED),
    "Qwen2.5-7B": _llama("Qwen2", 7.6, (3584, 28, 28, 4, 18944, 152064)),
    "Qwen3-0.6B": _llama("Qwen3", 0.6, (1024, 28, 16, 8, 3072, 151936), head_dim=128, **TIED),
    "Qwen3-1.7B": _llama("Qwen3", 1.7, (2048, 28, 16, 8, 6144, 151936), head_dim=128, **TIED),
    "Qwen3-4B": _llama("Qwen3", 4.0, (2560, 36, 32, 8, 9728, 151936), head_dim=128, **TIED),
    "gemma-2-2b": _llama("Gemma2", 2.6, (2304, 26, 8, 4, 9216, 256000), head_dim=256, **TIED),
    "OLMo-2-1B": _llama("Olmo2", 1.5, (2048, 16, 16, 16, 8192, 100352)),
    "Phi-3.5-mini": _llama("Phi3", 3.8, (3072, 32, 32, 32, 8192, 32064), pad_token_id=32000),
    "granite-3.3-2b": _llama("Granite", 2.5, (2048, 40, 32, 8, 8192, 49159), **TIED),
    "stablelm-2-1.6b": _llama("StableLm", 1.6, (2048, 24, 32, 32, 5632, 100352), use_qkv_bias=True),
    "OLMoE-1B-7B": _llama(
        "Olmoe", 6.9, (2048, 16, 16, 16, 1024, 50304), num_experts=64, num_experts_per_tok=8
    ),
}


# ------------------------------------------------------------------------------------------------ draws


def draw_language_model(draw: random.Random) -> tuple[Spec, int]:
    """Half of the models with LoRA; a batch that a step can compute."""
    while True:
        name = draw.choice(tuple(MODELS))
        model = MODELS[name]
        sequence = draw.choice((256, 512, 1024, 2048, 4096))
        batch = round(math.exp(draw.uniform(0.0, math.log(32))))
        spec: Spec = {
            "name": name,
            "sequence": sequence,
            "attention": draw.choice(("sdpa", "sdpa", "sdpa", "eager")) if name != "bloom-560m" else "eager",
            "padding": draw.random() < 0.3,
            "lora": draw.choice(LORA_RANKS) if draw.random() < 0.5 else 0,
        }
        if spec["lora"]:
            own = model.config.removesuffix("Config") in PEFT_KNOWS
            spec["targets"] = draw.choice(("", "all-linear")) if own else "all-linear"
            spec["dropout"] = draw.choice((0.0, 0.0, 0.05))
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


RULES = ("4.45", "4.48", "4.51", "4.52", "4.56", "5.0")
"""Releases of transformers from which a causal model is computed otherwise: gpumem's option."""


def release_rule(version: str | None) -> str:
    """The last of these that is no later than the version; empty: not known."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")[:2]]

    earlier = [rule for rule in RULES if version and numbers(rule) <= numbers(version)]
    return earlier[-1] if earlier else ""


# ------------------------------------------------------------------------------------------------ models


def fields_of(spec: Spec) -> Spec:
    """The fields of the model's config.json that say its sizes."""
    fields = dict(MODELS[spec["name"]].fields)
    if spec.get("small"):
        sizes = {
            "hidden_size": 64, "word_embed_proj_dim": 64, "n_embd": 64, "num_hidden_layers": 2, "n_layer": 2,
            "num_attention_heads": 4, "n_head": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 64,
            "ffn_dim": 64, "vocab_size": 128, "pad_token_id": 0, "num_experts": 4, "num_experts_per_tok": 2,
        }  # fmt: skip
        fields = {name: sizes.get(name, value) for name, value in fields.items()}
    return fields


def config_json(spec: Spec) -> str:
    """config.json as transformers writes it: the fields above, the class and the type. Raises AttributeError where
    the class is not there."""
    transformers = importlib.import_module("transformers")
    model = MODELS[spec["name"]]
    about = {
        "architectures": [model.model],
        "model_type": getattr(transformers, model.config).model_type,
        "use_cache": False,  # as the module is built: nothing but the loss and the logits is returned
    }
    return json.dumps({**about, **fields_of(spec)}, indent=1) + "\n"


def module_of(spec: Spec, transformers: Any) -> Any:
    """The module, with its adapters; dropout and attention as the spec says."""
    model = MODELS[spec["name"]]
    config = getattr(transformers, model.config)(
        **fields_of(spec), use_cache=False, attn_implementation=spec["attention"]
    )
    module = getattr(transformers, model.model)(config)
    if not spec["lora"]:
        return module
    peft = importlib.import_module("peft")
    adapters = peft.LoraConfig(
        r=spec["lora"], target_modules=spec["targets"] or None, lora_dropout=spec["dropout"], task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(module, adapters)
