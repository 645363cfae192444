"""python3 -m gpumem is the command line: which program it becomes, and that nothing changes on the way."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import gpumem
from gpumem import __main__ as program
from support import RESNET50, command_line


def module(*arguments, path):
    environment = dict(os.environ, PATH=str(path))
    command = [sys.executable, "-m", "gpumem", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


class Program(unittest.TestCase):
    def test_is_the_command_line(self):
        for arguments in (
            ("--version",),
            ("estimate", RESNET50, "--batch", 32, "--gpu", "a100-40gb"),
            ("estimate", RESNET50, "--batch", 32, "--json"),
            ("estimate", "no-such-file"),
            ("no-such-command",),
        ):
            expected = command_line(*arguments)
            made = module(*arguments, path=pathlib.Path(os.environ["GPUMEM_CLI"]).parent)
            self.assertEqual(made.returncode, expected.returncode)
            self.assertEqual(made.stderr, expected.stderr)
            if "--json" not in arguments:  # which says how long it took
                self.assertEqual(made.stdout, expected.stdout)
        self.assertEqual(command_line("--version").stdout, f"gpumem {gpumem.__version__}\n")

    def test_without_a_program(self):
        with tempfile.TemporaryDirectory() as empty:
            made = module("--version", path=empty)
            self.assertEqual((made.returncode, made.stdout), (3, ""))
            self.assertIn("is not installed", made.stderr)
            # The script that a wheel installs under that name would run this file again.
            script = pathlib.Path(empty, "gpumem")
            script.write_text(f"#!{sys.executable}\nimport gpumem.__main__\n")
            script.chmod(0o755)
            self.assertEqual(module("--version", path=empty).returncode, 3)

    def test_places(self):
        real = shutil.which("sh")
        with tempfile.TemporaryDirectory() as prefix, unittest.mock.patch.dict(os.environ, PATH=""):
            package = pathlib.Path(prefix).resolve() / "lib" / "python3" / "dist-packages" / "gpumem"
            package.mkdir(parents=True)
            with unittest.mock.patch.object(program, "__file__", str(package / "__main__.py")):
                self.assertIsNone(program.find_program())
                for place in (package.parents[3] / "bin" / "gpumem", package / "bin" / "gpumem"):
                    place.parent.mkdir()
                    shutil.copy(real, place)
                    self.assertEqual(program.find_program(), place)


if __name__ == "__main__":
    unittest.main()
