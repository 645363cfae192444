"""The package and the command line give the same answers, to the byte, for random jobs from a fixed seed: figures, warnings and
errors. Only the seconds that an answer took may differ."""

import json
import random
import subprocess
import unittest

import gpumem
from gpumem import _gpumem
from support import SOURCE, program

JOBS = 500
SEED = 20
VISION = [*SOURCE.glob("models/summaries/*.txt"), *SOURCE.glob("models/graphs/*.json"), *SOURCE.glob("models/trees/*.txt")]
LANGUAGE = [*SOURCE.glob("tests/golden/cli/configs/llama*.json"), SOURCE / "examples/trainers/tinyllama/config.json"]
#: A summary without shapes, which is wrong by itself.
WITHOUT_SHAPES = "transformer_encoder.torchinfo_no_input.txt"
BROKEN = [SOURCE / "tests/golden/cli/wrong_total.txt", SOURCE / "tests/golden/cli/unknown_layer.txt", SOURCE / "README.md"]
#: Options whose values are no choice; all others are drawn from their choices or numbers.
VALUES = {
    "input": ["3x224x224", "3x64x64", "1x28x28"],
    "alloc_conf": ["expandable_segments:True", "max_split_size_mb:128", "nonsense"],
    "freeze": ["*.bias", "layer1", "model.layers.0", "*"],
    "train": ["*.bias", "layer1", "*"],
    "rank": ["max", "last"],
}
LEFT_OUT = {"batch_size", "gpu", "lenient", "lengths", "model", "software"}


def value_of(drawn, name, kind, usual, choices):
    if name in VALUES:
        return drawn.choice(VALUES[name])
    if kind == "flag":
        return not usual
    if kind == "whole_number":
        return drawn.choice([1, 2, 4, 8, 512])
    if kind == "fraction":
        return drawn.choice([0.05, 0.1, 0.5, 0.0001])
    if choices:
        # A loop has defaults of its own, and in Python an option at its usual value counts as not given.
        return drawn.choice([choice.replace(":N", ":2") for choice in choices if choice not in ("all", usual)])
    return None


def random_job(drawn, gpus, options):
    job = {"batch_size": drawn.choice([1, 2, 3, 7, 16, 32, 100]), "gpu": drawn.choice(gpus)}
    if drawn.random() < 0.04:  # one thing wrong at a time: which of several is told first is no answer
        return drawn.choice(BROKEN), {"batch_size": 1}
    language = drawn.random() < 0.4
    summary = drawn.choice(sorted(LANGUAGE if language else VISION))
    if summary.name == WITHOUT_SHAPES:
        job["gpu"] = gpus[0]
    if language:
        job["seq_length"] = drawn.choice([128, 512, 2048])
    for option in drawn.sample(options, drawn.choice([0, 1, 2, 3, 5])):
        value = value_of(drawn, *option)
        if value is not None:
            job.setdefault(option[0], value)
    return summary, job


def without_times(answer):
    answer.pop("line", None)  # of the batch
    for estimate in answer.get("estimates", ()):
        estimate.pop("seconds", None)
    return json.dumps(answer, indent=1)


class Agreement(unittest.TestCase):
    def test_random_jobs(self):
        drawn = random.Random(SEED)
        gpus = [*(gpu.name for gpu in gpumem.gpus()), "no-such-gpu"]
        options = [option for option in _gpumem.OPTIONS if option[0] not in LEFT_OUT]
        jobs = [random_job(drawn, gpus, options) for _ in range(JOBS)]
        lines = "".join(json.dumps({"summary": str(summary), **job}) + "\n" for summary, job in jobs)
        done = subprocess.run([program(), "batch", "-"], input=lines, capture_output=True, text=True)
        printed = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(printed), JOBS, done.stderr)
        answered = sum(self.agrees(*job, answer) for job, answer in zip(jobs, printed))
        self.assertGreater(answered, JOBS // 3)

    def agrees(self, summary, job, printed):
        """Whether there is an estimate."""
        with self.subTest(summary=summary.name, job=job):
            try:
                made = json.loads(gpumem.estimate(summary, **job).json())
            except gpumem.Error as error:
                failure = printed.get("error") or printed["estimates"][0]["error"]
                self.assertEqual((error.code, error.message), (failure["code"], failure["message"]))
                return False
            self.assertEqual(without_times(made), without_times(printed))
        return True

    def test_of_what_is_looked_for(self):
        model = "stable-diffusion-v1-5/stable-diffusion-v1-5"
        found = gpumem.fit(model, find="image", image="3x2", precision="bf16", gpu="t4-16gb")
        words = ["fit", model, "--find", "image", "--image", "3x2", "--precision", "bf16", "--gpu", "t4-16gb"]
        text = subprocess.run([program(), *words], capture_output=True, text=True, check=True).stdout
        made = subprocess.run([program(), *words, "--json"], capture_output=True, text=True, check=True).stdout
        printed = json.loads(made)
        self.assertEqual(list(found.image), printed["largest_image"])
        self.assertEqual((found.find, found.size, found.batch_size), ("image", found.image[0], 1))
        self.assertIsNone(found.sequence_length)
        for told in ({"batch_size": 2, "find": "batch"}, {"find": "sequence", "seq_length": 8}, {"find": "photos"}):
            with self.assertRaises(gpumem.UsageError):
                gpumem.fit(model, **told)
        self.assertTrue(text.endswith("\n" + str(found) + "\n"), text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
