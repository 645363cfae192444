"""The models that are made here, models by name, and a sample of each one's input."""

from __future__ import annotations

import dataclasses
import importlib
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import handle_torch_function, has_torch_function

from .error import ExportError


def scaled_dot_product_attention(query, key, value, dropout_p=0.0, is_causal=False):
    """PyTorch's own where it has one (from 2.0 on), and one operation for the tracer everywhere."""
    if has_torch_function((query, key, value)):
        return handle_torch_function(
            scaled_dot_product_attention,
            (query, key, value),
            query,
            key,
            value,
            dropout_p=dropout_p,
            is_causal=is_causal,
        )
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout_p, is_causal=is_causal
        )
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    return F.dropout(scores.softmax(dim=-1), dropout_p) @ value


def split_heads(x, heads):
    """[N, S, E] -> [N, heads, S, E / heads]"""
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def join_heads(x):
    """[N, heads, S, d] -> [N, S, heads d]"""
    batch, heads, tokens, width = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * width)


class BertLayer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout_p = dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.output_dropout = nn.Dropout(dropout)
        self.output_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.down = nn.Linear(4 * width, width)
        self.down_dropout = nn.Dropout(dropout)
        self.down_norm = nn.LayerNorm(width)

    def forward(self, x):
        attended = join_heads(
            scaled_dot_product_attention(
                split_heads(self.query(x), self.heads),
                split_heads(self.key(x), self.heads),
                split_heads(self.value(x), self.heads),
                dropout_p=self.dropout_p if self.training else 0.0,
            )
        )
        x = self.output_norm(self.output_dropout(self.output(attended)) + x)
        hidden = self.activation(self.up(x))
        return self.down_norm(self.down_dropout(self.down(hidden)) + x)


class BertLike(nn.Module):
    """An encoder of BERT-base's sizes (post-norm) with its pooler and a classifier of sequences."""

    def __init__(self, num_classes=2, vocabulary=30522, positions=512, width=768, layers=12):
        super().__init__()
        dropout = 0.1
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(positions, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(BertLayer(width, width // 64, dropout) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.pooler_activation = nn.Tanh()
        self.pooler_dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, num_classes)
        self.register_buffer("position_ids", torch.arange(positions).unsqueeze(0))
        self.register_buffer("type_ids", torch.zeros(1, positions, dtype=torch.long))

    def forward(self, input_ids):
        batch, tokens = input_ids.shape
        types = self.types(self.type_ids[:, :tokens].expand(batch, tokens))
        x = self.words(input_ids) + types
        x += self.positions(self.position_ids[:, :tokens])
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        pooled = self.pooler_activation(self.pooler(x[:, 0]))
        return self.classifier(self.pooler_dropout(pooled))


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout_p = dropout
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.output_dropout = nn.Dropout(dropout)
        self.mlp_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.activation = nn.GELU(approximate="tanh")
        self.down = nn.Linear(4 * width, width)
        self.down_dropout = nn.Dropout(dropout)

    def forward(self, x):
        query, key, value = self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        attended = join_heads(
            scaled_dot_product_attention(
                split_heads(query, self.heads),
                split_heads(key, self.heads),
                split_heads(value, self.heads),
                dropout_p=self.dropout_p if self.training else 0.0,
                is_causal=True,
            )
        )
        x = x + self.output_dropout(self.output(attended))
        return x + self.down_dropout(self.down(self.activation(self.up(self.mlp_norm(x)))))


class GptLike(nn.Module):
    """A decoder of GPT-2 small's sizes (pre-norm); the head shares the token embedding's weight."""

    def __init__(self, vocabulary=50257, positions=1024, width=768, layers=12):
        super().__init__()
        dropout = 0.1
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(GptBlock(width, width // 64, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("position_ids", torch.arange(positions).unsqueeze(0))

    def forward(self, input_ids):
        tokens = input_ids.shape[1]
        x = self.words(input_ids) + self.positions(self.position_ids[:, :tokens])
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@dataclasses.dataclass(frozen=True)
class Sample:
    """One sample of a model's input, without the batch, and another size to try (or None)."""

    shape: tuple
    other: tuple | None = None
    dtype: torch.dtype = torch.float32

    def tensor(self, batch, other=False):
        shape = self.other if other else self.shape
        return torch.empty((batch, *shape), dtype=self.dtype, device="meta")


IMAGE = Sample((3, 224, 224), (3, 256, 256))
SAMPLES = {
    "bert_like": Sample((128,), (192,), torch.int64),
    "gpt_like": Sample((1024,), (640,), torch.int64),
    "torchvision.inception_v3": Sample((3, 299, 299), (3, 331, 331)),
}


def build_model(name, num_classes=None):
    options = {} if num_classes is None else {"num_classes": num_classes}
    if name == "bert_like":
        return BertLike(**options)
    if name == "gpt_like" and num_classes is not None:
        raise ExportError("gpt_like has no classes")
    if name == "gpt_like":
        return GptLike()
    package, _, attribute = name.rpartition(".")
    try:
        if package == "torchvision":
            return build_torchvision(attribute, options)
        return getattr(importlib.import_module(package), attribute)(**options)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ExportError(
            f"--model {name}: {error}; expected bert_like, gpt_like, torchvision.NAME or "
            "package.module.NAME"
        ) from error


def build_torchvision(name, options):
    import torchvision  # Not needed for other models.

    # No weight is ever read: leave out the initialisations that take seconds.
    if name.startswith(("vgg", "inception", "googlenet")):
        options = {"init_weights": False, **options}
    return torchvision.models.get_model(name, weights=None, **options)
