#!/usr/bin/env python3
"""Writes PyTorch models as gpumem's graph JSON: every operation of a training step's forward pass,
with its attributes, its inputs and its parameters.

  export_graph.py                          remakes models/graphs and tests/golden/graphs
  export_graph.py --check                  exits 1 and names the files there that differ
  export_graph.py --model MODEL -o FILE    writes one graph (without -o: to stdout)
  export_graph.py --model MODEL --shapes   the shape of every node at two sizes, as PyTorch has them

MODEL is bert_like or gpt_like (plain transformers of the sizes of BERT-base and GPT-2 small, made
here), torchvision.NAME (torchvision.resnet50), or package.module.NAME: a class or function that
makes a module when called without arguments. From Python: export_graph(module, [example]). The file
is part of the package gpumem as well: estimate_module() uses it, -m gpumem.export_graph runs it.

The model is traced by torch.fx in training mode on PyTorch's "meta" device, which works out shapes
without computing or allocating anything; so what Python decides by shapes is decided as in a real
run. It is traced at several batch sizes and, where the model takes them, at two input sizes: what
grows with them is left open in the graph. What the graph cannot say is an error, never left out.

It needs PyTorch 1.13 or later; torchvision 0.14 or later for its models.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import importlib
import json
import math
import operator
import pathlib
import sys

try:
    import torch
    import torch.fx
    import torch.nn.functional as F
    from torch import nn
    from torch.overrides import handle_torch_function, has_torch_function
except ImportError as error:
    missing = (
        f"export_graph.py: {error}. It needs PyTorch (1.13 or later) in the Python that runs it: "
        "pip install torch torchvision"
    )
    if __name__ == "__main__":
        sys.exit(missing)
    raise ImportError(missing) from error

# Where gpumem's own graphs stand; only for remaking and checking these.
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GRAPHS = ROOT / "models" / "graphs"
SHAPES = ROOT / "tests" / "golden" / "graphs"

SHIPPED = [
    "bert_like",
    "gpt_like",
    "torchvision.densenet121",
    "torchvision.efficientnet_b0",
    "torchvision.inception_v3",
    "torchvision.mobilenet_v2",
    "torchvision.resnet18",
    "torchvision.resnet50",
    "torchvision.vgg16",
    "torchvision.vit_b_16",
]


class ExportError(Exception):
    """What was asked for cannot be exported; the text says why."""


# ---------------------------------------------------------------------------------- models


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


# ---------------------------------------------------------------------------------- tracing


def on_meta(model):
    """A copy of the model in training mode without storage; what shares a tensor still does."""
    copies = {}
    for module in model.modules():
        owned = [*module._parameters.values(), *module._buffers.values(), *vars(module).values()]
        for tensor in owned:
            if isinstance(tensor, nn.Parameter):
                copies[id(tensor)] = nn.Parameter(
                    torch.empty_like(tensor, device="meta"), tensor.requires_grad
                )
            elif isinstance(tensor, torch.Tensor):
                copies[id(tensor)] = torch.empty_like(tensor, device="meta", requires_grad=False)
    return copy.deepcopy(model, copies).train()


def mapped(value, function):
    """The same nest of lists, tuples, dicts and slices with function applied to what is in it."""
    if isinstance(value, (list, tuple)):
        items = [mapped(item, function) for item in value]
        # A named tuple takes its items one by one.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(item, function) for item in (value.start, value.stop, value.step)))
    return function(value)


def holds_tensor(value):
    if isinstance(value, (list, tuple)):
        return any(map(holds_tensor, value))
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    return isinstance(value, torch.Tensor)


class ShapedProxy(torch.fx.Proxy):
    """A proxy that knows the tensor it stands for, so that shapes are plain numbers."""

    def __init__(self, node, tracer, value):
        super().__init__(node, tracer)
        self.value = value

    def __getattr__(self, name):
        if name in ("T", "mT"):
            return self.transpose(-2, -1)
        known = getattr(self.value, name)
        return torch.fx.proxy.Attribute(self, name) if callable(known) else known

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[index] for index in range(len(self.value)))


def add_in_place_operators():
    """Python falls back to x = x + y without these, which would hide that no tensor is made."""
    for name in ("iadd", "isub", "imul", "itruediv"):
        function = getattr(operator, name)

        def method(self, other, function=function):
            return self.tracer.create_proxy("call_function", function, (self, other), {})

        setattr(ShapedProxy, f"__{name}__", method)


add_in_place_operators()

# What makes a tensor from a shape alone: a constant of the graph.
CREATORS = {
    "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
    "zeros_like", "ones_like", "full_like", "empty_like",
}  # fmt: skip


class ShapeTracer(torch.fx.Tracer):
    """torch.fx's tracer with shapes: values holds what each node gives, as meta tensors."""

    proxy_buffer_attributes = True

    def __init__(self, examples):
        super().__init__()
        self.examples = list(examples)
        self.values = {}
        self.running = False

    def trace_model(self, model):
        # What libraries hide from torch.fx, as it computes with shapes, can be traced here.
        # A list of them in PyTorch 1, a dictionary in 2.
        hidden = torch.fx._symbolic_trace._wrapped_fns_to_patch
        kept = copy.copy(hidden)
        hidden.clear()
        try:
            with torch.no_grad():
                return self.trace(model)
        finally:
            (hidden.update if isinstance(hidden, dict) else hidden.extend)(kept)

    def is_leaf_module(self, module, name):
        return leaf_of(module) is not None

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        if self.running:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def call_module(self, module, forward, args, kwargs):
        if self.running:
            return forward(*args, **kwargs)
        if self.is_leaf_module(module, ""):
            self.module, self.forward = module, forward
        return super().call_module(module, forward, args, kwargs)

    def create_arg(self, a):
        # Also a named tuple that a model returns; torch.fx would make its construction a node.
        argument = super().create_arg(tuple(a) if isinstance(a, tuple) else a)
        if isinstance(a, torch.Tensor):
            self.values[argument] = a
        return argument

    def to_bool(self, obj):
        raise ExportError(
            f"node {obj.node.name}: Python branches on this tensor's values, which no graph holds"
        )

    def create_proxy(self, kind, target, args, kwargs, *rest, **named):
        if kind == "placeholder" and not self.examples:
            return self.default_of(target, args)
        value = self.value_of(kind, target, args, kwargs)
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if not holds_tensor(value) or name in CREATORS:
            return value
        named.pop("proxy_factory_fn", None)
        node = super().create_proxy(kind, target, args, kwargs, *rest[:2], **named).node
        self.values[node] = value
        return ShapedProxy(node, self, value)

    @staticmethod
    def default_of(target, default):
        if target.startswith("**"):
            return {}
        if target.startswith("*"):
            return ()
        if not default:
            raise ExportError(f"the model's input {target!r} has no default: give an example of it")
        return default[0]

    def value_of(self, kind, target, args, kwargs):
        if kind == "placeholder":
            return self.examples.pop(0)
        if kind == "get_attr":
            value = self.root
            self.running = True
            for part in target.split("."):
                value = getattr(value, part)
            self.running = False
            return value
        args, kwargs = mapped((args, kwargs), concrete)
        self.running = True
        try:
            if kind == "call_module":
                keeps_shape = leaf_of(self.module).op in ("dropout", "stochastic_depth")
                return torch.empty_like(args[0]) if keeps_shape else self.forward(*args, **kwargs)
            if kind == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)
        finally:
            self.running = False


def concrete(value):
    if isinstance(value, torch.fx.proxy.Attribute):
        return getattr(value.root.value, value.attr)
    if isinstance(value, ShapedProxy):
        return value.value
    if isinstance(value, torch.Tensor) and value.device.type != "meta":
        return torch.empty_like(value, device="meta")
    return value


@dataclasses.dataclass(eq=False)
class Trace:
    """One tracing of the model: its nodes and, beside each, what it gives."""

    model: nn.Module
    nodes: list
    values: list


def trace(model, examples):
    model = on_meta(model)
    tracer = ShapeTracer(examples)
    nodes = list(tracer.trace_model(model).nodes)
    return Trace(model, nodes, [tracer.values.get(node) for node in nodes])


def same_structure(one, other):
    def outline(trace):
        return [(n.op, str(n.target), [str(i) for i in n.all_input_nodes]) for n in trace.nodes]

    return outline(one) == outline(other)


# ---------------------------------------------------------------------------------- sizes


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension at the first tracing, and what it grows with: "" (nothing), "N" or "size"."""

    size: int
    grows: str = ""
    factor: int = 0  # of N
    sizes: tuple = ()  # at every tracing; two dimensions are the same if these are

    @property
    def fixed(self):
        return self.grows == ""

    def __eq__(self, other):
        return self.sizes == other.sizes

    def __hash__(self):
        return hash(self.sizes)


def dim_of(sizes, batches, names):
    """The dimension that has these sizes at these batch sizes and input sizes."""
    first = sizes[0]
    by_batch = {size * batches[0] == first * batch for size, batch in zip(sizes, batches)}
    if len(set(sizes)) == 1:
        return Dim(first, sizes=tuple(sizes))
    if by_batch == {True} and first % batches[0] == 0:
        return Dim(first, "N", first // batches[0], tuple(sizes))
    if all(size == first for size, name in zip(sizes, names) if name == names[0]):
        return Dim(first, "size", sizes=tuple(sizes))
    return Dim(first, "both", sizes=tuple(sizes))


class Traces:
    """The tracings of one model, and the shapes of their nodes with what they grow with."""

    BATCHES = (2, 3, 2, 5)

    def __init__(self, model, samples):
        self.samples = samples
        self.first = self.trace(model, 2, False)
        self.all = [self.first, self.trace(model, 3, False)]
        if not same_structure(*self.all):
            raise ExportError("the model computes something else at batch 3 than at batch 2")
        self.note = None
        self.open_size = any(sample.other for sample in samples) and self.add_other_size(model)
        if not self.open_size:
            self.all.append(self.trace(model, 5, False))

    def trace(self, model, batch, other):
        return trace(model, [s.tensor(batch, other and s.other) for s in self.samples])

    def add_other_size(self, model):
        try:
            others = [self.trace(model, batch, True) for batch in (2, 5)]
        except (AssertionError, RuntimeError) as error:
            self.note = f"only for this input size: {str(error).splitlines()[0]}"
            return False
        if not all(same_structure(self.first, other) for other in others):
            self.note = "only for this input size: at another one the model computes something else"
            return False
        self.all += others
        return True

    def fix_size(self):
        """Forgets the tracings at another input size."""
        self.all = self.all[:2]
        self.open_size = False

    @property
    def batches(self):
        return (2, 3, 2, 5) if self.open_size else (2, 3, 5)

    @property
    def names(self):
        return (0, 0, 1, 1) if self.open_size else (0, 0, 0)

    def dims(self, index):
        """The dimensions of a node's tensor; of its first one, if it gives several."""
        tensors = [first_tensor(trace.values[index]) for trace in self.all]
        ranks = {tensor.dim() for tensor in tensors}
        if len(ranks) > 1:
            raise ExportError(f"node {self.first.nodes[index].name} changes its rank")
        sizes = zip(*(tensor.shape for tensor in tensors))
        return [dim_of(size, self.batches, self.names) for size in sizes]


def first_tensor(value):
    while not isinstance(value, torch.Tensor):
        value = value[0]
    return value


# ---------------------------------------------------------------------------------- modules


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
    table = {
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
        nn.Identity: Leaf("identity"),
        nn.Flatten: Leaf("flatten", ("start_dim", "end_dim")),
        nn.PixelShuffle: Leaf("pixel_shuffle", ("upscale_factor",)),
        nn.Upsample: Leaf("upsample", ("mode",), {"size": None, "scale_factor": None}),
    }
    for dropout in (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout):
        table[dropout] = Leaf("dropout", ("p",), INPLACE)
    for axes in (1, 2, 3):

        def of(name, axes=axes):
            return getattr(nn, f"{name}{axes}d")

        table[of("Conv")] = conv_leaf(f"conv{axes}d", axes)
        table[of("ConvTranspose")] = conv_leaf(
            f"conv_transpose{axes}d", axes, output_padding=[0] * axes
        )
        table[of("BatchNorm")] = Leaf("batch_norm", ("num_features",), NORM)
        table[of("InstanceNorm")] = Leaf(
            "instance_norm", ("num_features",), {"affine": False, "track_running_stats": False}
        )
        table[of("MaxPool")] = Leaf(
            f"max_pool{axes}d", POOL, {"padding": 0, "dilation": 1, "ceil_mode": False}
        )
        table[of("AvgPool")] = Leaf(
            f"avg_pool{axes}d", POOL, {"padding": [0] * axes, "ceil_mode": False}
        )
        table[of("AdaptiveAvgPool")] = Leaf(f"adaptive_avg_pool{axes}d", ("output_size",))
        table[of("AdaptiveMaxPool")] = Leaf(f"adaptive_max_pool{axes}d", ("output_size",))
    return table


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


# ---------------------------------------------------------------------------------- export


class Graph:
    """The nodes of graph JSON, as they are added."""

    def __init__(self):
        self.inputs = []
        self.nodes = []
        self.names = set()

    def unique(self, name):
        candidate, count = name, 1
        while candidate in self.names:
            count += 1
            candidate = f"{name}#{count}"
        self.names.add(candidate)
        return candidate

    def text(self, name):
        lines = [f'{{"format": "gpumem-graph", "version": 1, "name": {json.dumps(name)},']
        lines.append(f' "inputs": {json.dumps(self.inputs)},')
        lines.append(' "nodes": [')
        lines.append(",\n".join("  " + json.dumps(node) for node in self.nodes))
        return "\n".join(lines) + "\n ]}\n"


class Exporter:
    """Turns one tracing into a Graph; what grows is looked up in all of them."""

    def __init__(self, traces, trace):
        self.traces = traces
        self.trace = trace
        self.index = {node: index for index, node in enumerate(trace.nodes)}
        self.graph = Graph()
        self.emitted = {}  # fx node -> name of the graph's node that holds its tensor
        self.shape_lines = []  # (name, index of the fx node whose shape the node has)
        self.held = set()  # ids of parameters that a node holds
        self.modules = dict(trace.model.named_modules())

    def run(self):
        for node in self.trace.nodes:
            try:
                getattr(self, node.op)(node)
            except ExportError:
                raise
            except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
                raise ExportError(
                    f"node {node.name} ({target_name(node)}): cannot be exported: {error!r}"
                ) from error
        self.add_unused_parameters()
        return self.graph

    # -- kinds of fx nodes

    def placeholder(self, node):
        tensor = self.value(node)
        shape = [dim_json(dim) for dim in self.dims(node)]
        if self.dims(node) and self.dims(node)[0].grows == "":
            raise ExportError(f"the input {node.name} does not have the batch as its first axis")
        name = self.graph.unique(node.name)
        self.graph.inputs.append({"name": name, "shape": shape, "dtype": dtype_name(tensor.dtype)})
        self.emitted[node] = name

    def get_attr(self, node):
        """Added where it is first read: weights that an op holds are no nodes."""

    def call_module(self, node):
        module = self.modules[node.target]
        leaf = leaf_of(module)
        attributes = module_attributes(module, leaf)
        inputs = [arg for arg in node.args if isinstance(arg, torch.fx.Node)]
        inputs += [arg for arg in node.kwargs.values() if isinstance(arg, torch.fx.Node)]
        if leaf.op == "multihead_attention" and node.kwargs.get("need_weights") is False:
            attributes["need_weights"] = False
        self.add(
            node,
            leaf.op,
            inputs,
            attributes,
            name=node.target,
            class_name=type(module).__name__,
            parameters=list(module.parameters()),
        )

    def call_method(self, node):
        self.call(node, node.target)

    def call_function(self, node):
        self.call(node, function_key(node))

    def output(self, node):
        mapped(node.args, lambda item: self.check_output(item))

    def check_output(self, item):
        if isinstance(item, torch.fx.Node) and item not in self.emitted:
            self.input_name(item)

    def call(self, node, key):
        in_place = key.endswith("_") and key[:-1] in HANDLERS
        handler = HANDLERS.get(key[:-1] if in_place else key)
        if handler is None:
            raise ExportError(
                f"node {node.name}: the function {target_name(node)} has no op in graph JSON"
            )
        handler(self, node, Arguments(node, handler.names), in_place)

    # -- what handlers use

    def value(self, node):
        return self.trace.values[self.index[node]]

    def dims(self, node):
        return self.traces.dims(self.index[node])

    def size_here(self, dim):
        """A dimension's size at this tracing."""
        return dim.sizes[self.traces.all.index(self.trace)]

    def input_name(self, node):
        if node not in self.emitted:
            if node.op != "get_attr":
                refuse(node, "is not its layer's first output; graph JSON has no others")
            self.add_attribute(node)
        return self.emitted[node]

    def add_attribute(self, node):
        tensor = self.value(node)
        shape = list(tensor.shape)
        if isinstance(tensor, nn.Parameter):
            self.add(node, "parameter", [], {"shape": shape}, name=node.target, parameters=[tensor])
            return
        attributes = {"shape": shape, "dtype": dtype_name(tensor.dtype)}
        self.add(node, "constant", [], attributes, name=node.target)

    def parameter(self, node):
        """The parameter that an argument is, or None for an argument that is None."""
        if node is None:
            return None
        tensor = self.value(node) if isinstance(node, torch.fx.Node) else None
        if tensor is not None and node.op == "get_attr" and isinstance(tensor, nn.Parameter):
            return tensor
        raise ExportError(f"node {node}: a weight that is computed has no op in graph JSON")

    def alias(self, node, source):
        self.emitted[node] = self.input_name(source)

    def add(
        self, node, op, inputs, attributes, name=None, class_name=None, parameters=(), last=True
    ):
        """Adds a node; the fx node's tensor is the last one added for it."""
        entry = {"name": None, "op": op}
        if class_name is not None:
            entry["class"] = class_name
        names = [item if isinstance(item, str) else self.input_name(item) for item in inputs]
        entry["name"] = self.graph.unique(name or node.name)
        if names:
            entry["inputs"] = names
        if attributes:
            entry["attrs"] = attributes
        self.add_parameter_counts(entry, parameters)
        self.graph.nodes.append(entry)
        if last:
            self.emitted[node] = entry["name"]
            self.shape_lines.append((entry["name"], self.index[node]))
        return entry["name"]

    def add_parameter_counts(self, entry, parameters):
        distinct = {id(parameter): parameter for parameter in parameters if parameter is not None}
        if not distinct:
            return
        entry["parameters"] = sum(parameter.numel() for parameter in distinct.values())
        tied = sum(p.numel() for key, p in distinct.items() if key in self.held)
        if tied:
            entry["tied_parameters"] = tied
        trained = {parameter.requires_grad for parameter in distinct.values()}
        if len(trained) > 1:
            name = entry["name"]
            raise ExportError(f"node {name}: some of its parameters are frozen, not all of them")
        if trained == {False}:
            entry["frozen"] = True
        self.held.update(distinct)

    def add_unused_parameters(self):
        """Parameters that forward does not read: they take memory, but never get a gradient."""
        for name, parameter in self.trace.model.named_parameters():
            if id(parameter) not in self.held:
                self.graph.nodes.append(
                    {
                        "name": self.graph.unique(name),
                        "op": "parameter",
                        "parameters": parameter.numel(),
                        "frozen": True,
                    }
                )


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def dim_json(dim):
    if dim.grows == "N":
        return "N" if dim.factor == 1 else f"{dim.factor}N"
    return dim.size


def target_name(node):
    target = node.target
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', None) or 'torch'}.{getattr(target, '__name__', target)}"


OPERATORS = {"iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "truediv": "div"}


def function_key(node):
    """The name that handlers are registered by; of functions of PyTorch and Python only."""
    target = node.target
    name = getattr(target, "__name__", str(target))
    package = (getattr(target, "__module__", None) or "torch").partition(".")[0]
    if package in ("_operator", "operator"):
        return OPERATORS.get(name, name)
    if package == "torch" or target is scaled_dot_product_attention:
        return name
    return target_name(node)


# ---------------------------------------------------------------------------------- functions


class Arguments:
    """The arguments of a call by name; rest holds those beyond the names."""

    def __init__(self, node, names):
        self.node = node
        self.named = dict(zip(names, node.args))
        self.rest = node.args[len(names) :]
        self.named.update(node.kwargs)
        # Methods call their first argument self.
        if "self" in self.named and names:
            self.named.setdefault(names[0], self.named["self"])

    def __getitem__(self, name):
        return self.named[name]

    def get(self, name, default=None):
        value = self.named.get(name, default)
        return default if value is None else value

    def sizes(self, name):
        """view(2, 3) and view((2, 3)) alike."""
        first = self.named.get(name)
        if isinstance(first, (list, tuple)):
            return list(first)
        return [first, *self.rest]


HANDLERS = {}


def handles(names, *keys):
    """Registers a handler for functions of these names, whose arguments are called so."""

    def register(function):
        function.names = names.split()
        for key in keys:
            HANDLERS[key] = function
        return function

    return register


def refuse(node, why):
    raise ExportError(f"node {node.name} ({target_name(node)}): {why}")


def keeps_shape(op, names="input", keep=(), defaults=None):
    """A handler of a function of one tensor; `keep` are arguments that become attributes."""

    def handler(exporter, node, arguments, in_place):
        if arguments.get("dtype") is not None:
            refuse(node, "casts as well; cast first")
        given = {name: plain(arguments.get(name)) for name in keep}
        attributes = {
            name: value
            for name, value in given.items()
            if value is not None and value != (defaults or {}).get(name)
        }
        if in_place or arguments.get("inplace") is True:
            attributes["inplace"] = True
        exporter.add(node, op, [arguments[handler.names[0]]], attributes)

    handler.names = names.split()
    return handler


for same_name in (
    "selu", "softplus", "softsign", "tanh", "sigmoid", "exp", "sqrt", "rsqrt", "square", "neg",
    "abs", "sin", "cos", "log", "clone",
):  # fmt: skip
    HANDLERS[same_name] = keeps_shape(same_name)
for same_name in ("relu", "relu6", "silu", "mish", "hardswish", "hardsigmoid"):
    HANDLERS[same_name] = keeps_shape(same_name, "input inplace")
HANDLERS["logsigmoid"] = keeps_shape("log_sigmoid")
HANDLERS["contiguous"] = keeps_shape("contiguous")
HANDLERS["gelu"] = keeps_shape("gelu", "input", ("approximate",), {"approximate": "none"})
HANDLERS["leaky_relu"] = keeps_shape(
    "leaky_relu", "input negative_slope inplace", ("negative_slope",)
)
HANDLERS["elu"] = keeps_shape("elu", "input alpha inplace", ("alpha",))
HANDLERS["hardtanh"] = keeps_shape(
    "hardtanh", "input min_val max_val inplace", ("min_val", "max_val")
)
HANDLERS["softmax"] = keeps_shape("softmax", "input dim", ("dim",))
HANDLERS["log_softmax"] = keeps_shape("log_softmax", "input dim", ("dim",))
HANDLERS["glu"] = keeps_shape("glu", "input dim", ("dim",))
HANDLERS["pixel_shuffle"] = keeps_shape(
    "pixel_shuffle", "input upscale_factor", ("upscale_factor",)
)


@handles(
    "input p training inplace", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"
)
def dropout(exporter, node, arguments, in_place):
    if arguments.named.get("training", True) is False:
        exporter.alias(node, arguments["input"])
        return
    attributes = {"p": arguments.get("p", 0.5)}
    if in_place or arguments.get("inplace") is True:
        attributes["inplace"] = True
    exporter.add(node, "dropout", [arguments["input"]], attributes)


def binary(op):
    """Of two tensors, or of one and a number: an op of one input."""

    def handler(exporter, node, arguments, in_place):
        tensors = [arguments[name] for name in ("input", "other")]
        tensors = [item for item in tensors if isinstance(item, torch.fx.Node)]
        if op == "pow" and isinstance(arguments["other"], (int, float)):
            exporter.add(node, op, tensors, {"exponent": arguments["other"]})
            return
        exporter.add(node, op, tensors, {"inplace": True} if in_place else {})

    handler.names = ["input", "other"]
    return handler


for binary_name in ("add", "sub", "mul", "div", "maximum", "pow", "matmul"):
    HANDLERS[binary_name] = binary(binary_name)
HANDLERS["subtract"] = HANDLERS["rsub"] = HANDLERS["sub"]
HANDLERS["multiply"] = HANDLERS["mul"]
HANDLERS["divide"] = HANDLERS["true_divide"] = HANDLERS["div"]
HANDLERS["bmm"] = HANDLERS["mm"] = HANDLERS["matmul"]


@handles("input mask value", "masked_fill")
def masked_fill(exporter, node, arguments, in_place):
    inputs = [arguments["input"], arguments["mask"]]
    exporter.add(node, "masked_fill", inputs, {"inplace": True} if in_place else {})


@handles("condition input other", "where")
def where(exporter, node, arguments, _):
    inputs = [arguments[name] for name in ("condition", "input", "other")]
    exporter.add(node, "where", [item for item in inputs if isinstance(item, torch.fx.Node)], {})


@handles(
    "input", "to", "type", "type_as", "float", "half", "bfloat16", "double", "long", "int", "bool"
)
def cast(exporter, node, arguments, _):
    source, wanted = exporter.value(arguments["input"]), exporter.value(node)
    if source.dtype == wanted.dtype:
        exporter.alias(node, arguments["input"])
        return
    exporter.add(node, "cast", [arguments["input"]], {"dtype": dtype_name(wanted.dtype)})


@handles("input dim keepdim", "mean", "sum")
def reduce(exporter, node, arguments, _):
    if arguments.get("dtype") is not None:
        refuse(node, "casts as well; cast first")
    attributes = {}
    if arguments.get("dim") is not None:
        attributes["dim"] = plain(arguments["dim"])
    if arguments.get("keepdim", False):
        attributes["keepdim"] = True
    exporter.add(node, function_name(node), [arguments["input"]], attributes)


def function_name(node):
    return node.target if isinstance(node.target, str) else node.target.__name__


@handles("tensors dim", "cat", "concat", "concatenate")
def concat(exporter, node, arguments, _):
    exporter.add(node, "concat", list(arguments["tensors"]), {"dim": arguments.get("dim", 0)})


@handles("tensors dim", "stack")
def stack(exporter, node, arguments, _):
    dim = arguments.get("dim", 0)
    parts = [
        exporter.add(node, "unsqueeze", [tensor], {"dim": dim}, last=False)
        for tensor in arguments["tensors"]
    ]
    exporter.add(node, "concat", parts, {"dim": dim})


# -- parts


@handles("input sizes dim", "split", "chunk", "tensor_split", "unbind", "split_with_sizes")
def split(exporter, node, arguments, _):
    unbinds = function_name(node) == "unbind"
    dim = arguments.named.get("sizes" if unbinds else "dim", arguments.named.get("dim", 0))
    source = exporter.value(arguments["input"])
    axis = dim % source.dim()
    sizes = [1 if unbinds else part.shape[axis] for part in exporter.value(node)]
    exporter.add(node, "split", [arguments["input"]], {"sizes": sizes, "dim": axis})


def item(exporter, node, source, index):
    """One part of a split, or the tensor of a layer that returns more."""
    if source.op == "call_module" and index == 0:
        exporter.alias(node, source)
        return
    if source.op == "call_module" or source not in exporter.emitted:
        return  # Graph JSON has the first output of a layer only: an error if another one is read.
    if HANDLERS.get(function_name(source)) is not split:
        refuse(node, f"reads a part of what {target_name(source)} gives")
    entry = next(n for n in exporter.graph.nodes if n["name"] == exporter.emitted[source])
    sizes, dim = entry["attrs"]["sizes"], entry["attrs"]["dim"]
    index %= len(sizes)
    attributes = {"dim": dim, "start": sum(sizes[:index]), "length": sizes[index]}
    if function_name(source) != "unbind":
        exporter.add(node, "item", [source], attributes)
        return
    part = exporter.add(node, "item", [source], attributes, last=False)
    exporter.add(node, "squeeze", [part], {"dim": dim})


class Steps:
    """A chain of ops that together make one fx node's tensor."""

    def __init__(self, exporter, node, source):
        self.exporter, self.node, self.source = exporter, node, source
        self.steps = []

    def then(self, op, attributes, more_inputs=()):
        self.steps.append((op, attributes, list(more_inputs)))

    def finish(self):
        current = self.source
        if not self.steps:
            self.exporter.alias(self.node, current)
        for at, (op, attributes, more) in enumerate(self.steps):
            last = at + 1 == len(self.steps)
            current = self.exporter.add(self.node, op, [current, *more], attributes, last=last)


@handles("input index", "getitem")
def getitem(exporter, node, arguments, _):
    source, index = arguments["input"], arguments["index"]
    if not isinstance(exporter.value(source), torch.Tensor):
        item(exporter, node, source, index)
        return
    index = list(index) if isinstance(index, (list, tuple)) else [index]
    rank = exporter.value(source).dim()
    used = sum(part is not None and part is not Ellipsis for part in index)
    if Ellipsis in [part for part in index if not isinstance(part, torch.fx.Node)]:
        at = next(i for i, part in enumerate(index) if part is Ellipsis)
        index[at : at + 1] = [slice(None)] * (rank - used)
    dims = exporter.dims(source)
    steps = Steps(exporter, node, source)
    axis = from_axis = 0
    for part in index:
        if part is None:
            steps.then("unsqueeze", {"dim": axis})
            axis += 1
            continue
        if isinstance(part, bool) or isinstance(part, (list, tuple)):
            refuse(node, "indexes by a list or a boolean")
        if isinstance(part, int):
            steps.then("select", {"dim": axis, "index": part})
        elif isinstance(part, slice):
            add_slice(exporter, steps, dims[from_axis], axis, part)
            axis += 1
        else:
            if exporter.value(part).dtype == torch.bool:
                refuse(node, "selects by a mask: how much is left depends on values")
            steps.then("index", {"dim": axis}, [part])
            axis += exporter.value(part).dim()
        from_axis += 1
    if sum(isinstance(part, torch.fx.Node) for part in index) > 1:
        refuse(node, "indexes by several tensors")
    steps.finish()


def add_slice(exporter, steps, dim, axis, part):
    size = exporter.size_here(dim)
    start, stop, step = part.indices(size)
    if step < 1:
        refuse(steps.node, "slices backwards")
    length = len(range(start, stop, step))
    if length == size and (part.stop is None or dim in exporter.dims(steps.node)):
        return  # All of the axis, at every size.
    attributes = {"dim": axis, "start": start}
    like = None
    if part.stop is not None:
        like = like_input(exporter, steps.node, length)
        attributes.update({"length": length} if like is None else {"like_dim": like[1]})
    if step != 1:
        attributes["step"] = step
    steps.then("slice", attributes, [like[0]] if like is not None else [])


def like_input(exporter, node, length):
    """The graph input's axis that the length of a slice is, if it changes with the input's size."""
    grown = [dim for dim in exporter.dims(node) if dim.grows == "size"]
    wanted = [dim for dim in grown if exporter.size_here(dim) == length]
    for source in exporter.trace.nodes:
        if source.op != "placeholder" or source not in exporter.emitted:
            continue
        for axis, dim in enumerate(exporter.dims(source)):
            if dim in wanted:
                return source, axis
    return None


@handles("input dim index", "select")
def select(exporter, node, arguments, _):
    attributes = {name: arguments[name] for name in ("dim", "index")}
    exporter.add(node, "select", [arguments["input"]], attributes)


@handles("input dim start length", "narrow")
def narrow(exporter, node, arguments, _):
    attributes = {name: arguments[name] for name in ("dim", "start", "length")}
    exporter.add(node, "slice", [arguments["input"]], attributes)


@handles("input dim index", "index_select")
def index_select(exporter, node, arguments, _):
    inputs = [arguments["input"], arguments["index"]]
    exporter.add(node, "index", inputs, {"dim": arguments["dim"]})


# -- shapes


@handles("input start_dim end_dim", "flatten")
def flatten(exporter, node, arguments, _):
    start, end = arguments.get("start_dim", 0), arguments.get("end_dim", -1)
    exporter.add(node, "flatten", [arguments["input"]], {"start_dim": start, "end_dim": end})


@handles("input dim sizes", "unflatten")
def unflatten(exporter, node, arguments, _):
    reshape(exporter, node, arguments, False)


@handles("input shape", "view", "reshape", "view_as", "reshape_as")
def reshape(exporter, node, arguments, _):
    steps = Steps(exporter, node, arguments["input"])
    if isinstance(arguments.get("shape"), torch.dtype):
        refuse(node, "sees a tensor as another type")
    if not add_reshape(steps, exporter.dims(arguments["input"]), exporter.dims(node)):
        refuse(node, "a view that moves elements across the batch axis has no op in graph JSON")
    steps.finish()


def product(dims):
    """What some dimensions have at every tracing, as one."""
    sizes = tuple(map(math.prod, zip(*(dim.sizes for dim in dims))))
    return sizes


def add_reshape(steps, before, after):
    """The steps from one shape to another of as many elements. A graph's reshape leaves the first
    axis alone; where that changes, flatten joins it with others, or unflatten takes it apart."""
    if before == after:
        return True
    if not before or not after:
        return False
    if before[0] == after[0]:
        add_inner_reshape(steps, before, after)
        return True
    for count in range(2, len(before) + 1):
        if product(before[:count]) == product(after[:1]):
            steps.then("flatten", {"start_dim": 0, "end_dim": count - 1})
            return add_reshape(steps, [after[0], *before[count:]], after)
    for count in range(2, len(after) + 1):
        if product(after[:count]) == product(before[:1]):
            add_unflatten(steps, 0, after[:count])
            return add_reshape(steps, [*after[:count], *before[1:]], after)
    return False


def add_inner_reshape(steps, before, after):
    open_axes = [axis for axis, dim in enumerate(after[1:]) if not dim.fixed]
    if len(open_axes) > 1:
        # Only one size can be left open; flatten and unflatten leave other axes alone.
        first = same_axes(before, after)
        last = same_axes(before[::-1], after[::-1])
        left, right = before[first : len(before) - last], after[first : len(after) - last]
        if len(right) == 1:
            steps.then("flatten", {"start_dim": first, "end_dim": first + len(left) - 1})
            return
        if len(left) == 1 and sum(not dim.fixed for dim in right) < 2:
            add_unflatten(steps, first, right)
            return
    sizes = [dim.size for dim in after[1:]]
    if len(open_axes) == 1:
        sizes[open_axes[0]] = -1
    steps.then("reshape", {"shape": sizes})


def same_axes(one, other):
    """How many axes two shapes begin with alike."""
    return next(i for i, (left, right) in enumerate(zip(one, other)) if left != right)


def add_unflatten(steps, axis, dims):
    open_axes = [at for at, dim in enumerate(dims) if not dim.fixed]
    sizes = [dim.size for dim in dims]
    if len(open_axes) == 1:
        sizes[open_axes[0]] = -1
    steps.then("unflatten", {"dim": axis, "sizes": sizes})


@handles("input dims", "permute")
def permute(exporter, node, arguments, _):
    exporter.add(node, "permute", [arguments["input"]], {"dims": arguments.sizes("dims")})


@handles("input dim0 dim1", "transpose", "swapaxes", "swapdims", "t")
def transpose(exporter, node, arguments, _):
    rank = exporter.value(arguments["input"]).dim()
    dims = list(range(rank))
    if rank > 1:
        one, other = arguments.named.get("dim0", 0) % rank, arguments.named.get("dim1", 1) % rank
        dims[one], dims[other] = dims[other], dims[one]
    exporter.add(node, "permute", [arguments["input"]], {"dims": dims})


@handles("input source destination", "movedim", "moveaxis")
def movedim(exporter, node, arguments, _):
    rank = exporter.value(arguments["input"]).dim()
    sources = [axis % rank for axis in as_list(arguments["source"])]
    targets = [axis % rank for axis in as_list(arguments["destination"])]
    dims = [axis for axis in range(rank) if axis not in sources]
    for target, source in sorted(zip(targets, sources)):
        dims.insert(target, source)
    exporter.add(node, "permute", [arguments["input"]], {"dims": dims})


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


@handles("input dim", "unsqueeze")
def unsqueeze(exporter, node, arguments, _):
    exporter.add(node, "unsqueeze", [arguments["input"]], {"dim": arguments["dim"]})


@handles("input dim", "squeeze")
def squeeze(exporter, node, arguments, _):
    shape = exporter.value(arguments["input"]).shape
    axes = range(len(shape))
    if arguments.named.get("dim") is not None:
        axes = [axis % len(shape) for axis in as_list(arguments["dim"])]
    steps = Steps(exporter, node, arguments["input"])
    for axis in sorted(axes, reverse=True):
        if shape[axis] == 1:
            steps.then("squeeze", {"dim": axis})
    steps.finish()


@handles("input sizes", "expand", "expand_as", "broadcast_to")
def expand(exporter, node, arguments, _):
    before, after = exporter.dims(arguments["input"]), exporter.dims(node)
    kept = [None] * (len(after) - len(before)) + before
    steps = Steps(exporter, node, arguments["input"])
    wanted = [-1 if left == right else dim_json(right) for left, right in zip(kept, after)]
    if any(dim.grows not in ("", "N") for left, dim in zip(kept, after) if left != dim):
        exporter.traces.note = f"only for this input size: node {node.name} expands to it"
    if any(size != -1 for size in wanted):
        steps.then("expand", {"shape": wanted})
    steps.finish()


@handles("input shifts dims", "roll")
def roll(exporter, node, arguments, _):
    exporter.add(node, "roll", [arguments["input"]], {})


@handles("input pad mode value", "pad")
def pad(exporter, node, arguments, _):
    exporter.add(node, "pad", [arguments["input"]], {"padding": list(arguments["pad"])})


@handles("input size scale_factor mode", "interpolate", "upsample")
def interpolate(exporter, node, arguments, _):
    attributes = {"mode": arguments.get("mode", "nearest")}
    for name in ("size", "scale_factor"):
        if arguments.get(name) is not None:
            attributes[name] = plain(arguments[name])
    exporter.add(node, "upsample", [arguments["input"]], attributes)


# -- layers as functions


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


@handles("input weight bias", "linear")
def linear(exporter, node, arguments, _):
    weight = exporter.parameter(arguments["weight"])
    bias = exporter.parameter(arguments.named.get("bias"))
    attributes = {"in_features": weight.shape[1], "out_features": weight.shape[0]}
    if bias is None:
        attributes["bias"] = False
    exporter.add(node, "linear", [arguments["input"]], attributes, parameters=[weight, bias])


def convolution(axes):
    def handler(exporter, node, arguments, _):
        weight = exporter.parameter(arguments["weight"])
        bias = exporter.parameter(arguments.named.get("bias"))
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
        if bias is None:
            attributes["bias"] = False
        inputs = [arguments["input"]]
        exporter.add(node, f"conv{axes}d", inputs, attributes, parameters=[weight, bias])

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


@handles("query key value attn_mask dropout_p is_causal", "scaled_dot_product_attention")
def attention(exporter, node, arguments, _):
    inputs = [arguments[name] for name in ("query", "key", "value")]
    if arguments.get("attn_mask") is not None:
        inputs.append(arguments["attn_mask"])
    attributes = {
        "dropout_p": arguments.get("dropout_p", 0.0),
        "is_causal": bool(arguments.get("is_causal", False)),
    }
    exporter.add(node, "scaled_dot_product_attention", inputs, attributes)


# ---------------------------------------------------------------------------------- files


def export(model, samples):
    """(Graph, Traces, the shape lines) of a model."""
    try:
        traces = Traces(model, samples)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        shapes = ", ".join("x".join(map(str, sample.shape)) for sample in samples)
        name = type(model).__name__
        raise ExportError(f"{name} does not run on samples of {shapes}: {error}") from error
    graphs = [Exporter(traces, trace) for trace in traces.all]
    texts = [exporter.run().text("") for exporter in graphs]
    first = graphs[0]
    if traces.open_size and (traces.note or len(set(texts)) > 1):
        difference = first_difference(texts) if len(set(texts)) > 1 else ""
        traces.fix_size()
        graphs = [Exporter(traces, trace) for trace in traces.all]
        texts = [exporter.run().text("") for exporter in graphs]
        first = graphs[0]
        traces.note = traces.note or f"only for this input size: {difference}"
    if len(set(texts)) > 1:
        raise ExportError(f"something changes with the batch size: {first_difference(texts)}")
    return first.graph, traces, first.shape_lines


def first_difference(texts):
    """The first line of the first text that another one has not."""
    other = next(text for text in texts if text != texts[0])
    lines = zip(texts[0].splitlines(), other.splitlines())
    return next(line.strip() for line, another in lines if line != another)


def export_graph(model, examples, name="model"):
    """The graph JSON of a module, for examples of its inputs, whose first axis is the batch."""
    samples = [Sample(tuple(example.shape[1:]), None, example.dtype) for example in examples]
    return export(model, samples)[0].text(name)


def shape_text(traces, lines):
    """The shapes of all nodes at two sizes, as PyTorch has them, and the number of parameters."""
    chosen = [traces.all[0], traces.all[-1]]

    def shapes(index):
        tensors = [first_tensor(trace.values[index]) for trace in chosen]
        return " ".join("x".join(map(str, tensor.shape)) or "scalar" for tensor in tensors)

    parameters = list(traces.first.model.parameters())
    text = [
        f"parameters {sum(p.numel() for p in parameters)}",
        f"trainable {sum(p.numel() for p in parameters if p.requires_grad)}",
    ]
    nodes = traces.first.nodes
    text += [f"input {n.name} {shapes(i)}" for i, n in enumerate(nodes) if n.op == "placeholder"]
    text += [f"{name} {shapes(split_source(traces, index))}" for name, index in lines]
    return "\n".join(text) + "\n"


def split_source(traces, index):
    """A split stands for its whole input, so it has that one's shape."""
    node = traces.first.nodes[index]
    value = traces.first.values[index]
    if isinstance(value, torch.Tensor) or node.op == "call_module":
        return index
    return traces.first.nodes.index(node.all_input_nodes[0])


def short_name(name):
    return name.rpartition(".")[2]


def export_named(name, num_classes=None, sample=None):
    """(graph JSON, shapes, a note or None) of a model by name."""
    sample = sample or SAMPLES.get(name, IMAGE)
    graph, traces, lines = export(build_model(name, num_classes), [sample])
    return graph.text(short_name(name)), shape_text(traces, lines), traces.note


def differing_files(write):
    """The files that are not what this script makes; brings them up to date if asked."""
    differing = []
    for name in SHIPPED:
        graph, shapes, _ = export_named(name)
        for path, text in (
            (GRAPHS / f"{short_name(name)}.json", graph),
            (SHAPES / f"{short_name(name)}.shapes", shapes),
        ):
            # Bytes, so that line ends are the same on every system.
            expected = text.encode("utf-8")
            if not path.exists() or path.read_bytes() != expected:
                differing.append(path.relative_to(ROOT))
                if write:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(expected)
    return differing


def sample_of(text, tokens):
    try:
        shape = tuple(int(size) for size in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise ExportError(f"--input {text}: expected sizes like 3x224x224")
    return Sample(shape, None, torch.int64 if tokens else torch.float32)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", metavar="MODEL", help="the one model to export")
    add("-o", "--output", metavar="FILE", type=pathlib.Path, help="where to write it")
    add("--num-classes", type=int, help="classes of MODEL's head")
    add("--input", metavar="SIZES", help="one sample's shape (3x224x224), to trace at that alone")
    add("--tokens", action="store_true", help="the input is integer ids: --input 128 --tokens")
    add("--shapes", action="store_true", help="write the shapes instead of the graph")
    add("--check", action="store_true", help="compare with the files instead of writing them")
    options = parser.parse_args(arguments)
    if options.model is None and (
        options.output or options.num_classes or options.input or options.shapes
    ):
        parser.error("-o, --num-classes, --input and --shapes go with --model")
    if options.model is not None and options.check:
        parser.error("--check takes no --model")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    # Nothing here computes; more threads would only cost their start.
    torch.set_num_threads(1)
    if options.model is not None:
        sample = sample_of(options.input, options.tokens) if options.input else None
        graph, shapes, note = export_named(options.model, options.num_classes, sample)
        if note:
            print(f"export_graph.py: {options.model}: {note}", file=sys.stderr)
        text = (shapes if options.shapes else graph).encode("utf-8")
        if options.output is None:
            sys.stdout.buffer.write(text)
        else:
            options.output.write_bytes(text)
        return 0
    differing = differing_files(write=not options.check)
    for path in differing:
        print(f"{path} " + ("differs" if options.check else "written"))
    if not differing:
        print(f"models/graphs: all {len(SHIPPED)} graphs and their shapes are up to date")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ExportError as error:
        sys.exit(f"export_graph.py: {error}")
