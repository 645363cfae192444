"""torch.cuda without a GPU: its functions answer as on a machine with one, its streams are numbered and do nothing else.

Everything is put back at the end, so that the same process may train on a real GPU afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from .errors import RecordError
from .guard import pretended_guard
from .hooks import pretended_accelerator


class Stream:
    """A stream of the pretended GPU; number 0 is the default one."""

    made = 0  # Of a recording, in the order in which they came to be.
    current: list["Stream"] = []

    def __init__(self, *_arguments: object, **_options: object) -> None:
        Stream.made += 1
        self.number = self.stream_id = self.cuda_stream = Stream.made
        self.device = torch.device("cuda", 0)
        self.device_index, self.device_type, self.priority = 0, 1, 0

    def wait_stream(self, stream: object) -> None:
        pass

    def wait_event(self, event: object) -> None:
        pass

    def record_event(self, event: object = None) -> object:
        return event or Event()

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def __enter__(self) -> "Stream":
        Stream.current.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        Stream.current.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.number == other.number

    def __hash__(self) -> int:
        return self.number


class Event:
    """An event of the pretended GPU: it has always happened."""

    def __init__(self, *_arguments: object, **_options: object) -> None:
        pass

    def record(self, stream: object = None) -> None:
        pass

    def wait(self, stream: object = None) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, _other: object) -> float:
        return 1.0


class _Device:
    """torch.cuda.device(...)."""

    def __init__(self, *_arguments: object) -> None:
        pass

    def __enter__(self) -> "_Device":
        return self

    def __exit__(self, *_error: object) -> None:
        pass


class _Anything:
    """Of a library that is not there: each function does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_arguments, **_options: None


#: Of the build whose kernels the rules follow: programs compare them with the least that they need.
_CUDA_VERSION, _CUDNN_VERSION, _NCCL_VERSION = "12.4", 90100, (2, 21, 5)


def _replace_libraries(replaced: Replacements) -> None:
    """What programs ask of the build: FSDP's examples take bfloat16 where CUDA and NCCL are there and new enough."""
    answers: list[tuple[Any, str, object]] = [
        (torch.backends.cudnn, "version", _CUDNN_VERSION),
        (torch.backends.cudnn, "is_available", True),
        (torch.backends.cuda, "is_built", True),
        (torch.backends.cuda, "preferred_linalg_library", None),
        (importlib.import_module("torch.cuda.nccl"), "version", _NCCL_VERSION),
        (torch.cuda.memory, "_record_memory_history", None),
        (torch.cuda.memory, "_dump_snapshot", None),
        (torch.cuda.profiler, "start", None),
        (torch.cuda.profiler, "stop", None),
        (torch.autograd.profiler, "emit_nvtx", contextlib.nullcontext()),
    ]
    if torch.distributed.is_available():
        answers.append((torch.distributed, "is_nccl_available", True))
    for owner, name, value in answers:
        replaced.set(owner, name, _constant(value))
    replaced.set(torch.version, "cuda", _CUDA_VERSION)
    replaced.set(torch.backends.cuda, "cufft_plan_cache", _Anything())


def _answers(capability: tuple[int, int]) -> dict[str, object]:
    """What the functions of torch.cuda return, by name."""
    properties = types.SimpleNamespace(
        name="pretended GPU",
        major=capability[0],
        minor=capability[1],
        total_memory=80 << 30,
        multi_processor_count=108,
        warp_size=32,
        gcnArchName="",
        max_threads_per_multi_processor=2048,
    )
    devices = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # Of a pretended world: programs ask how many there are.
    answers: dict[str, object] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": capability >= (8, 0),
        "is_current_stream_capturing": False,
        "_is_in_bad_fork": False,
        "device_count": devices,
        "current_device": 0,
        "initial_seed": 0,
        "can_device_access_peer": False,
        "_get_device_index": 0,
        "get_device_capability": capability,
        "get_device_properties": properties,
        "get_device_name": properties.name,
        "get_arch_list": [f"sm_{capability[0]}{capability[1]}"],
        "mem_get_info": (properties.total_memory, properties.total_memory),
        "memory_stats": collections.defaultdict(int),
        "memory_summary": "",
        "memory_snapshot": [],
        "get_per_process_memory_fraction": 1.0,
        "get_allocator_backend": "native",
        "current_blas_handle": 0,
        "get_sync_debug_mode": 0,
        "cudart": _Anything(),
    }
    for name in ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate", "device_memory_used"):
        answers[name] = 0
    for name in ("init", "_init", "_lazy_init", "_lazy_call", "synchronize", "empty_cache", "set_device", "_sleep"):
        answers[name] = None
    for name in ("manual_seed", "manual_seed_all", "seed", "seed_all", "ipc_collect"):
        answers[name] = None
    for name in ("memory_allocated", "memory_reserved"):
        answers.update({name: 0, "max_" + name: 0})
    for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated"):
        answers[name] = None
    answers["set_sync_debug_mode"] = None
    return answers


class Replacements(contextlib.ExitStack):
    """Attributes that are replaced until the stack is closed."""

    def set(self, owner: Any, name: str, value: object) -> None:
        missing = object()
        before = vars(owner).get(name, missing)

        def back() -> None:
            if before is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self.callback(back)
        setattr(owner, name, value)


class InferenceMode:
    """torch.inference_mode() as torch.no_grad(), which allocates the same: operators on inference tensors would come here
    before they are taken apart. Leaving it out means that gradients are on (c10/core/InferenceMode.h)."""

    def __init__(self, mode: bool) -> None:
        self._mode, self._before = mode, torch.is_grad_enabled()
        self._entered = False

    def __enter__(self) -> None:
        self._before, self._entered = torch.is_grad_enabled(), True
        torch._C._set_grad_enabled(not self._mode)

    def __exit__(self, *_error: object) -> None:
        self._entered = False
        torch._C._set_grad_enabled(self._before)

    def __del__(self) -> None:  # C++'s guard ends with its object, and Dynamo lets it.
        if self._entered:
            self.__exit__()


def _constant(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_options: value


def _replace_torch_cuda(replaced: Replacements, capability: tuple[int, int]) -> None:
    cuda = torch.cuda
    for name, value in _answers(capability).items():
        replaced.set(cuda, name, _constant(value))
    state = torch.zeros(16, dtype=torch.uint8)

    def random_state(*_arguments: object) -> torch.Tensor:
        with _disable_current_modes():  # A compiler asks in a mode of its own.
            return state.clone()

    for module in (cuda, cuda.random):
        replaced.set(module, "get_rng_state", random_state)
        replaced.set(module, "set_rng_state", _constant(None))
    Stream.made = -1
    default = Stream()
    Stream.current = [default]
    kinds = {"Stream": Stream, "ExternalStream": Stream, "Event": Event, "device": _Device, "device_of": _Device}
    for name, kind in kinds.items():
        replaced.set(cuda, name, kind)
    replaced.set(cuda, "current_stream", lambda *_arguments, **_options: Stream.current[-1])
    replaced.set(cuda, "default_stream", lambda *_arguments, **_options: default)
    replaced.set(cuda, "set_stream", _set_stream)
    replaced.set(cuda, "stream", lambda stream: contextlib.nullcontext() if stream is None else stream)
    silent = types.SimpleNamespace(
        range_push=_constant(0),
        range_pop=_constant(0),
        mark=_constant(None),
        range=lambda *_arguments, **_options: contextlib.nullcontext(),
    )
    replaced.set(cuda, "nvtx", silent)
    _replace_libraries(replaced)
    replaced.set(torch.Tensor, "share_memory_", lambda self: self)
    replaced.set(torch.Tensor, "record_stream", lambda self, stream: None)
    replaced.set(torch.Tensor, "pin_memory", lambda self, *_arguments, **_options: self)
    replaced.set(torch.Tensor, "is_pinned", lambda self, *_arguments: False)
    replaced.set(torch.nn.parallel.comm, "scatter", _scattered)
    # The generic interface of 2.6 and later asks C++, which has no accelerator.
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in (("is_available", True), ("device_count", cuda.device_count()), ("synchronize", None)):
            replaced.set(accelerator, name, _constant(value))
        for name in ("current_accelerator",):
            replaced.set(accelerator, name, _constant(torch.device("cuda")))


def _set_stream(stream: Stream | None) -> None:
    if stream is not None:
        Stream.current[-1] = stream


def _scattered(tensor: torch.Tensor, *_arguments: object, **_options: object) -> tuple[torch.Tensor, ...]:
    """DataParallel's parts of a batch, which on one GPU are the batch."""
    return (tensor.to("cuda"),)


def _nested_ints() -> Callable[..., Any]:
    """The ragged size that jagged tensors with the same offsets share, as PyTorch makes it of real offsets: FakeTensorMode
    wants to reason on symbols, which a recording has not (torch/nested/_internal/nested_tensor.py, get_tensor_symint)."""
    made: Any = weakref.WeakKeyDictionary()

    def nested_int(offsets: FakeTensor, *, coeff: int = 1) -> Any:
        from torch.nested._internal.nested_int import NestedIntNode

        storage = offsets.untyped_storage()
        if storage not in made:
            made[storage] = torch.SymInt(NestedIntNode(len(made), coeff))
        return made[storage]

    return nested_int


def _replace_fake_tensors(replaced: Replacements) -> None:
    """Fake tensors on "cuda" need no initialised CUDA, and foreach optimizers take them."""
    if hasattr(FakeTensorMode, "avoid_device_init"):
        replaced.set(FakeTensorMode, "avoid_device_init", property(lambda self: True))
    for name in ("init_gpu_context", "init_cuda_context"):
        if hasattr(fake_tensor, name):
            replaced.set(fake_tensor, name, _constant(None))
    if hasattr(FakeTensor, "get_nested_int"):
        replaced.set(FakeTensor, "get_nested_int", _nested_ints())
    lists: list[Any] = []
    for module in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        types_of_foreach = getattr(importlib.import_module(module), "_foreach_supported_types", None)
        if types_of_foreach is not None and not any(each is types_of_foreach for each in lists):
            lists.append(types_of_foreach)
    for each in lists:
        each.append(FakeTensor)
        replaced.callback(each.remove, FakeTensor)


@contextlib.contextmanager
def pretended_gpu(capability: tuple[int, int]) -> Iterator[Replacements]:
    """A process with one GPU of this compute capability. More replacements may be added to what is yielded."""
    build = torch.__config__.show()  # Below, a build for CPUs would ask its CUDA library, which is not there, and throw.
    with Replacements() as replaced:
        replaced.set(torch._C, "_show_config", _constant(f"{build}  - CUDA Runtime {_CUDA_VERSION}\n"))
        replaced.enter_context(pretended_guard())
        with contextlib.suppress(RecordError):  # Where autograd needs them, GradientSums says so.
            replaced.enter_context(pretended_accelerator())
        _replace_torch_cuda(replaced, capability)
        _replace_fake_tensors(replaced)
        yield replaced
