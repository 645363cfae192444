"""Gemma 4 (text): two widths of heads, keys that are values, keys that later layers read, an embedding for each layer."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .gemma import GemmaForCausalLM
from .layers import Body, Cache, CausalLM, Config, GatedMLP, RotaryEmbedding, rotate_half, sdpa_attention

Kept = dict[bool, tuple[Tensor, Tensor]]


class Norm(nn.Module):
    def __init__(self, width: int, with_scale: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width)) if with_scale else None

    def forward(self, x: Tensor) -> Tensor:
        whole = x.float()
        output = whole * torch.rsqrt(whole.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.weight is not None:
            output = output * self.weight.float()
        return output.type_as(x)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return (x * cos.unsqueeze(2)) + (rotate_half(x) * sin.unsqueeze(2))


class Attention(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.full = config["layer_types"][layer] == "full_attention"
        self.head_dim = config["global_head_dim"] if self.full else config["head_dim"]
        self.alike = self.full and config["attention_k_eq_v"]
        kv_heads = config["num_global_key_value_heads"] if self.alike else config["num_key_value_heads"]
        self.groups = self.heads // kv_heads
        self.shares = layer >= config["num_hidden_layers"] - config["num_kv_shared_layers"]
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=False)
        self.q_norm = Norm(self.head_dim)
        if not self.shares:
            self.k_norm, self.v_norm = Norm(self.head_dim), Norm(self.head_dim, with_scale=False)
            self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
            self.v_proj = None if self.alike else nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, width, bias=False)

    def keys(self, hidden_states: Tensor, shape: tuple[int, ...], cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        key = self.k_proj(hidden_states).view(shape)
        value = key if self.v_proj is None else self.v_proj(hidden_states).view(shape)
        key = turned(self.k_norm(key), cos, sin).transpose(1, 2)
        return key, self.v_norm(value).transpose(1, 2)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], tables: Any, kept: Kept) -> Tensor:
        cos, sin = tables[self.full]
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        query = self.q_proj(hidden_states).view(shape)
        query = turned(self.q_norm(query), cos, sin).transpose(1, 2)
        if self.shares:
            key, value = kept[self.full]
        else:
            key, value = kept[self.full] = self.keys(hidden_states, shape, cos, sin)
            if cache is not None:
                cache.append((key, value))
        attended = sdpa_attention(query, key, value, self.groups, 0.0)
        return self.o_proj(attended.reshape(*hidden_states.shape[:-1], -1).contiguous())


class Block(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        width, part = config["hidden_size"], config["hidden_size_per_layer_input"]
        self.layer = layer
        self.self_attn = Attention(config, layer)
        wide = 2 if config["use_double_wide_mlp"] and self.self_attn.shares else 1
        self.mlp = GatedMLP({**config, "intermediate_size": wide * config["intermediate_size"]})
        self.input_layernorm, self.post_attention_layernorm = Norm(width), Norm(width)
        self.pre_feedforward_layernorm, self.post_feedforward_layernorm = Norm(width), Norm(width)
        self.per_layer_input_gate = nn.Linear(width, part, bias=False)
        self.per_layer_projection = nn.Linear(part, width, bias=False)
        self.post_per_layer_input_norm = Norm(width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], part: Tensor, tables: Any, kept: Kept) -> Tensor:
        residual = hidden_states
        hidden_states = self.self_attn(self.input_layernorm(hidden_states), cache, tables, kept)
        hidden_states = residual + self.post_attention_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = self.mlp(self.pre_feedforward_layernorm(hidden_states))
        hidden_states = residual + self.post_feedforward_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = self.mlp.act_fn(self.per_layer_input_gate(hidden_states))
        hidden_states = hidden_states * part
        hidden_states = self.post_per_layer_input_norm(self.per_layer_projection(hidden_states))
        return residual + hidden_states


class Gemma4Model(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config, width = config, config["hidden_size"]
        layers, self.part = config["num_hidden_layers"], config["hidden_size_per_layer_input"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(Block(config, layer) for layer in range(layers))
        self.norm = Norm(width)
        self.embed_tokens_per_layer = nn.Embedding(config["vocab_size_per_layer_input"], layers * self.part)
        self.per_layer_model_projection = nn.Linear(width, layers * self.part, bias=False)
        self.per_layer_projection_norm = Norm(self.part)
        self.tables = nn.ModuleList([RotaryEmbedding(config["head_dim"]), RotaryEmbedding(config["global_head_dim"])])

    def parts(self, input_ids: Tensor, embedded: Tensor) -> Tensor:
        shape = (*input_ids.shape, len(self.layers), self.part)
        looked_up = (self.embed_tokens_per_layer(input_ids) * self.part**0.5).reshape(shape)
        projected = self.per_layer_model_projection(embedded) * self.config["hidden_size"] ** -0.5
        return (self.per_layer_projection_norm(projected.reshape(shape)) + looked_up) * 2.0**-0.5

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        embedded = self.embed_tokens(input_ids) * self.config["hidden_size"] ** 0.5
        parts = self.parts(input_ids, embedded)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = embedded
        tables = [table(hidden_states, position_ids) for table in self.tables]
        kept: Kept = {}
        for index, layer in enumerate(self.layers):
            arguments = (parts[:, :, index, :], tables, kept)
            if self.checkpointing:
                hidden_states = checkpoint(layer.__call__, hidden_states, None, *arguments, use_reentrant=False)
            else:
                hidden_states = layer(hidden_states, cache, *arguments)
        return self.norm(hidden_states), cache


class Gemma4ForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, Gemma4Model(config), config["hidden_size"])
        self.tie(self.model.embed_tokens)

    changed = GemmaForCausalLM.changed


BUILDERS = {"gemma4_text": Gemma4ForCausalLM}
