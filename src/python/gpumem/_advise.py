"""advise(): what would make a job fit; `import gpumem` has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _gpumem
from ._answers import Answer
from ._api import is_module, of_model
from ._arguments import KINDS, words_of
from ._arguments import Path as _Path
from ._gpumem import Summary

if TYPE_CHECKING:
    import torch

    from ._api import _Examples


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a job that takes less memory.

    settings: options of estimate() and what they become: {"fused": "true"}.
    cost: what it costs, in a few words.
    same_result: the job learns what it learns without it, but for rounding.
    expected_bytes, upper_bytes, fits: what the job takes then, and whether it surely fits. None, where no estimate can be made.
    """

    settings: dict[str, str]
    cost: str
    same_result: bool
    expected_bytes: int | None
    upper_bytes: int | None
    fits: bool


@dataclasses.dataclass(frozen=True)
class Advice(Answer):
    """What would make a job fit. str(advice) is the table that `gpumem advise` prints.

    expected_bytes, upper_bytes, verdict: of the job as it is.
    changes: each alone, those that cost least first.
    together: changes that are enough together, where no single one is that keeps the result (together.same_result says
        whether these keep it); None: not needed, or not possible.
    """

    expected_bytes: int
    upper_bytes: int
    verdict: str
    changes: tuple[Change, ...]
    together: Change | None


def advise(
    summary: Summary | _Path | torch.nn.Module,
    example_inputs: _Examples | None = None,
    *,
    batch_size: int | None = None,
    # options of advise(): begin
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
    # options of advise(): end
    deadline_ms: int = 0,
) -> Advice:
    """Which changes of a job take less memory, and which make it fit; model and options are those of estimate().

    Raises what estimate() does. That nothing makes the job fit is an answer.
    """
    options = {name: value for name, value in locals().items() if name in KINDS}
    if batch_size is None and not is_module(summary):
        raise TypeError("advise() needs a batch_size: only the example inputs of a module have one")
    return of_model(summary, example_inputs, options, lambda read, job: _advice_of(read, words_of(job, deadline_ms)), scale=True)


def _advice_of(read: Summary, words: Sequence[tuple[str, _gpumem.Word]]) -> Advice:
    report = _gpumem.ask("advise", words, read)
    fields = report.fields()
    now = fields["estimate"]
    return Advice(
        expected_bytes=now["expected_bytes"],
        upper_bytes=now["upper_bytes"],
        verdict=now["verdict"],
        changes=tuple(_change_of(change) for change in fields["changes"]),
        together=_change_of(fields["together"]) if "together" in fields else None,
        report=report,
    )


def _change_of(fields: Mapping[str, Any]) -> Change:
    estimate = fields.get("estimate", {})
    return Change(
        settings=fields["settings"],
        cost=fields["cost"],
        same_result=fields["same_result"],
        expected_bytes=estimate.get("expected_bytes"),
        upper_bytes=estimate.get("upper_bytes"),
        fits=estimate.get("verdict") == "fits",
    )
