"""plan(): what it gives is what the command line gives."""

import inspect
import json
import pickle
import unittest

import gpumem
from support import SOURCE, command_line

LLAMA = SOURCE / "tests" / "golden" / "cli" / "configs" / "llama_made_up.json"
LARGE = LLAMA.with_name("llama3_70b.json")
ASKED = {"gpu": "h100-80gb", "gpus": 4, "seq_length": 128, "global_batch": 8}
WORDS = (LLAMA, "--gpu", "h100-80gb", "--gpus", "4", "--seq", "128", "--global-batch", "8")


class Plan(unittest.TestCase):
    def test_is_the_command_lines(self):
        plan = gpumem.plan(LLAMA, **ASKED, framework="megatron", show=3)
        printed = command_line("plan", *WORDS, "--framework", "megatron", "--show", "3", "--json")
        expected = json.loads(printed.stdout)
        self.assertEqual(json.loads(plan.json()), expected)
        self.assertEqual((plan.gpus, plan.global_batch, len(plan.layouts)), (4, 8, 3))
        for layout, other in zip(plan.layouts, expected["layouts"]):
            self.assertEqual(layout.framework, "megatron")
            self.assertEqual(layout.options, other["options"])
            self.assertEqual(layout.upper_bytes, other["estimate"]["upper_bytes"])
            self.assertIn("--global-batch-size 8\n", layout.settings)
        lines = command_line("plan", *WORDS, "--framework", "megatron", "--show", "3").stdout
        self.assertTrue(lines.endswith(str(plan)), lines)
        self.assertEqual(pickle.loads(pickle.dumps(plan)).json(), plan.json())

    def test_a_layout_is_an_estimates_options(self):
        plan = gpumem.plan(LLAMA, **ASKED, show=2)
        for layout in plan.layouts:
            options = {name: value for name, value in layout.options.items()}
            again = gpumem.estimate(
                LLAMA, gpu="h100-80gb", seq_length=128, precision="bf16-mixed", optimizer="adamw", **options
            )
            self.assertEqual(again.expected_bytes, layout.expected_bytes)
            self.assertTrue(again.fits)

    def test_limits_of_ranks(self):
        plan = gpumem.plan(LLAMA, **ASKED, show=3, at_most_tensor_parallel=1, at_most_pipeline_parallel=1)
        limits = ("--at-most-tensor-parallel", "1", "--at-most-pipeline-parallel", "1")
        printed = command_line("plan", *WORDS, *limits, "--show", "3", "--json")
        self.assertEqual(json.loads(plan.json()), json.loads(printed.stdout))
        self.assertTrue(all(layout.options.get("tensor_parallel", 1) == 1 for layout in plan.layouts))
        self.assertLess(plan.candidates, gpumem.plan(LLAMA, **ASKED, show=3).candidates)

    def test_a_precision_of_ones_own(self):
        plan = gpumem.plan(LLAMA, **ASKED, show=1, precision="fp32", optimizer="adam")
        printed = command_line("plan", *WORDS, "--show", "1", "--precision", "fp32", "--optimizer", "adam", "--json")
        self.assertEqual(json.loads(plan.json())["job"]["precision"], "fp32")
        self.assertEqual(json.loads(plan.json()), json.loads(printed.stdout))

    def test_what_has_headroom_comes_first(self):
        plan = gpumem.plan(LLAMA, **{**ASKED, "gpu": "a100-40gb", "seq_length": 4096, "gpus": 1, "precision": "bf16"}, show=10)
        room = [layout.headroom_bytes > 0 for layout in plan.layouts]
        self.assertEqual(room, sorted(room, reverse=True))

    def test_without_overlap_a_step_is_longer(self):
        alone = {f"at_most_{kind}_parallel": 1 for kind in ("tensor", "context", "pipeline")}
        asked = {**ASKED, **alone, "framework": "megatron", "show": 1, "network_gbps": 1.0, "gpus_per_node": 1}
        steps = [gpumem.plan(LLAMA, **asked, no_overlap=without).layouts[0].step_seconds for without in (False, True)]
        self.assertLess(*steps)

    def test_where_nothing_fits(self):
        plan = gpumem.plan(LARGE, gpu="l4-24gb", gpus=1, seq_length=8192, global_batch=8)
        self.assertEqual(plan.layouts, ())
        self.assertIn("no layout on 1 of l4-24gb", str(plan))

    def test_wrong_words(self):
        none = [{name: 0} for name in ("gpus", "global_batch", "show", "at_most_expert_parallel")]
        for wrong in ({"framework": "jax"}, {"network_gbps": 0.0}, *none):
            with self.assertRaises(gpumem.UsageError, msg=wrong):
                gpumem.plan(LLAMA, **{**ASKED, **wrong})
        with self.assertRaises(TypeError):
            gpumem.plan(LLAMA, **ASKED, network_gbps="400")

    def test_options_are_those_of_estimate(self):
        every = inspect.signature(gpumem.estimate).parameters
        own = {"global_batch", "gpus", "framework", "gpus_per_node", "network_gbps", "no_overlap", "show"}
        for name, parameter in inspect.signature(gpumem.plan).parameters.items():
            if name in own or name.startswith("at_most_"):
                continue
            self.assertEqual(parameter.annotation, every[name].annotation, name)
            if name not in ("optimizer", "precision"):
                self.assertEqual(parameter.default, every[name].default, name)


if __name__ == "__main__":
    unittest.main()
