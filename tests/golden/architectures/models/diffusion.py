"""diffusers' UNet2DConditionModel and AutoencoderKL, as its documentation and the papers describe them. Inputs are what a
trainer has at hand: noisy latents, the timestep's sinusoids, the prompt's embeddings, the target."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .layers import Config, Outputs


def denoiser_loss(prediction: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(prediction.float(), target.float())


class ResnetBlock2D(nn.Module):
    def __init__(self, inside: int, outside: int, groups: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, inside), nn.GroupNorm(groups, outside)
        self.conv1, self.conv2 = nn.Conv2d(inside, outside, 3, 1, 1), nn.Conv2d(outside, outside, 3, 1, 1)
        self.time_emb_proj = nn.Linear(time, outside) if time else None
        self.conv_shortcut = nn.Conv2d(inside, outside, 1) if inside != outside else None

    def forward(self, input_tensor: Tensor, temb: Optional[Tensor]) -> Tensor:
        hidden_states = input_tensor
        hidden_states = self.norm1(hidden_states)
        hidden_states = F.silu(hidden_states)
        hidden_states = self.conv1(hidden_states)
        if self.time_emb_proj is not None:
            temb = F.silu(temb)
            temb = self.time_emb_proj(temb)[:, :, None, None]
            hidden_states = hidden_states + temb
        hidden_states = self.norm2(hidden_states)
        hidden_states = F.silu(hidden_states)
        hidden_states = self.conv2(hidden_states)
        if self.conv_shortcut is not None:
            input_tensor = self.conv_shortcut(input_tensor.contiguous())
        output_tensor = (input_tensor + hidden_states) / 1.0
        return output_tensor


def attend(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    batch, _, width = query.shape
    query = query.view(batch, -1, heads, width // heads).transpose(1, 2)
    key = key.view(batch, -1, heads, width // heads).transpose(1, 2)
    value = value.view(batch, -1, heads, width // heads).transpose(1, 2)
    hidden_states = F.scaled_dot_product_attention(query, key, value)
    return hidden_states.transpose(1, 2).reshape(batch, -1, width)


class Attention(nn.Module):
    def __init__(self, width: int, source: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k, self.to_v = nn.Linear(source, width, bias=False), nn.Linear(source, width, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(width, width)])

    def forward(self, hidden_states: Tensor, source: Tensor) -> Tensor:
        query = self.to_q(hidden_states)
        key = self.to_k(source)
        value = self.to_v(source)
        hidden_states = attend(query, key, value, self.heads)
        hidden_states = self.to_out[0](hidden_states)
        hidden_states = hidden_states / 1.0
        return hidden_states


class GEGLU(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 2 * inner)

    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states, gate = self.proj(hidden_states).chunk(2, dim=-1)
        return hidden_states * F.gelu(gate)


class BasicTransformerBlock(nn.Module):
    def __init__(self, width: int, text: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1, self.attn2 = Attention(width, width, heads), Attention(width, text, heads)
        self.ff = nn.Sequential(GEGLU(width, 4 * width), nn.Linear(4 * width, width))

    def forward(self, hidden_states: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        norm_hidden_states = self.norm1(hidden_states)
        attn_output = self.attn1(norm_hidden_states, norm_hidden_states)
        hidden_states = attn_output + hidden_states
        norm_hidden_states = self.norm2(hidden_states)
        attn_output = self.attn2(norm_hidden_states, encoder_hidden_states)
        hidden_states = attn_output + hidden_states
        norm_hidden_states = self.norm3(hidden_states)
        ff_output = self.ff(norm_hidden_states)
        hidden_states = ff_output + hidden_states
        return hidden_states


class Checkpointed(nn.Module):
    checkpointing = False

    def run(self, module: nn.Module, *arguments: Any) -> Any:
        if self.checkpointing:
            return checkpoint(module.__call__, *arguments, use_reentrant=False)
        return module(*arguments)


class Transformer2DModel(Checkpointed):
    def __init__(self, width: int, text: int, heads: int, groups: int, depth: int, linear: bool) -> None:
        super().__init__()
        self.norm, self.linear = nn.GroupNorm(groups, width), linear
        self.proj_in = nn.Linear(width, width) if linear else nn.Conv2d(width, width, 1)
        self.transformer_blocks = nn.ModuleList(BasicTransformerBlock(width, text, heads) for _ in range(depth))
        self.proj_out = nn.Linear(width, width) if linear else nn.Conv2d(width, width, 1)

    def forward(self, hidden_states: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        batch, width, rows, columns = hidden_states.shape
        residual = hidden_states
        hidden_states = self.norm(hidden_states)
        if not self.linear:
            hidden_states = self.proj_in(hidden_states)
        hidden_states = hidden_states.permute(0, 2, 3, 1).reshape(batch, rows * columns, width)
        if self.linear:
            hidden_states = self.proj_in(hidden_states)
        for block in self.transformer_blocks:
            hidden_states = self.run(block, hidden_states, encoder_hidden_states)
        if self.linear:
            hidden_states = self.proj_out(hidden_states)
        hidden_states = hidden_states.reshape(batch, rows, columns, width).permute(0, 3, 1, 2).contiguous()
        if not self.linear:
            hidden_states = self.proj_out(hidden_states)
        output = hidden_states + residual
        return output


class Level(Checkpointed):
    """The blocks of one resolution, on the way down or up, or in the middle."""

    def __init__(self, config: Config, level: int, widths: list[int], attentions: int, time: int) -> None:
        super().__init__()
        out, groups = config["block_out_channels"][level], config["norm_num_groups"]
        self.resnets = nn.ModuleList(ResnetBlock2D(inside, out, groups, time) for inside in widths)
        self.attentions = nn.ModuleList(
            Transformer2DModel(
                out,
                config["cross_attention_dim"],
                config["attention_head_dim"],
                groups,
                config["transformer_layers_per_block"],
                config["use_linear_projection"],
            )
            for _ in range(attentions)
        )
        self.samplers = nn.ModuleList()


class DownBlock(Level):
    def forward(self, hidden_states: Tensor, temb: Tensor, text: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        output_states: tuple[Tensor, ...] = ()
        for at, resnet in enumerate(self.resnets):
            hidden_states = self.run(resnet, hidden_states, temb)
            if len(self.attentions):
                hidden_states = self.attentions[at](hidden_states, text)
            output_states = output_states + (hidden_states,)
        for downsampler in self.samplers:
            hidden_states = downsampler(hidden_states)
            output_states = output_states + (hidden_states,)
        return hidden_states, output_states


class UpBlock(Level):
    def forward(self, hidden_states: Tensor, res: tuple[Tensor, ...], temb: Tensor, text: Tensor) -> Tensor:
        for at, resnet in enumerate(self.resnets):
            res_hidden_states = res[-1]
            res = res[:-1]
            hidden_states = torch.cat([hidden_states, res_hidden_states], dim=1)
            hidden_states = self.run(resnet, hidden_states, temb)
            if len(self.attentions):
                hidden_states = self.attentions[at](hidden_states, text)
        for upsampler in self.samplers:
            hidden_states = F.interpolate(hidden_states, scale_factor=2.0, mode="nearest")
            hidden_states = upsampler(hidden_states)
        return hidden_states


class MidBlock(Level):
    def forward(self, hidden_states: Tensor, temb: Tensor, text: Tensor) -> Tensor:
        hidden_states = self.run(self.resnets[0], hidden_states, temb)
        hidden_states = self.attentions[0](hidden_states, text)
        return self.run(self.resnets[1], hidden_states, temb)


class TimestepEmbedding(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(inside, outside), nn.Linear(outside, outside)

    def forward(self, sample: Tensor) -> Tensor:
        sample = self.linear_1(sample)
        sample = F.silu(sample)
        return self.linear_2(sample)


class UNet2DConditionModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths = config["block_out_channels"]
        time, last, pooled = 4 * widths[0], len(widths) - 1, config.get("projection_class_embeddings_input_dim")
        self.conv_in = nn.Conv2d(config["in_channels"], widths[0], 3, 1, 1)
        self.time_embedding = TimestepEmbedding(widths[0], time)
        self.add_embedding = TimestepEmbedding(pooled, time) if pooled else None
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        skips, layers = [widths[0]], config["layers_per_block"]
        for level, width in enumerate(widths):
            inside = [skips[-1]] + [width] * (layers - 1)
            attentions = len(inside) if config["down_block_types"][level].startswith("CrossAttn") else 0
            block = DownBlock(config, level, inside, attentions, time)
            skips += [width] * layers
            if level < last:
                block.samplers.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
            self.down_blocks.append(block)
        self.mid_block = MidBlock(config, last, [widths[-1]] * 2, 1, time)
        below = widths[-1]
        for at, level in enumerate(reversed(range(last + 1))):
            inside = []
            for _ in range(layers + 1):
                inside.append(below + skips.pop())
                below = widths[level]
            attentions = len(inside) if config["up_block_types"][at].startswith("CrossAttn") else 0
            block = UpBlock(config, level, inside, attentions, time)
            if level > 0:
                block.samplers.append(nn.Conv2d(below, below, 3, 1, 1))
            self.up_blocks.append(block)
        self.conv_norm_out = nn.GroupNorm(config["norm_num_groups"], widths[0])
        self.conv_out = nn.Conv2d(widths[0], config["out_channels"], 3, 1, 1)

    def predict(self, sample: Tensor, sinusoids: Tensor, text: Tensor, added: Optional[Tensor]) -> Tensor:
        emb = self.time_embedding(sinusoids)
        if self.add_embedding is not None:
            emb = emb + self.add_embedding(added)
        sample = self.conv_in(sample)
        res: tuple[Tensor, ...] = (sample,)
        for block in self.down_blocks:
            sample, res_samples = block(sample, emb, text)
            res += res_samples
        sample = self.mid_block(sample, emb, text)
        for block in self.up_blocks:
            res_samples = res[-len(block.resnets) :]
            res = res[: -len(block.resnets)]
            sample = block(sample, res_samples, emb, text)
        sample = self.conv_norm_out(sample)
        sample = F.silu(sample)
        return self.conv_out(sample)

    def forward(self, *batch: Tensor) -> Outputs:
        sample, sinusoids, *added, text, target = batch
        prediction = self.predict(sample, sinusoids, text, added[0] if added else None)
        return Outputs(loss=denoiser_loss(prediction, target))


class SpatialAttention(nn.Module):
    """Of all pixels (the autoencoder's, with one head, and UNet2DModel's)."""

    def __init__(self, width: int, groups: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.group_norm = nn.GroupNorm(groups, width)
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        batch, width, rows, columns = hidden_states.shape
        hidden_states = hidden_states.view(batch, width, rows * columns).transpose(1, 2)
        hidden_states = self.group_norm(hidden_states.transpose(1, 2)).transpose(1, 2)
        query = self.to_q(hidden_states)
        key = self.to_k(hidden_states)
        value = self.to_v(hidden_states)
        hidden_states = attend(query, key, value, self.heads)
        hidden_states = self.to_out(hidden_states)
        hidden_states = hidden_states.transpose(-1, -2).reshape(batch, width, rows, columns)
        hidden_states = hidden_states + residual
        hidden_states = hidden_states / 1.0
        return hidden_states


class PixelLevel(Checkpointed):
    """A level of UNet2DModel, on the way down or up, or its middle: attention follows each residual block, or the first."""

    def __init__(self, config: Config, width: int, widths: list[int], attentions: int) -> None:
        super().__init__()
        groups, time = config["norm_num_groups"], 4 * config["block_out_channels"][0]
        heads = width // config["attention_head_dim"]
        self.resnets = nn.ModuleList(ResnetBlock2D(inside, width, groups, time) for inside in widths)
        self.attentions = nn.ModuleList(SpatialAttention(width, groups, heads) for _ in range(attentions))

    def layer(self, at: int, hidden_states: Tensor, temb: Tensor) -> Tensor:
        hidden_states = self.run(self.resnets[at], hidden_states, temb)
        return self.attentions[at](hidden_states) if at < len(self.attentions) else hidden_states

    def way_up(self, hidden_states: Tensor, res_samples: tuple[Tensor, ...], temb: Tensor) -> Tensor:
        for at in range(len(self.resnets)):
            hidden_states = torch.cat([hidden_states, res_samples[-1]], dim=1)
            res_samples = res_samples[:-1]
            hidden_states = self.layer(at, hidden_states, temb)
        return hidden_states


class UNet2DModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths, layers, groups = config["block_out_channels"], config["layers_per_block"], config["norm_num_groups"]
        self.conv_in = nn.Conv2d(config["in_channels"], widths[0], 3, 1, 1)
        self.time_embedding = TimestepEmbedding(widths[0], 4 * widths[0])
        self.down, self.downsamplers = nn.ModuleList(), nn.ModuleList()
        self.up, self.upsamplers = nn.ModuleList(), nn.ModuleList()
        skips = [widths[0]]
        for at, width in enumerate(widths):
            attentions = layers if config["down_block_types"][at].startswith("Attn") else 0
            self.down.append(PixelLevel(config, width, [skips[-1]] + [width] * (layers - 1), attentions))
            skips += [width] * layers
            if at + 1 < len(widths):
                self.downsamplers.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
        self.middle = PixelLevel(config, widths[-1], [widths[-1]] * 2, 1)
        below = widths[-1]
        for at, width in enumerate(widths[::-1]):
            inside = []
            for _ in range(layers + 1):
                inside.append(below + skips.pop())
                below = width
            attentions = layers + 1 if config["up_block_types"][at].startswith("Attn") else 0
            self.up.append(PixelLevel(config, width, inside, attentions))
            if at + 1 < len(widths):
                self.upsamplers.append(nn.Conv2d(width, width, 3, 1, 1))
        self.conv_norm_out = nn.GroupNorm(groups, widths[0])
        self.conv_out = nn.Conv2d(widths[0], config["out_channels"], 3, 1, 1)

    def predict(self, sample: Tensor, sinusoids: Tensor) -> Tensor:
        emb = self.time_embedding(sinusoids)
        sample = self.conv_in(sample)
        res: tuple[Tensor, ...] = (sample,)
        for at, level in enumerate(self.down):
            for layer in range(len(level.resnets)):
                sample = level.layer(layer, sample, emb)
                res += (sample,)
            if at < len(self.downsamplers):
                sample = self.downsamplers[at](sample)
                res += (sample,)
        sample = self.middle.layer(0, sample, emb)
        sample = self.middle.layer(1, sample, emb)
        for at, level in enumerate(self.up):
            res_samples = res[-len(level.resnets) :]
            res = res[: -len(level.resnets)]
            sample = level.way_up(sample, res_samples, emb)
            if at < len(self.upsamplers):
                sample = F.interpolate(sample, scale_factor=2.0, mode="nearest")
                sample = self.upsamplers[at](sample)
        sample = self.conv_norm_out(sample)
        sample = F.silu(sample)
        return self.conv_out(sample)

    def forward(self, sample: Tensor, sinusoids: Tensor, target: Tensor) -> Outputs:
        return Outputs(loss=denoiser_loss(self.predict(sample, sinusoids), target))


class Stage(nn.Module):
    """A level of the autoencoder, or its middle."""

    def __init__(self, inside: int, out: int, layers: int, groups: int) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(ResnetBlock2D(inside if at == 0 else out, out, groups, 0) for at in range(layers))
        self.attention: Optional[nn.Module] = None
        self.sampler: Optional[nn.Conv2d] = None
        self.up = False

    def forward(self, hidden_states: Tensor) -> Tensor:
        for resnet in self.resnets:
            hidden_states = resnet(hidden_states, None)
            if self.attention is not None and resnet is self.resnets[0]:
                hidden_states = self.attention(hidden_states)
        if self.sampler is not None and self.up:
            hidden_states = F.interpolate(hidden_states, scale_factor=2.0, mode="nearest")
            hidden_states = self.sampler(hidden_states)
        elif self.sampler is not None:
            hidden_states = F.pad(hidden_states, (0, 1, 0, 1))
            hidden_states = self.sampler(hidden_states)
        return hidden_states


class Half(Checkpointed):
    """The encoder or the decoder."""

    def __init__(self, config: Config, up: bool) -> None:
        super().__init__()
        widths, groups, layers = config["block_out_channels"], config["norm_num_groups"], config["layers_per_block"]
        latents = config["latent_channels"]
        order = widths[::-1] if up else widths
        self.conv_in = nn.Conv2d(latents if up else 3, order[0], 3, 1, 1)
        self.blocks = nn.ModuleList()
        for at, width in enumerate(order):
            stage = Stage(order[max(at - 1, 0)], width, layers + 1 if up else layers, groups)
            if at + 1 < len(order):
                stage.sampler, stage.up = nn.Conv2d(width, width, 3, 1 if up else 2, 1 if up else 0), up
            self.blocks.append(stage)
        middle = Stage(widths[-1], widths[-1], 2, groups)
        middle.attention = SpatialAttention(widths[-1], groups)
        self.blocks.insert(0 if up else len(self.blocks), middle)
        self.conv_norm_out = nn.GroupNorm(groups, order[-1])
        self.conv_out = nn.Conv2d(order[-1], 3 if up else 2 * latents, 3, 1, 1)

    def forward(self, sample: Tensor) -> Tensor:
        sample = self.conv_in(sample)
        for block in self.blocks:
            sample = self.run(block, sample)
        sample = self.conv_norm_out(sample)
        sample = F.silu(sample)
        return self.conv_out(sample)


class AutoencoderKL(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        latents = config["latent_channels"]
        self.encoder, self.decoder = Half(config, False), Half(config, True)
        self.quant_conv, self.post_quant_conv = nn.Conv2d(2 * latents, 2 * latents, 1), nn.Conv2d(latents, latents, 1)

    def forward(self, image: Tensor, target: Tensor) -> Outputs:
        moments = self.quant_conv(self.encoder(image))
        mean, deviation = moments.chunk(2, dim=1)
        latents = mean + torch.exp(0.5 * torch.clamp(deviation, -30.0, 20.0)) * 1.0
        reconstruction = self.decoder(self.post_quant_conv(latents))
        return Outputs(loss=denoiser_loss(reconstruction, target))


BUILDERS = {"UNet2DConditionModel": UNet2DConditionModel, "UNet2DModel": UNet2DModel, "AutoencoderKL": AutoencoderKL}
