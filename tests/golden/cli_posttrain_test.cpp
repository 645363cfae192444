// What `gpumem posttrain` says of a program's settings: notes in each of its answers, and what it does not answer.
#include <fstream>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"
#include "setting.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::run;

constexpr const char* kPostTrainedModel = "tests/golden/cli/configs/llama_made_up.json";
constexpr const char* kLarge = "examples/configs/llama3_8b/config.json";

Outcome posttrain(const std::string& options, const std::string& command) {
  return run("posttrain " + std::string(kPostTrainedModel) + " --gpu h100-80gb " + options + " -- " + command);
}

const std::string kDpo = "trl dpo --model_name_or_path m --per_device_train_batch_size 2 --max_length 128";

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(CliPosttrain, PromptsThatNobodyMeasuresHoldTheirImages) {
  const std::string command =
      "posttrain --gpu h100-80gb -- trl grpo --model_name_or_path Qwen/Qwen2.5-VL-3B-Instruct --dtype bfloat16 "
      "--use_peft --per_device_train_batch_size 1 --num_generations 1 --max_completion_length 64 ";
  const Outcome open = run(command);
  EXPECT_EQ(open.exit, 0) << open.err;
  EXPECT_TRUE(has(open.out, "every sequence has 1,575 tokens")) << "512, 999 of an image and 64: " << open.out;
  EXPECT_TRUE(has(open.out, "assumed: lengths: and the 999 tokens of a prompt's images\n")) << open.out;
  const Outcome given = run(command + "--max_prompt_length 2048");
  EXPECT_TRUE(has(given.out, "every sequence has 2,112 tokens")) << given.out;
}

TEST(CliPosttrain, NotesStandUnderEveryAnswer) {
  for (const std::string question : {"", "--fit", "--advise"}) {
    SCOPED_TRACE(question);
    const Outcome text = posttrain(question, kDpo + " --new_thing 1");
    EXPECT_EQ(text.exit, 0) << text.err;
    EXPECT_TRUE(has(text.out, "assumed: settings: the key new_thing is not known\n")) << text.out;
    EXPECT_TRUE(has(text.out, "assumed: settings: the settings do not say the lengths of its batches")) << text.out;
    const Outcome json = posttrain(question + " --json", kDpo + " --new_thing 1");
    ASSERT_EQ(json.exit, 0) << json.err;
    EXPECT_TRUE(has(nlohmann::json::parse(json.out)["assumed"].dump(), "new_thing is not known"));
  }
}

TEST(CliPosttrain, NotesStandBesideAnError) {
  const Outcome failed = posttrain("--teacher-model t.json", kDpo + " --new_thing 1");
  EXPECT_NE(failed.exit, 0);
  EXPECT_EQ(failed.out, "");
  EXPECT_TRUE(has(failed.err, "assumed: settings: the key new_thing is not known\n")) << failed.err;
}

TEST(CliPosttrain, WhatTheJobNeedsAndNobodySaysIsAnError) {
  const std::string words = "trl my.py --model_name_or_path m --per_device_train_batch_size 2 --max_length 128";
  const Outcome failed = posttrain("", words);
  EXPECT_EQ(failed.exit, core::exit_code(ErrorCode::missing_information));
  EXPECT_TRUE(has(failed.err, "the settings do not say the algorithm; give --algorithm")) << failed.err;
  EXPECT_EQ(posttrain("--algorithm simpo", words).exit, 0);
  const std::string no_batch = "trl dpo --model_name_or_path m --dtype bfloat16 --max_length 128";
  EXPECT_TRUE(has(posttrain("", no_batch).out, "do not say the micro-batch; the program's default of 8 is taken"));
  const Outcome given = posttrain("--batch 2 --seq 64", no_batch);
  EXPECT_EQ(given.exit, 0) << given.err;
  EXPECT_FALSE(has(given.out, "do not say")) << "the options do: " << given.out;
}

TEST(CliPosttrain, TheFileBehindTheCommandsOwnConfigIsRead) {
  if (!trainer_files::reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const fs::path file = testing::own_path("posttrain_dpo.yaml");
  std::ofstream(file) << "per_device_train_batch_size: 2\nmax_length: 128\n";
  const Outcome named = posttrain("", "trl dpo --model_name_or_path m --config " + file.string());
  EXPECT_EQ(named.out, posttrain("", kDpo).out) << named.err;
  EXPECT_EQ(posttrain("", "trl dpo --model_name_or_path m --config=" + file.string()).out, named.out);
  fs::remove(file);
  const Outcome gone = posttrain("", kDpo + " --config " + file.string());
  EXPECT_TRUE(has(gone.out, " is not modelled\n")) << gone.out;
}

TEST(CliPosttrain, TheFileThatACommandTakesAloneIsRead) {
  if (!trainer_files::reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const fs::path file = testing::own_path("posttrain_alone.yaml");
  std::ofstream(file) << "model_name_or_path: m\nstage: dpo\nfinetuning_type: full\nbf16: true\ncutoff_len: 128\n";
  const std::string command = "llamafactory-cli train " + file.string();
  const Outcome named = posttrain("", command);
  EXPECT_EQ(named.exit, 0) << named.err;
  EXPECT_TRUE(has(named.out, "in the order of llama-factory")) << named.out;
  EXPECT_FALSE(has(named.out, "not modelled")) << named.out;
  EXPECT_EQ(posttrain("--config " + file.string(), "llamafactory-cli train").out, named.out);
  EXPECT_TRUE(has(posttrain("", command + " per_device_train_batch_size=2").out, "policy: parameters"));
  fs::remove(file);
  const Outcome gone = posttrain("--algorithm dpo", command);
  EXPECT_TRUE(has(gone.out, "posttrain_alone.yaml is not modelled")) << gone.err;
}

TEST(CliPosttrain, AcceleratesFileSaysTheGpusAndHowTheyShare) {
  if (!trainer_files::reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const fs::path file = testing::own_path("posttrain_accelerate.yaml");
  const auto shares = [&](const std::string& text) {
    std::ofstream(file) << text;
    const Outcome made = posttrain("--json", "accelerate launch --config_file " + file.string() +
                                                 " dpo.py --model_name_or_path m --max_length 128");
    EXPECT_EQ(made.exit, 0) << made.err;
    return made.out;
  };
  const std::string four =
      shares("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_processes: 4\n");
  EXPECT_EQ(nlohmann::json::parse(four)["gpus"], 4);
  EXPECT_TRUE(has(four, "parameters over 4 ranks")) << four;
  const std::string two = shares(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: true\nnum_processes: 2\n");
  EXPECT_TRUE(has(two, "parameters over 2 ranks")) << two;
  EXPECT_FALSE(has(two, "not modelled")) << two;
  EXPECT_FALSE(has(shares("mixed_precision: bf16\ndynamo_config:\n  dynamo_backend: 'NO'\n"), "not modelled"));
  EXPECT_TRUE(has(shares("mixed_precision: fp8\n"), "mixed_precision fp8 is not modelled"));
  EXPECT_TRUE(has(shares("dynamo_config:\n  dynamo_backend: INDUCTOR\n"), "dynamo_backend inductor is not modelled"));
  fs::remove(file);
}

TEST(CliPosttrain, TheFilesBelowAFileAreRead) {
  if (!trainer_files::reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const fs::path folder = testing::own_path("posttrain_defaults");
  fs::create_directories(folder / "recipes");
  std::ofstream(folder / "base.yaml") << "policy:\n  model_name: m\n  train_micro_batch_size: 4\n"
                                         "  max_total_sequence_length: 128\n  dtensor_cfg: {enabled: true}\n"
                                         "  sequence_packing: {enabled: false}\n"
                                         "dpo: {seed: 1}\ncluster: {gpus_per_node: 1, num_nodes: 1}\n";
  const fs::path recipe = folder / "recipes" / "small.yaml";
  std::ofstream(recipe) << "defaults: [../base, _self_]\npolicy: {train_micro_batch_size: 2}\n";
  const std::string command = "posttrain " + std::string(kModel) + " --gpu h100-80gb --config ";
  const Outcome of_recipe = run(command + recipe.string());
  EXPECT_EQ(of_recipe.exit, 0) << of_recipe.err;
  EXPECT_TRUE(has(of_recipe.out, "phases: in the order of nemo-rl")) << of_recipe.out;
  EXPECT_FALSE(has(of_recipe.out, "defaults")) << of_recipe.out;
  EXPECT_NE(of_recipe.out, run(command + (folder / "base.yaml").string()).out) << "its own settings count";
  std::ofstream(recipe) << "defaults: gone\npolicy: {train_micro_batch_size: 2, dtensor_cfg: {enabled: true}}\n"
                           "dpo: {seed: 1}\n";
  EXPECT_TRUE(has(run(command + recipe.string()).out, "defaults gone is not modelled"));
  fs::remove_all(folder);
}

TEST(CliPosttrain, SaysWhyNothingFitsAndWhoAdvises) {
  const std::string large = "posttrain " + std::string(kLarge) + " --gpu t4-16gb --algorithm dpo --batch 1 --seq 4096";
  const Outcome fit = run(large + " --fit");
  EXPECT_NE(fit.exit, 0);
  EXPECT_TRUE(has(fit.out, "-: even 1 takes ")) << fit.out;
  EXPECT_TRUE(has(run(large + " --for slurm").err, "'gpumem posttrain --advise' says what would make it fit"));
}

TEST(CliPosttrain, AFurtherModelNeedNotBeThereButMustBeReadable) {
  const fs::path file = testing::own_path("posttrain_critic.json");
  const std::string ppo = "posttrain " + std::string(kLarge) +
                          " --gpu h100-80gb -- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae "
                          "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.n_gpus_per_node=8 "
                          "actor_rollout_ref.model.path=m critic.model.path=" +
                          file.string();
  const Outcome gone = run(ppo);
  EXPECT_TRUE(has(gone.out, " was not found; a model like the policy is taken\n")) << gone.out << gone.err;
  std::ofstream(file) << "{";
  EXPECT_EQ(run(ppo).out, "") << "a file that breaks its format is none that is not there";
  fs::remove(file);
}

TEST(CliPosttrain, PlansAndAsksSchedulers) {
  const Outcome plan = posttrain("--plan 4 --json", kDpo);
  ASSERT_EQ(plan.exit, 0) << plan.err;
  const auto layouts = nlohmann::json::parse(plan.out)["layouts"];
  ASSERT_FALSE(layouts.empty());
  EXPECT_EQ(layouts[0]["sharding"], "ddp") << "it moves least, and fits";
  EXPECT_EQ(layouts[0]["data_parallel"], 4);
  const Outcome asked = posttrain("--for slurm", kDpo);
  EXPECT_EQ(asked.exit, 0) << asked.err;
  EXPECT_TRUE(has(asked.out, "--gres=shard:")) << asked.out;
  EXPECT_NE(posttrain("--for nobody", kDpo).exit, 0);
  EXPECT_NE(posttrain("--plan 0", kDpo).exit, 0);
}

TEST(CliPosttrain, AFolderIsTheModelOfMegatronAndOfDeepSpeedsBuckets) {
  const fs::path folder = testing::own_path("posttrain");
  fs::create_directories(folder);
  fs::copy_file(fs::path(GPUMEM_SOURCE_DIR) / kLarge, folder / "config.json", fs::copy_options::overwrite_existing);
  for (const std::string command :
       {"megatron rlhf --rlhf_type dpo --model x --micro_batch_size 1 --max_length 128",
        "swift rlhf --rlhf_type dpo --model x --tuner_type full --per_device_train_batch_size 1 --max_length 128 "
        "--deepspeed zero3 "}) {
    const Outcome of_folder = run("posttrain '" + folder.string() + "' -- " + command);
    EXPECT_TRUE(has(of_folder.out, "does not fit on a100-40gb")) << of_folder.err;
    EXPECT_EQ(of_folder.out, run("posttrain " + std::string(kLarge) + " -- " + command).out);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpumem
