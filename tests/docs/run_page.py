#!/usr/bin/env python3
"""Runs what a page shows: every command and program, and compares what it prints with what the page says.

    run_page.py docs/python.md --bin FOLDER... [--prefix DIR] [--python DIR] [--has yaml,python,...] [--update]

Input: a page (page.py says how it marks what cannot be run), and where the programs are that it calls.
Output: exit code 0 if all of it is so; the counts, or each difference with the page's line. --update (or
        GPUMEM_UPDATE_GOLDEN=1) writes what was printed into the page.

Commands run in an empty folder in which the repository's files stand under their names, so that they may write there.

    ```          whose first line begins with "$ ": each command is run; what it prints on both streams is compared.
                 A line "..." stands for lines that are left out.
    ```          directly below a program: what that prints.
    ```sh        run as a whole; it must end with exit code 0.
    ```python    all of a page in one process, one after the other.
    ```c, cpp    compiled by what pkg-config says of the installed library, and run.
    ```json      must be JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from page import Block, Note, PageError, agrees, commands_of, in_order, read_page, updated, write_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_OF_THE_READER = {".git", "build", ".ci"}
LONGEST_SECONDS = 120
# What changes the machine, or takes long, does not run because a mark was forgotten.
NOT_IN_A_TEST = re.compile(r"\b(sudo|apt-get|apt|pip|docker|podman|kubectl|sbatch|cmake --preset|run\.sh)\b")
COMPILERS = {"cpp": ("CXX", "g++", "-std=c++20", "gpumem"), "c": ("CC", "cc", "-std=c99", "gpumem-c")}


class Differs(Exception):
    """What the page says is not so."""


class Runner:
    def __init__(self, page: pathlib.Path, options: argparse.Namespace, folder: pathlib.Path):
        self.page, self.options, self.folder = page, options, folder
        self.has = set(filter(None, options.has.split(",")))
        self.counts = {"commands": 0, "programs": 0, "texts": 0, "not run": 0, "skipped": 0}
        self.changed: list[tuple[Block, list[str]]] = []
        self.program: list[str] | None = None  # What was shown last, for the output that follows.
        self.left_out = False  # Whether the last program or command was.
        self.printed: list[str] | None = None  # The same, where it has run.
        self.not_compiled: dict[str, str] = {}  # Programs in C and C++, with their language.
        self.environment = self._environment()
        for entry in ROOT.iterdir():
            if entry.name not in NOT_OF_THE_READER:
                (folder / entry.name).symlink_to(entry)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("GPUMEM_", "PYTHON", "CLICOLOR", "FORCE_COLOR"))}
        path = [str(pathlib.Path(each).resolve()) for each in self.options.bin]
        kept.update(PATH=os.pathsep.join([*path, kept["PATH"]]), HOME=str(self.folder), LC_ALL="C.UTF-8",
                    PYTHONDONTWRITEBYTECODE="1", COLUMNS="100")
        kept["GPUMEM_QUEUE"] = str(self.folder / ".queue")
        if self.options.pretended:
            kept.update(GPUMEM_NVML=str(pathlib.Path(self.options.pretended).resolve() / "libnvidia-ml.so.1"),
                        GPUMEM_PRETENDED_NVML=str(ROOT / "tests/docs/machine.json"))
            self.has.add("gpus")
        if self.options.python:
            kept["PYTHONPATH"] = str(pathlib.Path(self.options.python).resolve())
        if self.options.prefix:
            prefix = pathlib.Path(self.options.prefix).resolve()
            libraries = next(iter(prefix.glob("**/pkgconfig/gpumem.pc"))).parents[1]
            kept.update(PKG_CONFIG_PATH=str(libraries / "pkgconfig"), LD_LIBRARY_PATH=str(libraries))
            # It was installed elsewhere than it says.
            self._wrap("pkg-config", [shutil.which("pkg-config"), f"--define-variable=prefix={prefix}"])
        self._wrap("python3", [self.options.interpreter])
        kept["PATH"] = f"{self.folder / '.bin'}{os.pathsep}{kept['PATH']}"
        return kept

    def _wrap(self, name: str, command: list[str]) -> None:
        """A program of the reader's that stands for another one."""
        wrapper = self.folder / ".bin" / name
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        wrapper.chmod(0o755)

    # -------------------------------------------------------------------------------------------- processes

    def run(self, command: list[str], merged: bool = True) -> tuple[int, str]:
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merged else subprocess.DEVNULL,
                              start_new_session=True) as process:
            try:
                printed, _ = process.communicate(timeout=LONGEST_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # What it started as well.
                raise
        return process.returncode, printed

    def shell(self, text: str, wanted_exit: int = 0) -> list[str]:
        code, printed = self.run(["bash", "-o", "pipefail", "-c", text])
        if code != wanted_exit:
            raise Differs(f"exit code {code} and not {wanted_exit}: {text}\n{printed}")
        return printed.split("\n")[:-1] if printed.endswith("\n") else printed.split("\n") if printed else []

    # ----------------------------------------------------------------------------------------------- blocks

    def missing(self, block: Block) -> str | None:
        """Why a block is not run here, if it is not."""
        for need in filter(None, map(str.strip, block.marks.get("needs", "").split(","))):
            name, _, version = need.partition(" ")
            if name == "torch":
                here = self.torch()
                if here is None:
                    return "torch"
                if version and here < tuple(map(int, version.split("."))):
                    return f"torch {version} (here is {'.'.join(map(str, here))})"
            elif name not in self.has:
                return name
        builds = block.is_session and ("pkg-config" in block.text or "$ ./" in block.text)
        return "installed" if builds and not self.options.prefix else None

    def torch(self) -> tuple[int, ...] | None:
        if not hasattr(self, "_torch"):
            code, printed = self.run([self.options.interpreter, "-c", "import torch; print(torch.__version__)"], False)
            found = re.match(r"(\d+)\.(\d+)", printed) if code == 0 else None
            self._torch = tuple(map(int, found.groups())) if found else None
        return self._torch

    def note(self, note: Note) -> None:
        if note.name == "here":
            name, _, source = note.value.partition(" = ")
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, target)
        elif note.name == "run first":
            self.shell(note.value)
        else:
            self.fields(note)

    def fields(self, note: Note) -> None:
        text = self.page.read_text()
        code, printed = self.run(["bash", "-c", note.value], False)
        names: set[str] = set()

        def look(value: object) -> None:
            if isinstance(value, dict):
                names.update(value)
                for each in value.values():
                    look(each)
            elif isinstance(value, list):
                for each in value:
                    look(each)

        look(json.loads(printed))
        absent = sorted(name for name in names if f"`{name}`" not in text)
        if absent or not names:
            raise Differs(f"{note.value}\nfields that the page does not name: {', '.join(absent)}")
        self.counts["commands"] += 1

    def block(self, block: Block) -> None:
        if "file" in block.marks:
            self.write(block.marks["file"], block.text)
        if "not run" in block.marks:
            self.counts["not run"] += 1
            self.program = self.printed = None
            self.left_out = True
            return
        if (block.is_session or block.language == "sh") and (word := NOT_IN_A_TEST.search(block.text)):
            raise Differs(f"a test must not run {word.group()}: say <!-- not run: WHY --> above the block")
        if block.language in ("c", "cpp", "python"):
            self.program = self.printed = None
            self.left_out = False
        if why := self.missing(block):
            self.skip(block, why)
        elif "in file" in block.marks:
            if block.text not in (ROOT / block.marks["in file"]).read_text():
                raise Differs(f"the text is not in {block.marks['in file']}")
            self.counts["texts"] += 1
        elif "part of" in block.marks:
            absent = in_order(block.lines, self.shell(block.marks["part of"]))
            if absent is not None:
                raise Differs(f"{block.marks['part of']}\ndoes not print the line, or not behind those above it:\n{absent}")
            self.counts["commands"] += 1
        elif block.is_session:
            self.session(block)
        elif block.language == "sh":
            self.shell(f"set -e\n{block.text}")
            self.counts["commands"] += 1
        elif block.language in COMPILERS:
            self.compile(block)
        elif block.language == "json":
            json.loads(block.text)
            self.counts["texts"] += 1
        elif block.language == "python":
            self.python(block)
        elif block.language == "" and block.follows_code:
            self.output(block)
        elif "file" not in block.marks:
            raise Differs(f"nothing says how to check this block ({block.language or 'no language'}); see tests/docs/page.py")

    def skip(self, block: Block, why: str) -> None:
        self.counts["skipped"] += 1
        self.left_out = True
        print(f"{self.page}:{block.line}: skipped, because it needs {why}")
        if self.options.must_run and "here is" not in why:
            raise Differs(f"it must run, and {why} is missing")

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.unlink(missing_ok=True)  # It may be a link to a file of the repository.
        file.write_text(text)

    def session(self, block: Block) -> None:
        lines: list[str] = []
        commands = commands_of(block)
        for each in commands:
            last = each is commands[-1]
            for name in [name for name in self.not_compiled if name in each.text]:
                del self.not_compiled[name]
            printed = self.shell(each.text, int(block.marks.get("exit code", "0")) if last else 0)
            self.counts["commands"] += 1
            # A blank line parts a command from the next one.
            blank = not last and each.expected[-1:] == [""] and printed[-1:] != [""]
            lines += each.shown + self.compared(block, each.text, each.expected[: -1 if blank else None], printed)
            lines += [""] if blank else []
        if lines != block.lines:
            self.changed.append((block, lines))

    def compared(self, block: Block, of: str, expected: list[str], printed: list[str]) -> list[str]:
        """What the page shall show; raises where it shows something else and is not to be changed."""
        if agrees(expected, printed):
            return expected
        new = updated(expected, printed) if self.options.update else None
        if new is None:
            shown = "\n".join(expected)
            raise Differs(f"{of}\n--- the page shows\n{shown}\n--- it prints\n" + "\n".join(printed))
        return new

    def compile(self, block: Block) -> None:
        """Is put off until its output is asked for: the page may show how to compile it."""
        if not self.options.prefix:
            return self.skip(block, "installed")
        self.counts["programs"] += 1
        name = block.marks.get("file", f"program{self.counts['programs']}.{block.language}")
        self.write(name, block.text)
        self.program = ["./" + name.rpartition(".")[0]]
        self.not_compiled[name] = block.language
        return None

    def compile_now(self, name: str) -> None:
        variable, usual, standard, package = COMPILERS[self.not_compiled.pop(name)]
        self.shell(f"{os.environ.get(variable, usual)} {standard} -Wall -Wextra {name} "
                   f"$(pkg-config --cflags --libs {package}) -o {name.rpartition('.')[0]}")

    def output(self, block: Block) -> None:
        if self.printed is None:
            if self.program is None:
                if self.left_out:
                    return  # Of a program that was not run.
                raise Differs("output without a program above it")
            for name in list(self.not_compiled):
                self.compile_now(name)
            text = " ".join([*self.program, block.marks.get("run with", "")])
            self.printed = self.shell(text, int(block.marks.get("exit code", "0")))
        lines = self.compared(block, "the program above", block.lines, self.printed)
        if lines != block.lines:
            self.changed.append((block, lines))

    # ----------------------------------------------------------------------------------------------- Python

    def python(self, block: Block) -> None:
        """Runs it in the process of the page's blocks above."""
        if "python" not in self.has:
            return self.skip(block, "python")
        if "torch" in block.text and "needs" not in block.marks and self.torch() is None:
            return self.skip(block, "torch")
        if not hasattr(self, "_python"):
            self._python = subprocess.Popen(
                [self.options.interpreter, str(ROOT / "tests/docs/blocks.py")], cwd=self.folder, env=self.environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._python.stdin.write(json.dumps({"text": block.text, "name": self.page.name, "line": block.line}) + "\n")
        self._python.stdin.flush()
        answer = json.loads(self._python.stdout.readline())
        if answer["error"]:
            raise Differs(answer["error"])
        self.counts["programs"] += 1
        self.printed = answer["printed"].split("\n")[:-1]
        return None

    def end(self) -> None:
        for name in list(self.not_compiled):
            self.compile_now(name)
        if hasattr(self, "_python"):
            self._python.stdin.close()
            self._python.wait()


def run_page(page: pathlib.Path, options: argparse.Namespace) -> int:
    faults = 0
    with tempfile.TemporaryDirectory(prefix="gpumem-page-") as folder:
        runner = Runner(page, options, pathlib.Path(folder))
        for piece in read_page(page):
            try:
                runner.note(piece) if isinstance(piece, Note) else runner.block(piece)
            except (Differs, ValueError, OSError, subprocess.TimeoutExpired) as error:
                faults += 1
                print(f"{page}:{piece.line}: {error}\n")
        try:
            runner.end()
        except Differs as error:
            faults += 1
            print(f"{page}: {error}")
    if runner.changed:
        write_blocks(page, runner.changed)
        print(f"{page}: {len(runner.changed)} blocks were written anew; look at them")
    print(f"{page}: " + ", ".join(f"{count} {what}" for what, count in runner.counts.items()))
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--bin", nargs="*", default=[], help="folders of programs")
    parser.add_argument("--prefix", help="where gpumem is installed, for programs that link it")
    parser.add_argument("--python", help="the folder in which the package gpumem is")
    parser.add_argument("--pretended", help="the folder of tests/support/nvml's library: machine.json's GPUs are there")
    parser.add_argument("--interpreter", default="/usr/bin/python3")
    parser.add_argument("--has", default="", help="parts that are built: python,yaml,trainer,webhook")
    parser.add_argument("--update", action="store_true", default=bool(os.environ.get("GPUMEM_UPDATE_GOLDEN")))
    parser.add_argument("--must-run", action="store_true", help="what is missing is a fault")
    try:
        options = parser.parse_args()
        return run_page(options.page, options)
    except PageError as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
