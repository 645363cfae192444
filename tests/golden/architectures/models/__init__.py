"""Models in plain PyTorch, layer by layer as transformers 4.48 calls them: the same modules, the same operations in the
same order, the same names that keep tensors alive. BUILDERS: a model of a config.json's fields, by its model_type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from . import bloom, cropped_pictures, csm, decoders, diffusion, encoder_decoders, encoders, ernie_vl, experts, gemma, gemma4, granitemoe, hybrids, image_stages, latest_decoders, latest_encoders, lightning, llama, masked_decoders, more_decoders, publishers, towers, vision_language, xlnet

BUILDERS: dict[str, Callable[[dict[str, Any]], nn.Module]] = {
    **llama.BUILDERS,
    **granitemoe.BUILDERS,
    **experts.BUILDERS,
    **csm.BUILDERS,
    **ernie_vl.BUILDERS,
    **hybrids.BUILDERS,
    **lightning.BUILDERS,
    **gemma.BUILDERS,
    **gemma4.BUILDERS,
    **decoders.BUILDERS,
    **more_decoders.BUILDERS,
    **bloom.BUILDERS,
    **latest_decoders.BUILDERS,
    **encoders.BUILDERS,
    **latest_encoders.BUILDERS,
    **xlnet.BUILDERS,
    **towers.BUILDERS,
    **vision_language.BUILDERS,
    **publishers.BUILDERS,
    **cropped_pictures.BUILDERS,
    **image_stages.BUILDERS,
    **masked_decoders.BUILDERS,
    **encoder_decoders.BUILDERS,
    **diffusion.BUILDERS,
}
