"""Builds the nets of GPUMemNet's data sets from their specs (jobs.py), as gpumem-jobs has them
(src/train/nets.hpp names the source and every architecture's widths). Units: layers, channels, pixels.

A hidden layer of an MLP is linear [, batch norm], activation [, dropout]; a block of a CNN the same with a convolution.
CNNs end in global average pooling, MLPs and CNNs in linear and softmax (sigmoid for one output). Transformers are an
embedding with learned positions, encoder layers, the mean over the tokens, and linear.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from .exporting import scaled_dot_product_attention
from .jobs import Spec, cnn_channels

ACTIVATIONS = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "identity": nn.Identity,
    "leaky_relu": nn.LeakyReLU,
    "mish": nn.Mish,
    "prelu": nn.PReLU,
    "relu": nn.ReLU,
    "selu": nn.SELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}

LEAST_SIDE = 7
"""Residual nets stop to shrink images of this side, in pixels."""


def behind(layer: nn.Module, norm: nn.Module, spec: Spec) -> list[nn.Module]:
    """The layer with what follows it in a hidden block."""
    block = [layer]
    if spec["batch_norm"]:
        block.append(norm)
    block.append(ACTIVATIONS[spec["activation"]]())
    if spec["dropout"]:
        block.append(nn.Dropout(spec["dropout"]))
    return block


def head(width: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(width, outputs), nn.Sigmoid() if outputs == 1 else nn.Softmax(dim=1)]


# ------------------------------------------------------------------------------------------------ MLPs


def hidden_widths(spec: Spec) -> list[int]:
    inputs, outputs, depth, shape = spec["inputs"], spec["outputs"], spec["depth"], spec["shape"]
    step = (inputs - outputs) // depth
    widths, width = [], inputs
    for _ in range(depth + (shape == "bottleneck")):
        if shape == "gradual":
            width = max(width - step, outputs)
        elif shape != "uniform":
            width = max(width // 2, outputs)
        widths.append(width)
    return widths


def mlp(spec: Spec) -> nn.Module:
    layers: list[nn.Module] = []
    width = spec["inputs"]
    for wide in hidden_widths(spec):
        layers += behind(nn.Linear(width, wide), nn.BatchNorm1d(wide), spec)
        width = wide
    return nn.Sequential(*layers, *head(width, spec["outputs"]))


# ------------------------------------------------------------------------------------------------ CNNs


def convolution(channels: int, out: int, spec: Spec, stride: int = 1) -> nn.Sequential:
    kernel = spec["kernel"]
    conv = nn.Conv2d(channels, out, kernel, stride=stride, padding=kernel // 2)
    return nn.Sequential(*behind(conv, nn.BatchNorm2d(out), spec))


class Residual(nn.Module):
    """Two blocks, and a shortcut that is called first; the first block may halve the image."""

    def __init__(self, channels: int, out: int, stride: int, spec: Spec):
        super().__init__()
        self.shortcut = nn.Sequential()
        if channels != out or stride != 1:
            self.shortcut.append(nn.Conv2d(channels, out, 1, stride=stride))
            if spec["batch_norm"]:
                self.shortcut.append(nn.BatchNorm2d(out))
        self.first = convolution(channels, out, spec, stride)
        self.second = convolution(out, out, spec)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = self.shortcut(x)
        return self.second(self.first(x)) + skipped


class DenseGroup(nn.Module):
    """Four blocks, each over all before it."""

    def __init__(self, channels: int, spec: Spec):
        super().__init__()
        self.blocks = nn.ModuleList(convolution(channels + 32 * block, 32, spec) for block in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [x]
        for block in self.blocks:
            features.append(block(torch.cat(features, 1)))
        return torch.cat(features, 1)


def transition(channels: int, side: int, spec: Spec) -> nn.Sequential:
    """To half the channels and half the side."""
    layers: list[nn.Module] = [nn.Conv2d(channels, channels // 2, 1)]
    if spec["batch_norm"]:
        layers.append(nn.BatchNorm2d(channels // 2))
    layers.append(nn.ReLU())
    if side >= 2:
        layers.append(nn.AvgPool2d(2))
    return nn.Sequential(*layers)


def chain_body(spec: Spec) -> tuple[list[nn.Module], int]:
    layers, channels = [], spec["channels"]
    for block in range(spec["depth"]):
        out = cnn_channels(spec, block)
        layers.append(convolution(channels, out, spec))
        channels = out
    return layers, channels


def residual_body(spec: Spec) -> tuple[list[nn.Module], int]:
    layers, channels, side = [], spec["channels"], spec["side"]
    for pair in range(spec["depth"] // 2):
        stride = 2 if pair % 2 == 1 and side > LEAST_SIDE else 1
        out = cnn_channels(spec, pair)
        layers.append(Residual(channels, out, stride, spec))
        channels, side = out, side // stride
        if side <= LEAST_SIDE:
            break
    return layers, channels


def dense_body(spec: Spec) -> tuple[list[nn.Module], int]:
    layers: list[nn.Module] = []
    channels, side, groups = spec["channels"], spec["side"], spec["depth"] // 4
    for group in range(groups):
        layers.append(DenseGroup(channels, spec))
        channels += 4 * 32
        if group + 1 < groups and group % spec["pooling_interval"] == 0:
            layers.append(transition(channels, side, spec))
            channels, side = channels // 2, side // 2
    return layers, channels


def cnn(spec: Spec) -> nn.Module:
    body = {"residual": residual_body, "dense": dense_body}.get(spec["shape"], chain_body)
    layers, channels = body(spec)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), *head(channels, spec["classes"]))


# ------------------------------------------------------------------------------------------------ Transformers


class PartedLayer(nn.Module):
    """An encoder layer whose query, key and value are three linear layers, as in BERT."""

    def __init__(self, spec: Spec):
        super().__init__()
        width = spec["embedding"]
        self.heads, self.dropout_p = spec["heads"], spec["dropout"]
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.output_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, spec["feed_forward"])
        self.activation = ACTIVATIONS[spec["activation"]]()
        self.down = nn.Linear(spec["feed_forward"], width)
        self.down_norm = nn.LayerNorm(width)
        self.output_dropout, self.down_dropout = nn.Dropout(self.dropout_p), nn.Dropout(self.dropout_p)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape

        def parted(linear: nn.Module) -> torch.Tensor:
            return linear(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

        heads = scaled_dot_product_attention(
            parted(self.query),
            parted(self.key),
            parted(self.value),
            dropout_p=self.dropout_p if self.training else 0.0,
        )
        return self.output(heads.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.output_norm(x + self.output_dropout(self.attention(x)))
        return self.down_norm(x + self.down_dropout(self.down(self.activation(self.up(x)))))


def packed_layer(spec: Spec) -> nn.Module:
    return nn.TransformerEncoderLayer(
        spec["embedding"],
        spec["heads"],
        spec["feed_forward"],
        spec["dropout"],
        activation=spec["activation"],
        batch_first=True,
    )


class Transformer(nn.Module):
    """checkpointing: encoder layers are computed again in backward instead of kept."""

    def __init__(self, spec: Spec):
        super().__init__()
        self.checkpointing = False
        self.words = nn.Embedding(spec["vocabulary"], spec["embedding"])
        self.positions = nn.Parameter(torch.zeros(1, spec["sequence"], spec["embedding"]))
        layer = packed_layer if spec["packed"] else PartedLayer
        self.layers = nn.ModuleList(layer(spec) for _ in range(spec["layers"]))
        self.head = nn.Linear(spec["embedding"], spec["classes"])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.positions
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointing else layer(x)
        return self.head(x.mean(1))
