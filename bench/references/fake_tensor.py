#!/usr/bin/env python3
"""Measures the peak of live tensor storage of training steps under PyTorch 1.13's FakeTensorMode.

  fake_tensor.py                      remakes tests/golden/fake_tensor
  fake_tensor.py --check              recomputes the quick ones and the published ones; exits 1 and
                                      names those that differ
  fake_tensor.py --newer              remakes its peaks_2.6.json, with PyTorch 2.6
  fake_tensor.py --published          the ten peaks that the estimator "fake-tensor" is held to
  fake_tensor.py MODEL [--batch 32] [--input 3x224x224] [--optimizer sgd-momentum] [--trace FILE]

MODEL is a torchvision model or one of the small nets below (--list names them). No tensor is ever
computed or allocated: a step takes as long as its Python does.

THE PROTOCOL
  - Model, input, labels and optimizer are fake CPU tensors, float32; ids and labels are int64.
    The model is in training mode. The labels are one int64 a row of the output.
  - A step is   optimizer.zero_grad(set_to_none=True); outputs = model(x); loss = cross_entropy(...);
    loss.backward(); optimizer.step().   Without an optimizer one step is measured, with one the
    second, whose optimizer state exists from its beginning on and whose first gradients are gone.
    x and the labels are the same tensors in both steps. The names outputs and loss hold the first
    step's until the second rebinds them. Optimizers are PyTorch 1.13's defaults on the CPU: the form
    that goes parameter by parameter, not foreach.
  - A model with several outputs (inception_v3, googlenet) has the sum of their cross-entropies, main
    output first. An output of [N, S, C] counts as N S rows of C.
  - Live are all storages of parameters, buffers, input, labels, optimizer state, gradients, what
    autograd saved, and temporaries: each once, by the bytes of its storage, without any rounding.
    The sum is taken after each dispatched op, when its outputs exist beside its inputs.
  - An op has its outputs and nothing else: what a kernel allocates for itself (workspaces, im2col
    buffers) is not seen. Ops that autograd or Python compose of others are seen op by op.
  - aten::convolution_backward has no Meta kernel in 1.13: FakeTensorMode would run the real one. One
    is registered here. A few rarer ops lack theirs too (META_KERNELS); the mode runs the real ones
    and keeps their outputs alive for longer than their tensors, in a cache that it sweeps every 128
    conversions. The golden peaks are without that artefact. The published ones have it:
    --as-published adds 3.06 MiB a step to vgg16 (adaptive pooling's gradient), nothing to the others.

The published peaks come out to the printed digit. They tell the loss of inception_v3 apart: with the
main output's alone its first peak is 3145.4 and its second 3252.8; weighting the auxiliary one by 0.4
changes neither.

HOW MEMORY BEHAVES, op by op, is in tests/golden/fake_tensor/README.md; --trace shows it for any model.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import dataclasses
import functools
import json
import pathlib
import sys

try:
    import torch
    import torchvision
    from torch import nn
    from torch._subclasses import fake_tensor
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten
except ImportError as error:
    sys.exit(f"fake_tensor.py: {error}. It needs PyTorch 1.13 and torchvision 0.14 (Debian 12's)")

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "fake_tensor"
MIB = 1024**2

# Peaks in MiB at batch 32: forward + backward, and the second step with SGD with momentum.
PUBLISHED = {
    "resnet18": (746.4, 791.0),
    "resnet50": (2751.8, 2849.3),
    "vgg16": (3277.5, 3808.4),
    "mobilenet_v2": (2420.6, 2433.9),
    "inception_v3": (3145.5, 3249.1),
}


class FakeTensorError(Exception):
    """What was asked for cannot be measured; the text says why."""


# ----------------------------------------------------------------------------- missing Meta kernels


def convolution_backward(
    grad_output, x, weight, bias_sizes, _stride, _padding, _dilation, _transposed, _output_padding, _groups, mask
):
    return (
        torch.empty_like(x) if mask[0] else None,
        torch.empty_like(weight) if mask[1] else None,
        grad_output.new_empty(bias_sizes) if mask[2] else None,
    )


def like_second(_grad_output, x, *_):
    return torch.empty_like(x)


def max_pool3d_with_indices(x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    def along(values, axis, otherwise):
        values = [values] if isinstance(values, int) else list(values) or [otherwise]
        return values[axis] if len(values) > 1 else values[0]

    sizes = []
    for axis, length in enumerate(x.shape[-3:]):
        window = along(kernel, axis, 1)
        step = along(stride, axis, window)
        room = length + 2 * along(padding, axis, 0) - along(dilation, axis, 1) * (window - 1) - 1
        sizes.append((-(-room // step) if ceil_mode else room // step) + 1)
    shape = [*x.shape[:-3], *sizes]
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def embedding_bag_dense_backward(grad, _indices, _offsets, _bags, _maxima, rows, *_):
    return grad.new_empty((rows, grad.shape[1]))


META_KERNELS = {
    torch.ops.aten._adaptive_avg_pool2d_backward.default: like_second,
    torch.ops.aten._adaptive_avg_pool3d_backward.default: like_second,
    torch.ops.aten.max_pool3d_with_indices.default: max_pool3d_with_indices,
    torch.ops.aten.max_pool3d_with_indices_backward.default: like_second,
    torch.ops.aten.reflection_pad2d_backward.default: like_second,
    torch.ops.aten._embedding_bag_dense_backward.default: embedding_bag_dense_backward,
}

run_real_kernel = fake_tensor.run_fallback_kernel


def run_fallback_kernel(mode, func, args, kwargs, error):
    """Called by FakeTensorMode for an op without a Meta kernel."""
    if mode.as_published:
        return run_real_kernel(mode, func, args, kwargs, error)
    if func not in META_KERNELS:
        raise FakeTensorError(f"{func} has no Meta kernel; add one to META_KERNELS") from error
    with fake_tensor.in_kernel_invocation_manager(mode):
        result = META_KERNELS[func](*args, **kwargs)
    return mode.wrap_meta_outputs_with_default_device_logic(result, func, args, kwargs)


@functools.lru_cache(maxsize=None)
def prepare():
    """Makes 1.13's FakeTensorMode fit to run training steps; what it returns must stay alive."""
    if torch.__version__.startswith("2."):
        return None  # has them
    if not torch.__version__.startswith("1.13"):
        print(f"fake_tensor.py: made for PyTorch 1.13; this is {torch.__version__}", file=sys.stderr)
    fake_tensor.run_fallback_kernel = run_fallback_kernel
    # Under a dispatch mode, 1.13 hands the profiler's record_function one argument too many.
    torch.autograd.profiler.record_function = lambda *_, **__: contextlib.nullcontext()
    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("convolution_backward", convolution_backward)
    return library


# ---------------------------------------------------------------------------------- the live storages


@dataclasses.dataclass
class Storage:
    alive: StorageWeakRef
    size: int
    maker: str


class LiveStorages(TorchDispatchMode):
    """Keeps the books on every storage that an op's outputs have, from its making to its end.

    A storage's end is noticed when the next op begins: nothing is made in between. What counts is the
    storage and not the Python tensor, which may die while autograd still holds the storage.
    """

    def __init__(self, trace=None):
        super().__init__()
        self.storages = {}
        self.total = 0
        self.peak = 0
        self.peak_op = ""
        self.trace = trace
        self.module = ""

    def hold(self, tensors, maker):
        """The bytes these tensors' storages add to what is live."""
        made = 0
        for tensor in tensors:
            storage = tensor.storage()
            known = self.storages.get(storage._cdata)
            size = storage.nbytes()
            if known and not known.alive.expired():
                made += size - known.size
                known.size = size
            else:
                self.storages[storage._cdata] = Storage(StorageWeakRef(storage), size, maker)
                made += size
        self.total += made
        return made

    def sweep(self):
        """Strikes out the storages that ended, and gives the bytes still live."""
        for key in [key for key, storage in self.storages.items() if storage.alive.expired()]:
            ended = self.storages.pop(key)
            self.total -= ended.size
            self.note(f"{'':40} - {ended.size:>13,}  {self.total:>15,}  of {ended.maker}")
        return self.total

    def start_peak(self):
        self.peak, self.peak_op = self.sweep(), "start"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.prim.device.default:
            return func(*args, **(kwargs or {}))
        self.sweep()
        result = func(*args, **(kwargs or {}))
        outputs = [item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor)]
        name = str(func).removesuffix(".default")
        made = self.hold(outputs, f"{name} {self.module}".rstrip())
        shapes = " ".join("x".join(map(str, output.shape)) or "scalar" for output in outputs)
        self.note(f"{name:<40} + {made:>13,}  {self.total:>15,}  {shapes:<24} {self.module}".rstrip())
        if self.total > self.peak:
            self.peak, self.peak_op = self.total, name
        return result

    def note(self, line):
        if self.trace is not None:
            self.trace.append(line)


# --------------------------------------------------------------------------------------- small nets


class TakesFirst(nn.Module):
    """A module whose first result alone is used: a recurrent layer's output without its states."""

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
    relu = functools.partial(nn.ReLU, inplace=True)
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


# --------------------------------------------------------------------------------------- graph JSON

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


# --------------------------------------------------------------------------------------------- jobs


@dataclasses.dataclass(frozen=True)
class Job:
    model: str
    batch: int
    input: tuple
    optimizer: str = "none"

    @property
    def name(self):
        shape = "x".join(map(str, self.input))
        return f"{self.model} batch {self.batch} input {shape} {self.optimizer}"


OPTIMIZERS = {
    "none": lambda _: None,
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}
# Measured with PyTorch 2.6: the mode of 1.13 keeps the constants that NAdam reads with item(), 8 bytes a parameter and
# step. Of the nets, those whose peaks with Adam are the same under both.
NEWER_OPTIMIZERS = {"nadam": torch.optim.NAdam}
NEWER_NETS = ("mlp_wide", "mlp_relu", "cnn_batch_norm", "cnn_residual")


def default_job(model, batch=None, sample=None, optimizer="none"):
    if model in SMALL_NETS:
        net = SMALL_NETS[model]
        return Job(model, batch or net.batch, tuple(sample or net.input), optimizer)
    side = 299 if model == "inception_v3" else 224
    return Job(model, batch or 32, tuple(sample or (3, side, side)), optimizer)


def build_model(name, mode):
    """The model with fake parameters."""
    if name in SMALL_NETS:
        with mode:
            return Net([(key, runnable(layer), sources) for key, layer, sources in SMALL_NETS[name].layers()])
    # No weight is ever read: leave out the initialisations that take seconds.
    options = {"init_weights": False} if name.startswith(("vgg", "inception", "googlenet")) else {}
    make = functools.partial(torchvision.models.get_model, name, weights=None, **options)
    if name.startswith("regnet"):
        # Its constructor reads values of tensors, which fake ones have not.
        with fake_tensor.FakeCopyMode(mode):
            return copy.deepcopy(make())
    with mode:
        return make()


def outputs_in(value):
    return [value] if isinstance(value, torch.Tensor) else [item for item in value if item is not None]


def rows_of(output):
    return output.flatten(0, 1) if output.dim() == 3 else output


def cross_entropy(outputs, labels):
    losses = [nn.functional.cross_entropy(rows_of(output), labels) for output in outputs_in(outputs)]
    return functools.reduce(add, losses)


@dataclasses.dataclass
class Step:
    """Bytes: the most that was live in the step, and what was after each of its parts."""

    peak: int = 0
    peak_op: str = ""
    live: dict = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def module_names(model, books):
    """Lets a trace say which module an op belongs to. Only traces pay for it."""
    if books.trace is None:
        yield
        return
    names = {id(module): name for name, module in model.named_modules()}
    path = []

    def enter(module, _inputs):
        path.append(names.get(id(module), ""))
        books.module = path[-1]

    def leave(*_):
        path.pop()
        books.module = path[-1] if path else ""

    handles = [
        nn.modules.module.register_module_forward_pre_hook(enter),
        nn.modules.module.register_module_forward_hook(leave),
    ]
    yield
    for handle in handles:
        handle.remove()


def run_steps(model, x, labels, make_optimizer, books):
    optimizer = make_optimizer(model.parameters())
    steps = []
    for number in range(2 if optimizer else 1):
        step = Step()
        steps.append(step)

        def part(name):
            step.live[name] = books.sweep()  # noqa: B023: called within this turn only
            books.note(f"== step {number + 1}: after {name}, {books.total:,} live")

        books.start_peak()
        if optimizer:
            optimizer.zero_grad(set_to_none=True)
        part("zero_grad")
        outputs = model(x)
        part("forward")
        loss = cross_entropy(outputs, labels)
        part("loss")
        loss.backward()
        part("backward")
        if optimizer:
            optimizer.step()
        part("optimizer")
        step.peak, step.peak_op = books.peak, books.peak_op
    return steps


def measure(job, as_published=False, trace=None):
    """(steps measured, bytes of parameters, bytes of buffers)."""
    _kernels = prepare()
    mode = fake_tensor.FakeTensorMode()
    mode.as_published = as_published
    books = LiveStorages(trace)
    small = SMALL_NETS.get(job.model)
    rows = job.batch * job.input[0] if small and small.sequence else job.batch
    model = build_model(job.model, mode).train()
    with mode:
        x = torch.zeros((job.batch, *job.input), dtype=small.dtype if small else torch.float32)
        labels = torch.zeros(rows, dtype=torch.int64)
        parameters = books.hold(model.parameters(), "a parameter")
        buffers = books.hold(model.buffers(), "a buffer")
        books.hold([x, labels], "input or labels")
        with books, module_names(model, books):
            steps = run_steps(model, x, labels, (OPTIMIZERS | NEWER_OPTIMIZERS)[job.optimizer], books)
    return steps, parameters, buffers


# ------------------------------------------------------------------------------------------- goldens

FIVE = tuple(PUBLISHED)
OTHERS = {
    "alexnet": 64,
    "convnext_tiny": 16,
    "densenet121": 16,
    "efficientnet_b0": 16,
    "googlenet": 32,
    "mnasnet1_0": 32,
    "mobilenet_v3_large": 32,
    "regnet_x_400mf": 32,
    "resnext50_32x4d": 16,
    "shufflenet_v2_x1_0": 32,
    "squeezenet1_1": 32,
    "swin_t": 16,
    "vgg11_bn": 16,
    "vit_b_16": 16,
}


def golden_jobs():
    jobs = [default_job(model, optimizer=optimizer) for model in FIVE for optimizer in ("none", "sgd-momentum", "adam")]
    jobs += [default_job(model, batch) for model, batch in OTHERS.items()]
    jobs += [default_job(model, batch, optimizer="adam") for model, batch in OTHERS.items()]
    jobs += [default_job("resnet18", 128, (3, 32, 32), optimizer) for optimizer in OPTIMIZERS]
    jobs += [default_job("resnet50", batch) for batch in (1, 8, 64)]
    jobs += [default_job("vgg16", 2, optimizer=optimizer) for optimizer in ("none", "sgd", "adam")]
    jobs += [default_job("vgg16", 64, (3, 64, 64)), default_job("mobilenet_v2", 8, (3, 160, 192))]
    jobs += [default_job("vit_b_16", 4, optimizer=optimizer) for optimizer in ("none", "sgd-momentum")]
    jobs += [default_job(net) for net in SMALL_NETS]
    for net in ("mlp_wide", "mlp_relu", "cnn_batch_norm", "cnn_residual", "transformer_encoder_layer", "lstm"):
        jobs += [default_job(net, optimizer=optimizer) for optimizer in OPTIMIZERS if optimizer != "none"]
    for net in ("mlp_relu", "mlp_gelu", "mlp_batch_norm", "cnn_max_pool", "cnn_dense", "transformer_encoder_layer"):
        jobs += [default_job(net, batch) for batch in (2, 7, 1024)]
    jobs += [default_job("cnn_max_pool_overlapping", 3, (3, 57, 41)), default_job("cnn_avg_pool", 5, (3, 40, 33))]
    return jobs


def is_quick(job):
    """Those that CI recomputes: every small net, and models of few ops."""
    return job.model in SMALL_NETS or job.model in ("resnet18", "vgg16", "mobilenet_v2", "squeezenet1_1", "alexnet")


def golden_row(job):
    steps, parameters, buffers = measure(job)
    step = steps[-1]
    row = {
        "name": job.name,
        "model": job.model,
        "graph": f"graphs/{job.model}.json" if job.model in SMALL_NETS else None,
        "batch": job.batch,
        "input": list(job.input),
        "optimizer": job.optimizer,
        "step": len(steps),
        "peak_bytes": step.peak,
        "peak_op": step.peak_op,
        "first_step_peak_bytes": steps[0].peak,
        "parameters_bytes": parameters,
        "buffers_bytes": buffers,
        "live_bytes_after": step.live,
    }
    return {key: value for key, value in row.items() if value is not None}


def golden_files(jobs):
    """(the rows of peaks.json, the graphs by their path)."""
    rows = [golden_row(job) for job in jobs]
    graphs = {f"graphs/{name}.json": graph_json(net) for name, net in SMALL_NETS.items()}
    return rows, graphs


def write_goldens():
    rows, graphs = golden_files(golden_jobs())
    (GOLDEN / "graphs").mkdir(parents=True, exist_ok=True)
    for old in (GOLDEN / "graphs").glob("*.json"):
        old.unlink()
    for path, text in graphs.items():
        (GOLDEN / path).write_text(text)
    lines = ",\n".join(json.dumps(row) for row in rows)
    (GOLDEN / "peaks.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(rows)} peaks and {len(graphs)} graphs in {GOLDEN}")


def write_newer():
    if not torch.__version__.startswith("2.6"):
        raise FakeTensorError(f"--newer needs PyTorch 2.6; this is {torch.__version__}")
    jobs = [default_job(net, optimizer=optimizer) for optimizer in NEWER_OPTIMIZERS for net in NEWER_NETS]
    lines = ",\n".join(json.dumps(golden_row(job)) for job in jobs)
    (GOLDEN / "peaks_2.6.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(jobs)} peaks in {GOLDEN / 'peaks_2.6.json'}")
    return 0


def check_goldens():
    committed = {row["name"]: row for row in json.loads((GOLDEN / "peaks.json").read_text())}
    wrong = sorted({job.name for job in golden_jobs()} ^ committed.keys())
    rows, graphs = golden_files([job for job in golden_jobs() if is_quick(job)])
    wrong += [row["name"] for row in rows if row != committed.get(row["name"])]
    on_disk = {f"graphs/{path.name}": path.read_text() for path in (GOLDEN / "graphs").glob("*.json")}
    wrong += sorted(name for name in graphs.keys() | on_disk.keys() if graphs.get(name) != on_disk.get(name))
    for name in wrong:
        print(f"differs: {name}; remake the files with fake_tensor.py and read the difference")
    print(f"{len(rows)} of {len(committed)} peaks recomputed")
    return 1 if wrong else 0


def check_published():
    failed = 0
    for model, peaks in PUBLISHED.items():
        for optimizer, published in zip(("none", "sgd-momentum"), peaks):
            steps, _, _ = measure(default_job(model, optimizer=optimizer), as_published=True)
            mib = steps[-1].peak / MIB
            failed += f"{mib:.1f}" != f"{published:.1f}"
            print(f"{model:<14} {optimizer:<13} {mib:10.3f} MiB, published {published:.1f}")
    return 1 if failed else 0


# ---------------------------------------------------------------------------------------------- main


def main():
    parser = argparse.ArgumentParser(description="Peak of live tensor storage under FakeTensorMode")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--input", type=lambda text: tuple(map(int, text.split("x"))), help="one sample: 3x224x224")
    parser.add_argument("--optimizer", choices=OPTIMIZERS | NEWER_OPTIMIZERS, default="none")
    parser.add_argument("--trace", type=pathlib.Path, help="writes every op, allocation and free to this file")
    parser.add_argument("--as-published", action="store_true", help="with one extra Meta kernel alone")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--newer", action="store_true")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print(*SMALL_NETS, sep="\n")
        return 0
    if options.newer:
        return write_newer()
    if options.check or options.published:
        return (check_goldens() if options.check else 0) | check_published()
    if options.model is None:
        write_goldens()
        return 0
    return report(options)


def report(options):
    if options.model not in SMALL_NETS and options.model not in torchvision.models.list_models():
        raise FakeTensorError(f"unknown model {options.model}; --list names the small nets")
    job = default_job(options.model, options.batch, options.input, options.optimizer)
    trace = [f"# {job.name}: op, bytes made (+) or ended (-), bytes live, shapes, module"] if options.trace else None
    steps, parameters, buffers = measure(job, options.as_published, trace)
    print(f"{job.name}: parameters {parameters:,} B, buffers {buffers:,} B")
    for number, step in enumerate(steps, start=1):
        print(f"step {number}: peak {step.peak:,} B = {step.peak / MIB:.1f} MiB at {step.peak_op}")
        print("  live after " + ", ".join(f"{name} {size:,}" for name, size in step.live.items()))
    if trace:
        options.trace.write_text("\n".join(trace) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FakeTensorError as error:
        sys.exit(f"fake_tensor.py: {error}")
