"""Recordings: what a real training step allocates, written down on a machine without a GPU and without data.

    with gpumem.record("run.json.gz"):           # around an ordinary script: at its own batch size
        model = Net().to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        for inputs, targets in two_batches():
            loss = criterion(model(inputs.to("cuda")), targets.to("cuda"))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    def make_step(batch_size):                   # any batch size: it runs at three
        model = Net().to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())

        def step():
            loss = model(torch.empty(batch_size, 3, 224, 224, device="cuda")).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    gpumem.record.step(make_step, batch_size=8, path="run.json.gz")

    python3 -m gpumem.record --batch-arg batch-size -o run.json.gz train.py --batch-size 32   # no line changed

Then `gpumem estimate run.json.gz --batch 64 --gpu a100-40gb`, and every other command that takes a summary.

Recording only needs PyTorch 2.1 or later, any build, on Linux (x86-64 or ARM64). It needs no GPU, no data, and not the
compiled part of gpumem. The program sees a pretended GPU of the given capability. Its tensors have shapes and no values.
If the program needs a value (.item(), a mask), one is invented, and the recording has a warning with the line. What
cannot be recorded raises RecordError, which names the line and a way around it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

from .errors import RecordError, record_error

__all__ = ["RecordError", "record"]

_Path = Union[str, "os.PathLike[str]"]
_OLDEST = (2, 1)


def _need_torch() -> None:
    """An error if PyTorch is missing or too old."""
    try:
        import torch
    except ImportError as error:
        raise record_error("PyTorch cannot be imported", "install torch 2.1 or later (a CPU build will do)") from error
    built = getattr(torch, "version", torch)  # A program may be told of another one as torch.__version__.
    version = str(built.__version__)
    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) < _OLDEST:
        raise record_error(
            f"PyTorch {version} is too old to record with",
            "install torch 2.1 or later (a CPU build in an environment of its own will do)",
        )


def _capability(capability: tuple[int, int]) -> tuple[int, int]:
    major, minor = capability
    return int(major), int(minor)


def _points(batch_size: int, sequence_length: int | None, scale: bool) -> list[tuple[int, ...]]:
    """The sizes of the runs: those that give expressions, and one that checks them."""
    from .expressions import batch_sizes, sequence_lengths

    if batch_size < 1 or (sequence_length is not None and sequence_length < 1):
        raise record_error("a batch size or sequence length is less than 1", "give whole numbers from 1")
    if not scale:
        return [(batch_size,) if sequence_length is None else (batch_size, sequence_length)]
    batches = batch_sizes(batch_size)
    if sequence_length is None:
        return [(batch,) for batch in batches]
    lengths = sequence_lengths(sequence_length)
    pairs: list[tuple[int, ...]] = [(batch, length) for batch in batches[:2] for length in lengths[:2]]
    return [*pairs, (batches[2], lengths[2])]


class _Record:
    __doc__ = __doc__
    __name__ = __name__  # `import gpumem.record.run as run` looks for it in the package's attribute of this name.

    def __call__(
        self, path: _Path, *, capability: tuple[int, int] = (8, 0), title: str | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """A context: what runs in it is recorded at its one size, and written to a file at its end.

        path: of the recording; compressed if it ends in .gz.
        capability: the compute capability of the GPU that the program is told of.
        title: what was recorded, for people; None: the name of the program.

        Build model and optimizer inside, on "cuda", and make two steps. Raises RecordError.
        """
        return self._around(path, _capability(capability), title)

    @contextlib.contextmanager
    def _around(self, path: _Path, capability: tuple[int, int], title: str | None) -> Iterator[None]:
        _need_torch()
        from .recorder import recording
        from .writer import recording_text, write_recording

        with recording(capability) as recorder:
            yield
        name = os.path.basename(sys.argv[0]) if title is None else title
        write_recording(path, recording_text([recorder.run], [()], name))

    def step(
        self,
        make_step: Callable[..., Any],
        batch_size: int,
        sequence_length: int | None = None,
        path: _Path | None = None,
        *,
        steps: int = 2,
        scale: bool = True,
        capability: tuple[int, int] = (8, 0),
        title: str | None = None,
    ) -> str:
        """The recording of a training step, for any batch size (and sequence length).

        make_step: make_step(batch_size), or make_step(batch_size, sequence_length) where a length is given, builds model
            and optimizer and returns a function that makes one training step. It may also make the steps itself, and
            return None. It is called again for each size.
        batch_size: to record at; the others are twice as large, and one between them that checks.
        sequence_length: to record at, down to a multiple of 128; the others are half of it, and three quarters that check.
        path: of the file to write; None: no file. Compressed if it ends in .gz.
        steps: how often the step is made.
        scale: False: record at this one size only.
        capability, title: as of record().

        Returns the recording's text. Raises RecordError: also where the runs at these sizes do different things.
        """
        _need_torch()
        from .recorder import recording
        from .writer import recording_text, write_recording

        points = _points(batch_size, sequence_length, scale)
        runs = []
        for point in points:
            with recording(_capability(capability)) as recorder:
                one_step = make_step(*point)
                for _ in range(steps if callable(one_step) else 0):
                    recorder.steps.next_step()
                    one_step()
            del one_step
            runs.append(recorder.run)
        name = getattr(make_step, "__name__", "step") if title is None else title
        text = recording_text(runs, points, name)
        if path is not None:
            write_recording(path, text)
        return text

    def module(
        self,
        module: Any,
        example_inputs: Any,
        batch_size: int,
        *,
        scale: bool = True,
        title: str | None = None,
        **options: Any,
    ) -> str:
        """The recording of a step of a module, of which only its inputs are known: what `gpumem estimate` assumes of a
        graph is done as a program.

        example_inputs: a list of tensors, in the order of forward()'s parameters, whose first axis is the batch.
        batch_size, scale: as of step().
        options: optimizer, precision, loss, zero_grad, accumulate, foreach, fused, weight_decay and prefetch, as of
            gpumem.estimate().

        The module is not changed: a copy without values is trained. Returns the recording's text. Raises RecordError.
        """
        _need_torch()
        from .module_step import StepOptions, step_of_module

        make_step = step_of_module(module, example_inputs, StepOptions(**options))
        name = type(module).__name__ if title is None else title
        return self.step(make_step, batch_size, scale=scale, title=name)

    def assume(self, lines: Mapping[str, Any] | None = None, **kinds: Any) -> contextlib.AbstractContextManager[Any]:
        """Says what values are that only a GPU would have: record.assume({"train.py:120": 128}, any=True, nonzero=0.25).

        lines: by line of the program. kinds: any, all, compare, isnan, equal (True or False); item (a number); nonzero, mask,
            unique, nms, repeat_interleave, bincount (a number of elements, or a share such as 0.25); objects (the most elements
            that a mask, nonzero() or unique() gives).

        It holds from now on; as a context, until its end. What is said of a line comes before what is said of a kind.
        """
        from .assumed import said

        return said.say({**(lines or {}), **kinds})

    def stand_in(self, name: str, shapes: Callable[..., Any]) -> None:
        """Says what a compiled extension's function returns, of which PyTorch has no rule.

        name: an operator, "library::name", or a function of a Python module, "package._C.nms".
        shapes: gets the arguments and returns empty tensors (x.new_empty(...)) as the function would.

        Recordings that begin later use it. The memory that the function takes inside is not counted.
        """
        _need_torch()
        from .shape_rules import stand_in

        stand_in(name, shapes)

    def pretend_world(self, size: int, rank: int = 0) -> contextlib.AbstractContextManager[None]:
        """A context in which this is process `rank` of `size` that train together: torch.distributed with a group whose
        other processes are not there. A recording inside it is that of this rank. Raises RecordError."""
        _need_torch()
        from .world import pretended_world

        return pretended_world(size, rank)

    def pretend_torch(self, version: str, tell: bool = False) -> contextlib.AbstractContextManager[None]:
        """A context in which recordings are of training with an older PyTorch than the one that records, "1.7" or later.

        tell: until its end programs read it as torch.__version__ as well, and go the ways that they went then. Import them in
        the context: many look at the version while they are imported.

        It kept other tensors for backward (the input of softmax and of ReLU), zero_grad() filled with zeros, and optimizers
        went from parameter to parameter. Raises RecordError."""
        _need_torch()
        from .older_torch import pretended_torch

        return pretended_torch(version, tell)


record = _Record()
