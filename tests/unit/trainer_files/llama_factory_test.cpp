#include "llama_factory.hpp"

#include <gtest/gtest.h>

#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

TEST(LlamaFactory, OtherMethodsThanLora) {
  const TrainerJob dora = parsed(R"({"model_name_or_path": "m", "stage": "sft", "use_dora": true, "fp8": true})");
  expect_wanted(dora, {{"peft", "dora"}, {"lora", "8"}, {"quantize", "float8"}});
  EXPECT_TRUE(dora.frozen_parts.starts_with("model.visual,")) << dora.frozen_parts;
  const TrainerJob oft = parsed(R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "oft",
    "oft_block_size": 64, "image_max_pixels": 10000})");
  expect_wanted(oft, {{"peft", "oft"}, {"peft_options", "oft_block_size=64"}, {"lora", "-"}, {"image", "100x100"}});
  EXPECT_EQ(oft.not_modelled, std::vector<std::string>{});
  EXPECT_TRUE(oft.unknown.empty()) << oft.unknown.front();
  const TrainerJob muon =
      parsed(R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "full", "use_muon": true})");
  expect_wanted(muon, {{"optimizer", "muon"}, {"lora", "-"}});
}

TEST(LlamaFactory, FilesOfItsNextVersion) {
  const TrainerJob job = parsed(R"({"model": "m", "model_class": "llm", "micro_batch_size": 2, "global_batch_size": 16,
    "dist_config": {"name": "fsdp2"}, "optim_config": {"name": "muon"}, "flash_attn": "flash_attention_2",
    "peft_config": {"name": "lora", "r": 16, "target_modules": "all"}, "train_dataset": "d", "learning_rate": 1e-4})");
  EXPECT_EQ(job.format, "llama-factory");
  EXPECT_EQ(job.model, "m");
  EXPECT_EQ(job.global_batch, 16);
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "2048"},
                      {"precision", "bf16"},
                      {"sharding", "fsdp2"},
                      {"optimizer", "muon"},
                      {"attention", "flash"},
                      {"lora", "16"},
                      {"lora_targets", "all-linear"},
                      {"checkpointing", "full"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
}

}  // namespace
}  // namespace gpumem::trainer_files
