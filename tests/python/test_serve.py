"""serve(): what it gives is what the command line gives."""

import inspect
import json
import pickle
import unittest

import gpumem
from gpumem import _gpumem
from support import SOURCE, command_line

CONFIG = SOURCE / "examples" / "configs" / "llama3_8b" / "config.json"
GPU = {"gpu": "h100-80gb", "engine_version": "0.19.0"}
WORDS = (CONFIG, "--gpu", "h100-80gb", "--engine-version", "0.19.0")


class Serve(unittest.TestCase):
    def test_is_the_command_lines(self):
        server = gpumem.serve(CONFIG, **GPU, tensor_parallel_size=2, gpu_memory_utilization=0.85, enforce_eager=True)
        options = ("--tensor-parallel-size", "2", "--gpu-memory-utilization", "0.85", "--enforce-eager")
        printed = command_line("serve", *WORDS, "--json", *options)
        self.assertEqual(json.loads(server.json()), json.loads(printed.stdout))
        self.assertEqual(command_line("serve", *WORDS, *options).stdout, str(server))
        self.assertTrue(server.starts)
        self.assertIsNone(server.reason)
        self.assertEqual(server.verdict, "fits")
        self.assertEqual(server.cuda_graph_bytes, 0)
        self.assertEqual(pickle.loads(pickle.dumps(server)).json(), server.json())

    def test_takes_the_words_of_a_command(self):
        words = ["vllm", "serve", "llama", "--max-model-len", "4096", "-tp", "2"]
        by_words = gpumem.serve(CONFIG, **GPU, command=words)
        by_options = gpumem.serve(CONFIG, **GPU, max_model_len=4096, tensor_parallel_size=2)
        self.assertEqual(by_words, by_options)
        self.assertEqual(gpumem.serve(CONFIG, **GPU, command=words, max_model_len=2048).max_model_len, 2048)

    def test_a_server_that_does_not_start_says_why(self):
        server = gpumem.serve(CONFIG, gpu="t4-16gb")
        self.assertFalse(server.starts)
        self.assertIn("KV cache", server.reason)
        self.assertEqual(server.verdict, "does_not_fit")

    def test_limits_and_advice(self):
        asked = {"gpu": "l4", "gpu_memory_utilization": 0.6}
        limits = gpumem.serving_limits(CONFIG, **asked)
        self.assertIsNone(limits.longest_context)
        self.assertEqual(limits.fewest_ranks, 2)
        advice = gpumem.advise_server(CONFIG, **asked)
        self.assertEqual(advice[-1].option, "tensor_parallel_size")
        words = (CONFIG, "--gpu", "l4", "--gpu-memory-utilization", "0.6", "--advise", "--json")
        printed = json.loads(command_line("serve", *words).stdout)
        self.assertEqual([each.option for each in advice], [each["option"] for each in printed])

    def test_every_option_of_the_library_is_there(self):
        parameters = set(inspect.signature(gpumem.serve).parameters)
        self.assertEqual(set(_gpumem.SERVING_OPTIONS) - parameters, set())

    def test_wrong_options_are_named(self):
        with self.assertRaisesRegex(gpumem.UsageError, "max_num_seqs"):
            gpumem.serve(CONFIG, max_num_seqs=0)
        with self.assertRaisesRegex(gpumem.UsageError, "--no-such-flag"):
            gpumem.serve(CONFIG, command=["vllm", "serve", "m", "--no-such-flag", "1"])
        with self.assertRaisesRegex(gpumem.UsageError, "max_len"):
            gpumem.serving_limits(CONFIG, max_len=8)
        with self.assertRaises(gpumem.InputError):
            gpumem.serve("/nowhere/config.json")


if __name__ == "__main__":
    unittest.main()
