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
    The sum is taken after each dispatched op, when its outputs exist together with its inputs.
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
import pathlib
import sys

try:
    import torchvision

    from fake_tensor_steps.goldens import MIB, check_goldens, check_published, write_goldens, write_newer
    from fake_tensor_steps.meta_kernels import FakeTensorError
    from fake_tensor_steps.small_nets import SMALL_NETS
    from fake_tensor_steps.steps import NEWER_OPTIMIZERS, OPTIMIZERS, default_job, measure
except ImportError as error:
    sys.exit(f"fake_tensor.py: {error}. It needs PyTorch 1.13 and torchvision 0.14 (Debian 12's)")


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
