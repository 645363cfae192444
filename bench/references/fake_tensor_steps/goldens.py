"""The files of tests/golden/fake_tensor and the published peaks: made, and compared with."""

from __future__ import annotations

import json
import pathlib

import torch

from .graph_json import graph_json
from .meta_kernels import FakeTensorError
from .small_nets import SMALL_NETS
from .steps import NEWER_NETS, NEWER_OPTIMIZERS, OPTIMIZERS, default_job, measure

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "fake_tensor"
MIB = 1024**2

# Peaks in MiB at batch 32: forward + backward, and the second step with SGD with momentum.
PUBLISHED = {
    "resnet18": (746.4, 791.0),
    "resnet50": (2751.8, 2849.3),
    "vgg16": (3277.5, 3808.4),
    "mobilenet_v2": (2420.6, 2433.9),
    "inception_v3": (3145.5, 3249.1),
}


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
