"""What is kept: journals that survive a killed process, tables, and packed files."""

from __future__ import annotations

import csv
import io
import random
import tarfile
import unittest

from support import FolderTest
from measuring import jobs, journal, summaries

MIB = 2**20


def a_row(status: str = "ok", **result: object) -> dict:
    job = jobs.Series(1, ("mlp",)).job(0)
    about = {"sample": [12], "tokens": False, "parameters": 5, "checkpointing": False, "step_seconds": [0.9, 0.1, 0.3]}
    return {
        "job": job.to_json(),
        "result": {"status": status, **about, **result},
        "machine": {"torch": "2.1"},
        "gpu": "t4-16gb",
        "capacity": 16 * MIB,
        "runs_before": 3,
    }


class JournalTest(FolderTest):
    def test_rows_are_there_again(self) -> None:
        path = self.folder / "runs.jsonl"
        with journal.Journal(path) as book:
            book.add({"a": 1})
            book.add({"b": 'x\n"\u2028'})
            # On the disk already, whatever becomes of this process.
            self.assertEqual(journal.rows_of(path), [{"a": 1}, {"b": 'x\n"\u2028'}])

    def test_half_a_line_is_cut_off(self) -> None:
        path = self.folder / "runs.jsonl"
        path.write_text('{"a":1}\n{"b":')
        with journal.Journal(path) as book:
            self.assertEqual(book.rows, [{"a": 1}])
            book.add({"c": 2})
        self.assertEqual(path.read_text(), '{"a":1}\n{"c":2}\n')


class TableTest(FolderTest):
    def table(self, rows: list[dict], figure: str = "reserved", with_summary: bool = True) -> list[dict]:
        (self.folder / "summaries").mkdir()
        if with_summary:
            stem = summaries.stem(jobs.Job.from_json(rows[0]["job"]))
            (self.folder / "summaries" / f"{stem}.tree.txt").write_text("Linear(in_features=1, out_features=1)\n")
        count = journal.write_runs(rows, self.folder, figure)
        text = (self.folder / "runs.csv").read_text()
        found = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(found), count)
        return found

    def test_a_run(self) -> None:
        counters = {"gpu_utilisation": 0.5, "smact": 0.25}
        (run,) = self.table([a_row(reserved=3 * MIB, device=9 * MIB, counters=counters)])
        self.assertEqual(run["measured_mib"], "3.000")
        self.assertEqual(run["device_mib"], "9.000")
        self.assertEqual(run["figure"], "reserved")
        self.assertEqual(run["input"], "12")
        self.assertEqual(run["seq_length"], "")
        self.assertEqual(run["gpu_utilisation"], "0.5000")
        self.assertEqual(run["gract"], "")
        # The median without the first step.
        self.assertEqual(run["step_ms"], "200.000")
        self.assertTrue(run["summary"].endswith(".tree.txt"))

    def test_another_figure(self) -> None:
        (run,) = self.table([a_row(reserved=3 * MIB, device=9 * MIB)], "device")
        self.assertEqual((run["figure"], run["measured_mib"]), ("device", "9.000"))

    def test_out_of_memory_is_a_run(self) -> None:
        (run,) = self.table([a_row("oom", reserved=15 * MIB)])
        self.assertEqual((run["status"], run["measured_mib"]), ("oom", "15.000"))

    def test_what_failed_is_none(self) -> None:
        self.assertEqual(self.table([a_row("error", error="no"), a_row("unavailable", error="no timm")]), [])

    def test_a_run_waits_for_its_summary(self) -> None:
        self.assertEqual(self.table([a_row()], with_summary=False), [])


class PackTest(FolderTest):
    def packed(self, limit: int = journal.MOST_PACKED) -> list[str]:
        return [path.name for path in journal.pack(self.folder, limit)]

    def fill(self, count: int) -> None:
        draw = random.Random(1)
        (self.folder / "runs.csv").write_text("name,summary\n")
        (self.folder / "summaries").mkdir()
        for number in range(count):
            # Hardly to be packed: half a byte a digit.
            text = f"{draw.getrandbits(40_000):x}"
            (self.folder / "summaries" / f"net-{number}.json").write_text(text)

    def test_there_and_back(self) -> None:
        self.fill(3)
        (self.folder / "summaries" / "net-1.none").write_text("no graph")
        self.assertEqual(self.packed(), ["runs.csv.gz", "summaries-1.tar.gz"])
        back = self.folder / "back"
        journal.unpack(self.folder / "packed", back)
        self.assertEqual((back / "runs.csv").read_text(), "name,summary\n")
        names = sorted(path.name for path in (back / "summaries").iterdir())
        self.assertEqual(names, ["net-0.json", "net-1.json", "net-2.json"])
        for name in names:
            self.assertEqual((back / "summaries" / name).read_text(), (self.folder / "summaries" / name).read_text())

    def test_no_file_is_larger_than_the_limit(self) -> None:
        self.fill(20)
        made = journal.pack(self.folder, 30_000)
        self.assertGreater(len(made), 4)
        self.assertTrue(all(path.stat().st_size <= 30_000 for path in made))
        journal.unpack(self.folder / "packed", self.folder / "back")
        self.assertEqual(len(list((self.folder / "back" / "summaries").iterdir())), 20)

    def test_what_cannot_be_parted_is_said(self) -> None:
        self.fill(2)
        with self.assertRaisesRegex(ValueError, "summaries-1.tar.gz"):
            journal.pack(self.folder, 2_000)

    def test_equal_folders_pack_to_equal_files(self) -> None:
        self.fill(2)
        first = {path.name: path.read_bytes() for path in journal.pack(self.folder)}
        self.assertEqual({path.name: path.read_bytes() for path in journal.pack(self.folder)}, first)

    def test_only_its_own_files_are_unpacked(self) -> None:
        packed = self.folder / "packed"
        packed.mkdir()
        for name in ("summaries/../../away", "/etc/away", "away", "other/away", "summaries/../away"):
            with tarfile.open(packed / "summaries-1.tar.gz", "w:gz") as archive:
                entry = tarfile.TarInfo(name)
                entry.size = 3
                archive.addfile(entry, io.BytesIO(b"abc"))
            with self.assertRaises(ValueError, msg=name):
                journal.unpack(packed, self.folder / "back")


if __name__ == "__main__":
    unittest.main()
