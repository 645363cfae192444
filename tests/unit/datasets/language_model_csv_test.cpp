#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/job/job_options.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using testing::succeeds;

const std::string kHeader = "name,config,gpu,batch_size,seq_length,figure,measured_mib";

/// The one run of a table with these columns besides those that must be there. All figures are made up.
MeasuredRun read_one(const std::string& columns = "", const std::string& cells = "",
                     const std::string& begin = "made-up,small.txt,a100-40gb,4,128,allocated,1000") {
  const std::string comma = columns.empty() ? "" : ",";
  const auto table = core::parse_csv(kHeader + comma + columns + "\n" + begin + comma + cells + "\n", "data/runs.csv");
  EXPECT_TRUE(succeeds(table));
  EXPECT_TRUE(language_model_csv().sniff(*table));
  const RunsOptions options = testing::small_shelf();
  const auto all = language_model_csv().read(*table, options);
  EXPECT_TRUE(succeeds(all));
  EXPECT_EQ(all->runs.size(), 1U);
  return all->runs.at(0);
}

/// If gpumem lacks the option, the row says so; if not, it does not.
void expect_option(const std::string& column, const std::string& cell, const std::string& option) {
  const MeasuredRun run = read_one(column, cell);
  if (job::find_option(option) != nullptr) {
    EXPECT_FALSE(run.refusal.starts_with("not modelled")) << column << ": " << run.refusal;
  } else {
    ASSERT_TRUE(run.error) << column;
    EXPECT_EQ(run.refusal, "not modelled: " + option);
    EXPECT_NE(run.error->message.find(option + " "), std::string::npos) << run.error->message;
  }
}

TEST(LanguageModelCsv, ReadsARun) {
  const MeasuredRun run =
      read_one("optimizer,precision,fused,accumulate,source,trainable", "sgd,bf16,yes,8,who/what:some/page.md@0,full");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.name, "made-up");
  EXPECT_EQ(run.line, 2);
  EXPECT_EQ(run.job.graph->file(), "data/configs/small.txt");
  EXPECT_EQ(run.job.batch_size, 4);
  EXPECT_EQ(run.job.sequence_length, 128);
  EXPECT_EQ(run.job.optimizer, model::Optimizer::sgd);
  EXPECT_EQ(run.job.precision, model::Precision::bf16);
  EXPECT_TRUE(run.job.fused);
  EXPECT_EQ(run.job.gradient_accumulation, 8);
  EXPECT_EQ(run.gpu, "a100-40gb");
  EXPECT_EQ(run.figure, Figure::allocated);
  EXPECT_EQ(run.measured_mib, 1000.0);
  EXPECT_EQ(run.source, "who/what");
  EXPECT_EQ(run.training, "full");
}

TEST(LanguageModelCsv, HoldsARunToTheFigureThatItNames) {
  for (const auto& figure : kFigures) {
    const MeasuredRun run = read_one("", "", "a,small.txt,a100-40gb,4,128," + std::string(figure.name) + ",1000");
    EXPECT_FALSE(run.error) << figure.name;
    EXPECT_EQ(run.figure, figure.value) << figure.name;
  }
}

TEST(LanguageModelCsv, CellsThatSayWhatAJobIsAnywayNeedNoOption) {
  const MeasuredRun run = read_one(
      "checkpointing,attention,loss,compile,sharding,tensor_parallel,sequence_parallel,schedule,offload,rank,fused",
      "none,flash,standard,no,none,1,no,none,none,0,unknown");
  EXPECT_FALSE(run.error) << core::to_string(*run.error);
}

TEST(LanguageModelCsv, AnOptimizerWithoutAFusedFormIsWhatItIsWhateverTheCellSays) {
  const MeasuredRun run = read_one("optimizer,fused", "adamw-8bit,yes");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.optimizer, model::Optimizer::adamw_8bit);
  EXPECT_FALSE(run.job.fused);
}

TEST(LanguageModelCsv, AnOptionThatGpumemLacksIsNamed) {
  expect_option("lora_rank", "16", "lora");
  expect_option("quantization", "nf4", "quantize");
  expect_option("offload", "activations", "offload");
  expect_option("compile", "yes", "compile");
}

TEST(LanguageModelCsv, AValueThatAnOptionDoesNotTakeIsNamed) {
  const MeasuredRun run = read_one("optimizer,precision", "made-up,invented");
  ASSERT_TRUE(run.error);
  EXPECT_EQ(run.refusal, "not modelled: precision invented, optimizer made-up");
  EXPECT_EQ(run.error->place.line, 2);
}

TEST(LanguageModelCsv, CheckpointingOfEveryLayerIsModelled) {
  const MeasuredRun run = read_one("checkpointing", "full");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  job::JobRequest request;
  request.training = run.job;
  EXPECT_FALSE(job::is_default(*job::find_option("checkpointing"), request));
}

TEST(LanguageModelCsv, ASourceImpliesOptions) {
  const MeasuredRun guide = read_one("source", "huggingface/transformers:docs/made_up.mdx@0");
  ASSERT_FALSE(guide.error);
  EXPECT_FALSE(guide.job.foreach) << "its AdamW goes tensor by tensor";
  const MeasuredRun litgpt = read_one("lora_rank,source", "8,Lightning-AI/litgpt:made_up.md@0");
  ASSERT_FALSE(litgpt.error) << core::to_string(*litgpt.error);
  EXPECT_EQ(litgpt.job.lora_dropout, 0.05);
  const MeasuredRun whole = read_one("source", "Lightning-AI/litgpt:made_up.md@0");
  ASSERT_FALSE(whole.error) << core::to_string(*whole.error);
  EXPECT_EQ(whole.job.lora_dropout, 0.0) << "it has no adapters";
  const MeasuredRun other = read_one("source", "who/what@0");
  ASSERT_FALSE(other.error);
  EXPECT_TRUE(other.job.foreach);
}

TEST(LanguageModelCsv, NotesAndSoftwareTellOptions) {
  const MeasuredRun run = read_one("precision,lora_rank,lora_targets,software,notes",
                                   "bf16,8,all-linear,torch 2.4; transformers 4.45.2; flash-attn "
                                   "2.7.3,\"adapters=bf16, alpha 16, dropout 0.1; the norms, "
                                   "embeddings and lm_head are cast to float32\"");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.lora_dtype, model::AdapterType::bf16);
  EXPECT_EQ(run.job.lora_dropout, 0.1);
  EXPECT_EQ(run.job.precision, model::Precision::amp_bf16);
  EXPECT_EQ(run.job.transformers, model::Transformers::v4_45);
  EXPECT_EQ(run.job.attention, model::AttentionBackend::flash);
  EXPECT_EQ(run.job.base_dtype, model::BaseType::fp32);
  const MeasuredRun autocast = read_one("precision,lora_rank,notes", "bf16,8,\"adapters=fp32; bf16 autocast on\"");
  ASSERT_FALSE(autocast.error) << core::to_string(*autocast.error);
  EXPECT_EQ(autocast.job.precision, model::Precision::amp_bf16);
  EXPECT_EQ(autocast.job.base_dtype, model::BaseType::bf16);
  const MeasuredRun full = read_one("precision,notes", "bf16,bf16 autocast on");
  ASSERT_FALSE(full.error) << core::to_string(*full.error);
  EXPECT_EQ(full.job.precision, model::Precision::bf16) << "its weights, gradients and states are";
  const MeasuredRun first = read_one("notes", "the first iteration holds the longest Alpaca sample");
  ASSERT_FALSE(first.error) << core::to_string(*first.error);
  EXPECT_EQ(first.job.batch_lengths, model::BatchLengths::longest_first);
  const MeasuredRun older = read_one("software", "\"transformers of 2022-01; driver 460.91.03, CUDA 11.2\"");
  ASSERT_FALSE(older.error) << core::to_string(*older.error);
  EXPECT_EQ(older.job.zero_grad, model::ZeroGrad::in_place);
  EXPECT_EQ(older.job.software, "cuda-11.2");
  const MeasuredRun without = read_one("notes", "adapters=bf16");
  EXPECT_EQ(without.job.lora_dtype, model::AdapterType::fp32) << "it has no adapters";
}

TEST(LanguageModelCsv, SaysWhatLearns) {
  EXPECT_EQ(read_one("lora_rank", "").training, "full");
  EXPECT_EQ(read_one("lora_rank", "8").training, "LoRA");
  EXPECT_EQ(read_one("lora_rank,quantization", "8,nf4-double").training, "QLoRA");
  EXPECT_EQ(read_one("lora_rank,quantization", "8,gptq-4bit").training, "LoRA on gptq-4bit");
  EXPECT_EQ(read_one("lora_rank,quantization", ",float8").training, "full, float8");
  const MeasuredRun compiled = read_one("lora_rank,compile", ",yes");
  EXPECT_EQ(compiled.training, "full, compiled");
  EXPECT_TRUE(compiled.job.compile);
}

TEST(LanguageModelCsv, ReadsTheLayoutOfSeveralGpus) {
  const MeasuredRun run = read_one("gpus,data_parallel,sharding,tensor_parallel,sequence_parallel,rank",
                                   "8,4,distributed-optimizer,2,yes,last");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.gpus, 8);
  model::Layout layout;
  layout.data_parallel = 4;
  layout.sharding = {model::Shardings::distributed_optimizer, 0};
  layout.tensor_parallel = 2;
  layout.sequence_parallel = true;
  layout.rank = {model::Ranks::last, 0};
  EXPECT_EQ(run.job.layout, layout);
}

TEST(LanguageModelCsv, WhatIsToldOfOneGpuIsNotOfSeveral) {
  const std::string note = "on one GPU the norms, embeddings and lm_head are cast to float32";
  EXPECT_EQ(read_one("gpus,precision,notes", "1,bf16,\"" + note + "\"").job.precision, model::Precision::amp_bf16);
  EXPECT_EQ(read_one("gpus,precision,notes", "2,bf16,\"" + note + "\"").job.precision, model::Precision::bf16);
}

TEST(LanguageModelCsv, EveryRowIsReportedWithWhatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"a,other.txt,a100-40gb,4,128,allocated,1000", "cannot open"},
      {"a,,a100-40gb,4,128,allocated,1000", "names no config"},
      {"a,small.txt,a100-40gb,,128,allocated,1000", "the batch size is 0"},
      {"a,small.txt,a100-40gb,many,128,allocated,1000", "batch_size must be a whole number"},
      {"a,small.txt,a100-40gb,4,128,guessed,1000", "figure is 'guessed'"},
      {"a,small.txt,a100-40gb,4,128,allocated,much", "measured_mib is 'much'"},
  };
  for (const auto& [row, message] : rows) {
    const MeasuredRun run = read_one("", "", row);
    ASSERT_TRUE(run.error) << row;
    EXPECT_NE(run.error->message.find(message), std::string::npos) << run.error->message;
    EXPECT_FALSE(run.refusal.empty()) << row;
  }
}

TEST(LanguageModelCsv, AColumnThatIsMissingIsNamed) {
  const auto table = core::parse_csv("name,config,figure,measured_mib\n", "runs.csv");
  ASSERT_TRUE(succeeds(table));
  const RunsOptions options = testing::small_shelf();
  const auto all = language_model_csv().read(*table, options);
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("has no column 'gpu'"), std::string::npos) << all.error().message;
}

TEST(LanguageModelCsv, TorchtitansRunsAreAsItsLauncherAndTrainerHaveThem) {
  const std::string columns = "source,sharding,data_parallel,compile,fused,software,notes";
  const auto read_titan = [&](std::string_view cells) {
    return read_one(columns, "pytorch/torchtitan:x@1,fsdp2,8," + std::string(cells));
  };
  const MeasuredRun eager = read_titan("no,no,torch nightly 2025-02,");
  EXPECT_EQ(eager.alloc_conf, "expandable_segments:True");
  EXPECT_EQ(eager.job.loss_form, model::LossForm());
  EXPECT_EQ(read_titan("no,no,torch nightly 2024-06-05,").alloc_conf, "") << "before its launcher asked for them";
  EXPECT_EQ(read_titan("yes,no,torch nightly 2025-02,").job.loss_form, model::LossForm()) << "the model alone";
  EXPECT_EQ(read_titan("yes,yes,torch 2.8,").job.loss_form.kind, model::LossForms::compiled);
  EXPECT_EQ(read_titan("yes,yes,torch 2.8,SimpleFSDP under torch.compile aot_eager").job.loss_form, model::LossForm());
  EXPECT_EQ(read_one(columns, "NVIDIA/Megatron-LM:x@1,ddp,8,no,no,,").alloc_conf, "");
  EXPECT_EQ(read_one(columns, "pytorch/ao:x@1,fsdp2,8,yes,yes,torchtitan 2025-06,").job.loss_form.kind,
            model::LossForms::compiled);
  const MeasuredRun tune = read_one(columns, "pytorch/torchtune:x@1,fsdp2,8,yes,yes,torch 2.8,");
  EXPECT_EQ(tune.alloc_conf, "") << "another trainer of the same house";
  EXPECT_EQ(tune.job.loss_form, model::LossForm());
}

TEST(LanguageModelCsv, ALossThatARowNamesStaysWhereTheModelIsCompiled) {
  const MeasuredRun run = read_one("source,sharding,data_parallel,compile,fused,loss",
                                   "pytorch/torchtitan:x@1,fsdp2,8,yes,yes,chunked:1024");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.loss_form.kind, model::LossForms::chunked);
}

}  // namespace
}  // namespace gpumem::datasets
