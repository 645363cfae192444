#!/usr/bin/env python3
"""Compiles every public header alone, as a program does that includes it first; a warning is an error.

    tests/headers_alone.py BUILD    BUILD: a build folder, for the headers that CMake writes

A header of CORES is compiled once, and what it gives is used for each header that includes it anyway: most of what a header
costs is its includes. A header that lacks an include still fails, since it is given nothing that it does not reach.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What many headers include, in two or more steps. Each may include some of the others.
CORES = ["core/json", "core/result", "architectures/architecture", "architectures/forward", "connect/wired_graph", "model/model_graph",
         "model/training_job", "ops/op", "plan/forward_pass"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"(gpumem[^"]*)"', re.MULTILINE)


def included_by(header, folders, known):
    """The gpumem headers that this one includes, also through others. Bodies are included by those who compile the library."""
    if header not in known:
        known[header] = set()
        for folder in folders:
            if (folder / header).is_file():
                for name in INCLUDE.findall((folder / header).read_text()):
                    if "/impl/" not in name:
                        known[header] |= {name} | included_by(name, folders, known)
    return known[header]


def main():
    os.chdir(Path(__file__).resolve().parent.parent)
    folders = [Path("include"), Path(sys.argv[1]) / "generated"]
    compiler = ["clang++", "-std=c++20", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Werror"]
    compiler += [f"-I{folder}" for folder in folders]
    listed = subprocess.run(["git", "ls-files", "include/*.hpp", ":!include/gpumem/*/impl/*", ":!include/gpumem/bodies.hpp"],
                            check=True, capture_output=True, text=True).stdout.split()
    headers = [name.removeprefix("include/") for name in listed]
    cores = [f"gpumem/{name}.hpp" for name in CORES]
    known = {}
    # The largest is used that a header includes.
    cores.sort(key=lambda core: len(included_by(core, folders, known)), reverse=True)
    core_of = {header: next((core for core in cores if core in included_by(header, folders, known)), None) for header in headers}

    with tempfile.TemporaryDirectory() as precompiled, ThreadPoolExecutor(os.cpu_count()) as pool:
        def path_of(core):
            return f"{precompiled}/{cores.index(core)}.pch"

        def precompile(core):
            # With what its templates make: half of what a small header costs is to make that again.
            given = ["-fpch-instantiate-templates", "-x", "c++-header", f"include/{core}"]
            return subprocess.run([*compiler, *given, "-o", path_of(core)]).returncode

        def compile_alone(header):
            given = ["-include-pch", path_of(core_of[header])] if core_of[header] else []
            return subprocess.run([*compiler, "-fsyntax-only", *given, "-x", "c++", f"include/{header}"]).returncode

        if any(pool.map(precompile, cores)):
            return 1
        failed = [header for header, code in zip(headers, pool.map(compile_alone, headers)) if code != 0]
    for header in failed:
        print(f"{header} does not compile alone", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
