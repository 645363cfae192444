"""What one run of a training step left: calls, events, parameters. Sizes are those of this run, as numbers.

expressions.py makes expressions of several runs, writer.py the file.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple, Union


class Phase(enum.IntEnum):
    """Of a call."""

    CONSTRUCTION = 0
    FORWARD = 1
    BACKWARD = 2
    RECOMPUTATION = 3
    OPTIMIZER = 4
    COMMUNICATION = 5
    OTHER = 6


class Mark(enum.IntEnum):
    """What begins at a mark."""

    CONSTRUCTION = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    BETWEEN = 4


class Category(enum.IntEnum):
    """What an allocation is for."""

    PARAMETER = 0
    BUFFER = 1
    INPUT = 2
    ACTIVATION = 3
    ACTIVATION_GRADIENT = 4
    GRADIENT = 5
    OPTIMIZER_STATE = 6
    TEMPORARY = 7


class TensorForm(NamedTuple):
    """A tensor's type and how it lies in memory; strides in elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Call(NamedTuple):
    """A call of a kernel or a library. thread: 1 is autograd's."""

    operator: str
    module: str
    phase: Phase
    thread: int
    inputs: tuple[TensorForm, ...]
    outputs: tuple[TensorForm, ...]
    extra: tuple[int, ...]


class Allocate(NamedTuple):
    """A storage of item * product(shape) bytes. call: the number of the call that made it, -1 for none."""

    number: int
    item: int
    shape: tuple[int, ...]
    stream: int
    call: int


class Free(NamedTuple):
    number: int


class Begin(NamedTuple):
    """A call begins."""

    call: int


class Workspace(NamedTuple):
    """The library takes its workspace. part: 0 forward, 1 gradient of the data, 2 of the weight."""

    call: int
    part: int


class End(NamedTuple):
    """A call ends."""

    call: int


class Marked(NamedTuple):
    """A phase begins. calls: how many calls came before it."""

    mark: Mark
    step: int
    calls: int


Event = Union[Allocate, Free, Begin, Workspace, End, Marked]


class Parameter(NamedTuple):
    """allocation, gradient: the number of the allocation that it (its gradient, in the last step) lies in, -1 for none."""

    name: str
    form: TensorForm
    trained: bool
    allocation: int
    gradient: int


class Warning(NamedTuple):
    """kind: "value", "size" (a size that a value decides), "rule", "shape". where: the user's line, or empty."""

    kind: str
    text: str
    where: str


#: How the warning about a process of the program's own begins.
NOT_RECORDED = "the process that runs "


@dataclasses.dataclass
class Run:
    """All that is known of one run."""

    torch: str = ""
    capability: tuple[int, int] = (8, 0)
    world_size: int = 1
    rank: int = 0
    optimizer: str = ""
    precision: str = ""
    calls: list[Call] = dataclasses.field(default_factory=list)
    events: list[Event] = dataclasses.field(default_factory=list)
    categories: dict[int, Category] = dataclasses.field(default_factory=dict)
    parameters: list[Parameter] = dataclasses.field(default_factory=list)
    warnings: dict[Warning, int] = dataclasses.field(default_factory=dict)
    settings: dict[str, Union[bool, int, float, str]] = dataclasses.field(default_factory=dict)  # See settings.py.
