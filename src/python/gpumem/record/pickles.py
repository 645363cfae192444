"""pickle, copy, torch.save and torch.load of tensors without values: checkpoints and snapshots inside of a recording.

A fake tensor is written as its shape and type. Read again inside of a recording it is one without values, and zeros elsewhere.
What torch.load reads for the CPU is real, and on the pretended GPU it is without values. Large tensors are not read: PyTorch
itself reads none where tensors are fake (_load of torch/serialization.py, 2.6), and all of them end on no device. Nothing is
known of their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from torch.utils._python_dispatch import _disable_current_modes

from .known_values import KnownValues
from .pretended_cuda import Replacements

_READ = 1 << 20  # Bytes of a tensor whose values are read.


def _again(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: str, learned: bool
) -> torch.Tensor:
    recorded = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    place = device if recorded else "cpu"
    if recorded:
        return torch.empty_strided(shape, strides, dtype=dtype, device=place).requires_grad_(learned)
    return torch.zeros(shape, dtype=dtype, device=place).requires_grad_(learned)


def _reduced(tensor: Any, _protocol: int) -> Any:
    plain = tensor.detach() if tensor.requires_grad else tensor
    strides = tuple(plain.stride()) if plain.layout == torch.strided else ()
    arguments = (tuple(plain.shape), strides, plain.dtype, str(plain.device), tensor.requires_grad and tensor.is_leaf)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter, (_Unread(arguments[:4]), tensor.requires_grad)
    return _again, arguments


class _Unread:
    """What a parameter is made of."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return _again, (*self.arguments, False)


def install_pickles(replaced: Replacements, known: KnownValues) -> None:
    replaced.set(FakeTensor, "__reduce_ex__", _reduced)
    serialization = torch.serialization
    safe = getattr(serialization, "add_safe_globals", None)
    if safe is not None:  # torch.load(weights_only=True)
        before = serialization.get_safe_globals()
        safe([_again, torch.nn.Parameter])
        replaced.callback(_restore, before)
    _Loads(known).install(replaced)


def _restore(before: list[Any]) -> None:
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(before)


class _Records:
    """A checkpoint's file, of which large tensors are not read."""

    def __init__(self, file: Any, known: KnownValues) -> None:
        self._file, self._known = file, known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_storage_from_record(self, name: str, size: int, dtype: Any) -> Any:
        if size <= _READ:
            return self._file.get_storage_from_record(name, size, dtype)
        with _disable_current_modes():
            unread = torch.empty(size, dtype=torch.uint8)
            self._known.note_unset(unread)
        return unread


class _Loads:
    """Stands in for what torch.load() calls."""

    def __init__(self, known: KnownValues) -> None:
        self._known = known
        self._running = 0
        self._for_gpu: dict[int, Any] = {}  # Storages of the CPU, and the tensor on the GPU that has its place.

    def install(self, replaced: Replacements) -> None:
        serialization, utils = torch.serialization, torch._utils
        for name in ("_load", "_legacy_load"):
            replaced.set(serialization, name, self._loading(getattr(serialization, name)))
        replaced.set(serialization, "default_restore_location", self._restored(serialization.default_restore_location))
        replaced.set(utils, "_rebuild_tensor", self._rebuilt(utils._rebuild_tensor))

    def _loading(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def loading(file: Any, *arguments: Any, **options: Any) -> Any:
            zipped = hasattr(file, "get_storage_from_record")
            self._running += 1
            try:
                with Replacements() as now:
                    if hasattr(torch, "_guards"):
                        now.set(torch._guards, "detect_fake_mode", lambda *_arguments: None)
                    return load(_Records(file, self._known) if zipped else file, *arguments, **options)
            finally:
                self._running -= 1
                if not self._running:
                    self._for_gpu.clear()

        return loading

    def _restored(self, restore: Callable[..., Any]) -> Callable[..., Any]:
        def restored(storage: Any, location: str) -> Any:
            if not self._running or not str(location).startswith("cuda"):
                return restore(storage, location)
            self._for_gpu[storage._cdata] = None
            return storage

        return restored

    def _rebuilt(self, rebuild: Callable[..., Any]) -> Callable[..., Any]:
        def rebuilt(storage: Any, offset: int, size: Any, strides: Any) -> Any:
            key = storage._untyped_storage._cdata
            if key not in self._for_gpu:
                return rebuild(storage, offset, size, strides)
            if self._for_gpu[key] is None:
                elements = storage._untyped_storage.nbytes() // storage.dtype.itemsize
                self._for_gpu[key] = rebuild(storage, 0, (elements,), (1,)).to("cuda")
            return self._for_gpu[key].as_strided(size, strides, offset)

        return rebuilt
