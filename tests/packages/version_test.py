#!/usr/bin/env python3
"""Every place that writes gpumem's version has that of CMakeLists.txt.

  tests/packages/version_test.py [PROGRAM...]   programs whose --version is held to it too
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = sys.argv[1:]
VERSION = re.search(r"^project\(gpumem VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
# An image's tag, or the name of a package's file.
NAMED = re.compile(r"\b(?:gpumem|gpumem-webhook|libgpumem0|libgpumem-dev|python3-gpumem|gpumem-slurm)[:_-](\d+\.\d+\.\d+)\b")

# What CMake is asked for: versions with the same second number are taken.
ASKED = re.compile(r"find_package\(gpumem (\d[0-9.]*)")


def pages():
    for folder in ("docs", "examples", "packaging"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".yaml", ".sh", ".toml"))
    yield ROOT / "packaging" / "Containerfile"
    yield from (ROOT / "tests" / "consumers").rglob("CMakeLists.txt")
    yield ROOT / "README.md"


class Version(unittest.TestCase):
    def test_changelog(self):
        headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        released = [heading for heading in headings if heading != "Unreleased"]
        self.assertRegex(released[0], rf"^{re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)$")

    def test_files_and_images(self):
        found = 0
        for page in pages():
            for number, line in enumerate(page.read_text().splitlines(), 1):
                for named in NAMED.findall(line):
                    found += 1
                    self.assertEqual(named, VERSION, f"{page.relative_to(ROOT)}:{number} names another version")
                for asked in ASKED.findall(line):
                    found += 1
                    expected = VERSION.rsplit(".", 1)[0]
                    self.assertEqual(asked, expected, f"{page.relative_to(ROOT)}:{number} asks for another version")
        self.assertGreater(found, 10)

    def test_programs(self):
        for program in PROGRAMS:
            printed = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
            self.assertEqual(printed, f"{pathlib.Path(program).name} {VERSION}\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
