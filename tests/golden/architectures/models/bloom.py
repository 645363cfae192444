"""BLOOM: ALiBi, attention written out."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoders import PlainMLP
from .layers import Body, Cache, CausalLM, Config, Outputs


class Gelu(torch.autograd.Function):
    """Tanh's approximation, written out in one function of autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        tanh = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        slope = 0.5 * x * ((1 - tanh * tanh) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + tanh)
        return slope * gradient


class BloomAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config["hidden_size"], config["n_head"]
        self.head_dim = width // self.heads
        self.query_key_value, self.dense = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attention_dropout, self.hidden_dropout = nn.Dropout(config["attention_dropout"]), config["hidden_dropout"]

    def forward(self, hidden_states: Tensor, residual: Tensor, alibi: Tensor, mask: Tensor, cache: Optional[Cache]) -> Tensor:
        batch, tokens, width = hidden_states.shape
        fused_qkv = self.query_key_value(hidden_states)
        fused_qkv = fused_qkv.view(batch, tokens, self.heads, 3, self.head_dim)
        query_layer = fused_qkv[..., 0, :].transpose(1, 2)
        key_layer = fused_qkv[..., 1, :].transpose(1, 2)
        value_layer = fused_qkv[..., 2, :].transpose(1, 2)
        if cache is not None:
            cache.append((key_layer, value_layer))
        query_layer = query_layer.reshape(batch * self.heads, -1, self.head_dim)
        key_layer = key_layer.reshape(batch * self.heads, -1, self.head_dim).transpose(-1, -2)
        value_layer = value_layer.reshape(batch * self.heads, -1, self.head_dim)
        attention_scores = alibi.baddbmm(batch1=query_layer, batch2=key_layer, beta=1.0, alpha=0.125)
        attn_weights = attention_scores.view(batch, self.heads, tokens, -1)
        attn_weights = attn_weights + mask
        attention_probs = F.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_layer.dtype)
        attention_probs = self.attention_dropout(attention_probs)
        attention_probs_reshaped = attention_probs.view(batch * self.heads, tokens, -1)
        context_layer = torch.bmm(attention_probs_reshaped, value_layer)
        x = context_layer.view(batch, self.heads, tokens, self.head_dim)
        context_layer = x.permute(0, 2, 1, 3).reshape(batch, tokens, width)
        output_tensor = self.dense(context_layer)
        out = F.dropout(output_tensor, p=self.hidden_dropout)
        return residual + out


class BloomBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attention = BloomAttention(config)
        self.mlp = PlainMLP({**config, "intermediate_size": 4 * width, "hidden_act": "gelu"}, config["hidden_dropout"])
        self.mlp.act = Gelu.apply

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], alibi: Tensor, mask: Tensor) -> Tensor:
        layernorm_output = self.input_layernorm(hidden_states)
        residual = hidden_states
        attention_output = self.self_attention(layernorm_output, residual, alibi, mask, cache)
        layernorm_output = self.post_attention_layernorm(attention_output)
        residual = attention_output
        return residual + self.mlp(layernorm_output)


class BloomModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config["hidden_size"], config["n_head"]
        self.word_embeddings, self.word_embeddings_layernorm = nn.Embedding(config["vocab_size"], width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(BloomBlock(config) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        batch, tokens = input_ids.shape
        cache: Optional[Cache] = None if self.checkpointing else []
        inputs_embeds = self.word_embeddings(input_ids)
        hidden_states = self.word_embeddings_layernorm(inputs_embeds)
        dtype, device = inputs_embeds.dtype, input_ids.device
        alibi = torch.zeros(batch * self.heads, 1, tokens, dtype=hidden_states.dtype, device=device)
        mask = torch.zeros(batch, 1, tokens, tokens, dtype=dtype, device=device)
        hidden_states = self.run_blocks(hidden_states, cache, alibi, mask)
        hidden_states = self.ln_f(hidden_states)
        return hidden_states, cache


class BloomForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, BloomModel(config), config["hidden_size"])
        self.tie(self.model.word_embeddings)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        lm_logits = self.lm_head(hidden_states)
        shift_logits = lm_logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        batch, tokens, vocabulary = shift_logits.shape
        loss = F.cross_entropy(shift_logits.view(batch * tokens, vocabulary), shift_labels.view(batch * tokens))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache)


BUILDERS = {"bloom": BloomForCausalLM}
