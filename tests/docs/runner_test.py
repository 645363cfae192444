#!/usr/bin/env python3
"""run_page.py finds what is wrong with a page, and nothing where nothing is."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "GPUMEM_UPDATE_GOLDEN"}
RUNNER = pathlib.Path(__file__).with_name("run_page.py")


def block(*lines: str, language: str = "", marks: str = "") -> str:
    return f"{marks}\n```{language}\n" + "\n".join(lines) + "\n```\n"


class RunPage(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "page.md"

    def run_page(self, text: str, *options: str) -> "tuple[int, str]":
        self.page.write_text(f"# A page\n\n{text}")
        done = subprocess.run([sys.executable, RUNNER, self.page, "--interpreter", sys.executable, *options],
                              capture_output=True, text=True, env=ENVIRONMENT)
        return done.returncode, done.stdout + done.stderr

    def passes(self, text: str, *options: str) -> str:
        code, said = self.run_page(text, *options)
        self.assertEqual(code, 0, said)
        return said

    def fails(self, text: str, part: str, *options: str) -> None:
        code, said = self.run_page(text, *options)
        self.assertEqual(code, 1, said)
        self.assertIn(part, said)

    def test_what_a_command_prints_is_compared(self) -> None:
        self.passes(block("$ echo one; echo two >&2", "one", "two"))
        self.passes(block("$ echo one", "one", "", "$ echo two", "two"))
        self.fails(block("$ echo one", "two"), "--- it prints\none")
        self.fails(block("$ echo one; echo two", "one"), "--- the page shows\none")
        self.fails(block("$ true", "one"), "--- the page shows")

    def test_a_command_may_go_on_in_the_next_line(self) -> None:
        self.passes(block("$ echo one \\", "    two", "one two"))
        self.passes(block("$ echo one |", "    tr o a", "ane"))

    def test_lines_may_be_left_out(self) -> None:
        self.passes(block("$ seq 5", "1", "...", "5"))
        self.passes(block("$ seq 5", "...", "3", "..."))
        self.fails(block("$ seq 5", "1", "...", "6"), "--- it prints")
        self.fails(block("$ seq 5", "2", "..."), "--- it prints")
        self.fails(block("$ seq 5", "...", "4", "3", "..."), "--- it prints")

    def test_an_exit_code_must_be_said(self) -> None:
        self.fails(block("$ exit 3"), "exit code 3 and not 0")
        self.passes(block("$ exit 3", marks="<!-- exit code: 3 -->"))
        self.fails(block("$ true", marks="<!-- exit code: 3 -->"), "exit code 0 and not 3")
        self.fails(block("false", "true", language="sh"), "exit code 1")

    def test_every_block_must_say_how_to_check_it(self) -> None:
        self.fails(block("what is this"), "nothing says how to check")
        self.fails(block("key: value", language="yaml"), "nothing says how to check")
        said = self.passes(block("sudo reboot", language="sh", marks="<!-- not run: it needs root -->"))
        self.assertIn("1 not run", said)
        self.fails(block("sudo reboot", language="sh"), "a test must not run sudo")
        self.fails("<!-- not run: why -->\nA paragraph.\n", "a mark (not run) that no block follows")
        self.fails("```sh\ntrue\n", "a block without an end")

    def test_texts_are_checked(self) -> None:
        self.passes(block('{"a": 1}', language="json"))
        self.fails(block('{"a": 1', language="json"), "page.md:5")
        self.passes(block("include(GNUInstallDirs)", language="cmake", marks="<!-- in file: CMakeLists.txt -->"))
        self.fails(block("nowhere at all", language="cmake", marks="<!-- in file: CMakeLists.txt -->"), "is not in CMakeLists.txt")
        self.passes(block("two", "four", marks="<!-- part of: printf 'one\\ntwo\\nthree\\nfour\\n' -->"))
        self.fails(block("four", "two", marks="<!-- part of: printf 'one\\ntwo\\nthree\\nfour\\n' -->"), "does not print the line")

    def test_fields_must_be_named(self) -> None:
        note = """<!-- fields of: echo '{"size": [{"deep": 1}]}' -->\n"""
        self.passes(f"{note}`size` and `deep`\n")
        self.fails(f"{note}`size`\n", "does not name: deep")

    def test_python_runs_in_one_process(self) -> None:
        text = block("x = 2", language="python") + block("print(x + 1)", language="python") + block("3")
        self.passes(text, "--has", "python")
        self.fails(text.replace("3\n", "4\n"), "--- it prints\n3", "--has", "python")
        self.fails(block("1 / 0", language="python"), "ZeroDivisionError", "--has", "python")
        self.assertIn("2 skipped", self.passes(text))
        self.fails(text, "it must run, and python is missing", "--must-run")

    def test_files_stand_under_their_names(self) -> None:
        self.passes("<!-- here: mine.md = README.md -->\n" + block("$ head -1 mine.md", "# gpumem"))
        self.passes(block("one", language="toml", marks="<!-- file: CMakeLists.txt -->") + block("$ cat CMakeLists.txt", "one"))
        self.assertIn("project(gpumem", (RUNNER.parents[2] / "CMakeLists.txt").read_text())

    def test_an_update_writes_what_is_printed(self) -> None:
        page = block("$ echo 1; echo name 2; echo 3", "...", "name 9", "...") + "Text.\n" + block("$ echo 4", "7")
        code, said = self.run_page(page, "--update")
        self.assertEqual(code, 0, said)
        self.assertIn("...\nname 2\n...\n", self.page.read_text())
        self.assertIn("$ echo 4\n4\n", self.page.read_text())
        self.assertIn("Text.\n", self.page.read_text())


if __name__ == "__main__":
    unittest.main()
