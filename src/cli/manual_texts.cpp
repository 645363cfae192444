#include "manual.hpp"

namespace gpumem::cli {

namespace {

constexpr ManualText kTexts[] = {
    {.command = "",
     .description = "gpumem tells how much GPU memory a training job of a neural network will take. It needs no GPU "
                    "and does not run "
                    "the model: it reads a summary of the model, a config.json of HuggingFace, a graph that torch.fx "
                    "exported, or a "
                    "recording of one training step.\n\n"
                    "Each command has a page of its own. Figures are in KiB, MiB and GiB (powers of 1024). The "
                    "figures of one table "
                    "have one unit.",
     .examples = {"gpumem estimate resnet50.txt --batch 32 --gpu a100-40gb", "gpumem fit resnet50.txt --gpu t4-16gb",
                  "gpumem plan config.json --gpu h100-80gb --seq 8192 --global-batch 512"}},
    {.command = "estimate",
     .description =
         "Prints what a training job is expected to take on a GPU, a range, whether it fits, and what the "
         "memory is made "
         "of.\n\n"
         "allocated is what the live tensors take at the peak. reserved is what PyTorch's allocator holds. "
         "device is what nvidia-smi shows: reserved plus the CUDA context. In a terminal the range is drawn against "
         "the memory of the "
         "GPU.",
     .examples = {"gpumem estimate resnet50.txt --batch 32 --gpu a100-40gb",
                  "gpumem estimate config.json --batch 4 --seq 2048 --precision bf16-mixed --optimizer adamw",
                  "gpumem estimate --gpu h100-80gb -- axolotl train axolotl.yaml"},
     .see_also = {"fit", "advise", "timeline"}},
    {.command = "fit",
     .description =
         "Finds the largest batch that fits on a GPU, and says what one sample more would need. With --batch it "
         "finds the longest sequence at that batch size.",
     .examples = {"gpumem fit resnet50.txt --gpu t4-16gb", "gpumem fit config.json --gpu a100-80gb --batch 1"},
     .see_also = {"estimate", "advise"}},
    {.command = "check",
     .description = "Says in one line whether a job fits on a GPU, for scripts: the exit code is 0 if it fits, or is "
                    "tight, and 4 if it does not. The command that starts the training may say what the job is.",
     .examples = {"gpumem check resnet50.txt --batch 32 --gpu a100-40gb",
                  "gpumem check --gpu h100-80gb -- axolotl train axolotl.yaml && axolotl train axolotl.yaml"},
     .see_also = {"estimate", "fit"}},
    {.command = "advise",
     .description =
         "Shows how much memory each single change to a job would save, the cheapest for the training first. If none "
         "is enough, it combines the cheapest ones until the job fits.",
     .examples = {"gpumem advise resnet50.txt --batch 512 --gpu a100-40gb"},
     .see_also = {"estimate", "fit"}},
    {.command = "plan",
     .description =
         "Finds the layouts of a job over several GPUs that fit (data, tensor, context, pipeline and expert "
         "parallel, sharding, micro-batch, checkpointing), and ranks them by the time of a step. It prints the "
         "first as settings of its framework.",
     .examples = {"gpumem plan config.json --gpu h100-80gb --gpus 64 --seq 8192 --global-batch 512"},
     .see_also = {"estimate", "request"}},
    {.command = "request",
     .description = "Prints what to ask a scheduler or launcher for, in its own units.",
     .examples = {"gpumem request vgg16.txt --batch 64 --for slurm", "gpumem request vgg16.txt --batch 64 --for hami"},
     .see_also = {"estimate", "place"}},
    {.command = "timeline",
     .description =
         "Writes one HTML page that shows the memory of a training run event by event. It opens in any browser "
         "and needs no network.",
     .examples = {"gpumem timeline resnet50.json --batch 32 -o step.html"},
     .see_also = {"estimate"}},
    {.command = "batch",
     .description =
         "Reads one job a line as JSON, and prints one estimate a line as JSON. The answers come in the order of "
         "the jobs, each as soon as those before it are there.",
     .examples = {"gpumem batch jobs.jsonl --gpu a100-40gb"},
     .see_also = {"estimate"}},
    {.command = "mcp",
     .description =
         "Answers an assistant over the Model Context Protocol, on standard input and output. Its tools are estimate, "
         "fit, "
         "advise, gpus and plan. It reads the files that a call names, and nothing else; it uses no network.",
     .examples = {"gpumem mcp"},
     .see_also = {"batch", "estimate"}},
    {.command = "evaluate",
     .description = "Compares estimates with measured runs or starts of servers, and prints how far off they are.",
     .examples = {"gpumem evaluate runs.csv --estimator replay --out predictions.csv",
                  "gpumem evaluate --vllm-log start.log --gpu h100-80gb --config config.json"},
     .see_also = {"calibrate", "estimate", "serve"}},
    {.command = "utilisation",
     .description = "Tells how busy one training job will keep a GPU, by the counters of DCGM and nvidia-smi.",
     .examples = {"gpumem utilisation resnet50.txt --batch 32 --gpu a100-40gb"},
     .see_also = {"estimate", "place"}},
    {.command = "calibrate",
     .description =
         "Writes a GPU profile with the CUDA context that your own measured runs show. --gpu takes the file.",
     .examples = {"gpumem calibrate runs.csv --gpu a100-40gb -o ours.json"},
     .see_also = {"evaluate", "gpus"}},
    {.command = "serve",
     .description =
         "Prints what each GPU of a server of vLLM or SGLang takes, how many tokens its KV cache holds, and whether it "
         "starts, or why it does not. It follows what the engine does at its start. --fit says how far each option can "
         "go, --advise which changes let it start or hold more tokens, --plan how to share out several GPUs.",
     .examples = {"gpumem serve config.json --gpu h100-80gb --engine-version 0.19.0 -- vllm serve NAME "
                  "--tensor-parallel-size 2"},
     .see_also = {"gpus"}},
    {.command = "posttrain",
     .description =
         "Prints what a post-training job takes on each GPU, phase by phase: rollout, log-probabilities, reference, "
         "update. The phases of all its models go through one allocator; a colocated vLLM stands beside it, awake or "
         "asleep. --fit says how far each option can go, --advise which changes let it take less.",
     .examples = {"gpumem posttrain config.json --algorithm dpo --batch 2 --seq 2048 --precision bf16-mixed",
                  "gpumem posttrain config.json --algorithm grpo --rollout vllm --sleep-level 1 --batch 4 "
                  "--prompt-length 512 --completion-length 1024 --lora 16"},
     .see_also = {"estimate", "serve"}},
    {.command = "gpus",
     .description =
         "Lists the GPUs that gpumem knows: memory, streaming multiprocessors and memory bandwidth. With a name it "
         "prints the profile, with the source of each figure.",
     .examples = {"gpumem gpus", "gpumem gpus h100-80gb"},
     .see_also = {"calibrate"}},
    {.command = "models",
     .description =
         "Lists the models that gpumem knows: the model types of a config.json, by architecture, with what they are "
         "read from; and the models that a job can give by name, because gpumem knows their published sizes. With a "
         "text it lists those that have the text in their names.",
     .examples = {"gpumem models", "gpumem models qwen"},
     .see_also = {"estimate"}},
    {.command = "model",
     .description =
         "Shows, checks and runs the trained models that some estimators read. Each is a folder of config.json and "
         "model.safetensors.",
     .see_also = {"estimate"}},
    {.command = "model show",
     .description = "Prints what a trained model reads and gives, where it is from, and how good it is.",
     .examples = {"gpumem model show gpumemnet-mlp-cnn"},
     .see_also = {"model"}},
    {.command = "model verify",
     .description =
         "Checks that models load and give what their test vectors say. Exit code 3 if one of them does not.",
     .examples = {"gpumem model verify gpumemnet-mlp-cnn"},
     .see_also = {"model"}},
    {.command = "model run",
     .description = "Reads one JSON object of raw figures a line, and prints what the model says of them.",
     .examples = {"gpumem model run gpumemnet-mlp-cnn inputs.jsonl"},
     .see_also = {"model"}},
    {.command = "model import",
     .description = "Makes a model folder from one of GPUMemNet's published checkpoints.",
     .examples = {"gpumem model import mlp.ckpt -o mlp"},
     .see_also = {"model"}},
    {.command = "place",
     .description =
         "Estimates a job, looks at a server, and says which of its GPUs the job should run on, or why it has "
         "to wait. In a terminal each GPU's memory is drawn.",
     .examples = {"gpumem place vgg16.txt --batch 64 --server server.json --policy magm",
                  "gpumem place vgg16.txt --batch 64 --server live"},
     .see_also = {"server", "run", "simulate"}},
    {.command = "server",
     .description = "Looks at the GPUs of this machine: memory, SM activity and the processes there. In a terminal it "
                    "prints a table, otherwise the JSON that place reads.",
     .examples = {"gpumem server --json", "gpumem server --watch"},
     .see_also = {"place", "run"}},
    {.command = "run",
     .description = "Waits until the GPUs of this machine have room for a job, and runs it there.",
     .examples = {"gpumem run --summary resnet50.txt --batch 32 -- python3 train.py",
                  "gpumem run --memory 12GiB --gpus 2 -- torchrun train.py"},
     .see_also = {"queue", "cancel", "server"}},
    {.command = "queue",
     .description = "Lists the jobs that run on this machine's GPUs and those that wait, and says why each waits.",
     .examples = {"gpumem queue"},
     .see_also = {"run", "cancel"}},
    {.command = "cancel",
     .description = "Takes a waiting job out of the queue, or ends one that runs.",
     .examples = {"gpumem cancel 12"},
     .see_also = {"run", "queue"}},
    {.command = "replay-trace",
     .description =
         "Replays the memory events of a recorded run through a model of PyTorch's caching allocator, and prints "
         "the peaks.",
     .examples = {"gpumem replay-trace snapshot.json --gpu t4-16gb"},
     .see_also = {"estimate"}},
    {.command = "simulate",
     .description =
         "Plays the jobs of a trace on a server under a placement policy, and prints how long they wait and run, "
         "how often they run out of memory, and how busy the GPUs are.",
     .examples = {"gpumem simulate trace.csv --gpus 4xa100-40gb --policy magm -o picture.svg"},
     .see_also = {"place"}},
    {.command = "completion",
     .description = "Prints a script that completes gpumem's commands, options and their values in a shell.",
     .examples = {"gpumem completion bash", "gpumem completion fish"},
     .see_also = {"man"}},
    {.command = "man",
     .description = "Prints a manual page, or writes all of them to a folder.",
     .examples = {"gpumem man estimate", "gpumem man -o man1"},
     .see_also = {"completion"}},
};

}  // namespace

std::span<const ManualText> manual_texts() { return kTexts; }

}  // namespace gpumem::cli
