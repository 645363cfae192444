"""Drawn jobs: in their ranges, and the same for the same seed."""

from __future__ import annotations

import hashlib
import json
import unittest
from collections import Counter

import support  # noqa: F401  (the path to measuring)
from measuring import diffusion, jobs, language, pictures, published, vision_language

MANY = 4000


def drawn(families: str, count: int = MANY, seed: int = 7) -> list[jobs.Job]:
    series = jobs.Series(seed, jobs.families_of(families))
    return [series.job(index) for index in range(count)]


class Ranges(unittest.TestCase):
    def between(self, values, low, high) -> None:
        """All in the range, and both ends nearly reached."""
        values = list(values)
        self.assertGreaterEqual(min(values), low)
        self.assertLessEqual(max(values), high)
        self.assertLessEqual(min(values), low + 0.05 * (high - low))
        self.assertGreaterEqual(max(values), high - 0.05 * (high - low))

    def test_mlps(self) -> None:
        specs = [(job.model, job.batch_size) for job in drawn("mlp")]
        self.between((spec["inputs"] for spec, _ in specs), 4, 4096)
        self.between((spec["outputs"] for spec, _ in specs), 1, 1024)
        self.between((batch for _, batch in specs), 4, 1024)
        self.between((spec["depth"] + (spec["shape"] == "bottleneck") + 1 for spec, _ in specs), 2, 12)
        self.assertTrue(all(spec["outputs"] <= spec["inputs"] for spec, _ in specs))
        self.assertEqual({spec["shape"] for spec, _ in specs}, set(jobs.MLP_SHAPES))
        self.assertEqual({spec["activation"] for spec, _ in specs}, set(jobs.ACTIVATIONS))
        self.assertTrue({0.0, 0.1, 0.5} <= {spec["dropout"] for spec, _ in specs})

    def test_cnns(self) -> None:
        specs = [(job.model, job.batch_size) for job in drawn("cnn")]
        self.between((spec["side"] for spec, _ in specs), 8, 224)
        self.between((spec["classes"] for spec, _ in specs), 2, 22000)
        self.between((spec["base_filters"] for spec, _ in specs), 16, 512)
        self.between((spec["depth"] for spec, _ in specs), 1, 29)
        self.between((batch for _, batch in specs), 2, 62)
        self.assertEqual({spec["channels"] for spec, _ in specs}, {1, 3})
        self.assertEqual({spec["kernel"] for spec, _ in specs}, {3, 5, 7})
        self.assertEqual({spec["shape"] for spec, _ in specs}, set(jobs.CNN_SHAPES))

    def test_transformers(self) -> None:
        specs = [(job.model, job.batch_size) for job in drawn("transformer")]
        self.between((spec["embedding"] for spec, _ in specs), 128, 2048)
        self.between((spec["vocabulary"] for spec, _ in specs), 50_000, 1_000_000)
        self.between(((4 if spec["packed"] else 6) * spec["layers"] + 1 for spec, _ in specs), 9, 157)
        self.between((batch for _, batch in specs), 1, 128)
        self.assertEqual({spec["sequence"] for spec, _ in specs}, {128, 256, 512, 1024})
        self.assertEqual({spec["heads"] for spec, _ in specs}, {2, 4, 8, 12, 16})
        for spec, _ in specs:
            self.assertEqual(spec["embedding"] % spec["heads"], 0)
            self.assertTrue(2 <= spec["feed_forward"] / spec["embedding"] <= 4)

    def test_language_models(self) -> None:
        made = drawn("llm", 1000)
        self.assertEqual({job.model["name"] for job in made}, set(published.LANGUAGE))
        self.assertEqual({job.precision for job in made}, {"fp32", "amp-bf16", "bf16"})
        self.assertEqual({job.model["lora"] for job in made}, {0, *language.LORA_RANKS})
        for job in made:
            model, tokens = published.MODELS[job.model["name"]], job.batch_size * job.model["sequence"]
            self.assertLessEqual(job.model["sequence"], model.longest)
            self.assertLessEqual(tokens, language.MOST_TOKENS)
            self.assertLessEqual(tokens * model.fields["vocab_size"], language.MOST_LOGITS)
            # What trains in float32 is whole: adapters stand on a base of two bytes, or under autocast.
            self.assertFalse(job.model["lora"] and job.precision == "fp32")

    def test_the_newest_models_come_in_turn(self) -> None:
        made = drawn("newest", 2 * len(published.NEWEST_WITHOUT_FLA)) + drawn("delta", len(published.WITH_FLA))
        in_turn = [*published.NEWEST_WITHOUT_FLA, *published.NEWEST_WITHOUT_FLA, *published.WITH_FLA]
        self.assertEqual([job.model["name"] for job in made], in_turn)
        for job in made:
            self.assertEqual(job.model.get("dropout", 0.0), 0.0)
            self.assertTrue(job.model["attention"] == "eager" or job.model["name"] not in published.EAGER)

    def test_models_of_images_come_in_turn(self) -> None:
        for family in ("diffusion", "vlm"):
            models = jobs.FAMILIES[family].in_turn
            names = [job.model["name"] for job in drawn(family, 2 * len(models))]
            self.assertEqual(names, [*models, *models])
        both = drawn("vlm,diffusion", 8)
        self.assertEqual([job.family for job in both], ["diffusion", "vlm"] * 4)
        self.assertEqual([job.model["name"] for job in both[::2]], list(diffusion.MODELS)[:4])
        mixed = drawn("mlp,vlm", 200)
        self.assertEqual({job.family for job in mixed}, {"mlp", "vlm"})

    def test_denoisers(self) -> None:
        made = drawn("diffusion", 1000)
        self.assertEqual({job.precision for job in made}, {"fp32", "amp-bf16", "bf16"})
        self.assertEqual({job.model["lora"] for job in made}, {0, *diffusion.LORA_RANKS})
        self.assertEqual({job.checkpointing for job in made}, {False, True})
        self.assertEqual({job.loss for job in made}, {"mse"})
        for job in made:
            model, spec = diffusion.MODELS[job.model["name"]], job.model
            most = diffusion.MOST_WORK.get(job.precision, diffusion.MOST_WORK_IN_HALF)
            self.assertLessEqual(diffusion.step_work(model, spec, job.batch_size), most)
            self.assertLessEqual(diffusion.states_of(spec), diffusion.MOST_STATES)
            self.assertEqual(spec["frames"] > 1, model.frame > 0)
            self.assertFalse(spec["lora"] and job.precision == "fp32")
            # Whole pixels of latents, and whole frames.
            self.assertEqual([side % model.token for side in spec["image"]], [0, 0])
            self.assertEqual((spec["frames"] - 1) % max(model.frame, 1), 0)
            self.assertEqual(json.loads(diffusion.config_json(spec))["_class_name"], model.kind)

    def test_models_that_read_images(self) -> None:
        made = drawn("vlm", 1000)
        self.assertEqual({job.precision for job in made}, {"amp-bf16", "bf16"})
        self.assertEqual({job.model["images"] for job in made}, {1, 2, 3})
        for varied in ("frozen", "padding", "checkpointing"):
            self.assertEqual({job.model[varied] for job in made}, {False, True}, varied)
        for job in made:
            spec = job.model
            self.assertLessEqual(job.batch_size * vision_language.tokens_of(spec), vision_language.MOST_TOKENS)
            self.assertLessEqual(vision_language.step_work(spec, job.batch_size), vision_language.MOST_WORK)
            self.assertFalse(spec["lora"] and spec["frozen"])
            cells = vision_language.cells(spec)
            self.assertEqual(bool(cells["lora"]), bool(cells["lora_targets"]))
            self.assertGreater(cells["seq_length"], spec["text"])

    def test_what_processors_make_of_images(self) -> None:
        def tokens(name: str, width: int, height: int) -> int:
            return vision_language.picture_of({"name": name, "image": [width, height]}).tokens

        # As the processors of transformers 5.16 count them.
        for name, width, height, count in (
            ("Qwen2.5-VL-3B", 1024, 768, 27 * 37),
            ("Qwen3-VL-2B", 1024, 768, 24 * 32),
            ("PaddleOCR-VL", 336, 336, 14 * 14),  # enlarged
            ("llava-1.5-7b-cut", 640, 480, 576),
            ("llava-v1.6-mistral-7b-cut", 512, 384, 2340),
            ("llava-onevision-qwen2-0.5b", 480, 640, 2943),
            ("InternVL3-1B", 480, 640, 13 * 256),
            ("InternVL3-1B", 448, 448, 256),
            ("gemma-3-4b", 1280, 720, 256),
            ("SmolVLM2-2.2B", 336, 336, 17 * 81),
            ("SmolVLM-500M", 480, 640, 13 * 64),
            ("aya-vision-8b-cut", 256, 256, 169),
            ("Mistral-Small-3.1-24B-cut", 640, 480, 23 * 18),
            ("pixtral-12b-cut", 1280, 720, 64 * 36),
        ):
            self.assertEqual(tokens(name, width, height), count, (name, width, height))
        self.assertEqual(pictures.closest_grid(1024, 768, 448, 12), (4, 3))
        self.assertEqual(pictures.least_scaled_grid(1024, 768, 336, 16), (4, 3))

    def test_a_release_of_transformers_has_its_rule(self) -> None:
        given = {"4.40.1": "", "4.45.0": "4.45", "4.50.3": "4.48", "4.55.4": "4.52", "4.57.1": "4.56", None: ""}
        given.update({"5.4.1": "5.0", "5.9.0": "5.5", "5.17.0": "5.11"})
        self.assertEqual({text: language.release_rule(text) for text in given}, given)

    def test_no_step_is_too_much_work(self) -> None:
        for job in drawn("cnn,transformer", 500):
            self.assertLessEqual(jobs.step_work(job.family, job.model, job.batch_size), jobs.MOST_WORK)

    def test_training_varies(self) -> None:
        made = drawn("")
        self.assertEqual({job.family for job in made}, set(jobs.USUAL))
        self.assertEqual({job.optimizer for job in made}, set(jobs.OPTIMIZERS))
        self.assertEqual({job.precision for job in made}, set(jobs.PRECISIONS))
        for varied in ("fused", "checkpointing", "counters"):
            self.assertEqual({getattr(job, varied) for job in made}, {False, True}, varied)
        self.assertEqual({job.accumulation for job in made}, {1, 2, 4})
        self.assertTrue(all(jobs.FAMILIES[job.family].checkpoints for job in made if job.checkpointing))
        one_output = [job for job in made if job.model.get("outputs") == 1]
        self.assertEqual({job.loss for job in one_output}, {"bce-with-logits"})

    def test_families_are_drawn_by_weight(self) -> None:
        found = Counter(job.family for job in drawn(""))
        total = sum(jobs.FAMILIES[name].weight for name in jobs.USUAL)
        for name in jobs.USUAL:
            self.assertAlmostEqual(found[name] / MANY, jobs.FAMILIES[name].weight / total, delta=0.03)


class Repetition(unittest.TestCase):
    def test_the_same_seed_draws_the_same_jobs(self) -> None:
        self.assertEqual(drawn("", 200), drawn("", 200))

    def test_a_job_depends_on_its_number_alone(self) -> None:
        self.assertEqual(jobs.Series(7).job(150), drawn("", 200)[150])

    def test_another_seed_draws_others(self) -> None:
        one, other = drawn("", 200), drawn("", 200, seed=8)
        self.assertFalse({job.name for job in one} & {job.name for job in other})
        self.assertLess(sum(a.model == b.model for a, b in zip(one, other)), 10)

    def test_some_families_are_a_series_of_their_own(self) -> None:
        self.assertFalse({job.name for job in drawn("mlp", 9)} & {job.name for job in drawn("", 9)})

    def test_a_name_keeps_its_job(self) -> None:
        """If this fails, other jobs are drawn than before: take a new EDITION, and this edition's digest."""
        text = json.dumps([job.to_json() for job in drawn("", 200, seed=1)], sort_keys=True)
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest()[:16], "73597636c278ed43")

    def test_a_job_goes_through_json(self) -> None:
        for job in drawn("", 50):
            self.assertEqual(jobs.Job.from_json(json.loads(json.dumps(job.to_json()))), job)

    def test_an_unknown_family_is_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "'rnn'"):
            jobs.families_of("mlp,rnn")

    def test_families_have_one_order(self) -> None:
        self.assertEqual(jobs.families_of("cnn,mlp"), ("mlp", "cnn"))


if __name__ == "__main__":
    unittest.main()
