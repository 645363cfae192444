"""Encoders other than BERT: ELECTRA, ALBERT, DeBERTa-v2, ModernBERT."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .encoders import BertEmbeddings, BertIntermediate, BertLayer, BertOutput, SelfAttention, Stack
from .layers import ACTIVATIONS, Config, Outputs, RotaryEmbedding, apply_rotary


class AlbertLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = SelfAttention(width, config["num_attention_heads"], 0.0)
        self.dense, self.LayerNorm = nn.Linear(width, width), nn.LayerNorm(width)
        self.ffn, self.ffn_output = nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation, self.full_layer_layer_norm = ACTIVATIONS[config["hidden_act"]], nn.LayerNorm(width)

    def attended(self, hidden_states: Tensor) -> Tensor:
        projected_context_layer = self.dense(self.attention(hidden_states))
        return self.LayerNorm(hidden_states + projected_context_layer)

    def forward(self, hidden_states: Tensor) -> Tensor:
        attention_output = self.attended(hidden_states)
        ffn_output = self.ffn(attention_output)
        ffn_output = self.activation(ffn_output)
        ffn_output = self.ffn_output(ffn_output)
        hidden_states = self.full_layer_layer_norm(ffn_output + attention_output)
        return hidden_states


class AlbertForSequenceClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embeddings = BertEmbeddings({**config, "hidden_size": config["embedding_size"]})
        self.mapping = nn.Linear(config["embedding_size"], width)
        self.layer, self.count = AlbertLayer(config), config["num_hidden_layers"]
        self.pooler, self.classifier, self.dropout = nn.Linear(width, width), nn.Linear(width, 2), nn.Dropout(0.1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.mapping(self.embeddings(input_ids, attention_mask))
        hidden_states = self.run_blocks([self.layer] * self.count, hidden_states)
        pooled_output = self.dropout(torch.tanh(self.pooler(hidden_states[:, 0])))
        logits = self.classifier(pooled_output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


class ElectraForSequenceClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embeddings = BertEmbeddings({**config, "hidden_size": config["embedding_size"]})
        self.embeddings_project = nn.Linear(config["embedding_size"], width)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config["num_hidden_layers"]))
        self.dense, self.out_proj = nn.Linear(width, width), nn.Linear(width, 2)
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])

    def head(self, features: Tensor) -> Tensor:
        x = features[:, 0, :]
        x = self.dropout(x)
        x = self.dense(x)
        x = F.gelu(x)
        x = self.dropout(x)
        return self.out_proj(x)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.embeddings_project(self.embeddings(input_ids, attention_mask))
        sequence_output = self.run_blocks(self.layers, hidden_states)
        logits = self.head(sequence_output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


class DisentangledSelfAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.span = config["position_buckets"]
        self.query_proj, self.key_proj, self.value_proj = (nn.Linear(width, width) for _ in range(3))
        self.pos_dropout = nn.Dropout(config["hidden_dropout_prob"])
        self.dropout = nn.Dropout(config["attention_probs_dropout_prob"])

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        x = x.view(*x.shape[:2], self.heads, -1)
        return x.permute(0, 2, 1, 3).contiguous().view(-1, x.size(1), x.size(-1))

    def bias(self, query_layer: Tensor, key_layer: Tensor, relative_pos: Tensor, rel_embeddings: Tensor) -> Tensor:
        att_span = self.span
        rel_embeddings = rel_embeddings[0 : att_span * 2, :].unsqueeze(0)
        times = query_layer.size(0) // self.heads
        pos_query_layer = self.transpose_for_scores(self.query_proj(rel_embeddings)).repeat(times, 1, 1)
        pos_key_layer = self.transpose_for_scores(self.key_proj(rel_embeddings)).repeat(times, 1, 1)
        score: Any = 0
        c2p_att = torch.bmm(query_layer, pos_key_layer.transpose(-1, -2))
        c2p_pos = torch.clamp(relative_pos + att_span, 0, att_span * 2 - 1)
        size = [query_layer.size(0), query_layer.size(1), relative_pos.size(-1)]
        c2p_att = torch.gather(c2p_att, dim=-1, index=c2p_pos.squeeze(0).expand(size))
        score += c2p_att / 8.0
        p2c_pos = torch.clamp(-relative_pos + att_span, 0, att_span * 2 - 1)
        p2c_att = torch.bmm(key_layer, pos_query_layer.transpose(-1, -2))
        p2c_att = torch.gather(p2c_att, dim=-1, index=p2c_pos.squeeze(0).expand(size)).transpose(-1, -2)
        score += p2c_att / 8.0
        return score

    def forward(self, hidden_states: Tensor, attention_mask: Tensor, relative_pos: Tensor, rel_embeddings: Tensor) -> Tensor:
        batch, tokens, width = hidden_states.shape
        query_layer = self.transpose_for_scores(self.query_proj(hidden_states))
        key_layer = self.transpose_for_scores(self.key_proj(hidden_states))
        value_layer = self.transpose_for_scores(self.value_proj(hidden_states))
        attention_scores = torch.bmm(query_layer, key_layer.transpose(-1, -2) / 8.0)
        rel_embeddings = self.pos_dropout(rel_embeddings)
        rel_att = self.bias(query_layer, key_layer, relative_pos, rel_embeddings)
        attention_scores = attention_scores + rel_att
        attention_scores = attention_scores.view(-1, self.heads, tokens, tokens)
        attention_mask = attention_mask.bool()
        attention_scores = attention_scores.masked_fill(~attention_mask, torch.finfo(query_layer.dtype).min)
        attention_probs = F.softmax(attention_scores, dim=-1)
        attention_probs = self.dropout(attention_probs)
        context_layer = torch.bmm(attention_probs.view(-1, tokens, tokens), value_layer)
        context_layer = context_layer.view(-1, self.heads, tokens, width // self.heads).permute(0, 2, 1, 3).contiguous()
        return context_layer.view(batch, tokens, width)


class DebertaLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner, dropout = config["hidden_size"], config["intermediate_size"], config["hidden_dropout_prob"]
        self.attention, self.attention_output = DisentangledSelfAttention(config), BertOutput(width, width, dropout)
        self.intermediate = BertIntermediate(width, inner, config["hidden_act"])
        self.output = BertOutput(inner, width, dropout)

    def forward(self, hidden_states: Tensor, *places: Tensor) -> Tensor:
        attention_output = self.attention_output(self.attention(hidden_states, *places), hidden_states)
        intermediate_output = self.intermediate(attention_output)
        layer_output = self.output(intermediate_output, attention_output)
        return layer_output


class DebertaForSequenceClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.word_embeddings, self.LayerNorm = nn.Embedding(config["vocab_size"], width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])
        self.rel_embeddings = nn.Embedding(2 * config["position_buckets"], width)
        self.rel_norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(DebertaLayer(config) for _ in range(config["num_hidden_layers"]))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def embeddings(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        embeddings = self.LayerNorm(self.word_embeddings(input_ids))
        mask = mask.unsqueeze(2)
        mask = mask.to(embeddings.dtype)
        embeddings = embeddings * mask
        embeddings = self.dropout(embeddings)
        return embeddings

    def encoder(self, hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
        tokens = attention_mask.shape[1]
        extended = attention_mask.unsqueeze(1).unsqueeze(2)
        mask = extended * extended.squeeze(-2).unsqueeze(-1)
        ids = torch.arange(tokens, device=mask.device)
        relative_pos = (ids[:, None] - ids[None, :]).unsqueeze(0)
        rel_embeddings = self.rel_norm(self.rel_embeddings.weight)
        return self.run_blocks(self.layers, hidden_states, mask, relative_pos, rel_embeddings)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        encoder_layer = self.encoder(self.embeddings(input_ids, attention_mask), attention_mask)
        pooled_output = F.gelu(self.pooler(encoder_layer[:, 0]))
        pooled_output = self.dropout(pooled_output)
        logits = self.classifier(pooled_output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


class ModernBertLayer(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads, self.is_global = config["num_attention_heads"], index % config["global_attn_every_n_layers"] == 0
        self.attn_norm = nn.Identity() if index == 0 else nn.LayerNorm(width, bias=False)
        self.mlp_norm = nn.LayerNorm(width, bias=False)
        self.Wqkv, self.attn_Wo = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.Wi, self.Wo = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.rotary_emb = RotaryEmbedding(width // self.heads)

    def sdpa(self, qkv: Tensor, mask: Tensor, position_ids: Tensor) -> Tensor:
        cos, sin = self.rotary_emb(qkv, position_ids)
        query, key, value = qkv.transpose(3, 1).unbind(dim=2)
        query, key = apply_rotary(query, key, cos, sin)
        attn_output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).contiguous()
        return attn_output.view(*qkv.shape[:2], -1)

    def attn(self, hidden_states: Tensor, mask: Tensor, position_ids: Tensor) -> Tensor:
        qkv = self.Wqkv(hidden_states)
        qkv = qkv.view(*hidden_states.shape[:2], 3, self.heads, -1)
        return self.attn_Wo(self.sdpa(qkv, mask, position_ids))

    def mlp(self, hidden_states: Tensor) -> Tensor:
        input, gate = self.Wi(hidden_states).chunk(2, dim=-1)
        return self.Wo(F.gelu(input) * gate)

    def forward(self, hidden_states: Tensor, mask: Tensor, near: Tensor, position_ids: Tensor) -> Tensor:
        attn_outputs = self.attn(self.attn_norm(hidden_states), mask if self.is_global else near, position_ids)
        hidden_states = hidden_states + attn_outputs
        mlp_output = self.mlp(self.mlp_norm(hidden_states))
        hidden_states = hidden_states + mlp_output
        return hidden_states


class ModernBertForMaskedLM(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.vocabulary = config["hidden_size"], config["vocab_size"]
        self.tok_embeddings, self.norm = nn.Embedding(self.vocabulary, width), nn.LayerNorm(width, bias=False)
        self.layers = nn.ModuleList(ModernBertLayer(config, index) for index in range(config["num_hidden_layers"]))
        self.final_norm, self.head_norm = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.dense, self.decoder = nn.Linear(width, width, bias=False), nn.Linear(width, self.vocabulary)
        self.decoder.weight = self.tok_embeddings.weight

    def body(self, input_ids: Tensor) -> Tensor:
        batch, tokens = input_ids.shape
        position_ids = torch.arange(tokens, device=input_ids.device).unsqueeze(0)
        hidden_states = self.norm(self.tok_embeddings(input_ids))
        dtype = self.norm.weight.dtype
        mask = torch.zeros(batch, 1, tokens, tokens, dtype=dtype, device=input_ids.device)
        near = torch.zeros(batch, 1, tokens, tokens, dtype=dtype, device=input_ids.device)
        hidden_states = self.run_blocks(self.layers, hidden_states, mask, near, position_ids)
        return self.final_norm(hidden_states)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        last_hidden_state = self.body(input_ids)
        logits = self.decoder(self.head_norm(F.gelu(self.dense(last_hidden_state))))
        loss = F.cross_entropy(logits.float().view(-1, self.vocabulary), labels.view(-1))
        return Outputs(loss=loss, logits=logits)


BUILDERS: dict[str, Any] = {
    "electra": ElectraForSequenceClassification,
    "albert": AlbertForSequenceClassification,
    "deberta-v2": DebertaForSequenceClassification,
    "modernbert": ModernBertForMaskedLM,
}
