"""PyTorch's CUDA hooks for a GPU that is not there.

Newer releases of PyTorch ask these hooks whether there is an accelerator before autograd sends work to one
(at::getAccelerator, which calls isBuilt or hasCUDA). In a build for CPUs they are an object whose functions say no, or
throw. Here it gets a copy of its table of virtual functions in which these two and hasPrimaryContext say yes.

Their places depend on the release (ATen/detail/AcceleratorHooksInterface.h, CUDAHooksInterface.h). isBuilt, where it
exists, is the first function after the two destructors, before isAvailable and hasPrimaryContext. hasCUDA is the first that
CUDAHooksInterface adds to its base, and begins the longest run of functions that return false and do nothing else (hasCUDA,
hasCUDART, hasMAGMA, hasCuDNN, ...). The machine code of each is looked at, so nothing is called and nothing is guessed: where
there is no such run, the build is refused.
"""

from __future__ import annotations

import ctypes
import pathlib
import platform
from collections.abc import Iterator
from contextlib import contextmanager

from .constant_function import one_and_zero
from .errors import record_error
from .guard import loaded_library, mapped_words

_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_FUNCTIONS = 80  # More than the table has.
_BEFORE = 2
_LEAST_RUN = 5
_FIRST = 2  # Behind the destructors.
_WORD = ctypes.sizeof(ctypes.c_void_p)
#: `return false`, after an optional landing pad for indirect branches.
_RETURNS_FALSE = {
    "x86_64": (bytes.fromhex("f30f1efa"), bytes.fromhex("31c0c3")),
    "aarch64": (bytes.fromhex("5f2403d5"), bytes.fromhex("00008052c0035fd6")),
}

_keep: list[object] = []


def returns_false(code: bytes, machine: str) -> bool:
    """A function whose machine code begins so does nothing but return false."""
    pad, body = _RETURNS_FALSE[machine]
    return code.removeprefix(pad).startswith(body)


def first_of_longest_run(flags: list[bool]) -> int | None:
    """Where the longest run of True begins, if it is long enough and the only one of its length."""
    best, length, twice, start = 0, 0, False, 0
    for place, flag in enumerate([*flags, False]):
        if flag:
            continue
        run = place - start
        if run > length:
            best, length, twice = start, run, False
        elif run == length:
            twice = True
        start = place + 1
    return best if length >= _LEAST_RUN and not twice else None


def _is_code(address: int) -> bool:
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split(maxsplit=2)[:2]
        first, last = (int(part, 16) for part in span.split("-"))
        if first <= address and address + 16 <= last:
            return "x" in rights
    return False


def places_of_answers(flags: list[bool]) -> list[int]:
    """The places of isBuilt, hasPrimaryContext and hasCUDA, by which of the functions return false; empty: it is not known."""
    has_cuda = first_of_longest_run(flags)
    if has_cuda is None:
        return []
    if all(flags[_FIRST : _FIRST + 2]):  # isBuilt, isAvailable
        return [_FIRST, _FIRST + 2, has_cuda]
    return [_FIRST, has_cuda]


@contextmanager
def pretended_accelerator() -> Iterator[None]:
    """While it lasts, PyTorch's accelerator is CUDA."""
    get_hooks = getattr(loaded_library("libtorch_cpu.so"), _HOOKS)
    get_hooks.restype = ctypes.c_void_p
    hooks = ctypes.cast(get_hooks(), ctypes.POINTER(ctypes.c_void_p))
    before = hooks[0] or 0
    start = before - _BEFORE * _WORD
    count = mapped_words(start, _BEFORE + _FUNCTIONS)
    words = [value or 0 for value in (ctypes.c_void_p * count).from_address(start)]
    code = []
    for address in words[_BEFORE:]:
        if not _is_code(address):
            break  # The end of the table.
        code.append(ctypes.string_at(address, 16))
    places = places_of_answers([returns_false(each, platform.machine()) for each in code])
    if not places:
        raise record_error(
            "the CUDA hooks of this PyTorch are not laid out as gpumem.record knows them",
            "record with another release of PyTorch (2.1 to 2.6 do without), in an environment of its own if need be",
        )
    table = (ctypes.c_void_p * len(words))(*words)
    for place in places:
        table[_BEFORE + place] = one_and_zero()
    _keep.append(table)
    hooks[0] = ctypes.addressof(table) + _BEFORE * _WORD
    try:
        yield
    finally:
        hooks[0] = before
