#!/usr/bin/env python3
"""Every option that a command's --help names stands in the command's own section of the page of the command line, or on the
page of the options that all jobs share.

    options_test.py gpumem docs/command-line.md docs/job-options.md

Input: the program and the pages. Output: exit code 0, or the options that are missing, by command.
"""

import re
import subprocess
import sys


def help_of(*command: str) -> str:
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(program: str) -> list[list[str]]:
    """All commands, and the commands of these."""
    def named(text: str) -> list[str]:
        """Below whatever headings; what is indented further goes on from the line above."""
        has = re.search(r"(?m)^Usage: .*(?<!-- )(?:SUB)?COMMAND$", text)
        return re.findall(r"(?m)^  ([a-z][a-z-]*)(?=  |$)", text) if has else []

    found = []
    for name in named(help_of(program)):
        below = named(help_of(program, name))
        found += [[name, each] for each in below] if below else [[name]]
    return found


def section_of(text: str, heading: str) -> str:
    """What stands below a heading, up to the next of its rank."""
    rank = heading.split(" ")[0]
    found = re.search(rf"(?ms)^{re.escape(heading)}$(.*?)(?=^#{{2,{len(rank)}}} |\Z)", text)
    return found.group(1) if found else ""


def missing_of(program: str, text: str, shared: str) -> list[str]:
    commands = commands_of(program)
    missing = [] if len(commands) > 15 and shared else [f"commands or job options: {len(commands)} commands were found"]
    for command in commands:
        name = " ".join(command)
        own = section_of(text, f"### gpumem {name}")
        if not own:
            missing.append(f"a section: gpumem {name}")
            continue
        for option in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", help_of(program, *command)))):
            if option in ("--help", "--json"):
                continue
            names = f"(?:{option}|{option.replace('--no-', '--')})(?![\\w-])"
            if not re.search(names, own) and not re.search(names, shared):
                missing.append(f"{name}: {option}")
    return missing


def main() -> int:
    program, page, shared = sys.argv[1:]
    with open(page) as file, open(shared) as of_jobs:
        missing = missing_of(program, file.read(), of_jobs.read())
    for each in missing:
        print(f"{page} lacks {each}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
