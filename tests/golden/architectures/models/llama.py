"""Llama, and Mistral, Qwen2, Qwen3, Granite, SmolLM3, Seed-OSS, ERNIE 4.5 and Hunyuan, which change little in it."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import (
    Body,
    Cache,
    CausalLM,
    Config,
    GatedMLP,
    RMSNorm,
    RotaryEmbedding,
    apply_rotary,
    sdpa_attention,
)


class Attention(nn.Module):
    def __init__(self, config: Config, index: int = 0) -> None:
        super().__init__()
        # SmolLM3: every fourth layer has no positions.
        self.turns = config["model_type"] != "smollm3" or (index + 1) % 4 != 0
        width, heads = config["hidden_size"], config["num_attention_heads"]
        kv_heads = config.get("num_key_value_heads", heads)
        self.head_dim = config.get("head_dim", width // heads)
        self.groups = heads // kv_heads
        bias = config.get("attention_bias", config.get("use_bias", False))
        self.output_bias = config.get("attention_out_bias", bias)
        self.dropout, self.residual_dropout = config.get("attention_dropout", 0.0), config.get("residual_dropout", 0.0)
        self.wide_pairs = config["model_type"] == "ernie4_5"
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=bias or config["model_type"] == "qwen2")
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias or config["model_type"] == "qwen2")
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias or config["model_type"] == "qwen2")
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=self.output_bias)
        turned = config["model_type"] == "hunyuan_v1_dense"
        self.query_layernorm = RMSNorm(self.head_dim) if turned else nn.Identity()
        self.key_layernorm = RMSNorm(self.head_dim) if turned else nn.Identity()
        normed = config["model_type"] == "qwen3"
        self.q_norm = RMSNorm(self.head_dim) if normed else nn.Identity()
        self.k_norm = RMSNorm(self.head_dim) if normed else nn.Identity()

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_norm(self.q_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
        key_states = self.k_norm(self.k_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        if self.wide_pairs:
            query_states, key_states = apply_wide_rotary(query_states, key_states, cos, sin)
        elif self.turns:
            query_states, key_states = apply_rotary(query_states, key_states, cos, sin)
        query_states = self.query_layernorm(query_states)
        key_states = self.key_layernorm(key_states)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, self.dropout)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return F.dropout(attn_output, self.residual_dropout)


def apply_wide_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """ERNIE 4.5: pairs of elements, in float32; each block makes tables in which a pair's are side by side."""
    cos, sin = cos.unsqueeze(1).float(), sin.unsqueeze(1).float()
    cos = cos[..., : cos.shape[-1] // 2].repeat_interleave(2, dim=-1)
    sin = sin[..., : sin.shape[-1] // 2].repeat_interleave(2, dim=-1)

    def turned(x: Tensor) -> Tensor:
        half = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        return (x.float() * cos) + (half.float() * sin)

    q_embed = turned(q)
    k_embed = turned(k)
    return q_embed.to(q.dtype), k_embed.to(k.dtype)


class Block(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        self.self_attn = Attention(config, index)
        self.mlp = GatedMLP(config, config.get("mlp_bias", config.get("use_bias", False)))
        self.residual_dropout = config.get("residual_dropout", 0.0)
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])
        self.multiplier = config.get("residual_multiplier")

    def scaled(self, hidden_states: Tensor) -> Tensor:
        return hidden_states if self.multiplier is None else hidden_states * self.multiplier

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        hidden_states = residual + self.scaled(hidden_states)
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = F.dropout(self.mlp(hidden_states), self.residual_dropout)
        hidden_states = residual + self.scaled(hidden_states)
        return hidden_states


class LlamaModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(Block(config, index) for index in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(width)
        self.rotary_emb = RotaryEmbedding(config.get("head_dim", width // heads))
        self.multiplier = config.get("embedding_multiplier")

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        if self.multiplier is not None:
            inputs_embeds = inputs_embeds * self.multiplier
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, cos, sin)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


class LlamaForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, LlamaModel(config), config["hidden_size"])
        if config.get("tie_word_embeddings", False):
            self.tie(self.model.embed_tokens)

    def changed(self, logits: Tensor) -> Tensor:
        return logits / self.config["logits_scaling"] if "logits_scaling" in self.config else logits


NAMES = ("llama", "mistral", "qwen2", "qwen3", "granite", "smollm3", "seed_oss", "ernie4_5", "hunyuan_v1_dense")
BUILDERS = {name: LlamaForCausalLM for name in NAMES}
