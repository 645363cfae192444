"""Decoders of 2025 with experts: gpt-oss, Llama 4's text model, GLM-4.5, MiniMax-M2. Which tokens an expert gets depends
on the data, which a recording does not have: here each gets as many."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import (
    Cache,
    Config,
    GatedMLP,
    RMSNorm,
    RotaryEmbedding,
    apply_partial_rotary,
    repeat_kv,
    sdpa_attention,
)
from .granitemoe import LoopedExperts
from .llama import LlamaForCausalLM, LlamaModel


class GroupedProduct(torch.autograd.Function):
    """What torch._grouped_mm (2.8 and later) takes and keeps: rows and weights, for each other's gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(rows if weight.requires_grad else None, weight)
        return rows.new_empty(rows.shape[0], weight.shape[2])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows, weight = ctx.saved_tensors
        return gradient.new_empty(gradient.shape[0], weight.shape[1]), torch.empty_like(weight)


class GroupedExperts(nn.Module):
    """transformers 5.8, integrations/moe.py: grouped_mm_experts_forward."""

    def __init__(self, experts: int, width: int, inner: int, transposed: bool, bias: bool = False) -> None:
        super().__init__()
        self.experts, self.transposed = experts, transposed
        up, down = (2 * inner, width), (width, inner)
        self.gate_up_proj = nn.Parameter(torch.zeros(experts, *(up if transposed else up[::-1])))
        self.down_proj = nn.Parameter(torch.zeros(experts, *(down if transposed else down[::-1])))
        self.gate_up_proj_bias = nn.Parameter(torch.zeros(experts, 2 * inner)) if bias else None
        self.down_proj_bias = nn.Parameter(torch.zeros(experts, width)) if bias else None

    def product(self, rows: Tensor, weight: Tensor) -> Tensor:
        return GroupedProduct.apply(rows, weight.transpose(-2, -1) if self.transposed else weight)

    def gated(self, gate_up_out: Tensor) -> Tensor:
        gate, up = gate_up_out.chunk(2, dim=-1)
        return F.silu(gate) * up

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        num_tokens, num_top_k = top_k_index.shape
        expert_ids, perm = torch.sort(top_k_index.reshape(-1))
        weights = top_k_weights.reshape(-1)[perm]
        rows = hidden_states[perm // num_top_k]
        made = self.product(rows, self.gate_up_proj)
        if self.gate_up_proj_bias is not None:
            made.add_(self.gate_up_proj_bias[expert_ids])
        made = self.gated(made)
        made = self.product(made, self.down_proj)
        if self.down_proj_bias is not None:
            made.add_(self.down_proj_bias[expert_ids])
        weighted = made * weights.unsqueeze(-1)
        inverse = torch.empty_like(perm)
        inverse[perm] = torch.arange(perm.size(0), device=perm.device)
        weighted = weighted[inverse]
        return weighted.view(num_tokens, num_top_k, -1).sum(dim=1).to(hidden_states.dtype)


class GptOssExperts(GroupedExperts):
    def gated(self, gate_up_out: Tensor) -> Tensor:
        gate, up = gate_up_out[..., ::2], gate_up_out[..., 1::2]
        gate = gate.clamp(min=None, max=7.0)
        up = up.clamp(min=-7.0, max=7.0)
        glu = gate * torch.sigmoid(gate * 1.702)
        gated_output = (up + 1) * glu
        return gated_output


class GptOssLoop(LoopedExperts, GptOssExperts):
    pass


class GptOssRouter(nn.Module):
    def __init__(self, width: int, experts: int, per_token: int) -> None:
        super().__init__()
        self.top_k = per_token
        self.weight = nn.Parameter(torch.zeros(experts, width))
        self.bias = nn.Parameter(torch.zeros(experts))

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        router_logits = F.linear(hidden_states, self.weight, self.bias)
        router_top_value, router_indices = torch.topk(router_logits, self.top_k, dim=-1)
        router_top_value = F.softmax(router_top_value, dim=1, dtype=router_top_value.dtype)
        return router_top_value, router_indices


class GptOssMLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, experts = config["hidden_size"], config["num_local_experts"]
        self.router = GptOssRouter(width, experts, config["num_experts_per_tok"])
        kind = GptOssLoop if config["transformers_version"] < "5" else GptOssExperts
        self.experts = kind(experts, width, config["intermediate_size"], transposed=False, bias=True)

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, tokens, width = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, width)
        weights, indices = self.router(hidden_states)
        return self.experts(hidden_states, indices, weights).reshape(batch, tokens, width)


def sink_attention(query: Tensor, key: Tensor, value: Tensor, groups: int, mask: Tensor, sinks: Tensor) -> Tensor:
    key_states = repeat_kv(key, groups)
    value_states = repeat_kv(value, groups)
    attn_weights = torch.matmul(query, key_states.transpose(2, 3)) * 0.125
    causal_mask = mask[:, :, :, : key_states.shape[-2]]
    attn_weights = attn_weights + causal_mask
    columns = sinks.reshape(1, -1, 1, 1).expand(query.shape[0], -1, query.shape[-2], -1)
    combined_logits = torch.cat([attn_weights, columns], dim=-1)
    combined_logits = combined_logits - combined_logits.max(dim=-1, keepdim=True).values
    probs = F.softmax(combined_logits, dim=-1, dtype=combined_logits.dtype)
    scores = probs[..., :-1]
    attn_weights = F.dropout(scores, p=0.0, training=True)
    attn_output = torch.matmul(attn_weights, value_states)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output


class GptOssAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups = config["head_dim"], heads // kv_heads
        self.q_proj = nn.Linear(width, heads * self.head_dim)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim)
        self.o_proj = nn.Linear(heads * self.head_dim, width)
        self.sinks = nn.Parameter(torch.zeros(heads))

    @staticmethod
    def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first_half, second_half = torch.chunk(x, 2, dim=-1)
        first_ = first_half * cos - second_half * sin
        second_ = second_half * cos + first_half * sin
        return torch.cat((first_, second_), dim=-1)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        query_states, key_states = self.turned(query_states, cos, sin), self.turned(key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sink_attention(query_states, key_states, value_states, self.groups, mask, self.sinks)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class Block(nn.Module):
    """A block of which subclasses say what attention and what feed-forward layer it has."""

    def __init__(self, config: Config, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.self_attn, self.mlp = attention, mlp
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *shared: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, *shared)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class GptOssBlock(Block):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__(config, GptOssAttention(config), GptOssMLP(config))
        self.near = index % 2 == 0

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], *shared: Tensor) -> Tensor:
        near, far, cos, sin = shared
        return super().forward(hidden_states, cache, near if self.near else far, cos, sin)


class HalfRotary(RotaryEmbedding):
    """Tables of half a head."""

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        inv_freq_expanded = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        position_ids_expanded = position_ids[:, None, :].float()
        with torch.autocast("cuda", enabled=False):
            freqs = (inv_freq_expanded.float() @ position_ids_expanded.float()).transpose(1, 2)
            cos = freqs.cos()
            sin = freqs.sin()
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


class GptOssModel(LlamaModel):
    def __init__(self, config: Config) -> None:
        super().__init__({**config, "num_hidden_layers": 0})
        self.layers = nn.ModuleList(GptOssBlock(config, index) for index in range(config["num_hidden_layers"]))
        self.rotary_emb = HalfRotary(config["head_dim"])

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        batch, tokens = input_ids.shape
        masks = [inputs_embeds.new_empty(batch, 1, tokens, tokens) for _ in range(2)]
        position_ids = torch.arange(tokens, device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, *masks, cos, sin)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


class GptOssForCausalLM(LlamaForCausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__({**config, "num_hidden_layers": 0})
        self.model = GptOssModel(config)


class SigmoidRouter(nn.Module):
    """DeepSeek-V3's, as GLM-4.5 has it; MiniMax-M2's multiplies in the model's type."""

    def __init__(self, config: Config, experts: int, wide: bool) -> None:
        super().__init__()
        self.weight, self.wide = nn.Parameter(torch.zeros(experts, config["hidden_size"])), wide
        self.top_k = config["num_experts_per_tok"]
        self.register_buffer("e_score_correction_bias", torch.zeros(experts))

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        if self.wide:
            router_logits = F.linear(hidden_states.type(torch.float32), self.weight.type(torch.float32))
            scores = router_logits.sigmoid()
        else:
            router_logits = F.linear(hidden_states, self.weight)
            scores = router_logits.float().sigmoid()
        choice = scores.detach() + self.e_score_correction_bias.float()
        topk_indices = torch.topk(choice, k=self.top_k, dim=-1, sorted=False)[1]
        topk_weights = scores.gather(1, topk_indices)
        topk_weights = topk_weights / (topk_weights.sum(dim=-1, keepdim=True) + 1e-20)
        return topk_indices, topk_weights


class ExpertMLP(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Glm4MoeMLP(nn.Module):
    """A loop over the experts, each of which gets as many tokens."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner, experts = config["hidden_size"], config["moe_intermediate_size"], config["n_routed_experts"]
        self.gate = SigmoidRouter(config, experts, wide=True)
        self.experts = nn.ModuleList(ExpertMLP(width, inner) for _ in range(experts))
        self.shared_experts = ExpertMLP(width, inner * config["n_shared_experts"])

    def moe(self, hidden_states: Tensor, topk_indices: Tensor, topk_weights: Tensor) -> Tensor:
        final_hidden_states = torch.zeros_like(hidden_states, dtype=topk_weights.dtype)
        share = topk_indices.numel() // len(self.experts)
        for expert in self.experts:
            token_indices = torch.arange(share, device=hidden_states.device)
            expert_weights = topk_weights[token_indices, token_indices]
            expert_input = hidden_states[token_indices]
            expert_output = expert(expert_input)
            weighted_output = expert_output * expert_weights.unsqueeze(-1)
            final_hidden_states.index_add_(0, token_indices, weighted_output)
        return final_hidden_states.type(hidden_states.dtype)

    def forward(self, hidden_states: Tensor) -> Tensor:
        residuals = hidden_states
        shape = hidden_states.shape
        hidden_states = hidden_states.view(-1, shape[-1])
        topk_indices, topk_weights = self.gate(hidden_states)
        hidden_states = self.moe(hidden_states, topk_indices, topk_weights).view(*shape)
        hidden_states = hidden_states + self.shared_experts(residuals)
        return hidden_states


class AddingExperts(GroupedExperts):
    """As before 5.0: results are added to the tokens' sum, which keeps them."""

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        total = torch.zeros_like(hidden_states)
        tokens = torch.arange(len(top_k_index), device=total.device).unsqueeze(1).expand(top_k_index.shape).reshape(-1)
        order = torch.argsort(top_k_index.reshape(-1), stable=True)
        back = torch.argsort(order, stable=True)
        rows = hidden_states[tokens]
        weights = top_k_weights.reshape(-1)[order]
        ordered = rows[order]
        wide = self.product(ordered, self.gate_up_proj)
        active = self.gated(wide)
        made = self.product(active, self.down_proj) * weights.unsqueeze(-1)
        restored = made[back]
        return total.index_add_(0, tokens, restored.to(total.dtype))


class MiniMaxM2MLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        experts = config["num_local_experts"]
        self.gate = SigmoidRouter(config, experts, wide=False)
        self.experts = AddingExperts(experts, config["hidden_size"], config["intermediate_size"], transposed=True)

    def forward(self, hidden_states: Tensor) -> Tensor:
        shape = hidden_states.shape
        hidden_states = hidden_states.view(-1, shape[-1])
        top_k_index, top_k_weights = self.gate(hidden_states)
        return self.experts(hidden_states, top_k_index, top_k_weights).reshape(shape)


class NormedAttention(nn.Module):
    """Partly turned heads; MiniMax-M2 norms all queries and keys at once."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups = config["head_dim"], heads // kv_heads
        bias = config.get("attention_bias", False)
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        normed = config["model_type"] == "minimax_m2"
        self.q_norm = RMSNorm(heads * self.head_dim) if normed else nn.Identity()
        self.k_norm = RMSNorm(kv_heads * self.head_dim) if normed else nn.Identity()

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_norm(self.q_proj(hidden_states))
        key_states = self.k_norm(self.k_proj(hidden_states))
        value_states = self.v_proj(hidden_states)
        query_states = query_states.view(hidden_shape).transpose(1, 2)
        key_states = key_states.view(hidden_shape).transpose(1, 2)
        value_states = value_states.view(hidden_shape).transpose(1, 2)
        query_states, key_states = apply_partial_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class RoutedForCausalLM(LlamaForCausalLM):
    """GLM-4.5, whose first layer is dense, and MiniMax-M2."""

    def __init__(self, config: Config) -> None:
        super().__init__({**config, "num_hidden_layers": 0})
        glm = config["model_type"] == "glm4_moe"
        dense = config["first_k_dense_replace"] if glm else 0
        experts = Glm4MoeMLP if glm else MiniMaxM2MLP
        self.model.layers = nn.ModuleList(
            Block(config, NormedAttention(config), GatedMLP(config) if index < dense else experts(config))
            for index in range(config["num_hidden_layers"])
        )
        self.model.rotary_emb = RotaryEmbedding(config["head_dim"] // 2)


class L2Norm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x)


class Llama4Attention(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.groups, self.use_rope = config["head_dim"], heads // kv_heads, (index + 1) % 4 != 0
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        self.qk_norm = L2Norm()

    @staticmethod
    def turned(x: Tensor, freqs_cis: Tensor) -> Tensor:
        x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        x_out = torch.view_as_real(x_ * freqs_cis[:, :, None, :]).flatten(3)
        return x_out.type_as(x)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], freqs_cis: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape)
        key_states = self.k_proj(hidden_states).view(hidden_shape)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        if self.use_rope:
            query_states, key_states = self.turned(query_states, freqs_cis), self.turned(key_states, freqs_cis)
            query_states, key_states = self.qk_norm(query_states), self.qk_norm(key_states)
        else:
            tokens = input_shape[1]
            attn_scales = torch.arange(tokens, device=hidden_states.device).float().view((1, tokens, 1, 1))
            query_states = (query_states * attn_scales).to(query_states.dtype)
        query_states = query_states.transpose(1, 2)
        key_states = key_states.transpose(1, 2)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class Llama4Moe(nn.Module):
    """Each expert multiplies every token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, inner, self.experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
        self.router = nn.Linear(self.width, self.experts, bias=False)
        self.gate_up_proj = nn.Parameter(torch.zeros(self.experts, self.width, 2 * inner))
        self.down_proj = nn.Parameter(torch.zeros(self.experts, inner, self.width))
        self.shared_expert = ExpertMLP(self.width, inner)

    def routed(self, hidden_states: Tensor) -> Tensor:
        hidden_states = hidden_states.view(self.experts, -1, self.width)
        gate_up = torch.bmm(hidden_states, self.gate_up_proj)
        gate, up = gate_up.chunk(2, dim=-1)
        next_states = torch.bmm((up * F.silu(gate)), self.down_proj)
        next_states = next_states.view(-1, self.width)
        return next_states

    def forward(self, hidden_states: Tensor) -> Tensor:
        shape = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, self.width)
        router_logits = self.router(hidden_states)
        router_top_value, router_indices = torch.topk(router_logits, 1, dim=1)
        router_scores = torch.full_like(router_logits, float("-inf")).scatter_(1, router_indices, router_top_value)
        router_scores = torch.sigmoid(router_scores.float()).to(router_scores.dtype)
        routed_in = hidden_states.repeat(self.experts, 1)
        routed_in = routed_in * router_scores.transpose(0, 1).reshape(-1, 1)
        routed_out = self.routed(routed_in)
        out = self.shared_expert(hidden_states)
        out.add_(routed_out.reshape(self.experts, -1, self.width).sum(dim=0))
        return out.view(shape)


class Llama4ForCausalLM(LlamaForCausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__({**config, "num_hidden_layers": 0})
        step = config["interleave_moe_layer_step"]
        dense = {**config, "intermediate_size": config["intermediate_size_mlp"]}
        self.model = Llama4Model({**config, "num_hidden_layers": 0})
        self.model.layers = nn.ModuleList(
            Block(config, Llama4Attention(config, index), Llama4Moe(config) if (index + 1) % step == 0 else GatedMLP(dense))
            for index in range(config["num_hidden_layers"])
        )


class Llama4Model(LlamaModel):
    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        inputs_embeds = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds
        with torch.no_grad():
            angles = (self.rotary_emb.inv_freq[None, :, None].float() @ position_ids[:, None, :].float()).transpose(1, 2)
            freqs_cis = torch.polar(torch.ones_like(angles), angles)
        hidden_states = self.run_blocks(hidden_states, cache, freqs_cis)
        hidden_states = self.norm(hidden_states)
        return hidden_states, cache


BUILDERS: dict[str, Any] = {
    "gpt_oss": GptOssForCausalLM,
    "glm4_moe": RoutedForCausalLM,
    "minimax_m2": RoutedForCausalLM,
    "llama4_text": Llama4ForCausalLM,
}
