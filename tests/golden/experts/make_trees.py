"""Writes trees.json.gz next to this file: what print(model) shows of models of transformers 5 whose experts are one tensor each.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/experts/make_trees.py

It needs PyTorch, transformers (5.17.0 made these) and no GPU. Each entry has the tree, and how many parameters the model
has. The models are made on the meta device, with the sizes of published ones.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
#: What differs from the defaults of the model type's config.
SIZES: dict[str, dict[str, Any]] = {
    "mixtral": {},
    "qwen2_moe": {},
    "qwen3_moe": {
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "moe_intermediate_size": 768,
    },
    "olmoe": {"intermediate_size": 1024},
    "phimoe": {},
    "glm4_moe": {"num_attention_heads": 96, "head_dim": 128},
    "ernie4_5_moe": {},
    "dots1": {
        "hidden_size": 4096,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "n_routed_experts": 128,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408,
        "intermediate_size": 10944,
        "first_k_dense_replace": 1,
    },
    "minimax_m2": {},
    "gpt_oss": {},
    "deepseek_v3": {},
    "deepseek_v32": {},
    "glm4_moe_lite": {},
    "qwen3_next": {},
    "jamba": {},
    "granitemoe": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "intermediate_size": 512,
        "num_local_experts": 32,
        "num_experts_per_tok": 8,
        "vocab_size": 49155,
        "tie_word_embeddings": True,
    },
}


def model_of(model_type: str) -> torch.nn.Module:
    config = transformers.AutoConfig.for_model(model_type, **SIZES[model_type])
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def main() -> None:
    trees = {}
    for model_type in SIZES:
        model = model_of(model_type)
        trees[model_type] = {"parameters": sum(each.numel() for each in model.parameters()), "tree": str(model)}
        print(model_type, trees[model_type]["parameters"], flush=True)
    (HERE / "trees.json.gz").write_bytes(gzip.compress(json.dumps(trees, indent=1).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
