#!/usr/bin/env python3
"""Joins what clang-tidy reads into few pieces: headers are 15 s of processor time of each, and most files add little to that.

    tests/lint_pieces.py BUILD UNIT...    UNIT: a file, or a piece of files, that BUILD/compile_commands.json compiles

Writes the joined pieces and their compile_commands.json into BUILD/joined, and prints for each, the largest first, its name and
its units. A file is read once, also where two libraries compile it. Units that name a helper alike are in different pieces. Where
names clash that are not seen here, tests/lint.sh reads the units of that piece one by one.
"""
import json
import re
import shlex
import sys
from pathlib import Path

LARGEST = 500000  # bytes of a piece: more would be the last one, with one core idle
INCLUDE = re.compile(r'#\s*include\s+"(/[^"]+)"')
NAME = re.compile(r"^(?!using |namespace |return |else )[A-Za-z_:][\w:<>,*& ]*[ *&](\w+) ?[({=]", re.MULTILINE)
TYPE = re.compile(r"^(?:struct|class|enum class|enum|using) (\w+)(?= ?[{:=])", re.MULTILINE)
PROGRAM = re.compile(r"^int main\(", re.MULTILINE)
OPENS = re.compile(r"^using namespace gpumem", re.MULTILINE)  # for all that follows: its names and others' become one heap
KEPT = re.compile(r"-[IDWm]|-std=|-pthread")


class Unit:
    """A piece of files that are compiled as one, or one file: those of its files that are in no unit before it."""

    def __init__(self, path, read):
        self.path = path
        self.names = set()
        self.files = [Path(name).resolve() for name in INCLUDE.findall(path.read_text())] or [path]
        self.files = [file for file in self.files if file not in read]
        read.update(self.files)
        texts = {file: file.read_text() for file in self.files}
        self.size = sum(map(len, texts.values()))
        program = any(PROGRAM.search(text) for text in texts.values())
        self.opens = any(OPENS.search(text) for text in texts.values())
        for file, text in texts.items():
            # Each folder has a namespace of its own; what a program's own files declare is in none.
            folder = "" if program else file.parent.name
            self.names |= {(folder, name) for name in NAME.findall(text) + TYPE.findall(text)}


def flags_of(command):
    """The words of a command that decide what its file means."""
    words = shlex.split(command)
    flags = []
    for word, following in zip(words, words[1:] + [""]):
        if word == "-isystem":
            flags.append((word, following))
        elif KEPT.match(word):
            flags.append((word,))
    return flags


def command_of(unit, entries):
    """What compiles a unit; of one that this build leaves out, what compiles others of its folder."""
    folder = f"/src/{unit.parent.name}/"
    return entries.get(str(unit)) or next(command for name, command in entries.items() if folder in name)


def joined(units):
    """Lists of units that can be read as one, about as large as each other. Those that open namespaces are each in another."""
    pieces = []
    for unit in sorted(units, key=lambda unit: (not unit.opens, -unit.size)):
        places = [piece for piece in pieces if not unit.opens and piece["size"] + unit.size <= LARGEST
                  and not unit.names & piece["names"]]
        if not places:
            places = [{"size": 0, "names": set(), "units": []}]
            pieces += places
        piece = min(places, key=lambda piece: piece["size"])
        piece["size"] += unit.size
        piece["names"] |= unit.names
        piece["units"].append(unit)
    pieces.sort(key=lambda piece: piece["size"], reverse=True)
    return [sorted(piece["units"], key=lambda unit: unit.opens) for piece in pieces]


def main():
    build = Path(sys.argv[1]).resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        entries.setdefault(entry["file"], entry["command"])
    folder = build / "joined"
    folder.mkdir(exist_ok=True)
    commands = []
    read = set()
    for number, units in enumerate(joined([Unit(Path(name).resolve(), read) for name in sys.argv[2:]])):
        path = folder / f"piece_{number}.cxx"
        # Not the units themselves: the analyzer follows only functions of files that the piece itself includes.
        path.write_text("".join(f'#include "{file}"\n' for unit in units for file in unit.files))
        flags = dict.fromkeys(flag for unit in units for flag in flags_of(command_of(unit.path, entries)))
        arguments = ["clang++", *(word for flag in flags for word in flag), "-c", str(path)]
        commands.append({"directory": str(build), "file": str(path), "arguments": arguments})
        print(path, *(unit.path for unit in units))
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1))


if __name__ == "__main__":
    main()
