"""Decoders that share less with Llama: Phi, Phi-3, StableLM, StarCoder2, OLMo, GPT-2, GPT-NeoX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import (
    ACTIVATIONS,
    Body,
    Cache,
    CausalLM,
    Config,
    GatedMLP,
    Outputs,
    RMSNorm,
    RotaryEmbedding,
    apply_partial_rotary,
    apply_rotary,
    repeat_kv,
    sdpa_attention,
)


class PlainMLP(nn.Module):
    def __init__(self, config: Config, dropout: float = 0.0) -> None:
        super().__init__()
        width = config["hidden_size"]
        inner = config["intermediate_size"]
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.act = ACTIVATIONS[config["hidden_act"]]
        self.dropout = dropout

    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states = self.fc1(hidden_states)
        hidden_states = self.act(hidden_states)
        hidden_states = self.fc2(hidden_states)
        if self.dropout > 0.0:
            hidden_states = F.dropout(hidden_states, self.dropout)
        return hidden_states


class SplitAttention(nn.Module):
    """Queries, keys and values by projections of their own; rotary positions on all or part of each head."""

    def __init__(self, config: Config, bias: bool, output_bias: bool, copies: bool = True) -> None:
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        kv_heads = config.get("num_key_value_heads", heads)
        self.head_dim, self.groups, self.copies = width // heads, heads // kv_heads, copies
        self.q_proj = nn.Linear(width, width, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(width, width, bias=output_bias)
        self.q_norm: Optional[nn.Module] = None
        if config["model_type"] in ("olmo2", "olmo3"):
            self.q_norm, self.k_norm = RMSNorm(width), RMSNorm(kv_heads * self.head_dim)
        self.dropout = config.get("residual_dropout", 0.0)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states)
        key_states = self.k_proj(hidden_states)
        value_states = self.v_proj(hidden_states)
        if self.q_norm is not None:
            query_states, key_states = self.q_norm(query_states), self.k_norm(key_states)
        query_states = query_states.view(hidden_shape).transpose(1, 2)
        key_states = key_states.view(hidden_shape).transpose(1, 2)
        value_states = value_states.view(hidden_shape).transpose(1, 2)
        rotary = apply_rotary if cos.shape[-1] == self.head_dim else apply_partial_rotary
        query_states, key_states = rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        if self.copies:
            attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        else:
            key_states = repeat_kv(key_states, self.groups)
            value_states = repeat_kv(value_states, self.groups)
            attn_output = F.scaled_dot_product_attention(query_states, key_states, value_states, is_causal=True)
            attn_output = attn_output.transpose(1, 2).contiguous()
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        if self.dropout > 0.0:
            attn_output = F.dropout(attn_output, self.dropout)
        return attn_output


class Phi3Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.heads, self.kv_heads = width // heads, heads, kv_heads
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        self.qkv_proj = nn.Linear(width, (heads + 2 * kv_heads) * self.head_dim, bias=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        qkv = self.qkv_proj(hidden_states)
        query_pos = self.heads * self.head_dim
        query_states = qkv[..., :query_pos]
        key_states = qkv[..., query_pos : query_pos + self.kv_heads * self.head_dim]
        value_states = qkv[..., query_pos + self.kv_heads * self.head_dim :]
        query_states = query_states.view(hidden_shape).transpose(1, 2)
        key_states = key_states.view(hidden_shape).transpose(1, 2)
        value_states = value_states.view(hidden_shape).transpose(1, 2)
        query_states, key_states = apply_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.heads // self.kv_heads, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class Phi3MLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_up_proj = nn.Linear(width, 2 * inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        up_states = self.gate_up_proj(hidden_states)
        gate, up_states = up_states.chunk(2, dim=-1)
        up_states = up_states * F.silu(gate)
        return self.down_proj(up_states)


class OlmoLayerNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.shape = (width,)

    def forward(self, hidden_states: Tensor) -> Tensor:
        orig_dtype = hidden_states.dtype
        return F.layer_norm(hidden_states.to(dtype=torch.float32), self.shape, None, None, eps=1e-5).to(orig_dtype)


class FusedAttention(nn.Module):
    """GPT-2's and GPT-NeoX's: one projection; rotary positions where there are tables."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        self.head_dim, self.width = width // heads, width
        self.neox = config["model_type"] == "gpt_neox"
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = 0.0 if self.neox else config["attn_pdrop"]
        self.resid_dropout = nn.Dropout(0.0 if self.neox else config["resid_pdrop"])
        if not self.neox:
            positions = config["n_positions"]
            self.register_buffer("bias", torch.ones(1, 1, positions, positions, dtype=torch.bool), persistent=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *tables: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        if self.neox:
            qkv = self.c_attn(hidden_states).view((*input_shape, -1, 3 * self.head_dim)).transpose(1, 2)
            query_states, key_states, value_states = qkv.chunk(3, dim=-1)
            query_states, key_states = apply_partial_rotary(query_states, key_states, *tables)
        else:
            query_states, key_states, value_states = self.c_attn(hidden_states).split(self.width, dim=2)
            shape = (*input_shape, -1, self.head_dim)
            query_states = query_states.view(shape).transpose(1, 2)
            key_states = key_states.view(shape).transpose(1, 2)
            value_states = value_states.view(shape).transpose(1, 2)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, 1, self.dropout)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.c_proj(attn_output)
        if self.resid_dropout.p > 0.0:
            attn_output = self.resid_dropout(attn_output)
        return attn_output


class SequentialBlock(nn.Module):
    """Attention, then the feed-forward layer, each behind its norm."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.self_attn, self.mlp, self.input_layernorm, self.post_attention_layernorm = attention, mlp, first, second

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *tables: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, *tables)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class NormsBehindBlock(SequentialBlock):
    """OLMo 2's."""

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *tables: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.self_attn(hidden_states, cache, *tables)
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class PhiBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn, self.mlp = SplitAttention(config, True, True), PlainMLP(config)
        self.input_layernorm = nn.LayerNorm(config["hidden_size"])
        self.dropout = config["resid_pdrop"]

    def dropped(self, hidden_states: Tensor) -> Tensor:
        return F.dropout(hidden_states, self.dropout) if self.dropout > 0.0 else hidden_states

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        attn_outputs = self.self_attn(hidden_states, cache, cos, sin)
        attn_outputs = self.dropped(attn_outputs)
        feed_forward_hidden_states = self.dropped(self.mlp(hidden_states))
        hidden_states = attn_outputs + feed_forward_hidden_states + residual
        return hidden_states


class NeoXBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention, self.mlp = FusedAttention(config), PlainMLP(config)
        self.input_layernorm = nn.LayerNorm(config["hidden_size"])
        self.post_attention_layernorm = nn.LayerNorm(config["hidden_size"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        attn_output = self.attention(self.input_layernorm(hidden_states), cache, cos, sin)
        mlp_output = self.mlp(self.post_attention_layernorm(hidden_states))
        hidden_states = mlp_output + attn_output + hidden_states
        return hidden_states


class StableLmParallelBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        bias = config["use_qkv_bias"]
        self.self_attn, self.mlp = SplitAttention(config, bias, False, copies=False), GatedMLP(config)
        self.input_layernorm = nn.LayerNorm(config["hidden_size"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        self_attn_output = self.self_attn(hidden_states, cache, cos, sin)
        mlp_output = self.mlp(hidden_states)
        hidden_states = residual + self_attn_output + mlp_output
        return hidden_states


def block_of(config: Config) -> nn.Module:
    width, kind = config["hidden_size"], config["model_type"]
    layer_norm: Callable[[], nn.Module] = lambda: nn.LayerNorm(width)
    if kind == "phi":
        return PhiBlock(config)
    if kind == "phi3":
        return SequentialBlock(Phi3Attention(config), Phi3MLP(config), RMSNorm(width), RMSNorm(width))
    if kind == "stablelm" and config["use_parallel_residual"]:
        return StableLmParallelBlock(config)
    if kind == "stablelm":
        attention = SplitAttention(config, config["use_qkv_bias"], False, copies=False)
        return SequentialBlock(attention, GatedMLP(config), layer_norm(), layer_norm())
    if kind == "starcoder2":
        mlp = PlainMLP(config, config["residual_dropout"])
        return SequentialBlock(SplitAttention(config, True, True), mlp, layer_norm(), layer_norm())
    if kind == "olmo":
        attention = SplitAttention(config, False, False)
        return SequentialBlock(attention, GatedMLP(config), OlmoLayerNorm(width), OlmoLayerNorm(width))
    if kind in ("olmo2", "olmo3"):
        attention = SplitAttention(config, False, False)
        return NormsBehindBlock(attention, GatedMLP(config), RMSNorm(width), RMSNorm(width))
    if kind == "gpt_neox":
        return NeoXBlock(config)
    mlp = PlainMLP(config, config["resid_pdrop"])
    return SequentialBlock(FusedAttention(config), mlp, layer_norm(), layer_norm())


class DecoderModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kind = config["hidden_size"], config["num_attention_heads"], config["model_type"]
        share = config.get("partial_rotary_factor", config.get("rotary_pct", 1.0))
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(block_of(config) for _ in range(config["num_hidden_layers"]))
        norms = {"phi3": RMSNorm, "olmo": OlmoLayerNorm, "olmo2": RMSNorm, "olmo3": RMSNorm}
        self.norm = norms.get(kind, nn.LayerNorm)(width)
        self.dropout = config.get("embd_pdrop", config.get("embedding_dropout", 0.0)) if kind != "phi3" else 0.0
        self.wpe = nn.Embedding(config["n_positions"], width) if kind == "gpt2" else None
        self.rotary_emb = None if kind == "gpt2" else RotaryEmbedding(int(width // heads * share))

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        tables: tuple[Tensor, ...] = ()
        if self.wpe is not None:
            position_embeds = self.wpe(position_ids)
            hidden_states = inputs_embeds + position_embeds
        if self.dropout > 0.0:
            hidden_states = F.dropout(hidden_states, self.dropout)
        if self.rotary_emb is not None:
            tables = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, *tables)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


class DecoderForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        kind = config["model_type"]
        super().__init__(config, DecoderModel(config), config["hidden_size"], bias=kind == "phi")
        if config.get("tie_word_embeddings", kind in ("starcoder2", "gpt2")):
            self.tie(self.model.embed_tokens)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        if self.config["model_type"] not in ("gpt2", "gpt_neox"):
            return super().forward(input_ids, attention_mask, labels)
        hidden_states, cache = self.model(input_ids)
        lm_logits = self.lm_head(hidden_states)
        shift_logits = lm_logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache)


BUILDERS = {
    name: DecoderForCausalLM
    for name in ("phi", "phi3", "stablelm", "starcoder2", "olmo", "olmo2", "olmo3", "gpt2", "gpt_neox")
}
