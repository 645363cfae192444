"""A ControlNet with the frozen model that it is trained with, as diffusers' examples of training run them."""

from __future__ import annotations

from typing import Any

import diffusers
import torch

# Fields of a ControlNet that a UNet has not.
HINTS = ("conditioning_channels", "conditioning_embedding_out_channels", "controlnet_conditioning_channel_order")


def unet_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The UNet's way up is as the ControlNet's way down, the other way round (ControlNetModel.from_unet)."""
    up = [name.replace("Down", "Up") for name in reversed(fields["down_block_types"])]
    return {name: value for name, value in fields.items() if name not in HINTS} | {"up_block_types": up}


class Guided(torch.nn.Module):
    """ControlNetModel and UNet2DConditionModel as one model. XL's example checkpoints both, the other one the first."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.controlnet = diffusers.ControlNetModel(**fields)
        self.unet = diffusers.UNet2DConditionModel(**unet_fields(fields))
        self.unet.requires_grad_(False)
        self.both = fields.get("addition_embed_type") == "text_time"

    def enable_gradient_checkpointing(self) -> None:
        self.controlnet.enable_gradient_checkpointing()
        if self.both:
            self.unet.enable_gradient_checkpointing()

    def forward(self, controlnet_cond: torch.Tensor, return_dict: bool = False, **inputs: Any) -> Any:
        down, middle = self.controlnet(controlnet_cond=controlnet_cond, return_dict=False, **inputs)
        return self.unet(
            down_block_additional_residuals=down, mid_block_additional_residual=middle, return_dict=return_dict, **inputs
        )


class GuidedFlux(torch.nn.Module):
    """FluxControlNetModel and a FluxTransformer2DModel of the published numbers of blocks; both are checkpointed."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.controlnet = diffusers.FluxControlNetModel(**fields)
        self.transformer = diffusers.FluxTransformer2DModel(**fields | {"num_layers": 19, "num_single_layers": 38})
        self.transformer.requires_grad_(False)

    def enable_gradient_checkpointing(self) -> None:
        self.controlnet.enable_gradient_checkpointing()
        self.transformer.enable_gradient_checkpointing()

    def forward(self, controlnet_cond: torch.Tensor, return_dict: bool = False, **inputs: Any) -> Any:
        doubles, singles = self.controlnet(controlnet_cond=controlnet_cond, return_dict=False, **inputs)
        return self.transformer(
            controlnet_block_samples=doubles, controlnet_single_block_samples=singles, return_dict=return_dict, **inputs
        )


class GuidedSd3(torch.nn.Module):
    """SD3ControlNetModel and an SD3Transformer2DModel of as many blocks as heads; the first alone is checkpointed."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.controlnet = diffusers.SD3ControlNetModel(**fields)
        self.transformer = diffusers.SD3Transformer2DModel(**fields | {"num_layers": fields["num_attention_heads"]})
        self.transformer.requires_grad_(False)

    def enable_gradient_checkpointing(self) -> None:
        self.controlnet.enable_gradient_checkpointing()

    def forward(self, controlnet_cond: torch.Tensor, return_dict: bool = False, **inputs: Any) -> Any:
        added = self.controlnet(controlnet_cond=controlnet_cond, return_dict=False, **inputs)[0]
        return self.transformer(block_controlnet_hidden_states=added, return_dict=return_dict, **inputs)


GUIDED = {"ControlNetModel": Guided, "FluxControlNetModel": GuidedFlux, "SD3ControlNetModel": GuidedSd3}
