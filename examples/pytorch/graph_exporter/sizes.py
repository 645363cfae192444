"""The tracings of one model at several sizes, and what each dimension grows with."""

from __future__ import annotations

import dataclasses

import torch

from .error import ExportError
from .graph import dtype_name
from .tracing import same_structure, trace


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension at the first tracing, and what it grows with: "" (nothing), "N" or "size"."""

    size: int
    grows: str = ""
    factor: int = 0  # of N
    sizes: tuple = ()  # at every tracing; two dimensions are the same if these are

    @property
    def fixed(self):
        return self.grows == ""

    def __eq__(self, other):
        return isinstance(other, Dim) and self.sizes == other.sizes

    def __hash__(self):
        return hash(self.sizes)


def dim_of(sizes, batches, names):
    """The dimension that has these sizes at these batch sizes and input sizes."""
    first = sizes[0]
    by_batch = {size * batches[0] == first * batch for size, batch in zip(sizes, batches)}
    if len(set(sizes)) == 1:
        return Dim(first, sizes=tuple(sizes))
    if by_batch == {True} and first % batches[0] == 0:
        return Dim(first, "N", first // batches[0], tuple(sizes))
    if all(size == first for size, name in zip(sizes, names) if name == names[0]):
        return Dim(first, "size", sizes=tuple(sizes))
    return Dim(first, "both", sizes=tuple(sizes))


class Traces:
    """The tracings of one model, and the shapes of their nodes with what they grow with."""

    BATCHES = (2, 3, 2, 5)

    def __init__(self, model, samples):
        self.samples = samples
        self.first = self.trace(model, 2, False)
        self.all = [self.first, self.trace(model, 3, False)]
        if not same_structure(*self.all):
            raise ExportError("the model computes something else at batch 3 than at batch 2")
        self.lower = self.trace_lower(model)
        self.note = None
        self.open_size = any(sample.other for sample in samples) and self.add_other_size(model)
        if not self.open_size:
            self.all.append(self.trace(model, 5, False))

    def trace(self, model, batch, other):
        return trace(model, [s.tensor(batch, other and s.other) for s in self.samples])

    def trace_lower(self, model):
        """The tracing of the model in bfloat16, which says what each tensor's type follows; None: it has none."""
        samples = [s.tensor(2, False) for s in self.samples]
        samples = [s.bfloat16() if s.is_floating_point() else s for s in samples]
        try:
            lower = trace(model, samples, torch.bfloat16)
        except (AssertionError, RuntimeError, ValueError):
            return None
        return lower if same_structure(self.first, lower) else None

    def dtype_name(self, index):
        """The type of a node's tensor; "parameters" if it is that of the model's floating-point parameters."""
        dtype = first_tensor(self.first.values[index]).dtype
        if self.lower is None or dtype != torch.float32:
            return dtype_name(dtype)
        return "parameters" if self.dtype_in_lower(index) == torch.bfloat16 else dtype_name(dtype)

    def dtype_in_lower(self, index):
        return first_tensor(self.lower.values[index]).dtype

    def keeps_type(self, index, source):
        """Whether two nodes have one type, whatever that of the parameters is."""
        first = [first_tensor(self.first.values[each]).dtype for each in (index, source)]
        if first[0] != first[1]:
            return False
        return self.lower is None or self.dtype_in_lower(index) == self.dtype_in_lower(source)

    def add_other_size(self, model):
        try:
            others = [self.trace(model, batch, True) for batch in (2, 5)]
        except (AssertionError, RuntimeError) as error:
            self.note = f"only for this input size: {str(error).splitlines()[0]}"
            return False
        if not all(same_structure(self.first, other) for other in others):
            self.note = "only for this input size: at another one the model computes something else"
            return False
        self.all += others
        return True

    def fix_size(self):
        """Forgets the tracings at another input size."""
        self.all = self.all[:2]
        self.open_size = False

    @property
    def batches(self):
        return (2, 3, 2, 5) if self.open_size else (2, 3, 5)

    @property
    def names(self):
        return (0, 0, 1, 1) if self.open_size else (0, 0, 0)

    def dims(self, index):
        """The dimensions of a node's tensor; of its first one, if it gives several."""
        tensors = [first_tensor(trace.values[index]) for trace in self.all]
        ranks = {tensor.dim() for tensor in tensors}
        if len(ranks) > 1:
            raise ExportError(f"node {self.first.nodes[index].name} changes its rank")
        sizes = zip(*(tensor.shape for tensor in tensors))
        return [dim_of(size, self.batches, self.names) for size in sizes]


def first_tensor(value):
    while not isinstance(value, torch.Tensor):
        value = value[0]
    return value
