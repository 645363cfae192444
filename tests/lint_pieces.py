#!/usr/bin/env python3
"""Joins what clang-tidy reads into few pieces: headers are 15 s of processor time of each, and most files add little to that.

    tests/lint_pieces.py BUILD FILE...    FILE: files and pieces of files that BUILD/compile_commands.json compiles

Writes the joined pieces and their compile_commands.json into BUILD/joined, and prints their names. Files that name a helper
alike are in different pieces. The one file of a program is by itself: its helpers stand in the namespace of all.
"""
import json
import re
import shlex
import sys
from pathlib import Path

LARGEST = 520000  # bytes of a piece: more would be the last one, with one core idle
INCLUDE = re.compile(r'#\s*include\s+"(/[^"]+)"')
NAME = re.compile(r"^(?!using |namespace |return |else )[A-Za-z_:][\w:<>,*& ]*[ *&](\w+) ?[({=]", re.MULTILINE)
TYPE = re.compile(r"^(?:struct|class|enum class|enum|using) (\w+)(?= ?[{:=])", re.MULTILINE)
PROGRAM = re.compile(r"^int main\(", re.MULTILINE)
KEPT = re.compile(r"-[IDm]|-std=|-pthread")


def texts_of(file):
    """The texts of a file, or of all files of a piece, by their paths."""
    text = Path(file).read_text()
    return {name: Path(name).read_text() for name in INCLUDE.findall(text)} or {file: text}


def names_of(texts):
    """What files declare in column 0, by their folders: each has a namespace of its own, and main() is in none."""
    names = set()
    for file, text in texts.items():
        for name in NAME.findall(text) + TYPE.findall(text):
            names.add(("" if name == "main" else Path(file).parent.name, name))
    return names


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


def command_of(file, entries):
    """What compiles a file; of one that this build leaves out, what compiles others of its folder."""
    folder = f"/src/{Path(file).parent.name}/"
    return entries.get(file) or next(command for name, command in entries.items() if folder in name)


def main():
    build = Path(sys.argv[1]).resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        entries.setdefault(entry["file"], entry["command"])
    pieces = []
    texts = {str(Path(name).resolve()): texts_of(str(Path(name).resolve())) for name in sys.argv[2:]}
    sizes = {file: sum(map(len, files.values())) for file, files in texts.items()}
    for file in sorted(texts, key=sizes.get, reverse=True):
        names = names_of(texts[file])
        alone = PROGRAM.search(texts[file].get(file, "")) is not None
        for piece in pieces:
            if not alone and not piece["alone"] and piece["size"] + sizes[file] <= LARGEST and not names & piece["names"]:
                break
        else:
            piece = {"size": 0, "names": set(), "files": [], "flags": [], "alone": alone}
            pieces.append(piece)
        piece["size"] += sizes[file]
        piece["names"] |= names
        piece["files"].append(file)
        piece["flags"] += [flag for flag in flags_of(command_of(file, entries)) if flag not in piece["flags"]]
    joined = build / "joined"
    joined.mkdir(exist_ok=True)
    commands = []
    for number, piece in enumerate(pieces):
        path = joined / f"piece_{number}.cxx"
        path.write_text("".join(f'#include "{file}"\n' for file in piece["files"]))
        arguments = ["clang++", *(word for flag in piece["flags"] for word in flag), "-c", str(path)]
        commands.append({"directory": str(build), "file": str(path), "arguments": arguments})
        print(path)
    (joined / "compile_commands.json").write_text(json.dumps(commands, indent=1))


if __name__ == "__main__":
    main()
