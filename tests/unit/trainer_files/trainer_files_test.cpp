#include "trainer_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "expect.hpp"
#include "gpumem/job/job_options.hpp"
#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;

const std::string kExamples = GPUMEM_SOURCE_DIR "/examples/trainers/";

TrainerJob read(const std::string& name, const std::string& adapter = {}) {
  auto job = read_trainer_job(kExamples + name, adapter);
  EXPECT_TRUE(succeeds(job));
  return job ? *std::move(job) : TrainerJob();
}

TEST(TrainerFiles, ReadsTrainingArguments) {
  const TrainerJob job = read("training_arguments.json");
  EXPECT_EQ(job.format, "hf-training-arguments");
  EXPECT_EQ(job.model, "tinyllama");
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "1024"},
                      {"accumulate", "4"},
                      {"precision", "bf16"},
                      {"optimizer", "adamw"},
                      {"fused", "true"},
                      {"weight_decay", "false"},
                      {"checkpointing", "full"},
                      {"loop", "hf-trainer"},
                      {"lora", "-"}});
  EXPECT_TRUE(job.unknown.empty());
  EXPECT_TRUE(job.not_modelled.empty());
}

TEST(TrainerFiles, TrainingArgumentsLoadFloat32UnlessTheySayOtherwise) {
  expect_wanted(parsed(R"({"per_device_train_batch_size": 4, "bf16": true})"),
                {{"precision", "amp-bf16"}, {"optimizer", "adamw"}, {"fused", "-"}, {"checkpointing", "-"}});
  expect_wanted(parsed(R"({"per_device_train_batch_size": 4, "fp16": true})"), {{"precision", "amp-fp16"}});
  expect_wanted(parsed(R"({"per_device_train_batch_size": 4})"), {{"precision", "fp32"}});
}

TEST(TrainerFiles, ReadsAnAdapterBesideThem) {
  const TrainerJob job = read("training_arguments.json", kExamples + "adapter");
  expect_wanted(job,
                {{"lora", "16"}, {"lora_targets", "q_proj+v_proj"}, {"lora_dropout", "0.1"}, {"train", "*lm_head"}});
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{});
  TrainerJob other;
  EXPECT_FALSE(take_adapter(R"({"r": 8})", other)) << "it has no peft_type";
  ASSERT_TRUE(succeeds(take_adapter(R"({"peft_type": "IA3"})", other)));
  expect_wanted(other, {{"peft", "ia3"}});
  EXPECT_EQ(other.not_modelled, std::vector<std::string>{});
}

TEST(TrainerFiles, ReadsLlamaFactory) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const TrainerJob job = read("llama_factory.yaml");
  EXPECT_EQ(job.format, "llama-factory");
  EXPECT_EQ(job.model, "tinyllama");
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "1024"},
                      {"accumulate", "8"},
                      {"lora", "8"},
                      {"lora_targets", "all-linear+by-name"},
                      {"precision", "bf16"},  // of the frozen base
                      {"checkpointing", "full"},
                      {"optimizer", "adamw"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
}

TEST(TrainerFiles, LlamaFactoryUpcastsWhatLearns) {
  const std::string begin = R"({"stage": "sft", "model_name_or_path": "m", "bf16": true, "finetuning_type": )";
  expect_wanted(parsed(begin + R"("full"})"),
                {{"precision", "amp-bf16"}, {"lora", "-"}, {"seq_length", "2048"}, {"batch_size", "8"}});
  expect_wanted(parsed(begin + R"("full", "pure_bf16": true})"), {{"precision", "bf16"}});
  expect_wanted(parsed(begin + R"("lora", "quantization_bit": 4})"), {{"quantize", "nf4-double"}});
  expect_wanted(parsed(begin + R"("lora", "quantization_bit": 8})"), {{"quantize", "int8"}});
  const TrainerJob frozen = parsed(begin + R"("freeze", "freeze_trainable_layers": 2, "stage2": 1})");
  expect_wanted(frozen, {{"precision", "amp-bf16"}, {"base_dtype", "bf16"}, {"lora", "-"}});
  EXPECT_EQ(frozen.not_modelled, std::vector<std::string>{});
  EXPECT_EQ(frozen.unknown, std::vector<std::string>{"stage2 (did you mean 'stage'?)"});
}

TEST(TrainerFiles, ReadsAxolotl) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const TrainerJob job = read("axolotl.yaml");
  EXPECT_EQ(job.format, "axolotl");
  EXPECT_EQ(job.model, "tinyllama");
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "1024"},
                      {"accumulate", "4"},
                      {"quantize", "nf4-double"},
                      {"lora", "32"},
                      {"lora_targets", "all-linear+by-name"},
                      {"lora_dropout", "0.05"},
                      {"optimizer", "paged-adamw"},
                      {"precision", "bf16"},
                      {"attention", "flash"},
                      {"checkpointing", "full"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
  expect_wanted(parsed(R"({"base_model": "m", "gradient_checkpointing": "offload", "cut_cross_entropy": true})"),
                {{"offload", "checkpoints"}, {"loss", "fused"}, {"precision", "bf16"}, {"batch_size", "1"}});
}

TEST(TrainerFiles, NamesParametersThatLoraAdapts) {
  expect_wanted(parsed(R"({"base_model": "m", "adapter": "lora", "lora_r": 16, "lora_target_modules": ["q_proj"],
                           "lora_target_parameters": ["experts.gate_up_proj", "experts.down_proj"]})"),
                {{"lora_targets", "q_proj+parameter:experts.gate_up_proj+parameter:experts.down_proj"}});
  expect_wanted(parsed(R"({"base_model": "m", "adapter": "lora", "lora_target_parameters": "experts.down_proj"})"),
                {{"lora_targets", "parameter:experts.down_proj"}});
  const std::string experts = R"({"base_model": "m", "adapter": "lora", "quantize_moe_experts": true, )";
  expect_wanted(parsed(experts + R"("load_in_4bit": true})"), {{"quantize", "nf4-experts"}});
  EXPECT_NE(parsed(experts + R"("load_in_8bit": true})").unlike.find("quantize_moe_experts"), std::string::npos);
  const std::string linear = R"({"base_model": "m", "adapter": "qlora", "llama4_linearized_experts": true, )";
  expect_wanted(parsed(linear + R"("load_in_4bit": true})"), {{"quantize", "nf4-linear-experts"}});
  EXPECT_EQ(parsed(linear + R"("lora_target_linear": true})").not_modelled,
            std::vector<std::string>{"llama4_linearized_experts true"});
}

TEST(TrainerFiles, AxolotlsPluginsAndLayouts) {
  const TrainerJob job =
      parsed(R"({"base_model": "m", "plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
    "axolotl.integrations.liger.LigerPlugin"], "attn_implementation": "flash_attention_2", "sample_packing": true,
    "fsdp_version": 2, "fsdp_config": {"offload_params": true}, "activation_offloading": true,
    "gradient_checkpointing": true, "unfrozen_parameters": ["model.layers.*", "lm_head.*"]})");
  expect_wanted(
      job, {{"loss", "fused"}, {"attention", "flash"}, {"sharding", "fsdp2"}, {"train", "model.layers*,lm_head*"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
  EXPECT_FALSE(job.shorter);
  expect_wanted(parsed(R"({"base_model": "m", "cut_cross_entropy": false,
    "plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]})"),
                {{"loss", "-"}});
  const TrainerJob images =
      parsed(R"({"base_model": "m", "processor_type": "AutoProcessor", "plugins": ["an.Other"]})");
  EXPECT_EQ(images.missing, std::vector<std::string>{"the size and number of its images"});
  EXPECT_EQ(images.not_modelled, std::vector<std::string>{"plugins an.Other"});
  EXPECT_TRUE(images.shorter);
}

TEST(TrainerFiles, AxolotlsKernelsChangeLittleWhereBlocksAreComputedAgain) {
  const std::string kernels = R"("use_kernels": true, "liger_rms_norm": true, "lora_mlp_kernel": true,
    "flex_attention": true, "flex_attn_compile_kwargs": {"dynamic": false}})";
  const TrainerJob again = parsed(R"({"base_model": "m", "gradient_checkpointing": true, )" + kernels);
  EXPECT_TRUE(again.not_modelled.empty()) << again.not_modelled.front();
  EXPECT_TRUE(again.unknown.empty()) << again.unknown.front();
  expect_wanted(again, {{"attention", "flash"}, {"kernels", "unsloth"}});
  const TrainerJob once = parsed(R"({"base_model": "m", )" + kernels);
  EXPECT_EQ(once.not_modelled, std::vector<std::string>{"use_kernels true"});
  expect_wanted(parsed(R"({"base_model": "m", "attn_implementation": "flex_attention"})"), {{"attention", "flash"}});
  expect_wanted(parsed(R"({"base_model": "m"})"), {{"precision", "bf16"}, {"seq_length", "512"}});
  expect_wanted(parsed(R"({"base_model": "m", "bf16": false, "sequence_len": 64})"),
                {{"precision", "fp32"}, {"seq_length", "64"}});
  expect_wanted(parsed(R"({"base_model": "m", "fp16": true})"), {{"precision", "amp-fp16"}});
}

TEST(TrainerFiles, ModulesBesideAdaptersAreTrained) {
  expect_wanted(
      parsed(R"({"base_model": "m", "adapter": "lora", "lora_modules_to_save": ["embed_tokens", "lm_head"]})"),
      {{"train", "*embed_tokens,*lm_head"}});
  const TrainerJob megatron = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16",
    "tuner_type": "lora", "modules_to_save": "word_embeddings output_layer"})");
  expect_wanted(megatron, {{"train", "*embed_tokens,*lm_head"}, {"lora", "8"}});
  EXPECT_TRUE(megatron.not_modelled.empty()) << megatron.not_modelled.front();
  expect_wanted(parsed(R"({"base_model": "m", "adapter": "lora", "lora_modules_to_save": []})"), {{"train", "-"}});
  const TrainerJob words = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16",
    "tuner_type": "lora", "modules_to_save": "all-embedding output_layer"})");
  expect_wanted(words, {{"train", "*lm_head"}});
  EXPECT_EQ(words.not_modelled, std::vector<std::string>{"modules_to_save all-embedding output_layer"});
}

TEST(TrainerFiles, FsdpShardsWhatItsWordsSay) {
  const auto of = [](const std::string& words) {
    return parsed(R"({"per_device_train_batch_size": 4, "fsdp": ")" + words + "\"}");
  };
  expect_wanted(of("full_shard auto_wrap"), {{"sharding", "fsdp1"}, {"offload", "-"}});
  expect_wanted(of("full_shard offload"), {{"sharding", "fsdp1"}, {"offload", "parameters"}});
  const TrainerJob none = of("no_shard");
  expect_wanted(none, {{"sharding", "-"}});
  EXPECT_TRUE(none.not_modelled.empty());
  const TrainerJob other = of("hybrid_shard auto_wrap");
  expect_wanted(other, {{"sharding", "-"}});
  EXPECT_EQ(other.not_modelled, std::vector<std::string>{"fsdp hybrid_shard auto_wrap"});
}

TEST(TrainerFiles, AnEvaluationCountsWhereItsBatchesAreLarger) {
  const auto noted = [](std::string_view batches) {
    return parsed(R"({"output_dir": "o", "learning_rate": 1e-5, "eval_strategy": "steps")" + std::string(batches) + "}")
        .not_modelled;
  };
  EXPECT_TRUE(noted("").empty()) << "both batches are 8";
  EXPECT_TRUE(noted(R"(, "per_device_train_batch_size": 2, "per_device_eval_batch_size": 2)").empty());
  EXPECT_EQ(noted(R"(, "per_device_train_batch_size": 1)"), std::vector<std::string>{"eval_strategy steps"});
}

TEST(TrainerFiles, ReadsMsSwift) {
  const TrainerJob job = read("ms_swift.json");
  EXPECT_EQ(job.format, "ms-swift");
  EXPECT_EQ(job.model, "tinyllama");
  expect_wanted(job, {{"batch_size", "2"},
                      {"seq_length", "1024"},
                      {"accumulate", "8"},
                      {"lora", "16"},
                      {"lora_dropout", "0.05"},
                      {"precision", "amp-bf16"},
                      {"base_dtype", "bf16"},
                      {"attention", "flash"},
                      {"padding", "false"},
                      {"checkpointing", "full"},
                      {"optimizer", "adamw"}});
  EXPECT_TRUE(wanted(job, "lora_targets").starts_with("all-linear+not:model.visual")) << "its towers are frozen";
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
  EXPECT_FALSE(job.shorter);
  const TrainerJob full =
      parsed(R"({"model": "m", "tuner_type": "full", "deepspeed": "zero2", "env:MAX_PIXELS": "10000"})");
  expect_wanted(full, {{"precision", "bf16-mixed"}, {"sharding", "zero-2"}, {"image", "100x100"}, {"lora", "-"}});
  EXPECT_TRUE(full.frozen_parts.starts_with("model.visual,")) << full.frozen_parts;
  EXPECT_TRUE(full.shorter);
  EXPECT_EQ(full.global_batch, 16);
}

TEST(TrainerFiles, MsSwiftsTasksHaveHeadsOfTheirOwn) {
  const std::string base =
      R"({"model": "m", "tuner_type": "lora", "max_length": 64, "per_device_train_batch_size": 3, "task_type": )";
  const TrainerJob classes = parsed(base + R"("seq_cls", "num_labels": 2})");
  EXPECT_EQ(classes.head, "ForSequenceClassification");
  EXPECT_EQ(classes.not_modelled, std::vector<std::string>{});
  expect_wanted(classes, {{"batch_size", "3"}});
  const TrainerJob embeds = parsed(base + R"("embedding", "loss_type": "infonce"})");
  EXPECT_EQ(embeds.head, "Model");
  expect_wanted(embeds, {{"batch_size", "6"}});
  ASSERT_EQ(embeds.missing.size(), 1U);
  EXPECT_TRUE(embeds.missing.front().starts_with("the number of its negatives"));
  const TrainerJob pairs = parsed(base + R"("embedding", "loss_type": "contrastive"})");
  expect_wanted(pairs, {{"batch_size", "6"}});
  EXPECT_EQ(pairs.missing, std::vector<std::string>{});
  const TrainerJob reranker = parsed(base + R"("generative_reranker", "loss_type": "pointwise_reranker"})");
  EXPECT_EQ(reranker.head, "") << "it reads two rows of the head's weight";
  EXPECT_EQ(reranker.not_modelled, std::vector<std::string>{});
  expect_wanted(reranker, {{"batch_size", "24"}, {"loss", "fused"}});
  const TrainerJob odd = parsed(base + R"("prm", "loss_type": "x"})");
  EXPECT_EQ(odd.not_modelled, (std::vector<std::string>{"task_type prm", "loss_type x"}));
  const TrainerJob packed = parsed(base + R"("embedding", "loss_type": "infonce", "packing": true})");
  expect_wanted(packed, {{"batch_size", "3"}});
}

TEST(TrainerFiles, MsSwiftsEnvironmentSaysHowManyTextsASampleHas) {
  const auto of = [](const std::string& task, const std::string& environment) {
    return parsed(
        R"({"model": "m", "tuner_type": "lora", "max_length": 64, "per_device_train_batch_size": 3, "task_type": )" +
        task + ", " + environment + "}");
  };
  const std::string reranker = R"("generative_reranker", "loss_type": "listwise_reranker")";
  expect_wanted(of(reranker, R"("env:MAX_NEGATIVE_SAMPLES": 3)"), {{"batch_size", "12"}});
  expect_wanted(of(reranker, R"("env:MAX_NEGATIVE_SAMPLES": 3, "env:MAX_POSITIVE_SAMPLES": 2)"),
                {{"batch_size", "24"}});
  const TrainerJob below = of(reranker, R"("env:MAX_NEGATIVE_SAMPLES": -1)");
  expect_wanted(below, {{"batch_size", "24"}});
  EXPECT_EQ(below.not_modelled, std::vector<std::string>{"env:MAX_NEGATIVE_SAMPLES -1"});
  const TrainerJob none = of(reranker, R"("env:MAX_POSITIVE_SAMPLES": 0)");
  EXPECT_EQ(none.not_modelled, std::vector<std::string>{"env:MAX_POSITIVE_SAMPLES 0"});
  const std::string most = std::to_string(core::kMostBytes);
  expect_wanted(of(reranker, R"("env:MAX_NEGATIVE_SAMPLES": 9223372036854775807)"), {{"batch_size", most.c_str()}});
  const TrainerJob told = of(R"("embedding", "loss_type": "infonce")", R"("env:INFONCE_HARD_NEGATIVES": 4)");
  expect_wanted(told, {{"batch_size", "18"}});
  EXPECT_EQ(told.missing, std::vector<std::string>{});
}

TEST(TrainerFiles, ReadsMsSwiftsMegatron) {
  TrainerJob job = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16", "packing": "true",
    "tensor_model_parallel_size": "4", "sequence_parallel": "true", "recompute_granularity": "full",
    "recompute_method": "uniform", "recompute_num_layers": "2", "max_length": "8192",
    "env:PYTORCH_CUDA_ALLOC_CONF": "'expandable_segments:True'"})");
  expect_wanted(job, {{"loop", "megatron"},
                      {"batch_size", "1"},
                      {"precision", "bf16-mixed"},
                      {"tensor_parallel", "4"},
                      {"sequence_parallel", "true"},
                      {"sharding", "distributed-optimizer"},
                      {"checkpointing", "full:2"},
                      {"attention", "flash"},
                      {"loss", "fused-ce"},
                      {"alloc_conf", "expandable_segments:True"}});
  EXPECT_TRUE(job.unknown.empty()) << job.unknown.front();
  job::JobRequest request;
  ASSERT_TRUE(succeeds(apply(job, request)));
  ASSERT_TRUE(succeeds(spread(job, 8, request)));
  EXPECT_EQ(request.training.layout.data_parallel, 2);
  EXPECT_EQ(request.training.gradient_accumulation, 8);
  EXPECT_FALSE(spread(job, 6, request)) << "four do not divide six";
  const TrainerJob uneven = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16",
    "pipeline_model_parallel_size": "4", "decoder_last_pipeline_num_layers": "13"})");
  expect_wanted(uneven, {{"pipeline_parallel", "4"}, {"last_stage_layers", "13"}, {"first_stage_layers", "-"}});
  EXPECT_TRUE(uneven.not_modelled.empty());
}

TEST(TrainerFiles, MsSwiftsExpertsAreChosenAlike) {
  const TrainerJob megatron = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16",
    "moe_expert_capacity_factor": "2"})");
  EXPECT_TRUE(megatron.not_modelled.empty()) << megatron.not_modelled.front();
  EXPECT_TRUE(megatron.unknown.empty()) << megatron.unknown.front();
  EXPECT_TRUE(parsed(R"({"model": "m", "tuner_type": "lora", "experts_impl": "grouped_mm"})").not_modelled.empty());
  EXPECT_EQ(parsed(R"({"model": "m", "tuner_type": "lora", "experts_impl": "eager"})").not_modelled,
            std::vector<std::string>{"experts_impl eager"});
}

TEST(TrainerFiles, ReadsDeepSpeed) {
  const TrainerJob job = read("ds_config.json");
  EXPECT_EQ(job.format, "deepspeed");
  expect_wanted(job, {{"batch_size", "2"},
                      {"accumulate", "4"},
                      {"precision", "bf16-mixed"},
                      {"optimizer", "adamw"},
                      {"fused", "true"},
                      {"sharding", "zero-2"},
                      {"offload", "optimizer"},
                      {"zero_reduce_bucket", "200000000"}});
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{"zero_optimization.allgather_bucket_size 200000000"});
}

TEST(TrainerFiles, ReadsTheSizesOfDeepSpeedsBuckets) {
  const TrainerJob job = parsed(R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3,
    "reduce_bucket_size": 1e8, "stage3_prefetch_bucket_size": 0, "stage3_param_persistence_threshold": "auto",
    "stage3_max_reuse_distance": 2000000}})");
  expect_wanted(job, {{"batch_size", "1"},
                      {"sharding", "zero-3"},
                      {"zero_reduce_bucket", "100000000"},
                      {"zero_prefetch_bucket", "0"},
                      {"zero_reuse_distance", "2000000"}});
}

TEST(TrainerFiles, ADeepSpeedConfigThatAFileNamesCountsWhereItSaysSomething) {
  TrainerJob job = parsed(R"({"per_device_train_batch_size": 4, "bf16": true, "deepspeed": "ds.json"})");
  EXPECT_EQ(job.deepspeed, "ds.json");
  ASSERT_TRUE(succeeds(take_deepspeed(
      R"({"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}})",
      job)));
  expect_wanted(job, {{"batch_size", "4"}, {"precision", "amp-bf16"}, {"sharding", "zero-3"}});
}

TEST(TrainerFiles, WhereMastersAreKeptTheyAreOfWhatIsTrained) {
  TrainerJob full = parsed(R"({"per_device_train_batch_size": 4, "bf16": true})");
  keep_masters(full);
  expect_wanted(full, {{"precision", "bf16-mixed"}, {"base_dtype", "-"}});
  TrainerJob adapters = parsed(R"({"per_device_train_batch_size": 4, "fp16": true, "use_peft": true})");
  keep_masters(adapters);
  expect_wanted(adapters, {{"precision", "fp16-mixed"}, {"base_dtype", "fp16"}});
  TrainerJob wide = parsed(R"({"per_device_train_batch_size": 4})");
  keep_masters(wide);
  expect_wanted(wide, {{"precision", "fp32"}});
}

TEST(TrainerFiles, OptionsGoThroughTheTableByName) {
  TrainerJob job;
  job.options = {{"batch_size", "4", "micro_batch_size", 3},
                 {"checkpointing", "full", "gradient_checkpointing", 4},
                 {"an_option_of_nobody", "7", "its_key", 5},
                 {"optimizer", "lomo", "optim", 6}};
  job.not_modelled = {"neftune_noise_alpha 5"};
  job.unknown = {"odd\nkey"};
  job::JobRequest request;
  const auto notes = apply(job, request);
  ASSERT_TRUE(succeeds(notes));
  EXPECT_EQ(request.training.batch_size, 4);
  EXPECT_FALSE(job::is_default(*job::find_option("checkpointing"), request));
  EXPECT_EQ(*notes, (std::vector<std::string>{
                        "an_option_of_nobody 7 (its_key) is not modelled", "optimizer lomo (optim) is not modelled",
                        "neftune_noise_alpha 5 is not modelled", "gpumem does not know its keys odd?key"}));
}

TEST(TrainerFiles, OptimizersThatProjectGradientsByTheirNamesInTransformers) {
  const std::string base = R"({"model_name_or_path": "m", "stage": "sft", "finetuning_type": "full", "optim": )";
  expect_wanted(parsed(base + R"("galore_adamw_layerwise", "optim_args": "rank=64, update_proj_gap=100, scale=0.10",
    "optim_target_modules": [".*.attn.*", ".*.mlp.*"]})"),
                {{"optimizer", "galore-adamw:64+attn+mlp"}, {"optimizer_in_backward", "true"}});
  expect_wanted(parsed(base + R"("galore_adamw_8bit", "optim_target_modules": "all-linear"})"),
                {{"optimizer", "galore-adamw-8bit+all-linear"}});
  expect_wanted(parsed(base + R"("galore_adafactor"})"), {{"optimizer", "galore-adafactor"}});
  const TrainerJob apollo = parsed(base + R"("apollo_adamw", "optim_args": "proj=svd,rank=1,scale_type=tensor"})");
  expect_wanted(apollo, {{"optimizer", "apollo-adamw:1"}});
  EXPECT_EQ(apollo.not_modelled, std::vector<std::string>{"optim_args proj=svd,rank=1,scale_type=tensor"});
  for (const char* name : {"ademamix", "ademamix_8bit", "schedule_free_adamw"}) {
    job::JobRequest request;
    const auto notes = apply(parsed(base + '"' + name + "\"}"), request);
    ASSERT_TRUE(succeeds(notes)) << name;
    EXPECT_EQ(*notes, std::vector<std::string>{}) << name;
  }
}

TEST(TrainerFiles, WhatTheUserGaveCounts) {
  TrainerJob job;
  job.options = {{"batch_size", "4", "micro_batch_size", 3}};
  job::JobRequest request;
  ASSERT_TRUE(succeeds(job::set_option_text(*job::find_option("batch_size"), request, "16")));
  ASSERT_TRUE(succeeds(apply(job, request)));
  EXPECT_EQ(request.training.batch_size, 16);
}

TEST(TrainerFiles, ANumberThatIsNoneIsAnErrorWithItsKey) {
  job::JobRequest request;
  const auto notes = apply(parsed(R"({"per_device_train_batch_size": "many"})"), request);
  ASSERT_FALSE(notes);
  EXPECT_EQ(notes.error().code, core::ErrorCode::malformed_input);
  EXPECT_EQ(notes.error().place.element, "per_device_train_batch_size");
}

TEST(TrainerFiles, TheTokensOfAnImageAreBounded) {
  const auto image_of = [](const std::string& tokens) {
    return parsed(R"({"model": "m", "tuner_type": "full", "env:IMAGE_MAX_TOKEN_NUM": )" + tokens + "}");
  };
  EXPECT_EQ(wanted(image_of("1024"), "image"), "1024x1024");
  EXPECT_EQ(wanted(image_of("9223372036854775807"), "image"), "65536x65536") << "the largest side that is looked for";
  for (const char* const none : {"0", "-1"}) {
    job::JobRequest request;
    const auto notes = apply(image_of(none), request);
    ASSERT_TRUE(succeeds(notes)) << none;
    ASSERT_FALSE(notes->empty()) << none;
    EXPECT_NE(notes->front().find("env:IMAGE_MAX_TOKEN_NUM"), std::string::npos) << notes->front();
    EXPECT_FALSE(job::is_given(*job::find_option("image"), request));
  }
}

TEST(TrainerFiles, AFileOfNoTrainerIsRefusedWithTheListOfThem) {
  const auto job = parse_trainer_job(R"({"hidden_size": 8})");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, core::ErrorCode::unknown_format);
  for (const TrainerFormat* format : trainer_formats()) {
    EXPECT_NE(job.error().message.find(format->description), std::string::npos) << format->name;
  }
  const auto adapter = parse_trainer_job(R"({"peft_type": "LORA", "r": 8})");
  ASSERT_FALSE(adapter);
  EXPECT_NE(adapter.error().message.find("`adapter`"), std::string::npos);
}

TEST(TrainerFiles, FindsTheModelBesideTheFile) {
  TrainerJob job;
  job.model = "tinyllama";
  const auto found = find_model(job, kExamples + "training_arguments.json");
  ASSERT_TRUE(succeeds(found));
  EXPECT_EQ(*found, kExamples + "tinyllama/config.json");
  job.model = "somebody/a-model-on-the-hub";
  const auto missing = find_model(job, kExamples + "training_arguments.json");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("name its config.json"), std::string::npos) << missing.error().message;
  job.model.clear();
  EXPECT_FALSE(find_model(job, "x.json"));
}

TEST(TrainerFiles, AFolderThatIsNotHereMayBeAPublishedModel) {
  EXPECT_EQ(model_by_folder("/tmp/Llama-2-7b-hf"), "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(model_by_folder("/tmp/Meta-Llama-3.1-8B-Instruct/"), "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(model_by_folder("/tmp/Meta-Llama-3-8B/original/"), "meta-llama/Meta-Llama-3-8B");
  EXPECT_EQ(model_by_folder("models/Llama-2-7b"), "meta-llama/Llama-2-7b-hf");
  for (const char* none : {"/tmp/my-model", "Qwen3-8B", "/", ""}) EXPECT_FALSE(model_by_folder(none)) << none;
}

TEST(TrainerFiles, AFileThatIsNotThereIsUnreadable) {
  const auto job = read_trainer_job(kExamples + "missing.json");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, core::ErrorCode::unreadable_file);
}

}  // namespace
}  // namespace gpumem::trainer_files
