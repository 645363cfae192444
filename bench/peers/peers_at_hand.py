"""The peers that can be run on this machine, and why the others cannot."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

from predictors import Answer, LibtorchMeta, Ours, Peer, PublishedNetwork
from processes import Server

WORKERS = pathlib.Path(__file__).resolve().parent / "workers.py"
GPUS = 8  # of the formulas that share states


def import_checkpoints(program, folder, to):
    """Model folders of the published checkpoints: {family: {kind of net: folder}}."""
    found = {"mlp": {}, "transformer": {}}
    for family, by_net in found.items():
        for net in ("mlp", "cnn", "transformer"):
            target = to / f"{family}4{net}"
            checkpoint = folder / f"{family}4{net}.ckpt"
            subprocess.run([program, "model", "import", checkpoint, "-o", target], check=True, stdout=subprocess.DEVNULL)
            by_net[net] = target
    return found


def features_of(python, jobs):
    """What GPUMemNet's networks read of each job; nothing where PyTorch is not there."""
    server = Server([*python, str(WORKERS), "features"])
    found = {}
    for job in jobs:
        text, _ = server.ask(json.dumps({"model": job.model, "batch": job.batch}))
        found[job] = json.loads(text) if text else {"error": "it ended without an answer"}
    server.stop()
    return found if all("error" not in one for one in found.values()) else None


def estimators(program):
    """The names that the command line's help lists."""
    text = subprocess.run([program, "estimate", "--help"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^  (\S+)", text.split("Estimators:\n")[1], re.MULTILINE)


def all_peers(options, folder, jobs):
    python = [options.python]
    weights = {"mlp": None, "transformer": None}
    features = None
    if options.checkpoints:
        features = features_of(python, jobs)
        if features:
            weights = import_checkpoints(options.gpumem, options.checkpoints, folder)
    peers = []
    for name in ("fake-tensor-mode", "deepspeed-zero-2", "deepspeed-zero-3", "accelerate"):
        peers.append(Peer(name, [*python, str(WORKERS), name], folder))
    for family, folders in weights.items():
        name = f"gpumemnet-{family}-pytorch"
        peers.append(PublishedNetwork(name, [*python, str(WORKERS), name], folder, features, folders))
    if options.libtorch_meta:
        peers.append(LibtorchMeta("libtorch-meta", [str(options.libtorch_meta)], folder))
    for name in estimators(options.gpumem):
        # DeepSpeed's formulas are of 16-bit training.
        fields = {"data_parallel": GPUS, "precision": "bf16"} if name.startswith("zero-") else {}
        own = weights.get(name.removeprefix("gpumemnet-")) if name.startswith("gpumemnet-") else None
        peers.append(Ours(name, str(options.gpumem), folder, fields, features, own))
    return peers


def try_out(peers, job, options):
    """(those that answer, why the others do not, how those answer that have several ways)"""
    present, absent, how = [], {}, {}
    for peer in peers:
        try:
            answer = peer.cold(job)[0]
        except OSError as error:
            answer = Answer(error=str(error))
        if answer.error:
            absent[peer.name] = answer.error
        else:
            present.append(peer)
            how[peer.name] = answer.how
    if not options.libtorch_meta:
        absent["libtorch-meta"] = "not built, or not named with --libtorch-meta"
    return present, absent, how
