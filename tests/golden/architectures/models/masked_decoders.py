"""LLaDA and Dream, diffusion language models, as their publishers' own code calls them; the loss is their trainers'."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .layers import Body, Cache, Config, GatedMLP, Outputs, RMSNorm, RotaryEmbedding, apply_rotary, repeat_kv


def rotate_parts(x: Tensor) -> Tensor:
    """RotaryEmbedding.rotate_half of modeling_llada.py."""
    x = x.view(*x.shape[:3], 2, x.shape[-1] // 2)
    x1, x2 = x.unbind(dim=-2)
    return torch.cat((-x2, x1), dim=-1)


class LLaDABlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["d_model"], config["mlp_hidden_size"]
        self.heads, self.each = config["n_heads"], width // config["n_heads"]
        self.attn_norm, self.ff_norm = RMSNorm(width), RMSNorm(width)
        self.q_proj, self.k_proj, self.v_proj, self.attn_out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.ff_proj, self.up_proj = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.ff_out = nn.Linear(inner, width, bias=False)

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        wide = x.float()
        with torch.autocast("cuda", enabled=False):
            return ((wide * cos) + (rotate_parts(wide) * sin)).type_as(x)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (each.view(*each.shape[:2], self.heads, self.each).transpose(1, 2) for each in (q, k, v))
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        att = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False)
        att = att.transpose(1, 2).contiguous().view(att.shape[0], att.shape[2], -1)
        return self.attn_out(att)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x_normed = self.attn_norm(x)
        q = self.q_proj(x_normed)
        k = self.k_proj(x_normed)
        v = self.v_proj(x_normed)
        att = self.attention(q, k, v, cos, sin)
        x = x + att
        og_x = x
        x = self.ff_norm(x)
        x, x_up = self.ff_proj(x), self.up_proj(x)
        x = F.silu(x)
        x = x * x_up
        x = self.ff_out(x)
        return og_x + x


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class LLaDA(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.each = config["d_model"] // config["n_heads"]
        self.wte = nn.Embedding(config["vocab_size"], config["d_model"])
        self.blocks = nn.ModuleList(LLaDABlock(config) for _ in range(config["n_layers"]))
        self.ln_f = RMSNorm(config["d_model"])
        self.ff_out = nn.Linear(config["d_model"], config["vocab_size"], bias=False)

    def body(self, input_ids: Tensor) -> Tensor:
        x = self.wte(input_ids)
        cos, sin = (torch.empty(1, 1, input_ids.shape[1], self.each, device=x.device) for _ in range(2))
        for block in self.blocks:
            if self.checkpointing:
                x = checkpoint(block.__call__, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        x = self.ln_f(x)
        return self.ff_out(x)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        logits = self.body(input_ids)
        return Outputs(loss=token_loss(logits, labels), logits=logits)


class DreamAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups = width // heads, heads // kv_heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj, self.v_proj = (nn.Linear(width, kv_heads * self.head_dim) for _ in range(2))
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = hidden_states.shape
        query_states = self.q_proj(hidden_states)
        key_states = self.k_proj(hidden_states)
        value_states = self.v_proj(hidden_states)
        query_states = query_states.view(batch, length, -1, self.head_dim).transpose(1, 2)
        key_states = key_states.view(batch, length, -1, self.head_dim).transpose(1, 2)
        value_states = value_states.view(batch, length, -1, self.head_dim).transpose(1, 2)
        query_states, key_states = apply_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        key_states = repeat_kv(key_states, self.groups)
        value_states = repeat_kv(value_states, self.groups)
        attn_output = F.scaled_dot_product_attention(query_states, key_states, value_states, is_causal=False)
        attn_output = attn_output.transpose(1, 2).contiguous()
        attn_output = attn_output.view(batch, length, width)
        return self.o_proj(attn_output)


class DreamLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn, self.mlp = DreamAttention(config), GatedMLP(config)
        self.input_layernorm, self.post_attention_layernorm = (RMSNorm(config["hidden_size"]) for _ in range(2))

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        return residual + hidden_states


class DreamBaseModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(DreamLayer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(width)
        self.rotary_emb = RotaryEmbedding(width // config["num_attention_heads"])

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        hidden_states = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, cos, sin)
        return self.norm(hidden_states), cache


class Dream(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model = DreamBaseModel(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        logits = self.lm_head(hidden_states)
        return Outputs(loss=token_loss(logits, labels), logits=logits, past_key_values=cache)


BUILDERS: dict[str, Any] = {"llada": LLaDA, "Dream": Dream}
