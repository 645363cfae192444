"""Language models by their published sizes: those of LANGUAGE as they are, those of NEWEST (2025 and 2026) cut in depth
and in the number of experts, so that a step of one GPU shows every kind of their layers. Needs no PyTorch.

Sources: the models' config.json, and transformers 5.16, whose classes have many of these sizes as their defaults."""

from __future__ import annotations

import dataclasses
from typing import Any

Spec = dict[str, Any]


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
LANGUAGE: dict[str, LanguageModel] = {
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


def _newest(config: str, billions: float, longest: int, vocabulary: int, **fields: Any) -> LanguageModel:
    """billions: of what a token meets. fields: those that the class does not have by itself."""
    model = config.replace("Text", "") + "ForCausalLM"
    return LanguageModel(config + "Config", model, billions, longest, {"vocab_size": vocabulary, **fields})


# fmt: off
NEWEST: dict[str, LanguageModel] = {
    "Qwen3-30B-A3B": _newest("Qwen3Moe", 0.77, 4096, 151936, num_hidden_layers=8, head_dim=128, norm_topk_prob=True),
    "Qwen3-Next-80B-A3B": _newest(
        "Qwen3Next", 0.58, 4096, 151936, intermediate_size=5120, num_hidden_layers=4, num_experts=128,
    ),
    "Qwen3.5-0.8B": _newest(
        "Qwen3_5Text", 0.75, 4096, 248320, hidden_size=1024, intermediate_size=3584, num_hidden_layers=24,
        num_attention_heads=8, num_key_value_heads=2, tie_word_embeddings=True, linear_num_value_heads=16,
    ),
    "Qwen3.5-4B": _newest(
        "Qwen3_5Text", 1.97, 4096, 248320, hidden_size=2560, intermediate_size=9216, num_hidden_layers=12,
        tie_word_embeddings=True,
    ),
    "Qwen3.5-9B": _newest("Qwen3_5Text", 2.75, 4096, 248320, num_hidden_layers=8),
    "Qwen3.5-35B-A3B": _newest("Qwen3_5MoeText", 0.75, 4096, 248320, num_hidden_layers=4),
    "Seed-OSS-36B": _newest("SeedOss", 2.95, 4096, 155136, hidden_size=5120, num_hidden_layers=4),
    "SmolLM3-3B": _newest("SmolLM3", 1.2, 4096, 128256, num_hidden_layers=12),
    "EXAONE-4.0-1.2B": _newest(
        "Exaone4", 1.28, 2048, 102400, hidden_size=2048, intermediate_size=4096, num_hidden_layers=30,
        num_key_value_heads=8, tie_word_embeddings=True, head_dim=64,
    ),
    "MiniMax-M2.5": _newest(
        "MiniMaxM2", 1.09, 4096, 200064, num_hidden_layers=3, num_local_experts=64, rotary_dim=64,
    ),
    "Olmo-3-7B": _newest("Olmo3", 2.03, 2048, 100278, num_hidden_layers=8),
    "ERNIE-4.5-21B-A3B": _newest("Ernie4_5_Moe", 0.93, 4096, 103424, num_hidden_layers=6),
    "DeepSeek-V3.2": _newest("DeepseekV32", 3.32, 4096, 129280, num_hidden_layers=4, n_routed_experts=16),
    "DeepSeek-V4-Flash": _newest(
        "DeepseekV4", 2.28, 4096, 129280, num_hidden_layers=6, n_routed_experts=32,
        layer_types=["sliding_attention"] * 2 + ["compressed_sparse_attention",
        "heavily_compressed_attention"] * 2,
    ),
    "gemma-3-1b": _newest(
        "Gemma3Text", 1.0, 4096, 262144, hidden_size=1152, intermediate_size=6912, num_attention_heads=4,
        num_key_value_heads=1, sliding_window=512,
    ),
    "gemma-3-4b": _newest(
        "Gemma3Text", 2.37, 4096, 262208, hidden_size=2560, intermediate_size=10240, num_hidden_layers=18,
        sliding_window=1024,
    ),
    "gemma-3n-E4B": _newest(
        "Gemma3nText", 2.36, 4096, 262400, num_hidden_layers=10, activation_sparsity_pattern=[0.95] * 10,
    ),
    "gemma-4-26B-A4B": _newest(
        "Gemma4Text", 1.36, 4096, 262144, hidden_size=2816, intermediate_size=2112, num_hidden_layers=6,
        num_attention_heads=16, num_key_value_heads=8, sliding_window=1024, final_logit_softcapping=30.0,
        use_bidirectional_attention="vision", hidden_size_per_layer_input=0, attention_k_eq_v=True,
        num_global_key_value_heads=2, enable_moe_block=True, num_experts=128, top_k_experts=8,
        moe_intermediate_size=704,
    ),
    "Llama-4-Scout": _newest("Llama4Text", 2.29, 4096, 202048, num_hidden_layers=4, num_local_experts=8),
    "gpt-oss-20b": _newest("GptOss", 1.34, 4096, 201088, num_hidden_layers=6, num_local_experts=32),
    "GLM-4.5-Air": _newest(
        "Glm4Moe", 1.39, 4096, 151552, num_hidden_layers=3, attention_bias=True, n_routed_experts=64,
        head_dim=128,
    ),
    "GLM-5": _newest("GlmMoeDsa", 2.67, 4096, 154880, num_hidden_layers=4, n_routed_experts=16),
    "ministral-8b": _newest(
        "Ministral", 2.08, 4096, 131072, intermediate_size=12288, num_hidden_layers=8, head_dim=128,
    ),
    "nanochat": _newest("NanoChat", 0.22, 2048, 50304),
    "hyperclovax": _newest("HyperCLOVAX", 1.75, 2048, 32000, num_hidden_layers=8),
    "apertus-8b": _newest(
        "Apertus", 2.28, 4096, 131072, intermediate_size=21504, num_hidden_layers=8, num_key_value_heads=8,
    ),
    "lfm2-8b-a1b": _newest(
        "Lfm2Moe", 0.61, 4096, 65536, num_hidden_layers=8, layer_types=["conv", "conv", "full_attention",
        "conv"] * 2,
    ),
    "trinity-nano": _newest(
        "Afmoe", 0.34, 4096, 200192, hidden_size=1024, intermediate_size=3072, moe_intermediate_size=256,
        num_hidden_layers=12, num_dense_layers=2, num_attention_heads=8, num_key_value_heads=2,
        num_experts=128, num_experts_per_tok=8, num_shared_experts=1, sliding_window=2048,
    ),
    "k-exaone": _newest(
        "ExaoneMoe", 2.76, 2048, 153600, hidden_size=6144, intermediate_size=18432, num_hidden_layers=4,
        num_attention_heads=64, num_key_value_heads=8, moe_intermediate_size=2048, num_experts=32,
        head_dim=128,
    ),
    "laguna-xs.2": _newest("Laguna", 0.57, 4096, 100352, num_hidden_layers=6, num_experts=64),
    "cohere2-moe": _newest(
        "Cohere2Moe", 1.57, 4096, 256000, hidden_size=4096, intermediate_size=2048, num_hidden_layers=4,
        num_attention_heads=32, num_key_value_heads=8, num_experts=16, num_shared_experts=1,
        layer_types=["full_attention"] * 2 + ["sliding_attention"] * 2, mlp_layer_types=["dense"] * 2 +
        ["sparse"] * 2, prefix_dense_intermediate_size=8192,
    ),
    "olmo-hybrid-7b": _newest("OlmoHybrid", 2.05, 4096, 100352, num_hidden_layers=8),
    "hy3-preview": _newest("HYV3", 1.47, 4096, 120832, num_hidden_layers=4, num_experts=32),
    "solar-open-100b": _newest("SolarOpen", 1.67, 4096, 196608, num_hidden_layers=4, n_routed_experts=32),
    "youtu-llm-2b": _newest("Youtu", 0.9, 4096, 128256, num_hidden_layers=12),
    "minicpm3-4b": _newest("MiniCPM3", 0.94, 4096, 73448, num_hidden_layers=12),
    "diffllama": _newest("DiffLlama", 0.6, 2048, 32000, num_hidden_layers=8),
    "vaultgemma": _newest("VaultGemma", 1.52, 4096, 256000, num_hidden_layers=12),
    "granite-swash-2b": _newest("GraniteSWA", 0.89, 4096, 100352, num_hidden_layers=8),
    "jetmoe-8b": _newest("JetMoe", 1.88, 4096, 32000, num_hidden_layers=6),
    "flexolmo-7x7b": _newest("FlexOlmo", 3.38, 4096, 100352, num_hidden_layers=4),
    "mellum": _newest("Mellum", 0.79, 4096, 98304, num_hidden_layers=8),
    "bitnet-2b": _newest("BitNet", 1.02, 2048, 128256, num_hidden_layers=10),
    "mistral-small-4": _newest("Mistral4", 1.15, 4096, 131072, num_hidden_layers=4, n_routed_experts=32),
}
# fmt: on

EAGER = ("bloom-560m", "DeepSeek-V4-Flash", "gpt-oss-20b", "granite-swash-2b")
"""They have no other attention without a package."""

WITH_FLA = tuple(name for name in NEWEST if name.startswith(("Qwen3.5", "Qwen3-Next", "olmo-hybrid")))
"""Measured where flash-linear-attention is installed, as people train them; without it they keep a multiple."""
NEWEST_WITHOUT_FLA = tuple(name for name in NEWEST if name not in WITH_FLA)

MODELS = LANGUAGE | NEWEST
