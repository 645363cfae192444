"""Recordings where a summary is taken: estimate() and fit()."""

from __future__ import annotations

import os
import pathlib
import unittest

import gpumem

RECORDINGS = pathlib.Path(os.environ["GPUMEM_SOURCE_DIR"]) / "tests" / "golden" / "recordings"
GPT = RECORDINGS / "gpt.json.gz"


class Recordings(unittest.TestCase):
    def test_are_estimated_at_any_batch_and_length(self) -> None:
        one = gpumem.estimate(GPT, batch_size=16)
        two = gpumem.estimate(GPT, batch_size=32)
        longer = gpumem.estimate(GPT, batch_size=16, seq_length=512)
        self.assertLess(one.reserved_bytes, two.reserved_bytes)
        self.assertLess(one.reserved_bytes, longer.reserved_bytes)

    def test_are_read_once_and_kept(self) -> None:
        summary = gpumem.read_summary(GPT)
        self.assertEqual(summary.format, "recording")
        self.assertEqual(
            gpumem.estimate(summary, batch_size=16).reserved_bytes, gpumem.estimate(GPT, batch_size=16).reserved_bytes
        )

    def test_may_be_trained_by_another_optimizer(self) -> None:
        recorded = gpumem.estimate(GPT, batch_size=16)
        lion = gpumem.estimate(GPT, batch_size=16, optimizer="lion")
        self.assertLess(lion.breakdown["optimizer"], recorded.breakdown["optimizer"])

    def test_keep_what_was_recorded(self) -> None:
        with self.assertRaisesRegex(gpumem.UsageError, "record again"):
            gpumem.estimate(GPT, batch_size=16, zero_grad="step-end")
        with self.assertRaisesRegex(gpumem.UsageError, "record again"):
            gpumem.estimate(GPT, batch_size=16, precision="bf16")

    def test_fit(self) -> None:
        fit = gpumem.fit(RECORDINGS / "resnet50.json.gz", gpu="t4-16gb")
        self.assertGreater(fit.batch_size, 100)


if __name__ == "__main__":
    unittest.main()
