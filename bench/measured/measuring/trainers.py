"""Part "trainers": post-training as TRL's own trainers do it, each job in a fresh allocator. The model is a published
one's config, its checkpoint random numbers. Needs no PyTorch until a job is run (trainer_runs.py). Units: seconds,
bytes.

Every trainer has its turn before one has a second, and a trainer's jobs take turns in what they train (all weights or
LoRA) and in whether they compute activations again. What else they say is drawn.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib.util
import json
import random
from typing import Any

from . import journal, language
from .session import Session
from .workers import CannotMeasure

Settings = dict[str, Any]

TURNS = (
    "dpo", "grpo", "kto", "reward", "rloo", "orpo", "gkd", "simpo", "online_dpo", "sft", "dpo", "grpo", "kto",
)  # fmt: skip
"""Trainers in the order of the jobs, over and over."""

PAIRS = ("dpo", "reward", "orpo", "simpo")
GENERATES = ("grpo", "rloo", "online_dpo")
COMPARES = ("dpo", "kto", "rloo", "online_dpo")
ALGORITHMS = {"reward": "rm", "online_dpo": "online-dpo"}
"""As gpumem calls them, if otherwise."""

WHOLE = ("pythia-410m", "SmolLM2-360M", "Qwen2.5-0.5B", "Qwen3-0.6B", "TinyLlama-1.1B", "Llama-3.2-1B", "Qwen2.5-1.5B")
ADAPTED = (*WHOLE, "Qwen3-1.7B", "gemma-2-2b", "Qwen2.5-3B", "Llama-3.2-3B", "Mistral-7B-v0.3", "Llama-3.1-8B")
TEACHERS = {
    "Qwen2.5-0.5B": "Qwen2.5-1.5B", "Qwen2.5-1.5B": "Qwen2.5-3B", "Qwen3-0.6B": "Qwen3-1.7B",
    "Llama-3.2-1B": "Llama-3.2-3B",
}  # fmt: skip
"""Larger models with the same words."""

MOST_WORK = 2.5e14
"""Floating-point operations of one optimizer step."""
MOST_WORK_IN_FLOAT = 2e13
MOST_LOGITS = 2.5e9
"""Tokens times vocabulary of one forward pass."""
MOST_LOGITS_OF_GKD = 8e8
"""Its loss holds some ten tensors of that size."""

LENGTHS = (256, 384, 512, 768, 1024)
"""Of samples: at most TRL's own limit, so that a limit is not mistaken for a length."""

MODEL_KEYS = ("model_name_or_path", "dtype", "attn_implementation", "use_peft", "lora_r", "lora_target_modules")
"""Settings of TRL's scripts that are about the model (trl.ModelConfig), and not the trainer's own."""


@dataclasses.dataclass(frozen=True)
class TrainerJob:
    """settings: as the options of TRL's scripts, without those left at their defaults; what says nothing of memory is
    added when it runs. lengths: of the data, in tokens: prompt, and the whole sample (0: only prompts), and whether
    samples differ in length (some are as long as that)."""

    name: str
    trainer: str
    settings: Settings
    lengths: Settings
    steps: int = 2
    small: bool = False

    def to_json(self) -> Settings:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(fields: Settings) -> TrainerJob:
        return TrainerJob(**fields)

    @property
    def model(self) -> str:
        return self.settings["model_name_or_path"]


# ------------------------------------------------------------------------------------------------ draws


def job_of(seed: int, index: int) -> TrainerJob:
    """The same seed and index draw the same job."""
    trainer = TURNS[index % len(TURNS)]
    before = sum(TURNS[at % len(TURNS)] == trainer for at in range(index))
    turn = before + TURNS.index(trainer)
    draw = random.Random(f"{seed}/{index}")
    while True:
        settings, lengths = _drawn(draw, trainer, adapts=turn % 2 == 1, checkpoints=turn // 2 % 2 == 0)
        if _can_be_run(trainer, settings, lengths):
            return TrainerJob(f"{trainer}-{seed}-{index}", trainer, settings, lengths)


def _drawn(draw: random.Random, trainer: str, adapts: bool, checkpoints: bool) -> tuple[Settings, Settings]:
    settings = _model_settings(draw, trainer, adapts)
    settings["per_device_train_batch_size"] = draw.choice((2, 4, 8) if trainer in ("kto", "orpo") else (1, 2, 4, 8))
    if not checkpoints:
        settings["gradient_checkpointing"] = False
    accumulation = draw.choice((1, 1, 2))
    if accumulation > 1:
        settings["gradient_accumulation_steps"] = accumulation
    if draw.random() < 0.15:
        settings["bf16"] = False
    optimizer = draw.choice(("", "", "", "adamw_torch", "adafactor"))
    if optimizer:
        settings["optim"] = optimizer
    if trainer in GENERATES:
        lengths = _drawn_generation(draw, trainer, settings)
    else:
        length = draw.choice(LENGTHS)
        settings["max_length"] = length
        lengths = {"prompt": draw.choice((length // 8, length // 4, length // 2)), "whole": length}
        lengths["differ"] = draw.random() < 0.3
    settings.update(_loss_settings(draw, trainer))
    if trainer == "gkd":
        settings.update(teacher_model_name_or_path=TEACHERS[settings["model_name_or_path"]], lmbda=0.0)
    return settings, lengths


def _model_settings(draw: random.Random, trainer: str, adapts: bool) -> Settings:
    names = tuple(TEACHERS) if trainer == "gkd" else ADAPTED if adapts else WHOLE
    name = draw.choice(names)
    settings: Settings = {"model_name_or_path": name}
    large = language.MODELS[name].billions > 2
    if large or draw.random() < (0.6 if adapts else 0.3):
        settings["dtype"] = "bfloat16"  # TRL's scripts load float32
    if draw.random() < 0.1:
        settings["attn_implementation"] = "eager"
    if adapts:
        settings.update(use_peft=True, lora_r=draw.choice(language.LORA_RANKS))
        if draw.random() < 0.5 or language.MODELS[name].config.removesuffix("Config") not in language.PEFT_KNOWS:
            settings["lora_target_modules"] = "all-linear"
    return settings


def _drawn_generation(draw: random.Random, trainer: str, settings: Settings) -> Settings:
    completion = draw.choice((48, 64, 96, 128))
    prompt = draw.choice((64, 128, 256, 512))
    if trainer == "online_dpo":
        settings.update(max_new_tokens=completion, max_length=prompt + completion)
        return {"prompt": prompt, "whole": 0, "differ": False}
    settings["max_completion_length"] = completion
    settings["num_generations"] = draw.choice((2, 4, 8) if trainer == "rloo" else (4, 8))
    # A step's completions are whole groups.
    groups = draw.choice((1, 1, 2, 4))
    settings["per_device_train_batch_size"] = settings["num_generations"] * groups
    return {"prompt": prompt, "whole": 0, "differ": False}


def _loss_settings(draw: random.Random, trainer: str) -> Settings:
    if trainer == "dpo":
        more: Settings = {"precompute_ref_log_probs": True} if draw.random() < 0.25 else {}
        loss = draw.choice(("", "", "ipo", "apo_zero"))
        return more | ({"loss_type": loss} if loss else {})
    if trainer == "kto":
        return {"loss_type": "apo_zero_unpaired"} if draw.random() < 0.25 else {}
    if trainer == "grpo":
        more = {"beta": 0.04} if draw.random() < 0.4 else {}
        loss = draw.choice(("", "", "grpo", "dr_grpo"))
        return more | ({"loss_type": loss} if loss else {})
    if trainer == "simpo":
        return {"loss_type": "simpo", "cpo_alpha": 0.0}
    return {}


def _can_be_run(trainer: str, settings: Settings, lengths: Settings) -> bool:
    model = language.MODELS[settings["model_name_or_path"]]
    generated = settings.get("max_completion_length", settings.get("max_new_tokens", 0))
    length = lengths["whole"] or lengths["prompt"] + generated
    rows = settings["per_device_train_batch_size"] * (2 if trainer in (*PAIRS, "online_dpo") else 1)
    tokens = rows * length
    passes = 6 + (2 if settings.get("gradient_checkpointing", True) else 0) + (2 if trainer in COMPARES else 0)
    work = passes * 1e9 * model.billions * tokens * settings.get("gradient_accumulation_steps", 1)
    in_float = not settings.get("bf16", True) and settings.get("dtype") != "bfloat16"
    words = model.fields["vocab_size"]
    return (
        length <= model.longest
        and tokens * words <= (MOST_LOGITS_OF_GKD if trainer == "gkd" else MOST_LOGITS)
        and work <= (MOST_WORK_IN_FLOAT if in_float else MOST_WORK)
    )


def shrunk(job: TrainerJob) -> TrainerJob:
    """The job for a CPU without figures."""
    settings = {**job.settings}
    shorter = {"max_length": 24, "max_completion_length": 6, "max_new_tokens": 6, "num_generations": 2}
    settings.update({name: value for name, value in shorter.items() if name in settings})
    least = 2 if job.trainer in (*GENERATES, "kto") else 1
    settings["per_device_train_batch_size"] = least
    lengths = {**job.lengths, "prompt": 8, "whole": 24 if job.lengths["whole"] else 0}
    return dataclasses.replace(job, settings=settings, lengths=lengths, small=True)


# ------------------------------------------------------------------------------------------------ runs


def measure_trainers(session: Session) -> None:
    for package in ("trl", "datasets"):
        if importlib.util.find_spec(package) is None:
            raise CannotMeasure(f"{package} cannot be imported; install trl and what it needs")
    with journal.Journal(session.folder / "trainers.jsonl") as book:
        counts = collections.Counter(row["result"]["status"] for row in book.rows)
        done = {row["job"]["name"] for row in book.rows}
        for number in range(session.options.most or 10**6):
            job = job_of(session.options.seed, number)
            if job.name in done:
                continue
            if session.left(session.deadline) <= 0:
                break
            job = shrunk(job) if session.options.dry_run else job
            request = {"do": "trainer", "job": job.to_json(), "configs": str(session.folder / "configs")}
            result = session.ask(request, session.deadline)
            if result is None:
                break
            book.add(session.row(job, result, 0))
            counts[result["status"]] += 1
            tally = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
            session.tell(f"trainers: {tally}; last {job.name}: {result.get('error', result['status'])[:100]}")


# ------------------------------------------------------------------------------------------------ tables

COLUMNS = (
    "name", "model", "algorithm", "method", "rank", "gpus", "gpu", "micro_batch", "max_length", "max_completion",
    "num_generations", "figure", "measured_mib", "second_figure", "second_mib", "digits", "status", "software", "args",
    "source", "allocated_mib", "reserved_mib", "requested_mib", "device_mib", "context_mib", "loaded_allocated_mib",
    "loaded_reserved_mib", "steps_allocated_mib", "steps_reserved_mib", "capacity_mib", "prompt_tokens", "padding",
    "rows", "tokens", "trainable_params", "total_params", "train_seconds", "retries", "left_mib", "torch", "cuda",
    "driver", "allocator",
)  # fmt: skip
"""What `gpumem evaluate` reads of tables of post-training, and what else was measured or set."""

COUNTED = ("prompt_tokens", "rows", "tokens", "trainable_params", "total_params", "train_seconds", "retries")
"""Cells that a result has by these names."""


def cells_of(row: dict[str, Any], figure: str) -> dict[str, Any] | None:
    """A journal's row as the table has it; None where nothing was measured."""
    job, result, machine = TrainerJob.from_json(row["job"]), row["result"], row["machine"]
    if result["status"] not in ("ok", "oom"):
        return None
    settings = job.settings
    cells = {
        "name": job.name,
        "model": spelt(job.small, job.model),
        "algorithm": ALGORITHMS.get(job.trainer, job.trainer),
        "method": "lora" if settings.get("use_peft") else "full",
        "rank": settings.get("lora_r", ""),
        "gpus": 1,
        "gpu": row["gpu"],
        "micro_batch": settings["per_device_train_batch_size"],
        "max_length": settings.get("max_length", ""),
        "max_completion": settings.get("max_completion_length", settings.get("max_new_tokens", "")),
        "num_generations": settings.get("num_generations", ""),
        "figure": figure,
        "measured_mib": journal.mib(result, figure),
        "second_figure": "allocated",
        "second_mib": journal.mib(result, "allocated"),
        "digits": "exact",
        "status": result["status"],
        "software": f"trl {machine.get('trl')}, transformers {machine.get('transformers')}, peft {machine.get('peft')}",
        "args": json.dumps(arguments_of(job), separators=(", ", ": ")),
        "source": "bench/measured",
        "capacity_mib": journal.mib(row, "capacity"),
        "prompt_tokens": job.lengths["prompt"],
        "padding": "true" if job.lengths["differ"] else "false",
        "left_mib": journal.mib(result, "left_before"),
    }
    for name in ("allocated", "reserved", "requested", "device", "context", "loaded_allocated", "loaded_reserved",
                 "steps_allocated", "steps_reserved"):  # fmt: skip
        cells[f"{name}_mib"] = journal.mib(result, name)
    cells.update({name: result.get(name, "") for name in COUNTED if name in result})
    cells.update({name: machine.get(name) or "" for name in ("torch", "cuda", "driver", "allocator")})
    return cells


def spelt(small: bool, name: str) -> str:
    """Of a model as the table names it."""
    return f"small-{name}" if small else name


def arguments_of(job: TrainerJob) -> Settings:
    """The settings as the table has them, with what the data says of lengths."""
    words = {name: value for name, value in job.settings.items() if not name.endswith("model_name_or_path")}
    trainer = {"simpo": "cpo", "reward": "rm"}.get(job.trainer, job.trainer)
    about: Settings = {} if trainer == "sft" else {"trainer": trainer}
    about["model_name_or_path"] = spelt(job.small, job.model)
    if "teacher_model_name_or_path" in job.settings:
        about["teacher_model_name_or_path"] = spelt(job.small, job.settings["teacher_model_name_or_path"])
    if job.trainer in GENERATES:
        about["max_prompt_length"] = job.lengths["prompt"]
    return {**about, **words}


def models_of(job: TrainerJob) -> list[str]:
    return [job.settings[key] for key in ("model_name_or_path", "teacher_model_name_or_path") if key in job.settings]


def write_table(session: Session) -> None:
    """trainers.csv and sft.csv, of what the journal holds."""
    rows = journal.rows_of(session.folder / "trainers.jsonl")
    if not rows:
        return
    cells = [one for row in rows if (one := cells_of(row, session.options.figure)) is not None]
    journal.write_table(session.folder / "trainers.csv", COLUMNS, [one for one in cells if one["algorithm"] != "sft"])
    journal.write_table(session.folder / "sft.csv", COLUMNS, [one for one in cells if one["algorithm"] == "sft"])
