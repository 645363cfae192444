#!/usr/bin/env python3
"""Runs networks of the forms in include/gpumem/ml/model_config.hpp with PyTorch's own modules.

  network.py                        remakes tests/golden/network/networks.json: small networks, what PyTorch gives for them
  network.py --check                computes it again; exits 1 where it differs by more than 1e-9
  network.py --time GPUMEM_BENCH    times PyTorch on one thread, runs GPUMEM_BENCH (build/bench/bench/gpumem_bench) in
                                    between, and prints both with their ratio; medians of
                                    CPU time

Weights and inputs come from Knuth's MMIX generator (tests/support/networks.hpp has the same), seeded by the number of
the case, so that the file holds outputs only. They are float32 figures; PyTorch computes the golden outputs in float64,
so that what is compared is gpumem's rounding alone, and the timed ones in float32.

The encoder is nn.TransformerEncoder, post-norm, ReLU, in evaluation mode. attention "sequence" is batch_first with
src_key_padding_mask; attention "self" is batch_first=False on a tensor that is [batch, position, unit] nonetheless, with
a batch of one job, which is how GPUMemNet calls it.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "network" / "networks.json"


class Figures:
    """Knuth's MMIX generator; its upper 24 bits, which float32 holds exactly."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**24

    def symmetric(self, count):
        return [2.0 * self.next() - 1.0 for _ in range(count)]


class Embedding(nn.Module):
    """position-batch-norm: (Linear -> BatchNorm with a channel a position -> ReLU), twice; linear: one Linear."""

    def __init__(self, kind, columns, width, length):
        super().__init__()
        self.norms = kind == "position-batch-norm"
        steps = 2 if self.norms else 1
        self.linear = nn.ModuleList(nn.Linear(width if step else columns, width) for step in range(steps))
        self.norm = nn.ModuleList(nn.BatchNorm1d(length) for _ in range(steps if self.norms else 0))

    def forward(self, x):
        for step, linear in enumerate(self.linear):
            x = linear(x)
            if self.norms:
                x = torch.relu(self.norm[step](x))
        return x


def positions(length, width):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : width // 2]
    return table


class Encoder(nn.Module):
    def __init__(self, shape, length, columns):
        super().__init__()
        self.shape = shape
        width = shape["width"]
        self.embedding = Embedding(shape["embedding"], columns, width, length)
        self.register_buffer("positions", positions(length, width))
        layer = nn.TransformerEncoderLayer(width, shape["heads"], shape["feed_forward"], dropout=0.0,
                                           batch_first=shape["attention"] == "sequence")
        self.encoder = nn.TransformerEncoder(layer, shape["layers"], enable_nested_tensor=False)

    def forward(self, x, padding):
        x = self.embedding(x) + self.positions.to(x.dtype)
        if self.shape["attention"] == "sequence":
            x = self.encoder(x, src_key_padding_mask=padding)
        else:
            x = self.encoder(x)
        if self.shape["pooling"] == "sum":
            return x.sum(dim=1)
        real = (~padding).to(x.dtype)[:, :, None]
        return (x * real).sum(dim=1) / real.sum(dim=1)


class Member(nn.Module):
    def __init__(self, inputs, widths, outputs):
        super().__init__()
        layers = []
        for width in widths:
            layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
            inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def forward(self, x):
        return self.layers(x)


class Branch(nn.Module):
    def __init__(self, network, shape):
        super().__init__()
        self.encoder = None
        inputs = network["features"]
        if "encoder" in shape:
            self.encoder = Encoder(shape["encoder"], network["sequence"]["length"], network["sequence"]["columns"])
            inputs += shape["encoder"]["width"]
        self.members = nn.ModuleList(Member(inputs, widths, network["outputs"]) for widths in shape["members"])

    def forward(self, features, sequence, padding):
        x = features
        if self.encoder is not None:
            x = torch.cat([self.encoder(sequence, padding), features], dim=1)
        return torch.stack([member(x) for member in self.members]).mean(dim=0)


class Network(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.branches = nn.ModuleList(Branch(network, shape) for shape in network["branches"])
        self.eval()

    def forward(self, features, sequence=None, padding=None):
        return torch.stack([branch(features, sequence, padding) for branch in self.branches]).mean(dim=0)


def tensors_of(network):
    """PyTorch's tensors in gpumem's order (tensors_of() in ml/model_config.hpp)."""

    def batch_norm(norm):
        return [("factor", norm.weight), ("", norm.bias), ("", norm.running_mean), ("factor", norm.running_var)]

    def linear(module):
        return [("", module.weight), ("", module.bias)]

    def layer_norm(norm):
        return [("factor", norm.weight), ("", norm.bias)]

    tensors = []
    for branch in network.branches:
        if branch.encoder is not None:
            for step, module in enumerate(branch.encoder.embedding.linear):
                tensors += linear(module)
                if branch.encoder.embedding.norms:
                    tensors += batch_norm(branch.encoder.embedding.norm[step])
            for layer in branch.encoder.encoder.layers:
                tensors += [("", layer.self_attn.in_proj_weight), ("", layer.self_attn.in_proj_bias)]
                tensors += linear(layer.self_attn.out_proj) + layer_norm(layer.norm1)
                tensors += linear(layer.linear1) + linear(layer.linear2) + layer_norm(layer.norm2)
        for member in branch.members:
            for module in member.layers:
                if isinstance(module, nn.Linear):
                    tensors += linear(module)
                elif isinstance(module, nn.BatchNorm1d):
                    tensors += batch_norm(module)
    return tensors


def make(shape, seed, dtype):
    """The network with figures that float32 holds."""
    network = Network(shape).to(dtype)
    figures = Figures(seed)
    with torch.no_grad():
        for kind, tensor in tensors_of(network):
            values = torch.tensor(figures.symmetric(tensor.numel()), dtype=torch.float32).reshape(tensor.shape)
            tensor.copy_(0.5 * values + 1.0 if kind == "factor" else values)
    return network


def inputs_of(shape, rows, figures, dtype):
    """One job: features, then the real rows; padding is zeros."""
    features = torch.tensor([figures.symmetric(shape["features"])], dtype=dtype)
    if "sequence" not in shape:
        return features, None, None
    length, columns = shape["sequence"]["length"], shape["sequence"]["columns"]
    sequence = torch.zeros(1, length, columns, dtype=dtype)
    sequence[0, :rows] = torch.tensor(figures.symmetric(rows * columns), dtype=dtype).reshape(rows, columns)
    padding = torch.arange(length)[None, :] >= rows
    return features, sequence, padding


def encoder(width, layers, heads, feed_forward, embedding, attention, pooling):
    return {"width": width, "layers": layers, "heads": heads, "feed_forward": feed_forward, "embedding": embedding,
            "attention": attention, "pooling": pooling}


def halving(depths):
    return [[8] + [4] * (depth - 1) for depth in depths]


MLP_ENSEMBLE = {"features": 10, "outputs": 6,
                "branches": [{"members": halving([*range(1, 9), *range(4, 9), *range(4, 7)])}]}


def transformer_ensemble(embedding, attention, pooling):
    members = halving([*range(1, 8), *range(1, 7)])
    return {"features": 9, "outputs": 6, "sequence": {"length": 119, "columns": 4},
            "branches": [{"encoder": encoder(6, 3, 1, 4, embedding, attention, pooling), "members": members},
                         {"encoder": encoder(4, 2, 1, 4, embedding, attention, pooling), "members": members}]}


def small(columns, length, features, shape, members):
    return {"features": features, "outputs": 3, "sequence": {"length": length, "columns": columns},
            "branches": [{"encoder": shape, "members": members}]}


NETWORKS = [
    (MLP_ENSEMBLE, [0]),
    # No hidden layer; members too wide to be side by side; odd widths; more than eight of one kind.
    ({"features": 5, "outputs": 2, "branches": [{"members": [[], [40, 3], [8]]}, {"members": [[5, 7]] * 9}]}, [0]),
    (transformer_ensemble("position-batch-norm", "self", "sum"), [119, 70, 1]),
    (transformer_ensemble("linear", "sequence", "mean"), [119, 70, 1]),
    (small(3, 21, 2, encoder(12, 2, 3, 9, "linear", "sequence", "mean"), [[4]]), [21, 17, 16, 2]),
    (small(2, 33, 1, encoder(20, 1, 2, 33, "linear", "sequence", "sum"), [[8, 4]]), [33, 32, 1]),
    (small(5, 8, 0, encoder(7, 2, 7, 1, "position-batch-norm", "sequence", "mean"), [[6]]), [8, 3]),
    (small(1, 17, 2, encoder(3, 1, 1, 2, "linear", "self", "mean"), [[]]), [17, 5]),
]


def golden():
    cases = []
    for number, (shape, all_rows) in enumerate(NETWORKS):
        network = make(shape, number, torch.float64)
        figures = Figures(1000 + number)
        outputs = [network(*inputs_of(shape, rows, figures, torch.float64))[0].tolist() for rows in all_rows]
        cases.append({"network": shape, "seed": number, "rows": all_rows, "outputs": outputs})
    return cases


def written(cases):
    lines = [json.dumps(case) for case in cases]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def check(cases):
    stored = json.loads(GOLDEN.read_text())
    same_cases = [{**case, "outputs": None} for case in stored] == [{**case, "outputs": None} for case in cases]
    worst = 0.0
    if same_cases:
        for old, new in zip(stored, cases):
            for left, right in zip(sum(old["outputs"], []), sum(new["outputs"], [])):
                worst = max(worst, abs(left - right) / max(1.0, abs(right)))
    if not same_cases or worst > 1e-9:
        print(f"{GOLDEN.relative_to(ROOT)} is not what PyTorch gives: run {pathlib.Path(__file__).name}", file=sys.stderr)
        return 1
    print(f"{len(cases)} networks are as PyTorch has them")
    return 0


def median_seconds(call, seconds=1.0):
    """Of CPU time, as Google Benchmark has it: other programs do not count."""
    call()
    times = []
    end = time.process_time() + seconds
    while time.process_time() < end or len(times) < 5:
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def pytorch_times():
    torch.set_num_threads(1)
    own = transformer_ensemble("linear", "sequence", "mean")
    published = transformer_ensemble("position-batch-norm", "self", "sum")
    times = {}
    with torch.inference_mode():
        for name, shape, jobs in [("network_mlp", MLP_ENSEMBLE, 1), ("network_mlp_batch", MLP_ENSEMBLE, 1024),
                                  ("network_transformer_sequence", own, 1),
                                  ("network_transformer_self", published, 1)]:
            network = make(shape, 1, torch.float32)
            job = inputs_of(shape, 119, Figures(2), torch.float32)
            batch = [None if part is None else part.expand(jobs, *part.shape[1:]).contiguous() for part in job]
            times[name] = median_seconds(lambda: network(*batch)) / jobs
    return times


def gpumem_times(program):
    command = [program, "--benchmark_filter=^network_", "--benchmark_format=json", "--benchmark_repetitions=5",
               "--benchmark_report_aggregates_only=true"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    medians = {}
    for row in report["benchmarks"]:
        if row["aggregate_name"] == "median":
            jobs = 1024 if row["run_name"] == "network_mlp_batch" else 1
            medians[row["run_name"]] = row["cpu_time"] * units[row["time_unit"]] / jobs
    return medians


def compare(program):
    before = pytorch_times()
    ours = gpumem_times(program)
    after = pytorch_times()
    print(f"PyTorch {torch.__version__}, one thread; microseconds of CPU time a job, medians\n")
    print(f"{'':32}{'gpumem':>10}{'PyTorch':>12}{'ratio':>9}")
    for name, first in before.items():
        theirs = min(first, after[name])
        print(f"{name:32}{ours[name] * 1e6:10.3f}{theirs * 1e6:12.2f}{theirs / ours[name]:9.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--time", metavar="GPUMEM_BENCH")
    arguments = parser.parse_args()
    if arguments.time:
        compare(arguments.time)
        return 0
    cases = golden()
    if arguments.check:
        return check(cases)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(written(cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
