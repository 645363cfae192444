#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"

namespace gpumem::datasets {
namespace {

const std::string kHeader = "name,model,algorithm,gpus,gpu,figure,measured_mib,software,args\n";

RunsOptions shelf() {
  return {
      .vocabulary = &ops::vocabulary(),
      .read_summary = [](const std::string& path) { return read_summary(path); },
      .parse_summary = [](std::string_view text, const std::string& name) { return parse_summary(text, false, name); }};
}

/// The one run of a table with this row, whose settings are JSON. All figures are made up.
MeasuredRun read_one(const std::string& cells, std::string settings) {
  for (std::size_t at = 0; (at = settings.find('"', at)) != std::string::npos; at += 2) settings.insert(at, 1, '"');
  const std::string row = cells + (settings.empty() ? "" : "\"" + settings + "\"");
  const auto table = core::parse_csv(kHeader + row + "\n", "data/runs.csv");
  EXPECT_TRUE(testing::succeeds(table));
  EXPECT_TRUE(post_training_csv().sniff(*table));
  const RunsOptions options = shelf();
  const auto all = post_training_csv().read(*table, options);
  EXPECT_TRUE(testing::succeeds(all));
  return all->runs.at(0);
}

const std::string kSwift = "a,Qwen/Qwen3-8B-Base,dpo,4,80 GB class,device (nvidia-smi),1024,ms-swift 4,";

TEST(PostTrainingCsv, ACommandLineBecomesAJobOfPhases) {
  const MeasuredRun run =
      read_one(kSwift,
               R"({"rlhf_type": "dpo", "tuner_type": "full", "per_device_train_batch_size": "1", "max_length": "256",
                   "packing": "true", "deepspeed": "zero3", "output_dir": "out"})");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  ASSERT_NE(run.post_training, nullptr);
  EXPECT_EQ(run.post_training->options.algorithm, posttrain::Algorithm::dpo);
  EXPECT_EQ(run.gpu, "a100-80gb");
  EXPECT_EQ(run.gpus, 4);
  EXPECT_EQ(run.figure, Figure::device);
  EXPECT_EQ(run.job.layout.data_parallel, 4);
  EXPECT_EQ(run.job.layout.zero_reduce_bucket, std::int64_t{4096} * 4096) << "zero3.json says auto";
  const auto gpu = find_profile(run.gpu);
  ASSERT_TRUE(gpu);
  EXPECT_TRUE(testing::succeeds(posttrain::estimate_post_training(*run.post_training, *gpu)));
}

TEST(PostTrainingCsv, ARunThatRanOutOfMemorySaysSo) {
  const std::string row = R"(,trl,"{""trainer"": ""dpo"", ""per_device_train_batch_size"": 1}",)";
  const std::string begin = "a,Qwen/Qwen3-4B,dpo,1,h100-80gb,reserved,1024" + row;
  const auto table =
      core::parse_csv("name,model,algorithm,gpus,gpu,figure,measured_mib,software,args,status,capacity_mib\n" + begin +
                          "oom,2048\n" + begin + "ok,\n",
                      "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const RunsOptions options = shelf();
  const auto all = post_training_csv().read(*table, options);
  ASSERT_TRUE(testing::succeeds(all));
  EXPECT_TRUE(all->runs.at(0).out_of_memory);
  EXPECT_FALSE(all->runs.at(1).out_of_memory);
  EXPECT_EQ(all->runs.at(0).capacity_mib, 2048.0) << "what it was allowed to reserve";
  EXPECT_FALSE(all->runs.at(1).capacity_mib);
}

TEST(PostTrainingCsv, ARowMaySayItsPaddingAndItsRelease) {
  const std::string begin = "a,Qwen/Qwen3-4B,dpo,1,h100-80gb,reserved,1024,";
  const std::string settings = R"(,"{""trainer"": ""dpo"", ""per_device_train_batch_size"": 1}",)";
  const auto table = core::parse_csv("name,model,algorithm,gpus,gpu,figure,measured_mib,software,args,padding\n" +
                                         begin + "\"trl 1.9.0, transformers 4.57.1\"" + settings + "true\n" + begin +
                                         "trl" + settings + "\n" + begin + "trl" + settings + "much\n",
                                     "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const RunsOptions options = shelf();
  const auto all = post_training_csv().read(*table, options);
  ASSERT_TRUE(testing::succeeds(all));
  EXPECT_TRUE(all->runs.at(0).job.padding);
  EXPECT_EQ(all->runs.at(0).job.transformers, model::Transformers::v4_56);
  EXPECT_FALSE(all->runs.at(1).job.padding);
  EXPECT_EQ(all->runs.at(1).job.transformers, posttrain::row_of(posttrain::Program::trl).transformers);
  EXPECT_TRUE(all->runs.at(0).open.empty());
  EXPECT_TRUE(all->runs.at(2).error) << "no word of the option's";
}

TEST(PostTrainingCsv, AModelIsKnownByItsSizesWhoeverPublishedIt) {
  const auto parameters = [](const std::string& name) {
    const MeasuredRun run = read_one("a," + name + ",dpo,1,A100,device,1024,trl,",
                                     R"({"trainer": "dpo", "per_device_train_batch_size": "1", "max_length": "64"})");
    if (run.error) ADD_FAILURE() << core::to_string(*run.error);
    return run.error ? std::int64_t{0} : run.job.graph->parameters();
  };
  // As the models' pages say.
  EXPECT_EQ(parameters("unsloth/Qwen3-4B-unsloth-bnb-4bit"), 4'022'468'096);
  EXPECT_EQ(parameters("unsloth/Llama-3.2-1B-Instruct"), 1'235'814'400);
  EXPECT_EQ(parameters("Qwen/Qwen2.5-Coder-1.5B"), 1'543'714'304);
  const MeasuredRun unknown = read_one("a,Qwen/Qwen3-4Bx,dpo,1,A100,device,1024,trl,", R"({"trainer": "dpo"})");
  EXPECT_TRUE(unknown.error);
}

TEST(PostTrainingCsv, MegatronTrainsItsOwnFormOfTheModel) {
  const MeasuredRun run =
      read_one("a,Qwen/Qwen2.5-7B-Instruct,dpo,4,A100,device,1024,ms-swift 4,",
               R"({"rlhf_type": "dpo", "micro_batch_size": "1", "tensor_model_parallel_size": "4", "max_length": "128",
          "packing": "true", "recompute_granularity": "full"})");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.layout.tensor_parallel, 4);
  EXPECT_NE(run.job.graph->file().find("Megatron"), std::string::npos) << run.job.graph->file();
}

/// Whether the job says that it takes this as given.
bool assumes(const MeasuredRun& run, std::string_view text) {
  if (run.post_training == nullptr) return false;
  const auto& all = run.post_training->assumed;
  return std::any_of(all.begin(), all.end(),
                     [&](const estimate::Assumption& at) { return at.text.find(text) != std::string::npos; });
}

TEST(PostTrainingCsv, WhatSettingsLeaveOpenIsTakenAndNamed) {
  const MeasuredRun lengths = read_one(
      kSwift, R"({"rlhf_type": "dpo", "tuner_type": "full", "per_device_train_batch_size": "1", "max_length": "2048",
                  "brand_new": "1"})");
  ASSERT_FALSE(lengths.error) << core::to_string(*lengths.error);
  EXPECT_EQ(lengths.job.sequence_length, 1024);
  EXPECT_EQ(lengths.post_training->options.length_limit, 2048);
  EXPECT_TRUE(assumes(lengths, "max_length 2048"));
  EXPECT_TRUE(assumes(lengths, "brand_new"));
  const MeasuredRun reward =
      read_one("a,Qwen/Qwen3-8B,ppo,4,A100,device,1024,ms-swift 4,",
               R"({"rlhf_type": "ppo", "per_device_train_batch_size": "1", "response_length": "64", "max_length": "128",
                   "reward_model": "who/knows"})");
  ASSERT_FALSE(reward.error) << core::to_string(*reward.error);
  EXPECT_EQ(reward.post_training->reward, reward.job.graph);
  EXPECT_TRUE(assumes(reward, "who/knows"));
}

/// The one run of a table without command lines, with these columns beside the usual ones.
MeasuredRun read_columns(const std::string& columns, const std::string& cells) {
  const auto table = core::parse_csv("name,model,algorithm,gpus,figure,measured_mib,software,args," + columns + "\n" +
                                         "a,Qwen/Qwen3-8B,grpo,1,allocated,1024,verl-agent,," + cells + "\n",
                                     "data/runs.csv");
  EXPECT_TRUE(testing::succeeds(table));
  const auto all = post_training_csv().read(*table, shelf());
  EXPECT_TRUE(testing::succeeds(all));
  return all->runs.at(0);
}

TEST(PostTrainingCsv, ARowWithoutItsCommandNeedsWhatDecidesItsFigure) {
  const std::string all = "gpu,rollout_fraction,micro_batch,max_completion";
  const MeasuredRun whole = read_columns(all, "NVIDIA RTX 3090,0.6,2,512");
  ASSERT_FALSE(whole.error) << core::to_string(*whole.error);
  EXPECT_EQ(whole.figure, Figure::allocated);
  EXPECT_EQ(whole.gpu, "rtx3090-24gb");
  EXPECT_TRUE(whole.post_training->one_process) << "vLLM's memory is in the figure";
  EXPECT_TRUE(assumes(whole, "only what the table's columns say"));
  EXPECT_FALSE(whole.post_training->share_unknown);
  const MeasuredRun open = read_columns(all, "A100,,2,512");
  EXPECT_TRUE(assumes(open, "nobody says the engine's share of the GPU"));
  EXPECT_TRUE(open.post_training->share_unknown);
  EXPECT_TRUE(read_columns(all, ",0.6,2,512").post_training->share_unknown) << "of which GPU nobody says";
  EXPECT_TRUE(assumes(read_columns(all, "A100,0.6,,512"), "the settings do not say the micro-batch"));
  EXPECT_TRUE(assumes(read_columns(all, "A100,0.6,2,"), "the settings do not say the length of the completions"));
  EXPECT_EQ(read_columns(all, "GPU of the year 2099,0.6,2,512").refusal, "a GPU without a profile");
}

TEST(PostTrainingCsv, ANotebooksCellsSayWhatItsRowDoesNot) {
  const auto table = core::parse_csv(
      "name,model,algorithm,gpus,figure,measured_mib,software,args,source\na,Qwen/Qwen3-8B,grpo,1,reserved,1024,trl,"
      "\"{\"\"trainer\"\": \"\"GRPOTrainer\"\", \"\"load4\"\": \"\"True\"\", \"\"r\"\": \"\"8\"\"}\","
      "examples/notebooks/grpo_trl_lora_qlora.ipynb\n",
      "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const auto all = post_training_csv().read(*table, shelf());
  ASSERT_TRUE(testing::succeeds(all));
  const MeasuredRun& run = all->runs.at(0);
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.loss_form.kind, model::LossForms::fused) << "Liger's";
  EXPECT_EQ(run.job.quantize, model::Quantization::nf4_double);
}

TEST(PostTrainingCsv, SaysWhatIsMissing) {
  const MeasuredRun none = read_one("a,some/model,grpo,1,,allocated,1024,something,", "");
  ASSERT_TRUE(none.error);
  EXPECT_EQ(none.refusal, "missing: the settings");
  const MeasuredRun broken = read_one(kSwift, "[1, 2");
  ASSERT_TRUE(broken.error);
  const MeasuredRun model = read_one("a,who/knows,dpo,1,,reserved,1024,ms-swift 4,",
                                     R"({"rlhf_type": "dpo", "per_device_train_batch_size": "1", "max_length": "64",
                                         "packing": "true"})");
  ASSERT_TRUE(model.error);
  EXPECT_EQ(model.refusal, "a model that is not read");
  EXPECT_EQ(model.figure, Figure::reserved);
}

TEST(PostTrainingCsv, AsksForItsColumns) {
  const auto table = core::parse_csv("algorithm,args,measured_mib\na,{},1\n", "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const auto all = post_training_csv().read(*table, shelf());
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("has no column 'name'"), std::string::npos) << all.error().message;
}

}  // namespace
}  // namespace gpumem::datasets
