"""The whole tool, in dry runs: it goes on where it stopped, keeps its time, and leaves a table that gpumem reads."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from support import GPUMEM, FolderTest, command, gpumem, measure
from measuring import jobs, journal

ONLY = ("--only", "mlp,cnn")
MIB = 2**20


def children(pid: int) -> list[int]:
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class DryRun(FolderTest):
    def measure(self, part: str, *arguments: str) -> subprocess.CompletedProcess:
        done = measure(part, "--out", self.folder, "--dry-run", "--minutes", "20", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def table(self, name: str = "runs.csv") -> list[dict]:
        return list(csv.DictReader(io.StringIO((self.folder / name).read_text())))

    def begun(self, *arguments: str) -> subprocess.Popen:
        """One in the background, with some runs done."""
        process = subprocess.Popen(
            command("jobs", "--out", self.folder, "--dry-run", *arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_runs(3)
        return process

    def wait_for_runs(self, count: int) -> None:
        end = time.monotonic() + 120
        while len(self.journal()) < count:
            self.assertLess(time.monotonic(), end, "no runs came")
            time.sleep(0.02)

    def test_goes_on_where_it_was_killed(self) -> None:
        process = self.begun(*ONLY)
        below = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = self.journal()
        with open(self.folder / "runs.jsonl", "a", encoding="utf-8") as file:
            file.write('{"job": {"name": "half')
        # Its workers end by themselves.
        end = time.monotonic() + 60
        while any(map(alive, below)):
            self.assertLess(time.monotonic(), end, "a worker outlives its parent")
            time.sleep(0.05)
        self.measure("jobs", "--most", "3", *ONLY)
        after = self.journal()
        self.assertEqual(after[: len(before)], before)
        names = [row["job"]["name"] for row in after]
        series = jobs.Series(1, ("mlp", "cnn"))
        self.assertEqual(names, [series.job(index).name for index in range(len(before) + 3)])
        ok = [row["job"]["name"] for row in after if row["result"]["status"] == "ok"]
        self.assertEqual([run["name"] for run in self.table()], ok)

    def test_a_worker_that_dies_costs_its_run_alone(self) -> None:
        process = self.begun(*ONLY)
        first = min(children(process.pid))
        os.kill(first, signal.SIGKILL)
        self.wait_for_runs(len(self.journal()) + 4)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        rows = self.journal()
        died = [row for row in rows if "process ended" in row["result"].get("error", "")]
        self.assertLessEqual(len(died), 1)
        names = [row["job"]["name"] for row in rows]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(rows[-1]["result"]["status"], "ok")

    def test_keeps_its_time(self) -> None:
        begin = time.monotonic()
        measure("jobs", "--out", self.folder, "--dry-run", "--minutes", "0.25", *ONLY)
        # To start PyTorch and to end it are outside of the budget's reach.
        self.assertLess(time.monotonic() - begin, 15 + 20)
        self.assertGreater(len(self.journal()), 0)

    def test_two_in_one_folder_are_refused(self) -> None:
        self.begun(*ONLY)
        second = measure("pack", "--out", self.folder)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another measure.py", second.stderr)

    def test_all_parts(self) -> None:
        self.measure("all", "--most", "4", "--counter-seconds", "0.1", "--only", "mlp,cnn,transformer,vision")
        for name in ("runs", "traces", "capped", "workspaces", "constants"):
            self.assertGreater(len(self.table(f"{name}.csv")), 0, name)
        machine = json.loads((self.folder / "machine.json").read_text())
        self.assertTrue(machine["dry_run"])
        card = (self.folder / "README.md").read_text()
        self.assertIn("dry run", card)
        self.assertNotIn(str(self.folder), card)
        packed = sorted(path.name for path in (self.folder / "packed").iterdir())
        self.assertIn("runs.csv.gz", packed)
        self.assertIn("summaries-1.tar.gz", packed)
        # What is there is not done again.
        journals = {path.name: path.read_text() for path in self.folder.glob("*.jsonl") if path.name != "runs.jsonl"}
        self.measure("all", "--most", "4", "--only", "mlp,cnn,transformer,vision")
        self.assertEqual(journals, {name: (self.folder / name).read_text() for name in journals})
        back = self.folder / "back"
        self.assertEqual(measure("unpack", self.folder / "packed", "--out", back).returncode, 0)
        for run in csv.DictReader(io.StringIO((back / "runs.csv").read_text())):
            self.assertTrue((back / run["summary"]).exists())

    @unittest.skipUnless(GPUMEM, "no gpumem program was named")
    def test_gpumem_evaluates_the_table(self) -> None:
        self.measure("jobs", "--most", "14", "--only", "mlp,cnn,transformer,vision")
        rows = [row for row in self.journal() if row["result"]["status"] == "ok"]
        # A dry run has no figures; these are made up, to see that they are read.
        for number, row in enumerate(rows):
            row["result"].update(reserved=(64 + number) * MIB, counters={"gpu_utilisation": 0.9, "fp32": 1.0})
        rows[0]["result"].update(status="oom")
        self.assertEqual(journal.write_runs(rows, self.folder), len(rows))
        done = gpumem("evaluate", self.folder / "runs.csv", "--estimator", "replay", "--out", self.folder / "out.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{len(rows) - 1} runs that fitted, 1 out of memory, 0 failed", done.stdout)
        for row, run in zip(rows, self.table()):
            self.assert_same_parameters(row, self.folder / run["summary"])

    def assert_same_parameters(self, row: dict, summary: pathlib.Path) -> None:
        job, sample = row["job"], row["result"]["sample"]
        size = ("--seq", sample[0]) if row["result"]["tokens"] else ("--input", "x".join(map(str, sample)))
        done = gpumem("estimate", summary, "--batch", job["batch_size"], *size, "--gpu", "a100-40gb", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["summary"]["parameters"], row["result"]["parameters"])

    @unittest.skipUnless(GPUMEM, "no gpumem program was named")
    def test_gpumem_reads_the_dry_table(self) -> None:
        self.measure("jobs", "--most", "3", *ONLY)
        done = gpumem("evaluate", self.folder / "runs.csv", "--estimator", "replay")
        self.assertRegex(done.stdout, re.compile(r"0 runs, \d+ without a measurement"))

    def test_out_of_memory_is_a_row(self) -> None:
        self.measure("jobs", "--most", "3", "--limit-gib", "1e-6", *ONLY)
        runs = self.table()
        self.assertEqual([run["status"] for run in runs], ["oom"] * 3)
        # Without the limit they are other runs.
        self.measure("jobs", "--most", "3", *ONLY)
        names = [run["name"] for run in self.table()]
        self.assertEqual(names[:3], [f"{name}-1e-06gib" for name in names[3:]])

    def test_the_same_seed_measures_the_same(self) -> None:
        self.measure("jobs", "--most", "4", "--seed", "5", *ONLY)
        first = [row["job"] for row in self.journal()]
        (self.folder / "runs.jsonl").unlink()
        self.measure("jobs", "--most", "4", "--seed", "5", *ONLY)
        self.assertEqual([row["job"] for row in self.journal()], first)


class Refusals(FolderTest):
    def test_no_gpu_is_said(self) -> None:
        done = subprocess.run(
            command("jobs", "--out", self.folder),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("--dry-run", done.stderr)

    def test_another_gpus_folder_is_refused(self) -> None:
        (self.folder / "machine.json").write_text('{"gpu": "NVIDIA H200"}')
        done = measure("jobs", "--out", self.folder, "--dry-run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("NVIDIA H200", done.stderr)

    def test_an_unknown_family_is_said(self) -> None:
        done = measure("jobs", "--out", self.folder, "--only", "rnn")
        self.assertEqual(done.returncode, 2)
        self.assertIn("rnn", done.stderr)

    def test_a_file_is_no_folder(self) -> None:
        path = self.folder / "file"
        path.write_text("")
        done = measure("jobs", "--out", path, "--dry-run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--out", done.stderr)


if __name__ == "__main__":
    unittest.main()
