#!/usr/bin/env python3
"""Compares `gpumem serve` with measured starts of vLLM.

    bench/serving.py RUNS.csv CONFIGS [--program gpumem] [--all]

Input: RUNS.csv, one row a start with what vLLM's log printed (model, version, gpu, its options, weights_gib,
activation_gib, kv_cache_tokens, status), and CONFIGS, a folder with OWNER--NAME.json, the model's config.json. Output:
the errors of the rows of one version and GPU whose options are known, the table of docs/serving.md; with --all, one
line a row. A row without figures or without a config is counted and left out.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys

FLAGS = {
    "tensor_parallel": "--tensor-parallel-size",
    "pipeline_parallel": "--pipeline-parallel-size",
    "data_parallel": "--data-parallel-size",
    "max_model_len": "--max-model-len",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_num_seqs": "--max-num-seqs",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "block_size": "--block-size",
    "kv_cache_dtype": "--kv-cache-dtype",
}
TYPES = ("float16", "bfloat16", "float32", "half", "float")
GIB = 1 << 30


def command_of(row):
    words = ["vllm", "serve", row["model"]]
    for column, flag in FLAGS.items():
        if row[column]:
            words += [flag, row[column]]
    if row["dtype"] in TYPES:
        words += ["--dtype", row["dtype"]]
    if row["quantization"] == "fp8":
        words += ["--quantization", "fp8"]
    if row["enforce_eager"].lower() in ("true", "yes"):
        words.append("--enforce-eager")
    return words


def answer_to(program, config, row):
    line = [program, "serve", str(config), "--gpu", row["gpu"], "--engine-version", row["version"], "--json", "--"]
    done = subprocess.run(line + command_of(row), capture_output=True, text=True, check=False)
    return (json.loads(done.stdout), None) if done.stdout else (None, done.stderr.strip())


def relative(estimate, measured):
    return estimate / float(measured) - 1.0 if measured else None


def errors_of(answer, row):
    # The log of a pipeline shows the parts of one stage, and does not say which.
    parts = row if row["pipeline_parallel"] in ("", "1") else {"weights_gib": "", "activation_gib": ""}
    return {
        "weights": relative(answer["weights_bytes"] / GIB, parts["weights_gib"]),
        "activation": relative(answer["activation_bytes"] / GIB, parts["activation_gib"]),
        "KV tokens": relative(answer["kv_cache_tokens"], row["kv_cache_tokens"]),
    }


def print_table(errors):
    print("| figure | starts | median error | 90 % of starts within | worst |")
    print("|---|---|---|---|---|")
    for figure in ("weights", "activation", "KV tokens"):
        sizes = sorted(abs(each[figure]) for each in errors if each[figure] is not None)
        if sizes:
            high = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
            shown = [f"{100 * size:.2f} %" for size in (statistics.median(sizes), high, sizes[-1])]
            print(f"| {figure} | {len(sizes)} | {' | '.join(shown)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("configs", type=pathlib.Path)
    parser.add_argument("--program", default="gpumem")
    parser.add_argument("--version", default="0.19.0", help="of vLLM; rows of others are left out")
    parser.add_argument("--gpu", default="h100-80gb")
    parser.add_argument("--all", action="store_true", help="one line a row")
    arguments = parser.parse_args()
    configs = {path.stem.replace("--", "/", 1).lower(): path for path in arguments.configs.glob("*.json")}
    errors, refused, without = [], [], 0
    verdicts = {True: 0, False: 0}
    with open(arguments.runs, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file)
                if row["version"] == arguments.version and row["gpu"].lower() == arguments.gpu]
    for row in rows:
        config = configs.get(row["model"].lower())
        if config is None or not row["weights_gib"]:
            without += 1
            continue
        answer, complaint = answer_to(arguments.program, config, row)
        if answer is None:
            refused.append(f"{row['name']}: {complaint}")
            continue
        errors.append(errors_of(answer, row))
        verdicts[answer["starts"]] += 1
        if arguments.all:
            shown = ", ".join(f"{name} {100 * size:+.2f} %" for name, size in errors[-1].items() if size is not None)
            print(f"{row['name']}: {shown}; {row['status']}, starts: {answer['starts']}")
    print(f"{len(errors)} of {len(rows)} starts answered; {len(refused)} refused, {without} without a config or figures; "
          f"{verdicts[True]} start, {verdicts[False]} do not")
    for line in refused:
        print(f"refused: {line}", file=sys.stderr)
    print_table(errors)


if __name__ == "__main__":
    main()
