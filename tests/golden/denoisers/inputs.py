"""The tensors that each class of diffusers' transformers is called with, as its training scripts make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Golden = dict[str, Any]


def made(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype, device="cuda")


def patches(golden: Golden, side: int) -> int:
    width, height = golden["image"]
    return (width // side) * (height // side)


def prompt(golden: Golden, batch: int, dtype: torch.dtype, field: str = "joint_attention_dim") -> torch.Tensor:
    return made(batch, golden["sequence_length"], golden["config"][field], dtype=dtype)


def controlnet(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    inputs: dict[str, Any] = {
        "sample": made(batch, 4, height // 8, width // 8, dtype=dtype),
        "timestep": torch.zeros(batch, dtype=torch.int64, device="cuda"),
        "encoder_hidden_states": prompt(golden, batch, dtype, "cross_attention_dim"),
        "controlnet_cond": made(batch, 3, height, width, dtype=dtype),
    }
    if "addition_embed_type" in golden["config"]:
        pooled = golden["config"]["projection_class_embeddings_input_dim"] - 6 * golden["config"]["addition_time_embed_dim"]
        inputs["added_cond_kwargs"] = {
            "text_embeds": made(batch, pooled, dtype=dtype),
            "time_ids": made(batch, 6, dtype=dtype),
        }
    return inputs


def dit(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    return {
        "hidden_states": made(batch, 4, height // 8, width // 8, dtype=dtype),
        "timestep": torch.zeros(batch, dtype=torch.int64, device="cuda"),
        "class_labels": torch.zeros(batch, dtype=torch.int64, device="cuda"),
    }


def flux(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    tokens, text = patches(golden, 16), golden["sequence_length"]
    name = golden["config"]["_class_name"]
    axes = 4 if name.startswith("Flux2") else 3
    inputs = {
        "hidden_states": made(batch, tokens, 128 if axes == 4 else 64, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype),
        "timestep": made(batch, dtype=dtype),
        "img_ids": made(tokens, axes, dtype=dtype),
        "txt_ids": made(text, axes, dtype=dtype),
    }
    if golden["config"].get("guidance_embeds"):
        inputs["guidance"] = made(batch, dtype=dtype)
    if name.startswith("FluxControlNet"):
        inputs["controlnet_cond"] = torch.zeros_like(inputs["hidden_states"])
    if name.startswith(("FluxT", "FluxControlNet")):
        inputs["pooled_projections"] = made(batch, golden["config"]["pooled_projection_dim"], dtype=dtype)
    return inputs


def latents(golden: Golden, batch: int, dtype: torch.dtype, side: int = 8, channels: int = 16) -> torch.Tensor:
    width, height = golden["image"]
    return made(batch, channels, height // side, width // side, dtype=dtype)


def video(golden: Golden, batch: int, dtype: torch.dtype, side: int = 8, channels: int = 16) -> torch.Tensor:
    width, height = golden["image"]
    frames = (golden["frames"] - 1) // 4 + 1
    return made(batch, channels, frames, height // side, width // side, dtype=dtype)


def wan(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": video(golden, batch, dtype),
        "timestep": made(batch, dtype=torch.int64),
        "encoder_hidden_states": prompt(golden, batch, dtype, "text_dim"),
    }


def wan_vace(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {**wan(golden, batch, dtype), "control_hidden_states": video(golden, batch, dtype, channels=96)}


def skyreels_v2(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {**wan(golden, batch, dtype), "fps": [0] * batch}


def hunyuan_image(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    """Without ByT5's features, whose tokens are told apart by values, which recorded tensors do not have."""
    return {
        "hidden_states": latents(golden, batch, dtype, 32),
        "timestep": made(batch, dtype=dtype),
        "guidance": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype, "text_embed_dim"),
        "encoder_attention_mask": made(batch, golden["sequence_length"], dtype=torch.int64),
    }


def framepack(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    config = golden["config"]
    inputs = hunyuan_video(golden, batch, dtype)
    history = {"latents_clean": 2, "latents_history_2x": 2, "latents_history_4x": 16}
    for name, frames in history.items():
        inputs[name] = made(batch, 16, frames, height // 8, width // 8, dtype=dtype)
        inputs[f"indices_{name}"] = torch.arange(frames, device="cuda")
    inputs["indices_latents"] = torch.arange(inputs["hidden_states"].shape[2], device="cuda")
    inputs["image_embeds"] = made(batch, 729, config["image_proj_dim"], dtype=dtype)
    return inputs


def hunyuan_video(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": video(golden, batch, dtype),
        "timestep": made(batch, dtype=torch.int64),
        "encoder_hidden_states": prompt(golden, batch, dtype, "text_embed_dim"),
        "encoder_attention_mask": made(batch, golden["sequence_length"], dtype=torch.int64),
        "pooled_projections": made(batch, golden["config"]["pooled_projection_dim"], dtype=dtype),
        "guidance": made(batch, dtype=dtype),
    }


def cogvideox(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    frames = video(golden, batch, dtype)
    inputs = {
        "hidden_states": frames.permute(0, 2, 1, 3, 4).contiguous(),
        "timestep": made(batch, dtype=torch.int64),
        "encoder_hidden_states": prompt(golden, batch, dtype, "text_embed_dim"),
    }
    if golden["config"].get("use_rotary_positional_embeddings"):
        tokens = frames.shape[2] * frames.shape[3] * frames.shape[4] // 4
        table = (tokens, golden["config"]["attention_head_dim"])
        inputs["image_rotary_emb"] = (made(*table, dtype=torch.float32), made(*table, dtype=torch.float32))
    return inputs


def ernie_image(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": latents(golden, batch, dtype, 16, 128),
        "timestep": made(batch, dtype=dtype),
        "text_bth": prompt(golden, batch, dtype, "text_in_dim"),
        "text_lens": made(batch, dtype=torch.int64),
    }


def auraflow(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": latents(golden, batch, dtype, 8, 4),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype),
    }


def sd3(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": latents(golden, batch, dtype),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype),
        "pooled_projections": made(batch, golden["config"]["pooled_projection_dim"], dtype=dtype),
    }


def sd3_controlnet(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {**sd3(golden, batch, dtype), "controlnet_cond": latents(golden, batch, dtype)}


def prx(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": latents(golden, batch, dtype),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype, "context_in_dim"),
    }


def qwen_image(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    return {
        "hidden_states": made(batch, patches(golden, 16), 64, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype),
        "img_shapes": [[(1, height // 16, width // 16)]] * batch,
    }


def masked(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "timestep": made(batch, dtype=torch.int64),
        "encoder_hidden_states": prompt(golden, batch, dtype, "caption_channels"),
        "encoder_attention_mask": made(batch, golden["sequence_length"], dtype=dtype),
    }


def pixart(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    conditions = {"resolution": None, "aspect_ratio": None}
    inputs = masked(golden, batch, dtype)
    return {**inputs, "hidden_states": latents(golden, batch, dtype, 8, 4), "added_cond_kwargs": conditions}


def sana(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {**masked(golden, batch, dtype), "hidden_states": latents(golden, batch, dtype, 32, 32)}


def kandinsky5(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    frames = video(golden, batch, dtype).permute(0, 2, 3, 4, 1).contiguous()
    grid = [frames.shape[1], frames.shape[2] // 2, frames.shape[3] // 2]
    return {
        "hidden_states": frames,
        "encoder_hidden_states": prompt(golden, batch, dtype, "in_text_dim"),
        "timestep": made(batch, dtype=dtype),
        "pooled_projections": made(batch, golden["config"]["in_text_dim2"], dtype=dtype),
        "visual_rope_pos": [torch.arange(size, device="cuda") for size in grid],
        "text_rope_pos": torch.arange(golden["sequence_length"], device="cuda"),
    }


def ltx(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    frames = (golden["frames"] - 1) // 8 + 1
    grid = {"num_frames": frames, "height": height // 32, "width": width // 32}
    tokens = frames * (height // 32) * (width // 32)
    return {**masked(golden, batch, dtype), **grid, "hidden_states": made(batch, tokens, 128, dtype=dtype)}


def ltx2(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    config, text = golden["config"], golden["sequence_length"]
    projects = config.get("use_prompt_embeddings", True)
    width, height = golden["image"]
    frames = (golden["frames"] - 1) // 8 + 1
    sounds = round(golden["frames"] * 25 / 24)
    inputs = {
        "hidden_states": made(batch, frames * (height // 32) * (width // 32), 128, dtype=dtype),
        "audio_hidden_states": made(batch, sounds, 128, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "sigma": made(batch, dtype=dtype),
        "num_frames": frames,
        "height": height // 32,
        "width": width // 32,
        "audio_num_frames": sounds,
    }
    for prefix in ("", "audio_"):
        read = config["caption_channels"] if projects else config[f"{prefix}cross_attention_dim"]
        inputs[f"{prefix}encoder_hidden_states"] = made(batch, text, read, dtype=dtype)
        inputs[f"{prefix}encoder_attention_mask"] = made(batch, text, dtype=torch.bool)
    return inputs


def krea2(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    config, tokens, text = golden["config"], patches(golden, 16), golden["sequence_length"]
    features = (text, config["num_text_layers"], config["text_hidden_dim"])
    return {
        "hidden_states": made(batch, tokens, 64, dtype=dtype),
        "encoder_hidden_states": made(batch, *features, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "position_ids": made(text + tokens, 3, dtype=torch.int64),
        "encoder_attention_mask": made(batch, text, dtype=torch.bool),
    }


def ideogram4(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    tokens = patches(golden, 16) + golden["sequence_length"]
    return {
        "hidden_states": made(batch, tokens, 128, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": made(batch, tokens, golden["config"]["llm_features_dim"], dtype=dtype),
        "position_ids": made(batch, tokens, 3, dtype=torch.int64),
        "segment_ids": made(batch, tokens, dtype=torch.int64),
        "indicator": made(batch, tokens, dtype=torch.int64),
    }


def cogview4(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    sizes = {name: made(batch, 2, dtype=dtype) for name in ("original_size", "target_size", "crop_coords")}
    return {
        "hidden_states": made(batch, 16, height // 8, width // 8, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype, "text_embed_dim"),
        "timestep": torch.zeros(batch, dtype=torch.int64, device="cuda"),
        **sizes,
    }


def unet_2d(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    return {
        "sample": made(batch, 3, height, width, dtype=dtype),
        "timestep": torch.zeros(batch, dtype=torch.int64, device="cuda"),
    }


def boogu_image(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    from simpletuner.helpers.models.boogu_image.rope import BooguImageRotaryPosEmbed

    width, height = golden["image"]
    text = golden["sequence_length"]
    return {
        "hidden_states": made(batch, 16, height // 8, width // 8, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "instruction_hidden_states": made(
            batch, text, golden["config"]["instruction_feature_configs"]["instruction_feat_dim"], dtype=dtype
        ),
        "freqs_cis": BooguImageRotaryPosEmbed.get_freqs_cis((40, 40, 40), (2048, 1664, 1664), theta=10000),
        "instruction_attention_mask": torch.ones(batch, text, dtype=torch.bool).to("cuda"),
    }


def longcat_video(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "hidden_states": video(golden, batch, dtype),
        "timestep": made(batch, dtype=dtype),
        "encoder_hidden_states": prompt(golden, batch, dtype, "caption_channels"),
    }


def ace_step(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    latents = golden["seconds"] * 25
    return {
        "hidden_states": made(batch, latents, 64, dtype=dtype),
        "context_latents": made(batch, latents, 128, dtype=dtype),
        "timestep": made(batch, dtype=dtype),
        "timestep_r": made(batch, dtype=dtype),
        "encoder_hidden_states": made(batch, golden["sequence_length"], golden["config"]["hidden_size"], dtype=dtype),
    }


def cosmos3(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    """One sample: the class takes no batch."""
    width, height = golden["image"]
    grid, text = (1, height // 32, width // 32), golden["sequence_length"]
    tokens = grid[1] * grid[2]
    places = torch.arange(text, text + tokens, device="cuda")
    return {
        "input_ids": made(text, dtype=torch.int64),
        "text_indexes": torch.arange(text, device="cuda"),
        "position_ids": made(3, text + tokens, dtype=torch.int64),
        "und_len": text,
        "sequence_length": text + tokens,
        "vision_tokens": [made(1, 48, 1, height // 16, width // 16, dtype=dtype)],
        "vision_token_shapes": [grid],
        "vision_sequence_indexes": places,
        "vision_mse_loss_indexes": places,
        "vision_timesteps": made(tokens, dtype=torch.float32),
        "vision_noisy_frame_indexes": [torch.arange(1, device="cuda")],
    }


def mage_flow(golden: Golden, batch: int, dtype: torch.dtype) -> dict[str, Any]:
    width, height = golden["image"]
    grid, text = (1, height // 16, width // 16), golden["sequence_length"]

    def ends(length: int) -> torch.Tensor:
        return torch.tensor([length * at for at in range(batch + 1)], dtype=torch.int32, device="cuda")

    return {
        "img": made(1, batch * grid[1] * grid[2], golden["config"].get("in_channels", 128), dtype=dtype),
        "txt": made(1, batch * text, golden["config"]["context_in_dim"], dtype=dtype),
        "timesteps": made(batch, dtype=dtype),
        "img_shapes": [[grid] * batch],
        "img_cu_seqlens": ends(grid[1] * grid[2]),
        "txt_cu_seqlens": ends(text),
    }


INPUTS: dict[str, Callable[[Golden, int, torch.dtype], dict[str, Any]]] = {
    "ControlNetModel": controlnet,
    "FluxControlNetModel": flux,
    "FluxTransformer2DModel": flux,
    "ChromaTransformer2DModel": flux,
    "LongCatImageTransformer2DModel": flux,
    "Flux2Transformer2DModel": flux,
    "HunyuanVideoTransformer3DModel": hunyuan_video,
    "HunyuanVideoFramepackTransformer3DModel": framepack,
    "HunyuanImageTransformer2DModel": hunyuan_image,
    "WanVACETransformer3DModel": wan_vace,
    "SkyReelsV2Transformer3DModel": skyreels_v2,
    "WanTransformer3DModel": wan,
    "CogVideoXTransformer3DModel": cogvideox,
    "CogView4Transformer2DModel": cogview4,
    "UNet2DModel": unet_2d,
    "ErnieImageTransformer2DModel": ernie_image,
    "AuraFlowTransformer2DModel": auraflow,
    "SD3Transformer2DModel": sd3,
    "SD3ControlNetModel": sd3_controlnet,
    "PRXTransformer2DModel": prx,
    "OvisImageTransformer2DModel": flux,
    "QwenImageTransformer2DModel": qwen_image,
    "BriaTransformer2DModel": flux,
    "DiTTransformer2DModel": dit,
    "PixArtTransformer2DModel": pixart,
    "SanaTransformer2DModel": sana,
    "Kandinsky5Transformer3DModel": kandinsky5,
    "LTXVideoTransformer3DModel": ltx,
    "LTX2VideoTransformer3DModel": ltx2,
    "Krea2Transformer2DModel": krea2,
    "Ideogram4Transformer2DModel": ideogram4,
    "AceStepTransformer1DModel": ace_step,
    "BooguImageTransformer2DModel": boogu_image,
    "Cosmos3OmniTransformer": cosmos3,
    "MageFlowTransformer2DModel": mage_flow,
    "LongCatVideoTransformer3DModel": longcat_video,
}
