"""The GIL is released while the library works, and any number of threads may use it."""

import concurrent.futures
import multiprocessing
import subprocess
import sys
import threading
import time
import unittest

import gpumem
from gpumem import _gpumem
from support import RESNET50, VGG16, linear_tree


class Gil(unittest.TestCase):
    """A thread ticks while another is in the library. No thread is made to give up the GIL
    meanwhile: so long as the library held it, there would be no tick at all."""

    def setUp(self):
        self.ticks = 0
        self.over = threading.Event()
        self.ticker = threading.Thread(target=self.tick)
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(60)
        self.ticker.start()

    def tearDown(self):
        self.over.set()
        self.ticker.join()
        sys.setswitchinterval(self.interval)

    def tick(self):
        while not self.over.is_set():
            self.ticks += 1
            time.sleep(0.0002)

    def assert_ticks(self, work):
        """Work that is over before the ticker wakes up is done again."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            before = self.ticks
            work()
            if self.ticks > before + 1:
                return
        self.fail("no tick in 20 seconds")

    def test_no_tick_while_it_is_held(self):
        time.sleep(0.001)
        before, until = self.ticks, time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
        self.assertLessEqual(self.ticks, before + 1)

    def test_while_reading(self):
        text = linear_tree(20_000).encode()
        self.assert_ticks(lambda: gpumem.read_summary(text=text))

    def test_while_estimating(self):
        summary = gpumem.read_summary(text=linear_tree(20_000))
        self.assert_ticks(lambda: gpumem.estimate(summary, batch_size=2, input="64"))

    def test_while_fitting(self):
        summary = gpumem.read_summary(text=linear_tree(500))
        self.assert_ticks(lambda: gpumem.fit(summary, input="64"))


class Threads(unittest.TestCase):
    def test_many_share_one_summary(self):
        summary = gpumem.read_summary(RESNET50)
        kinds = [estimator.name for estimator in gpumem.estimators()]
        jobs = [(batch, kind) for batch in (1, 7, 32) for kind in kinds] * 4

        def ask(job):
            return gpumem.estimate(summary, batch_size=job[0], estimator=job[1])

        expected = [ask(job) for job in jobs]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(ask, jobs)), expected)

    def test_errors_of_many(self):
        def fail(number):
            try:
                gpumem.estimate(VGG16, batch_size=1, gpu=f"gpu-{number}")
            except gpumem.UsageError as error:
                return f"'gpu-{number}'" in str(error)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(fail, range(400))))

    def test_answers_go_between_processes(self):
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            made = list(pool.map(ask_in_a_process, [1, 2, 3, 0]))
        self.assertEqual([one.batch_size for one in made[:3]], [1, 2, 3])
        self.assertEqual(made[0], gpumem.estimate(VGG16, batch_size=1))
        self.assertIsInstance(made[3], gpumem.UsageError)

    def test_no_call_begins_once_it_is_closed(self):
        running = _gpumem._Running()
        lock = running._lock

        class ClosesFirst:
            """close() comes just before a call has the lock."""

            def __enter__(self):
                running._lock = lock
                running.close()
                lock.acquire()

            def __exit__(self, *_):
                lock.release()

        running._lock = ClosesFirst()
        with self.assertRaisesRegex(RuntimeError, "shutting down"):
            with running:
                self.fail("a call began")
        self.assertEqual(running._count, 0)

    def test_the_interpreter_ends_under_daemon_threads(self):
        script = (
            "import gpumem, sys, threading, time\n"
            "summary = gpumem.read_summary(sys.argv[1])\n"
            "def work():\n"
            "    while True:\n"
            "        gpumem.estimate(summary, batch_size=32)\n"
            "        try: gpumem.estimate(summary, batch_size=0)\n"
            "        except gpumem.Error: pass\n"
            "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
            "time.sleep(0.2)\n"
        )
        for _ in range(3):
            begun = time.monotonic()
            command = [sys.executable, "-c", script, RESNET50]
            done = subprocess.run(command, capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            # No call was given up for lost, which takes 10 seconds.
            self.assertLess(time.monotonic() - begun, 9)


def ask_in_a_process(batch_size):
    try:
        return gpumem.estimate(VGG16, batch_size=batch_size)
    except gpumem.Error as error:
        return error


if __name__ == "__main__":
    unittest.main(verbosity=2)
