"""Florence-2 and Ovis 2 as transformers 5.17 calls them: BART behind DaViT, and Qwen2 behind a tower with words of its
own. The samples that a loss reads hold one image of 1024 x 768 pixels."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .ernie_vl import attention, latest_loss
from .layers import Cache, Config, Outputs, RMSNorm, apply_rotary

#: Tokens of the image in Florence-2, whose decoder gets the others.
FLORENCE_TOKENS = 24 * 24 + 1


def dropped_path(x: Tensor, share: float) -> Tensor:
    if share == 0.0:
        return x
    keep = 1 - share
    kept = keep + torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device)
    kept.floor_()
    return x.div(keep) * kept


class ConvEmbed(nn.Module):
    def __init__(self, config: Config, stage: int) -> None:
        super().__init__()
        widths = [3, *config["embed_dim"]]
        kernel, stride, padding = ((7, 4, 3), (3, 2, 1))[stage > 0]
        self.first = stage > 0
        self.conv = nn.Conv2d(widths[stage], widths[stage + 1], kernel, stride, padding)
        self.norm = nn.LayerNorm(widths[stage + (0 if self.first else 1)])

    def normed(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        if self.first:
            x = self.normed(x)
        x = self.conv(x)
        return x if self.first else self.normed(x)


class WindowAttention(nn.Module):
    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, places, width = x.shape
        side, window = int(places**0.5), self.window
        across = side // window
        x = F.pad(x.view(batch, side, side, width), (0, 0, 0, 0, 0, 0)).clone()
        x = x.view(batch, across, window, across, window, width)
        windows = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window * window, width)
        qkv = self.qkv(windows).reshape(len(windows), window * window, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        windows = self.proj(attention(query, key, value, causal=False).view(windows.shape))
        x = windows.view(-1, across, across, window, window, width)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, side, side, width)
        return x.view(batch, places, width)


class ChannelAttention(nn.Module):
    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, places, width = x.shape
        qkv = self.qkv(x).reshape(batch, places, 3, self.groups, width // self.groups).permute(2, 0, 3, 4, 1)
        query, key, value = qkv.unbind(0)
        # No fused kernel takes places that stand innermost: torch 2.6, transformers/attention.cpp, of the math backend.
        scale = (places**-0.5) ** 0.5
        weights = torch.softmax(torch.matmul(query * scale, (key * scale).transpose(-2, -1)), dim=-1)
        x = torch.matmul(weights, value).transpose(1, 2).contiguous()
        x = x.permute(0, 3, 2, 1).reshape(batch, places, width)
        return self.proj(x)


class HalfBlock(nn.Module):
    def __init__(self, width: int, mixes: nn.Module, share: float) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, groups=width) for _ in range(2))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixes, self.share = mixes, share
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        x = (self.conv1(x) + x).flatten(2).transpose(1, 2)
        residual = x
        x = self.mixes(self.norm1(x))
        x = residual + dropped_path(x, self.share)
        x = x.transpose(1, 2).view(shape)
        x = (self.conv2(x) + x).flatten(2).transpose(1, 2)
        residual = x
        x = self.norm2(x)
        x = self.fc1(x)
        x = F.gelu(x)
        x = self.fc2(x)
        x = residual + dropped_path(x, self.share)
        return x.transpose(1, 2).view(shape)


class DaViT(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths, depths = config["embed_dim"], config["depths"]
        shares = [config["drop_path_rate"] * at / (2 * sum(depths) - 1) for at in range(2 * sum(depths))]
        self.convs = nn.ModuleList(ConvEmbed(config, stage) for stage in range(len(widths)))
        self.blocks = nn.ModuleList()
        for stage, width in enumerate(widths):
            blocks: list[nn.Module] = []
            for _ in range(depths[stage]):
                window = WindowAttention(width, config["num_heads"][stage], config["window_size"])
                blocks.append(HalfBlock(width, window, shares.pop(0)))
                blocks.append(HalfBlock(width, ChannelAttention(width, config["num_groups"][stage]), shares.pop(0)))
            self.blocks.append(nn.Sequential(*blocks))

    def forward(self, x: Tensor) -> Tensor:
        for conv, blocks in zip(self.convs, self.blocks):
            x = blocks(conv(x))
        return x


class FlorenceProjector(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.image_projection, self.image_proj_norm = nn.Linear(width, out, bias=False), nn.LayerNorm(out)
        self.row_embeddings, self.column_embeddings = nn.Embedding(50, width // 2), nn.Embedding(50, width // 2)
        self.register_buffer("pos_idx_to_embed", torch.zeros(100, width))

    def positions(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        x_emb = self.column_embeddings(torch.arange(width, device=x.device))
        y_emb = self.row_embeddings(torch.arange(height, device=x.device))
        pos = torch.cat([x_emb.unsqueeze(0).repeat(height, 1, 1), y_emb.unsqueeze(1).repeat(1, width, 1)], dim=-1)
        return pos.permute(2, 0, 1).unsqueeze(0).repeat(x.shape[0], 1, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = (x + self.positions(x)).flatten(2).transpose(1, 2)
        x = (x + self.pos_idx_to_embed[0:1].unsqueeze(1)).unsqueeze(1)
        x = torch.cat([x.mean(dim=2), x.mean(dim=1)], dim=1)
        return self.image_proj_norm(self.image_projection(x))


class BartAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, source: Tensor, causal: bool) -> Tensor:
        def heads(of: Tensor) -> Tensor:
            return of.view(*of.shape[:2], self.heads, -1).transpose(1, 2)

        query, key, value = heads(self.q_proj(x)), heads(self.k_proj(source)), heads(self.v_proj(source))
        return self.out_proj(attention(query, key, value, causal).reshape(x.shape).contiguous())


class BartLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int, decodes: bool) -> None:
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = BartAttention(width, heads), nn.LayerNorm(width)
        self.encoder_attn = BartAttention(width, heads) if decodes else None
        self.encoder_attn_layer_norm = nn.LayerNorm(width) if decodes else None
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, x: Tensor, encoded: Optional[Tensor]) -> Tensor:
        residual = x
        x = self.self_attn(x, x, encoded is not None)
        x = residual + x
        x = self.self_attn_layer_norm(x)
        if self.encoder_attn is not None and self.encoder_attn_layer_norm is not None:
            residual = x
            x = self.encoder_attn(x, encoded, False)
            x = residual + x
            x = self.encoder_attn_layer_norm(x)
        residual = x
        x = F.gelu(self.fc1(x))
        x = self.fc2(x)
        x = residual + x
        return self.final_layer_norm(x)


class BartSide(nn.Module):
    checkpointing = False

    def __init__(self, config: Config, side: str) -> None:
        super().__init__()
        width = config["d_model"]
        self.embed_positions = nn.Embedding(config["max_position_embeddings"] + 2, width)
        self.layernorm_embedding = nn.LayerNorm(width)
        sizes = width, config[f"{side}_attention_heads"], config[f"{side}_ffn_dim"]
        self.layers = nn.ModuleList(BartLayer(*sizes, side == "decoder") for _ in range(config[f"{side}_layers"]))

    def forward(self, x: Tensor, encoded: Optional[Tensor] = None) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
        x = self.layernorm_embedding(x + self.embed_positions(positions + 2))
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer.__call__, x, encoded, use_reentrant=False)
            else:
                x = layer(x, encoded)
        return x


class Florence2ForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        text, vision = config["text_config"], config["vision_config"]
        self.vocabulary = text["vocab_size"]
        self.shared = nn.Embedding(self.vocabulary, text["d_model"])
        self.vision_tower = DaViT(vision)
        self.multi_modal_projector = FlorenceProjector(vision["embed_dim"][-1], vision["projection_dim"])
        self.encoder, self.decoder = BartSide(text, "encoder"), BartSide(text, "decoder")
        self.lm_head = nn.Linear(text["d_model"], self.vocabulary, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        labels = labels[:, FLORENCE_TOKENS:]
        inputs_embeds = self.shared(input_ids)
        image_features = self.multi_modal_projector(self.vision_tower(pixels))
        image_features = image_features.to(inputs_embeds.device, inputs_embeds.dtype)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        encoded = self.encoder(inputs_embeds.masked_scatter(mask, image_features))
        decoded = self.decoder(self.shared(labels), encoded)
        logits = self.lm_head(decoded)
        loss = latest_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits, hidden=encoded)


class OvisAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        parts = [each.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for each in (query, key, value)]
        return self.out_proj(attention(parts[0], parts[1], parts[2], causal=False).reshape(x.shape).contiguous())


class GatedLayers(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class OvisBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.attention = OvisAttention(width, config["num_attention_heads"])
        self.ffn = GatedLayers(width, config["intermediate_size"])
        self.rms_norm1, self.rms_norm2 = RMSNorm(width), RMSNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        norm_hidden_states = self.rms_norm1(x)
        attn_output = self.attention(norm_hidden_states)
        x = x + attn_output
        norm_hidden_states = self.rms_norm2(x)
        mlp_output = self.ffn(norm_hidden_states)
        return x + mlp_output


class OvisTower(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.side = config["hidden_size"], config["image_size"] // 14
        self.stride, words = config["hidden_stride"], config["vocab_size"] - 5
        self.patch_embedding, self.rms_norm = nn.Conv2d(3, width, 14, 14), RMSNorm(width)
        self.position_embedding = nn.Embedding(self.side**2, width)
        self.layers = nn.ModuleList(OvisBlock(config) for _ in range(config["num_hidden_layers"]))
        self.last_norm = RMSNorm(width)
        self.head_linear = nn.Linear(width * self.stride**2, words, bias=False)
        self.head_norm = nn.LayerNorm(words)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patch_embedding(pixels.to(self.patch_embedding.weight.dtype)).flatten(2).transpose(1, 2)
        x = self.rms_norm(x)
        x = x + self.position_embedding(torch.arange(self.side**2, device=x.device).unsqueeze(0))
        for layer in self.layers:
            x = checkpoint(layer.__call__, x, use_reentrant=False) if self.checkpointing else layer(x)
        x = self.last_norm(x)
        tiles, _, width = x.shape
        x = F.pad(x, (0, 0, 0, 0, 0, 0)).clone()
        across = self.side // self.stride
        x = x.reshape(tiles, across, self.stride, across, self.stride, width).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(tiles, -1, self.stride**2 * width)
        logits = self.head_linear(x)
        logits = self.head_norm(logits)
        prob_token = F.softmax(logits, dim=-1)
        return prob_token


class QwenAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = width // heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        shape = (*x.shape[:2], -1, self.head_dim)
        query = self.q_proj(x).view(shape).transpose(1, 2)
        key = self.k_proj(x).view(shape).transpose(1, 2)
        value = self.v_proj(x).view(shape).transpose(1, 2)
        query, key = apply_rotary(query, key, cos, sin)
        if cache is not None:
            nothing = key.new_empty(0)
            key = torch.cat([nothing, key], dim=-2)
            value = torch.cat([nothing, value], dim=-2)
            cache.append((key, value))
        attn_output = attention(query, key, value, causal=True).reshape(x.shape).contiguous()
        return self.o_proj(attn_output)


class QwenLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn = QwenAttention(config)
        self.mlp = GatedLayers(config["hidden_size"], config["intermediate_size"])
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])

    def forward(self, x: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = x
        x = self.input_layernorm(x)
        x = self.self_attn(x, cache, cos, sin)
        x = residual + x
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return residual + x


class Ovis2ForConditionalGeneration(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        text, vision = config["text_config"], config["vision_config"]
        self.vocabulary, width = text["vocab_size"], text["hidden_size"]
        self.head_dim = width // text["num_attention_heads"]
        self.embed_tokens = nn.Embedding(self.vocabulary, width)
        self.layers = nn.ModuleList(QwenLayer(text) for _ in range(text["num_hidden_layers"]))
        self.norm = RMSNorm(width)
        self.vision_tower = OvisTower(vision)
        self.visual_embeddings_table = nn.Parameter(torch.zeros(vision["vocab_size"], width))
        self.lm_head = nn.Linear(width, self.vocabulary, bias=False)

    def features(self, pixels: Tensor) -> Tensor:
        chosen = self.vision_tower(pixels)
        marks = chosen.new_zeros(*chosen.shape[:2], 5)
        chosen = torch.cat([chosen, marks], dim=2)
        return torch.matmul(chosen, self.visual_embeddings_table)

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        x = self.embed_tokens(input_ids)
        image_features = self.features(pixels)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        x = x.masked_scatter(mask, image_features.to(x.dtype))
        cache: Optional[Cache] = None if self.checkpointing else []
        with torch.no_grad():
            cos = x.new_empty(1, input_ids.shape[1], self.head_dim)
            sin = torch.empty_like(cos)
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer.__call__, x, None, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cache, cos, sin)
        x = self.norm(x)
        logits = self.lm_head(x)
        loss = latest_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits, past_key_values=cache, hidden=image_features)


BUILDERS: dict[str, Any] = {"florence2": Florence2ForConditionalGeneration, "ovis2": Ovis2ForConditionalGeneration}
