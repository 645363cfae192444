"""posttrain(): what it gives is what the command line gives."""

import json
import pickle
import unittest

import gpumem
from support import SOURCE, command_line

CONFIG = SOURCE / "examples" / "configs" / "llama3_8b" / "config.json"
DPO = {"algorithm": "dpo", "batch_size": 1, "seq_length": 512, "lora": 8, "gpu": "h100-80gb"}
WORDS = ("--algorithm", "dpo", "--batch", "1", "--seq-length", "512", "--lora", "8", "--gpu", "h100-80gb")


class PostTraining(unittest.TestCase):
    def test_is_the_command_lines(self):
        job = gpumem.posttrain(CONFIG, **DPO)
        printed = command_line("posttrain", CONFIG, *WORDS, "--json")
        self.assertEqual(json.loads(job.json()), json.loads(printed.stdout))
        self.assertEqual(command_line("posttrain", CONFIG, *WORDS).stdout, str(job))
        self.assertEqual(sum(job.parts.values()), job.expected_bytes)
        self.assertIn(job.peak_phase, [phase.phase for phase in job.phases])
        self.assertEqual(pickle.loads(pickle.dumps(job)).json(), job.json())

    def test_takes_a_programs_settings_and_command(self):
        settings = {"trainer": "DPOTrainer", "per_device_train_batch_size": 1, "max_length": 512, "use_peft": True}
        by_settings = gpumem.posttrain(CONFIG, settings=settings)
        command = ["trl", "dpo", "--per_device_train_batch_size", "1", "--max_length", "512", "--use_peft"]
        self.assertEqual(by_settings.expected_bytes, gpumem.posttrain(CONFIG, command=command).expected_bytes)
        self.assertTrue(any("lengths of its batches" in line for line in by_settings.assumed))
        nested = {"actor_rollout_ref": {"actor": {"ppo_micro_batch_size_per_gpu": 1}, "rollout": {"n": 5}}}
        self.assertIn("rollout", [phase.phase for phase in gpumem.posttrain(CONFIG, settings=nested).phases])

    def test_limits_advice_and_layouts(self):
        limits = gpumem.posttrain_limits(CONFIG, **DPO)
        self.assertGreater(limits.largest_batch, 1)
        for change in gpumem.advise_posttrain(CONFIG, **DPO):
            self.assertTrue(change.costs)
        layouts = gpumem.plan_posttrain(CONFIG, gpus=4, **DPO)
        self.assertEqual({layout.data_parallel for layout in layouts}, {4})

    def test_names_what_is_wrong(self):
        with self.assertRaisesRegex(gpumem.UsageError, "no_such"):
            gpumem.posttrain(CONFIG, algorithm="dpo", no_such=1)
        with self.assertRaisesRegex(gpumem.UsageError, "algorithm"):
            gpumem.posttrain(CONFIG, algorithm="nothing")


if __name__ == "__main__":
    unittest.main()
