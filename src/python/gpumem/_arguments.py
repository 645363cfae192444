"""The options of the functions, and how each argument is passed to the extension."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import _gpumem
from ._errors import UsageError

#: How a path is given.
Path = Union[str, "os.PathLike[str]"]

#: What estimate() says about its options.
OPTIONS_HELP = """
    The options:

    batch_size: samples, 1 or more.
    gpu: a name of gpus(), or a path (with a '/', or ending in .json) to a profile of your own.
    estimator: a name of estimators().
    optimizer, precision, loss, zero_grad: one of OPTIMIZERS, PRECISIONS, LOSSES, ZERO_GRADS; the
        cross entropy of a language model can also be "chunked:128", "fused", "fused-ce" or "compiled".
    transformers: one of TRANSFORMERS: for HuggingFace's models, the release that computes the loss.
    batch_lengths: "alike", or "longest-first": the first batch is the longest, as in litgpt.
    loop: one of LOOPS, the program that trains; zero_grad then defaults to that program's place.
    input: one sample's shape, "3x224x224" or (3, 224, 224); None: the summary's.
    seq_length: tokens a sample; None: the summary's.
    model: for learned estimators: a built-in model, or the path of a model's folder; None: the default one.
    samples: samples in an epoch, which decide how large the last batch is; None: every batch is full.
    software: a software stack that the GPU's profile names; None: its first.
    alloc_conf: the value of PYTORCH_CUDA_ALLOC_CONF; None: PyTorch's defaults.
    accumulate: forward-backward passes a step.
    data_parallel: GPUs that train together, each on a batch of its own; sharding: one of SHARDINGS,
        which parameters, gradients and states each of them holds.
    tensor_parallel, pipeline_parallel, context_parallel, expert_parallel: GPUs that share each layer,
        that hold the layers one after another, that share positions, that share experts.
        sequence_parallel, virtual_stages, and schedule (one of SCHEDULES) belong to them. rank: the
        GPU to estimate: "max" (the one that takes most), "last", or a number as text.
    zero_reduce_bucket, zero_prefetch_bucket, zero_persistence_threshold, zero_reuse_distance: from
        DeepSpeed's zero_optimization, in elements.
    foreach, fused: the optimizer's multi-tensor form, PyTorch's default, and its fused form.
    weight_decay: the optimizer decays the weights.
    padding: batches of tokens hold padding, so that attention has a mask; always so with loop="hf-trainer".
    prefetch: copy the next batch to the GPU while a step runs.
    cudnn_benchmark: torch.backends.cudnn.benchmark; makes the range wider.
    compile: torch.compile of the blocks: backward recomputes elementwise results; the range reaches
        further down. loss="compiled" compiles the loss too.
    validation: a validation pass without gradients after each epoch.
    checkpointing: activation checkpointing; or its kind: "full:4", "every:2", "selective-op",
        "selective-attention", "selective:mlp+self_attn" (modules by name).
    attention, offload: one of ATTENTIONS and of OFFLOADS.
    freeze, train: layers or parameters that are not trained, or that are: patterns of names, separated
        by commas. train without freeze: only these are trained.
    lora: the rank of adapters on a frozen base (LoRA); lora_targets: "q_proj+v_proj", "all-linear", or
        None for PEFT's for the model; lora_dtype, lora_dropout: the adapters' type, and the dropout
        before each.
    peft: the kind of adapters, "dora" or "ia3", of which lora is the rank; peft_options: its settings by PEFT's names,
        "n_frequency=1000".
    quantize: how the frozen linear layers are held: "nf4", "nf4-double", "int8", "gptq-4bit";
        "float8": products copy their operands to eight bits; nothing is frozen.
    base_dtype: the type of frozen weights that are not quantised: "fp32", "bf16", "fp16";
        "precision": the precision's type.
    strict: refuse a summary that does not say what its layers read; False: guess.
    For a recording, options at their defaults keep what was recorded.
    deadline_ms: how long it may take; 0: no limit.
"""

_INT64 = range(-(1 << 63), 1 << 63)
#: The options of a job by their kinds. read_summary() decides whether unknown layers are accepted.
KINDS = {name: kind for name, kind, _, _ in _gpumem.OPTIONS if name != "lenient"}
_MAY_BE_NONE = {
    name for name, _, usual, _ in _gpumem.OPTIONS if usual is None and name != "batch_size"
}


def integer(name: str, value: int, least: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a whole number, not {kind}") from None
    if number not in _INT64 or (least is not None and number < least):
        wanted = "a number of 64 bits" if least is None else f"at least {least}, and of 64 bits"
        raise UsageError(f"{name} must be {wanted}")
    return number


def number_of(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a float, not {type(value).__name__}")
    return float(value)


def text_of(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    # What is not text (a lone surrogate) becomes a name that does not exist.
    return value.encode("utf-8", "replace").decode("utf-8")


def file_name(path: Path) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise UsageError("a path has no NUL bytes")
    return name


def _shape(name: str, shape: str | Sequence[int]) -> str:
    if isinstance(shape, str):
        return text_of(name, shape)
    return "x".join(str(integer(f"a size of {name}", size, 1)) for size in shape)


#: Converts an argument for the extension, by the option's kind.
_TAKE: dict[str, Callable[[str, Any], object]] = {
    "flag": lambda name, value: bool(value),
    "whole_number": integer,
    "fraction": number_of,
    "text": text_of,
    "choice": text_of,
    "switch_or_choice": lambda name, value: text_of(name, value) if isinstance(value, str) else bool(value),
    "name_or_path": lambda name, value: file_name(value),
    "dimensions": _shape,
}


def job_of(arguments: Mapping[str, Any]) -> _gpumem.Job:
    """The job that a function's arguments describe; None is an option that is not given."""
    options: dict[str, object] = {}
    for name, kind in KINDS.items():
        if name not in arguments or (arguments[name] is None and name in _MAY_BE_NONE):
            continue
        options[name] = _TAKE[kind](name, arguments[name])
    return _gpumem.Job(options)
