#include "torchtune.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "expect.hpp"
#include "trainer_files.hpp"
#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;

TEST(Torchtune, ReadsItsFiles) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const auto read = read_trainer_job(GPUMEM_SOURCE_DIR "/examples/trainers/torchtune.yaml", {});
  ASSERT_TRUE(succeeds(read));
  const TrainerJob& job = *read;
  EXPECT_EQ(job.format, "torchtune");
  EXPECT_EQ(job.model, "tinyllama");
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "1024"},
                      {"accumulate", "8"},
                      {"loop", "torchtune"},
                      {"lora", "8"},
                      {"lora_targets", "q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj"},
                      {"lora_dtype", "bf16"},
                      {"precision", "bf16"},
                      {"optimizer", "adamw"},
                      {"fused", "true"},
                      {"loss", "chunked:128"},
                      {"checkpointing", "full"},
                      {"compile", "-"}});
  const TrainerJob paged = parsed(
      R"({"optimizer": {"_component_": "bitsandbytes.optim.PagedAdamW8bit"}, "batch_size": 1, "optimizer_in_bwd": true,
          "model": {"_component_": "torchtune.models.llama3.qlora_llama3_8b"}})");
  expect_wanted(paged, {{"optimizer", "paged-adamw-8bit"},
                        {"optimizer_in_backward", "true"},
                        {"quantize", "nf4-double"},
                        {"lora", "8"}});
  EXPECT_EQ(paged.not_modelled, std::vector<std::string>());
  const TrainerJob dora = parsed(
      R"({"optimizer": {"_component_": "torch.optim.AdamW"}, "batch_size": 1,
          "model": {"_component_": "torchtune.models.llama3.lora_llama3_8b", "use_dora": true, "quantize_base": true}})");
  expect_wanted(dora, {{"lora", "8"}, {"peft", "dora"}, {"quantize", "nf4-double"}});
  EXPECT_EQ(dora.not_modelled, std::vector<std::string>());
}

TEST(Torchtune, CutsNoSampleUnlessTheFileSaysSo) {
  const std::string rest = R"("batch_size": 2, "optimizer": {"_component_": "torch.optim.AdamW"},
    "model": {"_component_": "torchtune.models.llama3.llama3_8b"})";
  const auto open = parse_trainer_job(R"({"tokenizer": {"_component_": "t", "max_seq_len": null}, )" + rest + "}");
  ASSERT_TRUE(succeeds(open));
  ASSERT_NE(open->find("seq_length"), nullptr);
  EXPECT_EQ(open->find("seq_length")->value, "2048");
  EXPECT_EQ(open->missing.size(), 1U);
  const auto cut = parse_trainer_job(R"({"tokenizer": {"_component_": "t", "max_seq_len": 512}, )" + rest + "}");
  ASSERT_TRUE(succeeds(cut));
  EXPECT_EQ(cut->find("seq_length")->value, "512");
  EXPECT_EQ(cut->unlike, "");
}

TEST(Torchtune, JobsThatAreNoPlainTrainingAreRefused) {
  const std::string model = R"("batch_size": 2, "model": {"_component_": "torchtune.models.llama3.llama3_8b"})";
  const std::string optimizer = R"(, "optimizer": {"_component_": "torch.optim.AdamW"})";
  for (const std::string& text :
       {"{" + model + "}", "{" + model + optimizer + R"(, "loss": {"_component_": "torchtune.rlhf.loss.DPOLoss"}})",
        "{" + model + optimizer + R"(, "teacher_model": {"_component_": "torchtune.models.llama3.llama3_8b"}})"}) {
    const auto job = parse_trainer_job(text);
    ASSERT_TRUE(succeeds(job));
    EXPECT_NE(job->unlike, "") << text;
  }
}

}  // namespace
}  // namespace gpumem::trainer_files
