"""Writes the goldens of later models for sound, of models for time series and of towers for images next to this file,
as make_sound_goldens.py writes its own.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/architectures/make_series_goldens.py [NAME...]

It needs PyTorch 2.6, transformers (5.17 made these; 5.16 those from Moonshine on) and no GPU. The models are transformers' own; the weight of a
normed convolution is a product, since the fused operator's backward has no shapes to record. What speaks has no loss
here: it selects values by a mask.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from make_sound_goldens import BATCH, PRECISIONS, measure, write_golden

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
MIXER = {"model_type": "patchtsmixer", "num_input_channels": 7, "patch_length": 16, "patch_stride": 8, "d_model": 48, **SERIES}
CONFORMER = {
    "model_type": "wav2vec2-bert",
    "vocab_size": 32,
    "hidden_size": 256,
    "output_hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "layerdrop": 0.0,
    "apply_spec_augment": False,
    "mask_time_prob": 0.0,
}
TOWER = {
    "hidden_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 224,
    "patch_size": 16,
}
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
    "moonshine": (
        {
            "model_type": "moonshine",
            "architectures": ["MoonshineForConditionalGeneration"],
            "encoder_num_hidden_layers": 3,
            "decoder_num_hidden_layers": 3,
            "vocab_size": 4096,
            "max_position_embeddings": 128,
            "pad_head_dim_to_multiple_of": 8,
            "pad_token_id": 0,
        },
        64000,
    ),
    "wav2vec2_bert": ({"architectures": ["Wav2Vec2BertForCTC"], **CONFORMER}, 200),
    "wav2vec2_bert_adapter": ({"architectures": ["Wav2Vec2BertModel"], "add_adapter": True, **CONFORMER}, 200),
    "patchtsmixer": ({"architectures": ["PatchTSMixerForPrediction"], "dropout": 0.2, **MIXER}, 512),
    "patchtsmixer_channels": (
        {"architectures": ["PatchTSMixerForPretraining"], "mode": "mix_channel", "norm_mlp": "LayerNorm", **MIXER},
        512,
    ),
    "dinov2": ({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"], **TOWER}, 0),
    "dinov2_registers": (
        {
            "model_type": "dinov2_with_registers",
            "architectures": ["Dinov2WithRegistersModel"],
            "use_swiglu_ffn": True,
            **TOWER,
        },
        0,
    ),
    "dinov3": ({"model_type": "dinov3_vit", "architectures": ["DINOv3ViTModel"], "num_register_tokens": 4, **TOWER}, 0),
    "videomae": (
        {
            "model_type": "videomae",
            "architectures": ["VideoMAEForVideoClassification"],
            "num_frames": 8,
            "intermediate_size": 768,
            **TOWER,
        },
        0,
    ),
}


def tower_batch(config: dict[str, Any], dtype: torch.dtype, _: int) -> dict[str, Tensor]:
    frames = [config["num_frames"]] if "num_frames" in config else []
    pixels = torch.zeros(BATCH, *frames, 3, config["image_size"], config["image_size"], dtype=dtype, device="cuda")
    return {"pixel_values": pixels}


def speech_batch(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    speaks = "TextToSpeech" in config["architectures"][0]
    if config["model_type"] == "wav2vec2-bert":
        mask = torch.ones(BATCH, length, dtype=torch.int64, device="cuda")
        return {"input_features": torch.zeros(BATCH, length, 160, dtype=dtype, device="cuda"), "attention_mask": mask}
    if config["model_type"] == "moonshine":
        labels = torch.zeros(BATCH, config["max_position_embeddings"], dtype=torch.int64, device="cuda")
        return {"input_values": torch.zeros(BATCH, length, dtype=dtype, device="cuda"), "labels": labels}
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
    if config["model_type"].startswith("patchts"):
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
        kind = config["model_type"]
        sounds = kind in ("speecht5", "moonshine", "wav2vec2-bert")
        batch_of = tower_batch if "image_size" in config else speech_batch if sounds else series_batch
        checkpointed = (False,) if kind.startswith("patchts") else (False, True)
        ways = [(precision, again) for precision in PRECISIONS for again in checkpointed]
        measured = [measure(config, *way, length, batch_of) for way in ways]
        if "image_size" in config:
            measured = [({key: of for key, of in run.items() if key != "sequence_length"}, n) for run, n in measured]
        write_golden(name, config, measured)


if __name__ == "__main__":
    main()
