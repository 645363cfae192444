#include "ms_swift.hpp"

#include <gtest/gtest.h>

#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

TEST(MsSwift, MegatronTrainsInFewerBits) {
  const std::string base = R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16", )";
  const TrainerJob gathers = parsed(base + R"("fp8_format": "e4m3", "fp8_recipe": "blockwise", "fp8_param_gather": true,
    "use_precision_aware_optimizer": true, "exp_avg_dtype": "bf16", "exp_avg_sq_dtype": "bf16"})");
  expect_wanted(gathers, {{"quantize", "float8-params"}, {"optimizer", "adamw-half-states"}});
  EXPECT_EQ(gathers.not_modelled, std::vector<std::string>{});
  expect_wanted(parsed(base + R"("fp8_format": "hybrid", "fp8_recipe": "mxfp8"})"), {{"quantize", "mxfp8"}});
  const TrainerJob one = parsed(base + R"("fp8_format": "hybrid", "exp_avg_dtype": "bf16"})");
  expect_wanted(one, {{"quantize", "float8"}, {"optimizer", "adamw"}});
  EXPECT_EQ(one.not_modelled, std::vector<std::string>{"exp_avg_dtype bf16"});
}

TEST(MsSwift, ALengthThatIsNotSaidIsTakenAndNamed) {
  const TrainerJob open = parsed(R"({"model": "m", "tuner_type": "lora"})");
  expect_wanted(open, {{"seq_length", "2048"}});
  EXPECT_EQ(open.missing.size(), 1U);
  expect_wanted(parsed(R"({"model": "m", "tuner_type": "lora", "max_length": "512"})"), {{"seq_length", "512"}});
}

TEST(MsSwift, MegatronPredictsFurtherTokens) {
  const std::string base =
      R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16", "mtp_num_layers": "1")";
  const TrainerJob job = parsed(base + R"(, "grad_reduce_in_bf16": "true"})");
  expect_wanted(job, {{"megatron_options", "mtp_num_layers=1,grad_reduce_in_bf16"}});
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{});
  EXPECT_EQ(parsed(base + R"(, "pipeline_model_parallel_size": "2"})").not_modelled,
            std::vector<std::string>{"mtp_num_layers 1"});
}

TEST(MsSwift, MegatronRunsItsOwnFormOfAModel) {
  const std::string base = R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16")";
  EXPECT_EQ(parsed(base + "}").megatron_fields,
            R"("moe_router_dtype": "fp32", "cross_entropy_loss_fusion": true, "cross_entropy_fusion_impl": "native")");
  EXPECT_NE(parsed(base + R"(, "cross_entropy_fusion_impl": "te"})").megatron_fields.find(R"("te")"),
            std::string::npos);
  EXPECT_EQ(parsed(base + R"(, "tuner_type": "lora", "target_modules": "all-linear"})").megatron_fields,
            parsed(base + "}").megatron_fields);
  for (const char* other :
       {R"("tuner_type": "lora", "target_modules": "linear_qkv")", R"("freeze_llm": "true")",
        R"("mtp_num_layers": "1")", R"("task_type": "seq_cls")", R"("freeze_parameters": "model.layers.0")"}) {
    EXPECT_EQ(parsed(base + ", " + other + "}").megatron_fields, "") << other;
  }
  EXPECT_EQ(parsed(R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": "full"})").megatron_fields, "");
}

TEST(MsSwift, NamesOfMegatronSwift3AreKnown) {
  const TrainerJob job = parsed(R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16",
    "train_type": "full", "num_workers": "8", "save": "out", "save_interval": "200", "eval_interval": "200",
    "load": "m-mcore", "load_safetensors": "true", "log_interval": "5", "use_flash_attn": "true"})");
  EXPECT_EQ(job.unknown, std::vector<std::string>{});
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{});
}

TEST(MsSwift, OtherTunersThanLora) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": )";
  expect_wanted(parsed(base + R"("vera"})"), {{"peft", "vera"}, {"lora", "256"}});
  expect_wanted(parsed(base + R"("fourierft", "fourier_n_frequency": "100"})"),
                {{"peft", "fourierft"}, {"peft_options", "n_frequency=100"}});
  EXPECT_EQ(parsed(base + R"("longlora"})").not_modelled, std::vector<std::string>{"tuner_type longlora"});
  expect_wanted(parsed(base + R"("longlora"})"), {{"lora", "8"}});
  expect_wanted(parsed(base + R"("full", "use_galore": "true", "galore_rank": "64", "optim": "adamw_torch"})"),
                {{"optimizer", "galore-adamw:64"}});
  const TrainerJob lisa = parsed(base + R"("full", "lisa_activated_layers": "2"})");
  EXPECT_EQ(lisa.trained_blocks.count, -2);
  EXPECT_TRUE(lisa.trained_blocks.and_rest);
  for (const char* unlike : {R"("llamapro")", R"("reft")"}) {
    job::JobRequest request;
    EXPECT_FALSE(apply(parsed(base + unlike + "}"), request)) << unlike;
  }
}

TEST(MsSwift, PartsThatAreTrained) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": )";
  const TrainerJob tower = parsed(base + R"("full", "freeze_llm": "true", "freeze_vit": "false",
    "freeze_aligner": "false"})");
  EXPECT_EQ(tower.frozen_parts, "model.language_model,lm_head,language_model");
  EXPECT_EQ(tower.not_modelled, std::vector<std::string>{});
  const TrainerJob adapters = parsed(base + R"("lora", "freeze_llm": "true", "freeze_vit": "false",
    "freeze_aligner": "false"})");
  expect_wanted(adapters,
                {{"lora_targets", "all-linear+not:model.language_model+not:lm_head+not:language_model+by-name"}});
  const TrainerJob some = parsed(base + R"("full", "freeze_parameters_ratio": "1",
    "trainable_parameters": ["lm_head", "model.norm"]})");
  expect_wanted(some, {{"train", "lm_head*,model.norm*"}});
  EXPECT_EQ(some.not_modelled, std::vector<std::string>{});
  EXPECT_TRUE(parsed(base + R"("full", "freeze_parameters": ["a.b"]})").frozen_parts.ends_with(",a.b"));
  EXPECT_EQ(parsed(base + R"("full", "freeze_parameters_ratio": "0.5"})").not_modelled,
            std::vector<std::string>{"freeze_parameters_ratio 0.5"});
}

TEST(MsSwift, ImagesTakeNoMoreThanTheirSampleHolds) {
  const auto job = [](const std::string& model, const std::string& more) {
    return parsed(R"({"model": ")" + model + R"(", "per_device_train_batch_size": "1", "tuner_type": "lora",
      "freeze_vit": "true", "max_length": "4096")" +
                  more + "}");
  };
  const TrainerJob earlier = job("Qwen/Qwen2.5-VL-7B-Instruct", "");
  expect_wanted(earlier, {{"image", "1792x1792"}});
  EXPECT_TRUE(earlier.missing.empty());
  EXPECT_TRUE(earlier.shorter);
  expect_wanted(job("Qwen/Qwen3-VL-4B-Instruct", ""), {{"image", "2048x2048"}});
  expect_wanted(job("Qwen/Qwen3-VL-4B-Instruct", R"(, "env:MAX_PIXELS": "10000")"), {{"image", "100x100"}});
  const std::vector<std::string> unknown = {"the size and number of its images"};
  EXPECT_EQ(job("Qwen/Qwen3-VL-4B-Instruct", R"(, "packing": "true")").missing, unknown) << "samples are full";
  EXPECT_EQ(job("Qwen/Qwen3-VL-4B-Instruct", R"(, "truncation_strategy": "right")").missing, unknown)
      << "which keeps all tokens of images";
  expect_wanted(job("OpenGVLab/InternVL3-8B", ""), {{"frames", "16"}, {"image", "-"}});
  EXPECT_EQ(job("google/gemma-3-4b-it", "").missing, unknown);
  expect_wanted(job("deepseek-ai/DeepSeek-OCR", ""), {{"image", "1920x1920"}, {"images", "3"}, {"attention", "eager"}});
  expect_wanted(job("deepseek-ai/DeepSeek-OCR-2", ""), {{"image", "2304x1536"}, {"images", "3"}});
}

TEST(MsSwift, APictureThatFitsNoSampleIsASmallerOne) {
  const auto job = [](const std::string& model, const std::string& length) {
    return parsed(R"({"model": ")" + model + R"(", "per_device_train_batch_size": "1", "tuner_type": "lora",
      "freeze_vit": "true", "max_length": ")" +
                  length + "\"}");
  };
  const std::string first = "deepseek-ai/DeepSeek-OCR";
  expect_wanted(job(first, "1203"), {{"image", "1920x1920"}, {"images", "1"}});
  expect_wanted(job(first, "1202"), {{"image", "640x640"}, {"images", "4"}});
  expect_wanted(job(first, "512"), {{"image", "640x640"}, {"images", "1"}});
  expect_wanted(job(first + "-2", "512"), {{"image", "768x768"}, {"images", "1"}});
  expect_wanted(job("deepseek-ai/deepseek-vl2-tiny", "512"), {{"image", "384x384"}, {"images", "1"}});
  expect_wanted(job("openbmb/MiniCPM-V-4.6", "512"), {{"image", "448x448"}, {"images", "8"}});
  const std::vector<std::string> unknown = {"the size and number of its images"};
  EXPECT_EQ(job(first, "272").missing, unknown) << "a picture takes 273";
  EXPECT_EQ(job(first + "-2", "256").missing, unknown) << "a picture takes 257";
}

TEST(MsSwift, AModelThatSpeaksHoldsWhatMakesSpeech) {
  const std::string base =
      R"({"model": "my-omni-run", "per_device_train_batch_size": "1", "tuner_type": "lora", "max_length": "64")";
  const auto said = [&](const std::string& word) {
    return parsed(base + R"(, "env:ENABLE_AUDIO_OUTPUT": ")" + word + "\"}");
  };
  const TrainerJob usual = parsed(base + "}");
  EXPECT_EQ(usual.missing, std::vector<std::string>{});
  EXPECT_EQ(usual.holds_speech, true);
  EXPECT_EQ(usual.speech_key, "");
  EXPECT_EQ(usual.head, "") << "the name of a folder says nothing of the model in it";
  for (const char* off : {"0", "False", "no", "off", "n", "f"}) EXPECT_EQ(said(off).holds_speech, false) << off;
  EXPECT_EQ(said("1").holds_speech, true);
  EXPECT_EQ(said("1").speech_key, "ENABLE_AUDIO_OUTPUT");
  EXPECT_EQ(said("1").unknown, std::vector<std::string>{});
  const TrainerJob megatron = parsed(R"({"model": "my-omni-run", "micro_batch_size": "1", "global_batch_size": "16",
    "max_length": "512", "env:ENABLE_AUDIO_OUTPUT": "1"})");
  EXPECT_EQ(megatron.holds_speech, false) << "Megatron's form is the thinker alone";
  EXPECT_EQ(megatron.speech_key, "");
}

TEST(MsSwift, UnderFsdpItsCheckpointsAreReentrantUnlessTheFileSaysOtherwise) {
  const auto checkpointing = [](const std::string& more) {
    const TrainerJob job =
        parsed(R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": "full")" + more + "}");
    const WantedOption* const wanted = job.find("checkpointing");
    return wanted == nullptr ? std::string() : wanted->value;
  };
  EXPECT_EQ(checkpointing(""), "full");
  const std::string fsdp = R"(, "fsdp": "full_shard auto_wrap", "fsdp_config": {"fsdp_version": "2"})";
  EXPECT_EQ(checkpointing(fsdp), "full+reentrant");
  EXPECT_EQ(checkpointing(fsdp + R"(, "gradient_checkpointing_kwargs": {"use_reentrant": false})"),
            "full+non-reentrant");
  EXPECT_EQ(checkpointing(fsdp + R"(, "gradient_checkpointing_kwargs": "{\"use_reentrant\": false}")"),
            "full+non-reentrant");
}

TEST(MsSwift, ACountOfTokensIsOfTheModelsOwnPatches) {
  const auto job = [](const std::string& model) {
    return parsed(R"({"model": ")" + model + R"(", "per_device_train_batch_size": "1", "tuner_type": "lora",
      "env:IMAGE_MAX_TOKEN_NUM": "1024"})");
  };
  expect_wanted(job("Qwen/Qwen2.5-VL-7B-Instruct"), {{"image", "896x896"}});
  expect_wanted(job("Qwen/Qwen3-VL-8B-Instruct"), {{"image", "1024x1024"}});
  expect_wanted(job("m"), {{"image", "1024x1024"}});
}

TEST(MsSwift, DataSetsOfPairsHaveNoNegatives) {
  const auto missing = [](const std::string& data) {
    return parsed(R"({"model": "m", "per_device_train_batch_size": "2", "tuner_type": "lora", "task_type": "embedding",
      "loss_type": "infonce", "max_length": "64", "dataset": )" +
                  data + "}")
        .missing.size();
  };
  EXPECT_EQ(missing(R"("sentence-transformers/stsb:positive")"), 0U);
  EXPECT_EQ(missing(R"(["swift/TextCaps:emb#500", "sentence-transformers/stsb"])"), 0U);
  EXPECT_EQ(missing(R"(["swift/TextCaps:emb", "mine.jsonl"])"), 1U);
  EXPECT_EQ(missing(R"("")"), 1U);
}

TEST(MsSwift, ModelKwargsCountMoreThanTheEnvironment) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": "lora",
    "env:MAX_PIXELS": "10000", "model_kwargs": )";
  const TrainerJob text = parsed(base + R"("{\"max_pixels\": 40000}"})");
  expect_wanted(text, {{"image", "200x200"}});
  EXPECT_EQ(text.unknown, std::vector<std::string>{});
  EXPECT_EQ(text.not_modelled, std::vector<std::string>{});
  expect_wanted(parsed(base + R"({"MAX_PIXELS": 90000}})"), {{"image", "300x300"}});
  expect_wanted(parsed(base + R"("'{\"max_pixels\": 40000}'"})"), {{"image", "200x200"}});
  expect_wanted(parsed(base + "{}}"), {{"image", "100x100"}});
  EXPECT_EQ(parsed(base + R"("{"})").not_modelled, std::vector<std::string>{"model_kwargs {"});
}

TEST(MsSwift, AnEvaluationMayGenerateUnlessItsBatchesAreLarge) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": "lora",
    "predict_with_generate": "true", "per_device_eval_batch_size": )";
  EXPECT_EQ(parsed(base + R"("2"})").not_modelled, std::vector<std::string>{});
  EXPECT_EQ(parsed(base + R"("16"})").not_modelled, std::vector<std::string>{"predict_with_generate true"});
}

TEST(MsSwift, HeldBitsOptimizersAndSequences) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": "lora", )";
  const TrainerJob four = parsed(base + R"("quant_method": "bnb", "quant_bits": "4"})");
  expect_wanted(four, {{"quantize", "nf4-double"}});
  EXPECT_EQ(four.not_modelled, std::vector<std::string>{});
  EXPECT_EQ(parsed(base + R"("quant_method": "hqq", "quant_bits": "4"})").not_modelled,
            std::vector<std::string>{"quant_method hqq"});
  expect_wanted(parsed(base + R"("sequence_parallel_size": "4", "optimizer": "muon"})"),
                {{"context_parallel", "4"}, {"optimizer", "muon"}});
}

/// device_map: blocks lie on the GPUs one after the other.
TEST(MsSwift, OneProcessOnSeveralGpus) {
  const std::string base = R"({"model": "m", "per_device_train_batch_size": "1", "tuner_type": )";
  job::JobRequest adapters;
  const TrainerJob job = parsed(base + R"("lora"})");
  ASSERT_TRUE(apply(job, adapters));
  EXPECT_TRUE(testing::succeeds(spread(job, 2, adapters)));
  EXPECT_EQ(adapters.training.layout.pipeline_parallel, 2);
  EXPECT_EQ(adapters.training.layout.data_parallel, 1);
  job::JobRequest full;
  const TrainerJob whole = parsed(base + R"("full"})");
  ASSERT_TRUE(apply(whole, full));
  EXPECT_FALSE(spread(whole, 2, full));
}

}  // namespace
}  // namespace gpumem::trainer_files
