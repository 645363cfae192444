#include "llama_factory.hpp"

#include <gtest/gtest.h>

#include "gpumem/model/graph_builder.hpp"

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

TEST(LlamaFactory, TakesTheThinkerOutOfAModelThatSpeaks) {
  EXPECT_EQ(parsed(R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "lora"})").holds_speech, false);
  EXPECT_EQ(parsed(R"({"model": "m", "model_class": "llm"})").holds_speech, std::nullopt)
      << "its next version does not";
}

/// Eight blocks of two linear layers, an embedding before and a norm behind them.
model::ModelGraph of_blocks() {
  model::GraphBuilder builder("made up");
  const auto add = [&](const std::string& path, std::int64_t parameters) {
    builder.add({.name = path, .parameters = parameters});
  };
  add("model.embed_tokens", 100);
  for (int block = 0; block < 8; ++block) {
    add("model.layers." + std::to_string(block) + ".mlp.experts.0", 10);
    add("model.layers." + std::to_string(block) + ".self_attn", 10);
  }
  add("model.norm", 1);
  auto graph = std::move(builder).build();
  EXPECT_TRUE(testing::succeeds(graph));
  return *std::move(graph);
}

std::string patterns_of(const std::string& more) {
  const TrainerJob job =
      parsed(R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "freeze", "bf16": true)" + more + "}");
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{});
  const auto patterns = trained_patterns(job.trained_blocks, of_blocks());
  return patterns ? *patterns : core::to_string(patterns.error());
}

TEST(LlamaFactory, TrainsSomeBlocks) {
  EXPECT_EQ(patterns_of(""), "model.layers.6.*,model.layers.7.*");
  EXPECT_EQ(patterns_of(R"(, "freeze_trainable_layers": -1, "freeze_trainable_modules": "mlp, self_attn")"),
            "model.layers.0.mlp*,model.layers.0.self_attn*");
  EXPECT_EQ(patterns_of(R"(, "freeze_trainable_layers": 1, "freeze_extra_modules": "embed_tokens,norm")"),
            "model.layers.7.*,*embed_tokens*,*norm*");
  EXPECT_EQ(patterns_of(R"(, "freeze_trainable_layers": 2, "use_llama_pro": true)"),
            "model.layers.3.*,model.layers.7.*");
  EXPECT_NE(patterns_of(R"(, "freeze_trainable_layers": 3, "use_llama_pro": true)").find("cannot be shared among 3"),
            std::string::npos);
}

TEST(LlamaFactory, RefusesWhatIsUnlikeOtherJobs) {
  const TrainerJob job = parsed(R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "full",
    "use_badam": true, "badam_mode": "ratio"})");
  job::JobRequest request;
  const auto applied = apply(job, request);
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("badam_mode ratio"), std::string::npos) << applied.error().message;
}

TEST(LlamaFactory, OptimizersThatSaveMemory) {
  const std::string base =
      R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "full", "pure_bf16": true, )";
  expect_wanted(parsed(base + R"("use_galore": true, "galore_layerwise": true, "galore_rank": 128})"),
                {{"optimizer", "galore-adamw:128"}, {"optimizer_in_backward", "true"}, {"precision", "bf16"}});
  expect_wanted(parsed(base + R"("use_galore": true, "optim": "adamw_8bit", "galore_target": "mlp,self_attn"})"),
                {{"optimizer", "galore-adamw-8bit:16+mlp+self_attn"}});
  expect_wanted(parsed(base + R"("use_apollo": true, "apollo_rank": 256})"), {{"optimizer", "apollo-adamw:256"}});
  expect_wanted(parsed(base + R"("use_adam_mini": true})"), {{"optimizer", "adam-mini"}});
  const TrainerJob badam = parsed(base + R"("use_badam": true})");
  expect_wanted(badam, {{"precision", "bf16-mixed"}});
  EXPECT_EQ(badam.trained_blocks.count, -1) << "backward goes furthest for the first block";
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
                      {"lora_targets", "all-linear+by-name"},
                      {"checkpointing", "full"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
}

/// utils/schemas/validation.py: check_auto_enable_lora_kernels; utils/__init__.py: set_pytorch_cuda_alloc_conf.
TEST(Axolotl, JoinsAdaptersUnlessSomethingSpeaksAgainstIt) {
  const auto with = [](const std::string& more) { return parsed(R"({"base_model": "m", "adapter": "lora")" + more); };
  expect_wanted(with("}"), {{"kernels", "lora-mlp"}, {"alloc_conf", "expandable_segments:True"}});
  expect_wanted(with(R"(, "liger_rms_norm": true})"), {{"kernels", "unsloth"}});
  expect_wanted(with(R"(, "lora_qkv_kernel": false})"), {{"kernels", "-"}});
  expect_wanted(with(R"(, "trust_remote_code": true})"), {{"kernels", "-"}});
  expect_wanted(with(R"(, "load_in_8bit": true})"), {{"kernels", "-"}});
  expect_wanted(with(R"(, "fsdp_version": 1, "fsdp_config": {"offload_params": true}})"), {{"kernels", "-"}});
  expect_wanted(parsed(R"({"base_model": "m", "liger_rms_norm": true, "liger_glu_activation": true})"),
                {{"kernels", "liger"}});
}

TEST(Axolotl, KernelsOfExpertsChangeLittleWhereBlocksAreComputedAgain) {
  const std::string experts =
      R"({"base_model": "m", "plugins": ["axolotl.integrations.kernels.KernelsPlugin"], "use_scattermoe": true, )";
  const TrainerJob mixture = parsed(experts + R"("gradient_checkpointing": true})");
  EXPECT_TRUE(mixture.not_modelled.empty()) << mixture.not_modelled.front();
  EXPECT_TRUE(mixture.unknown.empty()) << mixture.unknown.front();
  EXPECT_EQ(parsed(experts + R"("lora_target_parameters": "experts.down_proj", "gradient_checkpointing": true})")
                .not_modelled,
            std::vector<std::string>{"plugins axolotl.integrations.kernels.KernelsPlugin"});
}

/// LLaMA-Factory 0.9.3, launcher.py: OPTIM_TORCH.
TEST(LlamaFactory, SwitchesExpandableSegmentsOnForSeveralProcesses) {
  const TrainerJob job = parsed(R"({"model_name_or_path": "m", "stage": "sft"})");
  const auto chosen = [&](std::int64_t gpus) {
    job::JobRequest request;
    EXPECT_TRUE(testing::succeeds(apply(job, request)));
    EXPECT_TRUE(testing::succeeds(spread(job, gpus, request)));
    return request.alloc_conf;
  };
  EXPECT_EQ(chosen(1), "");
  EXPECT_EQ(chosen(2), "expandable_segments:True");
}

TEST(Checkpoints, AreReentrantUnderFsdpWhereTheTrainersAre) {
  const auto checkpointing = [](const std::string& text) {
    const TrainerJob job = parsed("{" + text + "}");
    const WantedOption* const wanted = job.find("checkpointing");
    return wanted == nullptr ? std::string() : wanted->value;
  };
  const std::string factory = R"("model_name_or_path": "m", "stage": "sft", "finetuning_type": "full")";
  EXPECT_EQ(checkpointing(factory), "full");
  EXPECT_EQ(checkpointing(factory + R"(, "fsdp": "full_shard")"), "full+reentrant");
  EXPECT_EQ(checkpointing(factory + R"(, "fsdp": "full_shard", "fsdp_config": {"fsdp_version": "2"})"),
            "full+non-reentrant");
  const std::string axolotl =
      R"("base_model": "m", "micro_batch_size": "1", "sequence_len": "512", "gradient_checkpointing": true)";
  const std::string fsdp = R"(, "fsdp_version": 2, "fsdp_config": {"offload_params": false})";
  EXPECT_EQ(checkpointing(axolotl), "full");
  EXPECT_EQ(checkpointing(axolotl + fsdp), "full+reentrant");
  EXPECT_EQ(checkpointing(axolotl + fsdp + R"(, "activation_offloading": true)"), "full+non-reentrant");
  EXPECT_EQ(checkpointing(axolotl + fsdp + R"(, "gradient_checkpointing_kwargs": {"use_reentrant": false})"),
            "full+non-reentrant");
  EXPECT_EQ(checkpointing(axolotl + R"(, "fsdp_config": {"activation_checkpointing": true})"), "full+non-reentrant");
}

}  // namespace
}  // namespace gpumem::trainer_files
