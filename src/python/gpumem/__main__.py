"""gpumem's command line: python3 -m gpumem estimate vgg16.txt --batch 64

Input: the arguments. Output: this process becomes the program gpumem, which a wheel carries beside this file. A package of
a system has it in bin/ of the prefix that this file is installed under; otherwise PATH is asked.
"""

import os
import pathlib
import shutil
import sys


def _is_program(path: pathlib.Path) -> bool:
    """Whether it is a program, and not the script that a wheel installs under the same name, which runs this file."""
    if not (path.is_file() and os.access(path, os.X_OK)):
        return False
    with open(path, "rb") as file:
        return file.read(2) != b"#!"


def find_program() -> "pathlib.Path | None":
    folder = pathlib.Path(__file__).resolve().parent
    places = [folder / "bin" / "gpumem"]
    # PREFIX/lib/python3.11/site-packages/gpumem, or PREFIX/lib/python3/dist-packages/gpumem.
    if len(folder.parents) > 3 and folder.parents[2].name.startswith("lib"):
        places.append(folder.parents[3] / "bin" / "gpumem")
    named = shutil.which("gpumem")
    if named is not None:
        places.append(pathlib.Path(named))
    return next((place for place in places if _is_program(place)), None)


def main() -> int:
    program = find_program()
    if program is None:
        print(
            "gpumem: error: the program gpumem is not installed with this Python package, nor in PATH; "
            "install gpumem's wheel, or its command line",
            file=sys.stderr,
        )
        return 3
    os.execv(program, ["gpumem", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
