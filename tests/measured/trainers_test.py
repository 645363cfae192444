"""Drawn jobs of trainers, and their rows in the table."""

from __future__ import annotations

import json
import unittest
from collections import Counter

import support  # noqa: F401  (the path to measuring)
from measuring import language, trainers

MANY = 650
GIB = 2**30


def drawn(count: int = MANY, seed: int = 7) -> list[trainers.TrainerJob]:
    return [trainers.job_of(seed, index) for index in range(count)]


class Draws(unittest.TestCase):
    def test_every_trainer_has_its_turn(self) -> None:
        first = {job.trainer for job in drawn(10)}
        self.assertEqual(first, set(trainers.TURNS))
        for trainer in first:
            jobs = [job for job in drawn(52) if job.trainer == trainer][:4]
            settings = [job.settings for job in jobs]
            ways = {("use_peft" in one, one.get("gradient_checkpointing", True)) for one in settings}
            self.assertEqual(len(ways), 4, trainer)

    def test_the_same_seed_draws_the_same(self) -> None:
        self.assertEqual(drawn(30), drawn(30))
        self.assertNotEqual([job.settings for job in drawn(30)], [job.settings for job in drawn(30, seed=8)])

    def test_ranges(self) -> None:
        for job in drawn():
            model = language.MODELS[job.model]
            settings = job.settings
            if not settings.get("use_peft"):
                self.assertLess(model.billions, 2, job.name)
            if model.billions > 2:
                self.assertEqual(settings["dtype"], "bfloat16")
            if job.trainer in ("grpo", "rloo"):
                self.assertEqual(settings["per_device_train_batch_size"] % settings["num_generations"], 0)
                self.assertGreaterEqual(settings["num_generations"], 2)
            if job.trainer == "kto":
                self.assertGreater(settings["per_device_train_batch_size"], 1)
            if job.lengths["whole"]:
                self.assertEqual(job.lengths["whole"], settings["max_length"])
                self.assertLess(job.lengths["prompt"], job.lengths["whole"])
                self.assertLessEqual(job.lengths["whole"], model.longest)

    def test_losses_and_optimizers_vary(self) -> None:
        jobs = drawn()
        losses = Counter((job.trainer, job.settings.get("loss_type")) for job in jobs)
        for pair in (("dpo", "ipo"), ("dpo", None), ("kto", "apo_zero_unpaired"), ("grpo", "dr_grpo")):
            self.assertGreater(losses[pair], 3, pair)
        self.assertEqual({job.settings.get("optim") for job in jobs}, {None, "adamw_torch", "adafactor"})

    def test_teachers_know_the_same_words(self) -> None:
        for student, teacher in trainers.TEACHERS.items():
            sizes = [language.MODELS[name].fields["vocab_size"] for name in (student, teacher)]
            self.assertEqual(sizes[0], sizes[1], student)

    def test_json(self) -> None:
        for job in drawn(26):
            self.assertEqual(trainers.TrainerJob.from_json(json.loads(json.dumps(job.to_json()))), job)


class Cells(unittest.TestCase):
    def row(self, job: trainers.TrainerJob, **result) -> dict:
        machine = {"trl": "1.9.0", "transformers": "5.17.0", "peft": "0.21.0", "torch": "2.11.0"}
        return {"job": job.to_json(), "result": result, "machine": machine, "gpu": "h100-80gb", "capacity": 80 * GIB}

    def test_a_run(self) -> None:
        job = trainers.job_of(7, 3)
        cells = trainers.cells_of(
            self.row(job, status="ok", reserved=3 * GIB, allocated=2 * GIB, rows=4, tokens=512, total_params=9),
            "reserved",
        )
        self.assertEqual(cells["algorithm"], "rm")
        self.assertEqual(cells["measured_mib"], "3072.000")
        self.assertEqual(cells["second_mib"], "2048.000")
        self.assertEqual((cells["rows"], cells["tokens"], cells["total_params"]), (4, 512, 9))
        self.assertEqual(cells["padding"], "true" if job.lengths["differ"] else "false")
        arguments = json.loads(cells["args"])
        self.assertEqual(arguments["trainer"], "rm")
        self.assertEqual(arguments["model_name_or_path"], job.model)
        self.assertEqual(arguments["max_length"], job.settings["max_length"])
        self.assertFalse(set(cells) - set(trainers.COLUMNS))

    def test_lengths_of_prompts_are_told(self) -> None:
        job = trainers.job_of(7, 1)
        self.assertEqual(job.trainer, "grpo")
        self.assertEqual(trainers.arguments_of(job)["max_prompt_length"], job.lengths["prompt"])

    def test_a_failed_run_has_no_row(self) -> None:
        self.assertIsNone(trainers.cells_of(self.row(trainers.job_of(7, 0), status="error", error="x"), "reserved"))

    def test_small_models_have_names_of_their_own(self) -> None:
        job = trainers.shrunk(trainers.job_of(7, 6))
        arguments = trainers.arguments_of(job)
        self.assertTrue(arguments["model_name_or_path"].startswith("small-"))
        self.assertTrue(arguments["teacher_model_name_or_path"].startswith("small-"))


if __name__ == "__main__":
    unittest.main()
