"""A device guard for a GPU that is not there.

PyTorch asks a device guard which device is current and on which stream. A build for CPUs has none for CUDA, and so its
autograd engine starts no thread for the device and nn.Linear(..., device="cuda") fails. Its registry of guards,
c10::impl::device_guard_impl_registry, is an exported symbol of libc10. Here it gets a copy of the guard of the meta device,
which does nothing, with other answers to "which type of device", "which device" and "which stream".

The copy is made of the guard's table of virtual functions (Itanium C++ ABI). Its order is that of
c10/core/impl/DeviceGuardImplInterface.h and has not changed in these places from PyTorch 2.1 to 2.14:

    0 type   1 exchangeDevice   2 getDevice   3 setDevice   4 uncheckedSetDevice   5 getStream   6 getDefaultStream
    7 getStreamFromGlobalPool   8 getNewStream   9 exchangeStream   10 ... only copied

(before getNewStream came, in 2.3, 8 was exchangeStream and 9 destroyEvent, whose result nobody takes).

The functions are called before anything is changed: a table that answers otherwise is refused with an error.
"""

from __future__ import annotations

import ctypes
import pathlib
import platform
from collections.abc import Iterator
from contextlib import contextmanager

from .constant_function import one_and_zero
from .errors import RecordError, record_error

_CUDA, _META = 1, 14  # c10::DeviceType
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_TYPE, _EXCHANGE_DEVICE, _GET_DEVICE, _GET_STREAM = 0, 1, 2, 5
_ANSWERED = (_TYPE, _EXCHANGE_DEVICE, _GET_DEVICE, _GET_STREAM, 6, 7, 8, 9)
_FUNCTIONS = 40  # More than the table has; what follows it is copied and never called.
_BEFORE = 2  # The offset to the top and the type information, before the first function.
_WORD = ctypes.sizeof(ctypes.c_void_p)

_keep: list[object] = []  # What C++ points to, for as long as the process lives.


class _Stream(ctypes.Structure):
    """c10::Stream."""

    _fields_ = [("device_type", ctypes.c_int8), ("device_index", ctypes.c_int8), ("stream_id", ctypes.c_int64)]


def _unknown(what: str) -> RecordError:
    return record_error(
        f"the device guards of this PyTorch are not laid out as gpumem.record knows them ({what})",
        "record with another release of PyTorch (from 2.1 on, on Linux), in an environment of its own if need be",
    )


def loaded_library(name: str) -> ctypes.CDLL:
    """A library of PyTorch's, which is loaded already."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise _unknown(f"{platform.system()} on {platform.machine()}")
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if pathlib.PurePath(path).name.startswith(name):
            return ctypes.CDLL(path)
    raise _unknown(f"{name} is not loaded")


def mapped_words(address: int, most: int) -> int:
    """How many words from this address on lie in mapped memory, `most` at most."""
    end = address
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split(maxsplit=1)[0].split("-"))
        if first <= end < last and "r" in line.split(maxsplit=2)[1]:
            end = last
    return min(most, (end - address) // _WORD)


def _checked_table(guard: int) -> list[int]:
    """The functions of meta's guard, with what comes before them, if they are what they should be."""
    first = ctypes.cast(guard, ctypes.POINTER(ctypes.c_void_p))[0] or 0
    start = first - _BEFORE * _WORD
    words = mapped_words(start, _BEFORE + _FUNCTIONS)
    if words < _BEFORE + 20:
        raise _unknown("no table of functions")
    table = [value or 0 for value in (ctypes.c_void_p * words).from_address(start)]

    def ask(slot: int, result: type, *arguments: object) -> object:
        function = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *[ctypes.c_int16 for _ in arguments])
        return function(table[_BEFORE + slot])(guard, *arguments)

    if ask(_TYPE, ctypes.c_int8) != _META:
        raise _unknown("type() of the meta device")
    for slot in (_GET_DEVICE, _EXCHANGE_DEVICE):
        arguments = () if slot == _GET_DEVICE else (_META,)
        device = ask(slot, ctypes.c_int16, *arguments)
        if not isinstance(device, int) or device & 0xFF != _META:
            raise _unknown("getDevice() of the meta device")
    stream = ask(_GET_STREAM, _Stream, _META)
    if not isinstance(stream, _Stream) or stream.device_type != _META:
        raise _unknown("getStream() of the meta device")
    return table


def _new_guard(meta: int) -> int:
    """The address of a guard that says that it is CUDA's, of one device with one stream."""
    words = _checked_table(meta)
    table = (ctypes.c_void_p * len(words))(*words)
    for slot in _ANSWERED:
        table[_BEFORE + slot] = one_and_zero()
    guard = (ctypes.c_void_p * 4)(ctypes.addressof(table) + _BEFORE * _WORD)
    _keep.extend((table, guard))
    return ctypes.addressof(guard)


@contextmanager
def pretended_guard() -> Iterator[None]:
    """While it lasts, PyTorch's guard for CUDA is one of a device that does nothing."""
    registry = (ctypes.c_void_p * (_META + 1)).in_dll(loaded_library("libc10.so"), _REGISTRY)
    meta = registry[_META]
    if not meta:
        raise _unknown("no guard of the meta device")
    before = registry[_CUDA]
    registry[_CUDA] = _new_guard(meta)
    try:
        yield
    finally:
        registry[_CUDA] = before
