"""What the package asks of the library, through its C API (gpumem.h): questions in words, answers in JSON and text.

Input: words. Output: plain Python values, and one exception for every error. The GIL is released while the library works. The
library is libgpumem_c.so beside this file or, where a system's package has it, the one that the system finds.
"""

from __future__ import annotations

import ctypes
import json
import pathlib
import threading
import time
from collections.abc import Iterable
from typing import Any, Union

from ._errors import LibraryMissingError, error_of

_SONAME = "libgpumem_c.so.0"
_OK, _OUT_OF_MEMORY, _INTERNAL_ERROR = 0, 10, 11

#: A word of a question; bytes are a path's.
Word = Union[str, bytes]


class _ReadOptions(ctypes.Structure):
    """gpumem_read_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("deadline_ms", ctypes.c_int64),
        ("largest_bytes", ctypes.c_int64),
        ("lenient", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


def _library_path() -> str:
    beside = pathlib.Path(__file__).with_name("libgpumem_c.so")
    return str(beside) if beside.exists() else _SONAME


_POINTER = ctypes.c_void_p
_OUT = ctypes.POINTER(_POINTER)
_WORDS = ctypes.POINTER(ctypes.c_char_p)
_MESSAGE = (ctypes.c_char_p, ctypes.c_size_t)
_WORKING: dict[str, tuple[Any, ...]] = {
    "gpumem_summary_from_file": (ctypes.c_char_p, ctypes.POINTER(_ReadOptions), _OUT, *_MESSAGE),
    "gpumem_summary_from_memory": (
        ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_ReadOptions), _OUT, *_MESSAGE,
    ),
    "gpumem_ask": (ctypes.c_char_p, _POINTER, _WORDS, _WORDS, ctypes.c_size_t, _OUT, *_MESSAGE),
}  # fmt: skip
#: These are quick, and keep the GIL: no other call of the thread comes between a failure and its words.
_QUICK: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "gpumem_version": (ctypes.c_char_p, ()),
    "gpumem_last_failure": (ctypes.c_char_p, ()),
    "gpumem_after_fork": (None, ()),
    "gpumem_summary_free": (None, (_POINTER,)),
    "gpumem_answer_free": (None, (_POINTER,)),
    "gpumem_answer_text": (ctypes.c_char_p, (_POINTER, ctypes.c_char_p)),
    "gpumem_answer_part": (_POINTER, (_POINTER, ctypes.c_char_p)),
}


def _load() -> tuple[Any, Any]:
    """The library's functions: those that work, and those that are quick."""
    path = _library_path()
    try:
        working, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
    except OSError as error:
        raise LibraryMissingError(str(error)) from error
    try:
        for name, arguments in _WORKING.items():
            function = getattr(working, name)
            function.argtypes, function.restype = arguments, ctypes.c_int32
        for name, (result, arguments) in _QUICK.items():
            function = getattr(quick, name)
            function.argtypes, function.restype = arguments, result
    except AttributeError as error:
        raise LibraryMissingError(f"{path} is older than this package: {error}") from error
    return working, quick


_working, _quick = _load()


class _Running:
    """Calls that are under way. The library must not be used once the process ends: close() waits for the calls of daemon
    threads before that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._closer: int | None = None  # the thread that called close()

    def __enter__(self) -> None:
        with self._lock:
            if self._closer is None:
                self._count += 1
                return
        self._turn_away()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1

    def close(self) -> None:
        """No call begins any more; waits for those that have begun, though not for ever."""
        with self._lock:
            self._closer = threading.get_ident()
        until = time.monotonic() + 10
        while self._count > 0 and time.monotonic() < until:
            time.sleep(0.001)

    def _turn_away(self) -> None:
        """The thread that ends the interpreter is told. The others are daemon threads, which end with the process: until
        then they stop."""
        if self._closer == threading.get_ident():
            raise RuntimeError("gpumem cannot be called any more: the interpreter is shutting down")
        while True:
            time.sleep(3600)


_running = _Running()


def close() -> None:
    """Before the interpreter ends."""
    _running.close()


def forget() -> None:
    """In a child process, which has none of the threads that were under way."""
    global _running
    _running = _Running()
    _quick.gpumem_after_fork()


def _raise(status: int) -> None:
    failure = json.loads(_quick.gpumem_last_failure())
    text = failure.get("text", "there is not enough memory for the answer")
    if status == _OUT_OF_MEMORY or not failure:
        raise MemoryError(text)
    if status == _INTERNAL_ERROR:
        raise RuntimeError(text)
    place = (failure.get(name) for name in ("file", "line", "element"))
    raise error_of(failure["exit_code"], text, failure["code"], failure["message"], *place)


class Summary:
    """A model as its summary tells it; made by read_summary(). Immutable: threads may share it."""

    _handle: int | None = None
    _told: dict[str, Any] | None = None
    _of_class: str = ""  # of the module that it was exported from

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a gpumem.Summary is made by read_summary()")

    def __del__(self, free: Any = _quick.gpumem_summary_free) -> None:
        if self._handle is not None:
            free(self._handle)

    def __reduce__(self) -> str:
        raise TypeError("a gpumem.Summary cannot be pickled; pickle the text that it was read from")

    def _tells(self, name: str) -> Any:
        if self._told is None:
            self._told = ask("summary", (), self).fields()
        return self._told[name]

    @property
    def file(self) -> str | None:
        """The path that it was read from, or None."""
        return self._tells("file")  # type: ignore[no-any-return]

    @property
    def format(self) -> str:
        """The format that it is in: 'torchsummary', 'graph_json', ..."""
        return self._tells("format")  # type: ignore[no-any-return]

    @property
    def layers(self) -> int:
        """How many layers are computed."""
        return self._tells("layers")  # type: ignore[no-any-return]

    @property
    def unknown_layers(self) -> int:
        """Those of them that gpumem does not know; 0 unless read with lenient=True."""
        return self._tells("unknown_layers")  # type: ignore[no-any-return]

    @property
    def parameters(self) -> int:
        """Elements of all parameters, tied ones counted once."""
        return self._tells("parameters")  # type: ignore[no-any-return]

    @property
    def trainable_parameters(self) -> int:
        """Elements of those that get gradients."""
        return self._tells("trainable_parameters")  # type: ignore[no-any-return]

    @property
    def printed_batch_size(self) -> int | None:
        """The batch size that it was printed at, or None."""
        return self._tells("printed_batch_size")  # type: ignore[no-any-return]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd about the text, one line each, such as a printed total that is not the sum."""
        return tuple(self._tells("warnings"))

    def __repr__(self) -> str:
        return f"<gpumem.Summary {ask('summary', (), self).text()}>"


class Report:
    """What the command line would print of an answer. Each text is made when it is asked for; once it was pickled, it is as
    it was."""

    def __init__(self, handle: int | None, owner: Report | None = None, made: dict[str, str] | None = None) -> None:
        self._handle = handle
        self._owner = owner  # of a part
        self._made = {} if made is None else made
        self.about = ""  # what the text is about, where it does not say so itself

    def __del__(self, free: Any = _quick.gpumem_answer_free) -> None:
        if self._owner is None and self._handle is not None:
            free(self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return Report, (None, None, {"json": self.json(), "text": self.text()})

    def _form(self, form: str) -> str:
        if self._handle is None:
            return self._made[form]
        text: bytes | None = _quick.gpumem_answer_text(self._handle, form.encode())
        if text is None:
            raise MemoryError("there is not enough memory for the answer")
        return text.decode("utf-8", "replace")

    def json(self) -> str:
        return self._form("json")

    def text(self) -> str:
        return f"{self.about}: {self._form('text')}" if self.about else self._form("text")

    def fields(self) -> Any:
        """Its JSON as Python values."""
        return json.loads(self._form("json"))

    def figures(self) -> Any:
        """The figures alone, of an estimate, a fit or a server."""
        return json.loads(self._form("figures"))

    def part(self, name: str) -> Report | None:
        handle = _quick.gpumem_answer_part(self._handle, name.encode())
        return None if handle is None else Report(handle, self)


def _bytes_of(word: Word) -> bytes:
    """As the library takes it: a NUL, which would end it, makes a name that does not exist."""
    encoded = word if isinstance(word, bytes) else word.encode("utf-8", "replace")
    return encoded.replace(b"\0", "\ufffd".encode())


def ask(question: str, words: Iterable[tuple[str, Word]], summary: Summary | None = None) -> Report:
    """The answer to a question of gpumem_ask()."""
    given = list(words)
    array = ctypes.c_char_p * len(given)
    names = array(*(_bytes_of(name) for name, _ in given))
    values = array(*(_bytes_of(value) for _, value in given))
    about = None if summary is None else summary._handle
    answer = _POINTER()
    with _running:
        status = _working.gpumem_ask(
            question.encode(), about, names, values, len(given), ctypes.byref(answer), None, 0
        )
        if status != _OK:
            _raise(status)
    assert answer.value is not None
    return Report(answer.value)


def _reading(lenient: bool, largest_bytes: int, deadline_ms: int) -> Any:
    options = _ReadOptions(ctypes.sizeof(_ReadOptions), deadline_ms, largest_bytes, lenient, 0)
    return ctypes.byref(options)


def _read(function: str, *arguments: Any) -> Summary:
    summary = _POINTER()
    with _running:
        status = getattr(_working, function)(*arguments, ctypes.byref(summary), None, 0)
        if status != _OK:
            _raise(status)
    assert summary.value is not None
    read = Summary.__new__(Summary)
    read._handle = summary.value
    return read


def read_file(path: bytes, lenient: bool, largest_bytes: int, deadline_ms: int) -> Summary:
    return _read("gpumem_summary_from_file", path, _reading(lenient, largest_bytes, deadline_ms))


def read_text(text: bytes, lenient: bool, deadline_ms: int) -> Summary:
    options = _reading(lenient, max(len(text), 1), deadline_ms)
    return _read("gpumem_summary_from_memory", text, len(text), options)


_options = ask("options", ()).fields()

VERSION: str = _quick.gpumem_version().decode()
#: Name, kind, default and choices of each option of a job.
OPTIONS: tuple[tuple[str, str, object, tuple[str, ...]], ...] = tuple(
    (row["name"], row["kind"], row["default"], tuple(row["choices"])) for row in _options["job"]
)
SERVING_OPTIONS: tuple[str, ...] = tuple(_options["serving"])
#: What the names of options are: NAMES["optimizers"].
NAMES: dict[str, tuple[str, ...]] = {name: tuple(names) for name, names in _options["names"].items()}
