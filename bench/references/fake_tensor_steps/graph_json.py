"""The small nets as graph JSON, which gpumem reads."""

from __future__ import annotations

import json

from torch import nn

from .small_nets import add, add_in_place, concat

OPS = {
    "Linear": ("linear", "in_features out_features bias"),
    "ReLU": ("relu", "inplace"),
    "ReLU6": ("relu6", "inplace"),
    "LeakyReLU": ("leaky_relu", "negative_slope inplace"),
    "PReLU": ("prelu", "num_parameters"),
    "ELU": ("elu", "alpha inplace"),
    "SELU": ("selu", "inplace"),
    "GELU": ("gelu", ""),
    "SiLU": ("silu", "inplace"),
    "Mish": ("mish", "inplace"),
    "Softplus": ("softplus", ""),
    "Tanh": ("tanh", ""),
    "Sigmoid": ("sigmoid", ""),
    "Hardswish": ("hardswish", "inplace"),
    "Hardsigmoid": ("hardsigmoid", "inplace"),
    "Hardtanh": ("hardtanh", "inplace"),
    "Softmax": ("softmax", "dim"),
    "LogSoftmax": ("log_softmax", "dim"),
    "Dropout": ("dropout", "p inplace"),
    "Dropout2d": ("dropout", "p inplace"),
    "LayerNorm": ("layer_norm", "normalized_shape"),
    "GroupNorm": ("group_norm", "num_groups num_channels affine"),
    "LocalResponseNorm": ("local_response_norm", "size"),
    "Flatten": ("flatten", "start_dim end_dim"),
    "Embedding": ("embedding", "num_embeddings embedding_dim"),
    "EmbeddingBag": ("embedding_bag", "num_embeddings embedding_dim"),
    "Upsample": ("upsample", "scale_factor mode"),
    "PixelShuffle": ("pixel_shuffle", "upscale_factor"),
    "ZeroPad2d": ("pad", "padding"),
    "ReflectionPad2d": ("pad", "padding"),
}
CONV = "in_channels out_channels kernel_size stride padding dilation groups bias"
for axes in (1, 2, 3):
    OPS[f"Conv{axes}d"] = (f"conv{axes}d", CONV)
    OPS[f"ConvTranspose{axes}d"] = (f"conv_transpose{axes}d", CONV + " output_padding")
    OPS[f"BatchNorm{axes}d"] = ("batch_norm", "num_features affine")
    OPS[f"InstanceNorm{axes}d"] = ("instance_norm", "num_features affine")
    OPS[f"MaxPool{axes}d"] = (f"max_pool{axes}d", "kernel_size stride padding ceil_mode")
    OPS[f"AvgPool{axes}d"] = (f"avg_pool{axes}d", "kernel_size stride padding ceil_mode")
    OPS[f"AdaptiveAvgPool{axes}d"] = (f"adaptive_avg_pool{axes}d", "output_size")
    OPS[f"AdaptiveMaxPool{axes}d"] = (f"adaptive_max_pool{axes}d", "output_size")
for recurrent in ("LSTM", "GRU", "RNN"):
    OPS[recurrent] = (recurrent.lower(), "input_size hidden_size num_layers bias batch_first bidirectional")


def attribute(module, name):
    value = getattr(module, name)
    if name == "bias" and not isinstance(value, bool):
        return value is not None
    if isinstance(value, float) and value.is_integer() and name == "scale_factor":
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def graph_nodes(name, layer, sources):
    """What a layer is in graph JSON: one node, or several for a module of many ops."""
    if isinstance(layer, nn.MultiheadAttention):
        return attention_nodes(name, layer, sources)
    if isinstance(layer, nn.TransformerEncoderLayer):
        return encoder_layer_nodes(name, layer, sources[0])
    if not isinstance(layer, nn.Module):
        in_place = layer is add_in_place
        attrs = {"dim": 1} if layer is concat else {"inplace": True} if in_place else {}
        return [node(name, "add" if in_place else layer.__name__, "", sources, attrs)]
    kind = type(layer).__name__
    op, names = OPS[kind]
    return [node(name, op, kind, sources, {key: attribute(layer, key) for key in names.split()})]


def node(name, op, kind, sources, attrs):
    fields = {"name": name, "op": op, "class": kind, "inputs": sources, "attrs": attrs}
    return {key: value for key, value in fields.items() if value}


def attention_nodes(name, layer, sources):
    attrs = {key: getattr(layer, key) for key in ("embed_dim", "num_heads", "dropout", "batch_first")}
    return [
        node(name + ".scores", "multihead_attention", "MultiheadAttention", sources, attrs),
        node(
            name,
            "linear",
            "NonDynamicallyQuantizableLinear",
            [name + ".scores"],
            {"in_features": layer.embed_dim, "out_features": layer.embed_dim, "bias": True},
        ),
    ]


def encoder_layer_nodes(name, layer, source):
    nodes = []

    def step(part, module, *sources):
        nodes.extend(graph_nodes(f"{name}.{part}", module, list(sources)))
        return f"{name}.{part}"

    def attention(x):
        return step("dropout1", layer.dropout1, step("self_attn", layer.self_attn, x))

    def feed_forward(x):
        x = step("activation", nn.GELU() if layer.norm_first else nn.ReLU(), step("linear1", layer.linear1, x))
        return step("dropout2", layer.dropout2, step("linear2", layer.linear2, step("dropout", layer.dropout, x)))

    if layer.norm_first:
        x = step("add1", add, source, attention(step("norm1", layer.norm1, source)))
        x = step("add2", add, x, feed_forward(step("norm2", layer.norm2, x)))
    else:
        x = step("norm1", layer.norm1, step("add1", add, source, attention(source)))
        x = step("norm2", layer.norm2, step("add2", add, x, feed_forward(x)))
    # The name that the next layer reads.
    nodes[-1]["name"] = name
    return nodes


def graph_json(net):
    """One node a line. The graph is all that is written: the loss is the job's."""
    head = {"name": "x", "shape": ["N", *net.input], "dtype": str(net.dtype).removeprefix("torch.")}
    nodes = [line for layer in net.layers() for line in graph_nodes(*layer)]
    lines = ['{"format": "gpumem-graph", "version": 1,', f' "inputs": [{json.dumps(head)}],', ' "nodes": [']
    return "\n".join([*lines, ",\n".join("  " + json.dumps(line) for line in nodes) + "]}"]) + "\n"
