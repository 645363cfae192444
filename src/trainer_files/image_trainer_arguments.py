"""Writes image_trainer_arguments.inc: the names of all arguments of programs that train models of images and videos.

    python3 image_trainer_arguments.py SD_SCRIPTS MUSUBI_TUNER FINETRAINERS DIFFUSERS SIMPLETUNER ONETRAINER \
        DIFFSYNTH > image_trainer_arguments.inc

Each is a checkout of the program's repository, or its bare git directory. The readers know families of arguments that
change no memory by how their names begin; a name that none of a program's arguments has is still reported as unknown.
"""

import re
import subprocess
import sys
import textwrap

ARGUMENT = re.compile(r"""add_argument\(\s*(?:"-\w+",\s*)?["']--([A-Za-z0-9_-]+)["'](?:,\s*["']--([A-Za-z0-9_-]+)["'])?""")
# How programs write theirs that have no parser of arguments alone: a registry of fields, a list of a config's.
REGISTERED = re.compile(
    r"""^ +name=["']([A-Za-z0-9_]+)["']|["']--([A-Za-z0-9_-]+)["']|getattr\((?:self\.)?config,\s*["']([a-z0-9_]+)["']""",
    re.MULTILINE,
)
APPENDED = re.compile(r"""data\.append\(\(["']([A-Za-z0-9_]+)["']()""")
# Which files of each repository, in the order of the arguments.
PROGRAMS = {
    "kSdScriptsArguments": [r"[^/]*\.py|library/.*\.py", r"src/musubi_tuner/(?!gui).*\.py"],
    "kFinetrainersArguments": [r"train\.py|finetrainers/.*\.py|examples/.*\.py"],
    "kDiffusersArguments": [r"examples/.*train.*\.py"],
    "kSimpleTunerArguments": [r"simpletuner/(helpers|.*/field_registry/sections)/.*\.py"],
    "kOneTrainerArguments": [r"modules/util/config/TrainConfig\.py"],
    "kDiffSynthArguments": [r"diffsynth/diffusion/.*\.py|examples/.*/model_training/.*\.py"],
}
WRITTEN = {"kSimpleTunerArguments": REGISTERED, "kOneTrainerArguments": APPENDED}


def git(repository, *words):
    return subprocess.run(["git", "-C", repository, *words], capture_output=True, check=False).stdout.decode("utf-8", "replace")


def names_of(repository, files, written):
    names = set()
    for path in git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
        if re.fullmatch(files, path):
            for found in written.finditer(git(repository, "show", f"HEAD:{path}")):
                names |= {name.replace("-", "_") for name in found.groups() if name}
    return names


def main():
    repositories = iter(sys.argv[1:])
    print("// Names of arguments, as their programs define them. Made by image_trainer_arguments.py.")
    for constant, parts in PROGRAMS.items():
        names, commits = set(), []
        for files in parts:
            repository = next(repositories)
            names |= names_of(repository, files, WRITTEN.get(constant, ARGUMENT))
            commits.append(git(repository, "rev-parse", "--short=10", "HEAD").strip())
        print(f"// At {' and '.join(commits)}.\ninline constexpr std::string_view {constant} =")
        lines = textwrap.wrap(" ".join(sorted(names)), 110)
        print("\n".join(f'    "{line} "' for line in lines) + ";")


if __name__ == "__main__":
    main()
