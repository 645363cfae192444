"""gpumem.read_server(): the GPUs of this machine, here of one that is pretended."""

import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock
import warnings

import gpumem
from support import command_line

A100 = {"name": "NVIDIA A100-SXM4-40GB", "memory_total": 42_949_672_960, "reserved": 475_201_536}


class Machine(unittest.TestCase):
    def setUp(self):
        library = os.environ.get("GPUMEM_PRETENDED_NVML_LIBRARY")
        if not library:
            self.skipTest("the pretended driver is not built")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "machine.json")
        settings = {"GPUMEM_NVML": library, "GPUMEM_PRETENDED_NVML": str(self.file)}
        patch = unittest.mock.patch.dict(os.environ, settings)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, *gpus, **more):
        self.file.write_text(json.dumps({"gpus": list(gpus), **more}))

    def test_gives_what_the_command_line_prints(self):
        self.write({**A100, "uuid": "GPU-a", "used_outside": 1 << 30, "utilisation": 40}, {**A100, "uuid": "GPU-b"})
        server = gpumem.read_server()
        self.assertEqual([gpu["id"] for gpu in server["gpus"]], ["GPU-a", "GPU-b"])
        self.assertEqual(server["gpus"][0]["profile"], "a100-40gb")
        self.assertEqual(server["gpus"][0]["used_bytes"], 1 << 30)
        self.assertEqual(server["gpus"][0]["smact"], 0.4)
        printed = command_line("server", "--window", "0")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertEqual(server, json.loads(printed.stdout))

    def test_watches_for_a_while(self):
        self.write({**A100, "uuid": "GPU-a", "sm_util": 25})
        self.assertEqual(gpumem.read_server()["gpus"][0]["smact_source"], "utilisation")
        watched = gpumem.read_server(window_ms=200)["gpus"][0]
        self.assertEqual((watched["smact"], watched["smact_source"]), (0.25, "gpm"))

    def test_warns_of_what_is_left_out(self):
        self.write({**A100, "uuid": "GPU-a", "lost": True}, {**A100, "uuid": "GPU-b"})
        with self.assertWarnsRegex(RuntimeWarning, "GPU 0 is left out: it is lost"):
            server = gpumem.read_server()
        self.assertEqual(len(server["gpus"]), 1)

    def test_errors(self):
        self.write(fail={"nvmlInit_v2": 9})
        with self.assertRaisesRegex(gpumem.NoEstimateError, "driver does not answer"):
            gpumem.read_server()
        os.environ["GPUMEM_NVML"] = "/nowhere/libnvidia-ml.so.1"
        with self.assertRaisesRegex(gpumem.InputError, "GPUMEM_NVML"):
            gpumem.read_server()
        for wrong in (-1, 3_600_001):
            with self.assertRaises(gpumem.UsageError):
                gpumem.read_server(window_ms=wrong)
        with self.assertRaises(TypeError):
            gpumem.read_server(window_ms="60s")

    def test_a_quiet_machine_warns_of_nothing(self):
        self.write({**A100, "uuid": "GPU-a"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gpumem.read_server()


if __name__ == "__main__":
    unittest.main()
