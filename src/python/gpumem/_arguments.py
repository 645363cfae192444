"""The options of the functions, and each argument as a word of a question."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import _gpumem
from ._errors import UsageError

#: How a path is given.
Path = Union[str, "os.PathLike[str]"]

#: What estimate() says about its options.
# help of the options: begin
OPTIONS_HELP = """
    The options:

    batch_size: the batch size.
    input: one sample's shape, such as 3x224x224.
    seq_length: tokens per sample, for models that read token ids; of an image model's prompt.
    image: the size of a sample's images in pixels, such as 1024x768, for models that read or make
        images.
    images: images (or videos) per sample; 0: text alone.
    frames: samples are videos of N frames, or bring them in place of images.
    seconds: samples are sounds of N seconds, for models that make sounds.
    parts: parts of a diffusers folder on the GPU besides the denoiser: vae+text_encoder, or all;
        default: none.
    resident: MiB of other tensors that lie on the GPU from the start: another model, a cache of
        embeddings.
    ema: a running average of the trained weights is kept on the GPU.
    optimizer: the optimizer: sgd, sgd-momentum, adam, adamw, adagrad, rmsprop, adafactor, lion,
        nadam, adamax, radam, adadelta, muon, adam-8bit, adamw-8bit, lion-8bit, paged-adamw,
        paged-adamw-8bit, adamw-4bit, adamw-fp8, adamw-bf16, optimi-lion, adamw-half-states,
        galore-adamw, galore-adamw-8bit, galore-adafactor, apollo-adamw, adam-mini, ademamix,
        ademamix-8bit, schedule-free-adamw.
    precision: the element types: fp32, fp32-strict, amp-fp16, amp-bf16, bf16, bf16-mixed,
        fp16-mixed.
    loss: the loss function; for a language model, the form of its cross entropy: cross-entropy,
        mse, bce-with-logits, chunked:N, fused, fused-ce, compiled, fused-target:N, fused-free,
        fused-free-2025, checkpointed:N.
    samples: samples per epoch; decides how large the last batch is.
    loop: the program that trains; decides which tensors are held between forward and the next step:
        script, hf-trainer, lightning, torchtune, litgpt, megatron, torchtitan.
    transformers: HuggingFace models: the release that runs them, 4.45 and before, or later;
        default: 4.48, or what the model needs: 4.45, 4.48, 4.51, 4.52, 4.56, 5.0, 5.5, 5.11.
    batch_lengths: whether all batches have the same length, or all are shorter than the first one:
        alike, longest-first.
    lengths: tokens of each sample, one a line or with how many have it, or 512x40+2048: batches are
        as long as their longest sample, and seq_length cuts it.
    lengths_options: of lengths: batching=random, sorted or packed; pad_to=8; steps=500, else one
        epoch; percentile=99 of runs.
    zero_grad: where optimizer.zero_grad() is called; default: where the loop does: step-start,
        before-forward, before-backward, step-end, in-place.
    software: a software stack that the GPU's profile names; default: its first.
    alloc_conf: the value of PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True, ...
    accumulate: forward-backward passes per step.
    data_parallel: GPUs that train together, each on a batch of its own.
    sharding: which parameters, gradients and states each data parallel GPU holds: none, ddp, fsdp1,
        fsdp2, hsdp:N, zero-1, zero-2, zero-3, distributed-optimizer.
    reshard_after_forward: when FSDP2 frees gathered parameters: a number of GPUs that share them
        until backward, or one of: default, always, never.
    semi_sync: how copies of the model that train apart meet every few steps (torchft): none,
        local-sgd, diloco:N, streaming-diloco:N.
    tensor_parallel: GPUs that share each layer.
    sequence_parallel: tensor parallel GPUs share the positions of norms, dropout and residuals as
        well.
    pipeline_parallel: GPUs that hold the model's layers one after another.
    virtual_stages: model stages on each GPU of the pipeline.
    schedule: the order of a pipeline's micro-batches: 1f1b, interleaved-1f1b, gpipe, looped-bfs,
        interleaved-zero-bubble, zbv-zero-bubble, dual-pipe-v.
    pipeline_layers: layers of each pipeline stage: 15,16,15, or Megatron's layout
        'Et*15|t*16|t*15L'.
    first_stage_layers: layers of the pipeline's first rank; the other ranks share the rest.
    last_stage_layers: layers of the pipeline's last rank.
    context_parallel: GPUs that share each sample's positions.
    expert_parallel: GPUs that share the experts of a mixture.
    expert_imbalance: times its even share of tokens that a rank's experts may get; default: 1.5, or
        as the router bounds it.
    megatron_options: Megatron's arguments that no config.json says: grad_reduce_in_bf16,
        mtp_num_layers=1, cuda_graph_impl=local.
    rank: the rank to estimate: its number, or one of: max, last, all.
    zero_reduce_bucket: DeepSpeed's reduce_bucket_size: gradient elements that are reduced together.
    zero_prefetch_bucket: DeepSpeed's stage3_prefetch_bucket_size: parameter elements that are
        gathered ahead.
    zero_persistence_threshold: DeepSpeed's stage3_param_persistence_threshold: parameters of at
        most this many elements stay whole.
    zero_reuse_distance: DeepSpeed's stage3_max_reuse_distance: a module used again within this many
        elements stays gathered.
    padding: batches of tokens hold padding, so attention has a mask; default: as the loop's usual
        collator does.
    foreach: the optimizer's multi-tensor form.
    fused: the optimizer's fused form.
    optimizer_in_backward: each parameter is updated as soon as its gradient is there, and the
        gradient is freed (torchtune).
    weight_decay: the optimizer decays the weights; sgd, adam, adagrad, rmsprop and nadam copy the
        gradients for it.
    prefetch: copy the next batch to the GPU while a step runs (timm's PrefetchLoader).
    cudnn_benchmark: cuDNN chooses its fastest kernels; what they take is not known, so the range is
        wider.
    compile: torch.compile of the blocks: backward recomputes elementwise results; the range reaches
        further down.
    validation: a validation pass without gradients after each epoch.
    checkpointing: activation checkpointing of every block, or as checkpointing=KIND: none, full,
        full:N, every:N, selective-op, selective-attention, selective:NAMES, joined:N,
        joined-every-other:N, first-of:N, every-other:N.
    attention: the kernels of scaled-dot-product attention: sdpa, flash, eager.
    offload: what is kept in the host's memory: none, activations, checkpoints, optimizer,
        parameters, ramtorch, ramtorch-blocks.
    block_swap: how blocks' weights take turns on the GPU: none, exchanged:N, streamed:N.
    kernels: fused kernels in place of a decoder's norms and gated layers; of the loss, see loss:
        usual, liger, lora-mlp, unsloth.
    freeze: layers or parameters that are not trained: patterns such as model.layers.0 or *.bias,
        separated by commas.
    train: layers or parameters that are trained, as patterns; without freeze, only these are.
    lora: adapters of rank R on a frozen base (LoRA, as PEFT runs it).
    lora_targets: layers that get adapters: q_proj+v_proj, or all-linear; not:NAMES leaves some out,
        parameter:NAMES takes weights of no layer; default: PEFT's for the model.
    lora_dtype: the adapters' type: fp32, bf16.
    lora_dropout: dropout before each adapter, from 0 to less than 1.
    peft: the kind of adapters, as PEFT has it; lora is their rank, lora_targets the layers: none,
        lora, rslora, pissa, lora-fa, mica, dora, adalora, vera, pvera, randlora, tinylora, unilora,
        vblora, gralora, lily, delora, peanut, deft, psoft, loha, lokr, hira, glora, fourierft,
        waveft, c3a, shira, osf, ia3, beft, road, oft, boft, hra, miss, ln-tuning, trainable-tokens,
        prompt-tuning, p-tuning, prefix-tuning, adaption-prompt, adamss, frod, cpt,
        multitask-prompt-tuning, cartridge, supertuning, xlora, poly.
    peft_options: settings of the method, by PEFT's names: n_frequency=1000.
    quantize: how the frozen linear layers are held: none, nf4, nf4-double, int8, gptq-4bit, float8,
        int8-sdnq, fp8-torchao, fp8wo-torchao, mxfp8, nvfp4, float8-params, nf4-dynamic,
        float8-gather, nf4-experts, nf4-linear-experts.
    base_dtype: the type of frozen weights that are not quantised: the precision's, or the type they
        were loaded in: precision, fp32, bf16, fp16.
    gpu: the GPU: a name from 'gpumem gpus', or a path to a profile.
    estimator: the estimator, by its name.
    model: a trained model for learned estimators: a built-in one's name, or a folder.
    strict: refuse a model where gpumem has to guess: what a layer reads, an unknown type or field.
    input may also be a sequence of sizes: (3, 224, 224). None: not given, so the default holds.
    For a recording, options at their defaults keep what was recorded.
    deadline_ms: how long it may take; 0: no limit.
"""
# help of the options: end

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
    if not math.isfinite(value):
        raise UsageError(f"{name} must be a number, not {value}")
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


def _switch(value: object) -> str:
    return "true" if value else "false"


#: The word of an argument, by the option's kind.
_WORD: dict[str, Callable[[str, Any], _gpumem.Word]] = {
    "flag": lambda name, value: _switch(value),
    "whole_number": lambda name, value: str(integer(name, value)),
    "fraction": lambda name, value: repr(number_of(name, value)),
    "text": text_of,
    "choice": text_of,
    "switch_or_choice": lambda name, value: text_of(name, value) if isinstance(value, str) else _switch(value),
    "name_or_path": lambda name, value: file_name(value),
    "dimensions": _shape,
}
_USUAL = {name: _WORD[kind](name, usual) for name, kind, usual, _ in _gpumem.OPTIONS if usual is not None}


def job_of(arguments: Mapping[str, Any]) -> dict[str, _gpumem.Word]:
    """The words of the job that a function's arguments describe, without options at their defaults; None is an option that is
    not given. One that the loop or the model decides has no default, so that each of its values counts as given."""
    words: dict[str, _gpumem.Word] = {}
    for name, kind in KINDS.items():
        if name not in arguments or (arguments[name] is None and name in _MAY_BE_NONE):
            continue
        word = _WORD[kind](name, arguments[name])
        if word != _USUAL.get(name):
            words[name] = word
    return words


def words_of(words: Mapping[str, _gpumem.Word], deadline_ms: int) -> list[tuple[str, _gpumem.Word]]:
    """The same with a deadline."""
    deadline = integer("deadline_ms", deadline_ms, 0)
    return [*words.items(), ("deadline_ms", str(deadline))] if deadline else list(words.items())
