// Settings of LLaMA-Factory and axolotl, which train with TRL's trainers or ones made of them.
#include <algorithm>

#include "expect.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;
using Settings = std::vector<LaunchSetting>;

Launch trained(Settings settings, const Settings& more, Program expected) {
  settings.insert(settings.end(), more.begin(), more.end());
  EXPECT_EQ(program_of(settings), expected);
  const auto launch = read_launch(expected, settings);
  EXPECT_TRUE(succeeds(launch));
  return launch ? *launch : Launch();
}
const model::TrainingJob& trained_job(const Launch& launch) { return launch.request.training.training; }
bool says_trained(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

Settings llama_factory_settings() {
  return {{"model_name_or_path", "m"},
          {"stage", "dpo"},
          {"do_train", "true"},
          {"finetuning_type", "lora"},
          {"lora_rank", "8"},
          {"lora_target", "all"},
          {"pref_beta", "0.1"},
          {"cutoff_len", "512"},
          {"template", "qwen3_nothink"},
          {"preprocessing_num_workers", "16"},
          {"per_device_train_batch_size", "2"},
          {"gradient_accumulation_steps", "8"},
          {"bf16", "true"}};
}
Launch llama_factory(const Settings& more = {}) {
  return trained(llama_factory_settings(), more, Program::llama_factory);
}

Launch of_trl(const Settings& more) {
  return trained({{"trainer", "dpo"}, {"model_name_or_path", "m"}, {"per_device_train_batch_size", "2"}}, more,
                 Program::trl);
}

TEST(LaunchTrainers, TrlsCpoHasACrossEntropyUnlessItsWeightIsZero) {
  const Launch usual = of_trl({{"trainer", "cpo"}, {"loss_type", "simpo"}});
  EXPECT_EQ(usual.request.options.algorithm, Algorithm::simpo);
  EXPECT_TRUE(usual.request.options.label_loss);
  EXPECT_FALSE(of_trl({{"trainer", "cpo"}, {"cpo_alpha", "0.0"}}).request.options.label_loss);
  EXPECT_FALSE(of_trl({}).request.options.label_loss);
}

TEST(LaunchTrainers, AutocastHandsOutFloat32WhateverWasLoaded) {
  const Launch narrow = of_trl({{"dtype", "bfloat16"}});
  EXPECT_EQ(trained_job(narrow).precision, model::Precision::bf16);
  EXPECT_TRUE(trained_job(narrow).float_outputs);
  EXPECT_FALSE(trained_job(of_trl({{"dtype", "bfloat16"}, {"bf16", "false"}})).float_outputs) << "no autocast";
  EXPECT_FALSE(trained_job(of_trl({{"dtype", "bfloat16"}, {"use_peft", "true"}})).float_outputs) << "of amp-bf16";
  const Launch whole = of_trl({{"bf16", "false"}});
  EXPECT_EQ(trained_job(whole).precision, model::Precision::fp32);
  EXPECT_FALSE(says_trained(whole.not_modelled, "bf16"));
}

TEST(LaunchTrainers, AdaptersWithoutAutocastLearnInFloat32OverWhatWasLoaded) {
  const Settings adapts = {{"use_peft", "true"}, {"lora_r", "8"}, {"bf16", "false"}};
  const auto of = [&](const std::string& type) {
    Settings settings = adapts;
    settings.push_back({"dtype", type});
    return of_trl(settings);
  };
  const Launch narrow = of("bfloat16");
  EXPECT_EQ(trained_job(narrow).precision, model::Precision::bf16);
  EXPECT_EQ(trained_job(narrow).base_dtype, model::BaseType::precision);
  EXPECT_FALSE(trained_job(narrow).float_outputs);
  EXPECT_TRUE(narrow.not_modelled.empty());
  EXPECT_EQ(trained_job(of("float32")).precision, model::Precision::fp32);
  const Launch quantised = of_trl({{"use_peft", "true"}, {"load_in_4bit", "true"}, {"bf16", "false"}});
  EXPECT_TRUE(says_trained(quantised.not_modelled, "bf16 false"));
}

TEST(LaunchTrainers, EachProgramRunsOnItsReleaseOfTransformers) {
  EXPECT_EQ(trained_job(of_trl({})).transformers, model::Transformers::v5_5);
  EXPECT_EQ(trained_job(llama_factory()).transformers, row_of(Program::llama_factory).transformers);
}

TEST(LaunchTrainers, LigersLayersComeWithoutItsLoss) {
  const Launch kernels = llama_factory({{"enable_liger_kernel", "true"}, {"disable_gradient_checkpointing", "true"}});
  EXPECT_TRUE(kernels.not_modelled.empty()) << kernels.not_modelled.front();
  EXPECT_EQ(trained_job(kernels).kernels, model::Kernels::liger);
  EXPECT_EQ(trained_job(kernels).loss_form, trained_job(llama_factory()).loss_form);
  EXPECT_EQ(trained_job(llama_factory()).kernels, model::Kernels::usual);
  const Settings axolotl = {{"base_model", "m"}, {"rl", "dpo"}, {"sequence_len", "256"}, {"liger_rms_norm", "true"}};
  const Launch both = trained(axolotl, {{"liger_glu_activation", "true"}}, Program::axolotl);
  EXPECT_TRUE(both.not_modelled.empty()) << both.not_modelled.front();
  EXPECT_EQ(trained_job(both).kernels, model::Kernels::liger);
  const Launch one = trained(axolotl, {}, Program::axolotl);
  EXPECT_TRUE(says_trained(one.not_modelled, "liger_rms_norm true"));
  EXPECT_TRUE(trained(axolotl, {{"gradient_checkpointing", "true"}}, Program::axolotl).not_modelled.empty());
}

TEST(LaunchTrainers, LlamaFactoryLearnsAdaptersOverABaseInBfloat16) {
  const Launch launch = llama_factory();
  EXPECT_TRUE(launch.unknown.empty()) << launch.unknown.front();
  EXPECT_TRUE(launch.not_modelled.empty()) << launch.not_modelled.front();
  EXPECT_EQ(launch.model, "m");
  EXPECT_EQ(launch.request.options.program, Program::llama_factory);
  EXPECT_EQ(launch.request.options.algorithm, Algorithm::dpo);
  EXPECT_TRUE(launch.request.freezes_tower);
  const model::TrainingJob& job = trained_job(launch);
  EXPECT_EQ(job.lora, 8);
  EXPECT_TRUE(job.lora_targets.starts_with("all-linear+not:")) << job.lora_targets;
  EXPECT_EQ(job.precision, model::Precision::amp_bf16);
  EXPECT_EQ(job.base_dtype, model::BaseType::bf16);
  EXPECT_EQ(job.lora_dropout, 0.0);
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_EQ(job.batch_size, 2);
  EXPECT_EQ(job.gradient_accumulation, 8);
  EXPECT_EQ(job.sequence_length, 512);
}

TEST(LaunchTrainers, LlamaFactoryTrainsAWholeModelInFloat32UnlessItSaysPureBfloat16) {
  const Launch whole = llama_factory({{"finetuning_type", "full"}});
  EXPECT_EQ(trained_job(whole).precision, model::Precision::amp_bf16);
  EXPECT_EQ(trained_job(whole).base_dtype, model::BaseType::precision);
  EXPECT_FALSE(trained_job(whole).lora);
  const Launch pure = llama_factory({{"finetuning_type", "full"}, {"pure_bf16", "true"}});
  EXPECT_EQ(trained_job(pure).precision, model::Precision::bf16);
  const Launch sharded = llama_factory({{"finetuning_type", "full"},
                                        {"deepspeed", "examples/deepspeed/ds_z3_config.json"},
                                        {"env:NPROC_PER_NODE", "4"}});
  EXPECT_EQ(sharded.gpus, 4);
  EXPECT_EQ(trained_job(sharded).layout.sharding.kind, model::Shardings::zero_3);
  EXPECT_EQ(trained_job(sharded).precision, model::Precision::bf16_mixed);
}

TEST(LaunchTrainers, LlamaFactorysStagesAreAlgorithms) {
  const auto algorithm = [](std::string_view stage, std::string_view loss) {
    return llama_factory({{"stage", std::string(stage)}, {"pref_loss", std::string(loss)}}).request.options.algorithm;
  };
  EXPECT_EQ(algorithm("dpo", "sigmoid"), Algorithm::dpo);
  EXPECT_EQ(algorithm("dpo", "orpo"), Algorithm::orpo);
  EXPECT_EQ(algorithm("dpo", "simpo"), Algorithm::simpo);
  EXPECT_EQ(algorithm("kto", "sigmoid"), Algorithm::kto);
  EXPECT_EQ(algorithm("rm", "sigmoid"), Algorithm::reward);
  const auto refused = [](std::string_view key, std::string_view value, std::string_view part) {
    Settings settings = llama_factory_settings();
    settings.push_back({std::string(key), std::string(value)});
    return fails(read_launch(Program::llama_factory, settings), core::ErrorCode::invalid_argument, 0, part);
  };
  EXPECT_TRUE(refused("stage", "ppo", "algorithm=ppo"));
  EXPECT_TRUE(refused("stage", "sft", "gpumem estimate"));
  EXPECT_TRUE(refused("finetuning_type", "freeze", "say lora or full"));
  EXPECT_TRUE(refused("cutoff_len", "long", "cutoff_len"));
}

TEST(LaunchTrainers, LlamaFactorysQuantisedBasesAndUnknownKeys) {
  const Launch launch =
      llama_factory({{"quantization_bit", "4"}, {"flash_attn", "fa2"}, {"use_muon", "true"}, {"new_thing", "1"}});
  EXPECT_EQ(trained_job(launch).quantize, model::Quantization::nf4_double);
  EXPECT_EQ(trained_job(launch).attention, model::AttentionBackend::flash);
  EXPECT_TRUE(says_trained(launch.not_modelled, "use_muon true"));
  EXPECT_EQ(launch.unknown, std::vector<std::string>{"new_thing"});
}

Launch axolotl(const Settings& more = {}) {
  const Settings all = {{"base_model", "m"},
                        {"rl", "dpo"},
                        {"sequence_len", "512"},
                        {"micro_batch_size", "2"},
                        {"gradient_accumulation_steps", "4"},
                        {"adapter", "qlora"},
                        {"load_in_4bit", "true"},
                        {"lora_r", "32"},
                        {"lora_target_linear", "true"},
                        {"lora_dropout", "0.05"},
                        {"optimizer", "adamw_bnb_8bit"},
                        {"bf16", "auto"},
                        {"attn_implementation", "flash_attention_2"},
                        {"gradient_checkpointing", "true"},
                        {"datasets", ""},
                        {"wandb_project", "p"}};
  return trained(all, more, Program::axolotl);
}

TEST(LaunchTrainers, AxolotlsFilesAreTrlsSettings) {
  const Launch launch = axolotl();
  EXPECT_TRUE(launch.unknown.empty()) << launch.unknown.front();
  EXPECT_TRUE(launch.not_modelled.empty()) << launch.not_modelled.front();
  EXPECT_EQ(launch.model, "m");
  EXPECT_EQ(launch.request.options.program, Program::axolotl);
  EXPECT_EQ(launch.request.options.algorithm, Algorithm::dpo);
  const model::TrainingJob& job = trained_job(launch);
  EXPECT_EQ(job.batch_size, 2);
  EXPECT_EQ(job.gradient_accumulation, 4);
  EXPECT_EQ(job.lora, 32);
  EXPECT_EQ(job.lora_targets, "all-linear+by-name");
  EXPECT_EQ(job.quantize, model::Quantization::nf4_double);
  EXPECT_EQ(job.optimizer, model::Optimizer::adamw_8bit);
  EXPECT_EQ(job.attention, model::AttentionBackend::flash);
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_FALSE(trained_job(axolotl({{"gradient_checkpointing", "false"}})).activation_checkpointing);
  const Launch whole = axolotl({{"adapter", ""}, {"load_in_4bit", "false"}});
  EXPECT_EQ(trained_job(whole).precision, model::Precision::bf16);
}

TEST(LaunchTrainers, AxolotlsKindsAreAlgorithms) {
  const auto algorithm = [](std::string_view kind) {
    return axolotl({{"rl", std::string(kind)}}).request.options.algorithm;
  };
  EXPECT_EQ(algorithm("ipo"), Algorithm::dpo);
  EXPECT_EQ(algorithm("kto"), Algorithm::kto);
  EXPECT_EQ(algorithm("orpo"), Algorithm::orpo);
  EXPECT_EQ(algorithm("simpo"), Algorithm::simpo);
  EXPECT_EQ(algorithm("gdpo"), Algorithm::grpo);
  EXPECT_EQ(axolotl({{"rl", ""}, {"reward_model", "true"}}).request.options.algorithm, Algorithm::reward);
  EXPECT_EQ(axolotl({{"rl", ""}, {"process_reward_model", "true"}}).request.options.algorithm, Algorithm::prm);
  const Settings energy = {{"base_model", "m"}, {"sequence_len", "8"}, {"rl", "ebft"}};
  EXPECT_TRUE(fails(read_launch(Program::axolotl, energy), core::ErrorCode::invalid_argument, 0, "'ebft'"));
}

TEST(LaunchTrainers, AxolotlsTrlBlockIsOfItsCompletions) {
  const Launch launch = axolotl({{"rl", "grpo"},
                                 {"trl.max_completion_length", "128"},
                                 {"trl.num_generations", "2"},
                                 {"trl.use_vllm", "true"},
                                 {"trl.vllm_mode", "server"},
                                 {"trl.beta", "0.001"},
                                 {"trl.reward_funcs", "f"},
                                 {"vllm.host", "0.0.0.0"},
                                 {"plugins", "axolotl.integrations.other.Plugin"}});
  EXPECT_TRUE(launch.unknown.empty()) << launch.unknown.front();
  const PostTrainingOptions& options = launch.request.options;
  EXPECT_EQ(options.completion_length, 128);
  EXPECT_EQ(options.num_generations, 2);
  EXPECT_EQ(options.rollout, Rollout::elsewhere);
  EXPECT_EQ(options.reference, Reference::base);
  EXPECT_TRUE(says_trained(launch.not_modelled, "plugins axolotl.integrations.other.Plugin"));
}

TEST(LaunchTrainers, AxolotlsFsdpIsTheSecondUnlessItSaysOtherwise) {
  const auto kind = [](const Settings& more) {
    Settings all = {{"env:NPROC_PER_NODE", "2"}, {"adapter", ""}, {"load_in_4bit", "false"}};
    all.insert(all.end(), more.begin(), more.end());
    return trained_job(axolotl(all)).layout.sharding.kind;
  };
  EXPECT_EQ(kind({{"fsdp_config.state_dict_type", "FULL_STATE_DICT"}}), model::Shardings::fsdp2);
  EXPECT_EQ(kind({{"fsdp_version", "1"}, {"fsdp_config.offload_params", "false"}}), model::Shardings::fsdp1);
  EXPECT_EQ(kind({}), model::Shardings::ddp);
}

TEST(LaunchTrainers, TrlsOwnFilesForAccelerateAreOfEightProcesses) {
  const auto gpus = [](std::string_view key, std::string_view file) {
    const Settings settings = {{"trainer", "dpo"}, {"model_name_or_path", "m"}, {std::string(key), std::string(file)}};
    const auto launch = read_launch(Program::trl, settings);
    EXPECT_TRUE(succeeds(launch));
    return launch ? launch->gpus : 0;
  };
  EXPECT_EQ(gpus("config_file", "examples/accelerate_configs/deepspeed_zero3.yaml"), 8);
  EXPECT_EQ(gpus("accelerate_config", "zero2"), 8);
  EXPECT_EQ(gpus("accelerate_config", "single_gpu"), 1);
}

TEST(LaunchTrainers, ATokenOfAnImageStandsForMorePixelsSinceQwen3Vl) {
  const auto image = [](const char* model) {
    const Settings settings = {
        {"model", model}, {"rlhf_type", "dpo"}, {"max_length", "8192"}, {"env:MAX_PIXELS", "1000000"}};
    const auto launch = read_launch(Program::ms_swift, settings);
    EXPECT_TRUE(succeeds(launch));
    return launch ? trained_job(*launch).image : std::vector<std::int64_t>();
  };
  EXPECT_EQ(image("Qwen/Qwen2.5-VL-7B-Instruct"), (std::vector<std::int64_t>{980, 980})) << "35 tokens of 28 pixels";
  EXPECT_EQ(image("Qwen/Qwen3-VL-8B-Instruct"), (std::vector<std::int64_t>{992, 992})) << "31 tokens of 32 pixels";
}

TEST(LaunchTrainers, AModelThatSpeaksIsLoadedAsTheProgramLoadsIt) {
  EXPECT_EQ(trained(llama_factory_settings(), {}, Program::llama_factory).request.holds_speech, false);
  const Settings swift = {{"rlhf_type", "dpo"}, {"model", "m"}, {"max_length", "512"}};
  const Launch usual = trained(swift, {}, Program::ms_swift);
  EXPECT_EQ(usual.request.holds_speech, true);
  EXPECT_EQ(usual.request.speech_key, "");
  EXPECT_EQ(trained(swift, {{"env:ENABLE_AUDIO_OUTPUT", "$SPEECH"}}, Program::ms_swift).request.speech_key, "");
  const Launch silent = trained(swift, {{"env:ENABLE_AUDIO_OUTPUT", "0"}}, Program::ms_swift);
  EXPECT_EQ(silent.request.holds_speech, false);
  EXPECT_EQ(silent.unknown, std::vector<std::string>{});
  for (const Settings& said : {Settings{{"model_kwargs", R"({"enable_audio_output": false})"}},
                               Settings{{"model_kwargs.enable_audio_output", "false"}}}) {
    Settings both = {{"env:ENABLE_AUDIO_OUTPUT", "1"}};
    both.insert(both.end(), said.begin(), said.end());
    const Launch inner = trained(swift, both, Program::ms_swift);
    EXPECT_EQ(inner.request.holds_speech, false) << "over what the environment has";
    EXPECT_EQ(inner.request.speech_key, "ENABLE_AUDIO_OUTPUT");
    EXPECT_TRUE(inner.unknown.empty() && inner.not_modelled.empty());
  }
  const Launch broken = trained(swift, {{"model_kwargs", "{1"}}, Program::ms_swift);
  EXPECT_EQ(broken.not_modelled, std::vector<std::string>{"model_kwargs {1"});
  const Launch megatron =
      trained(swift, {{"micro_batch_size", "1"}, {"env:ENABLE_AUDIO_OUTPUT", "1"}}, Program::megatron);
  EXPECT_EQ(megatron.request.holds_speech, false) << "Megatron's form is the thinker";
  const auto named = [](const std::string& name, std::string_view, bool held) {
    return name == "speaks" ? name + (held ? ":Whole" : ":Thinker") : name;
  };
  PostTrainingRequest request = silent.request;
  request.training.summary = "speaks";
  request.options.reward_model = "reads";
  take_speech(request, named);
  EXPECT_EQ(request.training.summary, "speaks:Thinker");
  EXPECT_EQ(request.options.reward_model, "reads");
  EXPECT_TRUE(request.assumed.empty());
  request.training.summary = "reads";
  take_speech(request, named);
  ASSERT_EQ(request.assumed.size(), 1U);
  EXPECT_NE(request.assumed[0].text.find("ENABLE_AUDIO_OUTPUT changes nothing"), std::string::npos);
}

TEST(LaunchTrainers, ATokenStandsForTheModelsOwnPatches) {
  for (const bool counted : {false, true}) {
    EXPECT_EQ(side_of_token("Qwen/Qwen2.5-VL-7B-Instruct", counted), 28);
    EXPECT_EQ(side_of_token("Qwen/Qwen2.5-Omni-7B", counted), 28);
    EXPECT_EQ(side_of_token("Qwen/Qwen3-VL-8B", counted), 32);
    EXPECT_EQ(side_of_token("m", counted), counted ? 32 : 28);
  }
  EXPECT_EQ(side_of_qwen("m"), std::nullopt);
}

TEST(LaunchTrainers, CheckpointsAreReentrantAsEachProgramHasThem) {
  using model::Reentrance;
  const auto of = [](Settings settings, const Settings& more, Program program) {
    settings.insert(settings.end(), {{"env:NPROC_PER_NODE", "2"}, {"fsdp", "full_shard"}});
    settings.insert(settings.end(), more.begin(), more.end());
    const auto launch = read_launch(program, settings);
    EXPECT_TRUE(succeeds(launch));
    EXPECT_TRUE(trained_job(*launch).activation_checkpointing);
    EXPECT_EQ(trained_job(*launch).layout.sharding.kind, model::Shardings::fsdp1);
    return trained_job(*launch).checkpoints.reentrance;
  };
  const Settings trl = {{"trainer", "dpo"}, {"model_name_or_path", "m"}, {"max_length", "64"}};
  EXPECT_EQ(of(trl, {}, Program::trl), Reentrance::off);
  EXPECT_EQ(of(trl, {{"gradient_checkpointing_kwargs.use_reentrant", "true"}}, Program::trl), Reentrance::on);
  EXPECT_EQ(of(trl, {{"gradient_checkpointing_kwargs", R"({"use_reentrant": true})"}}, Program::trl), Reentrance::on);
  const Settings swift = {{"rlhf_type", "dpo"}, {"model", "m"}, {"max_length", "64"}};
  EXPECT_EQ(of(swift, {}, Program::ms_swift), Reentrance::on);
  EXPECT_EQ(of(swift, {{"gradient_checkpointing_kwargs", R"({"use_reentrant": false})"}}, Program::ms_swift),
            Reentrance::off);
  const Settings factory = llama_factory_settings();
  EXPECT_EQ(of(factory, {}, Program::llama_factory), Reentrance::on);
  EXPECT_EQ(of(factory, {{"use_reentrant_gc", "false"}}, Program::llama_factory), Reentrance::off);
  const Launch second = llama_factory({{"env:NPROC_PER_NODE", "2"}, {"fsdp", "fsdp2"}});
  EXPECT_EQ(trained_job(second).checkpoints.reentrance, Reentrance::off) << "LLaMA-Factory sets it so";
  const Settings axolotl = {{"base_model", "m"}, {"sequence_len", "256"}, {"gradient_checkpointing", "true"}};
  EXPECT_EQ(of(axolotl, {{"rl", "dpo"}}, Program::axolotl), Reentrance::off);
  EXPECT_EQ(of(axolotl, {{"reward_model", "true"}}, Program::axolotl), Reentrance::on);
}

TEST(LaunchTrainers, AnObjectThatCannotBeReadIsNamed) {
  const Launch launch = llama_factory({{"gradient_checkpointing_kwargs", "{1"}});
  EXPECT_EQ(launch.not_modelled, std::vector<std::string>{"gradient_checkpointing_kwargs {1"});
  EXPECT_TRUE(llama_factory({{"use_reentrant_gc", "false"}}).unknown.empty());
}

}  // namespace
}  // namespace gpumem::posttrain
