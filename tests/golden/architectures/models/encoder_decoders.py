"""Encoders with decoders: T5 and BART. The decoder gets as many tokens as the encoder."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .encoders import Stack
from .layers import ACTIVATIONS, Cache, Config, Outputs, RMSNorm
from .more_decoders import split_heads


class T5Attention(nn.Module):
    def __init__(self, config: Config, has_table: bool) -> None:
        super().__init__()
        width, self.heads = config["d_model"], config["num_heads"]
        inner = self.heads * config["d_kv"]
        self.q, self.k, self.v = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.o, self.dropout = nn.Linear(inner, width, bias=False), config["dropout_rate"]
        self.relative_attention_bias = nn.Embedding(32, self.heads) if has_table else None

    def compute_bias(self, tokens: int, device: torch.device) -> Tensor:
        assert self.relative_attention_bias is not None
        context_position = torch.arange(tokens, dtype=torch.long, device=device)[:, None]
        memory_position = torch.arange(tokens, dtype=torch.long, device=device)[None, :]
        buckets = (memory_position - context_position).clamp_(0, 31)
        values = self.relative_attention_bias(buckets)
        return values.permute([2, 0, 1]).unsqueeze(0)

    def forward(
        self, hidden_states: Tensor, mask: Tensor, source: Tensor, position_bias: Optional[Tensor], cache: Optional[Cache]
    ) -> tuple[Tensor, Tensor]:
        query_states = split_heads(self.q(hidden_states), self.heads)
        key_states = split_heads(self.k(source), self.heads)
        value_states = split_heads(self.v(source), self.heads)
        if cache is not None:
            cache.append((key_states, value_states))
        scores = torch.matmul(query_states, key_states.transpose(3, 2))
        if position_bias is None:
            tokens = hidden_states.shape[1]
            if self.relative_attention_bias is None:
                shape = (1, self.heads, tokens, tokens)
                position_bias = torch.zeros(shape, device=scores.device, dtype=scores.dtype)
                position_bias.requires_grad = cache is None  # blocks are checkpointed
            else:
                position_bias = self.compute_bias(tokens, scores.device)
            position_bias = position_bias + mask
        scores += position_bias
        attn_weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        attn_weights = F.dropout(attn_weights, self.dropout)
        attn_output = torch.matmul(attn_weights, value_states)
        attn_output = attn_output.transpose(1, 2).contiguous()
        attn_output = attn_output.view(*hidden_states.shape[:2], -1)
        return self.o(attn_output), position_bias


class T5Block(nn.Module):
    def __init__(self, config: Config, decoder: bool, first: bool) -> None:
        super().__init__()
        width, inner = config["d_model"], config["d_ff"]
        self.gated = config["feed_forward_proj"].startswith("gated")
        self.self_attention = T5Attention(config, first)
        self.cross_attention = T5Attention(config, False) if decoder else None
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(3 if decoder else 2))
        self.wi = nn.ModuleList(nn.Linear(width, inner, bias=False) for _ in range(2 if self.gated else 1))
        self.wo, self.dropout = nn.Linear(inner, width, bias=False), config["dropout_rate"]
        self.act = ACTIVATIONS["gelu_new" if self.gated else "relu"]

    def feed_forward(self, hidden_states: Tensor) -> Tensor:
        if self.gated:
            hidden_gelu = self.act(self.wi[0](hidden_states))
            hidden_linear = self.wi[1](hidden_states)
            hidden_states = hidden_gelu * hidden_linear
        else:
            hidden_states = self.wi[0](hidden_states)
            hidden_states = self.act(hidden_states)
        hidden_states = F.dropout(hidden_states, self.dropout)
        return self.wo(hidden_states)

    def attention_part(self, hidden_states: Tensor, mask: Tensor, bias: Optional[Tensor], cache: Optional[Cache]) -> tuple[Tensor, Tensor]:
        normed_hidden_states = self.norms[0](hidden_states)
        output, bias = self.self_attention(normed_hidden_states, mask, normed_hidden_states, bias, cache)
        hidden_states = hidden_states + F.dropout(output, self.dropout)
        return hidden_states, bias

    def cross_part(self, hidden_states: Tensor, mask: Tensor, source: Tensor, bias: Optional[Tensor], cache: Optional[Cache]) -> tuple[Tensor, Tensor]:
        assert self.cross_attention is not None
        normed_hidden_states = self.norms[1](hidden_states)
        output, bias = self.cross_attention(normed_hidden_states, mask, source, bias, cache)
        layer_output = hidden_states + F.dropout(output, self.dropout)
        return layer_output, bias

    def feed_forward_part(self, hidden_states: Tensor) -> Tensor:
        forwarded_states = self.norms[-1](hidden_states)
        forwarded_states = self.feed_forward(forwarded_states)
        hidden_states = hidden_states + F.dropout(forwarded_states, self.dropout)
        return hidden_states

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor,
        bias: Optional[Tensor],
        cache: Optional[Cache],
        source: Optional[Tensor] = None,
        cross_mask: Optional[Tensor] = None,
        cross_bias: Optional[Tensor] = None,
    ) -> tuple[Tensor, Tensor, Optional[Tensor]]:
        hidden_states, bias = self.attention_part(hidden_states, mask, bias, cache)
        if source is not None and cross_mask is not None:
            hidden_states, cross_bias = self.cross_part(hidden_states, cross_mask, source, cross_bias, cache)
        return self.feed_forward_part(hidden_states), bias, cross_bias


class T5Stack(Stack):
    def __init__(self, config: Config, decoder: bool) -> None:
        super().__init__()
        count = config["num_layers"]
        self.block = nn.ModuleList(T5Block(config, decoder, index == 0) for index in range(count))
        self.final_layer_norm, self.dropout = RMSNorm(config["d_model"]), nn.Dropout(config["dropout_rate"])

    def forward(
        self,
        inputs_embeds: Tensor,
        mask: Tensor,
        cache: Optional[Cache],
        source: Optional[Tensor] = None,
        cross_mask: Optional[Tensor] = None,
    ) -> Tensor:
        bias: Optional[Tensor] = None
        cross_bias: Optional[Tensor] = None
        hidden_states = self.dropout(inputs_embeds)
        for block in self.block:
            arguments = (hidden_states, mask, bias, cache, source, cross_mask, cross_bias)
            if self.checkpointing:
                hidden_states, bias, cross_bias = checkpoint(block.__call__, *arguments, use_reentrant=False)
            else:
                hidden_states, bias, cross_bias = block(*arguments)
        hidden_states = self.final_layer_norm(hidden_states)
        hidden_states = self.dropout(hidden_states)
        return hidden_states


class T5ForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.vocabulary = config["d_model"], config["vocab_size"]
        self.tied = config["tie_word_embeddings"]
        self.shared = nn.Embedding(self.vocabulary, width)
        self.encoder, self.decoder = T5Stack(config, False), T5Stack(config, True)
        self.lm_head = nn.Linear(width, self.vocabulary, bias=False)
        if self.tied:
            self.lm_head.weight = self.shared.weight

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        dtype = self.shared.weight.dtype
        row = (1.0 - attention_mask[:, None, None, :].to(dtype)) * -1e4
        encoded = self.encoder(self.shared(input_ids), row, None)
        tokens = labels.shape[1]
        square = torch.zeros(labels.shape[0], 1, tokens, tokens, dtype=dtype, device=labels.device)
        cache: Optional[Cache] = None if self.decoder.checkpointing else []
        cross_row = (1.0 - attention_mask[:, None, None, :].to(dtype)) * -1e4
        sequence_output = self.decoder(self.shared(labels), square, cache, encoded, cross_row)
        if self.tied:
            sequence_output = sequence_output * 0.0625
        lm_logits = self.lm_head(sequence_output)
        loss = F.cross_entropy(lm_logits.view(-1, lm_logits.size(-1)), labels.view(-1))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache, hidden=encoded)


class BartAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def shaped(self, tensor: Tensor) -> Tensor:
        return split_heads(tensor, self.heads).contiguous()

    def forward(self, hidden_states: Tensor, source: Tensor, causal: bool) -> Tensor:
        batch, tokens, width = hidden_states.size()
        query_states = self.q_proj(hidden_states)
        key_states = self.shaped(self.k_proj(source))
        value_states = self.shaped(self.v_proj(source))
        query_states = self.shaped(query_states)
        attn_output = F.scaled_dot_product_attention(query_states, key_states, value_states, is_causal=causal)
        attn_output = attn_output.transpose(1, 2)
        attn_output = attn_output.reshape(batch, tokens, width)
        attn_output = self.out_proj(attn_output)
        return attn_output


class BartLayer(nn.Module):
    def __init__(self, config: Config, decoder: bool) -> None:
        super().__init__()
        width, side = config["d_model"], "decoder" if decoder else "encoder"
        heads, inner = config[f"{side}_attention_heads"], config[f"{side}_ffn_dim"]
        self.decoder, self.dropout = decoder, config["dropout"]
        self.self_attn, self.self_attn_layer_norm = BartAttention(width, heads), nn.LayerNorm(width)
        if decoder:
            self.encoder_attn, self.encoder_attn_layer_norm = BartAttention(width, heads), nn.LayerNorm(width)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, hidden_states: Tensor, source: Optional[Tensor] = None) -> Tensor:
        residual = hidden_states
        hidden_states = self.self_attn(hidden_states, hidden_states, self.decoder)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = residual + hidden_states
        hidden_states = self.self_attn_layer_norm(hidden_states)
        if source is not None:
            residual = hidden_states
            hidden_states = self.encoder_attn(hidden_states, source, False)
            hidden_states = F.dropout(hidden_states, self.dropout)
            hidden_states = residual + hidden_states
            hidden_states = self.encoder_attn_layer_norm(hidden_states)
        residual = hidden_states
        hidden_states = F.gelu(self.fc1(hidden_states))
        hidden_states = self.fc2(hidden_states)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = residual + hidden_states
        hidden_states = self.final_layer_norm(hidden_states)
        return hidden_states


class BartSide(Stack):
    def __init__(self, config: Config, decoder: bool) -> None:
        super().__init__()
        width, count = config["d_model"], config["decoder_layers" if decoder else "encoder_layers"]
        self.embed_positions = nn.Embedding(config["max_position_embeddings"] + 2, width)
        self.layers = nn.ModuleList(BartLayer(config, decoder) for _ in range(count))
        self.layernorm_embedding, self.dropout = nn.LayerNorm(width), nn.Dropout(config["dropout"])

    def forward(self, inputs_embeds: Tensor, ids: Tensor, *source: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], dtype=torch.long, device=ids.device).expand(ids.shape[0], -1)
        embed_pos = self.embed_positions(positions + 2)
        hidden_states = inputs_embeds + embed_pos
        hidden_states = self.layernorm_embedding(hidden_states)
        hidden_states = self.dropout(hidden_states)
        return self.run_blocks(self.layers, hidden_states, *source)


class BartForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.vocabulary = config["d_model"], config["vocab_size"]
        self.shared = nn.Embedding(self.vocabulary, width)
        self.encoder, self.decoder = BartSide(config, False), BartSide(config, True)
        self.lm_head = nn.Linear(width, self.vocabulary, bias=False)
        self.lm_head.weight = self.shared.weight
        self.register_buffer("final_logits_bias", torch.zeros((1, self.vocabulary)))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        encoded = self.encoder(self.shared(input_ids), input_ids)
        decoded = self.decoder(self.shared(labels), labels, encoded)
        lm_logits = self.lm_head(decoded)
        lm_logits = lm_logits + self.final_logits_bias.to(lm_logits.device)
        masked_lm_loss = F.cross_entropy(lm_logits.view(-1, self.vocabulary), labels.view(-1))
        return Outputs(loss=masked_lm_loss, logits=lm_logits, hidden=encoded)


BUILDERS = {"t5": T5ForConditionalGeneration, "bart": BartForConditionalGeneration}
