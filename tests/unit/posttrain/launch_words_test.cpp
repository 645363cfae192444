// Words of people over a program's settings, and what of a model's config the launch needs.
#include "gpumem/posttrain/launch.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;

TEST(MegatronArguments, AreMadeOfATransformersConfig) {
  const auto arguments = megatron_arguments_of(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 32,
          "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 1024,
          "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "tie_word_embeddings": false})",
      1);
  ASSERT_TRUE(succeeds(arguments));
  for (const char* field : {"\"num_layers\": 2", "\"kv_channels\": 32", "\"qk_layernorm\": true", "\"num_experts\": 8",
                            "\"moe_ffn_hidden_size\": 32", "\"moe_token_dispatcher_type\": \"alltoall\"",
                            "\"expert_tensor_parallel_size\": 1", "\"untie_embeddings_and_output_weights\": true"}) {
    EXPECT_NE(arguments->find(field), std::string::npos) << field;
  }
  const std::string own = R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})";
  EXPECT_EQ(*megatron_arguments_of(own), own);
  EXPECT_TRUE(fails(megatron_arguments_of(R"({"model_type": "t5"})"), core::ErrorCode::unknown_format, 0, "t5"));
  EXPECT_TRUE(fails(megatron_arguments_of(R"({"model_type": "llama"})"), core::ErrorCode::malformed_input, 0,
                    "num_hidden_layers"));
}

TEST(MegatronArguments, TakeFurtherFieldsOfAModelOfTextAlone) {
  const std::string sizes =
      R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512,
         "max_position_embeddings": 1024})";
  const auto form = megatron_form(R"({"model_type": "qwen2", )" + sizes, R"("cross_entropy_fusion_impl": "te")");
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->starts_with(R"({"num_layers": 2)"));
  EXPECT_TRUE(form->ends_with(R"(, "cross_entropy_fusion_impl": "te"})"));
  for (const char* type : {"qwen2_vl", "t5"}) {
    EXPECT_FALSE(megatron_form(R"({"model_type": ")" + std::string(type) + "\", " + sizes, R"("a": 1)")) << type;
  }
  EXPECT_FALSE(megatron_form("", R"("a": 1)"));
}

TEST(MegatronArguments, OfAModelThatSeesAreThoseOfItsLanguageModel) {
  const auto arguments = megatron_arguments_of(
      R"({"model_type": "qwen3_vl_moe", "tie_word_embeddings": false, "vision_config": {"hidden_size": 8}, "text_config":
          {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 32, "vocab_size": 512,
           "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 1024, "num_experts": 8,
           "num_experts_per_tok": 2, "moe_intermediate_size": 32}})");
  ASSERT_TRUE(succeeds(arguments));
  for (const char* field : {"\"hidden_size\": 64", "\"num_experts\": 8", "\"qk_layernorm\": true",
                            "\"untie_embeddings_and_output_weights\": true"}) {
    EXPECT_NE(arguments->find(field), std::string::npos) << field;
  }
}

TEST(MegatronArguments, OfAModelThatSpeaksAreThoseOfItsThinker) {
  const std::string thinker = R"({"model_type": "qwen2_5_omni_thinker", "tie_word_embeddings": false, "text_config":
      {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512, "num_key_value_heads": 2,
       "intermediate_size": 128, "max_position_embeddings": 1024}})";
  const auto inner = megatron_arguments_of(thinker);
  ASSERT_TRUE(succeeds(inner));
  EXPECT_NE(inner->find("\"add_qkv_bias\": true"), std::string::npos);
  const auto whole = megatron_arguments_of(R"({"model_type": "qwen2_5_omni", "talker_config": {}, "thinker_config": )" +
                                           thinker + "}");
  ASSERT_TRUE(succeeds(whole));
  EXPECT_EQ(*whole, *inner);
}

TEST(PostTrainingWords, AllThatIsMissingIsSaidAtOnce) {
  PostTrainingRequest request;
  EXPECT_TRUE(fails(check_complete(request), core::ErrorCode::invalid_argument, 0,
                    "the policy's model, the samples of a forward pass and the length of the sequences; give its "
                    "config.json, `batch_size` and `seq_length`"));
  EXPECT_TRUE(fails(read_words({}, request), core::ErrorCode::invalid_argument, 0, "`batch_size`"));
  request.training.summary = "m";
  request.training.training.batch_size = 1;
  request.options.algorithm = Algorithm::grpo;
  request.options.prompt_length = 8;
  EXPECT_TRUE(fails(check_complete(request), core::ErrorCode::invalid_argument, 0,
                    "nothing says the length of the sequences; give `prompt_length` with `completion_length`"));
  request.options.completion_length = 8;
  EXPECT_TRUE(succeeds(check_complete(request)));
}

TEST(FrozenParts, AreThoseThatTheModelHas) {
  EXPECT_EQ(part_names({.towers = false, .aligners = false}, "not:", "+"), "");
  EXPECT_TRUE(part_names({}, "not:", "+").starts_with("not:model.visual+not:model.vision_tower+"));
  auto graph = parse_summary(R"({"model_type": "qwen2_5_vl", "hidden_size": 64, "intermediate_size": 128,
      "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
      "tie_word_embeddings": true, "rms_norm_eps": 1e-06, "hidden_act": "silu", "vision_config": {"depth": 1,
      "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64, "patch_size": 14,
      "spatial_merge_size": 2, "temporal_patch_size": 2, "in_chans": 3, "hidden_act": "silu", "window_size": 112,
      "fullatt_block_indexes": [0]}})");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(parts_of(*graph, part_names({}, "", ",")), "model.visual,model.visual.merger");
  std::int64_t seen = 0;
  for (const model::Layer& layer : graph->layers()) {
    if (std::string(graph->path(layer)).find("visual") != std::string::npos) seen += layer.parameters;
  }
  EXPECT_GT(seen, 0);
  EXPECT_EQ(tower_parameters(*graph), seen);
}

TEST(ReadWords, OptionsHoldOverSettings) {
  PostTrainingRequest request;
  request.training.summary = "config.json";
  const std::vector<std::string> command = {
      "trl", "dpo", "--per_device_train_batch_size", "2", "--max_length", "4096", "--new_thing", "1"};
  ASSERT_TRUE(
      succeeds(read_words({.command = command, .options = {{"batch_size", "4"}, {"algorithm", "kto"}}}, request)));
  EXPECT_EQ(request.training.training.batch_size, 4);
  EXPECT_EQ(request.options.algorithm, Algorithm::kto);
  EXPECT_EQ(request.options.length_limit, 4096);
  EXPECT_EQ(request.assumed.size(), 3U) << "the lengths, the weights' type, and a key that is not known";
  PostTrainingRequest longer;
  longer.training.summary = "config.json";
  ASSERT_TRUE(succeeds(read_words({.command = command, .options = {{"seq_length", "512"}}}, longer)));
  EXPECT_EQ(longer.options.length_limit, std::nullopt) << "somebody knows how long they are";
  PostTrainingRequest none;
  EXPECT_TRUE(
      fails(read_words({.options = {{"no_such", "1"}}}, none), core::ErrorCode::invalid_argument, 0, "no_such"));
}

/// TRL's GRPOConfig, which names no trainer.
std::vector<LaunchSetting> grpo_settings() {
  return {{"model_name_or_path", "m"},
          {"per_device_train_batch_size", "8"},
          {"use_vllm", "true"},
          {"vllm_mode", "colocate"},
          {"max_prompt_length", "512"},
          {"max_completion_length", "1024"},
          {"num_generations", "4"},
          {"beta", "0.04"},
          {"gradient_accumulation_steps", "4"},
          {"vllm_gpu_memory_utilization", "0.4"}};
}

TEST(ReadWords, TheAlgorithmThatIsGivenIsTheTrainer) {
  const auto options = [](std::vector<LaunchSetting> settings, std::map<std::string, std::string> given) {
    PostTrainingRequest request;
    request.training.summary = "config.json";
    EXPECT_TRUE(succeeds(read_words({.settings = std::move(settings), .options = std::move(given)}, request)));
    return request.options;
  };
  auto named = grpo_settings();
  named.push_back({"trainer", "GRPOTrainer"});
  const PostTrainingOptions expected = options(named, {});
  EXPECT_EQ(expected.rollout, Rollout::colocated);
  EXPECT_EQ(expected.completion_length, 1024);
  EXPECT_EQ(expected.reference, Reference::own);
  EXPECT_EQ(expected.num_generations, 4);
  EXPECT_EQ(options(grpo_settings(), {{"algorithm", "grpo"}}), expected);
  EXPECT_EQ(options(grpo_settings(), {}), expected) << "its keys decide";
  const std::vector<LaunchSetting> distillation = {
      {"model_name_or_path", "m"}, {"per_device_train_batch_size", "2"}, {"teacher_model_name_or_path", "t"}};
  EXPECT_EQ(options(distillation, {{"algorithm", "gkd"}}).teacher_model, "t");
  EXPECT_EQ(options(distillation, {}).teacher_model, "t");
  const std::vector<LaunchSetting> ppo = {{"model_name_or_path", "m"},
                                          {"per_device_train_batch_size", "2"},
                                          {"reward_model_path", "r"},
                                          {"response_length", "53"}};
  EXPECT_EQ(options(ppo, {{"algorithm", "ppo"}}).reward_model, "r");
  EXPECT_EQ(options(ppo, {}).completion_length, 53);
}

TEST(ReadWords, WhereNoKeyDecidesBothWaysAreSaid) {
  PostTrainingRequest request;
  request.training.summary = "config.json";
  const std::vector<LaunchSetting> settings = {
      {"model_name_or_path", "m"}, {"per_device_train_batch_size", "2"}, {"beta", "0.1"}};
  const auto read = read_words({.settings = settings}, request);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("give `algorithm` (TRL's configs name no trainer), or a setting such as trainer"),
            std::string::npos);
}

TEST(ReadWords, ProgramsNamesOfAlgorithmsAreTaken) {
  for (const char* name : {"cpo", "rloo", "xpo", "nash-md", "nash_md"}) {
    PostTrainingOptions options;
    EXPECT_TRUE(succeeds(set_post_training_option(options, "algorithm", name))) << name;
  }
  PostTrainingRequest compared;
  compared.training.summary = "config.json";
  const std::map<std::string, std::string> given = {
      {"algorithm", "rloo"}, {"batch_size", "2"}, {"prompt_length", "8"}, {"completion_length", "8"}};
  ASSERT_TRUE(succeeds(read_words({.options = given}, compared)));
  EXPECT_EQ(compared.options.reference, Reference::own) << "RLOO's beta is 0.05";
}

TEST(ReadWords, WrongWordsAreErrors) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"vllm_mode", "colocat"},       {"use_vllm", "maybe"}, {"loss_type", "foo"},   {"dtype", "bfloat17"},
      {"attn_implementation", "foo"}, {"fsdp", "nonsense"},  {"deepspeed", "zero9"}, {"bf16", "maybe"}};
  for (const auto& [key, value] : kWrong) {
    PostTrainingRequest request;
    auto settings = grpo_settings();
    settings.push_back({key, value});
    EXPECT_TRUE(fails(read_words({.settings = settings}, request), core::ErrorCode::invalid_argument, 0, value)) << key;
  }
  const auto runs = [](std::vector<std::string> command) {
    PostTrainingRequest request;
    request.training.summary = "config.json";
    return read_words({.command = command}, request);
  };
  const std::vector<std::string> verl = {"python3", "-m", "verl.trainer.main_ppo", "actor_rollout_ref.model.path=m"};
  for (const char* setting : {"actor_rollout_ref.actor.strategy=fsdp7", "actor_rollout_ref.actor.use_dynamic_bsz=maybe",
                              "actor_rollout_ref.actor.fsdp_config.model_dtype=bf17"}) {
    auto command = verl;
    command.emplace_back(setting);
    EXPECT_FALSE(runs(command)) << setting;
  }
  EXPECT_FALSE(runs({"python", "-m", "openrlhf.cli.train_dpo", "--pretrain", "m", "--zero_stage", "7"}));
  EXPECT_TRUE(succeeds(runs({"trl", "dpo", "--model_name_or_path", "m", "--fsdp", "full_shard auto_wrap",
                             "--attn_implementation", "kernels-community/flash-attn"})));
}

TEST(ReadLaunch, KeysOfVerlsSectionsAreNamed) {
  const auto unknown = [](Program program, const std::string& key) {
    const std::vector<LaunchSetting> settings = {{"algorithm.adv_estimator", "grpo"}, {key, "1"}};
    const auto launch = read_launch(program, settings);
    return launch && launch->unknown == std::vector<std::string>{key};
  };
  for (const char* key : {"data.max_promt_length", "trainer.n_gpu_per_node", "algorithm.use_kl_in_rewards",
                          "actor_rollout_ref.actor.fsdp_config.param_ofload",
                          "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_spaces"}) {
    EXPECT_TRUE(unknown(Program::verl, key)) << key;
  }
  for (const char* key : {"data.train_files", "trainer.logger", "algorithm.kl_ctrl.kl_coef",
                          "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"}) {
    EXPECT_FALSE(unknown(Program::verl, key)) << key;
  }
}

TEST(ReadLaunch, KeysOfTrlsSectionsAreNamed) {
  const auto launch =
      read_launch(Program::trl, std::vector<LaunchSetting>{{"trainer", "DPOTrainer"},
                                                           {"gradient_checkpointing_kwargs.use_reentrnt", "false"},
                                                           {"gradient_checkpointing_kwargs.use_reentrant", "false"},
                                                           {"fsdp_config.foo", "1"},
                                                           {"fsdp_config.sync_module_states", "true"},
                                                           {"model_init_kwargs.foo", "1"}});
  ASSERT_TRUE(succeeds(launch));
  EXPECT_EQ(launch->unknown, (std::vector<std::string>{"gradient_checkpointing_kwargs.use_reentrnt", "fsdp_config.foo",
                                                       "model_init_kwargs.foo"}));
}

TEST(ReadWords, StrictTakesNoSettingsThatAreLeftOut) {
  PostTrainingRequest request;
  request.training.training.strict = true;
  auto settings = grpo_settings();
  settings.push_back({"use_vlm", "true"});
  EXPECT_TRUE(fails(read_words({.settings = settings}, request), core::ErrorCode::invalid_argument, 0, "use_vlm"));
}

TEST(ReadWords, SettingsSayWhichOfVerlsEnginesTheProgramHas) {
  const auto program = [](const char* named, const std::string& setting) {
    PostTrainingRequest request;
    request.training.summary = "config.json";
    const std::vector<std::string> command = {"python3", "-m", "verl.trainer.main_ppo",
                                              "actor_rollout_ref.model.path=m", setting};
    EXPECT_TRUE(succeeds(read_words({.command = command, .options = {{"program", named}}}, request)));
    return request.options.program;
  };
  EXPECT_EQ(program("verl", "model_engine=megatron"), Program::verl_megatron);
  EXPECT_EQ(program("verl-megatron", "trainer.nnodes=1"), Program::verl_megatron);
  EXPECT_EQ(program("verl", "trainer.nnodes=1"), Program::verl);
}

TEST(ReadWords, LengthsThatContradictEachOtherAreRefused) {
  const auto read = [](std::map<std::string, std::string> options) {
    PostTrainingRequest request;
    request.training.summary = "config.json";
    return read_words({.options = std::move(options)}, request);
  };
  EXPECT_TRUE(succeeds(read({{"seq_length", "96"}, {"prompt_length", "32"}, {"completion_length", "64"}})));
  EXPECT_TRUE(succeeds(read({{"seq_length", "512"}, {"completion_length", "64"}})));
  EXPECT_TRUE(fails(read({{"seq_length", "512"}, {"prompt_length", "32"}, {"completion_length", "64"}}),
                    core::ErrorCode::invalid_argument, 0, "leave one of them out"));
}

TEST(Buckets, FollowTheWidth) {
  model::Layout layout;
  set_buckets(layout, 100);
  EXPECT_EQ(layout.zero_reduce_bucket, 10'000);
  EXPECT_EQ(layout.zero_prefetch_bucket, 9'000);
  EXPECT_EQ(layout.zero_persistence_threshold, 1'000);
}

TEST(PostTrainingWords, TrainersAndExamplesWithoutRulesAreNamed) {
  const auto fails_with = [](const std::vector<std::string>& command, std::string_view part) {
    PostTrainingRequest request;
    const PostTrainingWords words = {.command = command};
    return fails(read_words(words, request), core::ErrorCode::missing_information, 0, part);
  };
  EXPECT_TRUE(fails_with({"python", "examples/scripts/tpo.py", "--model_name_or_path", "m"}, "known: 'tpo'"));
  EXPECT_TRUE(fails_with({"python", "examples/scripts/openenv/echo.py", "--model", "m"}, "the algorithm"));
  PostTrainingRequest request;
  const std::vector<std::string> command = {"axolotl", "train", "gone.yaml", "--rl", "dpo"};
  const PostTrainingWords words = {.command = command, .options = {{"seq_length", "8"}}};
  EXPECT_TRUE(fails(read_words(words, request), core::ErrorCode::invalid_argument, 0, "config.json"));
  EXPECT_TRUE(std::any_of(request.assumed.begin(), request.assumed.end(), [](const estimate::Assumption& line) {
    return line.text.find("config gone.yaml is not modelled") != std::string::npos;
  }));
}

TEST(LaunchSettings, ACommandOfPostTrainingIsTold) {
  const auto starts = [](const std::vector<std::string>& words) { return starts_post_training(words); };
  EXPECT_TRUE(starts({"NPROC_PER_NODE=4", "swift", "rlhf", "--rlhf_type", "dpo"}));
  EXPECT_TRUE(starts({"/usr/bin/megatron", "rlhf", "--rlhf_type", "dpo"}));
  EXPECT_TRUE(starts({"python3", "-m", "verl.trainer.main_ppo", "a.b=1"}));
  EXPECT_TRUE(starts({"accelerate", "launch", "--num_processes", "8", "trl/scripts/grpo.py"}));
  EXPECT_TRUE(starts({"ray", "job", "submit", "--", "python3", "-m", "openrlhf.cli.train_ppo_ray"}));
  EXPECT_FALSE(starts({"trl", "sft", "--model_name_or_path", "m"})) << "a plain training";
  EXPECT_FALSE(starts({"swift", "sft", "--model", "m"}));
  EXPECT_FALSE(starts({"torchrun", "train.py", "--x", "1"}));
  EXPECT_FALSE(starts({}));
}

TEST(LauncherWords, OneRayStartsNoOtherOne) {
  std::vector<std::string> words;
  for (int again = 0; again < 200'000; ++again) words.insert(words.end(), {"ray", "job"});
  const LauncherWords read = read_launcher(words);
  EXPECT_EQ(read.launcher, Launcher::ray);
  EXPECT_EQ(read.begin, 4U);
  const std::vector<std::string> within = {"A=1", "ray", "job",      "submit",           "--address", "x",
                                           "--",  "B=2", "torchrun", "--nproc_per_node", "8",         "train.py"};
  const LauncherWords inner = read_launcher(within);
  EXPECT_EQ(inner.launcher, Launcher::torchrun);
  EXPECT_EQ(inner.begin, within.size() - 1);
  ASSERT_EQ(inner.settings.size(), 1U) << "Ray's own say nothing of the job";
  EXPECT_EQ(inner.settings[0].key, "nproc_per_node");
  ASSERT_EQ(inner.environment.size(), 2U);
  EXPECT_EQ(inner.environment[1].key, "B");
}

TEST(LauncherWords, AProgramsOwnWordsAreNoVariables) {
  const LauncherWords own = read_launcher(std::vector<std::string>{"C=0", "myprog", "A=1"});
  EXPECT_EQ(own.begin, 1U);
  ASSERT_EQ(own.environment.size(), 1U);
  EXPECT_EQ(own.environment[0].key, "C");
  const LauncherWords scheduled = read_launcher(std::vector<std::string>{"srun", "-N1", "A=1", "torchrun", "x.py"});
  EXPECT_EQ(scheduled.launcher, Launcher::torchrun);
  EXPECT_EQ(scheduled.environment.size(), 1U);
}

TEST(LauncherWords, UseEnvIsASwitch) {
  const std::vector<std::string> words = {"python", "-m", "torch.distributed.launch", "--use_env", "train.py"};
  const LauncherWords read = read_launcher(words);
  EXPECT_EQ(read.begin, words.size() - 1);
  ASSERT_EQ(read.settings.size(), 1U);
  EXPECT_EQ(read.settings[0].value, "true");
}

TEST(ProgramWords, AKeyHasTheWordsUpToTheNextOne) {
  const std::vector<std::string> words = {
      "train.py", "--config-name", "big.yaml", "a.b=1", "+c=x=y",    "--list",           "one", "two", "--switch",
      "--lr=-1",  "--low",         "-2",       "--",    "/data/x=1", "rllm/backend=verl"};
  const ProgramWords read = read_program(words);
  ASSERT_EQ(read.settings.size(), 8U);
  EXPECT_EQ(read.settings[0].key, "config_name");
  EXPECT_EQ(read.settings[0].values, std::vector<std::string>{"big.yaml"});
  EXPECT_EQ(read.settings[1].key, "a.b");
  EXPECT_EQ(read.settings[2].key, "c");
  EXPECT_EQ(read.settings[2].values, std::vector<std::string>{"x=y"});
  EXPECT_EQ(read.settings[3].values, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(read.settings[4].values.empty());
  EXPECT_EQ(read.settings[6].values, std::vector<std::string>{"-2"});
  EXPECT_EQ(read.settings[7].key, "rllm/backend");
  EXPECT_EQ(read.standing, (std::vector<std::string>{"train.py", "/data/x=1"}));
  EXPECT_EQ(read.before, 1U);
}

TEST(LaunchSettings, WhatTheShellLeavesIsNoWord) {
  EXPECT_TRUE(succeeds(launch_settings(std::vector<std::string>{"main_ppo", "a.b=1", " ", "c.d=2", "\\"})));
  EXPECT_TRUE(fails(launch_settings(std::vector<std::string>{"main_ppo", "a.b=1", "q", "c.d=2"}),
                    core::ErrorCode::invalid_argument, 0, "'q'"));
}

TEST(LaunchSettings, AScriptsNameSaysItsAlgorithm) {
  for (const auto& [script, algorithm] :
       {std::pair("examples/scripts/dpo_vlm.py", "dpo"), std::pair("ppo/ppo_tldr.py", "ppo"),
        std::pair("scripts/run_orpo.py", "orpo"), std::pair("reward_modeling.py", "rm"),
        std::pair("verl.trainer.fsdp_sft_trainer", "sft"), std::pair("openrlhf.cli.train_ppo_ray", "ppo")}) {
    const auto settings = launch_settings(std::vector<std::string>{"python", script, "--x", "1"});
    ASSERT_TRUE(succeeds(settings));
    ASSERT_EQ(settings->size(), 2U) << script;
    EXPECT_EQ((*settings)[0].value, algorithm);
  }
}

TEST(ReadWords, TheCommandSaysWhoseItIs) {
  const auto asked = [](const std::vector<std::string>& command, PostTrainingRequest& request) {
    request.training.summary = "config.json";
    return read_words({.command = command}, request);
  };
  PostTrainingRequest request;
  ASSERT_TRUE(succeeds(asked({"trl", "dpo", "--config", "dpo.yaml"}, request)));
  EXPECT_EQ(request.options.program, Program::trl);
  EXPECT_TRUE(fails(asked({"bash", "run_dpo.sh"}, request), core::ErrorCode::invalid_argument, 0, "is a script"));
  EXPECT_TRUE(fails(asked({"torchrun", "-m", "verl.trainer.fsdp_sft_trainer", "model.partial_pretrain=m"}, request),
                    core::ErrorCode::invalid_argument, 0, "supervised"));
}

TEST(ReadWords, FurtherModelsOfSettingsNeedNotBeThere) {
  PostTrainingRequest request;
  request.training.summary = "config.json";
  const std::vector<std::string> command = {"main_ppo",
                                            "algorithm.adv_estimator=gae",
                                            "actor_rollout_ref.model.path=/models/a",
                                            "critic.model.path=/models/a",
                                            "reward_model.enable=True",
                                            "reward_model.model.path=/models/b"};
  ASSERT_TRUE(succeeds(read_words({.command = command}, request)));
  EXPECT_EQ(request.options.critic_model, "") << "the policy's";
  EXPECT_EQ(request.options.reward_model, "b");
  EXPECT_EQ(request.named, std::vector<std::string>{"b"});
}

/// The request of a command; an assumption of it that holds `text`.
PostTrainingRequest request_of(const std::vector<std::string>& command) {
  PostTrainingRequest request;
  EXPECT_TRUE(succeeds(read_words({.command = command}, request)));
  return request;
}
bool request_says(const PostTrainingRequest& request, std::string_view text) {
  return std::any_of(request.assumed.begin(), request.assumed.end(),
                     [&](const auto& line) { return line.text.find(text) != std::string::npos; });
}

TEST(ReadWords, AFolderOfAnotherMachineSaysItsModelByName) {
  const std::string key = "actor_rollout_ref.model.path=";
  const auto of = [&](const std::string& path) {
    return request_of({"python", "-m", "verl.trainer.main_ppo", "algorithm.adv_estimator=grpo", key + path,
                       "reward_model.enable=true", "reward_model.model.path=$MODELS/" + std::string("$REWARD")});
  };
  for (const char* path : {"$HOME/models/Qwen3-8B", "/no/such/folder/Qwen3-8B/", "~/Qwen3-8B"}) {
    EXPECT_EQ(of(path).training.summary, "Qwen3-8B");
    EXPECT_TRUE(request_says(of(path), "is not here; a published model of its name is looked for"));
  }
  EXPECT_EQ(of("Qwen/Qwen3-8B").training.summary, "Qwen/Qwen3-8B");
  EXPECT_EQ(of("/no/such/folder/config.json").training.summary, "/no/such/folder/config.json");
  EXPECT_FALSE(of("Qwen/Qwen3-8B").options.reward_model.empty()) << "it is there, whatever it is";
  EXPECT_TRUE(request_says(of("Qwen/Qwen3-8B"), "is served by an engine of its own"));
}

TEST(ReadWords, MegatronsCommandIsKnownByItsNameAndItsKeys) {
  const std::vector<std::string> settings = {"rlhf",          "--rlhf_type",    "grpo", "--model",
                                             "Qwen/Qwen3-8B", "--padding_free", "true"};
  const auto program_of_command = [&](std::vector<std::string> words) {
    words.insert(words.end(), settings.begin(), settings.end());
    return request_of(words).options.program;
  };
  EXPECT_EQ(program_of_command({"NPROC_PER_NODE=8", "megatron"}), Program::megatron);
  EXPECT_EQ(program_of_command({"NPROC_PER_NODE=8", "swift"}), Program::ms_swift);
  const std::vector<LaunchSetting> keys = {{"rlhf_type", "grpo"}, {"tensor_model_parallel_size", "2"}};
  EXPECT_EQ(program_of(keys), Program::megatron);
}

TEST(ReadWords, AFileOfHydrasThatWasNotReadIsNamed) {
  const auto of = [](const std::string& name) {
    return request_of({"python", "-m", "verl.trainer.main_ppo", "--config-path", "no/such", "--config-name", name,
                       "algorithm.adv_estimator=grpo", "actor_rollout_ref.model.path=Qwen/Qwen3-8B",
                       "trainer.n_gpus_per_node=1"});
  };
  EXPECT_TRUE(request_says(of("gsm8k_multiturn_grpo"), "config_name gsm8k_multiturn_grpo is not modelled"));
  EXPECT_FALSE(request_says(of("ppo_trainer.yaml"), "is not modelled"));
  EXPECT_EQ(of("ppo_megatron_trainer").options.program, Program::verl_megatron);
  const model::TrainingJob one = of("ppo_trainer").training.training;
  EXPECT_EQ(one.precision, model::Precision::bf16_mixed) << "FSDP casts on one GPU, too";
  EXPECT_EQ(one.layout.sharding.kind, model::Shardings::fsdp2);
}

}  // namespace
}  // namespace gpumem::posttrain
