"""MiniCPM-V 2.6 and dots.ocr as their publishers' own code calls them, with Qwen2 as the text model. The samples hold
one image of 1024 x 768 pixels."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .ernie_vl import latest_loss
from .layers import Cache, Config, Outputs, RMSNorm, rotate_half
from .vision_language import QwenLayer

#: Patches of each of MiniCPM-V's five slices, and those of dots.ocr's image.
SLICES, SLICE_PATCHES = 5, 37 * 28
PATCHES = 54 * 74


class SiglipAttention(nn.Module):
    """modeling_navit_siglip.py: SiglipAttention, which writes attention out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, length, width = hidden_states.shape
        query_states = self.q_proj(hidden_states)
        key_states = self.k_proj(hidden_states)
        value_states = self.v_proj(hidden_states)
        query_states = query_states.view(batch, length, self.heads, -1).transpose(1, 2)
        key_states = key_states.view(batch, length, self.heads, -1).transpose(1, 2)
        value_states = value_states.view(batch, length, self.heads, -1).transpose(1, 2)
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.scale
        attn_weights = F.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
        attn_output = torch.matmul(attn_weights, value_states)
        attn_output = attn_output.transpose(1, 2).contiguous()
        return self.out_proj(attn_output.reshape(batch, length, width))


class SiglipLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.self_attn = SiglipAttention(width, config["num_attention_heads"])
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, config["intermediate_size"])
        self.fc2 = nn.Linear(config["intermediate_size"], width)

    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.layer_norm1(hidden_states)
        hidden_states = self.self_attn(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.layer_norm2(hidden_states)
        hidden_states = self.fc2(F.gelu(self.fc1(hidden_states), approximate="tanh"))
        return residual + hidden_states


class Resampler(nn.Module):
    """resampler.py: Resampler; MultiheadAttention with weights (torch.nn.functional.multi_head_attention_forward)."""

    def __init__(self, queries: int, width: int, read: int) -> None:
        super().__init__()
        self.heads = width // 128
        self.query = nn.Parameter(torch.zeros(queries, width))
        self.kv_proj = nn.Linear(read, width, bias=False)
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.ln_q, self.ln_kv, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.proj = nn.Parameter(torch.zeros(width, width))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length, batch, width = query.shape
        weights, biases = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        q = F.linear(query, weights[0], biases[0])
        k = F.linear(key, weights[1], biases[1])
        v = F.linear(value, weights[2], biases[2])
        q = q.view(length, batch * self.heads, -1).transpose(0, 1)
        k = k.view(k.shape[0], batch * self.heads, -1).transpose(0, 1)
        v = v.view(v.shape[0], batch * self.heads, -1).transpose(0, 1)
        q_scaled = q * (q.shape[2] ** -0.5)
        attn_output_weights = torch.bmm(q_scaled, k.transpose(-2, -1))
        attn_output_weights = F.softmax(attn_output_weights, dim=-1)
        attn_output = torch.bmm(attn_output_weights, v)
        attn_output = attn_output.transpose(0, 1).contiguous().view(length * batch, width)
        return self.out_proj(attn_output).view(length, batch, width)

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        pos_embed = x.new_empty(batch, x.shape[1], self.query.shape[1]).permute(1, 0, 2)
        x = self.kv_proj(x)
        x = self.ln_kv(x).permute(1, 0, 2)
        q = self.ln_q(self.query)
        out = self.attend(q.unsqueeze(1).repeat(1, batch, 1), x + pos_embed, x)
        x = out.permute(1, 0, 2)
        x = self.ln_post(x)
        return x @ self.proj


class Qwen(nn.Module):
    """Qwen2ForCausalLM of embeddings, as transformers 4.56 calls it."""

    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.vocabulary, width = config["vocab_size"], config["hidden_size"]
        self.head_dim = width // config["num_attention_heads"]
        self.embed_tokens = nn.Embedding(self.vocabulary, width)
        self.layers = nn.ModuleList(QwenLayer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(width)
        self.lm_head = nn.Linear(width, self.vocabulary, bias=False)

    def forward(self, x: Tensor, labels: Tensor) -> Outputs:
        cache: Optional[Cache] = None if self.checkpointing else []
        with torch.no_grad():
            cos = x.new_empty(1, x.shape[1], self.head_dim)
            sin = torch.empty_like(cos)
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer.__call__, x, None, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cache, cos, sin)
        x = self.norm(x)
        logits = self.lm_head(x)
        return Outputs(loss=latest_loss(logits, labels, self.vocabulary), logits=logits, past_key_values=cache)


class MiniCPMV(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        vision = config["vision_config"]
        width = vision["hidden_size"]
        self.llm = Qwen(config)
        self.patch_embedding = nn.Conv2d(3, width, 14, 14)
        self.position_embedding = nn.Embedding((vision["image_size"] // 14) ** 2, width)
        self.layers = nn.ModuleList(SiglipLayer(vision) for _ in range(vision["num_hidden_layers"]))
        self.post_layernorm = nn.LayerNorm(width)
        self.resampler = Resampler(config["query_num"], config["hidden_size"], width)

    def tower(self, pixels: Tensor) -> Tensor:
        hidden_states = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        places = torch.zeros(hidden_states.shape[:2], dtype=torch.int64, device=pixels.device)
        hidden_states = hidden_states + self.position_embedding(places)
        for layer in self.layers:
            if self.checkpointing:
                hidden_states = checkpoint(layer.__call__, hidden_states, use_reentrant=False)
            else:
                hidden_states = layer(hidden_states)
        return self.post_layernorm(hidden_states)

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        self.llm.checkpointing = self.checkpointing
        features = self.resampler(self.tower(pixels))
        vllm_embedding = self.llm.embed_tokens(input_ids)
        features = features.type(vllm_embedding.dtype).view(len(input_ids), -1, features.shape[-1])
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        vllm_embedding = vllm_embedding.masked_scatter(mask, features)
        return self.llm(vllm_embedding, labels)


def turned(part: Tensor, freqs: Tensor) -> Tensor:
    """apply_rotary_pos_emb_vision, which makes its tables itself."""
    kind, part = part.dtype, part.float()
    cos = freqs.cos().unsqueeze(1).repeat(1, 1, 2).unsqueeze(0)
    sin = freqs.sin().unsqueeze(1).repeat(1, 1, 2).unsqueeze(0)
    return (part * cos + rotate_half(part) * sin).to(kind)


class DotsBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["embed_dim"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.fc1, self.fc3 = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.fc2 = nn.Linear(inner, width, bias=False)
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)

    def attend(self, x: Tensor, freqs: Tensor) -> Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(x).reshape(rows * length, 3, self.heads, -1).permute(1, 0, 2, 3).unbind(0)
        q = turned(q.unsqueeze(0), freqs).squeeze(0)
        k = turned(k.unsqueeze(0), freqs).squeeze(0)
        parts = [each.view(rows, length, self.heads, -1).transpose(1, 2) for each in (q, k, v)]
        mixed = F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(x.shape)
        return self.proj(mixed)

    def forward(self, x: Tensor, freqs: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x), freqs)
        fed = self.norm2(x)
        return x + self.fc2(F.silu(self.fc1(fed)) * self.fc3(fed))


class DotsOCR(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        vision = config["vision_config"]
        width, wide = vision["embed_dim"], 4 * vision["embed_dim"]
        self.each = width // vision["num_attention_heads"]
        self.text = Qwen(config)
        self.patch, self.norm = nn.Conv2d(3, width, 14, 14), RMSNorm(width)
        self.blocks = nn.ModuleList(DotsBlock(vision) for _ in range(vision["num_hidden_layers"]))
        self.post_trunk_norm, self.ln_q = RMSNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(wide, wide), nn.GELU(), nn.Linear(wide, config["hidden_size"]))

    def tower(self, pixels: Tensor) -> Tensor:
        x = self.patch(pixels).view(len(pixels) // PATCHES, PATCHES, -1)
        x = self.norm(x)
        freqs = torch.empty(x.shape[0] * PATCHES, self.each // 2, device=x.device)
        for block in self.blocks:
            x = checkpoint(block.__call__, x, freqs, use_reentrant=False) if self.checkpointing else block(x, freqs)
        x = self.post_trunk_norm(x)
        x = self.ln_q(x).view(x.shape[0], PATCHES // 4, -1)
        return self.mlp(x)

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        self.text.checkpointing = self.checkpointing
        x = self.text.embed_tokens(input_ids)
        features = self.tower(pixels).type(x.dtype)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        x = x.masked_scatter(mask, features)
        return self.text(x, labels)


BUILDERS: dict[str, Any] = {"minicpmv": MiniCPMV, "dots_ocr": DotsOCR}
