"""Several processes that are not there: torch.distributed with a fake process group, as torchrun would have started it.

One rank is recorded. Collectives return their own arguments; what NCCL holds outside of PyTorch's allocator is not seen.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .errors import record_error
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

    for module in (distributed, distributed.distributed_c10d):
        replaced.set(module, "init_process_group", init_process_group)
    replaced.set(distributed, "_verify_params_across_processes", lambda *_: None)
    ddp_init = DistributedDataParallel.__init__

    def init(module: Any, *arguments: Any, **options: Any) -> None:
        ddp_init(module, *arguments, **options)
        module.register_comm_hook(None, _finished_reduction)
        module.register_comm_hook = lambda _state, _hook: None  # One of the program's has a bucket's work at most.
        module.logger = _Quiet()

    replaced.set(DistributedDataParallel, "__init__", init)
    replaced.set(sys.modules[__name__], "_is_pretended", True)
    if size:
        init_process_group()
    replaced.callback(_leave_group)


def _or_environment(number: int, name: str, default: int) -> int:
    """As init_process_group() finds what its arguments leave out."""
    return number if number >= 0 else int(os.environ.get(name, default))


class _Finished:
    """What spawn() returns to a program that joins by itself: its process has run."""

    def join(self, *_arguments: object, **_options: object) -> bool:
        return True


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
