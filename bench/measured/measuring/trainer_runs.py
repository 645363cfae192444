"""Runs a job of trainers.py with TRL's trainer and reads what it took. Units: bytes, seconds.

The trainer is made as TRL's scripts make it: it gets the path of a checkpoint, so that weights reach the device as
from_pretrained() puts them there. The checkpoint's file is a header and a hole; after they are loaded, weights are
written over with random numbers, which takes no memory. Completions of such a model hardly ever end early.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import random
import struct
import tempfile
import time
import traceback
from typing import Any, Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before it is imported: no trainer asks the hub for anything

import torch  # noqa: E402
import transformers  # noqa: E402
from torch import nn  # noqa: E402

from . import language  # noqa: E402
from .device import Device, trouble  # noqa: E402
from .trainers import GENERATES, MODEL_KEYS, TrainerJob, models_of, spelt  # noqa: E402

Result = dict[str, Any]

CLASSES = {
    "dpo": ("trl", "DPO"), "grpo": ("trl", "GRPO"), "kto": ("trl", "KTO"), "reward": ("trl", "Reward"),
    "rloo": ("trl", "RLOO"), "sft": ("trl", "SFT"), "orpo": ("trl.experimental.orpo", "ORPO"),
    "simpo": ("trl.experimental.cpo", "CPO"), "gkd": ("trl.experimental.gkd", "GKD"),
    "online_dpo": ("trl.experimental.online_dpo", "OnlineDPO"),
}  # fmt: skip
"""Where NAMETrainer and NAMEConfig are."""

MOST_LEFT = 2**26
"""Bytes that a process may keep after a run."""

WORDS = 96
"""Of the tokenizer; the model's own are more."""


class Words(transformers.PreTrainedTokenizer):
    """Every word "w7" is one token."""

    def __init__(self, **more: Any):
        self.vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2, **{f"w{at}": 3 + at for at in range(WORDS)}}
        self.names = {number: name for name, number in self.vocabulary.items()}
        super().__init__(pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", **more)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocabulary)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return text.split()

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocabulary.get(token, self.vocabulary["<unk>"])

    def _convert_id_to_token(self, index: int) -> str:
        return self.names.get(index, "<unk>")

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return " ".join(tokens)


CHAT = "{% for message in messages %}{{ message['content'] + ' ' }}{% endfor %}"


def tokenizer() -> Words:
    words = Words(padding_side="left", model_max_length=10**6)
    words.chat_template = CHAT
    return words


# ------------------------------------------------------------------------------------------------ models


def checkpoint(folder: pathlib.Path, name: str, small: bool) -> pathlib.Path:
    """A folder for from_pretrained(), as large as the model's published one but without contents."""
    path = folder / spelt(small, name)
    if path.exists():
        return path
    model = language.MODELS[name]
    config = getattr(transformers, model.config)(**language.fields_of({"name": name, "small": small}))
    config.architectures = [model.model]
    config.dtype = torch.bfloat16
    with torch.device("meta"):
        module = getattr(transformers, model.model)(config)
    part = pathlib.Path(tempfile.mkdtemp(dir=folder))
    config.save_pretrained(part)
    write_hole(part / "model.safetensors", module)
    part.rename(path)  # whole or not at all
    return path


def write_hole(path: pathlib.Path, module: nn.Module) -> None:
    """Tensors that a model has twice (tied ones) are in it once, as save_pretrained() has it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    known: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) in known:
            continue
        known.add(id(tensor))
        begin, end = end, end + 2 * tensor.numel()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


@torch.no_grad()
def fill(module: nn.Module) -> None:
    """Random numbers in place; adapters are as PEFT made them."""
    for name, parameter in module.named_parameters():
        if "lora_" in name:
            continue
        if parameter.ndim > 1:
            parameter.normal_(0.0, 0.02)
        else:
            parameter.fill_(1.0 if name.endswith("weight") else 0.0)


# ------------------------------------------------------------------------------------------------ data


def words_of(draw: random.Random, count: int) -> str:
    return " ".join(f"w{draw.randrange(WORDS)}" for _ in range(count))


def samples(job: TrainerJob) -> list[Result]:
    settings, lengths = job.settings, job.lengths
    draw = random.Random(job.name)
    rows = settings["per_device_train_batch_size"] * settings.get("gradient_accumulation_steps", 1) * job.steps
    if job.trainer in GENERATES:
        return [{"prompt": words_of(draw, lengths["prompt"])} for _ in range(max(rows, 32))]
    return [_sample(job.trainer, draw, at, *_lengths_of(draw, at, job)) for at in range(rows)]


def _lengths_of(draw: random.Random, at: int, job: TrainerJob) -> tuple[int, int]:
    """Words of the prompt and the answer. The trainer adds a token that ends it; GKD's collator does not."""
    prompt = job.lengths["prompt"]
    whole = job.lengths["whole"] - (0 if job.trainer == "gkd" else 1)
    if not job.lengths["differ"] or at % 2 == 0:
        return prompt, whole - prompt
    return prompt, draw.randint(1, whole - prompt)


def _sample(trainer: str, draw: random.Random, at: int, prompt: int, answer: int) -> Result:
    begin = words_of(draw, prompt) + " "
    if trainer == "sft":
        return {"text": begin + words_of(draw, answer)}
    if trainer == "kto":
        return {"prompt": begin, "completion": words_of(draw, answer), "label": at % 2 == 0}
    if trainer == "gkd":
        ids = [3 + draw.randrange(WORDS) for _ in range(prompt + answer)]
        return {"prompt": begin, "input_ids": ids, "completion_mask": [0] * prompt + [1] * answer}
    return {"prompt": begin, "chosen": words_of(draw, answer), "rejected": words_of(draw, answer)}


def reward(completions: list[Any], **_: Any) -> list[float]:
    """Any numbers that differ."""
    return [float(at % 7) for at in range(len(completions))]


# ------------------------------------------------------------------------------------------------ runs


def made(job: TrainerJob, folder: pathlib.Path, device: Device) -> transformers.Trainer:
    trl = importlib.import_module("trl")
    where, name = CLASSES[job.trainer]
    classes = importlib.import_module(where)
    settings = job.settings
    about = {key: value for key, value in settings.items() if key in MODEL_KEYS and not key.startswith("model_name")}
    if job.trainer == "reward":
        about["lora_task_type"] = "SEQ_CLS"
    model_args = trl.ModelConfig(**about)
    init = {"dtype": model_args.dtype, "attn_implementation": model_args.attn_implementation}
    own = {key: value for key, value in settings.items() if key not in (*MODEL_KEYS, "teacher_model_name_or_path")}
    more: Result = {}
    if job.trainer == "gkd":
        own["teacher_model_init_kwargs"] = dict(init)
        more["teacher_model"] = str(checkpoint(folder, settings["teacher_model_name_or_path"], job.small))
    if job.trainer in GENERATES:
        more["reward_funcs"] = reward
    arguments = getattr(classes, name + "Config")(
        output_dir=str(folder / "out"), max_steps=job.steps, save_strategy="no", report_to="none", disable_tqdm=True,
        logging_steps=1000, use_cpu=not device.cuda, model_init_kwargs=init, **own,
    )  # fmt: skip
    datasets = importlib.import_module("datasets")
    return getattr(classes, name + "Trainer")(
        model=str(checkpoint(folder, job.model, job.small)), args=arguments, processing_class=tokenizer(),
        train_dataset=datasets.Dataset.from_list(samples(job)), peft_config=trl.get_peft_config(model_args), **more,
    )  # fmt: skip


def modules_of(trainer: transformers.Trainer) -> Iterator[nn.Module]:
    for name in ("model", "ref_model", "teacher_model"):
        module = getattr(trainer, name, None)
        if isinstance(module, nn.Module):
            yield module


def watch_shapes(module: nn.Module, result: Result) -> None:
    """The rows and tokens of the largest batch that the model was called with."""

    def look(_: nn.Module, arguments: tuple[Any, ...], named: Result) -> None:
        ids = named.get("input_ids", arguments[0] if arguments else None)
        if isinstance(ids, torch.Tensor) and ids.ndim == 2 and ids.numel() >= result["rows"] * result["tokens"]:
            result.update(rows=ids.shape[0], tokens=ids.shape[1])

    result.update(rows=0, tokens=0)
    module.register_forward_pre_hook(look, with_kwargs=True)


def _train(job: TrainerJob, device: Device, configs: pathlib.Path, result: Result) -> None:
    # Checkpoints stay for the jobs that follow: a hole takes no space. Beside the results, so that no other call of
    # measure.py shares them.
    folder = configs.parent / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    write_configs(job, configs)
    began = time.perf_counter()
    trainer = made(job, folder, device)
    for module in modules_of(trainer):
        fill(module)
    result["load_seconds"] = round(time.perf_counter() - began, 3)
    parameters = list(trainer.model.parameters())
    result["total_params"] = sum(one.numel() for one in parameters)
    result["trainable_params"] = sum(one.numel() for one in parameters if one.requires_grad)
    watch_shapes(trainer.model, result)
    loaded = device.figures()
    result.update({f"loaded_{name}": loaded[name] for name in ("allocated", "reserved") if name in loaded})
    device.forget_peak()
    began = time.perf_counter()
    trainer.train()
    device.synchronize()
    result["train_seconds"] = round(time.perf_counter() - began, 3)
    steps = device.figures()
    result.update({f"steps_{name}": steps[name] for name in ("allocated", "reserved") if name in steps})
    result.update(most_of(loaded, steps))


def most_of(loaded: Result, steps: Result) -> Result:
    """The run's peaks of those of its two parts."""
    peaks = {name: max(loaded[name], steps[name]) for name in ("allocated", "reserved", "requested", "device")
             if name in steps}  # fmt: skip
    return {**steps, **peaks}


def write_configs(job: TrainerJob, folder: pathlib.Path) -> None:
    """config.json of each model, by its name in the table."""
    folder.mkdir(exist_ok=True)
    for name in models_of(job):
        text = language.config_json({"name": name, "small": job.small})
        (folder / f"{spelt(job.small, name)}.json").write_text(text, encoding="utf-8")


def run(job: TrainerJob, device: Device, configs: pathlib.Path) -> Result:
    """As training.run()."""
    began = time.perf_counter()
    forget_accelerator()
    device.reset()
    device.set_precision("fp32")
    result: Result = {"left_before": device.left()}
    with device.watched():
        trouble = _measure(job, device, configs, result)
    result.update(trouble)
    if not result.get("broken"):
        forget_accelerator()
        device.reset()
        left = device.left()
        # A process that starts anew costs more than a few MiB that stay: the next run says what was left before it.
        result.update({"left": left} if left > MOST_LEFT else {})
    result["run_seconds"] = round(time.perf_counter() - began, 3)
    return result


def forget_accelerator() -> None:
    """Its state belongs to the process: precision of the job before."""
    state = importlib.import_module("accelerate.state")
    state.AcceleratorState._reset_state(reset_partial_state=True)
    state.GradientState._reset_state()


def _measure(job: TrainerJob, device: Device, configs: pathlib.Path, result: Result) -> Result:
    try:
        _train(job, device, configs, result)
        return {"status": "ok"}
    except Exception as error:  # A trainer that does not run is a row of its own; its log has the rest.
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
    return trouble(text, device, result)
