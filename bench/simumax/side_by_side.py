#!/usr/bin/env python3
"""gpumem and SimuMax side by side: the memory and the step times that SimuMax publishes for 8 B200s.

    side_by_side.py --gpumem build/release/src/cli/gpumem b200_release_v1.2_summary.json [--gpu b200-180gb] [--rows]

Input: the table that SimuMax publishes (github.com/MooreThreads/SimuMax, docs/b200/b200_release_v1.2_summary.json): per
        case what was measured and what SimuMax expects; and the program. The table is not part of this project.
Output: for allocated memory and for the time of a step, the median and the worst |expected - measured| / measured of
        both, and the share of pairs of layouts of one model whose order is right. --rows prints each case.
Units: GiB (largest rank), milliseconds.
Source of what a case's name leaves out: simu_tools/megatron_scripts/scripts/run_pretrain_llama3.sh and
        run_pretrain_deepseekv2.sh of that repository: Megatron-LM, bf16, a distributed optimizer, micro-batches of one
        sample of 4,096 tokens, nothing recomputed, sequence parallelism, fused cross entropy (cef).
        Gradients and parameters of a step travel by themselves (docs/b200/b200_real_repro_guide.md: a non-overlap
        contract).
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Megatron's own arguments, as its scripts have them: the model that ran is Megatron's, not transformers'.
MEGATRON = {"_model_family": "gpt", "position_embedding_type": "rope", "swiglu": True, "normalization": "RMSNorm",
            "add_bias_linear": False, "untie_embeddings_and_output_weights": True, "attention_dropout": 0.0,
            "hidden_dropout": 0.0, "transformer_impl": "transformer_engine", "cross_entropy_loss_fusion": True,
            "cross_entropy_fusion_impl": "te", "bf16": True}
LLAMA = {**MEGATRON, "padded_vocab_size": 128256, "kv_channels": 128}
DEEPSEEK = {**MEGATRON, "multi_latent_attention": True, "qk_layernorm": True, "q_lora_rank": 1536,
            "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
            "num_attention_heads": 128, "moe_grouped_gemm": True}
MODELS = {
    "llama3_70b": {**LLAMA, "hidden_size": 8192, "ffn_hidden_size": 28672, "num_attention_heads": 64,
                   "num_query_groups": 8},
    "llama3_405b": {**LLAMA, "hidden_size": 16384, "ffn_hidden_size": 53248, "num_attention_heads": 128,
                    "num_query_groups": 16},
    "deepseekv2": {**DEEPSEEK, "hidden_size": 5120, "ffn_hidden_size": 12288, "moe_ffn_hidden_size": 1536,
                   "num_experts": 160, "moe_shared_expert_intermediate_size": 3072, "moe_router_topk": 6,
                   "padded_vocab_size": 102400},
    "deepseekv3": {**DEEPSEEK, "hidden_size": 7168, "ffn_hidden_size": 18432, "moe_ffn_hidden_size": 2048,
                   "num_experts": 256, "moe_shared_expert_intermediate_size": 2048, "moe_router_topk": 8,
                   "padded_vocab_size": 129280},
}
GIB = 2**30


def sizes_of(case):
    """{"tp": 2, "pp": 1, ...}: what the parts of a case's name say; ranks that it does not name are 1."""
    sizes = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "seq": 4096}
    for part in case.split("_"):
        sizes.update((name, int(number)) for name, number in re.findall(r"^(tp|pp|dp|ep|cp|mbc|seq|l)(\d+)$", part))
    return sizes


def layout_of(sizes):
    words = {"tensor-parallel": sizes["tp"], "pipeline-parallel": sizes["pp"], "context-parallel": sizes["cp"],
             "data-parallel": sizes["dp"], "expert-parallel": sizes["ep"], "batch": 1, "accumulate": sizes["mbc"]}
    shared = sizes["dp"] * sizes["cp"] > 1
    return " ".join(f"{name}={value}" for name, value in words.items()) + " sharding=" + (
        "distributed-optimizer" if shared else "ddp")


def limits_of(sizes):
    """Options that leave layouts of more ranks out of the search, which nobody asks for here."""
    return [word for name, kind in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("ep", "expert"))
            for word in (f"--at-most-{kind}-parallel", sizes[name])]


def explained(gpumem, gpu, case, folder):
    """What gpumem says of the case: (milliseconds, GiB), each None where it says nothing, and why it does not."""
    sizes = sizes_of(case)
    model = next(name for name in sorted(MODELS, key=len, reverse=True) if case.startswith(name))
    config = folder / f"{case}.json"
    layers = {"num_layers": sizes["l"], "max_position_embeddings": sizes["seq"]}
    if "num_experts" in MODELS[model]:
        layers["moe_layer_freq"] = f"([0]*1+[1]*{sizes['l'] - 1})"
    config.write_text(json.dumps({**MODELS[model], **layers}))
    command = [gpumem, "plan", config, "--gpu", gpu, "--gpus", "8", "--seq", sizes["seq"], "--framework", "megatron",
               "--global-batch", sizes["dp"] * sizes["mbc"], "--loss", "fused-ce", "--no-overlap", "--show", "1",
               "--json", "--explain", layout_of(sizes), *limits_of(sizes)]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    try:
        told = json.loads(run.stdout)["explained"]
    except (ValueError, KeyError):
        return None, None, run.stderr.strip()
    seconds, estimate = told["step_seconds"], told["estimate"]
    allocated = estimate and estimate["allocated_bytes"]
    return (seconds and seconds * 1e3, allocated and allocated / GIB,
            "; ".join(rule["rule"] for rule in told["outside"]))


def order_right(rows, figure):
    """Of pairs of one model and sequence whose measured times a sample differ by more than 5 %: the share in order."""
    right = []
    for one, other in itertools.combinations(rows, 2):
        if one["group"] != other["group"] or None in (one[figure], other[figure]):
            continue
        measured, told = ([row[name] / row["samples"] for row in (one, other)] for name in ("measured_ms", figure))
        if max(measured) > 1.05 * min(measured):
            right.append((measured[0] < measured[1]) == (told[0] < told[1]))
    return f"{sum(right)} of {len(right)} pairs" if right else "-"


def summary(rows, name, figure, measured):
    errors = [abs(row[figure] / row[measured] - 1) * 100 for row in rows if row[figure] is not None]
    if not errors:
        return f"{name}: no answer"
    return (f"{name}: {len(errors)} of {len(rows)} cases, median {statistics.median(errors):.1f} %, "
            f"worst {max(errors):.1f} %")


def row_of(case, ms, gib, why, printed):
    sizes = sizes_of(case["case"])
    if printed:
        said = [f"{figure:.1f}" if figure is not None else "-" for figure in (ms, gib)]
        print(f"{case['case']}: {said[0]} of {case['real_ms']:.1f} ms, "
              f"{said[1]} of {case['real_alloc_gib']:.1f} GiB {why}", flush=True)
    return {"group": (case["model"], sizes["seq"]), "samples": sizes["dp"] * sizes["mbc"],
            "measured_ms": case["real_ms"], "measured_gib": case["real_alloc_gib"], "ms": ms, "gib": gib,
            "their_ms": case["perf_ms"], "their_gib": case["perf_alloc_gib"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--gpumem", required=True)
    parser.add_argument("--gpu", default="b200-180gb")
    parser.add_argument("--rows", action="store_true", help="print each case")
    asked = parser.parse_args()
    cases = json.loads(asked.table.read_text())["rows"]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda case: explained(asked.gpumem, asked.gpu, case["case"], pathlib.Path(folder)), cases)
        rows = [row_of(case, *answer, asked.rows) for case, answer in zip(cases, answers)]
    print(summary(rows, "memory, gpumem ", "gib", "measured_gib"))
    print(summary(rows, "memory, SimuMax", "their_gib", "measured_gib"))
    print(summary(rows, "time,   gpumem ", "ms", "measured_ms"))
    print(summary(rows, "time,   SimuMax", "their_ms", "measured_ms"))
    print(f"order of times: gpumem {order_right(rows, 'ms')}, SimuMax {order_right(rows, 'their_ms')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
