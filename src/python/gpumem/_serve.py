"""serve(): what a server of vLLM or SGLang takes, and whether it starts; `import gpumem` has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from . import _gpumem
from ._answers import Answer
from ._arguments import Path as _Path
from ._arguments import file_name, integer, number_of, text_of, words_of


@dataclasses.dataclass(frozen=True)
class Server(Answer):
    """One GPU of a server once it has started. str(server) is what `gpumem serve` prints.

    Bytes: weights_bytes as loaded, with adapter_bytes for LoRA; activation_bytes of the profiling
    pass, outside_pytorch_bytes, kv_cache_bytes, and cuda_graph_bytes, which come on top of requested_bytes
    (gpu_memory_utilization of the GPU). kv_cache_needed_bytes: of one request of max_model_len.
    kv_cache_tokens: how many the cache holds, in kv_cache_blocks. max_concurrency: requests of
    max_model_len at once. largest_max_model_len: what this cache holds; 0: nothing.
    verdict: "fits", "tight" or "does_not_fit". starts: whether vLLM starts; reason: why not.
    rules_of: the versions of vLLM whose rules were followed. assumed: what was not said.
    """

    gpu: str
    rules_of: str
    stage: int
    expected_bytes: int
    lower_bytes: int
    upper_bytes: int
    requested_bytes: int
    weights_bytes: int
    adapter_bytes: int
    draft_bytes: int
    activation_bytes: int
    outside_pytorch_bytes: int
    cuda_graph_bytes: int
    kv_cache_bytes: int
    kv_cache_needed_bytes: int
    kv_cache_blocks: int
    kv_cache_tokens: int
    max_model_len: int
    largest_max_model_len: int
    max_concurrency: float
    starts: bool
    verdict: str
    reason: str | None
    assumed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ServerLimits:
    """The furthest value of each option with which a server starts, all else as it is; None: with none."""

    longest_context: int | None
    most_sequences: int | None
    smallest_utilization: float | None
    fewest_ranks: int | None
    smallest_gpu: str | None


@dataclasses.dataclass(frozen=True)
class ServerChange:
    """One option changed, so that a server starts or holds more tokens; costs says in words what it costs."""

    option: str
    value: str
    costs: str
    kv_cache_tokens: int
    max_concurrency: float


def serve(
    model: _Path,
    *,
    gpu: _Path = "a100-40gb",
    engine_version: str | None = None,
    command: Sequence[str] = (),
    tensor_parallel_size: int | None = None,
    pipeline_parallel_size: int | None = None,
    data_parallel_size: int | None = None,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    block_size: int | None = None,
    gpu_memory_utilization: float | None = None,
    dtype: str | None = None,
    kv_cache_dtype: str | None = None,
    quantization: str | None = None,
    enforce_eager: bool = False,
    enable_expert_parallel: bool = False,
    enable_lora: bool = False,
    max_loras: int | None = None,
    max_lora_rank: int | None = None,
    cpu_offload_gb: float | None = None,
    kv_cache_memory_bytes: int | None = None,
    language_model_only: bool = False,
    runner: str | None = None,
    limit_mm_per_prompt: str | None = None,
    speculative_config: str | None = None,
    deadline_ms: int = 0,
) -> Server:
    """What each GPU of a server of vLLM or SGLang takes, and whether it starts.

    model: a config.json, the folder of a model, or the name of one that is in the local HuggingFace cache or known.
    engine_version: vLLM's, such as "0.19.0"; None: the newest whose rules are known.
    command: the words of a command, ["vllm", "serve", NAME, "--max-model-len", "8192"] or
        ["sglang", "serve", NAME, "--tp", "2"]; options that are given beside it win. Options are vLLM's own, with its defaults on that GPU.
    limit_mm_per_prompt, speculative_config: JSON, as vLLM's command line takes it.

    Raises UsageError for an option out of range or a flag without a rule, InputError for a config
    that cannot be read. A server that does not start is no error.
    """
    report = _asked("serve", model, locals())
    fields = report.fields()
    names = {field.name for field in dataclasses.fields(Server)} - {"reason", "assumed", "report"}
    return Server(
        **{name: fields[name] for name in names},
        reason=fields.get("reason"),
        assumed=tuple(fields["assumed"]),
        report=report,
    )


def serving_limits(
    model: _Path, *, gpu: _Path = "a100-40gb", engine_version: str | None = None, **options: Any
) -> ServerLimits:
    """How far each option of a server can go on a GPU: the longest context, the most sequences, ...

    Options and errors are those of serve().
    """
    given = {"gpu": gpu, "engine_version": engine_version, "command": (), "deadline_ms": 0, **options}
    return ServerLimits(**_asked("serving-limits", model, given).fields())


def advise_server(
    model: _Path, *, gpu: _Path = "a100-40gb", engine_version: str | None = None, **options: Any
) -> tuple[ServerChange, ...]:
    """Changes with which a server starts, or holds more tokens, in the order of what they cost.

    Options and errors are those of serve().
    """
    given = {"gpu": gpu, "engine_version": engine_version, "command": (), "deadline_ms": 0, **options}
    changes = _asked("serving-advice", model, given).fields()
    return tuple(
        ServerChange(
            each["option"], each["value"], each["costs"], each["kv_cache_tokens"], each["max_concurrency"]
        )
        for each in changes
    )


_NOT_OPTIONS = frozenset({"model", "gpu", "engine_version", "command", "deadline_ms"})


def _asked(question: str, model: _Path, given: dict[str, Any]) -> _gpumem.Report:
    words: dict[str, _gpumem.Word] = {
        name: _value_of(name, value)
        for name, value in given.items()
        if name not in _NOT_OPTIONS and value is not None and value is not False
    }
    words.update(model=file_name(model), gpu=file_name(given["gpu"]))
    if given["engine_version"] is not None:
        words["engine_version"] = text_of("engine_version", given["engine_version"])
    command = [("command", text_of("command", word)) for word in given["command"]]
    return _gpumem.ask(question, [*words_of(words, given["deadline_ms"]), *command])


def _value_of(name: str, value: Any) -> str:
    """The value in words, as a command line has it."""
    if value is True:
        return "true"
    if isinstance(value, str):
        return value
    if name in ("gpu_memory_utilization", "cpu_offload_gb"):
        return repr(number_of(name, value))
    return str(integer(name, value, 1))
