#!/usr/bin/env python3
"""Puts the same jobs through other ways to predict GPU memory and through gpumem, in one run on one machine.

  peers.py --gpumem build/bench/src/cli/gpumem [--libtorch-meta build/bench/bench/peers/libtorch_meta]
           [--checkpoints DIR] [--rounds 5] [--job MODEL...] [-o FOLDER] [--readme README.md]
  peers.py --gpumem ... --smoke      one job, one round: that everything runs and agrees; exits 77 without PyTorch

Peers (workers.py says how each is run): PyTorch's FakeTensorMode, libtorch's meta device in C++ (libtorch_meta.cpp),
GPUMemNet's published networks in PyTorch (--checkpoints: the folder with its six .ckpt files; without it networks of the
same shapes with made-up weights, which tell times alone), DeepSpeed's and Accelerate's published formulas (the packages
where they can be imported, else restated from their source). A peer that cannot be run is named, with the reason.

What is measured, everything on one thread, in CPU time, so that what else the machine does counts little (wall time
would favour gpumem on a busy machine: what takes milliseconds is not interrupted, what takes seconds is):
  cold     a process from its start to its end that answers one job; gpumem's is "gpumem estimate"
  warm     one more answer of a process that is up and has answered before, from the line that asks to the line that
           answers, the median of several. The model is built again each time: gpumem reads another copy of its graph JSON
           ("gpumem batch"), Python peers construct the module without memory. GPUMemNet's networks alone are given
           their features ready made, where gpumem finds them in the graph.
  memory   the most that the process held (VmHWM) when it had answered one job
A round puts every job through every peer, in an order that moves on from round to round. Ratios are of two figures of
the same round and job; the median over rounds is taken, and over jobs in the short table. Ctrl-C ends with the rounds
that are whole; -o writes its files after each.

-o writes peers.md and peers.json (every single figure); --readme puts the short table between its two marks there.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import jobs as job_list  # noqa: E402
from peers_at_hand import all_peers, try_out  # noqa: E402
from rounds import measure, write_graphs  # noqa: E402
from tables import PAIRS, TITLES, how_measured, machine, notes, put_into, report, short_table, tell  # noqa: E402

SKIPPED = 77  # as CTest knows it: there is no PyTorch to compare with


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpumem", type=pathlib.Path, required=True, help="the command line, built as Release")
    parser.add_argument("--libtorch-meta", type=pathlib.Path, help="the program of libtorch_meta.cpp")
    parser.add_argument("--checkpoints", type=pathlib.Path, help="GPUMemNet's six published checkpoints")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has PyTorch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3, help="warm answers a round (default: %(default)s)")
    parser.add_argument("--job", nargs="+", choices=job_list.BATCHES, help="these models alone")
    parser.add_argument("-o", "--out", type=pathlib.Path, help="folder for peers.md and peers.json")
    parser.add_argument("--readme", type=pathlib.Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    for program in (options.gpumem, options.libtorch_meta):
        if program and not program.is_file():
            parser.error(f"there is no program {program}; build it with cmake --preset bench && cmake --build --preset bench")
    if options.smoke:
        options.rounds, options.turns = 1, 1
    return options


def disagreements(runs):
    """Pairs that must agree on the MLP, to the byte or on the bin, and do not."""
    # The optimizer in C++ keeps no counters, and lets go of a parameter's temporaries before it takes the next one's.
    slack = {"libtorch-meta": 1e-3}
    said = {run.peer: run.answer for run in runs}
    wrong = []
    for theirs, ours in PAIRS:
        if ours == "replay" or theirs not in said or ours not in said or said[theirs].how == "made-up weights":
            continue
        left, right = said[theirs], said[ours]
        same = left.bin == right.bin if left.bin else abs(left.bytes / right.bytes - 1) <= slack.get(theirs, 0)
        if not same:
            wrong.append(f"{theirs} says {left}, {ours} {right}")
    return wrong


def main():
    options = arguments()
    jobs = [job for job in job_list.JOBS if not options.job or job.model in options.job]
    if options.smoke:
        jobs = [job for job in job_list.JOBS if job.model == "mlp"][:1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_graphs(folder, {job.model for job in jobs}, options.turns + 1)
        peers, absent, how = try_out(all_peers(options, folder, jobs), jobs[0], options)
        where = machine(options.python)
        for runs in measure(peers, jobs, options.rounds, options.turns):
            tell(runs, absent, how, options, where)
    print(report(runs, absent, how, where))
    if options.readme:
        put_into(options.readme, f"{how_measured(runs, where)}:\n\n{short_table(runs, absent)}\n{notes(how)}")
    wrong = [f"{name}: {why}" for name, why in absent.items() if name not in TITLES]
    if options.smoke:
        wrong += disagreements(runs)
    for line in wrong:
        print(f"peers.py: {line}", file=sys.stderr)
    if options.smoke and not wrong and "fake-tensor-mode" in absent:
        return SKIPPED
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
