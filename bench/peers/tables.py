"""What came out, as tables and as JSON."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

MARKS = ("<!-- bench/peers: begin -->", "<!-- bench/peers: end -->")


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
    return f"{value * 1e3:,.0f} ms" if value >= 0.0995 else f"{value * 1e3:.2g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"


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
    rows = ["| peer | gpumem's estimator | process: the peer's, gpumem's | warm: the peer's, gpumem's "
            "| memory: the peer's, gpumem's | estimates |",
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
        cells.append("not comparable" if other else agreement(runs, theirs, ours))
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
    return f"{len(cpu)} cores, {cpu[0] if cpu else 'unknown'}; {versions or 'no PyTorch'}; one thread each, CPU time"


def notes(how):
    restated = [TITLES[name] for name, way in how.items() if way == "restated"]
    made_up = [TITLES[name] for name, way in how.items() if way == "made-up weights"]
    text = ""
    if restated:
        text += f"Reimplemented from their source, because the packages are not installed: {', '.join(restated)}.\n"
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


def put_into(page, table, marks=MARKS):
    """The table replaces the text between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        name = pathlib.Path(sys.argv[0]).name
        sys.exit(f"{name}: {page} has no lines {marks[0]} and {marks[1]} to put the table between")
    page.write_text(f"{before}{begin}\n{table}{end}{after}", encoding="utf-8")
