"""Gemma 1, 2 and 3 (text)."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn

from .layers import Body, Cache, CausalLM, Config, GatedMLP, RotaryEmbedding, apply_rotary, sdpa_attention


class GemmaRMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def _norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        output = self._norm(x.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups = config["head_dim"], heads // kv_heads
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        normed = config["model_type"] == "gemma3_text"
        self.q_norm = GemmaRMSNorm(self.head_dim) if normed else nn.Identity()
        self.k_norm = GemmaRMSNorm(self.head_dim) if normed else nn.Identity()

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor, mask: Optional[Tensor]) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        query_states = self.q_norm(query_states)
        key_states = self.k_norm(key_states)
        query_states, key_states = apply_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0, mask)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.self_attn, self.mlp = Attention(config), GatedMLP(config)
        self.input_layernorm, self.post_attention_layernorm = GemmaRMSNorm(width), GemmaRMSNorm(width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor, mask: Optional[Tensor]) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin, mask)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class BlockOfFourNorms(Block):
    def __init__(self, config: Config, slides: bool) -> None:
        super().__init__(config)
        self.slides = slides
        width = config["hidden_size"]
        self.pre_feedforward_layernorm, self.post_feedforward_layernorm = GemmaRMSNorm(width), GemmaRMSNorm(width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor, mask: Optional[Tensor]) -> Tensor:
        if self.slides and mask is not None:
            sliding_window_mask = torch.tril(torch.ones_like(mask, dtype=torch.bool), diagonal=-4096)
            mask = torch.where(sliding_window_mask, torch.finfo(mask.dtype).min, mask)
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin, mask)
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.pre_feedforward_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.post_feedforward_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class GemmaModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width = config["hidden_size"]
        self.masks = config["model_type"] != "gemma"
        pattern = 6 if config["model_type"] == "gemma3_text" else 2
        self.embed_tokens = nn.Embedding(config["vocab_size"], self.width)
        self.layers = nn.ModuleList(
            BlockOfFourNorms(config, (index + 1) % pattern != 0) if self.masks else Block(config)
            for index in range(config["num_hidden_layers"])
        )
        self.norm = GemmaRMSNorm(self.width)
        self.rotary_emb = RotaryEmbedding(config["head_dim"])

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing or self.masks else []  # a HybridCache is for evaluation
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        hidden_states = hidden_states * self.width**0.5
        mask = None
        if self.masks:
            tokens = input_ids.shape[1]
            square = torch.zeros(1, 1, tokens, tokens, dtype=inputs_embeds.dtype, device=input_ids.device)
            mask = square.expand(input_ids.shape[0], 1, -1, -1)
        hidden_states = self.run_blocks(hidden_states, cache, cos, sin, mask)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


class GemmaForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, GemmaModel(config), config["hidden_size"])
        self.tie(self.model.embed_tokens)

    def changed(self, logits: Tensor) -> Tensor:
        softcap = self.config.get("final_logit_softcapping")
        if softcap is not None:
            logits = logits / softcap
            logits = torch.tanh(logits)
            logits = logits * softcap
        return logits


BUILDERS = {name: GemmaForCausalLM for name in ("gemma", "gemma2", "gemma3_text")}
