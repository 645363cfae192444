// Settings of NeMo-RL, slime, AReaL and ROLL, which are restated as verl's.
#include <algorithm>

#include "expect.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;
using Settings = std::vector<LaunchSetting>;

/// What the settings of a program mean; those of `more` come last, and count.
Launch restated(Settings settings, const Settings& more = {}) {
  settings.insert(settings.end(), more.begin(), more.end());
  const auto program = program_of(settings);
  EXPECT_TRUE(program.has_value());
  const auto launch = read_launch(program.value_or(Program::trl), settings);
  EXPECT_TRUE(succeeds(launch));
  return launch ? *launch : Launch();
}
const model::TrainingJob& restated_training(const Launch& launch) { return launch.request.training.training; }
const PostTrainingOptions& restated_options(const Launch& launch) { return launch.request.options; }

Settings nemo_settings() {
  return {{"policy.model_name", "m"},
          {"policy.train_global_batch_size", "64"},
          {"policy.train_micro_batch_size", "2"},
          {"policy.logprob_batch_size", "${policy.train_micro_batch_size}"},
          {"policy.max_total_sequence_length", "512"},
          {"policy.sequence_packing.enabled", "true"},
          {"policy.sequence_packing.train_mb_tokens",
           "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}"},
          {"policy.sequence_packing.logprob_mb_tokens", "${mul:${..max_total_sequence_length}, 4}"},
          {"policy.dtensor_cfg.enabled", "true"},
          {"policy.dtensor_cfg.tensor_parallel_size", "2"},
          {"policy.dtensor_cfg.activation_checkpointing", "true"},
          {"policy.generation.backend", "vllm"},
          {"policy.generation.max_new_tokens", "${..max_total_sequence_length}"},
          {"policy.generation.vllm_cfg.gpu_memory_utilization", "0.6"},
          {"policy.generation.vllm_cfg.tensor_parallel_size", "4"},
          {"grpo.num_generations_per_prompt", "16"},
          {"loss_fn.reference_policy_kl_penalty", "0.01"},
          {"cluster.gpus_per_node", "8"},
          {"cluster.num_nodes", "2"}};
}

TEST(LaunchOthers, NemoRlShardsByFsdp2AndMovesAllToTheHost) {
  const Launch launch = restated(nemo_settings());
  EXPECT_EQ(launch.model, "m");
  EXPECT_TRUE(launch.unknown.empty());
  const model::TrainingJob& job = restated_training(launch);
  const PostTrainingOptions& options = restated_options(launch);
  EXPECT_EQ(options.program, Program::nemo_rl);
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(launch.gpus, 16);
  EXPECT_EQ(job.layout.tensor_parallel, 2);
  EXPECT_EQ(job.layout.data_parallel, 8);
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::fsdp2);
  EXPECT_EQ(job.precision, model::Precision::bf16_mixed) << "float32 weights";
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_EQ(*options.prompt_length + *options.completion_length, 512);
  EXPECT_TRUE(options.packing);
  EXPECT_EQ(job.sequence_length, 1024) << "${mul:...}";
  EXPECT_EQ(options.log_prob_tokens, 2048) << "a name above the key's own";
  EXPECT_EQ(options.num_generations, 16);
  EXPECT_EQ(options.reference, Reference::swapped);
  EXPECT_EQ(options.offload, Waiting::both);
  EXPECT_EQ(options.sleep_level, 1);
  EXPECT_EQ(options.rollout, Rollout::colocated);
  EXPECT_EQ(options.rollout_tensor_parallel, 4);
  EXPECT_EQ(options.gpu_memory_utilization, 0.6);
}

TEST(LaunchOthers, NemoRlGeneratesElsewhereOrTrainsInMegatron) {
  const Launch apart = restated(nemo_settings(), {{"policy.generation.colocated.enabled", "false"},
                                                  {"policy.generation.colocated.resources.num_nodes", "1"},
                                                  {"loss_fn.reference_policy_kl_penalty", "0"}});
  EXPECT_EQ(apart.gpus, 8) << "the other node generates";
  EXPECT_EQ(restated_options(apart).rollout, Rollout::elsewhere);
  EXPECT_EQ(restated_options(apart).offload, Waiting::none);
  EXPECT_EQ(restated_options(apart).reference, Reference::none);
  const Launch megatron = restated(nemo_settings(), {{"policy.megatron_cfg.enabled", "true"},
                                                     {"policy.dtensor_cfg.enabled", "false"},
                                                     {"policy.megatron_cfg.tensor_model_parallel_size", "4"},
                                                     {"policy.megatron_cfg.sequence_parallel", "true"}});
  EXPECT_EQ(restated_options(megatron).program, Program::nemo_rl_megatron);
  EXPECT_EQ(restated_training(megatron).layout.tensor_parallel, 4);
  EXPECT_TRUE(restated_training(megatron).layout.sequence_parallel);
  EXPECT_EQ(restated_training(megatron).layout.sharding.kind, model::Shardings::distributed_optimizer);
}

TEST(LaunchOthers, NemoRlAdaptsAllLinearLayersWhereItSaysSo) {
  const Settings adapters = {{"policy.dtensor_cfg.lora_cfg.enabled", "true"},
                             {"policy.dtensor_cfg.lora_cfg.target_modules", "[q_proj]"}};
  EXPECT_EQ(restated_training(restated(nemo_settings(), adapters)).lora, 8) << "without a rank they are adapters still";
  EXPECT_EQ(restated_training(restated(nemo_settings(), adapters)).lora_targets, "q_proj");
  Settings all = adapters;
  all.push_back({"policy.dtensor_cfg.lora_cfg.match_all_linear", "true"});
  all.push_back({"policy.dtensor_cfg.lora_cfg.dim", "16"});
  EXPECT_EQ(restated_training(restated(nemo_settings(), all)).lora_targets, "all-linear");
  EXPECT_EQ(restated_training(restated(nemo_settings(), all)).lora, 16);
}

TEST(LaunchOthers, NemoRlKeepsParametersOnTheHostOnOneGpuToo) {
  const Launch launch = restated(nemo_settings(), {{"policy.dtensor_cfg.cpu_offload", "true"},
                                                   {"policy.dtensor_cfg.tensor_parallel_size", "1"},
                                                   {"cluster.gpus_per_node", "1"},
                                                   {"cluster.num_nodes", "1"}});
  EXPECT_EQ(restated_training(launch).layout.sharding.kind, model::Shardings::fsdp2);
  EXPECT_EQ(restated_training(launch).offload, model::Offload::parameters);
}

TEST(LaunchOthers, NamesWhatNobodyKnowsAndWhatIsNotModelled) {
  const Launch launch = restated(nemo_settings(), {{"policy.train_mikro_batch_size", "2"},
                                                   {"policy.megatron_cfg.fp8_cfg.enabled", "true"},
                                                   {"policy.megatron_cfg.mtp_num_layers", "0"}});
  EXPECT_EQ(launch.unknown, std::vector<std::string>{"policy.train_mikro_batch_size"});
  EXPECT_EQ(launch.not_modelled, std::vector<std::string>{"policy.megatron_cfg.fp8_cfg.enabled true"});
  Settings wrong = nemo_settings();
  wrong.push_back({"policy.train_micro_batch_size", "two"});
  EXPECT_TRUE(fails(read_launch(Program::nemo_rl, wrong), core::ErrorCode::invalid_argument, 0,
                    "policy.train_micro_batch_size"));
  Settings supervised = {{"policy.model_name", "m"}, {"policy.dtensor_cfg.enabled", "true"}, {"sft.seed", "1"}};
  EXPECT_TRUE(fails(read_launch(Program::nemo_rl, supervised), core::ErrorCode::invalid_argument, 0, "supervised"));
}

TEST(LaunchOthers, AnInterpolationThatNeverEndsStaysAVariable) {
  const Launch launch = restated(nemo_settings(), {{"policy.logprob_batch_size", "${policy.logprob_batch_size}"},
                                                   {"policy.model_name", "${nowhere}"}});
  EXPECT_EQ(launch.model, "");
}

Settings slime_settings() {
  return {{"hf_checkpoint", "m"},
          {"actor_num_nodes", "1"},
          {"actor_num_gpus_per_node", "8"},
          {"colocate", "true"},
          {"rollout_batch_size", "32"},
          {"n_samples_per_prompt", "8"},
          {"rollout_max_response_len", "8192"},
          {"global_batch_size", "256"},
          {"tensor_model_parallel_size", "2"},
          {"sequence_parallel", "true"},
          {"context_parallel_size", "2"},
          {"recompute_granularity", "full"},
          {"use_dynamic_batch_size", "true"},
          {"max_tokens_per_gpu", "9216"},
          {"use_kl_loss", "true"},
          {"advantage_estimator", "grpo"},
          {"rollout_num_gpus_per_engine", "2"},
          {"sglang_mem_fraction_static", "0.7"}};
}

TEST(LaunchOthers, SlimeTrainsInMegatronAndSwapsTheReference) {
  const Launch launch = restated(slime_settings());
  EXPECT_TRUE(launch.unknown.empty());
  EXPECT_TRUE(launch.not_modelled.empty());
  const PostTrainingOptions& options = restated_options(launch);
  EXPECT_EQ(options.program, Program::slime);
  EXPECT_EQ(options.engine, Engine::sglang);
  EXPECT_EQ(options.reference, Reference::swapped);
  EXPECT_EQ(options.offload, Waiting::both);
  EXPECT_EQ(options.rollout_tensor_parallel, 2);
  EXPECT_EQ(options.num_generations, 8);
  const model::TrainingJob& job = restated_training(launch);
  EXPECT_EQ(job.layout.data_parallel, 2);
  EXPECT_EQ(job.sequence_length, 2 * 9216) << "of both GPUs that share a row";
  EXPECT_TRUE(job.activation_checkpointing);
  const Launch apart =
      restated(slime_settings(), {{"colocate", "false"}, {"use_kl_loss", "false"}, {"no_such_key", "1"}});
  EXPECT_EQ(restated_options(apart).rollout, Rollout::elsewhere);
  EXPECT_EQ(restated_options(apart).offload, Waiting::none);
  EXPECT_EQ(restated_options(apart).reference, Reference::none);
  EXPECT_EQ(apart.unknown, std::vector<std::string>{"no_such_key"});
}

TEST(LaunchOthers, SlimeMayKeepItsTrainerAndItsEngineOnTheGpu) {
  const Launch trainer = restated(slime_settings(), {{"no_offload_train", "true"}});
  EXPECT_EQ(restated_options(trainer).offload, Waiting::none);
  EXPECT_EQ(restated_options(trainer).sleep_level, 1);
  const Launch engine = restated(slime_settings(), {{"no_offload_rollout", "true"}});
  EXPECT_EQ(restated_options(engine).offload, Waiting::both);
  EXPECT_EQ(restated_options(engine).sleep_level, 0);
}

Settings areal_settings() {
  return {{"actor.path", "m"},
          {"actor.backend", "fsdp:d4p1t1"},
          {"rollout.backend", "sglang:d2p1t2"},
          {"actor.gradient_checkpointing", "true"},
          {"actor.dtype", "bfloat16"},
          {"actor.mb_spec.max_tokens_per_mb", "10240"},
          {"actor.kl_ctl", "0.0"},
          {"ref.path", "${actor.path}"},
          {"gconfig.n_samples", "4"},
          {"gconfig.max_new_tokens", "1024"},
          {"train_dataset.batch_size", "256"},
          {"train_dataset.max_length", "1024"},
          {"train_dataset.type", "rl"},
          {"sglang.mem_fraction_static", "0.8"}};
}

TEST(LaunchOthers, ArealTrainsAndGeneratesOnGpusOfTheirOwn) {
  const Launch launch = restated(areal_settings());
  EXPECT_TRUE(launch.unknown.empty());
  EXPECT_EQ(launch.gpus, 4);
  const PostTrainingOptions& options = restated_options(launch);
  EXPECT_EQ(options.program, Program::areal);
  EXPECT_EQ(options.rollout, Rollout::elsewhere);
  EXPECT_EQ(options.rollout_tensor_parallel, 2);
  EXPECT_EQ(options.reference, Reference::none) << "kl_ctl is 0";
  EXPECT_EQ(restated_training(launch).precision, model::Precision::bf16);
  EXPECT_EQ(restated_training(launch).sequence_length, 10240);
  const Launch compared = restated(areal_settings(), {{"actor.kl_ctl", "0.1"}, {"train_dataset.type", "dpo"}});
  EXPECT_EQ(restated_options(compared).algorithm, Algorithm::dpo);
  EXPECT_EQ(restated_options(compared).reference, Reference::none) << "on GPUs of its own";
  const Settings shared = {{"ref.scheduling_strategy.type", "colocation"}, {"ref.scheduling_strategy.target", "actor"}};
  Settings together = {{"actor.kl_ctl", "0.1"}};
  together.insert(together.end(), shared.begin(), shared.end());
  EXPECT_EQ(restated_options(restated(areal_settings(), together)).reference, Reference::own);
  const Launch experts = restated(areal_settings(), {{"actor.backend", "megatron:(attn:d4p2t2|ffn:d2p2e4)"}});
  EXPECT_EQ(restated_options(experts).program, Program::areal_megatron);
  EXPECT_EQ(experts.gpus, 16);
  EXPECT_EQ(restated_training(experts).layout.expert_parallel, 4);
  EXPECT_EQ(restated_training(experts).layout.pipeline_parallel, 2);
  const Launch mode = restated(areal_settings(), {{"actor.backend", ""}, {"allocation_mode", "vllm:d4p1t2+d4p1t1c2"}});
  EXPECT_EQ(mode.gpus, 8);
  EXPECT_EQ(restated_options(mode).sequence_ranks, 2);
}

TEST(LaunchOthers, ArealTakesItsOwnDefaults) {
  Settings little = {{"actor.path", "m"},
                     {"actor.backend", "fsdp:d4p1t1"},
                     {"rollout.backend", "sglang:d4"},
                     {"train_dataset.batch_size", "256"},
                     {"actor.use_lora", "true"}};
  const Launch launch = restated(little);
  EXPECT_EQ(restated_training(launch).lora, 32);
  EXPECT_EQ(restated_options(launch).completion_length, 16384);
  EXPECT_EQ(restated_options(launch).max_model_len, 32768);
  const Launch shorter = restated(little, {{"sglang.context_length", "4096"}});
  EXPECT_EQ(restated_options(shorter).max_model_len, 4096);
  EXPECT_EQ(restated_training(launch).batch_size, 16) << "256 over 4 mini-batches and 4 GPUs";
  EXPECT_EQ(restated_options(launch).offload, Waiting::none);
  EXPECT_EQ(restated_options(restated(little, {{"actor.offload", "true"}})).offload, Waiting::both);
  const Settings together = {{"actor.scheduling_strategy.type", "colocation"},
                             {"actor.scheduling_strategy.target", "rollout"}};
  EXPECT_EQ(restated_options(restated(little, together)).rollout, Rollout::colocated);
  EXPECT_EQ(restated_options(restated(little, together)).offload, Waiting::both);
}

Settings roll_settings() {
  return {{"pretrain", "m"},
          {"adv_estimator", "grpo"},
          {"prompt_length", "2048"},
          {"response_length", "4096"},
          {"num_return_sequences_in_group", "8"},
          {"actor_train.training_args.per_device_train_batch_size", "2"},
          {"actor_train.training_args.gradient_accumulation_steps", "32"},
          {"actor_train.strategy_args.strategy_name", "megatron_train"},
          {"actor_train.strategy_args.strategy_config.tensor_model_parallel_size", "2"},
          {"actor_train.strategy_args.strategy_config.recompute_granularity", "full"},
          {"actor_train.device_mapping", "list(range(0,8)) + list([8,9])+10+11"},
          {"actor_train.infer_batch_size", "4"},
          {"actor_infer.strategy_args.strategy_name", "vllm"},
          {"actor_infer.strategy_args.strategy_config.gpu_memory_utilization", "0.8"},
          {"actor_infer.device_mapping", "list(range(0,8))"},
          {"reference.infer_batch_size", "8"}};
}

TEST(LaunchOthers, RollSharesGpusThatItsMappingsShare) {
  const Launch launch = restated(roll_settings());
  EXPECT_TRUE(launch.unknown.empty());
  EXPECT_EQ(launch.gpus, 12);
  const PostTrainingOptions& options = restated_options(launch);
  EXPECT_EQ(options.program, Program::roll_megatron);
  EXPECT_EQ(options.rollout, Rollout::colocated);
  EXPECT_EQ(options.sleep_level, 1);
  EXPECT_EQ(options.log_prob_batch, 8);
  EXPECT_EQ(options.reference, Reference::own) << "init_kl_coef is 0.2";
  EXPECT_TRUE(options.reference_offload);
  EXPECT_EQ(restated_training(launch).batch_size, 2);
  EXPECT_EQ(restated_training(launch).gradient_accumulation, 32);
  const Launch apart = restated(roll_settings(), {{"actor_infer.device_mapping", "list(range(12,16))"},
                                                  {"actor_train.strategy_args.strategy_name", "fsdp2_train"},
                                                  {"init_kl_coef", "0.0"}});
  EXPECT_EQ(restated_options(apart).program, Program::roll);
  EXPECT_EQ(restated_options(apart).rollout, Rollout::elsewhere);
  EXPECT_EQ(restated_options(apart).reference, Reference::none);
}

TEST(LaunchOthers, RollTakesItsOwnDefaults) {
  const Launch launch = restated({{"pretrain", "m"},
                                  {"actor_train.strategy_args.strategy_name", "fsdp2_train"},
                                  {"actor_train.device_mapping", "list(range(0,4))"},
                                  {"actor_infer.device_mapping", "list(range(4,8))"},
                                  {"response_length", "512"}});
  EXPECT_EQ(restated_options(launch).algorithm, Algorithm::ppo) << "adv_estimator is gae";
  EXPECT_EQ(restated_training(launch).batch_size, 8);
  EXPECT_EQ(restated_options(launch).log_prob_batch, 16);
  EXPECT_EQ(restated_options(launch).prompt_length, 1024);
  EXPECT_FALSE(restated_training(launch).has_adapters());
  EXPECT_EQ(restated_training(launch).precision, model::Precision::bf16_mixed) << "float32 weights";
}

TEST(LaunchOthers, RollHoldsWeightsInTheirTypeAndShardsThemInGroups) {
  const std::string config = "actor_train.strategy_args.strategy_config.";
  const Settings fsdp = {{"actor_train.strategy_args.strategy_name", "fsdp2_train"},
                         {config + "param_dtype", "bf16"},
                         {config + "fsdp_size", "4"},
                         {"actor_train.model_args.lora_rank", "32"}};
  const Launch groups = restated(roll_settings(), fsdp);
  EXPECT_EQ(restated_training(groups).precision, model::Precision::bf16);
  EXPECT_EQ(restated_training(groups).layout.sharding.kind, model::Shardings::hsdp);
  EXPECT_EQ(restated_training(groups).layout.sharding.count, 4);
  EXPECT_FALSE(restated_training(groups).has_adapters()) << "no lora_target is given";
  const Launch one =
      restated(roll_settings(),
               {fsdp[0], fsdp[3], {config + "fsdp_size", "1"}, {"actor_train.model_args.lora_target", "q_proj"}});
  EXPECT_EQ(restated_training(one).layout.sharding.kind, model::Shardings::fsdp2) << "of all GPUs";
  EXPECT_EQ(restated_training(one).lora, 32);
  EXPECT_EQ(restated(roll_settings(), {fsdp[0], {config + "param_dtype", "fp16"}}).not_modelled,
            std::vector<std::string>{config + "param_dtype fp16"});
}

TEST(LaunchOthers, RollKeepsUnitsGatheredAndTheReferenceWholeWhereItSaysSo) {
  const std::string config = "actor_train.strategy_args.strategy_config.";
  const Settings fsdp = {{"actor_train.strategy_args.strategy_name", "fsdp2_train"},
                         {config + "reshard_after_forward", "false"},
                         {"reference.strategy_args.strategy_name", "hf_infer"}};
  const Launch launch = restated(roll_settings(), fsdp);
  EXPECT_EQ(restated_training(launch).layout.reshard_after_forward.kind, model::Reshard::never);
  EXPECT_EQ(restated_options(launch).reference, Reference::whole);
  EXPECT_TRUE(launch.not_modelled.empty());
}

TEST(LaunchOthers, RollsModelsOnOtherGpusAreNotHeld) {
  const Launch apart = restated(roll_settings(), {{"adv_estimator", "gae"},
                                                  {"critic.device_mapping", "list(range(12,16))"},
                                                  {"reference.device_mapping", "list(range(12,16))"}});
  EXPECT_EQ(restated_options(apart).algorithm, Algorithm::grpo);
  EXPECT_EQ(restated_options(apart).reference, Reference::none);
  const auto left_out = [](const Launch& launch) {
    return std::count_if(launch.decided.begin(), launch.decided.end(), [](const std::string& note) {
      return note.find("device_mapping has none of the GPUs") != std::string::npos;
    });
  };
  EXPECT_EQ(left_out(apart), 2);
  const Launch together =
      restated(roll_settings(), {{"adv_estimator", "gae"}, {"critic.device_mapping", "list(range(0,8))"}});
  EXPECT_EQ(restated_options(together).algorithm, Algorithm::ppo);
  EXPECT_EQ(left_out(together), 0);
}

TEST(LaunchOthers, VerlsOwnUnitsAreAsItsStrategyMakesThem) {
  const std::string actor = "actor_rollout_ref.actor.";
  const auto units = [&](const std::string& strategy) {
    return restated({{actor + "strategy", strategy},
                     {actor + "fsdp_config.offload_policy", "True"},
                     {actor + "fsdp_config.reshard_after_forward", "False"},
                     {"actor_rollout_ref.ref.fsdp_config.reshard_after_forward", "True"},
                     {"trainer.n_gpus_per_node", "4"}});
  };
  const Launch second = units("fsdp2");
  EXPECT_EQ(restated_training(second).layout.reshard_after_forward.kind, model::Reshard::never);
  EXPECT_EQ(restated_training(second).offload, model::Offload::parameters);
  EXPECT_TRUE(second.not_modelled.empty());
  const Launch first = units("fsdp");
  EXPECT_EQ(restated_training(first).offload, model::Offload::none) << "FSDP1 ignores it for what is trained";
  EXPECT_EQ(first.not_modelled, std::vector<std::string>{actor + "fsdp_config.reshard_after_forward False"});
  EXPECT_EQ(std::count_if(first.decided.begin(), first.decided.end(),
                          [](const std::string& line) { return line.find("is FSDP2's") != std::string::npos; }),
            1);
}

TEST(LaunchOthers, AProgramMayBeNamed) {
  const auto launch = read_launch(Program::slime, slime_settings());
  ASSERT_TRUE(succeeds(launch));
  EXPECT_EQ(launch->request.options.program, Program::slime);
  const auto megatron = read_launch(Program::areal_megatron, areal_settings());
  ASSERT_TRUE(succeeds(megatron));
  EXPECT_EQ(megatron->request.options.program, Program::areal) << "as the settings say";
}

TEST(LaunchOthers, WrongWordsOfProgramsAreErrors) {
  struct Row {
    const char* program;
    const char* key;
    const char* wrong;
    const char* right;
  };
  for (const Row& row : {Row{"nemo-rl", "policy.precision", "bf17", "float32"},
                         Row{"nemo-rl", "policy.dtensor_cfg.cpu_offload", "maybe", "true"},
                         Row{"slime", "advantage_estimator", "grop", "reinforce_plus_plus"},
                         Row{"areal", "actor.backend", "fsdq:d4", "megatron:(attn:d4p4t2|ffn:d2p4e4)"},
                         Row{"areal", "allocation_mode", "sglang:d4+fsdq:d4", "sglang:d4+d4p1t1c2"},
                         Row{"roll", "actor_train.strategy_args.strategy_name", "fsdp3_train", "fsdp2_train"},
                         Row{"prime-rl", "trainer.model.optimization_dtype", "float17", "bfloat16"},
                         Row{"open-instruct", "deepspeed_stage", "7", "3"}}) {
    const auto reads = [&](const char* word) {
      PostTrainingRequest request;
      const core::Status read =
          read_words({.settings = {{row.key, word}}, .options = {{"program", row.program}}}, request);
      return read ? std::string() : read.error().message;
    };
    EXPECT_NE(reads(row.wrong).find(row.key), std::string::npos) << row.key;
    EXPECT_EQ(reads(row.right).find(row.key), std::string::npos) << reads(row.right);
  }
}

}  // namespace
}  // namespace gpumem::posttrain
