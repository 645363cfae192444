#!/usr/bin/env python3
"""The peers that are Python's, each as a process: one JSON job a line in, one JSON answer a line out.

  workers.py PEER [--weights DIR]     answers {"model": "resnet50", "batch": 32}
  workers.py --list                   the peers, one a line

  fake-tensor-mode           the peak of live storages in the second training step with Adam, under PyTorch 1.13's
                             FakeTensorMode (bench/references/fake_tensor.py, which adds the Meta kernels that 1.13 lacks)
  gpumemnet-mlp-pytorch,     GPUMemNet's networks as PyTorch modules on one thread (bench/references/network.py), from
  gpumemnet-transformer-pytorch  the features in the job's "features" and "sequence"; with --weights DIR those of a model
                             folder ("gpumem model import"), else made-up ones of the same shapes, whose answer means nothing
  deepspeed-zero-2, deepspeed-zero-3   DeepSpeed's estimate_zero{2,3}_model_states_mem_needs for 8 GPUs on one node: the
                             package's where it can be imported, else restated from its source
  accelerate                 what Accelerate's "estimate-memory" says of training with Adam in float32; as above
  features                   what GPUMemNet's networks read of a job; no peer of its own

Answers: {"bytes": N} or {"class": N, "range_mib": [..]}, and "how": "package" or "restated" where it may be either;
or {"error": WHY}.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "references"), str(HERE.parents[1] / "examples" / "pytorch")]

import jobs  # noqa: E402

GPUS = 8


def build(model, mode):
    """A model whose parameters are fake."""
    if model not in ("bert_like", "gpt_like", "mlp"):
        from fake_tensor_steps.steps import build_model

        return build_model(model, mode)
    import export_graph
    from torch import nn

    with mode:
        if model == "bert_like":
            return export_graph.BertLike()
        if model == "gpt_like":
            return export_graph.GptLike()
        layers = []
        for inputs, outputs in zip(jobs.MLP_WIDTHS, jobs.MLP_WIDTHS[1:]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def sample_of(model):
    """(shape of one sample, rows of labels that it has)"""
    return {"bert_like": ((128,), 1), "gpt_like": ((1024,), 1024), "mlp": ((jobs.MLP_WIDTHS[0],), 1)}.get(
        model, ((3, 224, 224), 1)
    )


def fake_inputs(model, batch):
    import torch

    shape, rows = sample_of(model)
    dtype = torch.int64 if model in ("bert_like", "gpt_like") else torch.float32
    return torch.zeros((batch, *shape), dtype=dtype), torch.zeros(batch * rows, dtype=torch.int64)


class FakeTensorMode:
    def __init__(self, _weights):
        from fake_tensor_steps import live_storages, meta_kernels, steps

        self.live_storages, self.steps = live_storages, steps
        self.kernels = meta_kernels.prepare()

    def mode(self):
        from torch._subclasses import fake_tensor

        mode = fake_tensor.FakeTensorMode()
        mode.as_published = False
        return mode

    def __call__(self, job):
        mode = self.mode()
        books = self.live_storages.LiveStorages()
        model = build(job["model"], mode).train()
        with mode:
            x, labels = fake_inputs(job["model"], job["batch"])
            books.hold(model.parameters(), "a parameter")
            books.hold(model.buffers(), "a buffer")
            books.hold([x, labels], "input or labels")
            with books:
                steps = self.steps.run_steps(model, x, labels, self.steps.OPTIMIZERS["adam"], books)
        return {"bytes": steps[-1].peak}


def read_safetensors(path):
    """The float32 tensors of a file, by name."""
    import torch

    blob = path.read_bytes()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            values = torch.frombuffer(bytearray(blob[begin:end]), dtype=torch.float32)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def parts_of(path, fields):
    return [f"{path}.{field}" for field in fields]


def names_of(network):
    """The names of a model folder's tensors (include/gpumem/ml/model_config.hpp), in the order of network.tensors_of()."""
    norm, dense = ("weight", "bias", "running_mean", "running_var"), ("weight", "bias")
    names = []
    for number, branch in enumerate(network.branches):
        if branch.encoder is not None:
            base = f"branches.{number}.encoder"
            for step in range(len(branch.encoder.embedding.linear)):
                names += parts_of(f"{base}.embedding.{step}.linear", dense)
                if branch.encoder.embedding.norms:
                    names += parts_of(f"{base}.embedding.{step}.norm", norm)
            for layer in range(len(branch.encoder.encoder.layers)):
                for part in ("attention.in_proj", "attention.out_proj", "norm1", "linear1", "linear2", "norm2"):
                    names += parts_of(f"{base}.layers.{layer}.{part}", dense)
        for index, member in enumerate(branch.members):
            base = f"branches.{number}.members.{index}"
            for step in range(sum("BatchNorm" in type(module).__name__ for module in member.layers)):
                names += parts_of(f"{base}.hidden.{step}.linear", dense)
                names += parts_of(f"{base}.hidden.{step}.norm", norm)
            names += parts_of(f"{base}.output", dense)
    return names


class PublishedNetwork:
    kind = "mlp"

    def __init__(self, weights):
        import network
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.edges = None
        if weights is None:
            shape = network.MLP_ENSEMBLE
            if self.kind == "transformer":
                shape = network.transformer_ensemble("position-batch-norm", "self", "sum")
            self.network = network.make(shape, 1, torch.float32)
            self.shape = shape
            return
        config = json.loads((weights / "config.json").read_text())
        self.shape, self.edges = config["network"], config["head"]["edges_mib"]
        self.network = network.Network(self.shape)
        self.fill(network.tensors_of(self.network), read_safetensors(weights / "model.safetensors"))
        for vector in config["test_vectors"]:
            self.check(vector)

    def fill(self, places, tensors):
        with self.torch.no_grad():
            for name, (_, place) in zip(names_of(self.network), places, strict=True):
                place.copy_(tensors.pop(name))
        if tensors:
            raise ValueError(f"the network has no place for {', '.join(tensors)}")

    def logits(self, features, rows):
        torch = self.torch
        sequence = None
        if "sequence" in self.shape:
            length, columns = self.shape["sequence"]["length"], self.shape["sequence"]["columns"]
            sequence = torch.zeros(1, length, columns)
            rows = rows[:length]
            sequence[0, : len(rows)] = torch.tensor(rows)
        with torch.inference_mode():
            return self.network(torch.tensor([features], dtype=torch.float32), sequence, None)[0]

    def check(self, vector):
        """That the network is put together as the folder's test vectors have it."""
        made = self.logits(vector["features"], vector.get("sequence", [])).tolist()
        for left, right in zip(made, vector["outputs"], strict=True):
            if abs(left - right) > 1e-3 * max(1.0, abs(right)):
                raise ValueError(f"a test vector gives {left}, not {right}")

    def __call__(self, job):
        made_up = [1.0] * self.shape["features"]
        columns = self.shape.get("sequence", {}).get("columns", 0)
        logits = self.logits(job.get("features", made_up), job.get("sequence", [[1.0] * columns] * 50))
        if self.edges is None:
            return {"how": "made-up weights"}
        found = int(logits.argmax())
        return {"class": found, "range_mib": self.edges[found : found + 2]}


class PublishedTransformer(PublishedNetwork):
    kind = "transformer"


class ModelStates:
    """Counts a model's parameters as the package's users do, of a model without memory."""

    def __init__(self, _weights):
        self.fake = FakeTensorMode(None)
        self.how = "package"
        self.formula = self.imported()
        if self.formula is None:
            self.formula, self.how = self.restated, "restated"

    def __call__(self, job):
        model = build(job["model"], self.fake.mode())
        return {"bytes": int(self.formula(model)), "how": self.how}


def counts_of(model):
    """(all parameters, shared ones once; those that the largest module holds itself)"""
    largest = max(sum(p.numel() for p in module.parameters(recurse=False)) for module in model.modules())
    return sum(p.numel() for p in model.parameters()), largest


class DeepSpeedTwo(ModelStates):
    def imported(self):
        try:
            from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as needs
        except ImportError:
            return None
        return lambda model: needs(counts_of(model)[0], num_gpus_per_node=GPUS, cpu_offload=False)[1]

    @staticmethod
    def restated(model):
        everything, _ = counts_of(model)
        return 2 * everything + 18 * everything // GPUS


class DeepSpeedThree(ModelStates):
    def imported(self):
        try:
            from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as needs
        except ImportError:
            return None
        return lambda model: needs(*counts_of(model), num_gpus_per_node=GPUS, cpu_offload=False)[1]

    @staticmethod
    def restated(model):
        everything, largest = counts_of(model)
        return 4 * largest + 18 * everything // GPUS


class Accelerate(ModelStates):
    def imported(self):
        try:
            from accelerate.commands.estimate import estimate_training_usage
            from accelerate.utils import calculate_maximum_sizes
        except ImportError:
            return None
        return lambda model: max(estimate_training_usage(calculate_maximum_sizes(model)[0], "float32").values())

    @staticmethod
    def restated(model):
        tensors = [*model.parameters(), *model.buffers()]
        return 4 * sum(tensor.numel() * tensor.element_size() for tensor in tensors)


# What GPUMemNet's networks read (include/gpumem_datasets/gpumemnet_checkpoint.hpp).

FUNCTIONS = "ELU GELU Identity LeakyReLU Mish PReLU ReLU SELU SiLU Softplus Tanh".split()
LISTED = "Conv BatchNorm LayerNorm Linear Pool Dropout Embedding".split()


def is_listed(module):
    import torch

    name = type(module).__name__
    return any(part in name for part in LISTED) or type(module).__module__ == torch.nn.ReLU.__module__


class Features:
    def __init__(self, _weights):
        self.fake = FakeTensorMode(None)

    def leaves(self, name):
        """(class, output of one sample, parameters) of the modules without modules, as they are called."""
        mode, found = self.fake.mode(), []
        model = build(name, mode).train()

        def note(module, _inputs, output):
            if not list(module.children()) and is_listed(module):
                held = sum(p.numel() for p in module.parameters())
                found.append((type(module).__name__, list(output.shape[1:]), held))

        for module in model.modules():
            module.register_forward_hook(note)
        with mode:
            model(fake_inputs(name, 2)[0])
            parameters = sum(p.numel() for p in model.parameters())
        return found, parameters

    def __call__(self, job):
        leaves, parameters = self.leaves(job["model"])
        count = {kind: sum(kind in name for name, _, _ in leaves) for kind in ("Conv2d", "Linear", "Norm", "Dropout")}
        layer_norms = sum(name == "LayerNorm" for name, _, _ in leaves)
        net = "cnn" if count["Conv2d"] else "transformer" if layer_norms else "mlp"
        sizes = [math.prod(shape[1:] if net == "cnn" and len(shape) == 3 else shape) for _, shape, _ in leaves]
        activations, batch = sum(sizes), job["batch"]
        functions = [name for name, _, _ in leaves if name in FUNCTIONS]
        index = FUNCTIONS.index(max(functions, key=functions.count) if functions else "Identity")
        total = len(FUNCTIONS)
        if net == "cnn":
            index, total = index - (index > FUNCTIONS.index("Identity")), total - 1
        sine, cosine = math.sin(index * math.pi / total), math.cos(index * math.pi / total)
        each = {
            "depth": count["Conv2d" if net == "cnn" else "Linear"], "batch_size": batch, "parameters": parameters,
            "activations": activations, "activations_times_batch": activations * batch,
            "conv2d_layers": count["Conv2d"], "batch_norm_layers": count["Norm"], "dropout_layers": count["Dropout"],
            "linear_layers": count["Linear"], "ndq_linear_layers": 0, "layer_norm_layers": layer_norms,
            "activation_sin": sine, "activation_cos": cosine, "activation_sin_truncated": int(sine),
            "activation_cos_truncated": int(cosine),
        }  # fmt: skip
        rows = [[*self.code(net, name), size, held] for (name, _, held), size in zip(leaves, sizes)]
        if net == "transformer":
            rows = [row for row in rows if any(row[:4])]
        return {"nets": net, "features": each, "sequence": rows}

    @staticmethod
    def code(net, name):
        if net == "transformer":
            kinds = ("LayerNorm", "Embedding", "Linear", "Dropout")
            return [int(kind in name) for kind in kinds]
        if net == "mlp":
            return [0, 1] if "Linear" in name else [1, 0]
        codes = {"Conv": [0, 1], "Linear": [1, 1], "Dropout": [0, 0], "Norm": [0, 0]}
        return next((code for kind, code in codes.items() if kind in name), [1, 0])


PEERS = {
    "fake-tensor-mode": FakeTensorMode,
    "gpumemnet-mlp-pytorch": PublishedNetwork,
    "gpumemnet-transformer-pytorch": PublishedTransformer,
    "deepspeed-zero-2": DeepSpeedTwo,
    "deepspeed-zero-3": DeepSpeedThree,
    "accelerate": Accelerate,
    "features": Features,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", choices=PEERS)
    parser.add_argument("--weights", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or options.peer is None:
        print(*PEERS, sep="\n")
        return 0
    try:
        peer, fault = PEERS[options.peer](options.weights), None
    except (ImportError, SystemExit, ValueError) as error:  # answered, for the parent to name
        peer, fault = None, f"{error}"
    for line in sys.stdin:
        try:
            answer = {"error": fault} if peer is None else peer(json.loads(line))
        except Exception as error:  # noqa: BLE001: whatever PyTorch does not like is the answer
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
