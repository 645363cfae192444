"""Decoders whose attention is their own: Falcon, MPT, DeepSeek-V3 (its dense layers), GLM-4."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoders import Phi3MLP
from .layers import (
    Body,
    Cache,
    CausalLM,
    Config,
    GatedMLP,
    Outputs,
    RMSNorm,
    RotaryEmbedding,
    apply_rotary,
    sdpa_attention,
)


class FalconLinear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        hidden_states = input @ self.weight.T
        if self.bias is None:
            return hidden_states
        return hidden_states + self.bias


class FalconMLP(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.fc1, self.fc2 = FalconLinear(width, 4 * width, bias=bias), FalconLinear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.fc1(x))
        x = self.fc2(x)
        return x


class FalconAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.head_dim = self.width // self.heads
        self.grouped, self.alibi = config["new_decoder_architecture"], config["alibi"]
        self.kv_heads = config.get("num_kv_heads", self.heads) if self.grouped else 1 if config["multi_query"] else self.heads
        bias = config["bias"]
        self.query_key_value = FalconLinear(self.width, self.width + 2 * self.kv_heads * self.head_dim, bias=bias)
        self.dense = FalconLinear(self.width, self.width, bias=bias)

    def split(self, fused_qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens, _ = fused_qkv.shape
        if self.grouped:
            qkv = fused_qkv.view(batch, tokens, -1, self.heads // self.kv_heads + 2, self.head_dim)
            query = qkv[:, :, :, :-2]
            key = qkv[:, :, :, -2:-1].contiguous()  # [-2] and [-1]: indices copy, and their list needs a GPU
            value = qkv[:, :, :, -1:].contiguous()
            key = torch.broadcast_to(key, query.shape)
            value = torch.broadcast_to(value, query.shape)
            query, key, value = (x.flatten(2, 3) for x in (query, key, value))
            return query, key, value
        if self.kv_heads == self.heads:
            fused_qkv = fused_qkv.view(batch, tokens, self.heads, 3, self.head_dim)
            return fused_qkv[..., 0, :], fused_qkv[..., 1, :], fused_qkv[..., 2, :]
        fused_qkv = fused_qkv.view(batch, tokens, self.heads + 2, self.head_dim)
        return fused_qkv[..., :-2, :], fused_qkv[..., -2:-1, :].contiguous(), fused_qkv[..., -1:, :].contiguous()

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *shared: Tensor) -> Tensor:
        fused_qkv = self.query_key_value(hidden_states)
        query_layer, key_layer, value_layer = self.split(fused_qkv)
        batch, tokens, _, _ = query_layer.shape
        heads = key_layer.shape[2]
        query_layer = query_layer.transpose(1, 2).reshape(batch, self.heads, tokens, self.head_dim)
        key_layer = key_layer.transpose(1, 2).reshape(batch, heads, tokens, self.head_dim)
        value_layer = value_layer.transpose(1, 2).reshape(batch, heads, tokens, self.head_dim)
        if not self.alibi:
            query_layer, key_layer = apply_rotary(query_layer, key_layer, *shared)
        if cache is not None:
            cache.append((key_layer, value_layer))
        if self.alibi:
            query_layer = query_layer.contiguous()
            key_layer = key_layer.contiguous()
            value_layer = value_layer.contiguous()
            attn_output = F.scaled_dot_product_attention(query_layer, key_layer, value_layer, attn_mask=shared[0])
            attn_output = attn_output.transpose(1, 2)
        else:
            attn_output = F.scaled_dot_product_attention(query_layer, key_layer, value_layer, is_causal=True)
            attn_output = attn_output.view(batch, self.heads, tokens, self.head_dim)
            attn_output = attn_output.permute(0, 2, 1, 3)
        attn_output = attn_output.reshape(batch, tokens, self.heads * self.head_dim)
        attn_output = self.dense(attn_output)
        return attn_output


class FalconBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.grouped, self.parallel = config["hidden_size"], config["new_decoder_architecture"], config["parallel_attn"]
        self.self_attention = FalconAttention(config)
        self.mlp = FalconMLP(width, config["bias"])
        self.input_layernorm = nn.LayerNorm(width)
        self.second_layernorm = nn.LayerNorm(width) if self.grouped or not self.parallel else None

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *shared: Tensor) -> Tensor:
        residual = hidden_states
        attention_layernorm_out = self.input_layernorm(hidden_states)
        mlp_layernorm_out = self.second_layernorm(hidden_states) if self.grouped else attention_layernorm_out
        attention_output = self.self_attention(attention_layernorm_out, cache, *shared)
        if not self.grouped and not self.parallel:
            residual = residual + attention_output
            mlp_layernorm_out = self.second_layernorm(residual)
        mlp_output = self.mlp(mlp_layernorm_out)
        if self.grouped or self.parallel:
            mlp_output += attention_output
        output = residual + mlp_output
        return output


class FalconModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads, self.alibi = config["hidden_size"], config["num_attention_heads"], config["alibi"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(FalconBlock(config) for _ in range(config["num_hidden_layers"]))
        self.ln_f = nn.LayerNorm(width)
        self.rotary_emb = RotaryEmbedding(width // self.heads)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        hidden_states = self.word_embeddings(input_ids)
        batch, tokens = input_ids.shape
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(tokens, device=input_ids.device).unsqueeze(0)
        if self.alibi:
            mask = torch.zeros(batch, self.heads, tokens, tokens, dtype=hidden_states.dtype, device=input_ids.device)
            shared: tuple[Tensor, ...] = (mask,)
        else:
            shared = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, *shared)
        hidden_states = self.ln_f(hidden_states)
        return hidden_states, cache


class MptAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, self.heads = config["d_model"], config["n_heads"]
        self.Wqkv = nn.Linear(self.width, 3 * self.width, bias=False)
        self.out_proj = nn.Linear(self.width, self.width, bias=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], biases: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        batch, tokens, _ = hidden_states.shape
        mixed_qkv = self.Wqkv(hidden_states)
        query_states, key_states, value_states = mixed_qkv.chunk(3, dim=2)
        query_states = query_states.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
        key_states = key_states.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
        value_states = value_states.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
        if cache is not None:
            cache.append((key_states, value_states))
        attention_scores = torch.matmul(query_states, key_states.transpose(-1, -2)) * 0.125
        attention_scores = attention_scores + biases
        attention_scores = attention_scores.masked_fill(mask, torch.finfo(query_states.dtype).min)
        attn_weights = F.softmax(attention_scores.float(), dim=-1).to(value_states.dtype)
        context_states = torch.matmul(attn_weights, value_states)
        context_states = context_states.permute(0, 2, 1, 3).contiguous().view(batch, tokens, -1)
        attn_output = self.out_proj(context_states)
        return attn_output, attn_weights


class MptBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["d_model"]
        self.norm_1, self.norm_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attn = MptAttention(config)
        self.up_proj, self.down_proj = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def ffn(self, hidden_states: Tensor, residual: Tensor) -> Tensor:
        hidden_states = F.gelu(self.up_proj(hidden_states))
        intermediate_output = self.down_proj(hidden_states)
        return intermediate_output + residual

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], biases: Tensor, mask: Tensor) -> Tensor:
        layernorm_output = self.norm_1(hidden_states)
        residual = hidden_states
        attn_outputs, attn_weights = self.attn(layernorm_output, cache, biases, mask)
        hidden_states = attn_outputs + residual
        layernorm_output = self.norm_2(hidden_states)
        residual = hidden_states
        output = self.ffn(layernorm_output, residual)
        return output


class MptModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config["n_heads"]
        self.wte = nn.Embedding(config["vocab_size"], config["d_model"])
        self.layers = nn.ModuleList(MptBlock(config) for _ in range(config["n_layers"]))
        self.norm_f = nn.LayerNorm(config["d_model"], bias=False)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        batch, tokens = input_ids.shape
        cache: Optional[Cache] = None  # MptConfig.use_cache is off
        hidden_states = self.wte(input_ids)
        biases = torch.zeros(self.heads, 1, tokens, device=input_ids.device)
        mask = torch.zeros(batch, 1, tokens, tokens, dtype=torch.bool, device=input_ids.device)
        hidden_states = self.run_blocks(hidden_states, cache, biases, mask)
        hidden_states = self.norm_f(hidden_states)
        return hidden_states, cache


class UnshiftedLossLM(CausalLM):
    """The loss of logits in their own type."""

    def __init__(self, config: Config, model: Body, width: int, embedding: nn.Embedding) -> None:
        super().__init__(config, model, width)
        self.tie(embedding)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        lm_logits = self.lm_head(hidden_states)
        shift_logits = lm_logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        batch, tokens, vocabulary = shift_logits.shape
        loss = F.cross_entropy(shift_logits.view(batch * tokens, vocabulary), shift_labels.view(batch * tokens))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache)


def falcon(config: Config) -> nn.Module:
    model = FalconModel(config)
    return UnshiftedLossLM(config, model, config["hidden_size"], model.word_embeddings)


def mpt(config: Config) -> nn.Module:
    model = MptModel(config)
    return UnshiftedLossLM(config, model, config["d_model"], model.wte)


class DeepseekAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.nope, self.rope, self.value = (config[f"{n}_head_dim"] for n in ("qk_nope", "qk_rope", "v"))
        self.kv_rank, rank = config["kv_lora_rank"], config["q_lora_rank"]
        self.q_a_proj, self.q_a_layernorm = nn.Linear(width, rank, bias=False), RMSNorm(rank)
        self.q_b_proj = nn.Linear(rank, self.heads * (self.nope + self.rope), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(width, self.kv_rank + self.rope, bias=False)
        self.kv_a_layernorm = RMSNorm(self.kv_rank)
        self.kv_b_proj = nn.Linear(self.kv_rank, self.heads * (self.nope + self.value), bias=False)
        self.o_proj = nn.Linear(self.heads * self.value, width, bias=False)

    def turned(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        b, h, s, d = q.shape
        q = q.view(b, h, s, d // 2, 2).transpose(4, 3).reshape(b, h, s, d)
        b, h, s, d = k.shape
        k = k.view(b, h, s, d // 2, 2).transpose(4, 3).reshape(b, h, s, d)
        return apply_rotary(q, k, cos, sin)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens = hidden_states.shape[:-1]
        q_states = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))
        q_states = q_states.view(batch, tokens, self.heads, -1).transpose(1, 2)
        q_pass, q_rot = torch.split(q_states, [self.nope, self.rope], dim=-1)
        compressed_kv = self.kv_a_proj_with_mqa(hidden_states)
        k_pass, k_rot = torch.split(compressed_kv, [self.kv_rank, self.rope], dim=-1)
        k_pass = self.kv_b_proj(self.kv_a_layernorm(k_pass)).view(batch, tokens, self.heads, -1).transpose(1, 2)
        k_pass, value_states = torch.split(k_pass, [self.nope, self.value], dim=-1)
        k_rot = k_rot.view(batch, 1, tokens, self.rope)
        q_rot, k_rot = self.turned(q_rot, k_rot, cos, sin)
        k_rot = k_rot.expand(*k_pass.shape[:-1], -1)
        query_states = torch.cat((q_pass, q_rot), dim=-1)
        key_states = torch.cat((k_pass, k_rot), dim=-1)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, 1, 0.0)
        attn_output = attn_output.reshape(batch, tokens, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


def rotate_pairs(x: Tensor) -> Tensor:
    x1 = x[..., 0::2]
    x2 = x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def apply_paired_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    cos = cos[..., : cos.shape[-1] // 2].repeat_interleave(2, dim=-1)
    sin = sin[..., : sin.shape[-1] // 2].repeat_interleave(2, dim=-1)
    rotary_dim = cos.shape[-1]
    q_rot, q_pass = q[..., :rotary_dim], q[..., rotary_dim:]
    k_rot, k_pass = k[..., :rotary_dim], k[..., rotary_dim:]
    q_embed = (q_rot * cos) + (rotate_pairs(q_rot) * sin)
    k_embed = (k_rot * cos) + (rotate_pairs(k_rot) * sin)
    q_embed = torch.cat([q_embed, q_pass], dim=-1)
    k_embed = torch.cat([k_embed, k_pass], dim=-1)
    return q_embed, k_embed


class GlmAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups, bias = config["head_dim"], heads // kv_heads, config["attention_bias"]
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        query_states, key_states = apply_paired_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class NormedBlock(nn.Module):
    """Attention and feed-forward layer, each behind its RMS norm; GLM-4 of 2025 has one behind each too."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, kind = config["hidden_size"], config["model_type"]
        self.self_attn = DeepseekAttention(config) if kind == "deepseek_v3" else GlmAttention(config)
        self.mlp = GatedMLP(config) if kind == "deepseek_v3" else Phi3MLP(config)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)
        self.behind = nn.ModuleList(RMSNorm(width) for _ in range(2 if kind == "glm4" else 0))

    def normed(self, index: int, hidden_states: Tensor) -> Tensor:
        return self.behind[index](hidden_states) if len(self.behind) else hidden_states

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *tables: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, *tables)
        hidden_states = residual + self.normed(0, hidden_states)
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + self.normed(1, hidden_states)
        return hidden_states


class NormedModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embed_tokens, self.norm = nn.Embedding(config["vocab_size"], width), RMSNorm(width)
        self.layers = nn.ModuleList(NormedBlock(config) for _ in range(config["num_hidden_layers"]))
        self.rotary_emb = RotaryEmbedding(config.get("qk_rope_head_dim", config.get("head_dim", 2) // 2))

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        tables = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, *tables)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


def normed(config: Config) -> nn.Module:
    return CausalLM(config, NormedModel(config), config["hidden_size"])


BUILDERS: dict[str, Any] = {"falcon": falcon, "mpt": mpt, "deepseek_v3": normed, "glm": normed, "glm4": normed}
