"""Writes the goldens of models for sound and proteins, and of RecurrentGemma, next to this file, as make_goldens.py
writes the others.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/architectures/make_sound_goldens.py [NAME...]

It needs PyTorch 2.6, transformers (4.52.4 made these) and no GPU. The models are transformers' own, with two changes: the
weight of a normed convolution is a product, since the fused operator's backward has no shapes to record; and ESM's
attention is PyTorch's kernel, as later releases have it.
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
import transformers  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from live import live_peak  # noqa: E402
from torch import Tensor  # noqa: E402
from transformers.models.esm import modeling_esm  # noqa: E402

PRECISIONS: dict[str, tuple[torch.dtype, Any]] = {
    "fp32": (torch.float32, None),
    "amp-bf16": (torch.float32, torch.bfloat16),
    "bf16": (torch.bfloat16, None),
}
BATCH = 4
#: Tokens of a sample; others hear so many numbers.
TOKENS = {"esm": 512, "recurrent_gemma": 64}
SOUND = {
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "layerdrop": 0.0,
    "apply_spec_augment": False,
    "mask_time_prob": 0.0,
}
STABLE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True}
CONFIGS: dict[str, dict[str, Any]] = {
    "wav2vec2": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2Model"], **SOUND},
    "wav2vec2_stable": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2Model"], **SOUND, **STABLE},
    "hubert": {"model_type": "hubert", "architectures": ["HubertModel"], **SOUND},
    "wavlm": {"model_type": "wavlm", "architectures": ["WavLMModel"], **SOUND},
    "unispeech_sat": {"model_type": "unispeech-sat", "architectures": ["UniSpeechSatModel"], **SOUND},
    "ast": {
        "model_type": "audio-spectrogram-transformer",
        "architectures": ["ASTModel"],
        "hidden_size": 192,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 768,
        "max_length": 512,
    },
    "esm": {
        "model_type": "esm",
        "architectures": ["EsmForMaskedLM"],
        "vocab_size": 33,
        "pad_token_id": 1,
        "mask_token_id": 32,
        "position_embedding_type": "rotary",
        "token_dropout": True,
        "emb_layer_norm_before": False,
        "max_position_embeddings": 1026,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    "recurrent_gemma": {
        "model_type": "recurrent_gemma",
        "architectures": ["RecurrentGemmaForCausalLM"],
        "vocab_size": 1000,
        "hidden_size": 256,
        "lru_width": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "intermediate_size": 1536,
        "attention_dropout": 0.0,
        # Samples fill the window: its cache, which training makes as well, is as long as they are.
        "attention_window_size": 64,
    },
}


def kernel_attention(self: Any, hidden_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor]:
    batch, tokens, _width = hidden_states.shape
    shape = (batch, tokens, -1, self.attention_head_size)
    query = self.query(hidden_states).view(shape).transpose(1, 2)
    key = self.key(hidden_states).view(shape).transpose(1, 2)
    value = self.value(hidden_states).view(shape).transpose(1, 2)
    query = query * self.attention_head_size**-0.5
    turned, turned_key = self.rotary_embeddings(query, key)
    query, key = turned.to(query.dtype), turned_key.to(key.dtype)
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0)
    return (mixed.transpose(1, 2).contiguous().reshape(batch, tokens, -1),)


def batch_of(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    if "max_length" in config:  # a spectrogram of 128 bins
        return {"input_values": torch.zeros(BATCH, config["max_length"], 128, dtype=dtype, device="cuda")}
    if config["model_type"] not in TOKENS:
        return {"input_values": torch.zeros(BATCH, length, dtype=dtype, device="cuda")}
    return {name: torch.zeros(BATCH, length, dtype=torch.int64, device="cuda") for name in ("input_ids", "labels")}


def program(
    config: dict[str, Any], precision: str, checkpointing: bool, length: int, batch_of: Callable[..., Any] = batch_of
) -> Any:
    dtype, autocast = PRECISIONS[precision]
    fields = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    full = transformers.AutoConfig.for_model(config["model_type"], **fields)
    model = getattr(transformers, config["architectures"][0])._from_config(full, attn_implementation=None)
    model = model.train().to("cuda", dtype)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    outputs = None

    def step() -> None:
        nonlocal outputs
        batch = batch_of(config, dtype, length)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext():
            outputs = model(**batch)
        loss = outputs.loss if "loss" in outputs else outputs[0].float().mean()
        loss.backward()
        optimizer.step()

    return step, sum(each.numel() for each in model.parameters())


def measure(
    config: dict[str, Any], precision: str, checkpointing: bool, length: int, batch_of: Callable[..., Any] = batch_of
) -> tuple[dict[str, Any], int]:
    with recording() as recorder:
        step, parameters = program(config, precision, checkpointing, length, batch_of)
        for _ in range(2):
            recorder.steps.next_step()
            step()
    run = {
        "precision": precision,
        "activation_checkpointing": checkpointing,
        "batch_size": BATCH,
        "sequence_length": length,
        "peak_bytes": live_peak(recorder.run),
    }
    return run, parameters


def write_golden(name: str, config: dict[str, Any], measured: list[tuple[dict[str, Any], int]]) -> None:
    """Of what measure() says of each run."""
    golden = {"config": config, "parameters": measured[0][1], "runs": [run for run, _ in measured]}
    (HERE / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(name, flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch._weight_norm = lambda direction, length, dim=0: direction * length
    modeling_esm.EsmSelfAttention.forward = kernel_attention
    for name in sys.argv[1:] or CONFIGS:
        config = CONFIGS[name]
        length = TOKENS.get(config["model_type"], 32000)
        # A block of RecurrentGemma that runs again starts from the states that its first run left: PyTorch refuses it.
        checkpointed = (False,) if name == "recurrent_gemma" else (False, True)
        ways = [(precision, again) for precision in PRECISIONS for again in checkpointed]
        measured = [measure(config, *way, length) for way in ways]
        if name == "ast":  # as of this release attention's inputs are copies, which its output follows
            measured = [(run | {"transformers": "4.52"}, count) for run, count in measured]
        write_golden(name, config, measured)


if __name__ == "__main__":
    main()
