"""A function in machine code for the tables of virtual functions that guard.py and hooks.py make.

All that they have to answer is the same in a register: true, c10::DeviceType::CUDA (1), c10::Device{CUDA, 0}, and
c10::Stream{CUDA, 0, default}, whose second word is 0. ctypes cannot return the last one from Python; and this function needs
no lock of the interpreter, whichever thread calls it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform

from .errors import record_error

_CODE = {
    # endbr64; mov eax, 1; xor edx, edx; ret
    "x86_64": bytes.fromhex("f30f1efa b801000000 31d2 c3"),
    # bti c; mov x0, #1; mov x1, #0; ret
    "aarch64": bytes.fromhex("5f2403d5 200080d2 010080d2 c0035fd6"),
}


@functools.cache
def one_and_zero() -> int:
    """The address of a function that returns 1 and, where the result has two words, 0 in the second."""
    code = _CODE[platform.machine()]
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _keep.append(memory)
    libc = ctypes.CDLL(None, use_errno=True)
    readable_and_executable = mmap.PROT_READ | mmap.PROT_EXEC
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), readable_and_executable) != 0:
        raise record_error(
            "this system does not let a process make executable memory, which the pretended GPU needs",
            "record where it does (outside of this sandbox or policy)",
        )
    if platform.machine() == "aarch64":
        clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
        clear(ctypes.c_void_p(address), ctypes.c_void_p(address + len(code)))
    return address


_keep: list[mmap.mmap] = []
