#include "launch_command.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "command_words.hpp"
#include "expect.hpp"
#include "gpumem/core/result.hpp"
#include "launchers.hpp"
#include "setting.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;
using Files = std::map<std::string, std::string>;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

core::Result<LaunchedJob> try_reading(const std::string& line, const Files& files = {}) {
  return read_launch_command(words_of(line), [&](const std::string& path) -> core::Result<std::string> {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    return core::Error{core::ErrorCode::unreadable_file, "is not here", {path, 0, {}}};
  });
}

LaunchedJob read(const std::string& line, const Files& files = {}) {
  auto launched = try_reading(line, files);
  EXPECT_TRUE(succeeds(launched)) << line;
  return launched ? *std::move(launched) : LaunchedJob();
}

/// What the job wants of the option; "-" for nothing.
std::string wanted(const LaunchedJob& launched, std::string_view option) {
  const WantedOption* const found = launched.job.find(option);
  return found == nullptr ? "-" : found->value;
}

/// The notes, a line each.
std::string notes_of(const LaunchedJob& launched) {
  std::string text;
  for (const std::string& note : launched.notes) text += note + "\n";
  return text;
}

const std::string kTrainer = " --model_name_or_path m --output_dir o --per_device_train_batch_size 4";

TEST(LaunchCommand, ExamplesOfTransformersSayHowLongTheirSamplesAre) {
  const LaunchedJob blocks = read("python examples/pytorch/language-modeling/run_clm.py" + kTrainer);
  EXPECT_EQ(wanted(blocks, "seq_length"), "1024");
  EXPECT_EQ(wanted(blocks, "padding"), "false");
  ASSERT_EQ(blocks.job.missing.size(), 1U);
  EXPECT_NE(blocks.job.missing[0].find("for which 1024 tokens are taken"), std::string::npos);
  EXPECT_TRUE(blocks.job.unknown.empty()) << blocks.job.unknown.front();
  const LaunchedJob given = read("python run_clm.py --block_size 256" + kTrainer);
  EXPECT_EQ(wanted(given, "seq_length"), "256");
  EXPECT_TRUE(given.job.missing.empty());
  const LaunchedJob glue = read("python run_glue.py --task_name mrpc" + kTrainer);
  EXPECT_EQ(wanted(glue, "seq_length"), "128");
  EXPECT_EQ(wanted(glue, "padding"), "-");
  const LaunchedJob mixed = read("accelerate launch --mixed_precision bf16 run_qa_no_trainer.py" + kTrainer);
  EXPECT_EQ(wanted(mixed, "seq_length"), "384");
  EXPECT_EQ(wanted(mixed, "precision"), "amp-bf16");
  EXPECT_EQ(wanted(read("python another.py" + kTrainer), "seq_length"), "-");
}

TEST(LaunchCommand, TrlsTuningHasDefaultsOfItsOwn) {
  const LaunchedJob job = read("trl sft --model_name_or_path m --output_dir o --use_peft --packing");
  EXPECT_EQ(wanted(job, "seq_length"), "1024");
  EXPECT_EQ(wanted(job, "precision"), "amp-bf16");
  EXPECT_EQ(wanted(job, "checkpointing"), "full+non-reentrant");
  EXPECT_EQ(wanted(job, "lora"), "16");
  EXPECT_EQ(wanted(job, "loss"), "checkpointed:256");
  EXPECT_NE(notes_of(job).find("max_length 1024"), std::string::npos);
  const LaunchedJob told = read("python trl/scripts/sft.py --max_seq_length 64 --gradient_checkpointing False" +
                                kTrainer + " --use_peft --lora_target_modules down_proj, o_proj");
  EXPECT_EQ(wanted(told, "seq_length"), "64");
  EXPECT_EQ(wanted(told, "checkpointing"), "-");
  EXPECT_EQ(wanted(told, "lora_targets"), "down_proj+o_proj");
  const std::string words = "trl sft --model_name_or_path m --output_dir o";
  EXPECT_EQ(wanted(read(words + " --loss_type nll"), "loss"), "-");
  EXPECT_EQ(wanted(read(words + " --use_liger_kernel true"), "loss"), "fused");
  const LaunchedJob narrow = read(words + " --use_peft --dtype bfloat16");
  EXPECT_EQ(wanted(narrow, "precision"), "amp-bf16") << "adapters are float32, under autocast";
  EXPECT_EQ(wanted(narrow, "base_dtype"), "bf16");
}

TEST(LaunchCommand, OneProcessTakesTheGpusThatItSees) {
  const std::string words = "swift sft --model m --tuner_type lora";
  const LaunchedJob several = read("CUDA_VISIBLE_DEVICES=0,1,2,3 " + words);
  EXPECT_EQ(several.gpus, 4);
  EXPECT_TRUE(several.job.one_process);
  const LaunchedJob ranks = read("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 " + words);
  EXPECT_EQ(ranks.gpus, 2);
  EXPECT_FALSE(ranks.job.one_process);
  EXPECT_EQ(read("CUDA_VISIBLE_DEVICES=0 " + words).gpus, 1);
}

TEST(LaunchCommand, TorchrunCountsItsRanks) {
  const LaunchedJob job = read("torchrun --nnodes=2 --nproc-per-node 8 train.py --bf16 True" + kTrainer);
  EXPECT_EQ(job.gpus, 16);
  EXPECT_EQ(job.script, "train.py");
  EXPECT_EQ(job.job.model, "m");
  EXPECT_EQ(wanted(job, "batch_size"), "4");
  EXPECT_EQ(wanted(job, "precision"), "amp-bf16");
  EXPECT_TRUE(job.known);
  EXPECT_EQ(read("python3 -m torch.distributed.run --standalone --nproc_per_node=2 -m pack.train").script,
            "pack.train");
  EXPECT_EQ(read("CUDA_VISIBLE_DEVICES=0,1,2 torchrun train.py").gpus, 3);
  EXPECT_EQ(read("torchrun --nproc_per_node gpu train.py").gpus, 1) << "nobody knows how many";
}

TEST(LaunchCommand, AccelerateBringsItsFile) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const Files files = {{"a.yaml",
                        "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
                        "deepspeed_config:\n  zero_stage: 3\n  offload_param_device: cpu\n"}};
  const LaunchedJob zero = read("accelerate launch --config_file a.yaml train.py" + kTrainer, files);
  EXPECT_EQ(zero.gpus, 8);
  EXPECT_EQ(wanted(zero, "sharding"), "zero-3");
  EXPECT_EQ(wanted(zero, "offload"), "parameters");
  EXPECT_EQ(wanted(zero, "precision"), "bf16-mixed") << "DeepSpeed keeps float32 masters";
  EXPECT_EQ(zero.files, std::vector<std::string>{"a.yaml"});
  const LaunchedJob over = read("accelerate launch --config_file a.yaml --num-processes 2 --zero_stage=2 t.py", files);
  EXPECT_EQ(over.gpus, 2) << "words win over the file";
  EXPECT_EQ(wanted(over, "sharding"), "zero-2");
  EXPECT_FALSE(over.known);
  EXPECT_FALSE(try_reading("accelerate launch --config_file none.yaml train.py", files));
}

TEST(LaunchCommand, AccelerateReadsItsOwnFileWhereNoneIsNamed) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const std::string own = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_processes: 4\n";
  const Files files = {{"/home/u/.cache/huggingface/accelerate/default_config.yaml", own},
                       {"/other/accelerate/default_config.json", R"({"num_processes": 2})"},
                       {"/broken/accelerate/default_config.json", R"({"num_processes": )"}};
  const auto read_file = [&](const std::string& path) -> core::Result<std::string> {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    return core::Error{core::ErrorCode::unreadable_file, "is not here", {path, 0, {}}};
  };
  const auto variable = [](const std::string& name) { return std::string(name == "HOME" ? "/home/u" : ""); };
  const auto of = [&](const std::string& line) {
    auto launched = read_launch_command(words_of(line + kTrainer), read_file, variable);
    EXPECT_TRUE(succeeds(launched)) << line;
    return launched ? *std::move(launched) : LaunchedJob();
  };
  const LaunchedJob job = of("accelerate launch train.py");
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(wanted(job, "sharding"), "zero-3");
  EXPECT_EQ(of("accelerate launch --num_processes 8 train.py").gpus, 8) << "words count more";
  EXPECT_EQ(of("HF_HOME=/other accelerate launch train.py").gpus, 2) << "the JSON of older versions";
  EXPECT_EQ(of("HF_HOME=/none accelerate launch train.py").gpus, 1);
  EXPECT_TRUE(notes_of(of("HF_HOME=/none accelerate launch train.py")).find("is not here") != std::string::npos);
  const std::string broken = notes_of(of("HF_HOME=/broken accelerate launch train.py"));
  EXPECT_NE(broken.find("/broken/accelerate/default_config.json cannot be read"), std::string::npos) << broken;
  EXPECT_EQ(broken.find("is not here"), std::string::npos) << broken;
}

TEST(LaunchCommand, SaysWhichFileOfDeepSpeedIsMissing) {
  const LaunchedJob missing = read("deepspeed --num_gpus 8 train.py --deepspeed ds.json" + kTrainer);
  EXPECT_EQ(missing.missing_deepspeed, "ds.json");
  EXPECT_NE(notes_of(missing).find("DeepSpeed's file ds.json is not here\n"), std::string::npos);
  EXPECT_EQ(read("deepspeed --num_gpus 8 train.py" + kTrainer).missing_deepspeed, "");
}

TEST(LaunchCommand, AccelerateShardsByItsWords) {
  const std::string fsdp =
      "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_offload_params true --num_processes 4 "
      "--mixed_precision bf16 train.py";
  const LaunchedJob job = read(fsdp + kTrainer);
  EXPECT_EQ(wanted(job, "sharding"), "fsdp2");
  EXPECT_EQ(wanted(job, "offload"), "parameters");
  EXPECT_EQ(wanted(job, "precision"), "bf16-mixed") << "the launcher's, where the script says none";
  EXPECT_EQ(wanted(read("accelerate launch --mixed_precision fp16 train.py --bf16" + kTrainer), "precision"),
            "amp-bf16")
      << "the script's own counts more";
}

TEST(LaunchCommand, DeepSpeedsConfigIsRead) {
  const Files files = {{"ds.json", R"({"train_micro_batch_size_per_gpu": 3, "bf16": {"enabled": true},
    "zero_optimization": {"stage": 2}})"},
                       {"auto.json", R"({"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3}})"}};
  const LaunchedJob own = read("deepspeed --include h:0,1@i:0,1 train.py --deepspeed_config ds.json", files);
  EXPECT_EQ(own.gpus, 4);
  EXPECT_EQ(wanted(own, "batch_size"), "3");
  EXPECT_EQ(wanted(own, "sharding"), "zero-2");
  EXPECT_TRUE(own.known);
  const LaunchedJob trainer = read("deepspeed --num_gpus 2 train.py --bf16 --deepspeed auto.json" + kTrainer, files);
  EXPECT_EQ(trainer.gpus, 2);
  EXPECT_EQ(wanted(trainer, "batch_size"), "4");
  EXPECT_EQ(wanted(trainer, "sharding"), "zero-3");
  EXPECT_EQ(wanted(trainer, "precision"), "bf16-mixed") << "\"auto\" is what the arguments say";
}

TEST(LaunchCommand, ProgramsReadTheirFiles) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const Files files = {
      {"x.yml", "base_model: m\nsequence_len: 512\nmicro_batch_size: 2\nadapter: lora\nlora_r: 8\n"},
      {"l.yaml", "stage: sft\nmodel_name_or_path: m\nfinetuning_type: lora\ncutoff_len: 1024\nbf16: true\n"},
      {"t.yaml", "optimizer:\n  _component_: torch.optim.AdamW\n  fused: false\nbatch_size: 2\ndtype: bf16\n"}};
  const LaunchedJob axolotl = read("axolotl train x.yml --micro-batch-size 4", files);
  EXPECT_EQ(wanted(axolotl, "batch_size"), "4");
  EXPECT_EQ(wanted(axolotl, "lora"), "8");
  EXPECT_EQ(wanted(read("accelerate launch -m axolotl.cli.train x.yml", files), "seq_length"), "512");
  const LaunchedJob factory =
      read("FORCE_TORCHRUN=1 NPROC_PER_NODE=4 llamafactory-cli train l.yaml lora_rank=64", files);
  EXPECT_EQ(factory.gpus, 4);
  EXPECT_EQ(wanted(factory, "lora"), "64");
  EXPECT_EQ(wanted(factory, "seq_length"), "1024");
  const LaunchedJob tune =
      read("tune run --nproc_per_node 2 full --config t.yaml optimizer.fused=True batch_size=8", files);
  EXPECT_EQ(tune.gpus, 2);
  EXPECT_EQ(wanted(tune, "batch_size"), "8");
  EXPECT_EQ(wanted(tune, "fused"), "true");
  const auto builtin = try_reading("tune run full --config llama3_1/8B_full", files);
  ASSERT_FALSE(builtin);
  EXPECT_NE(builtin.error().message.find("tune cp"), std::string::npos);
  EXPECT_FALSE(try_reading("axolotl train nowhere.yml", files));
}

TEST(LaunchCommand, SwiftIsToldByItsWords) {
  const LaunchedJob job = read("NPROC_PER_NODE=2 swift sft --model m --train_type lora --target_modules q_proj v_proj");
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(wanted(job, "lora_targets"), "q_proj+v_proj");
  EXPECT_FALSE(job.job.one_process);
  EXPECT_EQ(wanted(read("megatron sft --model m"), "loop"), "megatron");
}

TEST(LaunchCommand, OtherQuestionsAreRecognised) {
  const LaunchedJob server = read("CUDA_VISIBLE_DEVICES=0 uv run vllm serve m --max-model-len 8");
  EXPECT_EQ(server.program, LaunchedProgram::server);
  EXPECT_EQ(server.words, (std::vector<std::string>{"vllm", "serve", "m", "--max-model-len", "8"}));
  EXPECT_EQ(read("python -m sglang.launch_server --model-path m").words.front(), "python");
  for (const char* line : {"swift rlhf --rlhf_type dpo --model m", "trl grpo --model_name_or_path m",
                           "accelerate launch scripts/dpo.py --model_name_or_path m"}) {
    EXPECT_EQ(read(line).program, LaunchedProgram::post_training) << line;
  }
}

TEST(LaunchCommand, WhatIsNotKnownIsSaid) {
  const LaunchedJob job = read("torchrun --nproc-per-node 8 train.py --config x.py --lr 1");
  EXPECT_FALSE(job.known);
  EXPECT_EQ(job.gpus, 8);
  EXPECT_FALSE(job.notes.empty());
  EXPECT_FALSE(try_reading("ls -l"));
  EXPECT_FALSE(try_reading("torchrun --nproc-per-node 8"));
  EXPECT_FALSE(try_reading(""));
}

TEST(LaunchCommand, WordsAreSettings) {
  const auto words = words_of("x.yaml --a-b 1 --flag --list p q +c.d=[1] --n -1 --none None");
  const ProgramWords read = read_program_words(words);
  EXPECT_EQ(read.standing_by, (std::vector<std::string>{"x.yaml"}));
  EXPECT_EQ(read.settings.at("a_b")->word, "1");
  EXPECT_EQ(read.settings.at("flag")->word, "true");
  EXPECT_EQ(read.settings.at("list")->items.size(), 2U);
  EXPECT_EQ(read.settings.at("c.d")->word, "[1]");
  EXPECT_EQ(read.settings.at("n")->word, "-1") << "a number below zero is a value";
  EXPECT_EQ(read.settings.at("none")->kind, Setting::Kind::null);
}

TEST(LaunchCommand, TrlsCheckpointsAreNotReentrant) {
  const auto checkpointing = [](const std::string& more) {
    return wanted(
        read("accelerate launch --use_fsdp --num_processes 4 train.py --gradient_checkpointing" + kTrainer + more),
        "checkpointing");
  };
  EXPECT_EQ(checkpointing(""), "full") << "as the Trainer's loop has it";
  EXPECT_EQ(checkpointing(" --packing"), "full+non-reentrant");
  EXPECT_EQ(checkpointing(" --use_peft --gradient_checkpointing_kwargs {\"use_reentrant\":true}"), "full+reentrant");
  EXPECT_EQ(checkpointing(" --packing --max_seq_length 512"), "full") << "an earlier release";
}

}  // namespace
}  // namespace gpumem::trainer_files
