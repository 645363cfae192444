"""The restated formulas, held to figures that their own programs and pages give."""

from __future__ import annotations

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))

import formulas  # noqa: E402
import language_models  # noqa: E402
from formulas import GIB, MIB, Run  # noqa: E402

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu",
    "_parameters": 8030261248,
}  # fmt: skip
ROW = {
    "gpus": "1", "batch_size": "4", "seq_length": "2048", "precision": "bf16", "optimizer": "adamw",
    "lora_rank": "", "lora_targets": "", "quantization": "", "checkpointing": "none", "attention": "flash",
    "sharding": "none", "figure": "allocated",
}  # fmt: skip
SEVEN = "q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj"


def run(config=LLAMA, **columns):
    return Run({**ROW, **columns}, config)


class EleutherAI(unittest.TestCase):
    """Figures printed by calc_transformer_mem.py at commit 827ee3b, in GiB of two decimals."""

    def test_a_gpt_on_128_gpus(self) -> None:
        # --num-layers=32 --sequence-length=2048 --num-attention-heads=32 --hidden-size=4096 --batch-size-per-gpu=8
        # --checkpoint-activations --zero-stage=1 --pipeline-parallel-size=1 --tensor-parallel-size=2 --num-gpus=128
        config = {"hidden_size": 4096, "num_layers": 32, "num_attention_heads": 32, "padded_vocab_size": 51200}
        job = run(config, gpus="128", batch_size="8", precision="bf16-mixed", checkpointing="full",
                  sharding="zero-1", tensor_parallel="2")  # fmt: skip
        self.assertAlmostEqual(formulas.eleuther(job) / GIB, 101.53, places=2)

    def test_llama_under_stage_3(self) -> None:
        # --num-layers=32 --sequence-length=4096 --num-attention-heads=32 --hidden-size=4096 --ffn-expansion-factor=3.5
        # --num-mlp-linears 3 --kv-size-ratio 0.25 --vocab-size 128256 --batch-size-per-gpu=1 --zero-stage=3 --num-gpus=8
        job = run(gpus="8", batch_size="1", seq_length="4096", precision="bf16-mixed", sharding="zero-3")
        self.assertAlmostEqual(formulas.eleuther(job) / GIB, 116.66, delta=0.011)

    def test_experts_in_float32(self) -> None:
        # --num-layers=4 --sequence-length=1024 --num-attention-heads=8 --hidden-size=512 --batch-size-per-gpu=4
        # --zero-stage=1 --num-gpus=8 --num-experts 4 -ep 2 --disable-mixed-precision
        config = {"hidden_size": 512, "num_layers": 4, "num_attention_heads": 8, "vocab_size": 51200, "num_experts": 4}
        job = run(config, gpus="8", seq_length="1024", precision="fp32", sharding="distributed-optimizer",
                  expert_parallel="2")  # fmt: skip
        self.assertAlmostEqual(formulas.eleuther(job) / GIB, 3.41, delta=0.011)

    def test_does_not_answer_for_adapters(self) -> None:
        found, why = formulas.answer("eleuther", run(lora_rank="8"))
        self.assertIsNone(found)
        self.assertIn("adapters", why)


class FitCheck(unittest.TestCase):
    """The worked example of its specification: Llama-3.1-8B, QLoRA of rank 64 at batch 4 of 2,048 tokens."""

    job = {"lora_rank": "64", "lora_targets": SEVEN, "quantization": "nf4", "checkpointing": "full"}

    def test_activations_of_the_worked_example(self) -> None:
        job = run(**self.job)
        self.assertEqual(formulas.fitcheck_activations(job, formulas.Shape.of(job), 2) / MIB, 20128)

    def test_adapters_of_the_worked_example(self) -> None:
        # Its 208 MiB are for the four projections of attention, in float32.
        job = run(**{**self.job, "lora_targets": "q_proj+k_proj+v_proj+o_proj"})
        self.assertEqual(4 * formulas.fitcheck_adapters(job, formulas.Shape.of(job)) / MIB, 208)

    def test_total_of_the_worked_example(self) -> None:
        job = {**self.job, "lora_targets": "q_proj+k_proj+v_proj+o_proj"}
        self.assertAlmostEqual(formulas.fitcheck(run(**job, figure="device")) / MIB, 30607, delta=1)
        tensors = 7753 + 208 + 416 + 208 + 20128
        self.assertAlmostEqual(formulas.fitcheck(run(**job)) / MIB, tensors, delta=1)

    def test_does_not_answer_for_a_mixture_of_experts(self) -> None:
        self.assertIn("mixtral", formulas.answer("fitcheck", run({**LLAMA, "model_type": "mixtral"}))[1])


class Accelerate(unittest.TestCase):
    def test_four_times_the_model_in_float32_and_twice_with_mixed_precision(self) -> None:
        self.assertEqual(formulas.accelerate(run(precision="fp32")), 16 * LLAMA["_parameters"])
        self.assertEqual(formulas.accelerate(run(precision="amp-bf16")), 8 * LLAMA["_parameters"])

    def test_does_not_answer_for_other_optimizers(self) -> None:
        self.assertIn("sgd", formulas.answer("accelerate", run(optimizer="sgd"))[1])


class Comparison(unittest.TestCase):
    def test_errors_are_of_the_runs_that_both_answer(self) -> None:
        runs = [run(name="a", measured_mib="100"), run(name="b", measured_mib="100"), run(name="c", measured_mib="50")]
        found = language_models.errors_by_kind(runs, {"a": 150.0, "b": 80.0}, {"a": 101.0, "c": 50.0})
        ((kind, (theirs, ours)),) = found.items()
        self.assertEqual(kind, "full fine-tuning")
        self.assertEqual([round(error, 6) for error in theirs.signed], [0.5])
        self.assertEqual([round(error, 6) for error in ours.signed], [0.01])

    def test_ninety_of_a_hundred_lie_within_p90(self) -> None:
        errors = language_models.Errors([number / 100 for number in range(1, 101)])
        self.assertEqual(errors.p90, 0.91)
        self.assertEqual(errors.median, 0.505)
        self.assertEqual(language_models.Errors([-0.1, 0.2]).below, 1)


if __name__ == "__main__":
    unittest.main()
