#include "trainer_format.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/job/job_options.hpp"
#include "trainer_files.hpp"
#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;

TEST(TrainerReading, PostTrainingIsAskedOfPosttrain) {
  const auto says = [](const std::string& file) { return parsed(file).post_training; };
  EXPECT_EQ(says(R"({"base_model": "m", "rl": "dpo"})"), "rl dpo");
  EXPECT_EQ(says(R"({"model_name_or_path": "m", "stage": "kto", "cutoff_len": 64})"), "stage kto");
  EXPECT_EQ(says(R"({"model_name_or_path": "m", "stage": "sft", "cutoff_len": 64})"), "");
  const std::string begin = R"({"model_name_or_path": "m", "per_device_train_batch_size": 8, )";
  EXPECT_EQ(says(begin + R"("num_generations": 8})"), "num_generations (of TRL's GRPOTrainer)");
  EXPECT_EQ(says(begin + R"("trainer": "DPOTrainer"})"), "trainer DPOTrainer");
  EXPECT_EQ(says(begin + R"("packing": true, "max_length": 64})"), "");
  job::JobRequest request;
  const auto applied = apply(parsed(R"({"base_model": "m", "rl": "dpo"})"), request);
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("rl dpo: it is post-training"), std::string::npos);
  EXPECT_NE(applied.error().message.find("gpumem posttrain --config"), std::string::npos);
}

TEST(TrainerReading, KeysOfSectionsAreNamed) {
  const auto unknown = [](const std::string& file) { return parsed(file).unknown; };
  using Names = std::vector<std::string>;
  EXPECT_EQ(unknown(R"({"train_micro_batch_size_per_gpu": 1,
                        "zero_optimization": {"stage": 3, "overlap_comm": true, "foo": 1,
                                              "offload_optimizer": {"device": "cpu", "pin_memory": true, "bar": 2}}})"),
            (Names{"zero_optimization.foo", "zero_optimization.offload_optimizer.bar"}));
  EXPECT_EQ(unknown(R"({"batch_size": 1, "model": {"_component_": "m.lora_llama2_7b", "lora_rnak": 64, "lora_alpha": 1},
                        "optimizer": {"_component_": "torch.optim.AdamW", "lr": 1}})"),
            Names{"model.lora_rnak (did you mean 'lora_rank'?)"});
  EXPECT_EQ(unknown(R"({"per_device_train_batch_size": 1, "model_name_or_path": "m",
                        "gradient_checkpointing_kwargs": {"use_reentrantt": false}})"),
            Names{"gradient_checkpointing_kwargs.use_reentrantt (did you mean 'use_reentrant'?)"});
  EXPECT_EQ(unknown(R"({"base_model": "m", "fsdp_config": {"offload_params": true, "offload_parms": true}})"),
            Names{"fsdp_config.offload_parms (did you mean 'offload_params'?)"});
}

TEST(TrainerReading, WordsThatASettingDoesNotTakeAreErrors) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"model_name_or_path": "m", "per_device_train_batch_size": 1, "torch_dtype": "bfloat17"})", "torch_dtype"},
      {R"({"model_name_or_path": "m", "per_device_train_batch_size": 1, "attn_implementation": "flash_attention_9"})",
       "attn_implementation"},
      {R"({"model_name_or_path": "m", "per_device_train_batch_size": 1, "bf16": "maybe"})", "bf16"},
      {R"({"model_name_or_path": "m", "stage": "foo", "cutoff_len": 64})", "stage"},
      {R"({"batch_size": 1, "dtype": "bf17", "model": {"_component_": "m.llama2_7b"}, "optimizer": {"_component_": "o"}})",
       "dtype"},
      {R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 7}})", "zero_optimization.stage"},
      {R"({"model_family": "sdxl", "mixed_precision": "bf17"})", "mixed_precision"},
      {R"({"model_type": "FLUX_DEV_1", "base_model_name": "m", "train_dtype": "BFLOAT_17"})", "train_dtype"}};
  for (const auto& [file, key] : kWrong) {
    job::JobRequest request;
    const auto applied = apply(parsed(file), request);
    ASSERT_FALSE(applied) << file;
    EXPECT_TRUE(applied.error().message.starts_with(std::string(key) + ": '")) << applied.error().message;
  }
}

TEST(TrainerReading, StrictTakesNoFileThatIsLeftOutInPart) {
  const std::string begin = R"({"model_name_or_path": "m", "per_device_train_batch_size": 1)";
  for (const char* rest : {R"(, "foo": 1})", R"(, "optim": "nonsense"})", R"(, "neftune_noise_alpha": 5})"}) {
    job::JobRequest request;
    EXPECT_TRUE(succeeds(apply(parsed(begin + rest), request))) << rest;
    request.training.strict = true;
    EXPECT_FALSE(apply(parsed(begin + rest), request)) << rest;
  }
  job::JobRequest request;
  request.training.strict = true;
  EXPECT_TRUE(succeeds(apply(parsed(begin + "}"), request)));
}

TEST(TrainerReading, NamesTheNearestKeyOfImageTrainers) {
  const auto unknown = [](const std::string& text) {
    const auto job = parse_trainer_job(text);
    EXPECT_TRUE(job) << text;
    return job && !job->unknown.empty() ? job->unknown.front() : std::string();
  };
  EXPECT_EQ(unknown(R"({"model_family": "flux", "validation_promt": "a"})"),
            "validation_promt (did you mean 'validation_prompt'?)");
  EXPECT_EQ(unknown(R"({"model_type": "SANA", "base_model_name": "m", "training_method": "LORA", "lora_rnk": 4})"),
            "lora_rnk (did you mean 'lora_rank'?)");
  EXPECT_EQ(unknown("micro_batch_size_per_gpu = 1\nsave_evry_n_epochs = 1\n[model]\ntype = 'sdxl'\n"),
            "save_evry_n_epochs (did you mean 'save_every_n_epochs'?)");
  EXPECT_EQ(unknown(R"({"model_paths": "m", "dataset_base_path": "d", "dataset_repeet": 1})"),
            "dataset_repeet (did you mean 'dataset_repeat'?)");
}

TEST(TrainerReading, UsualModelsAreToldByTheBeginningOfAKey) {
  constexpr UsualModel kRows[] = {{"flux2", "b"}, {"flux", "a"}};
  EXPECT_EQ(usual_model(kRows, "flux2_klein"), "b");
  EXPECT_EQ(usual_model(kRows, "flux_kontext"), "a");
  EXPECT_EQ(usual_model(kRows, "wan"), "");
  const auto pipe = parse_trainer_job("micro_batch_size_per_gpu = 1\n[model]\ntype = 'chroma'\n");
  ASSERT_TRUE(pipe);
  EXPECT_EQ(pipe->usual_model, "lodestones/Chroma1-HD");
}

}  // namespace
}  // namespace gpumem::trainer_files
