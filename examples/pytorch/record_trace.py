#!/usr/bin/env python3
"""Records what a PyTorch training job allocates and frees, on a CPU, for `gpumem replay-trace`.

  record_trace.py -o trace.json                  a small MLP, two steps with Adam
  record_trace.py -o trace.json --model resnet18 --batch 4
  gpumem replay-trace trace.json --gpu a100-40gb

Import record() to do the same with a model of your own:

  record(lambda: (MyModel(), torch.randn(32, 100), torch.randint(10, (32,))), "trace.json")

The recording begins before the model is built, so that its parameters are in it. Two steps are the
least that shows the peak: the optimizer makes its state at the end of the first. Needs PyTorch 1.13
or later (and torchvision for its models).
"""

from __future__ import annotations

import argparse
import json
import sys

try:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile
except ImportError as error:
    sys.exit(f"record_trace.py: {error}. It needs PyTorch (1.13 or later): pip install torch")


def mlp(batch):
    """A model, one batch of inputs and their labels."""
    layers = [nn.Linear(256, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 10)]
    return nn.Sequential(*layers), torch.randn(batch, 256), torch.randint(10, (batch,))


def vision_model(name, batch):
    import torchvision

    model = torchvision.models.get_model(name, weights=None)
    return model, torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))


def train(build, steps, optimizer):
    model, inputs, labels = build()
    loss_function = nn.CrossEntropyLoss()
    optimizer = optimizer(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()


def memory_events(profiler):
    """The allocations and frees, for a PyTorch that was built without Kineto (Debian's): its
    export_chrome_trace() leaves them out."""

    def all_below(nodes):
        # The tree is as deep as the calls were; no recursion.
        stack = list(nodes)
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children)

    tree = profiler.profiler.kineto_results.experimental_event_tree()
    found = [node for node in all_below(tree) if node.name == "[memory]"]
    found.sort(key=lambda node: node.start_time_ns)
    start = found[0].start_time_ns if found else 0
    for node in found:
        fields = node.extra_fields
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 0,
            "tid": 0,
            "ts": (node.start_time_ns - start) / 1000,
            "args": {
                "Total Reserved": fields.total_reserved,
                "Total Allocated": fields.total_allocated,
                "Bytes": fields.alloc_size,
                "Addr": fields.ptr,
                "Device Type": 0,
                "Device Id": -1,
            },
        }


def record(build, path, steps=2, optimizer=torch.optim.Adam):
    """Trains the model that build() returns, with its inputs and labels, and writes the trace."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        train(build, steps, optimizer)
    if torch.profiler.kineto_available():
        profiler.export_chrome_trace(path)
        return
    with open(path, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(event) for event in memory_events(profiler))
        file.write('{"traceEvents": [\n' + lines + "\n]}\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="the trace to write")
    parser.add_argument("--model", default="mlp", help="mlp, or the name of a torchvision model")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--optimizer", default="Adam", help="the name of a class in torch.optim")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    optimizer = getattr(torch.optim, options.optimizer)
    if options.optimizer == "SGD":
        optimizer = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)  # noqa: E731

    def build():
        return mlp(options.batch) if options.model == "mlp" else vision_model(options.model, options.batch)

    record(build, options.output, options.steps, optimizer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
