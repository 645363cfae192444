"""Modules that are one op: its name in graph JSON and its attributes, by class."""

from __future__ import annotations

import dataclasses
import functools

from torch import nn


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A module that is one op. Attributes are named as print(module) names them; those in `unless`
    are left out where they have that value, PyTorch's default."""

    op: str
    always: tuple = ()
    unless: dict = dataclasses.field(default_factory=dict)


INPLACE = {"inplace": False}
CONV = ("in_channels", "out_channels", "kernel_size", "stride")
POOL = ("kernel_size", "stride")
WINDOWS = {"dilation": 1, "padding": 0, "stride": 1}
NORM = {"affine": True, "track_running_stats": True}
RECURRENT = {
    "num_layers": 1,
    "bias": True,
    "batch_first": False,
    "dropout": 0.0,
    "bidirectional": False,
}


def conv_leaf(op, axes, **more):
    ones = [1] * axes
    defaults = {"padding": [0] * axes, "dilation": ones, "groups": 1, "bias": True}
    return Leaf(op, CONV, {**defaults, "padding_mode": "zeros", **more})


def leaves():
    """By class of torch.nn."""
    table = {**layers(), **activations(), **shape_modules()}
    for dropout in (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout):
        table[dropout] = Leaf("dropout", ("p",), INPLACE)
    for axes in (1, 2, 3):
        table.update(leaves_over(axes))
    return table


def layers():
    return {
        nn.Linear: Leaf("linear", ("in_features", "out_features"), {"bias": True}),
        nn.Bilinear: Leaf(
            "bilinear", ("in1_features", "in2_features", "out_features"), {"bias": True}
        ),
        nn.Embedding: Leaf("embedding", ("num_embeddings", "embedding_dim"), {"padding_idx": None}),
        nn.LayerNorm: Leaf(
            "layer_norm", ("normalized_shape",), {"elementwise_affine": True, "bias": True}
        ),
        nn.GroupNorm: Leaf("group_norm", ("num_groups", "num_channels"), {"affine": True}),
        nn.LocalResponseNorm: Leaf("local_response_norm", ("size",)),
        nn.MultiheadAttention: Leaf(
            "multihead_attention",
            ("embed_dim", "num_heads", "batch_first", "dropout", "out_proj"),
            {"bias": True, "need_weights": True},
        ),
        nn.LSTM: Leaf("lstm", ("input_size", "hidden_size"), {**RECURRENT, "proj_size": 0}),
        nn.GRU: Leaf("gru", ("input_size", "hidden_size"), RECURRENT),
        nn.RNN: Leaf("rnn", ("input_size", "hidden_size"), RECURRENT),
    }


def activations():
    return {
        nn.ReLU: Leaf("relu", (), INPLACE),
        nn.ReLU6: Leaf("relu6", (), INPLACE),
        nn.LeakyReLU: Leaf("leaky_relu", ("negative_slope",), INPLACE),
        nn.PReLU: Leaf("prelu", ("num_parameters",)),
        nn.ELU: Leaf("elu", ("alpha",), INPLACE),
        nn.CELU: Leaf("celu", ("alpha",), INPLACE),
        nn.SELU: Leaf("selu", (), INPLACE),
        nn.GELU: Leaf("gelu", (), {"approximate": "none"}),
        nn.SiLU: Leaf("silu", (), INPLACE),
        nn.Mish: Leaf("mish", (), INPLACE),
        nn.Softplus: Leaf("softplus"),
        nn.Softsign: Leaf("softsign"),
        nn.Tanh: Leaf("tanh"),
        nn.Sigmoid: Leaf("sigmoid"),
        nn.LogSigmoid: Leaf("log_sigmoid"),
        nn.Hardswish: Leaf("hardswish", (), INPLACE),
        nn.Hardsigmoid: Leaf("hardsigmoid", (), INPLACE),
        nn.Hardtanh: Leaf("hardtanh", ("min_val", "max_val"), INPLACE),
        nn.Softmax: Leaf("softmax", ("dim",)),
        nn.LogSoftmax: Leaf("log_softmax", ("dim",)),
        nn.GLU: Leaf("glu", ("dim",)),
    }


def shape_modules():
    return {
        nn.Identity: Leaf("identity"),
        nn.Flatten: Leaf("flatten", ("start_dim", "end_dim")),
        nn.Unfold: Leaf("unfold", ("kernel_size",), WINDOWS),
        nn.Fold: Leaf("fold", ("output_size", "kernel_size"), WINDOWS),
        nn.PixelShuffle: Leaf("pixel_shuffle", ("upscale_factor",)),
        nn.Upsample: Leaf("upsample", ("mode",), {"size": None, "scale_factor": None}),
    }


def leaves_over(axes):
    """Those of which torch.nn has one class for each number of axes."""

    def of(name):
        return getattr(nn, f"{name}{axes}d")

    pool = {"padding": 0, "dilation": 1, "ceil_mode": False}
    norm = {"affine": False, "track_running_stats": False}
    return {
        of("Conv"): conv_leaf(f"conv{axes}d", axes),
        of("ConvTranspose"): conv_leaf(f"conv_transpose{axes}d", axes, output_padding=[0] * axes),
        of("BatchNorm"): Leaf("batch_norm", ("num_features",), NORM),
        of("InstanceNorm"): Leaf("instance_norm", ("num_features",), norm),
        of("MaxPool"): Leaf(f"max_pool{axes}d", POOL, pool),
        of("AvgPool"): Leaf(f"avg_pool{axes}d", POOL, {"padding": [0] * axes, "ceil_mode": False}),
        of("AdaptiveAvgPool"): Leaf(f"adaptive_avg_pool{axes}d", ("output_size",)),
        of("AdaptiveMaxPool"): Leaf(f"adaptive_max_pool{axes}d", ("output_size",)),
    }


@functools.lru_cache(maxsize=None)
def leaf_by_class():
    return leaves()


# Modules outside torch.nn that are one op, by their class names: torchvision's and timm's.
STOCHASTIC_DEPTH = {
    "StochasticDepth": Leaf("stochastic_depth", ("p", "mode")),
    "DropPath": Leaf("stochastic_depth", ("p", "mode")),
}


def leaf_of(module):
    """The op that a module is, or None: it is traced into. A class that derives from torch.nn's and
    has a forward function of its own is no longer that op."""
    for base in type(module).__mro__:
        leaf = leaf_by_class().get(base)
        if leaf is not None:
            return leaf if type(module).forward is base.forward else None
    return STOCHASTIC_DEPTH.get(type(module).__name__)


# What a module calls otherwise than print() does.
def attribute_of(module, name):
    if name == "bias":
        holder = "in_proj_bias" if isinstance(module, nn.MultiheadAttention) else "bias"
        value = getattr(module, holder, None)
        # Recurrent layers keep a flag, layer norm before 2.1 always had a bias if it had a weight.
        if isinstance(module, nn.LayerNorm) and not module.elementwise_affine:
            return True
        return value if isinstance(value, bool) else value is not None
    if name == "out_proj":
        return True
    if type(module).__name__ == "DropPath" and name in ("p", "mode"):
        return module.drop_prob if name == "p" else "row"
    return getattr(module, name, None)


def plain(value):
    """An attribute as JSON has it; None in a list keeps the axis."""
    if isinstance(value, (list, tuple)):
        return [-1 if item is None else item for item in value]
    return value


def module_attributes(module, leaf):
    attributes = {name: plain(attribute_of(module, name)) for name in leaf.always}
    for name, default in leaf.unless.items():
        value = plain(attribute_of(module, name))
        if value is not None and value not in (default, plain_scalar(default)):
            attributes[name] = value
    return {name: value for name, value in attributes.items() if value is not None}


def plain_scalar(value):
    return value[0] if isinstance(value, list) else value
