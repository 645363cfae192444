"""The training step of a module that only its inputs are known of: what `gpumem estimate` assumes of a graph, as a program.

It is the loop of plan/step_plan: the last batch goes when the new one comes, outputs and loss live under their names until
the next step's, every output that needs a gradient has a loss of its own.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .errors import record_error

_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
_Step = Callable[[], None]
_Batch = tuple[list[torch.Tensor], list[torch.Tensor]]


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """How the module is trained; names as those of estimate()."""

    optimizer: str = "adam"
    precision: str = "fp32"
    loss: str = "cross-entropy"
    zero_grad: str = "before-forward"
    accumulate: int = 1
    foreach: bool = True
    fused: bool = False
    weight_decay: bool = False
    prefetch: bool = False


def step_of_module(module: nn.Module, samples: Sequence[torch.Tensor], options: StepOptions) -> Callable[[int], _Step]:
    """make_step(batch_size) for record.step(): samples say shape and dtype of an input; their first axis is the batch."""

    def make_step(batch_size: int) -> _Step:
        return _Loop(module, samples, options, batch_size).step

    return make_step


class _Loop:
    """The training loop of one run. The names of the script are members."""

    def __init__(
        self, module: nn.Module, samples: Sequence[torch.Tensor], options: StepOptions, batch_size: int
    ) -> None:
        self.options, self.samples, self.batch_size = options, samples, batch_size
        self.dtype = torch.bfloat16 if options.precision == "bf16" else None
        self.model = on_gpu(module, self.dtype)
        self.optimizer = _optimizer(self.model, options)
        self.scaler = torch.cuda.amp.GradScaler() if options.precision == "amp-fp16" else None
        self.batch: _Batch = ([], [])
        self.ahead: _Batch | None = None
        self.stream = torch.cuda.Stream() if options.prefetch else None
        self.shapes: list[tuple[torch.Size, torch.dtype]] | None = None  # Of the labels, once an output was seen.
        self.outputs: object = None
        self.loss: torch.Tensor | None = None

    def step(self) -> None:
        # From the second pass on all are alike, and each adds to the gradients that are there.
        passes = min(self.options.accumulate, 3)
        for number in range(passes):
            self.forward_and_backward(first=number == 0)
        self.update()

    def forward_and_backward(self, first: bool) -> None:
        if not self.options.prefetch:
            self.batch = ([], [])
        self.zero_grad("step-start", first)
        self.load()
        self.zero_grad("before-forward", first)
        with self.autocast():
            self.outputs = self.model(*self.batch[0])
            self.loss = self.loss_of(self.outputs)
        self.zero_grad("before-backward", first)
        whole = self.loss if self.scaler is None else self.scaler.scale(self.loss)
        whole.backward()

    def load(self) -> None:
        """One step ahead, the script's names hold the last batch until this one is theirs (timm's PrefetchLoader)."""
        if self.stream is None:
            self.batch = self.fetched()
            return
        if self.ahead is None:
            self.ahead = self.fetched()
        following = self.fetched()
        self.batch, self.ahead = self.ahead, following

    def fetched(self) -> _Batch:
        """A batch on the GPU; fetched ahead, images come as bytes and are made floating point there."""
        dtypes = [
            self.dtype if self.dtype is not None and sample.is_floating_point() else sample.dtype
            for sample in self.samples
        ]
        shapes = [(self.batch_size, *sample.shape[1:]) for sample in self.samples]
        first = [torch.uint8 if self.stream is not None and dtype.is_floating_point else dtype for dtype in dtypes]
        with torch.cuda.stream(self.stream):
            inputs = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in zip(shapes, first)]
            labels = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in self.shapes or ()]
            if self.stream is not None:
                inputs = [each.to(dtype) for each, dtype in zip(inputs, dtypes)]
        return inputs, labels

    def zero_grad(self, place: str, first: bool = True) -> None:
        if first and self.options.zero_grad == place:
            self.optimizer.zero_grad(set_to_none=True)
        elif first and self.options.zero_grad == "in-place" and place == "before-forward":
            self.optimizer.zero_grad(set_to_none=False)

    def update(self) -> None:
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.zero_grad("step-end")

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        dtype = _AUTOCAST.get(self.options.precision)
        if dtype is None:
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[object] = torch.autocast("cuda", dtype=dtype)
        return context

    def loss_of(self, outputs: object) -> torch.Tensor:
        trained = [each for each in tensors_of(outputs) if each.requires_grad]
        if not trained:
            raise record_error(
                "nothing that the module returns needs a gradient",
                "return a tensor that its parameters take part in, or record a step of your own with estimate_step()",
            )
        if self.shapes is None:
            self.shapes = [_labels_of(each, self.options.loss) for each in trained if each.dim() > 0]
        labels = self.batch[1] or [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in self.shapes]
        self.batch = (self.batch[0], labels)
        waiting = iter(labels)
        losses = [_loss(each, next(waiting), self.options.loss) if each.dim() > 0 else each for each in trained]
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total


def tensors_of(value: object) -> Iterator[torch.Tensor]:
    """Each tensor once, also in the dictionaries and data classes that models return."""
    seen: set[int] = set()

    def walk(item: object) -> Iterator[torch.Tensor]:
        if isinstance(item, torch.Tensor):
            if id(item) not in seen:
                seen.add(id(item))
                yield item
        elif isinstance(item, Mapping):
            for part in item.values():
                yield from walk(part)
        elif isinstance(item, (list, tuple)):
            for part in item:
                yield from walk(part)
        elif dataclasses.is_dataclass(item) and not isinstance(item, type):
            for field in dataclasses.fields(item):
                yield from walk(getattr(item, field.name))

    return walk(value)


def on_gpu(module: nn.Module, dtype: torch.dtype | None) -> nn.Module:
    """A copy in training mode whose tensors are the pretended GPU's; what shares a tensor still does."""
    copies: dict[int, Any] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        kind = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
        return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=kind, device="cuda")

    for part in _from_the_leaves(module):
        for tensor in [*part._parameters.values(), *part._buffers.values(), *vars(part).values()]:
            if isinstance(tensor, torch.Tensor) and id(tensor) not in copies:
                made = copied(tensor)
                trains = isinstance(tensor, nn.Parameter)
                copies[id(tensor)] = nn.Parameter(made, tensor.requires_grad) if trains else made
    return copy.deepcopy(module, copies).train()


def _from_the_leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The order in which module.to("cuda") comes to its parts."""
    seen: set[int] = set()

    def walk(part: nn.Module) -> Iterator[nn.Module]:
        for child in part.children():
            yield from walk(child)
        if id(part) not in seen:
            seen.add(id(part))
            yield part

    return walk(module)


def _optimizer(model: nn.Module, options: StepOptions) -> torch.optim.Optimizer:
    """PyTorch's of that name, where it has one; for any other a plain one, which the estimate replaces."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    names = {each.lower(): each for each in dir(torch.optim) if isinstance(getattr(torch.optim, each), type)}
    name = names.get(options.optimizer.partition("-")[0], "SGD")
    given: dict[str, Any] = {"momentum": 0.9} if options.optimizer == "sgd-momentum" else {}
    if options.weight_decay:
        given["weight_decay"] = 2e-5
    given["foreach"] = options.foreach
    if options.fused:
        given = {**given, "foreach": None, "fused": True}
    kind = getattr(torch.optim, name)
    try:
        optimizer: torch.optim.Optimizer = kind(trained, lr=0.001, **given)
    except (TypeError, RuntimeError, ValueError):  # A form that this optimizer has not.
        optimizer = kind(trained, lr=0.001)
    return optimizer


def _labels_of(output: torch.Tensor, loss: str) -> tuple[torch.Size, torch.dtype]:
    """Class ids lose the class axis: the last one of rows and of sequences, axis 1 of images."""
    shape = output.shape
    if loss != "cross-entropy" or output.dim() < 2:
        return shape, torch.float32
    return (shape[:-1] if output.dim() <= 3 else shape[:1] + shape[2:]), torch.int64


def _loss(output: torch.Tensor, labels: torch.Tensor, loss: str) -> torch.Tensor:
    if loss == "bce-with-logits":
        return F.binary_cross_entropy_with_logits(output, labels)
    if loss == "mse" or output.dim() < 2:
        return F.mse_loss(output, labels)
    if output.dim() == 3:
        return F.cross_entropy(output.flatten(0, 1), labels.flatten())
    return F.cross_entropy(output, labels)
