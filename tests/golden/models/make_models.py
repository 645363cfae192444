#!/usr/bin/env python3
"""Makes the small models next to it. Their weights are made up: they estimate nothing and only test what reads models.

It shares no code with gpumem: weights are written by the description of the safetensors format, and the outputs of the
test vectors are computed here in double precision. With --check it says whether the files are what it makes, and reads
the weights back the way the format is described.
"""

import json
import math
import random
import struct
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
EPSILON = 1e-5


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Weights:
    """Tensors by name, in order, with values that float32 holds."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = {}

    def add(self, name, shape, low=-1.0, high=1.0):
        values = [float32(self.random.uniform(low, high)) for _ in range(math.prod(shape))]
        self.tensors[name] = (shape, values)

    def linear(self, name, outputs, inputs):
        self.add(name + ".weight", [outputs, inputs])
        self.add(name + ".bias", [outputs])

    def norm(self, name, width, running=False):
        self.add(name + ".weight", [width], 0.5, 1.5)
        self.add(name + ".bias", [width])
        if running:
            self.add(name + ".running_mean", [width])
            self.add(name + ".running_var", [width], 0.5, 2.0)

    def __getitem__(self, name):
        return self.tensors[name][1]


def write_safetensors(weights):
    header, data = {"__metadata__": {"made": "by make_models.py"}}, b""
    for name, (shape, values) in weights.tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(file):
    length = struct.unpack("<Q", file[:8])[0]
    header, data = json.loads(file[8 : 8 + length]), file[8 + length :]
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])))
    return tensors


def linear(weights, name, x):
    matrix, bias = weights[name + ".weight"], weights[name + ".bias"]
    return [b + sum(matrix[row * len(x) + column] * x[column] for column in range(len(x))) for row, b in enumerate(bias)]


def relu(x):
    return [max(value, 0.0) for value in x]


def batch_norm(weights, name, x):
    parts = (weights[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
    return [(v - m) / math.sqrt(s + EPSILON) * w + b for v, w, b, m, s in zip(x, *parts)]


def layer_norm(weights, name, x):
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in x) / len(x) + EPSILON)
    return [(v - mean) / deviation * w + b for v, w, b in zip(x, weights[name + ".weight"], weights[name + ".bias"])]


def mean_of(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def members(weights, name, shapes, x):
    outputs = []
    for member, widths in enumerate(shapes):
        y = x
        for hidden in range(len(widths)):
            prefix = f"{name}members.{member}.hidden.{hidden}"
            y = relu(batch_norm(weights, prefix + ".norm", linear(weights, prefix + ".linear", y)))
        outputs.append(linear(weights, f"{name}members.{member}.output", y))
    return mean_of(outputs)


def add_members(weights, name, shapes, inputs, outputs):
    for member, widths in enumerate(shapes):
        before = inputs
        for hidden, width in enumerate(widths):
            weights.linear(f"{name}members.{member}.hidden.{hidden}.linear", width, before)
            weights.norm(f"{name}members.{member}.hidden.{hidden}.norm", width, running=True)
            before = width
        weights.linear(f"{name}members.{member}.output", outputs, before)


def attention(weights, name, rows, heads):
    width = len(rows[0])
    size = width // heads
    projected = [linear(weights, name + ".in_proj", row) for row in rows]
    attended = []
    for query in projected:
        joined = []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = [
                sum(a * b for a, b in zip(query[:width][part], other[width : 2 * width][part])) / math.sqrt(size)
                for other in projected
            ]
            exponentials = [math.exp(score - max(scores)) for score in scores]
            values = [other[2 * width :][part] for other in projected]
            for column in zip(*values):
                joined.append(sum(e * v for e, v in zip(exponentials, column)) / sum(exponentials))
        attended.append(linear(weights, name + ".out_proj", joined))
    return attended


def encode(weights, name, encoder, rows):
    width = encoder["width"]
    x = []
    for position, row in enumerate(rows):
        embedded = linear(weights, name + "embedding.0.linear", row)
        angles = [position * math.exp(-(unit - unit % 2) * math.log(10000.0) / width) for unit in range(width)]
        x.append([e + (math.cos(a) if unit % 2 else math.sin(a)) for unit, (e, a) in enumerate(zip(embedded, angles))])
    for layer in range(encoder["layers"]):
        prefix = f"{name}layers.{layer}."
        attended = attention(weights, prefix + "attention", x, encoder["heads"])
        x = [layer_norm(weights, prefix + "norm1", [a + b for a, b in zip(*pair)]) for pair in zip(x, attended)]
        fed = [linear(weights, prefix + "linear2", relu(linear(weights, prefix + "linear1", row))) for row in x]
        x = [layer_norm(weights, prefix + "norm2", [a + b for a, b in zip(*pair)]) for pair in zip(x, fed)]
    return mean_of(x)


def add_encoder(weights, name, encoder, columns):
    width = encoder["width"]
    weights.linear(name + "embedding.0.linear", width, columns)
    for layer in range(encoder["layers"]):
        prefix = f"{name}layers.{layer}."
        weights.linear(prefix + "attention.in_proj", 3 * width, width)
        weights.linear(prefix + "attention.out_proj", width, width)
        weights.norm(prefix + "norm1", width)
        weights.linear(prefix + "linear1", encoder["feed_forward"], width)
        weights.linear(prefix + "linear2", width, encoder["feed_forward"])
        weights.norm(prefix + "norm2", width)


def transformed(specs, raw):
    values = [math.log1p(x) if spec.get("transform") == "log1p" else x for spec, x in zip(specs, raw)]
    return [float32((x - spec.get("mean", 0)) / spec.get("scale", 1)) for spec, x in zip(specs, values)]


PROVENANCE = {"data": "none: the weights are made up by make_models.py, for tests", "licence": "Apache-2.0"}


def bins():
    """Two perceptrons, bins of memory."""
    shapes = [[4, 3], []]
    weights = Weights(1)
    add_members(weights, "branches.0.", shapes, 3, 4)
    features = [
        {"name": "parameters_mib", "transform": "log1p", "mean": 14.5, "scale": 2.5, "min": 1000, "max": 100000000},
        {"name": "outputs_mib", "transform": "log1p", "mean": 15, "scale": 2},
        {"name": "batch_size", "transform": "identity", "mean": 64, "scale": 32, "min": 1, "max": 512},
    ]
    vectors = []
    for raw in ([25557032, 10000000, 32], [1000, 1, 512]):
        outputs = members(weights, "branches.0.", shapes, transformed(features, raw))
        vectors.append({"features": raw, "outputs": [float32(x) for x in outputs]})
    config = {
        "format": "gpumem-model",
        "version": 1,
        "name": "made-up-bins",
        "nets": "cnn",
        "network": {"features": 3, "outputs": 4, "branches": [{"members": shapes}]},
        "features": features,
        "head": {"type": "bins", "edges_mib": [0, 8000, 16000, 24000, 40960]},
        "provenance": PROVENANCE,
        "accuracy": {"made_up": 0.25},
        "test_vectors": vectors,
    }
    return config, weights


def sequence():
    """An encoder and a perceptron in parallel, values."""
    encoder = {
        "width": 4,
        "layers": 2,
        "heads": 2,
        "feed_forward": 3,
        "embedding": "linear",
        "attention": "sequence",
        "pooling": "mean",
    }
    shapes = [[[5], [5, 4]], [[2]]]
    weights = Weights(2)
    add_encoder(weights, "branches.0.encoder.", encoder, 3)
    add_members(weights, "branches.0.", shapes[0], encoder["width"] + 1, 2)
    add_members(weights, "branches.1.", shapes[1], 1, 2)
    features = [{"name": "batch_size", "transform": "log1p", "mean": 3, "scale": 1.5}]
    rows = [
        {"name": "layer_outputs_mib", "transform": "log1p", "mean": 10, "scale": 4},
        {"name": "layer_parameters_mib", "transform": "log1p", "mean": 8, "scale": 5},
        {"name": "is_linear", "transform": "identity", "mean": 0, "scale": 1},
    ]
    vectors = []
    layers = [[802816, 9408, 0], [802816, 128, 0], [1000, 513000, 1], [200704, 0, 0], [10, 10010, 1]]
    for batch, count in ((32, 4), (8, 1), (64, 5)):
        x = transformed(features, [batch])
        read = [transformed(rows, row) for row in layers[: min(count, 4)]]
        first = members(weights, "branches.0.", shapes[0], encode(weights, "branches.0.encoder.", encoder, read) + x)
        second = members(weights, "branches.1.", shapes[1], x)
        outputs = [float32(value) for value in mean_of([first, second])]
        vectors.append({"features": [batch], "sequence": layers[:count], "outputs": outputs})
    config = {
        "format": "gpumem-model",
        "version": 1,
        "name": "made-up-sequence",
        "nets": "any",
        "network": {
            "features": 1,
            "outputs": 2,
            "sequence": {"length": 4, "columns": 3},
            "branches": [{"encoder": encoder, "members": shapes[0]}, {"members": shapes[1]}],
        },
        "features": features,
        "sequence": rows,
        "head": {"type": "values", "names": ["log_ratio", "spread"]},
        "provenance": PROVENANCE,
        "test_vectors": vectors,
    }
    return config, weights


def main():
    check = sys.argv[1:] == ["--check"]
    for name, (config, weights) in {"bins": bins(), "sequence": sequence()}.items():
        text = json.dumps(config, indent=1) + "\n"
        files = {"config.json": text.encode(), "model.safetensors": write_safetensors(weights)}
        for file, content in files.items():
            path = FOLDER / name / file
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            elif path.suffix == ".json" and json.loads(path.read_bytes()) == config:
                continue  # however it is laid out
            elif path.suffix != ".json" and read_safetensors(path.read_bytes()) == weights.tensors:
                continue
            else:
                sys.exit(f"{path} is not what make_models.py makes")


if __name__ == "__main__":
    main()
