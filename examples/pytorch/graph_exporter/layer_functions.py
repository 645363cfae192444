"""Layers that are called as functions: pooling, products, norms, embeddings, attention."""

from __future__ import annotations

from .calls import HANDLERS, handles, refuse
from .modules import plain


def pool(op, names):
    def handler(exporter, node, arguments, _):
        attributes = {}
        for name in names.split()[1:]:
            value = arguments.named.get(name)
            defaults = {"padding": 0, "dilation": 1, "ceil_mode": False, "count_include_pad": True}
            if value not in (None, [], ()) and value != defaults.get(name):
                attributes[name] = plain(value)
        for dropped in ("return_indices", "divisor_override", "count_include_pad"):
            attributes.pop(dropped, None)
        exporter.add(node, op, [arguments["input"]], attributes)

    handler.names = names.split()
    return handler


for pool_axes in (1, 2, 3):
    HANDLERS[f"max_pool{pool_axes}d"] = pool(
        f"max_pool{pool_axes}d", "input kernel_size stride padding dilation ceil_mode"
    )
    HANDLERS[f"avg_pool{pool_axes}d"] = pool(
        f"avg_pool{pool_axes}d", "input kernel_size stride padding ceil_mode"
    )
    for pool_kind in ("avg", "max"):
        pool_op = f"adaptive_{pool_kind}_pool{pool_axes}d"
        HANDLERS[pool_op] = pool(pool_op, "input output_size")


def computes_weights(exporter, arguments):
    """Whether the weight or the bias is a tensor that the model makes of others."""
    return any(
        tensor is not None and not exporter.is_parameter(tensor)
        for tensor in (arguments.named.get(name) for name in ("weight", "bias"))
    )


def with_weights(arguments):
    tensors = [arguments["input"], arguments["weight"], arguments.named.get("bias")]
    return [tensor for tensor in tensors if tensor is not None]


@handles("input weight bias", "linear")
def linear(exporter, node, arguments, _):
    if computes_weights(exporter, arguments):
        exporter.add(node, "linear_function", with_weights(arguments), {})
        return
    weight = exporter.parameter(arguments["weight"])
    bias = exporter.parameter(arguments.named.get("bias"))
    attributes = {"in_features": weight.shape[1], "out_features": weight.shape[0]}
    if bias is None:
        attributes["bias"] = False
    exporter.add(node, "linear", [arguments["input"]], attributes, parameters=[weight, bias])


@handles("input mat1 mat2", "addmm")
def addmm(exporter, node, arguments, _):
    """A bias and a product with a weight whose rows are the inputs' features, as transformers' Conv1D calls it."""
    if not exporter.is_parameter(arguments["input"]) or not exporter.is_parameter(arguments["mat2"]):
        refuse(node, "is an addmm of other than a bias and a weight")
    bias, weight = exporter.parameter(arguments["input"]), exporter.parameter(arguments["mat2"])
    attributes = {"in_features": weight.shape[0], "out_features": weight.shape[1]}
    exporter.add(node, "linear", [arguments["mat1"]], attributes, parameters=[weight, bias])


@handles("input target weight size_average ignore_index reduce reduction label_smoothing", "cross_entropy")
def cross_entropy(exporter, node, arguments, _):
    """A loss that the model computes itself, under autocast in its logits' own type."""
    plain_mean = arguments.get("reduction", "mean") == "mean" and not arguments.get("label_smoothing", 0.0)
    if arguments.named.get("weight") is not None or not plain_mean:
        refuse(node, "is a cross entropy with weights, label smoothing or another reduction than the mean")
    exporter.add(node, "cross_entropy", [arguments["input"], arguments["target"]], {"keeps_type": True})


def convolution(axes):
    def handler(exporter, node, arguments, _):
        computed = computes_weights(exporter, arguments)
        weight = exporter.value(arguments["weight"])
        bias = arguments.named.get("bias")
        groups = arguments.get("groups", 1)
        attributes = {
            "in_channels": weight.shape[1] * groups,
            "out_channels": weight.shape[0],
            "kernel_size": list(weight.shape[2:]),
        }
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1)):
            value = plain(arguments.get(name, default))
            if value != default and value != [default] * axes:
                attributes[name] = value
        if computed:
            exporter.add(node, f"conv{axes}d_function", with_weights(arguments), attributes)
            return
        if bias is None:
            attributes["bias"] = False
        parameters = [weight, exporter.parameter(bias)]
        inputs = [arguments["input"]]
        exporter.add(node, f"conv{axes}d", inputs, attributes, parameters=parameters)

    handler.names = "input weight bias stride padding dilation groups".split()
    return handler


for conv_axes in (1, 2, 3):
    HANDLERS[f"conv{conv_axes}d"] = convolution(conv_axes)


@handles("input normalized_shape weight bias", "layer_norm")
def layer_norm(exporter, node, arguments, _):
    weight = exporter.parameter(arguments.named.get("weight"))
    bias = exporter.parameter(arguments.named.get("bias"))
    attributes = {"normalized_shape": plain(arguments["normalized_shape"])}
    if weight is None:
        attributes["elementwise_affine"] = False
    elif bias is None:
        attributes["bias"] = False
    exporter.add(node, "layer_norm", [arguments["input"]], attributes, parameters=[weight, bias])


@handles("input running_mean running_var weight bias training", "batch_norm")
def batch_norm(exporter, node, arguments, _):
    tensors = [arguments.named.get(name) for name in ("weight", "bias", "running_mean", "running_var")]
    attributes = {"training": bool(plain(arguments.get("training", False)))}
    inputs = [arguments["input"]] + [tensor for tensor in tensors if tensor is not None]
    exporter.add(node, "batch_norm_function", inputs, attributes)


@handles("input num_groups weight bias", "group_norm")
def group_norm(exporter, node, arguments, _):
    tensors = [arguments.named.get(name) for name in ("weight", "bias")]
    attributes = {"num_groups": plain(arguments["num_groups"])}
    inputs = [arguments["input"]] + [tensor for tensor in tensors if tensor is not None]
    exporter.add(node, "group_norm_function", inputs, attributes)


@handles("input p dim", "normalize")
def normalize(exporter, node, arguments, _):
    exporter.add(node, "lp_normalize", [arguments["input"]], {"dim": plain(arguments.get("dim", 1))})


@handles("input weight", "embedding")
def embedding(exporter, node, arguments, _):
    weight = exporter.parameter(arguments["weight"])
    attributes = {"num_embeddings": weight.shape[0], "embedding_dim": weight.shape[1]}
    exporter.add(node, "embedding", [arguments["input"]], attributes, parameters=[weight])


@handles("query key value attn_mask dropout_p is_causal scale enable_gqa", "scaled_dot_product_attention")
def attention(exporter, node, arguments, _):
    inputs = [arguments[name] for name in ("query", "key", "value")]
    if arguments.get("attn_mask") is not None:
        inputs.append(arguments["attn_mask"])
    attributes = {
        "dropout_p": arguments.get("dropout_p", 0.0),
        "is_causal": bool(arguments.get("is_causal", False)),
    }
    if arguments.get("enable_gqa"):
        attributes["enable_gqa"] = True
    exporter.add(node, "scaled_dot_product_attention", inputs, attributes)
