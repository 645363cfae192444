"""Small configs of each architecture, as config.json has them: few layers, so that what they keep outweighs the
optimizer's temporaries."""

from __future__ import annotations

from typing import Any

from diffusers_configs import DIFFUSERS
from vision_configs import SIZES_WITH_IMAGES, VISION

SIZES = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
GATED = {**SIZES, "intermediate_size": 704, "hidden_act": "silu"}
WIDE_HEADS = {**GATED, "num_attention_heads": 4, "head_dim": 128, "hidden_act": "gelu_pytorch_tanh"}
OPT = {
    "model_type": "opt",
    **SIZES,
    "ffn_dim": 1024,
    "activation_function": "relu",
    "max_position_embeddings": 512,
    "dropout": 0.1,
    "attention_dropout": 0.0,
}
BERT = {
    "model_type": "bert",
    **SIZES,
    "intermediate_size": 1024,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
FALCON = {
    "model_type": "falcon",
    **SIZES,
    "new_decoder_architecture": False,
    "multi_query": True,
    "parallel_attn": True,
    "alibi": False,
    "bias": False,
}
GLM = {**GATED, "num_key_value_heads": 2, "head_dim": 32, "partial_rotary_factor": 0.5}
ROUTED = {**GATED, "num_key_value_heads": 2, "head_dim": 64, "num_experts_per_tok": 2}
VIT = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 1024,
    "hidden_act": "gelu",
    "image_size": 224,
    "patch_size": 16,
}
T5 = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": 256,
    "d_kv": 32,
    "d_ff": 1024,
    "num_layers": 2,
    "num_heads": 8,
    "vocab_size": 1000,
    "dropout_rate": 0.1,
}

XLNET = {
    "model_type": "xlnet",
    "d_model": 256,
    "n_layer": 4,
    "n_head": 8,
    "d_head": 32,
    "d_inner": 1024,
    "vocab_size": 1000,
    "ff_activation": "gelu",
    "dropout": 0.1,
    "summary_last_dropout": 0.1,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **GATED, "num_key_value_heads": 2},
    "mistral": {"model_type": "mistral", **GATED, "num_key_value_heads": 8, "head_dim": 64},
    "qwen2": {"model_type": "qwen2", **GATED, "num_key_value_heads": 4, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", **GATED, "num_key_value_heads": 4, "head_dim": 64},
    "smollm3": {"model_type": "smollm3", **GATED, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "granite": {
        "model_type": "granite",
        **GATED,
        "tie_word_embeddings": True,
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.2,
        "logits_scaling": 9.0,
    },
    "seed_oss": {
        "model_type": "seed_oss",
        **GATED,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "attention_bias": True,
        "attention_out_bias": False,
        "attention_dropout": 0.1,
        "residual_dropout": 0.1,
    },
    "ernie4_5": {"model_type": "ernie4_5", **GATED, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "hunyuan_v1_dense": {"model_type": "hunyuan_v1_dense", **GATED, "num_key_value_heads": 2, "head_dim": 64},
    "gpt_oss": {**ROUTED, "model_type": "gpt_oss", "num_local_experts": 8, "intermediate_size": 256, "transformers_version": "5.5"},
    "gpt_oss_loop": {**ROUTED, "model_type": "gpt_oss", "num_local_experts": 8, "transformers_version": "4.48"},
    "minimax_m2": {**ROUTED, "model_type": "minimax_m2", "num_local_experts": 8, "intermediate_size": 256, "rotary_dim": 32},
    "minimax": {
        **ROUTED,
        "model_type": "minimax",
        "num_local_experts": 8,
        "intermediate_size": 256,
        "block_size": 256,
        "layer_types": ["linear_attention", "full_attention"] * 2,
    },
    "glm4_moe": {
        **ROUTED,
        "model_type": "glm4_moe",
        "attention_bias": True,
        "partial_rotary_factor": 0.5,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "moe_intermediate_size": 256,
        "first_k_dense_replace": 1,
    },
    "llama4_text": {
        **ROUTED,
        "model_type": "llama4_text",
        "architectures": ["Llama4ForCausalLM"],
        "num_experts_per_tok": 1,
        "num_local_experts": 4,
        "intermediate_size": 256,
        "intermediate_size_mlp": 704,
        "interleave_moe_layer_step": 2,
    },
    "granitemoe": {
        "model_type": "granitemoe",
        **GATED,
        "intermediate_size": 128,
        "num_key_value_heads": 2,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": True,
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.2,
        "logits_scaling": 9.0,
    },
    "mamba2": {
        "model_type": "mamba2",
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "vocab_size": 1000,
        "num_heads": 16,
        "head_dim": 32,
        "n_groups": 2,
        "state_size": 32,
        "conv_kernel": 4,
        "chunk_size": 64,
        "residual_in_fp32": True,
    },
    "qwen3_5_text": {
        "model_type": "qwen3_5_text",
        **GATED,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "partial_rotary_factor": 0.25,
        "full_attention_interval": 4,
        "linear_num_key_heads": 4,
        "linear_num_value_heads": 8,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
    },
    "gemma": {"model_type": "gemma", **WIDE_HEADS, "num_key_value_heads": 1},
    "gemma2": {"model_type": "gemma2", **WIDE_HEADS, "num_key_value_heads": 2, "final_logit_softcapping": 30.0},
    "gemma3": {"model_type": "gemma3_text", **WIDE_HEADS, "num_key_value_heads": 2},
    "gemma4": {
        "model_type": "gemma4_text",
        **WIDE_HEADS,
        "num_key_value_heads": 2,
        "global_head_dim": 256,
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 1,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 32,
        "vocab_size_per_layer_input": 1000,
        "final_logit_softcapping": 30.0,
    },
    "phi": {
        "model_type": "phi",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu_new",
        "partial_rotary_factor": 0.5,
        "resid_pdrop": 0.1,
    },
    "phi3": {"model_type": "phi3", **GATED, "num_key_value_heads": 4},
    "stablelm": {
        "model_type": "stablelm",
        **GATED,
        "num_key_value_heads": 4,
        "use_qkv_bias": True,
        "use_parallel_residual": False,
        "partial_rotary_factor": 0.25,
    },
    "stablelm_parallel": {
        "model_type": "stablelm",
        **GATED,
        "use_qkv_bias": False,
        "use_parallel_residual": True,
        "partial_rotary_factor": 0.25,
    },
    "starcoder2": {
        "model_type": "starcoder2",
        **SIZES,
        "intermediate_size": 1024,
        "num_key_value_heads": 2,
        "hidden_act": "gelu_pytorch_tanh",
        "residual_dropout": 0.1,
        "embedding_dropout": 0.1,
    },
    "olmo": {"model_type": "olmo", **GATED},
    "olmo3": {"model_type": "olmo3", **GATED, "num_key_value_heads": 2, "sliding_window": 4096},
    "olmo2": {"model_type": "olmo2", **GATED, "num_key_value_heads": 4},
    "gpt2": {
        "model_type": "gpt2",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu_new",
        "n_positions": 512,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "resid_pdrop": 0.1,
    },
    "gpt_neox": {
        "model_type": "gpt_neox",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu",
        "rotary_pct": 0.25,
    },
    "opt": {**OPT, "word_embed_proj_dim": 256, "do_layer_norm_before": True},
    "opt_norms_behind": {**OPT, "word_embed_proj_dim": 128, "do_layer_norm_before": False},
    "gpt_bigcode": {
        "model_type": "gpt_bigcode",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu_pytorch_tanh",
        "multi_query": True,
        "n_positions": 512,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "resid_pdrop": 0.1,
    },
    "gpt_neo": {
        "model_type": "gpt_neo",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu_new",
        "max_position_embeddings": 512,
        "embed_dropout": 0.1,
        "attention_dropout": 0.1,
        "resid_dropout": 0.1,
    },
    "gptj": {
        "model_type": "gptj",
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu_pytorch_tanh",
        "n_positions": 512,
        "rotary_dim": 16,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "resid_pdrop": 0.1,
    },
    "bert": {**BERT, "architectures": ["BertForSequenceClassification"]},
    "bert_masked_lm": {**BERT, "architectures": ["BertForMaskedLM"]},
    "distilbert": {
        "model_type": "distilbert",
        "architectures": ["DistilBertForSequenceClassification"],
        "dim": 256,
        "n_layers": 4,
        "n_heads": 8,
        "hidden_dim": 1024,
        "vocab_size": 1000,
        "max_position_embeddings": 512,
        "dropout": 0.1,
        "attention_dropout": 0.1,
    },
    "vit": {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "intermediate_size": 1024,
        "hidden_act": "gelu",
        "image_size": 224,
        "patch_size": 16,
        "num_labels": 10,
    },
    "bloom": {
        "model_type": "bloom",
        "hidden_size": 256,
        "n_layer": 4,
        "n_head": 8,
        "vocab_size": 1000,
        "hidden_dropout": 0.1,
        "attention_dropout": 0.1,
    },
    "falcon": FALCON,
    "falcon_grouped": {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
    "falcon_alibi": {**FALCON, "multi_query": False, "parallel_attn": False, "alibi": True, "bias": True},
    "mpt": {"model_type": "mpt", "d_model": 256, "n_heads": 8, "n_layers": 4, "vocab_size": 1000},
    "deepseek": {
        "model_type": "deepseek_v3",
        **GATED,
        "q_lora_rank": 96,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    },
    "glm": {"model_type": "glm", **GLM, "attention_bias": True},
    "glm4": {"model_type": "glm4", **GLM, "attention_bias": False},
    "electra": {
        **BERT,
        "model_type": "electra",
        "architectures": ["ElectraForSequenceClassification"],
        "embedding_size": 128,
    },
    "albert": {
        "model_type": "albert",
        "architectures": ["AlbertForSequenceClassification"],
        **SIZES,
        "embedding_size": 128,
        "intermediate_size": 1024,
        "hidden_act": "gelu_new",
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    "deberta": {
        "model_type": "deberta-v2",
        "architectures": ["DebertaV2ForSequenceClassification"],
        **SIZES,
        "intermediate_size": 1024,
        "hidden_act": "gelu",
        "max_position_embeddings": 512,
        "type_vocab_size": 0,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "position_biased_input": False,
        "relative_attention": True,
        "position_buckets": 64,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
    },
    "xlnet": {**XLNET, "architectures": ["XLNetForSequenceClassification"]},
    "xlnet_lm": {**XLNET, "architectures": ["XLNetLMHeadModel"]},
    "modernbert": {
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        **SIZES,
        "intermediate_size": 384,
        "global_attn_every_n_layers": 3,
    },
    "deit": {"model_type": "deit", "architectures": ["DeiTForImageClassification"], **VIT, "num_labels": 10},
    "swin": {
        "model_type": "swin",
        "architectures": ["SwinForImageClassification"],
        "image_size": 112,
        "patch_size": 4,
        "embed_dim": 48,
        "depths": [2, 2],
        "num_heads": [3, 6],
        "window_size": 7,
        "drop_path_rate": 0.1,
        "num_labels": 10,
    },
    "clip": {
        "model_type": "clip",
        "projection_dim": 128,
        "text_config": {
            **SIZES,
            "intermediate_size": 1024,
            "hidden_act": "gelu",
            "max_position_embeddings": 512,
        },
        "vision_config": VIT,
    },
    "whisper": {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "d_model": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 1024,
        "decoder_ffn_dim": 1024,
        "vocab_size": 1000,
        "num_mel_bins": 80,
        "max_source_positions": 256,
        "max_target_positions": 512,
    },
    "t5": {**T5, "feed_forward_proj": "relu", "tie_word_embeddings": True},
    "t5_gated": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "bart": {
        "model_type": "bart",
        "architectures": ["BartForConditionalGeneration"],
        "d_model": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 1024,
        "decoder_ffn_dim": 1024,
        "max_position_embeddings": 512,
        "vocab_size": 1000,
        "dropout": 0.1,
    },
    **DIFFUSERS,
    **VISION,
}


def sizes_of(config: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The batch of each run, and its number of tokens where the model reads tokens."""
    if "image_size" in config or "_class_name" in config:
        return ((4,), (6,))
    if config["model_type"] in SIZES_WITH_IMAGES:
        return SIZES_WITH_IMAGES[config["model_type"]]
    return ((2, 512), (3, 384))

#: Models that are trained by adapters too, and the targets that PEFT takes for them.
ADAPTED: dict[str, str] = {
    "llama": "q_proj+v_proj",
    "qwen2": "q_proj+v_proj",
    "gemma2": "q_proj+v_proj",
    "phi3": "qkv_proj",
    "gpt2": "c_attn",
    "mistral": "q_proj+v_proj",
    "opt": "q_proj+v_proj",
}

#: The same with adapters on embeddings: of a model whose head is tied to them, and of one whose head is not.
ADAPTED_EMBEDDINGS = ("llama_embeddings", "qwen2_embeddings")


def run(targets: str, dtype: str = "fp32", dropout: float = 0.0, quantize: str = "none") -> dict[str, Any]:
    """Adapters by the names that gpumem has for what they are like."""
    return {
        "lora": 16,
        "lora_targets": targets,
        "lora_dtype": dtype,
        "lora_dropout": dropout,
        "quantize": quantize,
    }


def embedding_runs(precision: str) -> list[dict[str, Any]]:
    """Adapters on the embedding in addition to the usual targets, and on the head too."""
    runs = [run("q_proj+v_proj+embed_tokens"), run("all-linear+embed_tokens+lm_head", dropout=0.05)]
    if precision != "fp32":
        runs.append(run("q_proj+v_proj+embed_tokens", quantize="nf4"))
    return runs


def adapting_runs(usual: str, precision: str) -> list[dict[str, Any]]:
    """Adapters of a model in one precision: on the usual targets and on all, with dropout, in bf16, over four bits."""
    runs = [run(usual), run("all-linear", dropout=0.05)]
    if precision != "fp32":
        runs += [run("all-linear", quantize="nf4-double"), run(usual, dropout=0.1, quantize="nf4")]
    if precision == "bf16":
        runs.append(run("all-linear", dtype="bf16"))
    return runs


def peft_run(method: str, rank: int | None, targets: str = "q_proj+v_proj", options: str = "") -> dict[str, Any]:
    """Adapters of one of PEFT's methods."""
    return {"peft": method, "peft_options": options, **run(targets), "lora": rank}

#: One method of each kind: of those that multiply activations, make whole matrices, or turn what a layer reads or leaves.
PEFT_RUNS: list[dict[str, Any]] = [
    peft_run("dora", 16),
    peft_run("vera", 64),
    peft_run("ia3", None, "k_proj+v_proj+down_proj"),
    peft_run("loha", 16),
    peft_run("lokr", 16, options="decompose_factor=4"),
    peft_run("oft", None, options="oft_block_size=32"),
    peft_run("hira", 16),
    peft_run("fourierft", None, options="n_frequency=1000"),
    peft_run("miss", 64),
    peft_run("deft", 16),
    peft_run("road", None, options="variant=road_2"),
]
