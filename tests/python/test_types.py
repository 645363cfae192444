"""The type hints: they are there, they say what is so, and a type checker agrees with them."""

import compileall
import dataclasses
import inspect
import os
import pathlib
import pydoc
import subprocess
import sys
import tempfile
import types
import typing
import unittest
import unittest.mock

import gpumem
from gpumem import _api, _gpumem
from support import RESNET50, SOURCE

PACKAGE = pathlib.Path(gpumem.__file__).parent


class Hints(unittest.TestCase):
    def test_files_compile(self):
        self.assertTrue((PACKAGE / "py.typed").exists())
        with tempfile.TemporaryDirectory() as folder:
            for source in PACKAGE.rglob("*.py"):
                copied = pathlib.Path(folder, source.relative_to(PACKAGE))
                copied.parent.mkdir(exist_ok=True)
                copied.write_bytes(source.read_bytes())
            self.assertTrue(compileall.compile_dir(folder, quiet=1))

    def test_every_function_is_hinted_and_described(self):
        for name in gpumem.__all__:
            item = getattr(gpumem, name)
            if inspect.isfunction(item) or inspect.isclass(item):
                self.assertTrue(item.__doc__, name)
                self.assertEqual(item.__module__, "gpumem")
            if inspect.isfunction(item):
                for parameter in inspect.signature(item).parameters.values():
                    self.assertIsNot(
                        parameter.annotation, parameter.empty, f"{name}({parameter.name})"
                    )

    def test_options_are_those_of_estimate(self):
        def options(function):
            parameters = inspect.signature(function).parameters.values()
            return {
                p.name: (p.annotation, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY
            }

        every = options(gpumem.estimate)
        fitted = options(gpumem.fit)
        self.assertEqual(fitted.pop("batch_size"), ("int | None", None))
        self.assertEqual(fitted.pop("find"), ("str | None", None))
        self.assertEqual(fitted, {name: every[name] for name in every if name != "batch_size"})
        of_module = options(gpumem.estimate_module)
        del of_module["batch_size"]
        without = ("batch_size", "input", "seq_length")
        self.assertEqual(of_module, {name: every[name] for name in every if name not in without})
        of_step = options(gpumem.estimate_step)
        del of_step["sequence_length"], of_step["batch_size"]
        self.assertEqual(of_step, {name: every[name] for name in of_step})
        listed = {name for name, *_ in _gpumem.OPTIONS}
        # read_summary() takes the one option that is about reading.
        self.assertEqual(set(every), listed - {"lenient"} | {"deadline_ms"})

    def test_options_have_the_types_and_defaults_of_the_list(self):
        hints = {
            "flag": "bool",
            "whole_number": "int",
            "fraction": "float",
            "text": "str",
            "choice": "str",
            "switch_or_choice": "bool | str",
            "name_or_path": "_Path",
            "dimensions": "str | Sequence[int]",
        }
        parameters = inspect.signature(gpumem.estimate).parameters
        for name, kind, usual, choices in _gpumem.OPTIONS:
            self.assertEqual(bool(choices), kind in ("choice", "switch_or_choice"), name)
            if name == "lenient":
                continue
            batch = name == "batch_size"  # that of a module's example inputs where it is not given
            hint = hints[kind] + (" | None" if usual is None or batch else "")
            self.assertEqual(parameters[name].annotation, hint, name)
            self.assertEqual(parameters[name].default, None if batch else usual, name)

    def test_every_option_arrives_in_the_job(self):
        for name, *_ in _gpumem.OPTIONS:
            if name == "lenient":
                continue
            value, expected = other_value(name)
            given = {"batch_size": 2, name: value}
            jobs = [job_of("estimate", lambda: gpumem.estimate(RESNET50, **given))]
            if name != "batch_size":
                jobs.append(job_of("fit", lambda: gpumem.fit(RESNET50, **{name: value})))
            if name not in ("input", "seq_length"):
                jobs.append(job_of("estimate", lambda: estimate_a_module(**given)))
            for words in jobs:
                job = _gpumem.ask("job", words).fields()
                self.assertEqual(job[name], expected, name)

    def test_fields_hold_what_their_hints_say(self):
        made = [
            gpumem.estimate(RESNET50, batch_size=2, estimator=estimator.name)
            for estimator in gpumem.estimators()
        ]
        fit = gpumem.fit(RESNET50)
        for value in (
            *made,
            fit,
            *gpumem.gpus(),
            *gpumem.estimators(),
            made[0].peak,
            *made[-1].bins,
        ):
            hints = typing.get_type_hints(type(value), vars(_api))
            for field in dataclasses.fields(value):
                self.assertTrue(
                    holds(getattr(value, field.name), hints[field.name]),
                    f"{type(value).__name__}.{field.name}: {getattr(value, field.name)!r}",
                )

    def test_help_reads_well(self):
        text = pydoc.plain(pydoc.render_doc(gpumem))
        for words in (
            "Units: sizes are bytes",
            "Raises UsageError",
            "estimate_module(",
            "what nvidia-smi shows",
        ):
            self.assertIn(words, text)


def other_value(name):
    """A value other than the option's default, and what the job then has."""
    kind, usual, choices = next(rest for listed, *rest in _gpumem.OPTIONS if listed == name)
    if kind == "dimensions":
        return (3, 5, 7), [3, 5, 7]
    if kind == "choice":
        value = choices[0] if choices[-1] == usual else choices[-1].replace(":N", ":4")
    else:
        others = {"flag": not usual, "switch_or_choice": not usual, "whole_number": 3, "fraction": 0.25}
        value = others.get(kind, "other")
    return value, value


def job_of(question, call):
    """The words of the job with which `call` comes to this question, which is not asked."""
    asked = _gpumem.ask

    class Reached(Exception):
        pass

    def ask(name, words, summary=None):
        if name != question:
            return asked(name, words, summary)
        raise Reached(words)

    with unittest.mock.patch.object(_gpumem, "ask", ask):
        try:
            call()
        except Reached as reached:
            return reached.args[0]
    raise AssertionError(f"{question} is not asked")


def estimate_a_module(**options):
    """gpumem.estimate_module() of a module that is exported already."""
    summary = gpumem.read_summary(RESNET50)
    tensor = types.SimpleNamespace(dtype="float32", shape=(2, 3, 224, 224))
    with unittest.mock.patch.object(_api, "export_module", return_value=summary):
        return gpumem.estimate_module(None, [tensor], **options)


def holds(value, hint):
    if value is None:
        return type(None) in typing.get_args(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return isinstance(value, tuple) and all(holds(item, arguments[0]) for item in value)
    if origin is dict:
        return all(holds(k, arguments[0]) and holds(v, arguments[1]) for k, v in value.items())
    if arguments:  # A union.
        return any(holds(value, argument) for argument in arguments)
    if hint is float:
        return isinstance(value, (int, float))
    return type(value) is hint


class TypeChecker(unittest.TestCase):
    def check(self, *files):
        try:
            import mypy  # noqa: F401
        except ImportError:
            if os.environ.get("GPUMEM_TESTS_MUST_RUN"):
                self.fail("mypy is not installed, and every test must run")
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            config = SOURCE / "tests" / "python" / "mypy.ini"
            command = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", cache]
            return subprocess.run([*command, *files], capture_output=True, text=True)

    def test_package_and_examples(self):
        examples = sorted((SOURCE / "examples" / "python").glob("*.py"))
        done = self.check(
            *(PACKAGE / name for name in ("__init__.py", "_advise.py", "_answers.py", "_api.py", "_arguments.py", "_errors.py", "_gpumem.py",
                                      "_machine.py", "_plan.py", "_posttrain.py", "_serve.py")),
            *sorted((PACKAGE / "record").glob("*.py")),
            *examples,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_wrong_use_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "wrong.py")
            wrong.write_text("import gpumem\n\ngpumem.estimate('a', batch_size='2').fitz\n")
            done = self.check(wrong)
        self.assertIn("[arg-type]", done.stdout)
        self.assertIn("[attr-defined]", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
