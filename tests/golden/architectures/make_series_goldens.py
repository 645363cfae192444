"""Writes the goldens of SpeechT5 and of models for time series next to this file, as make_sound_goldens.py writes its
own.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/architectures/make_series_goldens.py [NAME...]

It needs PyTorch 2.6, transformers (5.17 made these) and no GPU. The models are transformers' own; the weight of a
normed convolution is a product, since the fused operator's backward has no shapes to record. What speaks has no loss
here: it selects values by a mask.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from make_sound_goldens import BATCH, HERE, PRECISIONS, measure

import torch
import transformers
from torch import Tensor

SPEECH = {
    "model_type": "speecht5",
    "hidden_size": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "apply_spec_augment": False,
    "mask_time_prob": 0.0,
    "use_guided_attention_loss": False,
}
SERIES = {"context_length": 512, "prediction_length": 96}
PATCHES = {"model_type": "patchtst", "num_input_channels": 7, "patch_length": 16, "patch_stride": 8, **SERIES}
ENCODER_DECODER = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "num_time_features": 3,
    "lags_sequence": [1, 2, 3],
    "context_length": 256,
    "prediction_length": 128,
}
#: Each with the tokens of a sample; in series the config says how long they are.
CONFIGS: dict[str, tuple[dict[str, Any], int]] = {
    "speecht5_tts": ({"architectures": ["SpeechT5ForTextToSpeech"], **SPEECH}, 256),
    "speecht5_asr": ({"architectures": ["SpeechT5ForSpeechToText"], "max_text_positions": 100, **SPEECH}, 32000),
    "patchtst": ({"architectures": ["PatchTSTForPrediction"], **PATCHES}, 512),
    "patchtst_pretraining": (
        {
            "architectures": ["PatchTSTForPretraining"],
            "use_cls_token": True,
            "norm_type": "layernorm",
            "ff_dropout": 0.1,
            "attention_dropout": 0.1,
            **PATCHES,
        },
        512,
    ),
    "time_series_transformer": (
        {
            "model_type": "time_series_transformer",
            "architectures": ["TimeSeriesTransformerForPrediction"],
            **ENCODER_DECODER,
        },
        256,
    ),
}


def speech_batch(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    speaks = "TextToSpeech" in config["architectures"][0]
    ids = torch.zeros(BATCH, length, dtype=torch.int64, device="cuda")
    if not speaks:
        labels = torch.zeros(BATCH, config["max_text_positions"], dtype=torch.int64, device="cuda")
        return {"input_values": torch.zeros(BATCH, length, dtype=dtype, device="cuda"), "labels": labels}
    return {
        "input_ids": ids,
        "decoder_input_values": torch.zeros(BATCH, length, 80, dtype=dtype, device="cuda"),
        "speaker_embeddings": torch.zeros(BATCH, 512, dtype=dtype, device="cuda"),
    }


def series_batch(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    def numbers(*shape: int) -> Tensor:
        return torch.zeros(BATCH, *shape, dtype=dtype, device="cuda")

    future = config["prediction_length"]
    if config["model_type"] == "patchtst":
        channels = config["num_input_channels"]
        batch = {"past_values": numbers(length, channels)}
        forecasts = "Prediction" in config["architectures"][0]
        return batch | ({"future_values": numbers(future, channels)} if forecasts else {})
    past = length + max(config["lags_sequence"])
    features = config["num_time_features"]
    return {
        "past_values": numbers(past),
        "past_observed_mask": numbers(past),
        "past_time_features": numbers(past, features),
        "future_values": numbers(future),
        "future_time_features": numbers(future, features),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch._weight_norm = lambda direction, length, dim=0: direction * length
    for name in sys.argv[1:] or CONFIGS:
        config, length = CONFIGS[name]
        batch_of = speech_batch if config["model_type"] == "speecht5" else series_batch
        checkpointed = (False,) if config["model_type"] == "patchtst" else (False, True)
        ways = [(precision, again) for precision in PRECISIONS for again in checkpointed]
        measured = [measure(config, *way, length, batch_of) for way in ways]
        golden = {"config": config, "parameters": measured[0][1], "runs": [run for run, _ in measured]}
        (HERE / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(name, flush=True)


if __name__ == "__main__":
    main()
