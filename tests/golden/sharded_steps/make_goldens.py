"""Writes golden.json next to this file: what PyTorch holds on one rank in training steps of small language models under
DistributedDataParallel, FullyShardedDataParallel and fully_shard().

    python3 tests/golden/sharded_steps/make_goldens.py

Beside it recordings.json lists runs whose recordings are here too (*.json.gz), so that a recording of a rank can be held to
the estimate that its config has (`make_goldens.py --recordings` writes these alone).

It needs PyTorch 2.6, and no GPU: the other ranks are pretended. Each run has the options as gpumem names them, and the most
bytes that live tensors hold in two steps with AdamW. The model is whole on the GPU before it is wrapped, which no framework
does with a large one: what is held before the first step does not count.
"""

from __future__ import annotations

import functools
import json
import pathlib
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src" / "python"), str(HERE.parent / "architectures")]
sys.dont_write_bytecode = True

import gpumem  # noqa: E402
import torch  # noqa: E402
from configs import CONFIGS  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from gpumem.record.run import Allocate, Free, Mark, Marked, Run  # noqa: E402
from gpumem.record.writer import recording_text, write_recording  # noqa: E402
from make_goldens import batch_of  # noqa: E402
from models import BUILDERS  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

SIZES = (4, 128)
BFLOAT16 = torch.bfloat16


def peak_of_steps(run: Run) -> int:
    """The most bytes that are alive at a time from the first step on, in the tensors' own bytes."""
    live: dict[int, int] = {}
    now = peak = 0
    steps = False
    for event in run.events:
        if isinstance(event, Marked):
            steps = steps or (event.step > 0 and event.mark != Mark.CONSTRUCTION)
        elif isinstance(event, Allocate):
            size = functools.reduce(int.__mul__, event.shape, event.item)
            live[event.number] = size
            now += size
        elif isinstance(event, Free):
            now -= live.pop(event.number)
        peak = max(peak, now) if steps else 0
    return peak


def blocks_of(model: nn.Module) -> nn.ModuleList:
    lists = [each for each in model.modules() if isinstance(each, nn.ModuleList)]
    return max(lists, key=len)


def with_ddp(model: nn.Module, options: dict[str, str]) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model, device_ids=[0])


def with_fsdp2(model: nn.Module, options: dict[str, str]) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    world = int(options["data_parallel"])
    group = int(options["sharding"].partition(":")[2] or world)
    if group == world:
        mesh = init_device_mesh("cuda", (world,))
    else:
        mesh = init_device_mesh("cuda", (world // group, group), mesh_dim_names=("replicate", "shard"))
    mixed = options["precision"] == "bf16-mixed"
    policy = MixedPrecisionPolicy(param_dtype=BFLOAT16, reduce_dtype=torch.float32) if mixed else MixedPrecisionPolicy()
    reshard = options.get("reshard_after_forward", "default")
    after = int(reshard) if reshard.isdigit() else reshard != "never"
    # torchtitan, distributed/fsdp.py: apply_fsdp_to_decoder.
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    ends = [model.model.embed_tokens] * tied + [model.model.norm, model.lm_head]
    if options["loop"] == "torchtitan" and not tied:
        fully_shard(model.model.embed_tokens, mesh=mesh, mp_policy=policy, reshard_after_forward=after)
    for block in blocks_of(model):
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=after)
    if options["loop"] == "torchtitan":
        fully_shard(ends, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard == "always")
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def with_fsdp1(model: nn.Module, options: dict[str, str]) -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    mixed = options["precision"] == "bf16-mixed"
    policy = MixedPrecision(param_dtype=BFLOAT16, reduce_dtype=BFLOAT16) if mixed else None
    wrap = ModuleWrapPolicy({type(blocks_of(model)[0])})
    return FullyShardedDataParallel(
        model, auto_wrap_policy=wrap, mixed_precision=policy, use_orig_params=True, device_id=torch.device("cuda", 0)
    )


def wrapped(model: nn.Module, options: dict[str, str]) -> nn.Module:
    kind = options["sharding"].partition(":")[0]
    return {"ddp": with_ddp, "fsdp1": with_fsdp1, "fsdp2": with_fsdp2, "hsdp": with_fsdp2}[kind](model, options)


def run_blocks(checkpointing: bool, reentrant: bool) -> Callable[..., Tensor]:
    """Without a cache of keys and values, of which fully_shard() hands each block a copy."""

    def run(self: Any, hidden_states: Tensor, cache: Any, *arguments: Any) -> Tensor:
        for layer in blocks_of(self):
            if checkpointing:
                hidden_states = checkpoint(
                    layer.__call__, hidden_states, None, *arguments, use_reentrant=reentrant
                )
            else:
                hidden_states = layer(hidden_states, None, *arguments)
        return hidden_states

    return run


def freeze(model: nn.Module, options: dict[str, str]) -> None:
    """As accelerate leaves it: under mixed precision what is frozen stays in the lower type."""
    for layer in filter(None, options.get("freeze", "").split(",")):
        for each in model.get_submodule(layer).parameters():
            each.requires_grad_(False)
            if options["precision"] == "bf16-mixed":
                each.data = each.data.to(BFLOAT16)


def record(config: dict[str, Any], options: dict[str, str]) -> Run:
    """The steps of torchtune's loop, torchtitan's or HuggingFace's Trainer's, whose checkpointing is reentrant. The outputs
    end with the function that computes the loss, which keeps its name. Torchtitan zeroes gradients before the step, the
    others after it."""
    trainer = options["loop"] == "hf-trainer"
    dtype = BFLOAT16 if options["precision"] == "bf16" else torch.float32
    with gpumem.record.pretend_world(int(options["data_parallel"])), recording() as recorder:
        model = BUILDERS[config["model_type"]](config).to("cuda", dtype)
        freeze(model, options)
        model.model.checkpointing = True
        model.model.run_blocks = types.MethodType(
            run_blocks(options["checkpointing"] != "none", trainer), model.model
        )
        model = wrapped(model, options)
        optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4)
        for _ in range(2):
            recorder.steps.next_step()
            if options["loop"] == "torchtitan":
                optimizer.zero_grad()
            for _ in range(int(options["accumulate"])):
                batch = batch_of(config, dtype, *SIZES)
                loss = model(*batch).loss
                loss.backward()
                loss = loss.detach()
            optimizer.step()
            if options["loop"] != "torchtitan":
                optimizer.zero_grad()
    return recorder.run


def runs() -> list[dict[str, str]]:
    usual = {"loop": "torchtune", "batch_size": str(SIZES[0]), "seq_length": str(SIZES[1])}
    all_runs = []
    for sharding in ("fsdp2", "fsdp1", "ddp", "hsdp:2"):
        for world in ("8",) if sharding.startswith("hsdp") else ("2", "8"):
            for precision in ("fp32", "bf16", "bf16-mixed"):
                if sharding == "ddp" and precision == "bf16-mixed":
                    continue  # DistributedDataParallel has none
                for checkpointing in ("none", "full"):
                    for accumulate in ("1", "2") if world == "2" and checkpointing == "none" else ("1",):
                        chosen = dict(sharding=sharding, data_parallel=world, precision=precision)
                        all_runs.append({**usual, **chosen, "checkpointing": checkpointing, "accumulate": accumulate})
    for loop, reshard in (
        *(("torchtune", each) for each in ("always", "never", "2", "4")),
        *(("torchtitan", each) for each in ("default", "always", "never")),
    ):
        for precision in ("fp32", "bf16-mixed"):
            for checkpointing in ("none", "full"):
                chosen = dict(sharding="fsdp2", data_parallel="8", precision=precision, reshard_after_forward=reshard)
                all_runs.append({**usual, **chosen, "loop": loop, "checkpointing": checkpointing, "accumulate": "1"})
    for loop, reshard in (("torchtitan", "default"), ("torchtune", "never"), ("torchtune", "2")):
        chosen = dict(sharding="hsdp:4", data_parallel="8", precision="bf16-mixed", reshard_after_forward=reshard)
        for accumulate in ("1", "2"):
            all_runs.append({**usual, **chosen, "loop": loop, "checkpointing": "full", "accumulate": accumulate})
    for precision in ("fp32", "bf16", "bf16-mixed"):
        chosen = dict(sharding="fsdp1", data_parallel="4", precision=precision, loop="hf-trainer", checkpointing="full")
        for frozen in ({}, {"freeze": "model.layers.2,model.layers.3"}):
            all_runs.append({**usual, **chosen, "accumulate": "1", **frozen})
    # Reentrant checkpoints under fully_shard(), as PyTorch has them before 2.10.
    for sharding, reshard in (("fsdp2", "default"), ("fsdp2", "never"), ("fsdp2", "2"), ("hsdp:2", "default")):
        for precision in ("fp32", "bf16", "bf16-mixed"):
            chosen = dict(sharding=sharding, data_parallel="4", precision=precision, loop="hf-trainer")
            kept = dict(reshard_after_forward=reshard, checkpointing="full", accumulate="1")
            all_runs.append({**usual, **chosen, **kept})
    for accumulate, frozen in (("2", {}), ("1", {"freeze": "model.layers.2,model.layers.3"})):
        chosen = dict(sharding="fsdp2", data_parallel="4", precision="bf16-mixed", loop="hf-trainer", checkpointing="full")
        all_runs.append({**usual, **chosen, "accumulate": accumulate, **frozen})
    return all_runs


def write_recordings() -> None:
    """Of Llama, each sharding with and without checkpointing."""
    config = {**CONFIGS["llama"], "vocab_size": 4096}
    listed = []
    for options in runs():
        usual = options["precision"] == "bf16" and options["accumulate"] == "1" and options["loop"] == "torchtune"
        if not usual or options["data_parallel"] != "8":
            continue
        name = f"{options['sharding'].replace(':', '_')}_{options['checkpointing']}.json.gz"
        point = (int(options["batch_size"]), int(options["seq_length"]))
        write_recording(HERE / name, recording_text([record(config, options)], [point], name))
        listed.append({"recording": name, "config": config, "options": options})
        print(name, (HERE / name).stat().st_size, flush=True)
    (HERE / "recordings.json").write_text(json.dumps(listed, indent=1) + "\n")


def main() -> None:
    warnings.simplefilter("ignore")
    write_recordings()
    if sys.argv[1:] == ["--recordings"]:
        return
    golden = []
    for name in sys.argv[1:] or ("llama", "qwen2", "mistral"):
        config = {**CONFIGS[name], "vocab_size": 4096}
        measured = []
        for options in runs():
            # A tied unit that is given back at the end of forward is not modelled.
            given_back = options["loop"] == "torchtitan" and options["reshard_after_forward"] == "always"
            if given_back and config.get("tie_word_embeddings"):
                continue
            measured.append({"options": options, "peak_bytes": peak_of_steps(record(config, options))})
            print(name, options, measured[-1]["peak_bytes"], flush=True)
        golden.append({"config": config, "runs": measured})
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
