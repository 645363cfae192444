"""What gpumem's functions return; `import gpumem` has them all."""

from __future__ import annotations

import dataclasses

from . import _gpumem


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the command line prints too: str(answer) as text, answer.json() as JSON. report is the source of both."""

    report: _gpumem.Report = dataclasses.field(repr=False, compare=False)

    def json(self) -> str:
        """What the command line prints with --json."""
        return self.report.json()

    def __str__(self) -> str:
        return self.report.text()


@dataclasses.dataclass(frozen=True)
class Peak:
    """Where in the training run the live tensors take most memory."""

    layer: str | None  #: its path; None: not in a layer (a batch, the loss)
    class_name: str | None  #: of the layer: "Conv2d"
    phase: str  #: "construction", "forward", "backward", ...
    step: int  #: 1 for the first training step, 0 before it
    text: str  #: all of that for people, and what takes most then


@dataclasses.dataclass(frozen=True)
class Bin:
    """A memory bin of a classifier, and how likely it holds the job."""

    lower_bytes: int
    upper_bytes: int
    probability: float


@dataclasses.dataclass(frozen=True)
class Assumption:
    """Something that an estimate assumes: the job did not say it, or it was not measured."""

    about: str  #: "context", "capacity", "edges", "guess", "precision", "recording", ...
    text: str  #: one clause for people


@dataclasses.dataclass(frozen=True)
class EstimatorInfo:
    """An estimator."""

    name: str  #: for estimate(estimator=...)
    description: str  #: one line


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU or MIG slice that gpumem knows."""

    name: str  #: for estimate(gpu=...)
    title: str  #: "NVIDIA A100 40GB"
    aliases: tuple[str, ...]  #: other names for it
    memory_bytes: int  #: nominal
    capacity_bytes: int  #: what jobs can use
    sm_count: int | None
    memory_bandwidth_bytes_per_second: int | None
    software: tuple[str, ...]  #: stacks for estimate(software=...), the first is the default


@dataclasses.dataclass(frozen=True)
class Estimate(Answer):
    """What a job takes on one GPU. str(estimate) is the table that `gpumem estimate` prints.

    expected_bytes: the best single figure.
    lower_bytes, upper_bytes: its range; upper is what a scheduler reserves. Both equal expected
        if the estimator gives no range.
    upper_uncut_bytes: upper as it would be on a GPU of any size; more than upper_bytes where capacity cuts that.
    upper_coverage: the share of measured runs that upper covers, 0 to 1; None: no runs of such a
        job on such a GPU were measured.
    assumed: what the estimate assumes, because the job did not say it or it was not measured.
    allocated_bytes: peak of live tensors: torch.cuda.max_memory_allocated.
    reserved_bytes: peak of PyTorch's allocator: torch.cuda.max_memory_reserved.
    device_bytes: CUDA context plus reserved: what nvidia-smi shows.
    gpus: how many GPUs the job's layout takes; the figures are for the GPU that takes most. 1 if a rank is named.
    capacity_bytes: what jobs can use of the GPU.
    verdict: "fits"; "tight": it is expected to fit, but may need more than there is, or the allocator
        must give back its cache; "does_not_fit"; "unknown" if only a lower bound is known.
    most_needed_bytes: what the job needs at most, without the memory that the allocator caches.
    fits: whether it is known to fit; where such jobs were measured, also if it is tight.
    made_from: "summary" (a text), "graph" (exported from a PyTorch module) or "recording".
    retries: how often the allocator must give back its cache for the job to fit, which slows it down.
    breakdown: the parts of expected_bytes, which sum to it: "context", "parameters",
        "gradients", "optimizer", "activations", "temporaries", "workspace", "fragmentation";
        on several GPUs also "gathered" and "communication", where they hold something;
        None if the estimator has none.
    peak: where in the run the live tensors take most memory.
    bins: for classifiers: all of their bins in rising order.
    out_of_domain: for learned estimators: the features in which the job is unlike the training
        runs. Do not trust the figures if there are any.
    warnings: what was odd about the summary, one line each.
    layers, unknown_layers: of the model; if any layer is unknown, all figures are lower bounds.
    batch_size, estimator, gpu: what was asked for, and for which GPU.
    model: for learned estimators, the trained model.
    """

    expected_bytes: int
    lower_bytes: int
    upper_bytes: int
    upper_uncut_bytes: int
    upper_coverage: float | None
    assumed: tuple[Assumption, ...]
    allocated_bytes: int | None
    reserved_bytes: int | None
    device_bytes: int | None
    gpus: int
    capacity_bytes: int
    fits: bool
    verdict: str
    most_needed_bytes: int
    retries: int
    breakdown: dict[str, int] | None
    peak: Peak | None
    bins: tuple[Bin, ...]
    out_of_domain: tuple[str, ...]
    warnings: tuple[str, ...]
    layers: int
    unknown_layers: int
    batch_size: int
    estimator: str
    model: str | None
    gpu: str
    made_from: str


@dataclasses.dataclass(frozen=True)
class Fit(Answer):
    """The largest batch that fits a GPU, or the largest of something else. str(fit) is the line that `gpumem fit` prints.

    find: what was looked for: "batch", "sequence", "image", "images" or "frames".
    size: the largest of it that is expected to fit, be it tight; 0: not even the smallest fits. Of an image the
        pixels of its longer side. One more does not fit; a much larger one may fit by chance.
    batch_size: `size` where the batch was looked for, else the batch size that was asked for.
    sequence_length: `size` where the longest sequence was looked for, else None.
    image: width and height where the largest image was looked for and one fits, else None.
    safe: the largest size whose verdict is "fits"; 0: none.
    without_flushes: the largest for which the allocator gives back no cached memory; 0: none.
    at_least: the largest size that is tried (1,048,576 samples, 4,194,304 tokens, images of 16,384 pixels, 4,096
        images or frames) fits, and perhaps more.
    model_ends: why the model takes no more; None if memory is the limit.
    estimate: what the job takes at that size; None if nothing fits.
    one_more: what it takes with one more; None with at_least, model_ends, or beyond 64 bits.
    estimates_made: how many estimates were made to find it.
    """

    batch_size: int
    safe: int
    without_flushes: int
    at_least: bool
    estimate: Estimate | None
    one_more: Estimate | None
    estimates_made: int
    sequence_length: int | None
    model_ends: str | None
    find: str
    size: int
    image: tuple[int, int] | None
