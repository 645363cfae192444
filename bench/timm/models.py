"""timm's models, built without storage, and what gpumem makes of one: its graph, or a recording of its training step."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / "pytorch"), str(ROOT / "src" / "python")]
sys.dont_write_bytecode = True


def use_timm(folder: str) -> Any:
    """timm from a folder of its source; the network is not asked."""
    sys.path.insert(0, folder)
    sys.modules["huggingface_hub"] = None  # type: ignore[assignment]
    warnings.filterwarnings("ignore")
    import timm
    import torch

    torch.set_num_threads(1)
    return timm


def build(timm: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """A model and the shape of its input. Its tensors are on the meta device, except those that hold schedules."""
    import torch
    from timm.data import resolve_data_config
    from torch.overrides import TorchFunctionMode

    factories = {torch.empty, torch.zeros, torch.ones, torch.randn, torch.rand, torch.full}

    class OnMeta(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if function in factories and kwargs.get("device") is None:
                kwargs["device"] = "meta"
            return function(*args, **kwargs)

    with OnMeta():
        model = timm.create_model(name)
    return model, tuple(resolve_data_config({}, model=model)["input_size"])


def graph_of(model: Any, shape: tuple[int, ...], name: str) -> str:
    import torch
    from export_graph import export_graph

    return str(export_graph(model, [torch.empty((2, *shape), device="meta")], name))


def recording_of(model: Any, shape: tuple[int, ...], name: str, scale: bool, batch: int = 8, **options: Any) -> str:
    import torch
    from gpumem.record import record

    example = torch.empty((batch, *shape), device="meta")
    return record.module(model, [example], batch, scale=scale, title=name, **options)


def in_a_process(work: Callable[[], str], seconds: int) -> str:
    """What work() returns, computed in a process of its own; the error's text if it fails, runs too long or dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(seconds)
        try:
            text = work()
        except BaseException as error:  # noqa: BLE001 - whatever a model raises is the answer
            text = f"error {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        with os.fdopen(writer, "w") as out:
            out.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as source:
        text = source.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"error: the process ended with status {status} (limit {seconds} s)"
