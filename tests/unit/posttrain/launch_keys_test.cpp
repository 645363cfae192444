#include "gpumem/posttrain/launch.hpp"

#include <algorithm>

#include "expect.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;

Launch read(Program program, std::vector<LaunchSetting> settings, std::int64_t gpus = 0) {
  auto launch = read_launch(program, settings, gpus);
  EXPECT_TRUE(succeeds(launch));
  return launch ? *std::move(launch) : Launch();
}

const model::TrainingJob& training_of(const Launch& launch) { return launch.request.training.training; }

TEST(LaunchKeys, OpenRlhfsNewNamesMeanWhatTheOldOnesDid) {
  const std::vector<LaunchSetting> old_names = {
      {"pretrain", "m"},
      {"reward_pretrain", "r"},
      {"advantage_estimator", "group_norm"},
      {"micro_train_batch_size", "2"},
      {"micro_rollout_batch_size", "4"},
      {"generate_max_len", "256"},
      {"prompt_max_len", "128"},
      {"zero_stage", "3"},
      {"lora_rank", "16"},
      {"packing_samples", "true"},
      {"colocate_all_models", "true"},
      {"vllm_gpu_memory_utilization", "0.5"},
      {"vllm_enable_sleep", "true"},
      {"deepspeed_enable_sleep", "true"},
      {"actor_num_gpus_per_node", "4"},
      {"init_kl_coef", "0"},
  };
  const std::vector<LaunchSetting> new_names = {
      {"actor.model_name_or_path", "m"},
      {"reward.model_name_or_path", "r"},
      {"algo.advantage.estimator", "group_norm"},
      {"train.micro_batch_size", "2"},
      {"rollout.micro_batch_size", "4"},
      {"rollout.max_new_tokens", "256"},
      {"prompt_max_len", "128"},
      {"ds.zero_stage", "3"},
      {"ds.lora.rank", "16"},
      {"ds.packing_samples", "true"},
      {"train.colocate_all", "true"},
      {"vllm.gpu_memory_utilization", "0.5"},
      {"vllm.enable_sleep", "true"},
      {"ds.enable_sleep", "true"},
      {"actor.num_gpus_per_node", "4"},
      {"algo.kl.init_coef", "0"},
  };
  EXPECT_EQ(program_of(new_names), Program::openrlhf);
  const Launch was = read(Program::openrlhf, old_names);
  const Launch is = read(Program::openrlhf, new_names);
  EXPECT_EQ(is.model, "m");
  EXPECT_EQ(is.request.options, was.request.options);
  EXPECT_EQ(training_of(is).lora, training_of(was).lora);
  EXPECT_EQ(training_of(is).layout.sharding.kind, training_of(was).layout.sharding.kind);
  EXPECT_TRUE(is.unknown.empty());
  // Where nobody says it, a pass has one sample now, and the limit is that of prompt and completion.
  const Launch open =
      read(Program::openrlhf,
           {{"actor.model_name_or_path", "m"}, {"data.max_len", "4096"}, {"rollout.max_new_tokens", "1024"}});
  EXPECT_EQ(training_of(open).batch_size, 1);
  EXPECT_EQ(open.request.options.length_limit, 4096);
}

TEST(LaunchKeys, TrainersOfTrlAreKnownOrRefusedByName) {
  const auto algorithm = [](std::string_view trainer) {
    return read(Program::trl, {{"trainer", std::string(trainer)}}).request.options.algorithm;
  };
  EXPECT_EQ(algorithm("BCOTrainer"), Algorithm::bco);
  EXPECT_EQ(algorithm("CPOTrainer"), Algorithm::simpo) << "with the labels' loss";
  EXPECT_EQ(algorithm("GKDTrainer"), Algorithm::gkd);
  EXPECT_EQ(algorithm("OnlineDPOTrainer"), Algorithm::online_dpo);
  EXPECT_EQ(algorithm("XPOTrainer"), Algorithm::online_dpo);
  EXPECT_EQ(algorithm("NashMDTrainer"), Algorithm::grpo);
  EXPECT_EQ(algorithm("PRMTrainer"), Algorithm::prm);
  const std::vector<LaunchSetting> supervised = {{"trainer", "SFTTrainer"}};
  EXPECT_TRUE(fails(read_launch(Program::trl, supervised), core::ErrorCode::invalid_argument, 0, "gpumem estimate"));
  const Launch other = read(Program::trl, {{"trainer", "MiniLLMTrainer"}});
  ASSERT_FALSE(other.missing.empty());
  EXPECT_NE(other.missing.front().what.find("MiniLLMTrainer"), std::string::npos);
  const std::vector<std::string> words = {"trl", "rloo", "--model_name_or_path", "m"};
  const auto script = launch_settings(words);
  ASSERT_TRUE(succeeds(script));
  EXPECT_EQ(script->front().value, "rloo");
}

TEST(LaunchKeys, RlooComparesWithAReferenceWhereGrpoDoesNot) {
  const auto reference = [](std::string_view trainer) {
    return read(Program::trl, {{"trainer", std::string(trainer)}}).request.options.reference;
  };
  EXPECT_EQ(reference("GRPOTrainer"), Reference::none);
  EXPECT_EQ(reference("RLOOTrainer"), Reference::own);
  EXPECT_EQ(reference("NashMDTrainer"), Reference::own);
}

TEST(LaunchKeys, AdaptersDropWhatTheScriptsSayUnlessTheTrainerSwitchesItOff) {
  const auto dropout = [](Program program, std::vector<LaunchSetting> settings) {
    settings.push_back({program == Program::trl ? "use_peft" : "rlhf_type", program == Program::trl ? "true" : "dpo"});
    if (program == Program::megatron) settings.push_back({"tuner_type", "lora"});
    return training_of(read(program, std::move(settings))).lora_dropout;
  };
  EXPECT_EQ(dropout(Program::trl, {{"trainer", "grpo"}}), 0.05);
  EXPECT_EQ(dropout(Program::trl, {{"trainer", "dpo"}, {"lora_dropout", "0.1"}}), 0.0);
  EXPECT_EQ(dropout(Program::trl, {{"trainer", "dpo"}, {"lora_dropout", "0.1"}, {"disable_dropout", "false"}}), 0.1);
  EXPECT_EQ(dropout(Program::trl, {{"trainer", "grpo"}, {"peft_config.r", "8"}}), 0.0);
  EXPECT_EQ(dropout(Program::megatron, {}), 0.05);
  EXPECT_EQ(dropout(Program::ms_swift, {}), 0.0);
}

TEST(LaunchKeys, ChoicesOfMemoryThatHaveAnOptionAreTaken) {
  const Launch adapted = read(Program::ms_swift, {{"rlhf_type", "dpo"}, {"quant_bits", "4"}, {"use_dora", "true"}});
  EXPECT_EQ(training_of(adapted).quantize, model::Quantization::nf4_double);
  EXPECT_EQ(training_of(adapted).peft, model::PeftMethod::dora);
  const Launch saves =
      read(Program::trl,
           {{"trainer", "dpo"}, {"peft_config.r", "8"}, {"lora_modules_to_save", "['lm_head', 'model.embed_tokens']"}});
  EXPECT_EQ(training_of(saves).train, "*lm_head,*model.embed_tokens");
  const Launch swift = read(Program::ms_swift, {{"rlhf_type", "dpo"}, {"modules_to_save", "word_embeddings all"}});
  EXPECT_EQ(training_of(swift).train, "*embed_tokens");
  EXPECT_EQ(swift.not_modelled, std::vector<std::string>{"modules_to_save word_embeddings all"});
  const auto of_unsloth = [](const std::string& model) {
    return training_of(read(Program::unsloth,
                            {{"trainer", "dpo"}, {"model", model}, {"load_in_4bit", "true"}, {"use_peft", "true"}}))
        .quantize;
  };
  EXPECT_EQ(of_unsloth("unsloth/Llama-3.2-1B"), model::Quantization::nf4_dynamic);
  EXPECT_EQ(of_unsloth("unsloth/Llama-3.2-1B-bnb-4bit"), model::Quantization::nf4_double);
  const Launch sharded = read(Program::trl,
                              {{"trainer", "dpo"},
                               {"fsdp", "full_shard auto_wrap"},
                               {"fsdp_config.fsdp_version", "2"},
                               {"activation_offloading", "true"},
                               {"optim", "adafactor"}},
                              4);
  EXPECT_EQ(training_of(sharded).layout.sharding.kind, model::Shardings::fsdp2);
  EXPECT_EQ(training_of(sharded).offload, model::Offload::activations);
  EXPECT_EQ(training_of(sharded).optimizer, model::Optimizer::adafactor);
  const Launch grouped = read(Program::trl, {{"trainer", "grpo"}, {"generation_batch_size", "64"}}, 4);
  EXPECT_EQ(grouped.request.options.rollout_batch, 16);
  const std::string actor = "actor_rollout_ref.actor.";
  const Launch half =
      read(Program::verl, {{actor + "ppo_micro_batch_size", "32"}, {actor + "fsdp_config.model_dtype", "bf16"}}, 8);
  EXPECT_EQ(training_of(half).batch_size, 4);
  EXPECT_EQ(training_of(half).precision, model::Precision::bf16);
  const Launch row =
      read(Program::ms_swift,
           {{"rlhf_type", "dpo"}, {"packing", "true"}, {"max_length", "4096"}, {"packing_length", "8192"}});
  EXPECT_EQ(training_of(row).sequence_length, 8192);
}

TEST(LaunchKeys, WhatNoJobHasIsRefusedOrNamed) {
  for (const std::string tuner : {"adalora", "longlora"}) {
    const std::vector<LaunchSetting> settings = {{"rlhf_type", "dpo"}, {"tuner_type", tuner}};
    EXPECT_TRUE(fails(read_launch(Program::ms_swift, settings), core::ErrorCode::invalid_argument, 0, tuner));
  }
  const auto named = [](Program program, const std::string& key, const std::string& value) {
    const Launch launch = read(program, {{key, value}});
    const std::string text = key + " " + value;
    return std::count(launch.not_modelled.begin(), launch.not_modelled.end(), text) == 1;
  };
  EXPECT_TRUE(named(Program::trl, "cast_lm_head_to_fp32", "true"));
  EXPECT_TRUE(named(Program::trl, "optim", "schedule_free_radam"));
  EXPECT_TRUE(named(Program::ms_swift, "offload_teacher_model", "true"));
  EXPECT_TRUE(named(Program::megatron, "fp8_format", "hybrid"));
  EXPECT_TRUE(named(Program::verl, "critic.model.fsdp_config.param_offload", "true"));
  EXPECT_TRUE(named(Program::verl, "actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size", "2"));
  EXPECT_TRUE(named(Program::openrlhf, "ds_tensor_parallel_size", "2"));
  EXPECT_TRUE(named(Program::openrlhf, "ds.tensor_parallel_size", "2")) << "as it was given";
  EXPECT_TRUE(named(Program::trl, "fsdp_config.activation_checkpointing", "true"));
  EXPECT_TRUE(named(Program::trl, "fsdp_config", "fsdp.json"));
  EXPECT_FALSE(named(Program::trl, "fsdp_config.min_num_params", "0"));
  EXPECT_TRUE(named(Program::ms_swift, "device_map", "auto"));
  EXPECT_TRUE(named(Program::verl, "actor_rollout_ref.actor.fsdp_config.wrap_policy.min_num_params", "100000"));
}

TEST(LaunchKeys, WhatVllmProfilesItselfWith) {
  const auto options = read(Program::verl, {{"algorithm.adv_estimator", "grpo"},
                                            {"actor_rollout_ref.rollout.max_num_seqs", "64"},
                                            {"actor_rollout_ref.rollout.max_num_batched_tokens", "4096"},
                                            {"actor_rollout_ref.actor.optim.lr_warmup_steps", "5"}});
  EXPECT_EQ(options.request.options.max_num_seqs, 64);
  EXPECT_EQ(options.request.options.max_num_batched_tokens, 4096);
  EXPECT_TRUE(options.unknown.empty() && options.not_modelled.empty());
  const auto swift = read(Program::ms_swift, {{"rlhf_type", "grpo"}, {"use_vllm", "true"}, {"vllm_max_num_seqs", "8"}});
  EXPECT_EQ(swift.request.options.max_num_seqs, 8);
}

TEST(LaunchKeys, AKeyThatIsNearlyTheirsIsNotPassedOver) {
  const auto unknown = [](Program program, const std::string& key) {
    return read(program, {{key, "1"}}).unknown == std::vector<std::string>{key};
  };
  EXPECT_TRUE(unknown(Program::trl, "gradient_accumulation_step"));
  EXPECT_TRUE(unknown(Program::unsloth, "vllm_max_num_seq"));
  EXPECT_TRUE(unknown(Program::ms_swift, "overlong_filters"));
  EXPECT_TRUE(unknown(Program::megatron, "recompute_granularities"));
  EXPECT_TRUE(unknown(Program::verl, "critic.ppo_epoch"));
  EXPECT_TRUE(unknown(Program::openrlhf, "ds.zero_stages"));
}

TEST(LaunchKeys, MessagesHaveTheNameThatWasGiven) {
  const std::vector<LaunchSetting> rank = {{"actor.model_name_or_path", "m"}, {"ds.lora.rank", "many"}};
  EXPECT_TRUE(
      fails(read_launch(Program::openrlhf, rank), core::ErrorCode::invalid_argument, 0, "ds.lora.rank: 'many'"));
  const std::vector<LaunchSetting> batch = {{"actor.model_name_or_path", "m"}, {"train.micro_batch_size", "many"}};
  EXPECT_TRUE(
      fails(read_launch(Program::openrlhf, batch), core::ErrorCode::invalid_argument, 0, "train.micro_batch_size: "));
  const std::vector<LaunchSetting> other = {{"trainer", "dpo"}, {"use_peft", "true"}, {"lora_r", "many"}};
  EXPECT_TRUE(fails(read_launch(Program::trl, other), core::ErrorCode::invalid_argument, 0, "lora_r: 'many'"));
}

TEST(LaunchKeys, FsdpShardsWhatItsWordsSay) {
  const auto of = [](const std::string& words) { return read(Program::trl, {{"trainer", "dpo"}, {"fsdp", words}}, 4); };
  const auto sharding = [&](const std::string& words) { return training_of(of(words)).layout.sharding.kind; };
  EXPECT_EQ(sharding("full_shard auto_wrap"), model::Shardings::fsdp1);
  EXPECT_EQ(sharding("full_shard+auto_wrap"), model::Shardings::fsdp1) << "a list";
  EXPECT_EQ(sharding("True"), model::Shardings::fsdp1);
  EXPECT_EQ(sharding("fsdp2"), model::Shardings::fsdp2);
  EXPECT_EQ(sharding("no_shard"), model::Shardings::ddp);
  EXPECT_TRUE(of("no_shard").not_modelled.empty());
  EXPECT_EQ(training_of(of("full_shard offload")).offload, model::Offload::parameters);
  for (const std::string words : {"shard_grad_op auto_wrap", "hybrid_shard", "hybrid_shard_zero2", "fsdp.json"}) {
    EXPECT_EQ(sharding(words), model::Shardings::ddp) << words;
    EXPECT_EQ(of(words).not_modelled, std::vector<std::string>{"fsdp " + words});
  }
}

TEST(LaunchKeys, OfTwoWaysToOffloadTheOneThatTakesLessIsNamed) {
  const Launch both = read(
      Program::ms_swift, {{"rlhf_type", "dpo"}, {"deepspeed", "zero3_offload"}, {"activation_offloading", "true"}}, 4);
  EXPECT_EQ(training_of(both).offload, model::Offload::optimizer);
  EXPECT_EQ(both.not_modelled, std::vector<std::string>{"activation_offloading true"});
  const std::string actor = "actor_rollout_ref.";
  const Launch verl = read(Program::verl,
                           {{actor + "actor.strategy", "fsdp2"},
                            {actor + "model.enable_activation_offload", "True"},
                            {actor + "actor.fsdp_config.offload_policy", "True"}},
                           4);
  EXPECT_EQ(training_of(verl).offload, model::Offload::parameters);
  EXPECT_EQ(verl.not_modelled, std::vector<std::string>{actor + "model.enable_activation_offload True"});
  const Launch one = read(Program::trl, {{"trainer", "dpo"}, {"activation_offloading", "true"}});
  EXPECT_EQ(training_of(one).offload, model::Offload::activations);
  EXPECT_TRUE(one.not_modelled.empty());
}

TEST(LaunchKeys, AStepThatItsPassesDoNotDivideIsNamed) {
  const auto step = [](const std::string& samples) {
    return read(Program::megatron,
                {{"rlhf_type", "dpo"}, {"micro_batch_size", "1"}, {"global_batch_size", samples}, {"max_length", "64"}},
                4);
  };
  const Launch odd = step("30");
  EXPECT_EQ(training_of(odd).gradient_accumulation, 7);
  ASSERT_FALSE(odd.decided.empty());
  EXPECT_NE(odd.decided.back().find("30 samples are no multiple of the 4"), std::string::npos);
  EXPECT_TRUE(step("32").decided.empty());
}

TEST(LaunchKeys, StatesOfFewerBitsAreNotAdamWsWhole) {
  const auto optimizer = [](const std::string& name) {
    return training_of(read(Program::trl, {{"trainer", "dpo"}, {"optim", name}})).optimizer;
  };
  EXPECT_EQ(optimizer("adamw_torch"), model::Optimizer::adamw);
  EXPECT_EQ(optimizer("adamw_torch_fused"), model::Optimizer::adamw);
  EXPECT_EQ(optimizer("adamw_torch_8bit"), model::Optimizer::adamw_8bit);
  EXPECT_EQ(optimizer("adamw_torch_4bit"), model::Optimizer::adamw_4bit);
}

TEST(LaunchKeys, VerlsOtherModelsAreComparedWithItsActor) {
  const auto notes = [](std::string_view estimator, std::vector<LaunchSetting> settings) {
    settings.push_back({"algorithm.adv_estimator", std::string(estimator)});
    settings.push_back({"actor_rollout_ref.actor.strategy", "fsdp2"});
    settings.push_back({"actor_rollout_ref.actor.use_kl_loss", "True"});
    settings.push_back({"actor_rollout_ref.actor.ulysses_sequence_parallel_size", "2"});
    return read(Program::verl, std::move(settings), 4).not_modelled;
  };
  const std::string reference = "actor_rollout_ref.ref.";
  const std::vector<LaunchSetting> same = {{reference + "strategy", "fsdp2"},
                                           {reference + "ulysses_sequence_parallel_size", "2"},
                                           {"critic.strategy", "fsdp2"},
                                           {"critic.ulysses_sequence_parallel_size", "2"}};
  EXPECT_TRUE(notes("gae", same).empty());
  EXPECT_EQ(notes("gae", {{"critic.strategy", "fsdp"}}), std::vector<std::string>{"critic.strategy fsdp"});
  EXPECT_TRUE(notes("grpo", {{"critic.strategy", "fsdp"}}).empty()) << "it has no critic";
  EXPECT_EQ(notes("grpo", {{reference + "fsdp_config.fsdp_size", "2"}}).size(), 1U);
  EXPECT_EQ(notes("gae", {{"critic.use_dynamic_bsz", "True"}}).size(), 1U);
  const LaunchSetting tokens = {"critic.ppo_max_token_len_per_gpu", "32768"};
  EXPECT_TRUE(notes("gae", {tokens, {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "2"}}).empty());
  EXPECT_EQ(notes("gae", {tokens, {"actor_rollout_ref.actor.use_dynamic_bsz", "True"}}).size(), 1U);
}

TEST(LaunchKeys, TrlLoadsFloat32UnlessItIsToldOtherwise) {
  const auto job = [](Program program, std::vector<LaunchSetting> settings) {
    settings.push_back({"trainer", "DPOTrainer"});
    settings.push_back({"per_device_train_batch_size", "2"});
    return training_of(read(program, std::move(settings)));
  };
  EXPECT_EQ(job(Program::trl, {}).precision, model::Precision::amp_bf16);
  EXPECT_EQ(job(Program::trl, {{"fp16", "true"}}).precision, model::Precision::amp_fp16);
  EXPECT_EQ(job(Program::trl, {{"dtype", "bfloat16"}}).precision, model::Precision::bf16);
  EXPECT_EQ(job(Program::ms_swift, {{"train_type", "full"}}).precision, model::Precision::bf16);
  EXPECT_EQ(job(Program::trl, {{"use_peft", "true"}}).base_dtype, model::BaseType::precision) << "float32";
  EXPECT_EQ(job(Program::trl, {{"use_peft", "true"}, {"dtype", "bfloat16"}}).base_dtype, model::BaseType::bf16);
  const std::vector<LaunchSetting> quantised = {{"use_peft", "true"}, {"load_in_4bit", "true"}};
  EXPECT_EQ(job(Program::trl, quantised).base_dtype, model::BaseType::bf16);
}

TEST(LaunchKeys, VerlsLimitOfARowIsOfEachGpuThatSharesIt) {
  const std::string actor = "actor_rollout_ref.actor.";
  const auto shared = [&](const std::string& key, const std::string& size) {
    const std::string log_prob = "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu";
    return read(Program::verl, {{"algorithm.adv_estimator", "grpo"},
                                {actor + "use_dynamic_bsz", "True"},
                                {actor + "ppo_max_token_len_per_gpu", "8192"},
                                {log_prob, "10000"},
                                {"trainer.n_gpus_per_node", "8"},
                                {actor + key, size}});
  };
  const Launch four = shared("ulysses_sequence_parallel_size", "4");
  EXPECT_EQ(training_of(four).sequence_length, 4 * 8192);
  EXPECT_EQ(four.request.options.log_prob_tokens, 40'000);
  EXPECT_EQ(training_of(shared("megatron.context_parallel_size", "2")).sequence_length, 2 * 8192);
  EXPECT_EQ(training_of(shared("megatron.tensor_model_parallel_size", "2")).sequence_length, 8192);
}

TEST(LaunchKeys, VerlsGroupsOfGpusHoldTheSame) {
  const std::string actor = "actor_rollout_ref.actor.";
  const auto grouped = [&](const std::string& strategy, const std::string& size) {
    return read(Program::verl, {{"algorithm.adv_estimator", "grpo"},
                                {"trainer.n_gpus_per_node", "8"},
                                {actor + "strategy", strategy},
                                {actor + "fsdp_config.fsdp_size", size}});
  };
  const auto sharding = [&](const std::string& size) { return training_of(grouped("fsdp2", size)).layout.sharding; };
  EXPECT_EQ(sharding("4"), (model::Sharding{model::Shardings::hsdp, 4}));
  EXPECT_EQ(sharding("8").kind, model::Shardings::fsdp2);
  EXPECT_EQ(sharding("-1").kind, model::Shardings::fsdp2);
  EXPECT_TRUE(grouped("fsdp2", "4").not_modelled.empty());
  EXPECT_EQ(grouped("fsdp", "4").not_modelled, std::vector<std::string>{actor + "fsdp_config.fsdp_size 4"});
}

TEST(LaunchKeys, VerlHasARewardModelWhereItIsEnabled) {
  const LaunchSetting path = {"reward_model.model.path", "r"};
  const LaunchSetting groups = {"reward_model.model.fsdp_config.fsdp_size", "4"};
  const Launch off = read(Program::verl, {path, groups});
  EXPECT_TRUE(off.request.options.reward_model.empty());
  EXPECT_TRUE(off.not_modelled.empty());
  ASSERT_EQ(off.decided.size(), 1U);
  EXPECT_NE(off.decided.front().find("reward_model.enable"), std::string::npos);
  EXPECT_TRUE(read(Program::verl, {path, {"reward_model.enable", "False"}}).decided.empty());
  const Launch on = read(Program::verl, {path, groups, {"reward_model.enable", "True"}});
  EXPECT_EQ(on.request.options.reward_model, "r");
  EXPECT_EQ(on.not_modelled.size(), 1U);
}

TEST(LaunchKeys, MegatronFusesItsCrossEntropyAndTakes16SamplesAStep) {
  const Launch launch = read(Program::megatron, {{"rlhf_type", "dpo"}, {"max_length", "512"}}, 4);
  EXPECT_EQ(training_of(launch).loss_form.kind, model::LossForms::fused_ce);
  EXPECT_EQ(training_of(launch).gradient_accumulation, 4);
}

TEST(LaunchKeys, EasyR1sNamesMeanWhatVerlsDo) {
  const std::vector<LaunchSetting> settings = {{"worker.actor.model.model_path", "m"},
                                               {"worker.actor.global_batch_size", "128"},
                                               {"worker.actor.micro_batch_size_per_device_for_update", "2"},
                                               {"worker.actor.micro_batch_size_per_device_for_experience", "8"},
                                               {"worker.actor.offload.offload_params", "true"},
                                               {"worker.rollout.gpu_memory_utilization", "0.4"},
                                               {"worker.rollout.tensor_parallel_size", "2"},
                                               {"worker.actor.clip_ratio_low", "0.2"},
                                               {"trainer.n_gpus_per_node", "8"}};
  EXPECT_EQ(program_of(settings), Program::verl);
  const Launch launch = read(Program::verl, settings);
  EXPECT_EQ(launch.model, "m");
  EXPECT_EQ(launch.request.options.algorithm, Algorithm::grpo);
  EXPECT_EQ(launch.request.options.reference, Reference::own) << "unless algorithm.disable_kl";
  EXPECT_EQ(launch.request.options.log_prob_batch, 8);
  EXPECT_EQ(launch.request.options.offload, Waiting::model);
  EXPECT_EQ(launch.request.options.gpu_memory_utilization, 0.4);
  EXPECT_EQ(launch.request.options.rollout_tensor_parallel, 2);
  EXPECT_EQ(training_of(launch).batch_size, 2);
  EXPECT_TRUE(launch.unknown.empty());
  const Launch without = read(Program::verl, {{"worker.actor.ulysses_size", "2"}, {"algorithm.disable_kl", "true"}});
  EXPECT_EQ(without.request.options.reference, Reference::none);
  EXPECT_EQ(training_of(without).batch_size, 4) << "its own default";
}

TEST(LaunchKeys, VerlsMegatronSharesOutItsModel) {
  const std::string megatron = "actor_rollout_ref.actor.megatron.";
  const std::vector<LaunchSetting> settings = {{"config_name", "ppo_megatron_trainer.yaml"},
                                               {"algorithm.adv_estimator", "grpo"},
                                               {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "2"},
                                               {megatron + "tensor_model_parallel_size", "2"},
                                               {megatron + "pipeline_model_parallel_size", "2"},
                                               {megatron + "param_offload", "True"},
                                               {megatron + "optimizer_offload", "True"},
                                               {megatron + "grad_offload", "True"},
                                               {megatron + "override_transformer_config.recompute_granularity", "full"},
                                               {"actor_rollout_ref.ref.megatron.tensor_model_parallel_size", "2"},
                                               {"actor_rollout_ref.ref.megatron.param_offload", "True"},
                                               {"trainer.n_gpus_per_node", "8"}};
  const Launch launch = read(Program::verl, settings);
  const model::Layout& layout = training_of(launch).layout;
  EXPECT_EQ(launch.request.options.program, Program::verl_megatron);
  EXPECT_TRUE(row_of(launch.request.options.program).megatron);
  EXPECT_EQ(layout.tensor_parallel, 2);
  EXPECT_EQ(layout.pipeline_parallel, 2);
  EXPECT_EQ(layout.data_parallel, 2);
  EXPECT_TRUE(layout.sequence_parallel) << "verl's default";
  EXPECT_EQ(layout.sharding.kind, model::Shardings::distributed_optimizer);
  EXPECT_EQ(training_of(launch).precision, model::Precision::bf16_mixed);
  EXPECT_TRUE(training_of(launch).activation_checkpointing);
  EXPECT_EQ(launch.request.options.offload, Waiting::both);
  EXPECT_TRUE(launch.request.options.reference_offload);
  EXPECT_TRUE(launch.not_modelled.empty());
  const Launch kept = read(Program::verl, {{"algorithm.adv_estimator", "grpo"},
                                           {"actor_rollout_ref.actor.strategy", "fsdp"},
                                           {"trainer.n_gpus_per_node", "8"}});
  EXPECT_EQ(kept.request.options.program, Program::verl);
}

TEST(LaunchKeys, VerlsEngineIsNamedInSeveralWays) {
  const auto with = [](std::vector<LaunchSetting> more, Program program = Program::verl) {
    std::vector<LaunchSetting> settings = {{"algorithm.adv_estimator", "grpo"}, {"trainer.n_gpus_per_node", "8"}};
    settings.insert(settings.end(), more.begin(), more.end());
    return read(program, settings);
  };
  const std::string parallel = "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size";
  for (const Launch& launch :
       {with({{"model_engine", "megatron"}}), with({{parallel, "2"}}), with({}, Program::verl_megatron)}) {
    EXPECT_EQ(launch.request.options.program, Program::verl_megatron);
    EXPECT_EQ(training_of(launch).layout.sharding.kind, model::Shardings::distributed_optimizer);
    EXPECT_TRUE(launch.not_modelled.empty());
    EXPECT_TRUE(launch.unknown.empty());
  }
  const Launch sharded = with({{"model_engine", "dp"}});
  EXPECT_EQ(sharded.request.options.program, Program::verl);
  EXPECT_TRUE(sharded.not_modelled.empty());
  const Launch other = with({{"model_engine", "torchtitan"}});
  EXPECT_EQ(other.not_modelled, std::vector<std::string>{"model_engine torchtitan"});
}

TEST(LaunchKeys, EasyR1sCriticIsRead) {
  const std::vector<LaunchSetting> settings = {
      {"worker.actor.model.model_path", "m"},           {"algorithm.adv_estimator", "gae"},
      {"worker.actor.fsdp.enable_full_shard", "false"}, {"worker.critic.model.model_path", "values"},
      {"worker.critic.offload.offload_params", "true"}, {"trainer.n_gpus_per_node", "8"}};
  const Launch launch = read(Program::verl, settings);
  EXPECT_EQ(launch.request.options.critic_model, "values");
  EXPECT_EQ(launch.not_modelled, (std::vector<std::string>{"worker.critic.offload.offload_params true",
                                                           "worker.actor.fsdp.enable_full_shard false"}));
  std::vector<LaunchSetting> without = settings;
  without[1].value = "grpo";
  EXPECT_EQ(read(Program::verl, without).not_modelled.size(), 1U) << "it has no critic";
}

TEST(LaunchKeys, ASwitchBehindNoIsOff) {
  const Launch launch = read(Program::trl, {{"trainer", "dpo"},
                                            {"per_device_train_batch_size", "1"},
                                            {"no_gradient_checkpointing", "true"},
                                            {"no_remove_unused_columns", "true"}});
  EXPECT_FALSE(training_of(launch).activation_checkpointing);
  EXPECT_TRUE(launch.unknown.empty());
}

TEST(LaunchKeys, ParametersThatLoraAdaptsStandBehindModules) {
  const Launch swift = read(Program::ms_swift, {{"rlhf_type", "dpo"},
                                                {"tuner_type", "lora"},
                                                {"lora_dropout", "0"},
                                                {"target_parameters", "experts.down_proj experts.gate_up_proj"}});
  EXPECT_NE(training_of(swift).lora_targets.find("+parameter:experts.down_proj+parameter:experts.gate_up_proj"),
            std::string::npos);
  const Launch trl =
      read(Program::trl, {{"trainer", "dpo"}, {"use_peft", "true"}, {"lora_target_parameters", "['experts.down']"}});
  EXPECT_EQ(training_of(trl).lora_targets, "parameter:experts.down");
  EXPECT_TRUE(trl.not_modelled.empty());
}

TEST(LaunchKeys, DeepSpeedsOtherStagesAreAnswered) {
  const auto with = [](const char* stage) {
    return read(Program::ms_swift, {{"rlhf_type", "dpo"}, {"deepspeed", stage}, {"env:NPROC_PER_NODE", "4"}});
  };
  EXPECT_EQ(training_of(with("zero0")).layout.sharding.kind, model::Shardings::zero_1);
  const Launch offloaded = with("zero3_offload");
  EXPECT_EQ(training_of(offloaded).layout.sharding.kind, model::Shardings::zero_3);
  EXPECT_EQ(training_of(offloaded).offload, model::Offload::optimizer);
  ASSERT_EQ(offloaded.decided.size(), 1U);
  EXPECT_NE(offloaded.decided[0].find("zero3_offload"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::posttrain
