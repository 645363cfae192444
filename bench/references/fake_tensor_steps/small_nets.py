"""The small nets by name."""

from __future__ import annotations

import collections
import dataclasses
import functools

import torch
from torch import nn


class TakesFirst(nn.Module):
    """A module of which only the first result is used: a recurrent layer's output without its states."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class SelfAttention(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class Net(nn.Module):
    """Runs layers (name, module or function, names of inputs); a value dies after its last reader."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.inner = nn.ModuleDict(
            {name: layer for name, layer, _ in layers if isinstance(layer, nn.Module)}
        )
        last = {source: name for name, _, sources in layers for source in sources}
        self.dying = collections.defaultdict(list)
        for source, reader in last.items():
            self.dying[reader].append(source)

    def forward(self, x):
        values = {"x": x}
        for name, layer, sources in self.layers:
            values[name] = layer(*(values[source] for source in sources))
            for source in self.dying[name]:
                del values[source]
        return values[name]


def chain(*layers):
    """Layers that follow each other, named by their place; a layer may name its inputs instead."""
    named, previous = [], "x"
    for index, layer in enumerate(layers):
        name, layer, sources = layer if isinstance(layer, tuple) else (str(index), layer, None)
        named.append((name, layer, sources or [previous]))
        previous = name
    return named


def add(left, right):
    return left + right


def add_in_place(left, right):
    left += right
    return left


def mul(left, right):
    return left * right


def concat(*parts):
    return torch.cat(parts, 1)


@dataclasses.dataclass(frozen=True)
class SmallNet:
    layers: object  # a function that makes them
    input: tuple  # one sample
    dtype: torch.dtype = torch.float32
    batch: int = 64
    sequence: bool = False  # the output has a row for each position, not for each sample


def mlp(*middle, width=512):
    return SmallNet(
        lambda: chain(nn.Linear(256, 512), *(make() for make in middle), nn.Linear(width, 128)), (256,), batch=512
    )


def cnn(*middle, channels=32):
    return SmallNet(
        lambda: chain(
            nn.Conv2d(3, 32, 3, padding=1),
            *(make() for make in middle),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(channels, 10),
        ),
        (3, 32, 32),
    )


def sequence_net(sample, *layers):
    return SmallNet(
        lambda: chain(*(make() for make in layers), nn.Linear(128, 100)), sample, batch=16, sequence=True
    )


def residual(join):
    return lambda: chain(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        ("trunk", nn.ReLU(inplace=True), None),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3, padding=1, bias=False),
        ("body", nn.BatchNorm2d(64), None),
        ("shortcut_conv", nn.Conv2d(32, 64, 1, stride=2, bias=False), ["trunk"]),
        ("shortcut_norm", nn.BatchNorm2d(64), None),
        ("sum", join, ["body", "shortcut_norm"]),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def dense():
    layers = [("stem", nn.Conv2d(3, 32, 3, padding=1), None)]
    parts = ["stem"]
    for index in range(3):
        width = 32 * len(parts)
        joined = f"concat{index}"
        layers += [
            (joined, concat, list(parts)),
            (f"norm{index}", nn.BatchNorm2d(width), None),
            (f"relu{index}", nn.ReLU(inplace=True), None),
            (f"conv{index}", nn.Conv2d(width, 32, 3, padding=1, bias=False), None),
        ]
        parts.append(f"conv{index}")
    layers.append(("all", concat, list(parts)))
    return chain(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def squeeze_excite():
    return chain(
        nn.Conv2d(3, 32, 3, padding=1),
        ("trunk", nn.SiLU(), None),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(32, 8, 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 32, 1),
        ("gate", nn.Sigmoid(), None),
        ("scaled", mul, ["gate", "trunk"]),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


ACTIVATIONS = "ELU GELU LeakyReLU Mish PReLU ReLU SELU SiLU Softplus Tanh Hardswish Hardsigmoid Sigmoid ReLU6 Hardtanh"
IN_PLACE = "ELU LeakyReLU Mish ReLU SELU SiLU Hardswish ReLU6"


def small_nets():
    return {**activation_nets(), **perceptrons(), **convolution_nets(), **joined_nets(), **sequence_nets()}


def activation_nets():
    nets = {}
    for name in ACTIVATIONS.split():
        make = getattr(nn, name)
        nets[f"mlp_{name.lower()}"] = mlp(make, lambda: nn.Linear(512, 512), make)
        nets[f"cnn_{name.lower()}"] = cnn(make, lambda: nn.Conv2d(32, 32, 3, padding=1), make)
    for name in IN_PLACE.split():
        make = functools.partial(getattr(nn, name), inplace=True)
        nets[f"mlp_{name.lower()}_inplace"] = mlp(make, lambda: nn.Linear(512, 512), make)
        nets[f"cnn_{name.lower()}_inplace"] = cnn(
            lambda: nn.BatchNorm2d(32), make, lambda: nn.Conv2d(32, 32, 3, padding=1), lambda: nn.BatchNorm2d(32), make
        )
    return nets


def perceptrons():
    nets = {}
    nets["mlp_softmax"] = mlp(lambda: nn.Softmax(dim=1))
    nets["mlp_log_softmax"] = mlp(lambda: nn.LogSoftmax(dim=1))
    nets["mlp_dropout"] = mlp(nn.ReLU, nn.Dropout, lambda: nn.Linear(512, 512), nn.ReLU, nn.Dropout)
    nets["mlp_dropout_inplace"] = mlp(lambda: nn.Dropout(0.5, inplace=True), nn.GELU)
    nets["mlp_batch_norm"] = mlp(lambda: nn.BatchNorm1d(512), nn.ReLU, lambda: nn.Linear(512, 512), nn.ReLU)
    nets["mlp_layer_norm"] = mlp(lambda: nn.LayerNorm(512), nn.GELU)
    nets["mlp_no_bias"] = mlp(lambda: nn.Linear(512, 512, bias=False), nn.Tanh)
    nets["mlp_wide"] = SmallNet(
        lambda: chain(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)),
        (784,),
        batch=32,
    )
    return nets


def convolution_nets():
    relu = functools.partial(nn.ReLU, inplace=True)
    nets = {}
    nets["cnn_batch_norm"] = cnn(lambda: nn.BatchNorm2d(32), relu)
    nets["cnn_group_norm"] = cnn(lambda: nn.GroupNorm(8, 32), relu)
    nets["cnn_instance_norm"] = cnn(lambda: nn.InstanceNorm2d(32), relu)
    nets["cnn_instance_norm_affine"] = cnn(lambda: nn.InstanceNorm2d(32, affine=True), relu)
    nets["cnn_layer_norm"] = cnn(lambda: nn.LayerNorm([32, 32, 32]), relu)
    nets["cnn_local_response_norm"] = cnn(lambda: nn.LocalResponseNorm(5), relu)
    nets["cnn_max_pool"] = cnn(relu, lambda: nn.MaxPool2d(2))
    nets["cnn_max_pool_overlapping"] = cnn(relu, lambda: nn.MaxPool2d(3, 2, 1))
    nets["cnn_avg_pool"] = cnn(relu, lambda: nn.AvgPool2d(2))
    nets["cnn_adaptive_avg_pool_7"] = cnn(relu, lambda: nn.AdaptiveAvgPool2d(7))
    nets["cnn_adaptive_max_pool_4"] = cnn(relu, lambda: nn.AdaptiveMaxPool2d(4))
    nets["cnn_dropout"] = cnn(relu, lambda: nn.Dropout(0.2))
    nets["cnn_dropout2d"] = cnn(relu, lambda: nn.Dropout2d(0.2))
    nets["cnn_conv_transpose"] = cnn(relu, lambda: nn.ConvTranspose2d(32, 16, 2, stride=2), channels=16)
    nets["cnn_upsample"] = cnn(relu, lambda: nn.Upsample(scale_factor=2), lambda: nn.Conv2d(32, 32, 3, padding=1))
    nets["cnn_upsample_bilinear"] = cnn(relu, lambda: nn.Upsample(scale_factor=2, mode="bilinear"))
    nets["cnn_pixel_shuffle"] = cnn(relu, lambda: nn.PixelShuffle(2), channels=8)
    nets["cnn_zero_pad"] = cnn(relu, lambda: nn.ZeroPad2d(2))
    nets["cnn_reflection_pad"] = cnn(relu, lambda: nn.ReflectionPad2d(2))
    nets["cnn_depthwise"] = cnn(
        lambda: nn.ReLU6(inplace=True),
        lambda: nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False),
        lambda: nn.BatchNorm2d(32),
        lambda: nn.ReLU6(inplace=True),
        lambda: nn.Conv2d(32, 16, 1, bias=False),
        channels=16,
    )
    return nets


def joined_nets():
    """Those with branches, and with one axis or three."""
    nets = {}
    nets["cnn_residual"] = SmallNet(residual(add), (3, 32, 32))
    nets["cnn_residual_inplace"] = SmallNet(residual(add_in_place), (3, 32, 32))
    nets["cnn_dense"] = SmallNet(dense, (3, 32, 32))
    nets["cnn_squeeze_excite"] = SmallNet(squeeze_excite, (3, 32, 32))
    nets["cnn_1d"] = SmallNet(
        lambda: chain(
            nn.Conv1d(8, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
            nn.Linear(64, 10)
        ),
        (8, 1024),
    )  # fmt: skip
    nets["cnn_3d"] = SmallNet(
        lambda: chain(
            nn.Conv3d(1, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(), nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
            nn.Linear(32, 10)
        ),
        (1, 16, 32, 32),
        batch=8,
    )  # fmt: skip
    return nets


def sequence_nets():
    nets = {}
    for recurrent in (functools.partial(nn.LSTM, num_layers=2), nn.GRU, nn.RNN):
        name = getattr(recurrent, "func", recurrent).__name__.lower()
        nets[name] = sequence_net((32, 64), functools.partial(recurrent, 64, 128, batch_first=True))
    nets["embedding_linear"] = SmallNet(
        lambda: chain(nn.Embedding(5000, 128), nn.Linear(128, 5000)), (64,), torch.int64, 16, sequence=True
    )
    nets["embedding_bag"] = SmallNet(lambda: chain(nn.EmbeddingBag(5000, 128), nn.Linear(128, 10)), (64,), torch.int64)
    nets["linear_3_axes"] = sequence_net((64, 64), lambda: nn.Linear(64, 128), nn.GELU, lambda: nn.LayerNorm(128))
    nets["self_attention"] = sequence_net((64, 128), lambda: nn.MultiheadAttention(128, 4, batch_first=True))
    encoder_layer = functools.partial(nn.TransformerEncoderLayer, 128, 4, 512, batch_first=True)
    nets["transformer_encoder_layer"] = sequence_net((64, 128), encoder_layer)
    nets["transformer_encoder_layer_pre_norm"] = sequence_net(
        (64, 128), functools.partial(encoder_layer, activation="gelu", norm_first=True)
    )
    return nets


SMALL_NETS = small_nets()


def runnable(layer):
    if isinstance(layer, nn.RNNBase):
        return TakesFirst(layer)
    return SelfAttention(layer) if isinstance(layer, nn.MultiheadAttention) else layer
