"""The functions of gpumem; `import gpumem` has them all."""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

from . import _gpumem
from ._answers import Assumption, Bin, Estimate, EstimatorInfo, Fit, Gpu, Peak
from ._arguments import KINDS, OPTIONS_HELP, file_name, integer, job_of, words_of
from ._arguments import Path as _Path
from ._errors import Error, ExportError, UsageError
from ._gpumem import Summary as Summary
from .record import RecordError, record

if TYPE_CHECKING:
    import torch

    _Examples = Union[torch.Tensor, Sequence[torch.Tensor], Mapping[str, torch.Tensor]]

__version__: str = _gpumem.VERSION
_Told = TypeVar("_Told")
_Ask = Callable[[Summary, Mapping[str, _gpumem.Word]], _Told]

#: The names that `optimizer`, `precision`, `loss`, `loop` and `transformers` take.
OPTIMIZERS: tuple[str, ...] = _gpumem.NAMES["optimizers"]
PRECISIONS: tuple[str, ...] = _gpumem.NAMES["precisions"]
LOSSES: tuple[str, ...] = _gpumem.NAMES["losses"]
LOOPS: tuple[str, ...] = _gpumem.NAMES["loops"]
TRANSFORMERS: tuple[str, ...] = _gpumem.NAMES["transformers"]
#: The names that `attention`, `offload`, `schedule` and `zero_grad` take.
ATTENTIONS: tuple[str, ...] = _gpumem.NAMES["attentions"]
OFFLOADS: tuple[str, ...] = _gpumem.NAMES["offloads"]
SCHEDULES: tuple[str, ...] = _gpumem.NAMES["schedules"]
ZERO_GRADS: tuple[str, ...] = _gpumem.NAMES["zero_grads"]
#: The names that `sharding` takes; the N of "hsdp:N" is a number.
SHARDINGS: tuple[str, ...] = _gpumem.NAMES["shardings"]


def read_summary(
    path: _Path | None = None,
    *,
    text: str | bytes | None = None,
    lenient: bool = False,
    largest_bytes: int = 16 << 20,
    deadline_ms: int = 0,
) -> Summary:
    """Reads a model summary from a file, or from a text in memory.

    path: a regular file, also through symbolic links; a pipe or a device is refused unopened.
    text: the summary itself, instead of a path.
    lenient: unknown layers that hold parameters are counted instead of bounded; then estimates are
        lower bounds and no job is known to fit.
    largest_bytes: longer files are refused before they are read.
    deadline_ms: how long it may take; 0: no limit.

    Raises InputError, naming file and line; NoEstimateError if a size does not fit 64 bits or
    the deadline is over.
    """
    deadline = integer("deadline_ms", deadline_ms, 0)
    if text is not None:
        if path is not None:
            raise TypeError("read_summary() takes a path or a text, not both")
        content = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return _gpumem.read_text(bytes(content), bool(lenient), deadline)
    if path is None:
        raise TypeError("read_summary() takes a path or a text")
    largest = integer("largest_bytes", largest_bytes, 1)
    return _gpumem.read_file(file_name(path), bool(lenient), largest, deadline)


def estimate(
    summary: Summary | _Path | torch.nn.Module,
    example_inputs: _Examples | None = None,
    *,
    batch_size: int | None = None,
    # options of estimate(): begin
    input: str | Sequence[int] | None = None, seq_length: int | None = None,
    image: str | Sequence[int] | None = None, images: int | None = None, frames: int | None = None,
    seconds: int | None = None, parts: str | None = None, resident: int | None = None,
    ema: bool = False, optimizer: str = "adam", precision: str = "fp32",
    loss: str = "cross-entropy", samples: int | None = None, loop: str = "script",
    transformers: str | None = None, batch_lengths: str = "alike", lengths: _Path | None = None,
    lengths_options: str | None = None, zero_grad: str | None = None, software: str | None = None,
    alloc_conf: str | None = None, accumulate: int = 1, data_parallel: int = 1,
    sharding: str = "none", reshard_after_forward: str = "default", semi_sync: str = "none",
    tensor_parallel: int = 1, sequence_parallel: bool = False, pipeline_parallel: int = 1,
    virtual_stages: int = 1, schedule: str = "1f1b", pipeline_layers: str | None = None,
    first_stage_layers: int | None = None, last_stage_layers: int | None = None,
    context_parallel: int = 1, expert_parallel: int = 1, expert_imbalance: float | None = None,
    megatron_options: str | None = None, rank: str = "max", zero_reduce_bucket: int = 500_000_000,
    zero_prefetch_bucket: int = 50_000_000, zero_persistence_threshold: int = 100_000,
    zero_reuse_distance: int = 1_000_000_000, padding: bool | None = None, foreach: bool = True,
    fused: bool = False, optimizer_in_backward: bool = False, weight_decay: bool = False,
    prefetch: bool = False, cudnn_benchmark: bool = False, compile: bool = False,
    validation: bool = False, checkpointing: bool | str = False, attention: str = "sdpa",
    offload: str = "none", block_swap: str = "none", kernels: str = "usual",
    freeze: str | None = None, train: str | None = None, lora: int | None = None,
    lora_targets: str | None = None, lora_dtype: str = "fp32", lora_dropout: float = 0.0,
    peft: str = "none", peft_options: str | None = None, quantize: str = "none",
    base_dtype: str = "precision", gpu: _Path = "a100-40gb", estimator: str = "replay",
    model: _Path | None = None, strict: bool = False,
    # options of estimate(): end
    deadline_ms: int = 0,
) -> Estimate:
    """The memory that a training job takes on one GPU; the options are those of `gpumem estimate`.

    summary: what read_summary() returns, a path, or a module of PyTorch. Keep the Summary to make further
        estimates of it cheaper.
    example_inputs: of a module, as estimate_module() takes them; without batch_size, theirs is taken.

    Raises UsageError for a value out of range or an unknown name; NoEstimateError if the summary
    says too little for this estimate; InputError if the summary, profile or model cannot be read.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    if batch_size is None and not is_module(summary):
        raise TypeError("estimate() needs a batch_size: only the example inputs of a module have one")
    return of_model(summary, example_inputs, options, lambda read, job: _estimated(read, job, deadline_ms))


estimate.__doc__ = (estimate.__doc__ or "") + OPTIONS_HELP


def fit(
    summary: Summary | _Path | torch.nn.Module,
    example_inputs: _Examples | None = None,
    *,
    batch_size: int | None = None, find: str | None = None,
    # options of fit(): begin
    input: str | Sequence[int] | None = None, seq_length: int | None = None,
    image: str | Sequence[int] | None = None, images: int | None = None, frames: int | None = None,
    seconds: int | None = None, parts: str | None = None, resident: int | None = None,
    ema: bool = False, optimizer: str = "adam", precision: str = "fp32",
    loss: str = "cross-entropy", samples: int | None = None, loop: str = "script",
    transformers: str | None = None, batch_lengths: str = "alike", lengths: _Path | None = None,
    lengths_options: str | None = None, zero_grad: str | None = None, software: str | None = None,
    alloc_conf: str | None = None, accumulate: int = 1, data_parallel: int = 1,
    sharding: str = "none", reshard_after_forward: str = "default", semi_sync: str = "none",
    tensor_parallel: int = 1, sequence_parallel: bool = False, pipeline_parallel: int = 1,
    virtual_stages: int = 1, schedule: str = "1f1b", pipeline_layers: str | None = None,
    first_stage_layers: int | None = None, last_stage_layers: int | None = None,
    context_parallel: int = 1, expert_parallel: int = 1, expert_imbalance: float | None = None,
    megatron_options: str | None = None, rank: str = "max", zero_reduce_bucket: int = 500_000_000,
    zero_prefetch_bucket: int = 50_000_000, zero_persistence_threshold: int = 100_000,
    zero_reuse_distance: int = 1_000_000_000, padding: bool | None = None, foreach: bool = True,
    fused: bool = False, optimizer_in_backward: bool = False, weight_decay: bool = False,
    prefetch: bool = False, cudnn_benchmark: bool = False, compile: bool = False,
    validation: bool = False, checkpointing: bool | str = False, attention: str = "sdpa",
    offload: str = "none", block_swap: str = "none", kernels: str = "usual",
    freeze: str | None = None, train: str | None = None, lora: int | None = None,
    lora_targets: str | None = None, lora_dtype: str = "fp32", lora_dropout: float = 0.0,
    peft: str = "none", peft_options: str | None = None, quantize: str = "none",
    base_dtype: str = "precision", gpu: _Path = "a100-40gb", estimator: str = "replay",
    model: _Path | None = None, strict: bool = False,
    # options of fit(): end
    deadline_ms: int = 0,
) -> Fit:
    """The largest batch that fits the GPU; model and options are those of estimate().

    batch_size: find the longest sequence at this batch size instead; without seq_length.
    find: "batch", "sequence", "image" (of the shape of `image`), "images" or "frames", at batch_size or 1.
    If not even the smallest fits, the answer's estimate is None.

    Raises what estimate() does there; NoEstimateError if layers are unknown; UsageError for a batch_size
    or a seq_length that is looked for, and for another `find`.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    if batch_size is None:
        del options["batch_size"]
    return of_model(summary, example_inputs, options, lambda read, job: _fit_of(read, job, find, deadline_ms), scale=True)


def estimate_module(
    module: torch.nn.Module,
    example_inputs: _Examples,
    *,
    batch_size: int | None = None,
    # options of estimate_module(): begin
    image: str | Sequence[int] | None = None, images: int | None = None, frames: int | None = None,
    seconds: int | None = None, parts: str | None = None, resident: int | None = None,
    ema: bool = False, optimizer: str = "adam", precision: str = "fp32",
    loss: str = "cross-entropy", samples: int | None = None, loop: str = "script",
    transformers: str | None = None, batch_lengths: str = "alike", lengths: _Path | None = None,
    lengths_options: str | None = None, zero_grad: str | None = None, software: str | None = None,
    alloc_conf: str | None = None, accumulate: int = 1, data_parallel: int = 1,
    sharding: str = "none", reshard_after_forward: str = "default", semi_sync: str = "none",
    tensor_parallel: int = 1, sequence_parallel: bool = False, pipeline_parallel: int = 1,
    virtual_stages: int = 1, schedule: str = "1f1b", pipeline_layers: str | None = None,
    first_stage_layers: int | None = None, last_stage_layers: int | None = None,
    context_parallel: int = 1, expert_parallel: int = 1, expert_imbalance: float | None = None,
    megatron_options: str | None = None, rank: str = "max", zero_reduce_bucket: int = 500_000_000,
    zero_prefetch_bucket: int = 50_000_000, zero_persistence_threshold: int = 100_000,
    zero_reuse_distance: int = 1_000_000_000, padding: bool | None = None, foreach: bool = True,
    fused: bool = False, optimizer_in_backward: bool = False, weight_decay: bool = False,
    prefetch: bool = False, cudnn_benchmark: bool = False, compile: bool = False,
    validation: bool = False, checkpointing: bool | str = False, attention: str = "sdpa",
    offload: str = "none", block_swap: str = "none", kernels: str = "usual",
    freeze: str | None = None, train: str | None = None, lora: int | None = None,
    lora_targets: str | None = None, lora_dtype: str = "fp32", lora_dropout: float = 0.0,
    peft: str = "none", peft_options: str | None = None, quantize: str = "none",
    base_dtype: str = "precision", gpu: _Path = "a100-40gb", estimator: str = "replay",
    model: _Path | None = None, strict: bool = False,
    # options of estimate_module(): end
    deadline_ms: int = 0,
) -> Estimate:
    """The memory that training a PyTorch module takes. Its graph is exported, as by export_module(); if that is not
    possible, a training step of it is recorded (PyTorch 2.1 or later). The answer's made_from says which it was.

    batch_size: samples; None: that of the example inputs. The other options are those of
    estimate(); deadline_ms is that of the estimate, not of the export. For several estimates of one module, read it once with read_module().

    Raises what read_module() and estimate() do. Learned estimators, samples, validation, checkpointing, another loop, adapters,
    frozen and quantised layers need the graph: with these, a module that cannot be exported is an ExportError.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    return _of_module(module, example_inputs, options, lambda read, job: _estimated(read, job, deadline_ms))


def read_module(
    module: torch.nn.Module,
    example_inputs: _Examples,
    *,
    optimizer: str = "adam",
    precision: str = "fp32",
    loss: str = "cross-entropy",
    zero_grad: str = "before-forward",
    accumulate: int = 1,
    weight_decay: bool = False,
    prefetch: bool = False,
) -> Summary:
    """A PyTorch module for any number of estimates, at any batch size: its graph from export_module() or, if that is
    not possible, a recording of its training step (PyTorch 2.1 or later).

    A recording holds these options, which a graph leaves to estimate(); the Summary's format says which it is:
    "graph_json" or "recording".

    Raises what export_module() does if neither is possible.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    examples = _examples(module, example_inputs)
    try:
        return export_module(module, examples)
    except ExportError as error:
        batch = max(int(examples[0].shape[0]), 2)  # At 1, PyTorch's strides are special.
        return _recorded_module(module, examples, {**options, "batch_size": batch}, error, scale=True)


def export_module(
    module: torch.nn.Module,
    example_inputs: _Examples,
    *,
    name: str | None = None,
) -> Summary:
    """The graph of a PyTorch module in training mode, with every operation of its forward pass.

    example_inputs: what forward() takes: a tensor, several in its order, or by the names of its
        parameters; of each only shape and dtype matter (torch.empty will do, also on "meta"). The
        first axis is the batch.
    name: of the model; None: its class.

    The module is not changed and nothing is computed: a copy without storage is traced by torch.fx
    at several batch sizes. While it is, torch.fx changes torch.nn.Module for the whole process:
    exports wait for each other, and no other thread should run a module meanwhile.

    Raises ExportError, naming the node; ImportError without PyTorch (1.13 or later).
    """
    examples = _examples(module, example_inputs)
    from . import export_graph  # Needs PyTorch, which all else does without.

    with _EXPORT:
        try:
            text = export_graph.export_graph(module, examples, name or type(module).__name__)
        except export_graph.ExportError as error:
            raise ExportError(str(error), "not_exportable") from error
    try:
        read = read_summary(text=text)
    except Error as error:  # A graph that this library cannot read.
        raise ExportError(str(error), "not_exportable") from error
    read._of_class = name or type(module).__name__
    return read


def estimate_step(
    make_step: Callable[..., Any],
    *,
    batch_size: int,
    sequence_length: int | None = None,
    gpu: _Path = "a100-40gb",
    estimator: str = "replay",
    software: str | None = None,
    alloc_conf: str | None = None,
    deadline_ms: int = 0,
) -> Estimate:
    """The memory that a training step of any PyTorch program takes; the step is recorded by record.step().

    make_step: make_step(batch_size), or make_step(batch_size, sequence_length), builds model and
        optimizer on "cuda" and returns a function that makes one training step.
    batch_size, sequence_length: the job's; the step is recorded at these sizes only.

    The other options are those of estimate(). Optimizer, precision and checkpointing are the
    program's own. To estimate many sizes, record once with record.step() and read that.

    Raises what record.step() and estimate() do; ImportError without PyTorch.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    text = record.step(make_step, batch_size, sequence_length, scale=False)
    if sequence_length is not None:
        options["seq_length"] = sequence_length
    return _estimated(read_summary(text=text), job_of(options), deadline_ms)


def gpus() -> list[Gpu]:
    """The GPUs and MIG slices that gpumem knows, by name."""
    rows: list[dict[str, Any]] = _gpumem.ask("gpus", ()).fields()
    for row in rows:
        row.update(aliases=tuple(row["aliases"]), software=tuple(row["software"]))
    return [Gpu(**row) for row in rows]


def estimators() -> list[EstimatorInfo]:
    """The estimators."""
    return [EstimatorInfo(**row) for row in _gpumem.ask("estimators", ()).fields()]


# ------------------------------------------------------------------------------ for the library

_EXPORT = threading.Lock()
# A daemon thread that is still estimating when the interpreter goes is waited for.
atexit.register(_gpumem.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_gpumem.forget)


def is_module(model: object) -> bool:
    """Whether it is one of PyTorch's; without PyTorch, also where its import is barred or not done, nothing is."""
    return isinstance(model, getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", ()))


def of_model(
    model: Summary | _Path | torch.nn.Module, example_inputs: _Examples | None, options: dict[str, Any],
    ask: _Ask[_Told], scale: bool = False,
) -> _Told:
    """What `ask` says of the model with these options of a job."""
    if is_module(model):
        return _of_module(model, example_inputs, options, ask, scale)
    if example_inputs is not None:
        raise TypeError("example_inputs are for a module")
    job = job_of(options)
    return ask(_summary(model, job), job)


def _of_module(
    module: torch.nn.Module, example_inputs: _Examples | None, options: dict[str, Any], ask: _Ask[_Told], scale: bool = False
) -> _Told:
    """One without a graph is recorded, at several sizes with `scale`."""
    if any(options.get(name) is not None for name in ("input", "seq_length")):
        raise UsageError("a module's example inputs say what `input` and `seq_length` would: leave these out")
    if example_inputs is None:
        raise TypeError("a module needs example_inputs, such as torch.empty(32, 3, 224, 224)")
    examples = _examples(module, example_inputs)
    if "batch_size" in options and options["batch_size"] is None:
        options["batch_size"] = examples[0].shape[0]
    try:
        return ask(export_module(module, examples), job_of(options))
    except Error as error:
        if not _is_of_the_graph(error):
            raise
        batch = options.get("batch_size", max(int(examples[0].shape[0]), 2))  # At 1, PyTorch's strides are special.
        recorded = _recorded_module(module, examples, {**options, "batch_size": batch}, error, scale)
    return ask(recorded, job_of({name: value for name, value in options.items() if name not in _RECORDED}))


def _summary(summary: Summary | _Path, job: Mapping[str, _gpumem.Word]) -> Summary:
    """Of a job: what is wrong with that is told before a file is opened."""
    if isinstance(summary, Summary):
        return summary
    _gpumem.ask("job", job.items())
    return read_summary(summary)


_MADE_FROM = {"graph_json": "graph", "recording": "recording"}


def _estimated(read: Summary, job: Mapping[str, _gpumem.Word], deadline_ms: int) -> Estimate:
    return _estimate_of(_gpumem.ask("estimate", words_of(job, deadline_ms), read), read)


def _fit_of(read: Summary, job: Mapping[str, _gpumem.Word], find: str | None, deadline_ms: int) -> Fit:
    words = words_of(job if find is None else {**job, "find": find}, deadline_ms)
    report = _gpumem.ask("fit", words, read)
    figures = report.figures()
    figures["image"] = figures["image"] and tuple(figures["image"])
    found, one_more = (_estimate_within(report, part, read) for part in ("estimate", "one_more"))
    return Fit(report=report, estimate=found, one_more=one_more, **figures)


def _estimate_within(fit: _gpumem.Report, part: str, read: Summary) -> Estimate | None:
    report = fit.part(part)
    return None if report is None else _estimate_of(report, read)


def _estimate_of(report: _gpumem.Report, read: Summary) -> Estimate:
    figures = report.figures()
    peak = figures["peak"]
    coverage = figures["coverage"]
    told = {name: size for name, size in figures["breakdown"].items() if size is not None}
    report.about = read._of_class
    return Estimate(
        **{name: figures[name] for name in _PLAIN},
        breakdown=told if any(told.values()) else None,
        peak=None if peak is None else Peak(**peak),
        assumed=tuple(Assumption(**each) for each in figures["assumed"]),
        bins=tuple(Bin(**each) for each in figures.get("bins", ())),
        out_of_domain=tuple(figures.get("out_of_domain", ())),
        warnings=tuple(figures["warnings"]),
        layers=coverage["layers_total"],
        unknown_layers=coverage["layers_unknown"],
        model=figures.get("model"),
        made_from=_MADE_FROM.get(read.format, "summary"),
        report=report,
    )


#: The fields of Estimate that are figures as they are.
_PLAIN = ("expected_bytes", "lower_bytes", "upper_bytes", "upper_uncut_bytes", "upper_coverage", "allocated_bytes",
          "reserved_bytes", "device_bytes", "gpus", "capacity_bytes", "fits", "verdict", "most_needed_bytes", "retries", "batch_size",
          "estimator", "gpu")
#: Options that a recording of a module holds, and those that it cannot follow.
_RECORDED = ("precision", "loss", "zero_grad", "accumulate", "optimizer_in_backward", "weight_decay", "prefetch")
_ADAPTING = ("freeze", "train", "lora", "lora_targets", "lora_dtype", "lora_dropout", "peft",
             "peft_options", "quantize", "base_dtype")
_LOOPING = ("loop", "transformers", "batch_lengths", "lengths", "lengths_options", "padding", "attention", "offload",
            "block_swap", "kernels")
_SEVERAL_GPUS = ("sharding", "reshard_after_forward", "semi_sync", "tensor_parallel", "sequence_parallel",
                 "pipeline_parallel", "virtual_stages", "schedule", "pipeline_layers", "first_stage_layers",
                 "last_stage_layers", "context_parallel", "expert_parallel", "expert_imbalance", "megatron_options",
                 "rank", "zero_reduce_bucket", "zero_prefetch_bucket", "zero_persistence_threshold",
                 "zero_reuse_distance")
_NEED_A_GRAPH = ("samples", "validation", "checkpointing", "model", *_LOOPING, *_ADAPTING, *_SEVERAL_GPUS)


def _is_of_the_graph(error: Error) -> bool:
    """Whether the module has no graph, or one in which a layer's memory cannot be told."""
    of_layer = error.file is None and error.element is not None
    return isinstance(error, ExportError) or (of_layer and error.code in ("missing_information", "malformed_input"))


def _recorded_module(
    module: torch.nn.Module, examples: list[torch.Tensor], options: Mapping[str, Any], error: Error, scale: bool
) -> Summary:
    """The recording of a module that has no graph, as `error` says; raises that if it cannot be recorded either."""
    usual = {name: value for name, _, value, _ in _gpumem.OPTIONS}
    needs = [name for name in _NEED_A_GRAPH if options.get(name, usual[name]) not in (usual[name], None)]
    if options.get("estimator", "replay") != "replay":
        needs.append("estimator")
    if options.get("loss", usual["loss"]) not in LOSSES:
        needs.append("loss")
    if str(options.get("precision", usual["precision"])).endswith("-mixed"):
        needs.append("precision")
    if needs:
        raise ExportError(f"{error}; without {', '.join(needs)} it would be recorded instead", error.code) from error
    wanted = (*_RECORDED, "optimizer", "foreach", "fused")
    chosen = {name: options[name] for name in wanted if options.get(name) is not None}
    try:
        text = record.module(module, examples, int(options["batch_size"]), scale=scale, **chosen)
    except Exception as other:  # Whatever the model's own code raises.
        kind = "" if isinstance(other, RecordError) else f"{type(other).__name__}: "
        raise ExportError(f"{error}; nor can it be recorded: {kind}{other}", error.code) from other
    read = read_summary(text=text)
    read._of_class = type(module).__name__
    return read


def _examples(
    module: torch.nn.Module,
    inputs: _Examples,
) -> list[torch.Tensor]:
    """In the order of forward()'s parameters."""
    if isinstance(inputs, Mapping):
        names = list(inspect.signature(module.forward).parameters)[: len(inputs)]
        if set(names) != set(inputs):
            raise UsageError(
                f"the example inputs are {', '.join(map(str, inputs))}; forward() begins with "
                f"{', '.join(names)}: give its first parameters, without a gap"
            )
        examples = [inputs[name] for name in names]
    else:
        examples = [inputs] if hasattr(inputs, "shape") else list(inputs)
    for example in examples:
        if not hasattr(example, "dtype") or len(getattr(example, "shape", ())) == 0:
            raise UsageError("an example input is a tensor with the batch as its first axis")
    if not examples:
        raise UsageError("there are no example inputs")
    return examples
