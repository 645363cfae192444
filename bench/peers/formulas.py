"""Published formulas for the memory of training a language model, restated from their source. Plain arithmetic.

Each takes a `Run`: one row of a table of measured runs (the columns that `gpumem evaluate` reads) with its model's config.
Each answers in bytes of one GPU, or raises `NotCovered` with what of the run the formula has no term for.

  accelerate  huggingface/accelerate, src/accelerate/commands/estimate.py: the model's bytes, four times over in float32
              ("Training using Adam"); nothing of the batch
  eleuther    EleutherAI/cookbook, calc/calc_transformer_mem.py, its defaults for what the run does not say
  fitcheck    fitcheck-llm, docs/SPEC.md and its derivations, September 2026: six components, fine-tuning on one GPU

As a program:  formulas.py NAME RUNS.csv    one line a run: its name, tab, MiB or "none: WHY"
"""

from __future__ import annotations

import csv
import dataclasses
import json
import pathlib
import sys

MIB = 1024**2
GIB = 1024**3


class NotCovered(Exception):
    """The formula has no term for something of this run."""


@dataclasses.dataclass(frozen=True)
class Run:
    row: dict
    config: dict

    def __getitem__(self, column):
        return self.row.get(column, "")

    def count(self, column, default=1):
        return int(self.row.get(column) or default)

    def field(self, *names, default=None):
        """The first of these that the config has; Megatron and HuggingFace name things differently."""
        for name in names:
            if self.config.get(name) is not None:
                return self.config[name]
        if default is not None:
            return default
        raise NotCovered(f"the config has no {names[0]}")

    @property
    def parameters(self):
        return self.field("_parameters")

    @property
    def is_gated(self):
        """Whether a block's MLP has three matrices, as Llama's has."""
        return self.config.get("swiglu", self.config.get("hidden_act") == "silu")

    @property
    def is_adapted(self):
        return bool(self["lora_rank"])


def read_runs(table):
    """The runs of a CSV; configs are in `configs` next to it."""
    table = pathlib.Path(table)
    configs, runs = {}, []
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["config"]
            if name not in configs:
                configs[name] = json.loads((table.parent / "configs" / name).read_text(encoding="utf-8"))
            runs.append(Run(row, configs[name]))
    return runs


def need(condition, why):
    if not condition:
        raise NotCovered(why)


def accelerate(run):
    """What it prints for the precision under "Training using Adam": the largest of its parts."""
    need(run.count("gpus") == 1, "several GPUs")
    need(not run.is_adapted and not run["quantization"], "adapters or quantised weights")
    need(run["optimizer"] in ("adam", "adamw"), f"optimizer {run['optimizer']}")
    fp32 = 4 * run.parameters
    if run["precision"] == "fp32":
        parts = {"model": fp32, "gradients": fp32, "optimizer": 2 * fp32, "step": 4 * fp32}
    else:
        parts = {"model": fp32, "gradients": fp32 + fp32 // 2, "optimizer": 2 * fp32, "step": 2 * fp32}
    return max(parts.values())


ZERO_STAGES = {"none": 0, "": 0, "ddp": 0, "distributed-optimizer": 1, "zero-1": 1, "zero-2": 2, "zero-3": 3}
ALLGATHER_BUCKET = 5e8  # elements; both are its defaults
MAX_LIVE_PARAMETERS = 1e9
STATE_BYTES = {"adam": 12, "adamw": 12, "muon": 8, "sgd": 8}  # of a float32 copy and the moments


def eleuther_parameters(run):
    """(without experts, of the MLPs) as the formula counts them: it knows no tied embedding."""
    hidden, layers = run.field("hidden_size"), run.field("num_layers", "num_hidden_layers")
    heads = run.field("num_attention_heads")
    groups = run.field("num_query_groups", "num_key_value_heads", default=heads)
    inner = run.field("ffn_hidden_size", "intermediate_size", default=4 * hidden)
    vocabulary = run.field("padded_vocab_size", "vocab_size")
    embeddings = 2 * vocabulary * hidden + hidden * run.count("seq_length")
    norms = 8 * hidden * layers + 2 * hidden
    attention = int(2 * (1 + groups / heads) * layers * hidden * hidden)
    mlps = (3 if run.is_gated else 2) * layers * inner * hidden
    return embeddings + norms + attention, mlps


def eleuther_activations(run):
    """Table 2 of arXiv:2205.05198, as the calculator has it; not split over tensor or pipeline ranks."""
    hidden, layers = run.field("hidden_size"), run.field("num_layers", "num_hidden_layers")
    sequence = run.count("seq_length")
    size = 2
    one = sequence * run.count("batch_size") * hidden * layers
    if run["checkpointing"] == "full":
        return one * (16 * size + 2)
    scores = (2 * size + 1) * run.field("num_attention_heads") * sequence / hidden
    return one * (16 * size + 2 + scores)


def eleuther(run):
    need(not run.is_adapted and not run["quantization"], "adapters or quantised weights")
    need(run["sharding"] in ZERO_STAGES, f"sharding {run['sharding']}")
    need(run["optimizer"] in STATE_BYTES, f"optimizer {run['optimizer']}")
    need(run.count("context_parallel") == 1, "context parallelism")
    need(run.config.get("_model_family") not in ("t5", "hybrid"), "more than one kind of block")
    gpus, stage = run.count("gpus"), ZERO_STAGES[run["sharding"]]
    rest, mlps = eleuther_parameters(run)
    experts = run.field("num_experts", "num_local_experts", default=0)
    parameters = rest + mlps * (experts / run.count("expert_parallel") if experts else 1)
    weight = 4 if run["precision"] == "fp32" else 2
    model = parameters * weight / (run.count("tensor_parallel") * run.count("pipeline_parallel"))
    gradients = parameters * (2 if run["precision"] == "bf16" else 4)
    states = parameters * STATE_BYTES[run["optimizer"]]
    buffers = 0
    if stage >= 1 and gpus > 1:
        buffers += ALLGATHER_BUCKET * weight
    if stage == 3 and gpus > 1:
        buffers += MAX_LIVE_PARAMETERS * weight
    shared = [gpus if stage >= at else 1 for at in (3, 2, 1)]
    state = model / shared[0] + gradients / shared[1] + states / shared[2]
    return state + buffers + eleuther_activations(run)


FITCHECK_FAMILIES = ("llama", "mistral", "qwen2", "gemma", "gemma2", "phi3")
FITCHECK_STATES = {"adamw": 8, "adam": 8, "adamw-8bit": 2, "adam-8bit": 2, "sgd": 0}
NF4_BYTES = 0.5
NF4_SCALE_BYTES = 4 / 64  # one float32 for 64 weights


@dataclasses.dataclass(frozen=True)
class Shape:
    """A Llama-like decoder as fitcheck reads it."""

    hidden: int
    layers: int
    heads: int
    groups: int
    head: int
    inner: int
    vocabulary: int

    @staticmethod
    def of(run):
        hidden, heads = run.field("hidden_size"), run.field("num_attention_heads")
        return Shape(
            hidden, run.field("num_hidden_layers"), heads, run.field("num_key_value_heads", default=heads),
            run.field("head_dim", default=hidden // heads), run.field("intermediate_size"), run.field("vocab_size"),
        )  # fmt: skip

    @property
    def linears(self):
        """{name: (inputs, outputs)} of one block."""
        queries, keys = self.heads * self.head, self.groups * self.head
        return {
            "q_proj": (self.hidden, queries), "k_proj": (self.hidden, keys), "v_proj": (self.hidden, keys),
            "o_proj": (queries, self.hidden), "gate_proj": (self.hidden, self.inner),
            "up_proj": (self.hidden, self.inner), "down_proj": (self.inner, self.hidden),
        }  # fmt: skip

    @property
    def quantised_parameters(self):
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears.values())


def fitcheck_check(run):
    need(run.count("gpus") == 1, "several GPUs")
    need(run.config.get("model_type") in FITCHECK_FAMILIES, f"model type {run.config.get('model_type')}")
    need(run["optimizer"] in FITCHECK_STATES, f"optimizer {run['optimizer']}")
    need(run["quantization"] in ("", "nf4", "nf4-double"), f"quantisation {run['quantization']}")
    need(run["checkpointing"] in ("none", "full"), f"checkpointing {run['checkpointing']}")


def fitcheck_adapters(run, shape):
    """Parameters of the adapters. PEFT passes over a target that the model does not have."""
    targets = run["lora_targets"].split("+")
    if "all-linear" in targets:
        targets += shape.linears
    need("lm_head" not in targets, "adapters at lm_head")
    return shape.layers * int(run["lora_rank"]) * sum(sum(shape.linears[name]) for name in shape.linears if name in targets)


def fitcheck_activations(run, shape, size):
    tokens = run.count("batch_size") * run.count("seq_length")
    queries, keys = shape.heads * shape.head, shape.groups * shape.head
    layer = size * tokens * (4 * shape.hidden + 2 * queries + 2 * keys + 3 * shape.inner)
    if run["attention"] in ("unfused", "eager"):  # any tiled kernel is as good as flash, it says
        layer += 9 * size * run.count("batch_size") * shape.heads * run.count("seq_length") ** 2
    logits = 4 * 4 * tokens * shape.vocabulary
    if run["checkpointing"] == "full":
        return 2 * shape.layers * size * tokens * shape.hidden + max(logits, layer)
    return shape.layers * layer + logits


def fitcheck(run):
    """Five components where the run's figure is PyTorch's; the sixth, CUDA's, for what the device shows."""
    fitcheck_check(run)
    shape = Shape.of(run)
    size = 4 if run["precision"] == "fp32" else 2
    quantised = bool(run["quantization"])
    if quantised:
        scales = NF4_SCALE_BYTES * (0.5 if run["quantization"] == "nf4-double" else 1)
        inside = shape.quantised_parameters
        base = inside * (NF4_BYTES + scales) + 4 * (run.parameters - inside)
    else:
        base = size * run.parameters
    trained = fitcheck_adapters(run, shape) if run.is_adapted else run.parameters
    trained_size = 4 if run.is_adapted and quantised else size
    states = FITCHECK_STATES[run["optimizer"]] * trained
    if not run.is_adapted and size == 2:
        states += 4 * trained  # its float32 master copy
    adapters = trained_size * trained if run.is_adapted else 0
    activations = fitcheck_activations(run, shape, size)
    total = base + adapters + states + trained_size * trained + activations
    if run["figure"] in ("allocated", "active"):
        return total
    return total + 500 * MIB + 0.05 * (base + activations)


FORMULAS = {"accelerate": accelerate, "eleuther": eleuther, "fitcheck": fitcheck}


def answer(formula, run):
    """(bytes, "") or (None, why not)"""
    try:
        return FORMULAS[formula](run), ""
    except NotCovered as why:
        return None, str(why)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in FORMULAS:
        print(__doc__, file=sys.stderr)
        return 2
    for run in read_runs(sys.argv[2]):
        found, why = answer(sys.argv[1], run)
        print(run["name"], f"none: {why}" if found is None else f"{found / MIB:.1f}", sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
