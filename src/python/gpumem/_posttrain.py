"""posttrain(): what a job of DPO, GRPO, PPO or the like takes, phase by phase; `import gpumem` has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _gpumem
from ._answers import Answer
from ._arguments import Path as _Path
from ._arguments import file_name, integer, text_of, words_of


@dataclasses.dataclass(frozen=True)
class PostTrainingPhase:
    """The most that one phase takes; device_bytes is the sum of context, reserved_bytes and rollout_bytes."""

    phase: str
    allocated_bytes: int
    reserved_bytes: int
    rollout_bytes: int
    device_bytes: int


@dataclasses.dataclass(frozen=True)
class PostTraining(Answer):
    """What a post-training job takes on each GPU. str(it) is what `gpumem posttrain` prints.

    verdict: "fits", "tight" or "does_not_fit". peak_phase: the phase that decides. parts: bytes at the
    peak, by their names. assumed: what was not said.
    """

    gpu: str
    gpus: int
    expected_bytes: int
    lower_bytes: int
    upper_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int
    fits: bool
    verdict: str
    peak_phase: str
    parts: Mapping[str, int]
    phases: tuple[PostTrainingPhase, ...]
    assumed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class PostTrainingLimits:
    """The furthest value of each option with which the job fits, all else as it is; None: reasons says why."""

    largest_batch: int | None
    largest_group: int | None
    longest_completion: int | None
    longest_sequence: int | None
    largest_utilization: float | None
    reasons: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class PostTrainingChange:
    """One option changed, so that the job takes less; costs says in words what it costs.

    also: further options and values, where one change is not enough.
    """

    option: str
    value: str
    also: tuple[Mapping[str, str], ...]
    costs: str
    expected_bytes: int
    fits: bool
    verdict: str


@dataclasses.dataclass(frozen=True)
class PostTrainingLayout:
    """A way to share GPUs out between training and generation."""

    sharding: str
    data_parallel: int
    precision: str
    rollout_tensor_parallel: int
    offload_policy: str
    expected_bytes: int
    upper_bytes: int
    peak_phase: str
    fits: bool
    verdict: str


def posttrain(
    model: _Path | None = None,
    *,
    gpu: _Path = "a100-40gb",
    settings: Mapping[str, Any] | None = None,
    command: Sequence[str] = (),
    deadline_ms: int = 0,
    **options: Any,
) -> PostTraining:
    """What each GPU of a post-training job takes, phase by phase.

    model: the policy's config.json, the folder of a model, or a cached name; None: what the settings name.
    settings: a program's own, as its config has them (TRL's config as a dict, verl's nested config).
    command: the words of a program's command, ["swift", "rlhf", "--rlhf_type", "dpo", ...].
    options: those of `gpumem posttrain`, with underscores: algorithm="dpo", batch_size=1, seq_length=2048.
        They hold over settings and command.

    Raises UsageError for an unknown option or a value out of range, NoEstimateError if the job needs
    something that nobody said, InputError if a model cannot be read.
    """
    report = _asked("posttrain", model, gpu, settings, command, options, deadline_ms)
    fields = report.fields()
    plain = {field.name for field in dataclasses.fields(PostTraining)} - {"phases", "assumed", "report"}
    return PostTraining(
        **{name: fields[name] for name in plain},
        phases=tuple(PostTrainingPhase(**phase) for phase in fields["phases"]),
        assumed=tuple(f"{line['about']}: {line['text']}" for line in fields["assumed"]),
        report=report,
    )


def posttrain_limits(model: _Path | None = None, **given: Any) -> PostTrainingLimits:
    """How far batch, group, lengths and the engine's share can go on a GPU. Arguments are those of posttrain()."""
    return PostTrainingLimits(**_asked_of("posttrain-limits", model, given).fields())


def advise_posttrain(model: _Path | None = None, **given: Any) -> tuple[PostTrainingChange, ...]:
    """Changes after which the job takes less, in the order of what they cost. Arguments are those of posttrain()."""
    changes = _asked_of("posttrain-advice", model, given).fields()
    made: list[dict[str, Any]] = [{**each, "also": tuple(each["also"])} for each in changes]
    return tuple(PostTrainingChange(**each) for each in made)


def plan_posttrain(model: _Path | None = None, *, gpus: int, **given: Any) -> tuple[PostTrainingLayout, ...]:
    """Ways to share so many GPUs out with which the job fits, or is tight. Other arguments are those of posttrain()."""
    layouts = _asked_of("posttrain-layouts", model, {**given, "gpus": integer("gpus", gpus, 1)}).fields()
    return tuple(PostTrainingLayout(**each) for each in layouts)


def _asked_of(question: str, model: _Path | None, given: dict[str, Any]) -> _gpumem.Report:
    rest = dict(given)
    return _asked(
        question,
        model,
        rest.pop("gpu", "a100-40gb"),
        rest.pop("settings", None),
        rest.pop("command", ()),
        rest,
        rest.pop("deadline_ms", 0),
    )


def _asked(
    question: str,
    model: _Path | None,
    gpu: _Path,
    settings: Mapping[str, Any] | None,
    command: Sequence[str],
    options: Mapping[str, Any],
    deadline_ms: int,
) -> _gpumem.Report:
    words: dict[str, _gpumem.Word] = {
        name: _word_of(value) for name, value in options.items() if value is not None
    }
    words["gpu"] = file_name(gpu)
    if model is not None:
        words["model"] = file_name(model)
    said = [("setting", f"{key}={value}") for key, value in _leaves(settings or {}, "")]
    said += [("command", text_of("command", word)) for word in command]
    return _gpumem.ask(question, [*words_of(words, deadline_ms), *said])


def _leaves(settings: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    """Keys with those above them, as hydra has them: "actor_rollout_ref.model.path"."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", _word_of(value)


def _word_of(value: Any) -> str:
    """A value as a command line has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "+".join(_word_of(each) for each in value)
    return str(value)
