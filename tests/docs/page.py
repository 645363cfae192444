"""A page in Markdown as a list of pieces: blocks of code and the comments that say how to run them.

Input: the text of a page.
Output: pieces in the order of the page. A Block has its language, its lines, where they stand, and its marks; a Note is a
        comment that stands for itself ("here", "run first").

A mark is a comment on a line of its own, directly above a block:

    <!-- not run: WHY -->            the block cannot be run in a test
    <!-- needs: yaml, torch 2.1 -->  it is run where these are ("gpus": made-up ones, machine.json)
    <!-- exit code: 5 -->            what its last command exits with
    <!-- part of: COMMAND -->        its lines stand in what the command prints, in this order
    <!-- in file: PATH -->           it stands in a file of the repository, to the letter
    <!-- file: NAME -->              it is written to a file of this name, for the commands that follow
    <!-- run with: ARGUMENTS -->     for the program above, whose output this block is

A note may stand anywhere:

    <!-- here: NAME = PATH -->       a file of the repository that the page's reader has under another name
    <!-- run first: COMMAND -->      what the reader has done before
    <!-- fields of: COMMAND -->      every field of the JSON that it prints stands on the page in `backquotes`
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

MARKS = ("not run", "needs", "exit code", "part of", "in file", "file", "run with")
NOTES = ("here", "run first", "fields of")
COMMENT = re.compile(r"<!-- ([a-z ]+): (.*?) -->$")


class PageError(Exception):
    """What is wrong with a page, with the line."""


@dataclasses.dataclass
class Block:
    language: str
    lines: list[str]
    line: int  # Of its first line, from 1.
    marks: dict[str, str]
    follows_code: bool  # Nothing but blank lines and marks between it and the block above.

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def is_session(self) -> bool:
        return self.language in ("", "console") and bool(self.lines) and self.lines[0].startswith("$ ")


@dataclasses.dataclass
class Note:
    name: str
    value: str
    line: int


def read_page(path: pathlib.Path) -> list[Block | Note]:
    pieces: list[Block | Note] = []
    marks: dict[str, str] = {}
    block: Block | None = None
    follows = False
    for number, line in enumerate(path.read_text().split("\n"), start=1):
        if block is not None:
            if line.strip() == "```":
                pieces.append(block)
                block, marks, follows = None, {}, True
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(line[3:].strip(), [], number + 1, marks, follows)
        elif found := COMMENT.match(line):
            name, value = found.groups()
            if name in NOTES:
                pieces.append(Note(name, value, number))
            elif name in MARKS:
                marks[name] = value
        elif line.strip():
            if marks and not line.startswith("<!--"):
                raise PageError(f"{path}:{number}: a mark ({', '.join(marks)}) that no block follows")
            follows = False
    if block is not None:
        raise PageError(f"{path}:{block.line}: a block without an end")
    return pieces


def write_blocks(path: pathlib.Path, changed: list[tuple[Block, list[str]]]) -> None:
    """Puts new lines in the place of blocks' lines."""
    lines = path.read_text().split("\n")
    for block, new in sorted(changed, key=lambda each: each[0].line, reverse=True):
        lines[block.line - 1 : block.line - 1 + len(block.lines)] = new
    temporary = path.with_suffix(".new")
    temporary.write_text("\n".join(lines))
    temporary.replace(path)


@dataclasses.dataclass
class Command:
    shown: list[str]  # The lines as the page has them, the first behind "$ ".
    expected: list[str]

    @property
    def text(self) -> str:
        return "\n".join([self.shown[0][2:], *self.shown[1:]])


def commands_of(block: Block) -> list[Command]:
    """A session's commands, each with the lines that follow it."""
    commands: list[Command] = []
    goes_on = False
    for line in block.lines:
        if goes_on:
            commands[-1].shown.append(line)
        elif line.startswith("$ "):
            commands.append(Command([line], []))
        else:
            commands[-1].expected.append(line)
            continue
        goes_on = line.endswith(("\\", " |", " &&"))
    return commands


# ------------------------------------------------------------------ what is shown against what is printed

LEFT_OUT = "..."


def segments_of(expected: list[str]) -> list[list[str]]:
    """The lines between those that say "..."."""
    segments: list[list[str]] = [[]]
    for line in expected:
        if line.strip() == LEFT_OUT:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def _found_at(segment: list[str], printed: list[str], begin: int, same) -> int:
    for at in range(begin, len(printed) - len(segment) + 1):
        if all(same(segment[i], printed[at + i]) for i in range(len(segment))):
            return at
    return -1


def _places_of(segments: list[list[str]], printed: list[str], same) -> list[int] | None:
    """Where each segment begins in what is printed; None: they are not there in this order."""
    places, begin = [], 0
    for index, segment in enumerate(segments):
        if index > 0 and index == len(segments) - 1:
            at = max(begin, len(printed) - len(segment))
            if _found_at(segment, printed, at, same) != at:
                return None
        else:
            at = _found_at(segment, printed, begin, same)
        if at < 0 or (index == 0 and at > 0 and segment):
            return None
        places.append(at)
        begin = at + len(segment)
    if begin != len(printed):
        return None
    return places


def _same(one: str, other: str) -> bool:
    """Equal, but for times of day, and for digits of long fractions, in which processors differ."""
    def plain(line: str) -> str:
        timeless = re.sub(r"\b\d\d:\d\d:\d\d\b", "00:00:00", line)
        return re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number.group()):.5g}", timeless)
    return one == other or plain(one) == plain(other)


def agrees(expected: list[str], printed: list[str]) -> bool:
    return _places_of(segments_of(expected), printed, _same) is not None


def _alike(one: str, other: str) -> bool:
    """Whether two lines say the same of other figures: by their first word."""
    return one.split()[:1] == other.split()[:1]


def updated(expected: list[str], printed: list[str]) -> list[str] | None:
    """What the page should show: what is printed, with the same lines left out. None: that cannot be told."""
    if LEFT_OUT not in [line.strip() for line in expected]:
        return printed
    segments = segments_of(expected)
    places = _places_of(segments, printed, _alike)
    if places is None:
        return None
    lines: list[str] = []
    for index, (segment, at) in enumerate(zip(segments, places)):
        lines += [LEFT_OUT] if index else []
        lines += printed[at : at + len(segment)]
    return lines


def in_order(wanted: list[str], printed: list[str]) -> str | None:
    """The first of the lines that is not in what is printed, in this order; None: all are."""
    at = 0
    for line in wanted:
        if line.strip() in ("", LEFT_OUT):
            continue
        try:
            at = printed.index(line, at) + 1
        except ValueError:
            return line
    return None
