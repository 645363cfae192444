"""plan(): the layouts over GPUs that fit, the fastest with headroom first; `import gpumem` has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _gpumem
from ._answers import Answer, Assumption
from ._api import of_model
from ._arguments import KINDS, integer, number_of, text_of, words_of
from ._arguments import Path as _Path
from ._gpumem import Summary

if TYPE_CHECKING:
    import torch

    from ._api import _Examples

#: The names that `framework` takes, in addition to "any".
FRAMEWORKS: tuple[str, ...] = _gpumem.NAMES["frameworks"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """One way to run a job on several GPUs.

    framework: one of FRAMEWORKS.
    options: the options of estimate() that make it: "data_parallel", "batch_size", ...
    expected_bytes, upper_bytes: memory of the rank that takes most; headroom_bytes: what is left
        of the GPU above upper_bytes.
    step_seconds: time of a step by a roofline, not measured; step: its parts, in seconds.
    samples_per_second: of all GPUs. tokens_per_second_per_gpu: None for a model without tokens.
    settings_format, settings: the layout as the framework's settings, ready to paste.
    """

    framework: str
    options: dict[str, object]
    expected_bytes: int
    upper_bytes: int
    headroom_bytes: int
    step_seconds: float
    step: dict[str, float]
    samples_per_second: float
    tokens_per_second_per_gpu: float | None
    settings_format: str
    settings: str


@dataclasses.dataclass(frozen=True)
class Plan(Answer):
    """The fastest layouts that fit. str(plan) is the table that `gpumem plan` prints.

    gpus: the number of GPUs. layouts: the fastest first, those without headroom last; empty if none fits.
    candidates: how many layouts are possible: those that are too_large or slower got no estimate,
        the estimated ones did.
    refused: how many layouts each rule refused.
    assumed: what the times assume.
    """

    gpus: int
    global_batch: int
    layouts: tuple[Layout, ...]
    candidates: int
    too_large: int
    estimated: int
    slower: int
    refused: dict[str, int]
    assumed: tuple[Assumption, ...]


def plan(
    summary: Summary | _Path | torch.nn.Module,
    example_inputs: _Examples | None = None,
    *,
    global_batch: int,
    gpus: int | None = None,
    framework: str = "any",
    at_most_tensor_parallel: int | None = None, at_most_context_parallel: int | None = None,
    at_most_pipeline_parallel: int | None = None, at_most_expert_parallel: int | None = None,
    gpus_per_node: int | None = None, network_gbps: float | None = None, no_overlap: bool = False,
    show: int = 10,
    optimizer: str = "adamw",
    precision: str = "bf16-mixed",
    # options of plan(): begin
    input: str | Sequence[int] | None = None, seq_length: int | None = None,
    image: str | Sequence[int] | None = None, images: int | None = None, frames: int | None = None,
    seconds: int | None = None, parts: str | None = None, resident: int | None = None,
    ema: bool = False, loss: str = "cross-entropy", samples: int | None = None,
    loop: str = "script", transformers: str | None = None, batch_lengths: str = "alike",
    lengths: _Path | None = None, lengths_options: str | None = None, zero_grad: str | None = None,
    software: str | None = None, alloc_conf: str | None = None,
    reshard_after_forward: str = "default", semi_sync: str = "none",
    expert_imbalance: float | None = None, megatron_options: str | None = None,
    zero_reduce_bucket: int = 500_000_000, zero_prefetch_bucket: int = 50_000_000,
    zero_persistence_threshold: int = 100_000, zero_reuse_distance: int = 1_000_000_000,
    padding: bool | None = None, foreach: bool = True, fused: bool = False,
    optimizer_in_backward: bool = False, weight_decay: bool = False, prefetch: bool = False,
    cudnn_benchmark: bool = False, compile: bool = False, validation: bool = False,
    attention: str = "sdpa", offload: str = "none", block_swap: str = "none",
    kernels: str = "usual", freeze: str | None = None, train: str | None = None,
    lora: int | None = None, lora_targets: str | None = None, lora_dtype: str = "fp32",
    lora_dropout: float = 0.0, peft: str = "none", peft_options: str | None = None,
    quantize: str = "none", base_dtype: str = "precision", gpu: _Path = "a100-40gb",
    strict: bool = False,
    # options of plan(): end
    deadline_ms: int = 0,
) -> Plan:
    """The layouts over GPUs that fit, ranked by the time of a step; model and options are those of estimate().

    global_batch: samples a step, on all GPUs together.
    gpus: how many; None: the smallest of 1, 2, 4, ... on which a layout fits.
    framework: one of FRAMEWORKS, or "any".
    at_most_tensor_parallel, ...: the most ranks of this kind that a layout may have; None: any.
    gpus_per_node, network_gbps: None: from the GPU's profile.
    no_overlap: of Megatron's gradients and parameters with kernels, as without its options for that.
    show: how many layouts to find.

    Raises UsageError for a value out of range or an unknown name. If no layout fits, layouts is
    empty; that is not an error.
    """
    given = locals()
    asked = _question_of(given)
    options = {name: value for name, value in given.items() if name in KINDS}
    return of_model(summary, example_inputs, options,
                    lambda read, job: _plan_of(_gpumem.ask("plan", words_of({**job, **asked}, deadline_ms), read)))


#: Words that are whole numbers from 1.
_COUNTS = (
    "global_batch", "gpus", "gpus_per_node", "show", "at_most_tensor_parallel", "at_most_context_parallel",
    "at_most_pipeline_parallel", "at_most_expert_parallel",
)  # fmt: skip


def _question_of(given: dict[str, Any]) -> dict[str, str]:
    """The words that are not about the job."""
    words = {"framework": text_of("framework", given["framework"])}
    if given["no_overlap"]:
        words["no_overlap"] = "true"
    for name in _COUNTS:
        if given[name] is not None:
            words[name] = str(integer(name, given[name], 1))
    if given["network_gbps"] is not None:
        words["network_gbps"] = repr(number_of("network_gbps", given["network_gbps"]))
    return words


def _plan_of(report: _gpumem.Report) -> Plan:
    fields = report.fields()
    return Plan(
        gpus=fields["gpus"],
        global_batch=fields["global_batch"],
        layouts=tuple(_layout_of(layout) for layout in fields["layouts"]),
        candidates=fields["candidates"],
        too_large=fields["too_large"],
        estimated=fields["estimated"],
        slower=fields["slower"],
        refused={each["rule"]: each["layouts"] for each in fields["refused"]},
        assumed=tuple(Assumption(each["about"], each["text"]) for each in fields["assumed"]),
        report=report,
    )


def _layout_of(fields: dict[str, Any]) -> Layout:
    return Layout(
        framework=fields["framework"],
        options=fields["options"],
        expected_bytes=fields["estimate"]["expected_bytes"],
        upper_bytes=fields["estimate"]["upper_bytes"],
        headroom_bytes=fields["headroom_bytes"],
        step_seconds=fields["step_seconds"],
        step=fields["step"],
        samples_per_second=fields["samples_per_second"],
        tokens_per_second_per_gpu=fields["tokens_per_second_per_gpu"],
        settings_format=fields["settings"]["format"],
        settings=fields["settings"]["text"],
    )
