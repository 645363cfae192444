#!/usr/bin/env python3
"""Which libraries compiled files need, and from which version of glibc on.

  packaging/elf_needs.py FOLDER_OR_WHEEL   prints both and the platform tag; ends with 1 if a library is not allowed

Input: readelf's tables of every ELF file below a folder (Debian: binutils).
Output: the tag of PEP 600, manylinux_2_NN_ARCH, where 2.NN is the highest version of glibc that a symbol names, or the first
glibc that systems have beside the libstdc++ that a symbol names. Source of these pairs: auditwheel's
manylinux-policy.json, its symbol_versions GLIBCXX and CXXABI.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# The dynamic loader, and the libraries that PEP 600 lets every wheel use.
ALLOWED = re.compile(r"^(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.\d+$")
# Up to which GLIBCXX and CXXABI systems with a glibc have.
LIBSTDCXX = (
    # glibc 2.NN, GLIBCXX_3.4.NN, CXXABI_1.3.NN
    (17, 19, 7),
    (24, 22, 10),
    (28, 25, 11),
    (31, 28, 12),
    (34, 29, 13),
    (35, 30, 13),
    (39, 33, 15),
)


#: What readelf calls a machine, and what a tag calls it.
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}


class NotAllowed(Exception):
    """A file needs a library that is not on every system."""


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def _readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def needed_libraries(path):
    return sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", _readelf("-d", path)))


def machine_of(path):
    """The machine that it is compiled for, which need not be this one."""
    named = re.search(r"Machine:\s+(.*)", _readelf("-h", path))[1].strip()
    if named not in MACHINES:
        raise NotAllowed(f"{path.name} is for {named}, which has no tag here; add it to MACHINES")
    return MACHINES[named]


def run_paths(path):
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", _readelf("-d", path))


def highest_versions(path):
    """The highest of each: {"GLIBC": (2, 34), ...}."""
    needs = _readelf("-V", path).split("Version needs section", 1)[-1]
    highest = {}
    for name, number in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", needs):
        parts = tuple(int(part) for part in number.split("."))
        highest[name] = max(highest.get(name, parts), parts)
    return highest


def glibc_minor(versions):
    """NN of the first glibc 2.NN whose systems have all that is named."""
    minor = versions.get("GLIBC", (2, 17))[1]
    for name, column, prefix in (("GLIBCXX", 1, (3, 4)), ("CXXABI", 2, (1, 3))):
        number = versions.get(name, prefix)
        last = number[2] if len(number) > 2 else 0
        if number[:2] != prefix:
            raise NotAllowed(f"{name}_{'.'.join(map(str, number))} is on no known system")
        known = [row[0] for row in LIBSTDCXX if last <= row[column]]
        if not known:
            raise NotAllowed(f"{name}_{'.'.join(map(str, number))} is newer than LIBSTDCXX knows; add a row")
        minor = max(minor, known[0])
    return max(minor, 17)


def manylinux_tag(folder, report=lambda line: None):
    minor = 17
    machines = set()
    for path in elf_files(folder):
        machines.add(machine_of(path))
        versions = highest_versions(path)
        libraries = needed_libraries(path)
        named = " ".join(f"{name}_{'.'.join(map(str, number))}" for name, number in sorted(versions.items()))
        report(f"{path.relative_to(folder)}: needs {' '.join(libraries)}; {named}")
        for library in libraries:
            if not ALLOWED.match(library):
                raise NotAllowed(f"{path.name} needs {library}, which is not on every system; link it in")
        for run_path in run_paths(path):
            raise NotAllowed(f"{path.name} looks for libraries in {run_path}; link it without a run path")
        minor = max(minor, glibc_minor(versions))
    if len(machines) != 1:
        raise NotAllowed(f"the files are for {', '.join(sorted(machines)) or 'no machine'}, not for one")
    return f"manylinux_2_{minor}_{machines.pop()}"


def main():
    if len(sys.argv) != 2:
        print("usage: packaging/elf_needs.py FOLDER_OR_WHEEL", file=sys.stderr)
        return 2
    given = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as unpacked:
        folder = given
        if given.is_file():
            zipfile.ZipFile(given).extractall(unpacked)
            folder = pathlib.Path(unpacked)
        try:
            tag = manylinux_tag(folder, print)
        except NotAllowed as fault:
            print(f"elf_needs.py: {fault}", file=sys.stderr)
            return 1
    print(tag)
    if given.is_file() and tag not in given.name:
        print(f"elf_needs.py: {given.name} is named otherwise", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
