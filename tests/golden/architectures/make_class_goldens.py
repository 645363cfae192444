"""Writes the goldens of transformers' own classes that translate, see images and hear next to this file, as
make_series_goldens.py writes its own.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/architectures/make_class_goldens.py [NAME...]

It needs PyTorch 2.6, transformers (5.16 made these) and no GPU. No sample is padded, so attention has no mask:
transformers sees that in a mask of ones, and not in a tensor without values, so that it is told.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from make_sound_goldens import BATCH, PRECISIONS, measure, write_golden

import torch
import transformers
from torch import Tensor
from transformers import masking_utils

BOTH_SIDES = {
    "vocab_size": 1000,
    "d_model": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "max_position_embeddings": 512,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
TOWER = {"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 3, "num_attention_heads": 3}
DECODER = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
}
TEXT_TOKENS = 256
#: Each with the tokens of a sample; what sees images alone has none.
CONFIGS: dict[str, tuple[dict[str, Any], int]] = {
    "marian": ({"model_type": "marian", "architectures": ["MarianMTModel"], **BOTH_SIDES}, TEXT_TOKENS),
    "mbart": (
        {
            "model_type": "mbart",
            "architectures": ["MBartForConditionalGeneration"],
            "scale_embedding": True,
            **BOTH_SIDES,
        },
        TEXT_TOKENS,
    ),
    "m2m_100": (
        {
            "model_type": "m2m_100",
            "architectures": ["M2M100ForConditionalGeneration"],
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            **BOTH_SIDES,
        },
        TEXT_TOKENS,
    ),
    "pegasus": ({"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"], **BOTH_SIDES}, TEXT_TOKENS),
    "plbart": ({"model_type": "plbart", "architectures": ["PLBartForConditionalGeneration"], **BOTH_SIDES}, TEXT_TOKENS),
    "blenderbot": (
        {"model_type": "blenderbot", "architectures": ["BlenderbotForConditionalGeneration"], **BOTH_SIDES},
        TEXT_TOKENS,
    ),
    "blenderbot_small": (
        {"model_type": "blenderbot-small", "architectures": ["BlenderbotSmallForConditionalGeneration"], **BOTH_SIDES},
        TEXT_TOKENS,
    ),
    "siglip": (
        {
            "model_type": "siglip",
            "architectures": ["SiglipModel"],
            "text_config": {"vocab_size": 1000, **TOWER},
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        64,
    ),
    "siglip_classifier": (
        {
            "model_type": "siglip",
            "architectures": ["SiglipForImageClassification"],
            "text_config": {"vocab_size": 1000, **TOWER},
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        0,
    ),
    "clip_classifier": (
        {
            "model_type": "clip",
            "architectures": ["CLIPForImageClassification"],
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        0,
    ),
    "data2vec_audio": (
        {
            "model_type": "data2vec-audio",
            "architectures": ["Data2VecAudioForAudioFrameClassification"],
            "layerdrop": 0.0,
            "apply_spec_augment": False,
            "mask_time_prob": 0.0,
            "hidden_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
        },
        32000,
    ),
    "whisper_classifier": (
        {
            "model_type": "whisper",
            "architectures": ["WhisperForAudioClassification"],
            "d_model": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 512,
            "num_mel_bins": 80,
            "max_source_positions": 500,
            "vocab_size": 1000,
            "decoder_layers": 1,
            "decoder_attention_heads": 4,
            "decoder_ffn_dim": 512,
        },
        0,
    ),
    "voxtral": (
        {
            "model_type": "voxtral",
            "architectures": ["VoxtralForConditionalGeneration"],
            "audio_token_id": 0,
            "audio_config": {
                "hidden_size": 128,
                "intermediate_size": 512,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_mel_bins": 128,
                "max_source_positions": 1500,
            },
            "text_config": {"model_type": "llama", **DECODER},
        },
        375,
    ),
}


def batch_of(config: dict[str, Any], dtype: torch.dtype, length: int) -> dict[str, Tensor]:
    """What a sample brings: tokens that are all those of a sound, where the model has them; an image."""

    def numbers(*shape: int) -> Tensor:
        return torch.zeros(BATCH, *shape, dtype=dtype, device="cuda")

    if "num_mel_bins" in config:
        return {"input_features": numbers(config["num_mel_bins"], 2 * config["max_source_positions"])}
    if config["model_type"] == "data2vec-audio":
        return {"input_values": numbers(length)}
    ids = torch.zeros(BATCH, length, dtype=torch.int64, device="cuda")
    batch = {"input_ids": ids} if length else {}
    if "vision_config" in config:
        side = config["vision_config"]["image_size"]
        return batch | {"pixel_values": numbers(3, side, side)}
    if length:
        batch |= {"labels": torch.zeros_like(ids)}
    if "audio_config" in config:
        frames = 2 * config["audio_config"]["max_source_positions"]
        batch |= {"input_features": numbers(config["audio_config"]["num_mel_bins"], frames)}
    return batch


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    masking_utils._ignore_causal_mask_sdpa = lambda *_, **__: True
    masking_utils._ignore_bidirectional_mask_sdpa = lambda *_, **__: True
    for name in sys.argv[1:] or CONFIGS:
        config, length = CONFIGS[name]
        ways = [(precision, again) for precision in PRECISIONS for again in (False, True)]
        measured = [measure(config, *way, length, batch_of) for way in ways]
        if length == 0:
            measured = [({key: of for key, of in run.items() if key != "sequence_length"}, n) for run, n in measured]
        measured = [(run | {"transformers": "5.0"}, n) for run, n in measured]
        write_golden(name, config, measured)


if __name__ == "__main__":
    main()
