"""Encoders: BERT, DistilBERT, ViT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .layers import ACTIVATIONS, Config, Outputs
from .more_decoders import split_heads


class Stack(nn.Module):
    """Blocks one after the other. checkpointing: as gradient_checkpointing_enable()."""

    checkpointing = False

    def run_blocks(self, blocks: nn.ModuleList, hidden_states: Tensor, *arguments: Any) -> Tensor:
        for block in blocks:
            if self.checkpointing:
                hidden_states = checkpoint(block.__call__, hidden_states, *arguments, use_reentrant=False)
            else:
                hidden_states = block(hidden_states, *arguments)
        return hidden_states


class SelfAttention(nn.Module):
    """BERT's, DistilBERT's and ViT's: the kernel on views."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, tokens, width = hidden_states.size()
        query_layer = split_heads(self.query(hidden_states), self.heads)
        key_layer = split_heads(self.key(hidden_states), self.heads)
        value_layer = split_heads(self.value(hidden_states), self.heads)
        attn_output = F.scaled_dot_product_attention(query_layer, key_layer, value_layer, dropout_p=self.dropout)
        attn_output = attn_output.transpose(1, 2)
        return attn_output.reshape(batch, tokens, width)


class WrittenOutAttention(SelfAttention):
    """ELECTRA's: no kernel, and the mask is always added."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, tokens, width = hidden_states.size()
        query_layer = split_heads(self.query(hidden_states), self.heads)
        key_layer = split_heads(self.key(hidden_states), self.heads)
        value_layer = split_heads(self.value(hidden_states), self.heads)
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / (width // self.heads) ** 0.5
        attention_mask = torch.zeros(batch, 1, 1, tokens, dtype=hidden_states.dtype, device=hidden_states.device)
        attention_scores = attention_scores + attention_mask
        attention_probs = F.softmax(attention_scores, dim=-1)
        attention_probs = F.dropout(attention_probs, self.dropout)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        return context_layer.view(batch, tokens, width)


class BertOutput(nn.Module):
    def __init__(self, inner: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense, self.dropout, self.LayerNorm = nn.Linear(inner, width), nn.Dropout(dropout), nn.LayerNorm(width)

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        hidden_states = self.dense(hidden_states)
        hidden_states = self.dropout(hidden_states)
        hidden_states = self.LayerNorm(hidden_states + input_tensor)
        return hidden_states


class BertIntermediate(nn.Module):
    def __init__(self, width: int, inner: int, activation: str) -> None:
        super().__init__()
        self.dense, self.act = nn.Linear(width, inner), ACTIVATIONS[activation]

    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states = self.dense(hidden_states)
        hidden_states = self.act(hidden_states)
        return hidden_states


class BertLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner, dropout = config["hidden_size"], config["intermediate_size"], config["hidden_dropout_prob"]
        heads = config["num_attention_heads"]
        attention = WrittenOutAttention if config["model_type"] == "electra" else SelfAttention
        self.attention = attention(width, heads, config["attention_probs_dropout_prob"])
        self.attention_output = BertOutput(width, width, dropout)
        self.intermediate = BertIntermediate(width, inner, config["hidden_act"])
        self.output = BertOutput(inner, width, dropout)

    def forward(self, hidden_states: Tensor) -> Tensor:
        attention_output = self.attention_output(self.attention(hidden_states), hidden_states)
        intermediate_output = self.intermediate(attention_output)
        layer_output = self.output(intermediate_output, attention_output)
        return layer_output


class BertEmbeddings(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], width)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], width)
        self.LayerNorm, self.dropout = nn.LayerNorm(width), nn.Dropout(config["hidden_dropout_prob"])

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        inputs_embeds = self.word_embeddings(input_ids)
        token_type_embeddings = self.token_type_embeddings(token_type_ids)
        embeddings = inputs_embeds + token_type_embeddings
        position_embeddings = self.position_embeddings(position_ids)
        embeddings += position_embeddings
        embeddings = self.LayerNorm(embeddings)
        embeddings = self.dropout(embeddings)
        return embeddings


class BertForSequenceClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config["num_hidden_layers"]))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.embeddings(input_ids, attention_mask)
        hidden_states = self.run_blocks(self.layers, hidden_states)
        pooled_output = torch.tanh(self.pooler(hidden_states[:, 0]))
        pooled_output = self.dropout(pooled_output)
        logits = self.classifier(pooled_output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


class BertForMaskedLM(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.vocabulary = config["hidden_size"], config["vocab_size"]
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config["num_hidden_layers"]))
        self.dense, self.LayerNorm = nn.Linear(width, width), nn.LayerNorm(width)
        self.decoder = nn.Linear(width, self.vocabulary)
        self.decoder.weight = self.embeddings.word_embeddings.weight

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        sequence_output = self.embeddings(input_ids, attention_mask)
        sequence_output = self.run_blocks(self.layers, sequence_output)
        prediction_scores = self.decoder(self.LayerNorm(F.gelu(self.dense(sequence_output))))
        loss = F.cross_entropy(prediction_scores.view(-1, self.vocabulary), labels.view(-1))
        return Outputs(loss=loss, logits=prediction_scores)


class DistilBertBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["dim"]
        self.attention = SelfAttention(width, config["n_heads"], config["attention_dropout"])
        self.out_lin, self.sa_layer_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.lin1, self.lin2 = nn.Linear(width, config["hidden_dim"]), nn.Linear(config["hidden_dim"], width)
        self.output_layer_norm, self.dropout = nn.LayerNorm(width), nn.Dropout(config["dropout"])

    def ffn(self, x: Tensor) -> Tensor:
        x = self.lin1(x)
        x = F.gelu(x)
        x = self.lin2(x)
        x = self.dropout(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        sa_output = self.out_lin(self.attention(x))
        sa_output = self.sa_layer_norm(sa_output + x)
        ffn_output = self.ffn(sa_output)
        ffn_output = self.output_layer_norm(ffn_output + sa_output)
        return ffn_output


class DistilBertForSequenceClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["dim"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], width)
        self.LayerNorm, self.embedding_dropout = nn.LayerNorm(width), nn.Dropout(config["dropout"])
        self.layers = nn.ModuleList(DistilBertBlock(config) for _ in range(config["n_layers"]))
        self.pre_classifier, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)
        self.dropout = nn.Dropout(0.2)

    def embeddings(self, input_ids: Tensor) -> Tensor:
        input_embeds = self.word_embeddings(input_ids)
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        position_embeddings = self.position_embeddings(position_ids)
        embeddings = input_embeds + position_embeddings
        embeddings = self.LayerNorm(embeddings)
        embeddings = self.embedding_dropout(embeddings)
        return embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        embeddings = self.embeddings(input_ids)
        hidden_state = self.run_blocks(self.layers, embeddings)
        del embeddings  # its name ends with the body's function
        pooled_output = hidden_state[:, 0]
        pooled_output = self.pre_classifier(pooled_output)
        pooled_output = F.relu(pooled_output)
        pooled_output = self.dropout(pooled_output)
        logits = self.classifier(pooled_output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


class ViTLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = SelfAttention(width, config["num_attention_heads"], 0.0)
        self.attention_output = nn.Linear(width, width)
        self.intermediate, self.output = BertIntermediate(width, inner, config["hidden_act"]), nn.Linear(inner, width)
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, hidden_states: Tensor) -> Tensor:
        attention_output = self.attention_output(self.attention(self.layernorm_before(hidden_states)))
        hidden_states = attention_output + hidden_states
        layer_output = self.layernorm_after(hidden_states)
        layer_output = self.intermediate(layer_output)
        layer_output = self.output(layer_output) + hidden_states
        return layer_output


class ViTForImageClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, side, patch = config["hidden_size"], config["image_size"], config["patch_size"]
        self.side = side
        self.projection = nn.Conv2d(3, width, patch, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position_embeddings = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList(ViTLayer(config) for _ in range(config["num_hidden_layers"]))
        self.layernorm, self.classifier = nn.LayerNorm(width), nn.Linear(width, config["num_labels"])

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        embeddings = self.projection(pixel_values).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(pixel_values.shape[0], -1, -1)
        embeddings = torch.cat((cls_tokens, embeddings), dim=1)
        embeddings = embeddings + self.position_embeddings
        hidden_states = self.run_blocks(self.layers, embeddings)
        sequence_output = self.layernorm(hidden_states)
        logits = self.classifier(sequence_output[:, 0, :])
        loss = F.cross_entropy(logits, labels)
        return Outputs(loss=loss, logits=logits)


def bert(config: Config) -> nn.Module:
    masked = config["architectures"] == ["BertForMaskedLM"]
    return BertForMaskedLM(config) if masked else BertForSequenceClassification(config)


BUILDERS: dict[str, Callable[[Config], nn.Module]] = {
    "bert": bert,
    "distilbert": DistilBertForSequenceClassification,
    "vit": ViTForImageClassification,
}
