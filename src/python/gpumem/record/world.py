"""Several processes that are not there: torch.distributed with a fake process group, as torchrun would have started it.

One rank is recorded. Collectives return their own arguments; what NCCL holds outside of PyTorch's allocator is not seen.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .errors import record_error
from .places import users_line
from .pretended_cuda import Replacements


def _environment(size: int, rank: int) -> dict[str, str]:
    """What torchrun sets, on one machine of 8 GPUs after the other. The pretended GPU is always number 0."""
    return {
        "WORLD_SIZE": str(size),
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": str(min(size, 8)),
        "GROUP_RANK": str(rank // 8),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }


class _Quiet:
    """DistributedDataParallel's logger, which measures a GPU's times."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_arguments, **_options: None


def _finished_reduction(_state: object, bucket: Any) -> Any:
    """The bucket as it is: the fake group's work has no result, which DistributedDataParallel wants."""
    done: torch.futures.Future[Any] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


_finished_reduction.__annotations__.clear()  # DistributedDataParallel takes its own types there, or none.


class _Finished:
    """Of a process that has run, and of work that is done."""

    def join(self, *_arguments: object, **_options: object) -> bool:
        return True

    def wait(self, *_arguments: object) -> bool:
        return True


class _Together(_Finished):
    """Of collectives that NCCL puts together, as a pipeline's stages do with what they send: here each has run by itself."""

    def __init__(self) -> None:
        self.works: list[Any] = [_Finished()]

    def append(self, work: Any) -> None:
        self.works.append(work)


@contextlib.contextmanager
def _coalescing_manager(*_arguments: object, **_options: object) -> Iterator[_Together]:
    yield _Together()  # The fake group has no name, which PyTorch's own asks for.


def _not_there(rank: int | None) -> Exception:
    return record_error(
        "an object comes from " + ("another process" if rank is None else f"process {rank}") + ", which is not there",
        "record that process (--rank), or let this one make it itself; a PipelineStage needs input_args and output_args",
        users_line(),
    )


def _replace_objects(replaced: Replacements, module: Any) -> None:
    """Objects that processes send each other: the others have what this one has."""
    own = torch.distributed.get_rank

    def broadcast(objects: list[Any], src: int = 0, *_arguments: object, **_options: object) -> None:
        if src != own() and any(each is None for each in objects):
            raise _not_there(src)

    def receive(_objects: list[Any], src: int | None = None, *_arguments: object, **_options: object) -> None:
        raise _not_there(src)

    def gather(obj: Any, object_gather_list: list[Any] | None = None, *_arguments: object, **_options: object) -> None:
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def scatter(
        received: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0, *_rest: object, **_options: object
    ) -> None:
        if not scatter_object_input_list:
            raise _not_there(src)
        received[0] = scatter_object_input_list[own()]

    for name, function in (
        ("broadcast_object_list", broadcast),
        ("recv_object_list", receive),
        ("gather_object", gather),
        ("scatter_object_list", scatter),
        ("_coalescing_manager", _coalescing_manager),
    ):
        replaced.set(module, name, function)


def _share_no_random_numbers(replaced: Replacements) -> None:
    """A DTensor reads and sets the state of the GPU's random numbers, which mean nothing here. PyTorch 2.5 has named its module anew."""
    for name in ("torch.distributed.tensor._random", "torch.distributed._tensor.random"):
        try:
            tracker = importlib.import_module(name).OffsetBasedRNGTracker
        except (AttributeError, ImportError):
            continue
        replaced.set(tracker, "_distribute_region", lambda *_arguments, **_options: contextlib.nullcontext())
        return


def _leave_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


_is_pretended = False


def _replace_distributed(replaced: Replacements, size: int, rank: int) -> None:
    """init_process_group() makes a group of `size` processes; with size 0, of as many as the program says."""
    import torch.distributed as distributed
    from torch.nn.parallel import DistributedDataParallel

    real_init = distributed.init_process_group
    signature = inspect.signature(real_init)

    def init_process_group(*arguments: Any, **options: Any) -> None:
        if distributed.is_initialized():
            return
        from torch.testing._internal.distributed.fake_pg import FakeStore

        said = signature.bind_partial(*arguments, **options).arguments
        of_world, of_rank = size, rank
        if not size:
            of_world = _or_environment(said.get("world_size", -1), "WORLD_SIZE", 1)
            of_rank = _or_environment(said.get("rank", -1), "RANK", 0)
        real_init("fake", rank=of_rank, world_size=of_world, store=FakeStore())
        _share_no_random_numbers(replaced)

    for module in (distributed, distributed.distributed_c10d):
        replaced.set(module, "init_process_group", init_process_group)
        _replace_objects(replaced, module)
    replaced.set(distributed, "_verify_params_across_processes", lambda *_: None)
    ddp_init = DistributedDataParallel.__init__

    @functools.wraps(ddp_init)
    def init(module: Any, /, *arguments: Any, **options: Any) -> None:
        ddp_init(module, *arguments, **options)
        module.register_comm_hook(None, _finished_reduction)
        module.register_comm_hook = lambda state, hook: None  # One of the program's has a bucket's work at most.
        module.logger = _Quiet()

    replaced.set(DistributedDataParallel, "__init__", init)
    replaced.set(sys.modules[__name__], "_is_pretended", True)
    if size:
        init_process_group()
    replaced.callback(_leave_group)


def _or_environment(number: int, name: str, default: int) -> int:
    """As init_process_group() finds what its arguments leave out."""
    return number if number >= 0 else int(os.environ.get(name, default))


def _spawn(
    function: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, *_arguments: object, **_options: object
) -> _Finished | None:
    """torch.multiprocessing.spawn() starts a process for each GPU, of which there is one: it is this one."""
    function(0, *args)
    return None if join else _Finished()


def follow_groups(replaced: Replacements) -> None:
    """A program that makes a process group of its own gets one that is not there, and the process that it spawns is this."""
    replaced.set(torch.multiprocessing, "spawn", _spawn)
    if torch.distributed.is_available() and not _is_pretended and not torch.distributed.is_initialized():
        _replace_distributed(replaced, 0, 0)


@contextlib.contextmanager
def pretended_world(size: int, rank: int) -> Iterator[None]:
    """While it lasts this is process `rank` of `size`; with size 1 nothing is pretended."""
    if not 0 <= rank < size:
        raise record_error(f"there is no rank {rank} among {size}", f"give one from 0 to {size - 1}")
    if size == 1:
        yield
        return
    if not torch.distributed.is_available():
        raise record_error("this PyTorch has no torch.distributed", "record with a build that has it")
    before = dict(os.environ)
    os.environ.update(_environment(size, rank))
    try:
        with Replacements() as replaced:
            _replace_distributed(replaced, size, rank)
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
