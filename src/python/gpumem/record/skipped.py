"""Functions of a script that do not run: set-up that needs a GPU's results and not its memory (sample images, evaluation).

Input: names, of a function (validate) or of a class and its method (Trainer.evaluate). While skipping() lasts, the script and
the modules that it imports are compiled with these functions empty: they return None.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import os
import pathlib
import runpy
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import record_error
from .places import is_users
from .pretended_cuda import Replacements
from .steps import Stop


_MOST_FILES = 20_000  # Of a program's folder that are looked at: data may lie beside it.


class _Emptied(ast.NodeTransformer):
    """Empties functions of these names; found: those that it met."""

    def __init__(self, names: Sequence[str], found: set[str]) -> None:
        self._names, self._found = names, found
        self._inside: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._within(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node)

    def _within(self, node: Any) -> Any:
        self._inside.append(node.name)
        node = self.generic_visit(node)
        self._inside.pop()
        return node

    def _function(self, node: Any) -> Any:
        whole = ".".join([*self._inside, node.name])
        wanted = [name for name in self._names if whole == name or whole.endswith(f".{name}")]
        if not wanted:
            return self._within(node)
        self._found.update(wanted)
        node.body = [ast.copy_location(ast.Pass(), node.body[0])]
        return node


def emptied(source: str | bytes, path: str, names: Sequence[str], found: set[str]) -> Any:
    """The code of a file."""
    tree = _Emptied(names, found).visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _files_of_program() -> Iterator[pathlib.Path]:
    """Python files beside the script and below it, that are of no installed package."""
    seen = 0
    for folder, folders, files in os.walk(sys.path[0]):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from (pathlib.Path(folder, each) for each in files if each.endswith(".py") and is_users(f"{folder}/{each}"))
        seen += len(files)
        if seen > _MOST_FILES:
            return


def _of_program(names: Sequence[str]) -> set[str]:
    """Bare names of functions that files beside the script define: what an installed package calls so is another function."""
    wanted = {name: f"def {name}(".encode() for name in names if "." not in name}
    own: set[str] = set()
    for path in _files_of_program() if wanted else ():
        with contextlib.suppress(OSError):
            text = path.read_bytes()
            own.update(name for name, definition in wanted.items() if definition in text)
    return own


@contextlib.contextmanager
def skipping(names: Sequence[str]) -> Iterator[None]:
    """Raises RecordError at the end of the recorded steps, if a name was no function's."""
    if not names:
        yield
        return
    found: set[str] = set()
    own = _of_program(names)
    last = [name.rpartition(".")[2].encode() for name in names]
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def code_of(this: Any, fullname: str) -> Any:
        path = this.get_filename(fullname)
        source = pathlib.Path(path).read_bytes()
        if not any(each in source for each in last):
            return get_code(this, fullname)
        return emptied(source, path, [each for each in names if each not in own or is_users(path)], found)

    def compile_script(source: Any, path: str, *_mode: Any, **_options: Any) -> Any:
        return emptied(source, path, names, found)

    with Replacements() as replaced:
        replaced.set(loader, "get_code", code_of)
        replaced.set(runpy, "compile", compile_script)
        try:
            yield
        except Stop:
            _check_found(names, found)
            raise
    _check_found(names, found)


def _check_found(names: Sequence[str], found: set[str]) -> None:
    missing = [name for name in names if name not in found]
    if missing:
        raise record_error(f"the script has no function {missing[0]}, which --skip names", "give its name as in the source")
