"""A job, its training steps, and the peaks of live storage in them."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools

import torch
import torchvision
from torch import nn
from torch._subclasses import fake_tensor

from .live_storages import LiveStorages
from .meta_kernels import prepare
from .small_nets import SMALL_NETS, Net, add, runnable


@dataclasses.dataclass(frozen=True)
class Job:
    model: str
    batch: int
    input: tuple
    optimizer: str = "none"

    @property
    def name(self):
        shape = "x".join(map(str, self.input))
        return f"{self.model} batch {self.batch} input {shape} {self.optimizer}"


OPTIMIZERS = {
    "none": lambda _: None,
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}
# Measured with PyTorch 2.6: the mode of 1.13 keeps the constants that NAdam reads with item(), 8 bytes a parameter and
# step. Of the nets, those whose peaks with Adam are the same under both.
NEWER_OPTIMIZERS = {"nadam": torch.optim.NAdam}
NEWER_NETS = ("mlp_wide", "mlp_relu", "cnn_batch_norm", "cnn_residual")


def default_job(model, batch=None, sample=None, optimizer="none"):
    if model in SMALL_NETS:
        net = SMALL_NETS[model]
        return Job(model, batch or net.batch, tuple(sample or net.input), optimizer)
    side = 299 if model == "inception_v3" else 224
    return Job(model, batch or 32, tuple(sample or (3, side, side)), optimizer)


def build_model(name, mode):
    """The model with fake parameters."""
    if name in SMALL_NETS:
        with mode:
            return Net([(key, runnable(layer), sources) for key, layer, sources in SMALL_NETS[name].layers()])
    # No weight is ever read: leave out the initialisations that take seconds.
    options = {"init_weights": False} if name.startswith(("vgg", "inception", "googlenet")) else {}
    make = functools.partial(torchvision.models.get_model, name, weights=None, **options)
    if name.startswith("regnet"):
        # Its constructor reads values of tensors, which fake ones have not.
        with fake_tensor.FakeCopyMode(mode):
            return copy.deepcopy(make())
    with mode:
        return make()


def outputs_in(value):
    return [value] if isinstance(value, torch.Tensor) else [item for item in value if item is not None]


def rows_of(output):
    return output.flatten(0, 1) if output.dim() == 3 else output


def cross_entropy(outputs, labels):
    losses = [nn.functional.cross_entropy(rows_of(output), labels) for output in outputs_in(outputs)]
    return functools.reduce(add, losses)


@dataclasses.dataclass
class Step:
    """Bytes: the most that was live in the step, and what was after each of its parts."""

    peak: int = 0
    peak_op: str = ""
    live: dict = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def module_names(model, books):
    """Lets a trace say which module an op belongs to. Only traces pay for it."""
    if books.trace is None:
        yield
        return
    names = {id(module): name for name, module in model.named_modules()}
    path = []

    def enter(module, _inputs):
        path.append(names.get(id(module), ""))
        books.module = path[-1]

    def leave(*_):
        path.pop()
        books.module = path[-1] if path else ""

    handles = [
        nn.modules.module.register_module_forward_pre_hook(enter),
        nn.modules.module.register_module_forward_hook(leave),
    ]
    yield
    for handle in handles:
        handle.remove()


def run_steps(model, x, labels, make_optimizer, books):
    optimizer = make_optimizer(model.parameters())
    steps = []
    for number in range(2 if optimizer else 1):
        step = Step()
        steps.append(step)

        def part(name):
            step.live[name] = books.sweep()  # noqa: B023: called within this turn only
            books.note(f"== step {number + 1}: after {name}, {books.total:,} live")

        books.start_peak()
        if optimizer:
            optimizer.zero_grad(set_to_none=True)
        part("zero_grad")
        outputs = model(x)
        part("forward")
        loss = cross_entropy(outputs, labels)
        part("loss")
        loss.backward()
        part("backward")
        if optimizer:
            optimizer.step()
        part("optimizer")
        step.peak, step.peak_op = books.peak, books.peak_op
    return steps


def measure(job, as_published=False, trace=None):
    """(steps measured, bytes of parameters, bytes of buffers)."""
    _kernels = prepare()
    mode = fake_tensor.FakeTensorMode()
    mode.as_published = as_published
    books = LiveStorages(trace)
    small = SMALL_NETS.get(job.model)
    rows = job.batch * job.input[0] if small and small.sequence else job.batch
    model = build_model(job.model, mode).train()
    with mode:
        x = torch.zeros((job.batch, *job.input), dtype=small.dtype if small else torch.float32)
        labels = torch.zeros(rows, dtype=torch.int64)
        parameters = books.hold(model.parameters(), "a parameter")
        buffers = books.hold(model.buffers(), "a buffer")
        books.hold([x, labels], "input or labels")
        with books, module_names(model, books):
            steps = run_steps(model, x, labels, (OPTIMIZERS | NEWER_OPTIMIZERS)[job.optimizer], books)
    return steps, parameters, buffers
