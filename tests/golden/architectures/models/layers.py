"""What the models share: norms, rotary positions, attention, the loss of a causal language model."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Config = dict[str, Any]
Cache = list[tuple[Tensor, Tensor]]


class Outputs(NamedTuple):
    """What a model hands out. The training script's name for it lives on until the next step."""

    loss: Optional[Tensor] = None
    logits: Optional[Tensor] = None
    past_key_values: Optional[Cache] = None
    hidden: Optional[Tensor] = None


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden_states: Tensor) -> Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + 1e-6)
        return self.weight * hidden_states.to(input_dtype)


class RotaryEmbedding(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, width, 2).float() / width)), persistent=False)

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        inv_freq_expanded = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        position_ids_expanded = position_ids[:, None, :].float()
        with torch.autocast("cuda", enabled=False):
            freqs = (inv_freq_expanded.float() @ position_ids_expanded.float()).transpose(1, 2)
            emb = torch.cat((freqs, freqs), dim=-1)
            cos = emb.cos()
            sin = emb.sin()
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


def rotate_half(x: Tensor) -> Tensor:
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


def apply_partial_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    width = cos.shape[-1]
    query_rot, query_pass = q[..., :width], q[..., width:]
    key_rot, key_pass = k[..., :width], k[..., width:]
    query_rot, key_rot = apply_rotary(query_rot, key_rot, cos, sin)
    query_states = torch.cat((query_rot, query_pass), dim=-1)
    key_states = torch.cat((key_rot, key_pass), dim=-1)
    return query_states, key_states


def repeat_kv(hidden_states: Tensor, n_rep: int) -> Tensor:
    batch, heads, tokens, width = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None, :, :].expand(batch, heads, n_rep, tokens, width)
    return hidden_states.reshape(batch, heads * n_rep, tokens, width)


def sdpa_attention(
    query: Tensor, key: Tensor, value: Tensor, groups: int, dropout: float, mask: Optional[Tensor] = None
) -> Tensor:
    key = repeat_kv(key, groups)
    value = repeat_kv(value, groups)
    query = query.contiguous()
    key = key.contiguous()
    value = value.contiguous()
    attn_output = F.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal=mask is None)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output


ACTIVATIONS = {
    "silu": F.silu,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": functools.partial(F.gelu, approximate="tanh"),
    "gelu_new": lambda x: 0.5
    * x
    * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0)))),
}


class GatedMLP(nn.Module):
    def __init__(self, config: Config, bias: bool = False) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)
        self.act_fn = ACTIVATIONS[config.get("hidden_act", config.get("hidden_activation", "silu"))]

    def forward(self, x: Tensor) -> Tensor:
        down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return down_proj


def causal_lm_loss(logits: Tensor, labels: Tensor, vocabulary: int) -> Tensor:
    logits = logits.float()
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    shift_logits = shift_logits.view(-1, vocabulary)
    shift_labels = shift_labels.view(-1)
    shift_labels = shift_labels.to(shift_logits.device)
    loss = F.cross_entropy(shift_logits, shift_labels, ignore_index=-100)
    return loss


def with_present(layer: nn.Module, hidden_states: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    present: Cache = []
    hidden_states = layer(hidden_states, present, *arguments)
    return (hidden_states, *present)


class Body(nn.Module):
    """Embeddings, blocks, norm; subclasses say how they are made. checkpointing: as gradient_checkpointing_enable()."""

    checkpointing = False
    caches_always = False  # also where blocks are checkpointed, which return their keys and values then

    def run_blocks(self, hidden_states: Tensor, cache: Optional[Cache], *arguments: Any) -> Tensor:
        for layer in self.layers:
            if self.checkpointing and cache is not None:
                hidden_states, *present = checkpoint(with_present, layer, hidden_states, *arguments, use_reentrant=False)
                cache.extend(present)
            elif self.checkpointing:
                hidden_states = checkpoint(layer.__call__, hidden_states, None, *arguments, use_reentrant=False)
            else:
                hidden_states = layer(hidden_states, cache, *arguments)
        return hidden_states


class CausalLM(nn.Module):
    """A body and a language model's head."""

    def __init__(self, config: Config, model: Body, width: int, bias: bool = False) -> None:
        super().__init__()
        self.config, self.model = config, model
        self.vocabulary = config["vocab_size"]
        self.lm_head = nn.Linear(width, self.vocabulary, bias=bias)

    def tie(self, embedding: nn.Embedding) -> None:
        self.lm_head.weight = embedding.weight

    def changed(self, logits: Tensor) -> Tensor:
        return logits

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        logits = self.changed(self.lm_head(hidden_states))
        loss = causal_lm_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits, past_key_values=cache)
