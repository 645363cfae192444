"""The models by name, what they take, and their parameters."""

from __future__ import annotations

import functools

import torch
import torchvision
from torch import nn


class SummaryError(Exception):
    """What was asked for cannot be printed; the text says why."""


class TransformerTagger(nn.Module):
    """Token embeddings, four encoder layers and a linear head."""

    def __init__(self, vocabulary=10000, d_model=256, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead=8, dim_feedforward=4 * d_model, batch_first=True
        )
        # Nested tensors would let the encoder skip its layers' own forward functions.
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


class DataParallel(nn.Module):
    """Named as PyTorch's wrapper, which would move the model to whatever GPUs it finds."""

    def __init__(self, module):
        super().__init__()
        self.module = module


@functools.lru_cache(maxsize=None)
def build_model(name):
    """The model on the meta device, in evaluation mode: torchinfo too switches to that."""
    if name == "transformer_encoder":
        # The exception: there an encoder layer runs as one fused kernel and calls no submodule.
        return TransformerTagger().to("meta").train()
    # No weight is ever read: leave out the initialisations that take seconds.
    slow_to_initialise = name.startswith(("vgg", "inception", "googlenet"))
    options = {"init_weights": False} if slow_to_initialise else {}
    try:
        model = torchvision.models.get_model(name, weights=None, **options)
    except ValueError as error:
        raise SummaryError(f"{error}; torchvision.models.list_models() lists them") from error
    return model.to("meta").eval()


def freeze(model, names):
    """Freezes the parameters of the submodules named, and no others: built models are reused."""
    submodules = dict(model.named_modules())
    for name in names:
        if name not in submodules:
            raise SummaryError(f"--freeze {name}: {type(model).__name__} has no such submodule")
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not any(name.startswith(frozen + ".") for frozen in names)


def default_input(name):
    """One sample's shape: a sequence length for the transformer, channels x height x width else."""
    if name == "transformer_encoder":
        return (128,)
    return (3, 299, 299) if name == "inception_v3" else (3, 224, 224)


def example_input(name, batch, sample_shape):
    dtype = torch.int64 if name == "transformer_encoder" else torch.float32
    return torch.empty((batch, *sample_shape), dtype=dtype, device="meta")


def count_parameters(module):
    """(all, trainable); parameters() yields a shared parameter once.

    All totals are these, also where a tool adds up its rows and so misses or repeats some.
    """
    sizes = [(p.numel(), p.requires_grad) for p in module.parameters()]
    return sum(n for n, _ in sizes), sum(n for n, trainable in sizes if trainable)


def sample_shape(options):
    if options.input is None:
        return default_input(options.model)
    try:
        shape = tuple(int(size) for size in options.input.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise SummaryError(f"--input {options.input}: expected sizes like 3x224x224")
    return shape
