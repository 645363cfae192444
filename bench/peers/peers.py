#!/usr/bin/env python3
"""Puts the same jobs through other ways to predict GPU memory and through gpumem, in one run on one machine.

  peers.py --gpumem build/bench/src/cli/gpumem [--libtorch-meta build/bench/bench/peers/libtorch_meta]
           [--checkpoints DIR] [--rounds 5] [--job MODEL...] [-o FOLDER] [--readme README.md]
  peers.py --gpumem ... --smoke      one job, one round: that everything runs and agrees; exits 77 without PyTorch

Peers (workers.py says how each is run): PyTorch's FakeTensorMode, libtorch's meta device in C++ (libtorch_meta.cpp),
GPUMemNet's published networks in PyTorch (--checkpoints: the folder with its six .ckpt files; without it networks of the
same shapes with made-up weights, which tell times alone), DeepSpeed's and Accelerate's published formulas (the packages
where they can be imported, else restated from their source). A peer that cannot be run is named, with the reason.

What is measured, everything on one thread, in processor time, so that what else the machine does counts little (wall time
would favour gpumem on a busy machine: what takes milliseconds is not interrupted, what takes seconds is):
  cold     a process from its start to its end that answers one job; gpumem's is "gpumem estimate"
  warm     one more answer of a process that is up and has answered before, from the line that asks to the line that
           answers, the median of several. The model is built anew each time: gpumem reads another copy of its graph JSON
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
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import jobs as job_list  # noqa: E402

WORKERS = pathlib.Path(__file__).resolve().parent / "workers.py"
GPUS = 8  # of the formulas that share states
MARKS = ("<!-- bench/peers: begin -->", "<!-- bench/peers: end -->")
MIB = 1024**2
SKIPPED = 77  # as CTest knows it: there is no PyTorch to compare with
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Of each peer, what of gpumem is asked the same.
PAIRS = [
    ("fake-tensor-mode", "fake-tensor-optimizer"),
    ("fake-tensor-mode", "replay"),
    ("libtorch-meta", "fake-tensor-optimizer"),
    ("libtorch-meta", "replay"),
    ("gpumemnet-mlp-pytorch", "gpumemnet-mlp"),
    ("gpumemnet-transformer-pytorch", "gpumemnet-transformer"),
    ("deepspeed-zero-2", "zero-2"),
    ("deepspeed-zero-3", "zero-3"),
    ("accelerate", "model-states"),
]
TITLES = {
    "fake-tensor-mode": "PyTorch's FakeTensorMode",
    "libtorch-meta": "libtorch's meta device, C++",
    "gpumemnet-mlp-pytorch": "GPUMemNet's perceptrons in PyTorch",
    "gpumemnet-transformer-pytorch": "GPUMemNet's Transformers in PyTorch",
    "deepspeed-zero-2": "DeepSpeed's ZeRO-2 formula",
    "deepspeed-zero-3": "DeepSpeed's ZeRO-3 formula",
    "accelerate": "Accelerate's estimate-memory",
}


@dataclasses.dataclass
class Answer:
    """What a peer says of a job: bytes, or a bin of MiB, or neither (made-up weights); or why it does not."""

    bytes: int | None = None
    bin: tuple | None = None
    how: str = ""
    error: str = ""

    def __str__(self):
        if self.error:
            return "none"
        if self.bin:
            return f"{self.bin[0]:,.0f} to {self.bin[1]:,.0f} MiB"
        return "" if self.bytes is None else f"{self.bytes / MIB:,.1f} MiB"


class Server:
    """A process that answers a line with a line."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=ENVIRONMENT,
        )  # fmt: skip

    def ask(self, line):
        """(the answer, seconds of processor time)"""
        before = self.processor_time()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return answer, self.processor_time() - before

    def processor_time(self):
        """Of all its threads so far, in seconds; the kernel counts nanoseconds."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except (OSError, IndexError):  # a thread that has just ended
                continue
        return total * 1e-9

    def memory(self):
        """The most that it has held so far, in bytes."""
        for row in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if row.startswith("VmHWM:"):
                return int(row.split()[1]) * 1024
        return None

    def stop(self):
        """Its processor time from start to end, in seconds."""
        self.process.stdin.close()
        seconds = wait_for(self.process)
        self.process.stdout.close()
        return seconds


def wait_for(process):
    """The processor time of a process when it has ended, in seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


class Peer:
    """One way to predict a job's memory. `folder` holds the jobs' graphs, one copy a turn."""

    ours = False

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder = name, command, folder

    def command_for(self, _job):
        return self.command

    def line(self, job, turn):
        """What asks for the job; a later turn builds the model anew."""
        return json.dumps({"model": job.model, "batch": job.batch, "turn": turn})

    def read(self, text):
        answer = json.loads(text) if text else {"error": "it ended without an answer"}
        range_mib = answer.get("range_mib")
        return Answer(answer.get("bytes"), range_mib and tuple(range_mib), answer.get("how", ""), answer.get("error", ""))

    def cold(self, job):
        """(answer, seconds from start to end, bytes)"""
        server = Server(self.command_for(job))
        text, _ = server.ask(self.line(job, 0))
        memory = server.memory() if text else None
        return self.read(text), server.stop(), memory


class LibtorchMeta(Peer):
    def line(self, job, turn):
        return f"{self.folder / f'{job.model}-{turn}.json'} {job.batch}"

    def read(self, text):
        words = text.split(maxsplit=1)
        if not words or words[0] == "error":
            return Answer(error=words[1].strip() if len(words) > 1 else "it ended without an answer")
        return Answer(int(words[0]))


class PublishedNetwork(Peer):
    """Reads the features that a worker has found; one network a kind of net, each a process of its own."""

    def __init__(self, name, command, folder, features, weights):
        super().__init__(name, command, folder)
        self.features, self.weights = features, weights

    def command_for(self, job):
        folder = self.weights.get(self.features[job]["nets"]) if self.weights else None
        return self.command if folder is None else [*self.command, "--weights", str(folder)]

    def line(self, job, turn):
        fields = {"model": job.model, "batch": job.batch, "turn": turn}
        if self.weights:
            found = self.features[job]
            config = json.loads((self.weights[found["nets"]] / "config.json").read_text())
            names = [spec["name"].removeprefix("gpumemnet.") for spec in config["features"]]
            fields["features"] = [found["features"][name] for name in names]
            fields["sequence"] = found["sequence"]
        return json.dumps(fields)


class Ours(Peer):
    """An estimator of gpumem. `fields` are what its jobs say besides."""

    ours = True

    def __init__(self, name, program, folder, fields=None, features=None, weights=None):
        super().__init__(name, [program, "batch"], folder)
        self.program, self.fields, self.features, self.weights = program, fields or {}, features, weights

    def fields_of(self, job):
        model = {"model": str(self.weights[self.features[job]["nets"]])} if self.weights else {}
        return {"estimator": self.name, **self.fields, **model}

    def line(self, job, turn):
        path = str(self.folder / f"{job.model}-{turn}.json")
        return json.dumps({"summary": path, "batch_size": job.batch, **self.fields_of(job)})

    def read(self, text):
        if not text:
            return Answer(error="it ended without an answer")
        answer = json.loads(text)
        if "error" in answer:
            return Answer(error=answer["error"]["message"])
        estimate = answer["estimates"][0]
        if "error" in estimate:
            return Answer(error=estimate["error"]["message"])
        if "bins" in estimate:
            likeliest = max(estimate["bins"], key=lambda entry: entry["probability"])
            return Answer(bin=(likeliest["lower_bytes"] / MIB, likeliest["upper_bytes"] / MIB))
        return Answer(estimate["expected_bytes"])

    def cold(self, job):
        """As a user runs it; its memory is that of a process that stays up for a look at it."""
        words = [self.program, "estimate", str(self.folder / f"{job.model}-0.json"), "--batch", str(job.batch), "--json"]
        for field, value in self.fields_of(job).items():
            words += ["--" + field.replace("_", "-"), str(value)]
        done = Server(words)
        text = done.process.stdout.read()
        seconds = done.stop()
        if done.process.returncode != 0:
            return Answer(error=f"exit code {done.process.returncode} of {' '.join(words)}"), seconds, None
        server = Server(self.command)
        server.ask(self.line(job, 0))
        memory = server.memory()
        server.stop()
        return self.read(text), seconds, memory


@dataclasses.dataclass
class Run:
    """One job through one peer in one round. Seconds and bytes."""

    peer: str
    job: str
    round: int
    cold: float
    warm: float
    memory: int
    answer: Answer


# ------------------------------------------------------------------------------------------------ the peers at hand


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
    return [row.split()[0] for row in text.split("Estimators:\n")[1].splitlines() if row.startswith("  ")]


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


# ------------------------------------------------------------------------------------------------ measuring


def write_graphs(folder, models, turns):
    for model in models:
        for turn in range(turns):
            (folder / f"{model}-{turn}.json").write_text(job_list.graph_text(model))


class Servers:
    """The processes that stay up for a round, by their command."""

    def __init__(self):
        self.by_command = {}

    def of(self, peer, job):
        command = tuple(map(str, peer.command_for(job)))
        if command not in self.by_command:
            self.by_command[command] = Server(command)
        return self.by_command[command]

    def stop(self):
        for server in self.by_command.values():
            server.stop()


def warm_seconds(peer, job, servers, turns):
    server = servers.of(peer, job)
    server.ask(peer.line(job, 0))
    return statistics.median(server.ask(peer.line(job, turn))[1] for turn in range(1, turns + 1))


def measure_round(number, peers, jobs, turns, title):
    runs, servers = [], Servers()
    try:
        for at, job in enumerate(jobs):
            if sys.stderr.isatty():
                print(f"\r{title}, {job.name:30}", end="", file=sys.stderr)
            shift = (number + at) % len(peers)
            for peer in peers[shift:] + peers[:shift]:
                answer, cold, memory = peer.cold(job)
                if not answer.error:
                    warm = warm_seconds(peer, job, servers, turns)
                    runs.append(Run(peer.name, job.name, number, cold, warm, memory, answer))
    finally:
        servers.stop()
        if sys.stderr.isatty():
            print(file=sys.stderr)
    return runs


def measure(peers, jobs, rounds, turns):
    """After each round, all runs so far; Ctrl-C ends with the rounds that are whole."""
    runs = []
    for number in range(rounds):
        try:
            runs += measure_round(number, peers, jobs, turns, f"round {number + 1} of {rounds}")
        except KeyboardInterrupt:
            if number == 0:
                raise
            return
        yield runs


# ------------------------------------------------------------------------------------------------ telling


def median_of(runs, field):
    return statistics.median(getattr(run, field) for run in runs)


def ratios(runs, theirs, ours, field):
    """Theirs over ours, pair by pair of round and job; the median over rounds of each job."""
    by_key = {(run.peer, run.job, run.round): getattr(run, field) for run in runs}
    by_job = {}
    for (peer, job, number), value in by_key.items():
        other = by_key.get((ours, job, number))
        if peer == theirs and other:
            by_job.setdefault(job, []).append(value / other)
    return [statistics.median(of_job) for of_job in by_job.values()]


def seconds(value):
    return f"{value * 1e3:,.0f} ms" if value >= 0.1 else f"{value * 1e3:.2g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"


def percent(share):
    return "0 %" if share == 0 else "less than 0.01 %" if share < 1e-4 else f"{100 * share:.2f} %"


def times(value):
    return f"{value:,.0f}×" if value >= 9.95 else f"{value:.1f}×" if value >= 0.95 else f"{value:.2f}×"


def agreement(runs, theirs, ours):
    """How far the two estimates are apart, over the jobs that both answer."""
    said = {(run.peer, run.job): run.answer for run in runs}
    pairs = [(said[theirs, job], said[ours, job]) for peer, job in said if peer == theirs and (ours, job) in said]
    bins = [(left.bin, right.bin) for left, right in pairs if left.bin and right.bin]
    if bins:
        same = sum(abs(left[0] - right[0]) < 1 for left, right in bins)
        return f"the same bin for {same} of {len(bins)} jobs"
    apart = [abs(left.bytes / right.bytes - 1) for left, right in pairs if left.bytes and right.bytes]
    if not apart:
        return "times alone"
    if max(apart) == 0:
        return "equal"
    return f"{percent(statistics.median(apart))} apart in the median, {percent(max(apart))} at most"


def short_table(runs, absent):
    rows = ["| peer | gpumem's | process: theirs, ours | warm: theirs, ours | memory: theirs, ours | estimates |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    known = {run.peer for run in runs}
    for theirs, ours in PAIRS:
        if theirs not in known or ours not in known:
            continue
        cells = [TITLES[theirs], f"`{ours}`"]
        for field, text in (("cold", seconds), ("warm", seconds), ("memory", lambda value: f"{value / 1e6:,.0f} MB")):
            of = [median_of([run for run in runs if run.peer == name], field) for name in (theirs, ours)]
            ratio = statistics.median(ratios(runs, theirs, ours, field))
            cells.append(f"{text(of[0])}, {text(of[1])}: {times(ratio)}")
        other = ours == "replay"
        cells.append("of another figure" if other else agreement(runs, theirs, ours))
        rows.append("| " + " | ".join(cells) + " |")
    for name, why in absent.items():
        rows.append(f"| {TITLES.get(name, name)} | absent: {why} | | | | |")
    return "\n".join(rows) + "\n"


def job_tables(runs):
    text = ""
    for job in dict.fromkeys(run.job for run in runs):
        text += f"\n### {job}\n\n| | process | warm | memory | estimate |\n|---|---|---|---|---|\n"
        of_job = [run for run in runs if run.job == job]
        for peer in dict.fromkeys(run.peer for run in of_job):
            own = [run for run in of_job if run.peer == peer]
            cells = [peer, seconds(median_of(own, "cold")), seconds(median_of(own, "warm")),
                     f"{median_of(own, 'memory') / 1e6:,.1f} MB", str(own[0].answer)]  # fmt: skip
            text += "| " + " | ".join(cells) + " |\n"
    return text


def machine(python):
    cpu = [row.split(":")[1].strip() for row in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
           if row.startswith("model name")]  # fmt: skip
    versions = subprocess.run(
        [python, "-c", "import platform, torch; print('Python', platform.python_version() + ', PyTorch', torch.__version__)"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return f"{len(cpu)} cores, {cpu[0] if cpu else 'unknown'}; {versions or 'no PyTorch'}; one thread each, processor time"


def notes(how):
    restated = [TITLES[name] for name, way in how.items() if way == "restated"]
    made_up = [TITLES[name] for name, way in how.items() if way == "made-up weights"]
    text = ""
    if restated:
        text += f"Restated from their source, for the packages are not installed: {', '.join(restated)}.\n"
    if made_up:
        text += f"With made-up weights, so that they tell times alone: {', '.join(made_up)}.\n"
    return text


def how_measured(runs, where):
    rounds, count = len({run.round for run in runs}), len({run.job for run in runs})
    rounds = f"{rounds} interleaved rounds" if rounds > 1 else "one round"
    return f"{where}; medians of {rounds} and over {count} job{'s' if count > 1 else ''}, ratios within a round"


def report(runs, absent, how, where):
    head = f"# gpumem and its peers\n\n{how_measured(runs, where)}. bench/peers/peers.py says what is measured.\n\n"
    return head + short_table(runs, absent) + "\n" + notes(how) + job_tables(runs)


def as_json(runs, absent, how, where):
    rows = [dataclasses.asdict(run) for run in runs]
    return json.dumps({"machine": where, "absent": absent, "how": how, "runs": rows}, indent=1) + "\n"


def tell(runs, absent, how, options, where):
    """Writes the files, after every round: a run that is ended loses the round that it was in."""
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "peers.md").write_text(report(runs, absent, how, where))
        (options.out / "peers.json").write_text(as_json(runs, absent, how, where))


def put_into(readme, table):
    text = readme.read_text()
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        sys.exit(f"peers.py: {readme} has no lines {MARKS[0]} and {MARKS[1]} to put the table between")
    readme.write_text(f"{before}{begin}\n{table}{end}{after}")


# ------------------------------------------------------------------------------------------------ main


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
