"""Runs a training script as it is, in a process of its own for each size, and stops it after two training steps.

The sizes are given to the script in the place of an argument's value: --batch-arg batch-size replaces the value of
--batch-size in ARGS (also --batch-size=32, and batch-size=32 as Hydra has it).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import multiprocessing
import os
import pathlib
import pickle
import re
import runpy
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _capability, _need_torch, _points
from .errors import RecordError, record_error
from .places import line_of

if TYPE_CHECKING:
    from .run import Run

_SLOT = Union[str, tuple[str, int]]  # An argument, or what comes before an axis' value and which axis.


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m gpumem.record",
        description="Records what a PyTorch training script allocates, without a GPU and without changes to the script. "
        "The script runs at two sizes, and at a third one as a check. Each run ends after two training steps.",
        epilog="Then: gpumem estimate run.json.gz --batch 64 --gpu a100-40gb",
    )
    parser.add_argument("--batch-arg", metavar="NAME", help="the script's argument that is the batch size: batch-size")
    parser.add_argument("--sequence-arg", metavar="NAME", help="the script's argument that is the sequence length")
    parser.add_argument("-o", "--output", metavar="PATH", default="run.json.gz", help="the recording (%(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="optimizer steps until the script is stopped (%(default)s)")
    parser.add_argument("--capability", metavar="X.Y", default="8.0", help="compute capability to pretend (%(default)s)")
    parser.add_argument("--world-size", type=int, default=1, metavar="N", help="pretend that torchrun started N processes")
    parser.add_argument("--rank", type=int, default=0, metavar="R", help="with --world-size: be rank R (%(default)s)")
    parser.add_argument(
        "--torch-version",
        metavar="X.Y",
        help="the PyTorch that trains, if it is older than the one that records (1.7 or later): what it kept for backward",
    )
    parser.add_argument(
        "--tell-torch-version",
        action="store_true",
        help="with --torch-version: the script reads it as torch.__version__ too, and goes the ways that it went then",
    )
    parser.add_argument(
        "--assume",
        metavar="WHAT=VALUE",
        action="append",
        default=[],
        help="a value that only a GPU would have, by kind or line: any=True, nonzero=0.25, train.py:120=128, objects=93",
    )
    parser.add_argument(
        "--skip",
        metavar="FUNCTION",
        action="append",
        default=[],
        help="do not run this function (it returns None), by its name, or by class and name: validate, Trainer.evaluate",
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="SCRIPT is a module's name, as in python3 -m scripts.train or torchrun -m"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments")
    return parser


# --------------------------------------------------------------------------- the script's arguments


def _split(arguments: Sequence[str], name: str, axis: int) -> tuple[list[_SLOT], int]:
    """The arguments with a slot in place of the value of NAME, and that value."""
    bare = name.lstrip("-")
    flags = (f"--{bare}", f"-{bare}", bare)
    for place, argument in enumerate(arguments):
        if not isinstance(argument, str):
            continue
        flag, equals, value = argument.partition("=")
        if flag not in flags or (flag == bare and not equals):
            continue
        after = place + 1
        if not equals:
            value = arguments[after] if after < len(arguments) and isinstance(arguments[after], str) else ""
            before, rest = [*arguments[:after]], arguments[after + 1 :]
        else:
            before, rest = [*arguments[:place]], arguments[after:]
        if not value.isdigit():
            raise record_error(f"the script's argument {argument} has no whole number", f"give {flag} a size")
        slot = (f"{flag}=" if equals else "", axis)
        return [*before, slot, *rest], int(value)
    given = ", ".join(each.partition("=")[0] for each in arguments if isinstance(each, str) and each.startswith("-"))
    remedy = f"give it after the script: SCRIPT --{bare} 32" + (f", or name one of these: {given}" if given else "")
    raise record_error(f"the script's arguments have no --{bare}", remedy, "")


def _slots(options: argparse.Namespace) -> tuple[list[_SLOT], list[int]]:
    """The script's arguments, with slots for the axes, and the axes' values as given."""
    arguments: list[Any] = list(options.arguments)
    values = []
    for axis, name in enumerate((options.batch_arg, options.sequence_arg)):
        if name is not None:
            arguments, value = _split(arguments, name, axis)
            values.append(value)
    return arguments, values


def _filled(slots: Sequence[_SLOT], point: tuple[int, ...]) -> list[str]:
    return [slot if isinstance(slot, str) else f"{slot[0]}{point[slot[1]]}" for slot in slots]


# ------------------------------------------------------------------------------- the script's age

_REQUIREMENTS = ("requirements*.txt", "requirements/*.txt", "environment*.y*ml", "Dockerfile", "docker/Dockerfile")
_PIN = re.compile(
    r"^[\s-]*(torch|pytorch|mmcv-full|mmcv)\s*(?:>=?[\s\d.]*,)?\s*(={1,2}|~=|<=|<)\s*(\d{1,3})(?:\.(\d{1,3}))?", re.MULTILINE
)
_IMAGE = re.compile(r"(?:ARG\s+PYTORCH=|pytorch/pytorch:)\"?1\.(\d{1,3})")
_READ = 1 << 16  # Bytes of a file of requirements.


def _older_torch(text: str) -> tuple[str, str] | None:
    """What requirements ask for that no PyTorch 2 is, and the version of PyTorch that it is; empty: one before 2."""
    image = _IMAGE.search(text)
    if image is not None:
        return f"PyTorch 1.{image[1]}", f"1.{max(int(image[1]), 7)}"
    for name, relation, major, minor in _PIN.findall(text):
        before = relation == "<" and int(major) == 2 and not int(minor or 0)
        if int(major) != 1 and not before:
            continue
        exact = minor and relation != "<" and not name.startswith("mmcv")
        return f"{name}{relation}{major}" + (f".{minor}" if minor else ""), f"1.{max(int(minor), 7)}" if exact else ""
    return None


def _asks_for_older(options: argparse.Namespace) -> tuple[pathlib.Path, str, str] | None:
    """The program's requirements, next to it or in the folder above, if they are of PyTorch 1; what they ask for; the version to
    give, or nothing."""
    folder = pathlib.Path.cwd() if options.module else pathlib.Path(options.script).resolve().parent
    for path in (path for place in (folder, folder.parent) for name in _REQUIREMENTS for path in sorted(place.glob(name))):
        try:
            with path.open("rb") as file:
                found = _older_torch(file.read(_READ).decode(errors="replace"))
        except OSError:
            continue
        if found is not None:
            return path, *found
    return None


def _note_age(options: argparse.Namespace, runs: Sequence[Run]) -> str:
    """Notes it in the recordings too, as estimates of them are read where the program is not. What is to be printed, or nothing."""
    from .run import Warning

    older = _asks_for_older(options) if options.torch_version is None else None
    if older is None:
        return ""
    path, asked, version = older
    for run in runs:
        text = f"{path.name} asks for {asked}, whose PyTorch keeps more than PyTorch {run.torch}, which recorded it"
        run.warnings[Warning("rule", text, "")] = 1
    return f"note: {path} asks for {asked}: --torch-version {version or 'X.Y'} records what that PyTorch keeps"


# ------------------------------------------------------------------------------------------ a run


def _run_script(script: str, arguments: list[str], options: argparse.Namespace) -> Run:
    from .older_torch import pretended_torch
    from .recorder import invented_lines, recording
    from .skipped import skipping
    from .steps import Stop
    from .world import pretended_world

    sys.argv = [script, *arguments]
    sys.path[0] = os.getcwd() if options.module else str(pathlib.Path(script).resolve().parent)
    older: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if options.torch_version is not None:
        older = pretended_torch(options.torch_version, options.tell_torch_version)
    with older, pretended_world(options.world_size, options.rank), recording(
        _capability_of(options.capability), options.steps
    ) as recorder:
        try:
            with skipping(options.skip):
                if options.module:
                    runpy.run_module(script, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(script, run_name="__main__")
            recorder.say_steps(options.steps)
        except Stop:
            pass
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                told = invented_lines(recorder.run)
                remedy = f"see what it printed; {told}" if told else "see what it printed"
                raise record_error(_how_it_left(leaving.code), remedy) from leaving
            recorder.say_steps(options.steps)
    return recorder.run


def _capability_of(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    if not major.isdigit() or not (minor or "0").isdigit():
        raise record_error(f"{text!r} is no compute capability", "give it as 8.0 (A100), 9.0 (H100) or 7.0 (V100)")
    return _capability((int(major), int(minor or 0)))


def _how_it_left(code: object) -> str:
    """sys.exit() takes a number or what it prints."""
    return f"the script ends with exit code {code}" if isinstance(code, int) else f"the script ends: {code}"


def _error_text(error: BaseException) -> str:
    import traceback

    if isinstance(error, RecordError):
        text, line = str(error), line_of(error)  # The backward's own thread runs no line of the program.
        return text if not line or line in text else f"{line}: {text}"
    traceback.print_exception(type(error), error, error.__traceback__)
    notes = "".join(f"; {note.removeprefix('gpumem: ')}" for note in getattr(error, "__notes__", ()))
    return f"{line_of(error) or 'the script'}: {type(error).__name__}: {error}; see the traceback above{notes}"


def _in_process_of_its_own(script: str, arguments: list[str], options: argparse.Namespace, quiet: bool) -> Run:
    """The run of a forked process, which has imported PyTorch already and nothing else. A program that itself has nothing on the
    GPU, and starts processes, runs once more with the first of them in its own."""
    from .loaders import first_process_here
    from .run import NOT_RECORDED, Allocate

    run = _forked(script, arguments, options, quiet)
    starts = any(each.text.startswith(NOT_RECORDED) for each in run.warnings)
    if not starts or any(isinstance(event, Allocate) for event in run.events):
        return run
    print("the program trains in processes that it starts: it runs again, as the first of them", file=sys.stderr, flush=True)
    with first_process_here():
        return _forked(script, arguments, options, quiet)


def _forked(script: str, arguments: list[str], options: argparse.Namespace, quiet: bool) -> Run:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        if quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            answer: object = _run_script(script, arguments, options)
        except BaseException as error:  # noqa: B902: whatever the script raises is told.
            answer = _error_text(error)
        for started in multiprocessing.active_children():  # They would go on without the program.
            started.terminate()
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe, pickle.HIGHEST_PROTOCOL)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if not content:
        raise record_error(f"the script's process died (status {status})", "run it by itself to see why")
    answer = pickle.loads(content)
    if isinstance(answer, str):
        raise RecordError(answer)
    return answer  # type: ignore[return-value]


def _check_script(options: argparse.Namespace) -> None:
    name = options.script
    if options.module:
        sys.path[0] = os.getcwd()
        try:
            found = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            raise record_error(f"there is no module {name} here", "run in the folder in which python3 -m finds it")
    elif not os.path.isfile(name):
        written = name.endswith(".py") or os.sep in name
        remedy = "give the path of a Python file" if written else "give the path of a Python file, or -m and a module's name"
        raise record_error(f"there is no script {name}", remedy)


def _record(options: argparse.Namespace) -> None:
    _need_torch()
    if options.sequence_arg is not None and options.batch_arg is None:
        raise record_error("--sequence-arg needs --batch-arg", "name both of the script's arguments")
    if options.tell_torch_version and options.torch_version is None:
        raise record_error("--tell-torch-version needs --torch-version", "give the version that the script is told of")
    from .assumed import parsed, said

    said.say(dict(parsed(each) for each in options.assume))
    _check_script(options)
    slots, values = _slots(options)
    points: list[tuple[int, ...]] = [()]
    if values:
        points = _points(values[0], values[1] if len(values) > 1 else None, scale=True)
    from . import recorder, writer

    recorder.import_what_each_run_needs()  # Before the processes part.

    runs = []
    for place, point in enumerate(points):
        if len(points) > 1:
            at = "x".join(map(str, point))
            print(f"run {place + 1} of {len(points)}, at {at}", file=sys.stderr, flush=True)
        runs.append(_in_process_of_its_own(options.script, _filled(slots, point), options, quiet=place > 0))
    note = _note_age(options, runs)
    title = " ".join([os.path.basename(options.script), *options.arguments])
    try:
        text = writer.recording_text(runs, points, title)
    except RecordError as error:
        if len(runs) == 1:
            raise
        runs, points = runs[:1], points[:1]
        text = writer.recording_text(runs, points, title)
        print(f"recorded at {points[0][0]} alone: {error}", file=sys.stderr)
    writer.write_recording(options.output, text)
    _say_what_was_recorded(options.output, runs, points)
    if note:
        print(note, file=sys.stderr)


def _say_what_was_recorded(path: str, runs: list[Run], points: list[tuple[int, ...]]) -> None:
    sizes = ", ".join("x".join(map(str, point)) for point in points if point)
    allocations = len(runs[0].categories)
    at = f", recorded at {sizes}" if sizes else ""
    torch = runs[0].settings.get("torch", runs[0].torch)
    print(f"{path}: {len(runs[0].calls)} calls, {allocations} allocations, a training with PyTorch {torch}{at}")
    for warning, count in runs[0].warnings.items():
        place = f"{warning.where}: " if warning.where else ""
        print(f"warning: {place}{warning.text} ({count} times)", file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        _record(options)
    except RecordError as error:
        print(f"gpumem: error: {error}", file=sys.stderr)
        return error.exit_code
    return 0
