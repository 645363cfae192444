"""MiniMax-Text-01: lightning attention, block by block, and softmax attention in turn; experts after each.
Source: transformers 4.57, models/minimax/modeling_minimax.py."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import Cache, Config, RMSNorm, RotaryEmbedding, apply_rotary, sdpa_attention
from .llama import LlamaForCausalLM


class LightningAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads, self.head_dim = config["hidden_size"], config["num_attention_heads"], config["head_dim"]
        inner, self.block_size = self.heads * self.head_dim, config["block_size"]
        self.norm = RMSNorm(inner)
        self.qkv_proj = nn.Linear(width, 3 * inner, bias=False)
        self.out_proj = nn.Linear(inner, width, bias=False)
        self.output_gate = nn.Linear(width, inner, bias=False)
        self.register_buffer("slope_rate", torch.ones(self.heads, 1, 1))
        self.register_buffer("query_decay", torch.ones(self.heads, self.block_size, 1))
        self.register_buffer("key_decay", torch.ones(self.heads, self.block_size, 1))
        self.register_buffer("diagonal_decay", torch.ones(1, self.heads, self.block_size, self.block_size))

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = hidden_states.shape
        qkv_states = F.silu(self.qkv_proj(hidden_states))
        qkv_states = qkv_states.reshape(batch, tokens, self.heads, 3 * self.head_dim)
        query_states, key_states, value_states = torch.split(qkv_states, self.head_dim, dim=3)
        query_states = query_states.transpose(1, 2)
        key_states = key_states.transpose(1, 2)
        value_states = value_states.transpose(1, 2)
        inter = torch.zeros(batch, self.heads, self.head_dim, self.head_dim, device=hidden_states.device)
        inter = inter.to(value_states)
        attn_output = []
        for start in range(0, tokens, self.block_size):
            end = min(start + self.block_size, tokens)
            size = end - start
            query, key, value = (each[:, :, start:end] for each in (query_states, key_states, value_states))
            query_decay, key_decay = self.query_decay[:, :size], self.key_decay[:, -size:]
            diagonal_decay = self.diagonal_decay[:, :, :size, :size]
            block_decay = torch.exp(-self.slope_rate * size)
            intra = torch.matmul(query, key.transpose(-1, -2))
            output_intra = torch.matmul(intra * diagonal_decay, value)
            output_inter = torch.matmul(query * query_decay, inter)
            current = output_inter + output_intra
            attn_output.append(current)
            following = torch.matmul((key * key_decay).transpose(-1, -2), value)
            inter = inter * block_decay + following
        attn_output = torch.cat(attn_output, dim=-2)
        attn_output = attn_output.transpose(1, 2)
        attn_output = attn_output.reshape(batch, tokens, self.heads * self.head_dim)
        attn_output = self.norm(attn_output)
        attn_output = torch.sigmoid(self.output_gate(hidden_states)) * attn_output
        attn_output = self.out_proj(attn_output)
        return attn_output


class SoftmaxAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups = config["head_dim"], heads // kv_heads
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        query_states, key_states = apply_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        return self.o_proj(attn_output)


class Expert(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)
        self.w3 = nn.Linear(width, inner, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(hidden_states)) * self.w3(hidden_states))


class SparseMoeBlock(nn.Module):
    """A loop over the experts, each of which gets as many tokens."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, experts = config["hidden_size"], config["num_local_experts"]
        self.top_k = config["num_experts_per_tok"]
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, config["intermediate_size"]) for _ in range(experts))

    def forward(self, hidden_states: Tensor) -> Tensor:
        shape = hidden_states.shape
        hidden_states = hidden_states.view(-1, shape[-1])
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights = routing_weights / routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final_hidden_states = torch.zeros(hidden_states.shape, dtype=hidden_states.dtype, device=hidden_states.device)
        share = selected.numel() // len(self.experts)
        for expert in self.experts:
            top_x = torch.arange(share, device=hidden_states.device)
            idx = torch.zeros_like(top_x)
            current_state = hidden_states[None, top_x].reshape(-1, shape[-1])
            current_hidden_states = expert(current_state) * routing_weights[top_x, idx, None]
            final_hidden_states.index_add_(0, top_x, current_hidden_states.to(hidden_states.dtype))
        return final_hidden_states.reshape(*shape)


class Block(nn.Module):
    def __init__(self, config: Config, kind: str) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.self_attn = SoftmaxAttention(config) if kind == "full_attention" else LightningAttention(config)
        self.block_sparse_moe = SparseMoeBlock(config)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        hidden_states = self.input_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        hidden_states = residual * 0.5 + hidden_states * 0.5
        hidden_states = self.post_attention_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = self.block_sparse_moe(hidden_states)
        hidden_states = residual * 0.5 + hidden_states * 0.5
        return hidden_states


class MiniMaxForCausalLM(LlamaForCausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__({**config, "num_hidden_layers": 0})
        self.model.layers = nn.ModuleList(Block(config, kind) for kind in config["layer_types"])
        self.model.rotary_emb = RotaryEmbedding(config["head_dim"])


BUILDERS = {"minimax": MiniMaxForCausalLM}
