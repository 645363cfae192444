"""Worker processes that die, hang or talk; and a pool of them."""

from __future__ import annotations

import sys
import time
import unittest

from support import FolderTest
from measuring.workers import Pool, Worker, WorkerDied

ECHO = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request == "die": os._exit(3)
    if request == "hang": time.sleep(60)
    print(json.dumps({"answer": [request, os.getpid()]}), flush=True)
"""


class WorkerTest(FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.worker = self.made(0)
        self.addCleanup(self.worker.stop)

    def made(self, _number: int) -> Worker:
        worker = Worker([], self.folder / "worker.log")
        worker.command = [sys.executable, "-c", ECHO]
        return worker

    def test_one_process_answers_all(self) -> None:
        pids = {self.worker.ask(number, 10)[1] for number in range(3)}
        self.assertEqual(len(pids), 1)

    def test_another_takes_the_place_of_one_that_died(self) -> None:
        _, before = self.worker.ask("a", 10)
        with self.assertRaisesRegex(WorkerDied, "code 3"):
            self.worker.ask("die", 10)
        answer, after = self.worker.ask("b", 10)
        self.assertEqual(answer, "b")
        self.assertNotEqual(before, after)

    def test_one_that_hangs_is_ended(self) -> None:
        self.worker.ask("a", 10)
        process = self.worker.process
        begin = time.monotonic()
        with self.assertRaisesRegex(WorkerDied, "no answer"):
            self.worker.ask("hang", 0.2)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIsNotNone(process.poll())
        self.assertEqual(self.worker.ask("b", 10)[0], "b")

    def test_a_pool_does_all_but_what_kills_it(self) -> None:
        pool = Pool(self.made, 2, 10)
        self.addCleanup(pool.stop)
        for request in (1, "die", 2, 3):
            pool.submit(request)
        self.assertTrue(pool.wait(time.monotonic() + 30))
        self.assertEqual(pool.done, 4)
        self.assertEqual(pool.backlog_seconds(), 0)

    def test_a_pool_waits_no_longer_than_told(self) -> None:
        pool = Pool(self.made, 1, 60)
        self.addCleanup(pool.stop)
        pool.submit("hang")
        pool.submit(1)
        self.assertFalse(pool.wait(time.monotonic() + 0.3))
        self.assertGreater(pool.backlog_seconds(), 0)


if __name__ == "__main__":
    unittest.main()
