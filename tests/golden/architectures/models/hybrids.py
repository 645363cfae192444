"""Mamba-2 and the text model of Qwen3.5. Their fused kernels do not run here: functions of autograd stand for them, which
make and keep the tensors that the kernels' own functions do.
Source: mamba-ssm 2.2, ops/triton/ssd_combined.py: MambaSplitConv1dScanCombinedFn; causal-conv1d 1.5,
causal_conv1d_interface.py; flash-linear-attention 0.4, ops/gated_delta_rule/chunk.py, modules/fused_norm_gate.py."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .gemma import GemmaRMSNorm
from .layers import (
    Body,
    Cache,
    Config,
    GatedMLP,
    Outputs,
    RMSNorm,
    RotaryEmbedding,
    apply_partial_rotary,
    causal_lm_loss,
    sdpa_attention,
)


def float32(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def passed_on(states: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.empty_like(states, dtype=dtype)


class SplitConv1dScan(torch.autograd.Function):
    """Convolution, scan, gated norm and output projection in one: keeps what it reads, the scan's output and a figure a
    row; the rest is made again."""

    @staticmethod
    def forward(
        ctx: Any, zxbcdt: Tensor, conv_weight: Tensor, conv_bias: Tensor, dt_bias: Tensor, decay: Tensor, skip: Tensor,
        norm_weight: Tensor, out_weight: Tensor, sizes: tuple[int, int, int, int, int],
    ) -> Tensor:
        heads, head_dim, groups, state, chunk = sizes
        batch, tokens, _ = zxbcdt.shape
        chunks = -(-tokens // chunk)
        width = heads * head_dim
        xbc = zxbcdt[..., width : -heads]
        xbc_conv = torch.empty_like(xbc, memory_format=torch.contiguous_format)
        decays, steps = float32(zxbcdt, batch, heads, chunks, chunk), float32(zxbcdt, batch, heads, chunks, chunk)
        states = float32(zxbcdt, batch, chunks, heads, head_dim, state)
        states = passed_on(states, zxbcdt.dtype)
        scores = float32(zxbcdt, batch, chunks, groups, chunk, chunk)
        out_x = zxbcdt.new_empty(batch, tokens, width)
        normed = torch.empty_like(out_x)
        figures = float32(zxbcdt, groups * batch * tokens)
        if torch.is_autocast_enabled():
            lower = torch.get_autocast_gpu_dtype()
            normed, out_weight = normed.to(lower), out_weight.to(lower)
        out = F.linear(normed, out_weight)
        ctx.save_for_backward(
            zxbcdt, conv_weight, conv_bias, out_x, decay, skip, dt_bias, norm_weight, figures, out_weight
        )
        ctx.sizes = sizes
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Optional[Tensor], ...]:
        zxbcdt, conv_weight, conv_bias, out_x, decay, skip, dt_bias, norm_weight, figures, out_weight = ctx.saved_tensors
        heads, head_dim, groups, state, chunk = ctx.sizes
        batch, tokens, _ = zxbcdt.shape
        chunks = -(-tokens // chunk)
        normed = torch.empty_like(out_x)
        xbc_conv = zxbcdt.new_empty(batch, tokens, conv_weight.shape[0])
        gradient = torch.empty_like(zxbcdt)
        dxbc = torch.empty_like(xbc_conv)
        dy = F.linear(dout, out_weight.t())
        dscan = torch.empty_like(dy)
        dnorm = torch.empty_like(norm_weight)
        figure = [float32(zxbcdt, batch, heads, chunks, chunk) for _ in range(2)]
        scores = float32(zxbcdt, batch, chunks, groups, chunk, chunk)
        states = float32(zxbcdt, batch, chunks, heads, head_dim, state)
        states = passed_on(states, torch.float32)
        dstates = torch.empty_like(states)
        dstates, states = passed_on(dstates, zxbcdt.dtype), passed_on(states, zxbcdt.dtype)
        dsteps = float32(zxbcdt, batch, heads, chunks, chunk)
        grouped = [float32(zxbcdt, batch, tokens, groups, state) for _ in range(2)]
        ddecays = [float32(zxbcdt, batch, heads, chunks, chunk) for _ in range(3)]
        dscores = torch.empty_like(scores)
        dout_weight = torch.einsum("bso,bsd->od", dout, normed.to(dout.dtype))
        del figure, states, dstates, dsteps, grouped, ddecays, dscores, scores, dxbc, xbc_conv, dscan, dy
        parameters = (conv_weight, conv_bias, dt_bias, decay, skip)
        return (gradient, *(torch.empty_like(each) for each in parameters), dnorm, dout_weight, None)


class Mamba2Mixer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        heads, head_dim = config["num_heads"], config["head_dim"]
        groups, state = config["n_groups"], config["state_size"]
        width = heads * head_dim
        convolved = width + 2 * groups * state
        self.sizes = (heads, head_dim, groups, state, config["chunk_size"])
        self.conv1d = nn.Conv1d(convolved, convolved, config["conv_kernel"], groups=convolved)
        self.in_proj = nn.Linear(config["hidden_size"], width + convolved + heads, bias=False)
        self.dt_bias, self.A_log, self.D = (nn.Parameter(torch.ones(heads)) for _ in range(3))
        self.norm = RMSNorm(width)
        self.out_proj = nn.Linear(width, config["hidden_size"], bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        projected_states = self.in_proj(hidden_states)
        decay = -torch.exp(self.A_log.float())
        return SplitConv1dScan.apply(
            projected_states, self.conv1d.weight.squeeze(1), self.conv1d.bias, self.dt_bias, decay, self.D,
            self.norm.weight, self.out_proj.weight, self.sizes,
        )


class Mamba2Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.residual_in_fp32 = config["residual_in_fp32"]
        self.norm = RMSNorm(config["hidden_size"])
        self.mixer = Mamba2Mixer(config)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        residual = hidden_states
        hidden_states = self.norm(hidden_states.to(dtype=self.norm.weight.dtype))
        if self.residual_in_fp32:
            residual = residual.to(torch.float32)
        hidden_states = self.mixer(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class Mamba2Model(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Mamba2Block(config) for _ in range(config["num_hidden_layers"]))
        self.norm_f = RMSNorm(config["hidden_size"])

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden_states = self.run_blocks(self.embeddings(input_ids), None)
        return self.norm_f(hidden_states)


class Mamba2ForCausalLM(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.vocabulary = config["vocab_size"]
        self.backbone = Mamba2Model(config)
        self.lm_head = nn.Linear(config["hidden_size"], self.vocabulary, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.backbone(input_ids)
        logits = self.lm_head(hidden_states.to(self.lm_head.weight.dtype))
        loss = causal_lm_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits)


class CausalConv1d(torch.autograd.Function):
    """Channels lie innermost, as in its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        dout = dout if dout.stride(1) == 1 else dout.contiguous()
        dweight = float32(x, *weight.shape)
        return torch.empty_like(x), dweight.to(weight.dtype)


class ChunkGatedDeltaRule(torch.autograd.Function):
    CHUNK = 64

    @staticmethod
    def representation(k: Tensor, v: Tensor, chunk: int) -> tuple[Tensor, ...]:
        """w and u, each chunk's state, and the new values."""
        batch, tokens, heads, width = k.shape
        w, u = torch.empty_like(k), torch.empty_like(v)
        states = k.new_empty(batch, -(-tokens // chunk), heads, width, v.shape[-1])
        return w, u, states, torch.empty_like(u)

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
        q, k, v, g, beta = (each.contiguous() for each in (q, k, v, g, beta))
        chunk = ChunkGatedDeltaRule.CHUNK
        batch, tokens, heads, _ = q.shape
        q, q_figures = torch.empty_like(q), float32(q, batch, tokens, heads)
        k, k_figures = torch.empty_like(k), float32(k, batch, tokens, heads)
        g = torch.empty_like(g)
        system = float32(q, batch, tokens, heads, chunk)
        system = torch.empty_like(system, dtype=k.dtype)
        w, u, states, v_new = ChunkGatedDeltaRule.representation(k, v, chunk)
        out = torch.empty_like(v_new)
        ctx.save_for_backward(q, q_figures, k, k_figures, v, g, beta, system)
        return out

    @staticmethod
    def backward(ctx: Any, do: Tensor) -> tuple[Tensor, ...]:
        q, q_figures, k, k_figures, v, g, beta, system = ctx.saved_tensors
        do = do.contiguous()
        w, u, states, v_new = ChunkGatedDeltaRule.representation(k, v, ChunkGatedDeltaRule.CHUNK)
        dv = torch.empty_like(do)
        dstates, dv = torch.empty_like(states), torch.empty_like(dv)
        dq, dk, dw, dg = torch.empty_like(q), torch.empty_like(k), torch.empty_like(w), torch.empty_like(g)
        dk2, dv, dbeta, dg2 = torch.empty_like(k), torch.empty_like(v), torch.empty_like(beta), torch.empty_like(g)
        dk.add_(dk2)
        dg.add_(dg2)
        dg = torch.empty_like(dg)
        del w, u, states, dstates, v_new, dw, dk2, dg2
        return torch.empty_like(dq), torch.empty_like(dk), dv, dg, dbeta


class NormGated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
        figures = float32(x, x.shape[0])
        ctx.save_for_backward(x, gate, weight, figures)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, ...]:
        x, gate, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(gate), torch.empty_like(weight)


class GatedDeltaNet(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.k_heads, self.v_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
        self.k_dim, self.v_dim = config["linear_key_head_dim"], config["linear_value_head_dim"]
        self.key_size, self.value_size = self.k_heads * self.k_dim, self.v_heads * self.v_dim
        convolved = 2 * self.key_size + self.value_size
        self.conv1d = nn.Conv1d(convolved, convolved, 4, groups=convolved, bias=False)
        self.dt_bias, self.A_log = nn.Parameter(torch.ones(self.v_heads)), nn.Parameter(torch.ones(self.v_heads))
        self.norm = RMSNorm(self.v_dim)
        self.out_proj = nn.Linear(self.value_size, width, bias=False)
        self.in_proj_qkv = nn.Linear(width, convolved, bias=False)
        self.in_proj_z = nn.Linear(width, self.value_size, bias=False)
        self.in_proj_b = nn.Linear(width, self.v_heads, bias=False)
        self.in_proj_a = nn.Linear(width, self.v_heads, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, tokens, _ = hidden_states.shape
        mixed_qkv = self.in_proj_qkv(hidden_states).transpose(1, 2)
        z = self.in_proj_z(hidden_states).reshape(batch, tokens, -1, self.v_dim)
        b = self.in_proj_b(hidden_states)
        a = self.in_proj_a(hidden_states)
        mixed_qkv = CausalConv1d.apply(mixed_qkv, self.conv1d.weight.squeeze(1)).transpose(1, 2)
        query, key, value = torch.split(mixed_qkv, [self.key_size, self.key_size, self.value_size], dim=-1)
        query = query.reshape(batch, tokens, -1, self.k_dim)
        key = key.reshape(batch, tokens, -1, self.k_dim)
        value = value.reshape(batch, tokens, -1, self.v_dim)
        beta = b.sigmoid()
        g = -self.A_log.float().exp() * F.softplus(a.float() + self.dt_bias)
        if self.v_heads > self.k_heads:
            query = query.repeat_interleave(self.v_heads // self.k_heads, dim=2)
            key = key.repeat_interleave(self.v_heads // self.k_heads, dim=2)
        core = ChunkGatedDeltaRule.apply(query, key, value, g, beta)
        core = NormGated.apply(core.reshape(-1, self.v_dim), z.reshape(-1, self.v_dim), self.norm.weight)
        return self.out_proj(core.reshape(batch, tokens, -1))


class GatedAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        kv_heads = config["num_key_value_heads"]
        self.head_dim, self.groups = config["head_dim"], heads // kv_heads
        self.q_proj = nn.Linear(width, 2 * heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        self.q_norm, self.k_norm = GemmaRMSNorm(self.head_dim), GemmaRMSNorm(self.head_dim)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        both = self.q_proj(hidden_states).view(*input_shape, -1, self.head_dim * 2)
        query_states, gate = torch.chunk(both, 2, dim=-1)
        del both
        gate = gate.reshape(*input_shape, -1)
        query_states = self.q_norm(query_states.view(hidden_shape)).transpose(1, 2)
        key_states = self.k_norm(self.k_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        query_states, key_states = apply_partial_rotary(query_states, key_states, cos, sin)
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = sdpa_attention(query_states, key_states, value_states, self.groups, 0.0)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = attn_output * torch.sigmoid(gate)
        return self.o_proj(attn_output)


class HybridBlock(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        self.attends = (index + 1) % config["full_attention_interval"] == 0
        if self.attends:
            self.self_attn = GatedAttention(config)
        else:
            self.linear_attn = GatedDeltaNet(config)
        self.mlp = GatedMLP(config)
        self.input_layernorm = GemmaRMSNorm(config["hidden_size"])
        self.post_attention_layernorm = GemmaRMSNorm(config["hidden_size"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        if self.attends:
            hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        else:
            hidden_states = self.linear_attn(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class HybridModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(HybridBlock(config, index) for index in range(config["num_hidden_layers"]))
        self.norm = GemmaRMSNorm(config["hidden_size"])
        self.rotary_emb = RotaryEmbedding(int(config["head_dim"] * config["partial_rotary_factor"]))

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        hidden_states = self.embed_tokens(input_ids)
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        hidden_states = self.run_blocks(hidden_states, cache, cos, sin)
        return self.norm(hidden_states), cache


class HybridForCausalLM(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.vocabulary = config["vocab_size"]
        self.model = HybridModel(config)
        self.lm_head = nn.Linear(config["hidden_size"], self.vocabulary, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        logits = self.lm_head(hidden_states)
        loss = causal_lm_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits, past_key_values=cache)


BUILDERS = {"mamba2": Mamba2ForCausalLM, "qwen3_5_text": HybridForCausalLM}
