#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "expect.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;

Launch launched(Program program, const std::vector<std::string>& words, std::int64_t gpus = 0) {
  const auto settings = launch_settings(words);
  EXPECT_TRUE(succeeds(settings));
  if (!settings) return {};
  auto launch = read_launch(program, *settings, gpus);
  EXPECT_TRUE(succeeds(launch));
  return launch ? *std::move(launch) : Launch();
}

/// Whether this is missing, and needed.
bool lacks(const Launch& launch, std::string_view what) {
  return std::any_of(launch.missing.begin(), launch.missing.end(),
                     [&](const MissingSetting& at) { return at.what.find(what) != std::string::npos && at.required; });
}

TEST(LaunchSettings, ReadEveryFormOfWords) {
  const std::vector<std::string> words = {"NPROC_PER_NODE=4", "swift",     "rlhf",      "--rlhf_type", "dpo",
                                          "--max-length=512", "--packing", "--dataset", "a",           "b"};
  const auto settings = launch_settings(words);
  ASSERT_TRUE(succeeds(settings));
  std::string text;
  for (const LaunchSetting& at : *settings) text += at.key + "=" + at.value + ";";
  EXPECT_EQ(text, "env:NPROC_PER_NODE=4;rlhf_type=dpo;max_length=512;packing=true;dataset=a+b;");
  const std::vector<std::string> hydra = {"python3", "-m", "verl.trainer.main_ppo", "+data.x='a'", "b.c=1", "stray"};
  EXPECT_TRUE(fails(launch_settings(hydra), core::ErrorCode::invalid_argument, 0, "stray"));
}

TEST(Launch, AScriptsNameTellsTheAlgorithm) {
  const Launch launch = launched(Program::trl, {"python", "trl/scripts/kto.py", "--model_name_or_path", "m",
                                                "--per_device_train_batch_size", "2", "--max_length", "1024"});
  EXPECT_EQ(launch.request.options.algorithm, Algorithm::kto);
  EXPECT_EQ(launched(Program::trl, {"trl", "reward", "--model_name_or_path", "m"}).request.options.algorithm,
            Algorithm::reward);
}

TEST(LaunchSettings, ALaunchersOwnSettingsEndWithTheProgram) {
  const auto text_of = [](const std::vector<std::string>& words) {
    const auto settings = launch_settings(words);
    EXPECT_TRUE(succeeds(settings));
    std::string text;
    if (!settings) return text;
    for (const LaunchSetting& at : *settings) text += at.key + "=" + at.value + ";";
    return text;
  };
  EXPECT_EQ(text_of({"accelerate", "launch", "--num_processes", "4", "trl/scripts/grpo.py", "--reward_funcs", "a.py"}),
            "num_processes=4;trainer=grpo;reward_funcs=a.py;");
  EXPECT_EQ(text_of({"accelerate", "launch", "--multi_gpu", "my.py", "--x", "1"}), "multi_gpu=true;x=1;");
  EXPECT_EQ(text_of({"deepspeed", "--module", "openrlhf.cli.train_dpo", "--pretrain", "m"}), "trainer=dpo;pretrain=m;");
  EXPECT_EQ(text_of({"torchrun", "--nproc_per_node=2", "-m", "openrlhf.cli.train_kto", "--pretrain", "m"}),
            "nproc_per_node=2;trainer=kto;pretrain=m;");
  EXPECT_EQ(text_of({"ray", "job", "submit", "--address=x", "--", "python3", "-m", "openrlhf.cli.train_ppo_ray",
                     "--pretrain", "m"}),
            "trainer=ppo;pretrain=m;");
  EXPECT_EQ(text_of({"srun", "-N1", "env", "X=1", "torchrun", "--standalone", "kto.py", "--beta=1"}),
            "env:X=1;standalone=true;trainer=kto;beta=1;")
      << "what stands before a launcher is not read";
}

TEST(Launch, AnAlgorithmThatIsNotKnownIsMissing) {
  const auto algorithm = [](Program program, const std::vector<std::string>& words) {
    const Launch launch = launched(program, words);
    return lacks(launch, "algorithm") ? "none" : std::string(row_of(launch.request.options.algorithm).name);
  };
  EXPECT_EQ(algorithm(Program::ms_swift, {"--rlhf_type", "foo"}), "none");
  EXPECT_EQ(algorithm(Program::trl, {"--model_name_or_path", "m"}), "none");
  EXPECT_EQ(algorithm(Program::verl, {"algorithm.adv_estimator=new"}), "none");
  EXPECT_EQ(algorithm(Program::verl, {"algorithm.adv_estimator=opo"}), "grpo") << "it has no critic";
  EXPECT_EQ(algorithm(Program::verl, {"actor_rollout_ref.model.path=m"}), "ppo") << "its default";
  EXPECT_EQ(algorithm(Program::openrlhf, {"--pretrain", "m"}), "none");
  EXPECT_EQ(algorithm(Program::openrlhf, {"--pretrain", "m", "--prompt_max_len", "512"}), "ppo");
  EXPECT_EQ(algorithm(Program::openrlhf, {"deepspeed", "--module", "openrlhf.cli.train_dpo", "--pretrain", "m"}),
            "dpo");
  EXPECT_EQ(algorithm(Program::openrlhf, {"openrlhf.cli.train_ppo_ray", "--advantage_estimator", "rloo"}), "grpo");
}

TEST(Launch, AScriptsNameIsKnownToEveryProgram) {
  const std::vector<std::string> words = {"deepspeed", "--num_gpus", "8", "--module", "openrlhf.cli.train_dpo"};
  for (const auto& [program, name] : kPrograms) {
    if (program >= Program::nemo_rl) continue;  // their sections say the algorithm
    const Launch launch = launched(program, words);
    EXPECT_TRUE(launch.unknown.empty()) << name;
    EXPECT_EQ(launch.request.options.algorithm, Algorithm::dpo) << name;
  }
}

TEST(Launch, LaunchersSayHowManyGpus) {
  const auto gpus = [](const std::vector<std::string>& words) { return launched(Program::trl, words).gpus; };
  EXPECT_EQ(gpus({"accelerate", "launch", "--num_processes", "4", "--num_machines", "2", "dpo.py", "--beta", "1"}), 4);
  EXPECT_EQ(gpus({"torchrun", "--nnodes", "2", "--nproc_per_node", "8", "dpo.py", "--beta", "1"}), 16);
  const Launch sharded = launched(Program::trl, {"accelerate", "launch", "--config_file", "a/deepspeed_zero3.yaml",
                                                 "--num_processes", "8", "dpo.py", "--beta", "1"});
  EXPECT_EQ(sharded.request.training.training.layout.sharding.kind, model::Shardings::zero_3);
}

TEST(Launch, ALayoutThatDoesNotDivideTheGpusIsRefused) {
  const auto read = [](std::string key, std::string value, std::int64_t gpus) {
    const std::vector<LaunchSetting> settings = {
        {"rlhf_type", "dpo"}, {"micro_batch_size", "1"}, {std::move(key), std::move(value)}};
    return read_launch(Program::megatron, settings, gpus);
  };
  for (const char* const key :
       {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"}) {
    EXPECT_TRUE(fails(read(key, "0", 0), core::ErrorCode::invalid_argument, 0, "below 1")) << key;
    EXPECT_TRUE(fails(read(key, "3", 4), core::ErrorCode::invalid_argument, 0, "do not divide 4")) << key;
    EXPECT_TRUE(succeeds(read(key, "2", 4))) << key;
  }
}

TEST(Launch, ProgramsAreToldByTheirKeys) {
  const auto program = [](const std::vector<std::string>& words) { return program_of(*launch_settings(words)); };
  EXPECT_EQ(program({"swift", "rlhf", "--rlhf_type", "dpo"}), Program::ms_swift);
  EXPECT_EQ(program({"megatron", "rlhf", "--rlhf_type", "dpo", "--micro_batch_size", "1"}), Program::megatron);
  EXPECT_EQ(program({"actor_rollout_ref.model.path=m"}), Program::verl);
  EXPECT_EQ(program({"--pretrain", "m"}), Program::openrlhf);
  EXPECT_EQ(program({"--model_name_or_path", "m"}), Program::trl);
  EXPECT_EQ(program({"--x", "m"}), std::nullopt);
}

TEST(Launch, AVerlRowHoldsNoMoreThanAMiniBatch) {
  const auto row = [](const std::string& mini_batch) {
    return launched(Program::verl, {"algorithm.adv_estimator=grpo", "actor_rollout_ref.actor.use_dynamic_bsz=True",
                                    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=5000",
                                    "data.max_prompt_length=100", "data.max_response_length=28",
                                    "actor_rollout_ref.rollout.n=2", "trainer.n_gpus_per_node=1", mini_batch})
        .request.training.training.sequence_length;
  };
  EXPECT_EQ(row("actor_rollout_ref.actor.ppo_mini_batch_size=16"), 16 * 2 * 128);
  EXPECT_EQ(row("actor_rollout_ref.actor.ppo_mini_batch_size=64"), 5000);
}

TEST(Launch, KtosPassesShareAPackedRow) {
  const auto row = [](const std::string& algorithm) {
    return launched(Program::ms_swift, {"--rlhf_type", algorithm, "--packing", "true", "--max_length", "8192"})
        .request.training.training.sequence_length;
  };
  EXPECT_EQ(row("kto"), 4096);
  EXPECT_EQ(row("dpo"), 8192) << "both answers of a pair are in one row";
}

TEST(Launch, MsSwiftsPackedDpo) {
  const Launch launch = launched(Program::ms_swift, {"NPROC_PER_NODE=4",
                                                     "swift",
                                                     "rlhf",
                                                     "--rlhf_type",
                                                     "dpo",
                                                     "--model",
                                                     "some/model",
                                                     "--tuner_type",
                                                     "full",
                                                     "--per_device_train_batch_size",
                                                     "1",
                                                     "--max_length",
                                                     "8192",
                                                     "--packing",
                                                     "true",
                                                     "--deepspeed",
                                                     "zero3",
                                                     "--attn_impl",
                                                     "flash_attn",
                                                     "--gradient_accumulation_steps",
                                                     "1"});
  EXPECT_EQ(launch.model, "some/model");
  EXPECT_TRUE(launch.missing.empty() && launch.unknown.empty() && launch.not_modelled.empty());
  const model::TrainingJob& job = launch.request.training.training;
  EXPECT_EQ(job.batch_size, 1);
  EXPECT_EQ(job.sequence_length, 8192);
  EXPECT_EQ(job.layout.data_parallel, 4);
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::zero_3);
  EXPECT_EQ(job.precision, model::Precision::bf16_mixed);
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_EQ(job.attention, model::AttentionBackend::flash);
  EXPECT_TRUE(launch.request.options.packing);
  EXPECT_EQ(launch.request.options.program, Program::ms_swift);
}

TEST(Launch, ALimitIsNoLength) {
  const Launch launch =
      launched(Program::ms_swift, {"--rlhf_type", "dpo", "--per_device_train_batch_size", "1", "--max_length", "2048"});
  ASSERT_EQ(launch.missing.size(), 2U) << "and the passes of a step";
  EXPECT_NE(launch.missing[0].what.find("1,024 tokens are taken, and max_length 2048 for the upper end"),
            std::string::npos);
  EXPECT_FALSE(launch.missing[0].required);
  EXPECT_EQ(launch.request.training.training.sequence_length, 1024);
  EXPECT_EQ(launch.request.options.length_limit, 2048);
  const Launch shorter =
      launched(Program::ms_swift, {"--rlhf_type", "dpo", "--per_device_train_batch_size", "1", "--max_length", "512"});
  EXPECT_EQ(shorter.request.training.training.sequence_length, 512);
  EXPECT_EQ(shorter.request.options.length_limit, std::nullopt);
}

TEST(Launch, SamplesWithoutPaddingAreOneRow) {
  const auto row = [](Program program, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--rlhf_type", "dpo", "--max_length", "2048"};
    words.insert(words.end(), more.begin(), more.end());
    return launched(program, words);
  };
  const Launch swift = row(Program::ms_swift, {"--per_device_train_batch_size", "4", "--padding_free", "true"});
  EXPECT_TRUE(swift.request.options.packing);
  EXPECT_EQ(swift.request.training.training.batch_size, 1);
  EXPECT_EQ(swift.request.training.training.sequence_length, 8 * 1024) << "pairs";
  EXPECT_EQ(swift.request.options.length_limit, 8 * 2048);
  const Launch megatron = row(Program::megatron, {"--micro_batch_size", "2", "--global_batch_size", "8"});
  EXPECT_EQ(megatron.request.training.training.sequence_length, 4 * 1024) << "Megatron's default";
  EXPECT_EQ(megatron.request.training.training.gradient_accumulation, 4) << "of samples, not of rows";
  const Launch padded = row(Program::megatron, {"--micro_batch_size", "2", "--padding_free", "false"});
  EXPECT_EQ(padded.request.training.training.batch_size, 2);
}

TEST(Launch, ImagesTakeTheirTokensOfALikelyLength) {
  const Launch launch = launched(Program::ms_swift, {"MAX_PIXELS=784000", "swift", "rlhf", "--rlhf_type", "dpo",
                                                     "--per_device_train_batch_size", "1", "--max_length", "8192"});
  EXPECT_EQ(launch.request.training.training.sequence_length, 1024 + 1000);
  EXPECT_EQ(launch.request.training.training.image, (std::vector<std::int64_t>{868, 868}));
}

TEST(Launch, LoraInMegatronLeavesRoutersOut) {
  const Launch launch =
      launched(Program::megatron, {"--rlhf_type", "dpo", "--micro_batch_size", "1", "--tuner_type", "lora",
                                   "--optimizer_cpu_offload", "true", "--optimizer_offload_fraction", "0.4"});
  EXPECT_EQ(launch.request.training.training.lora, 8);
  EXPECT_EQ(launch.request.training.training.lora_targets, "all-linear+not:router");
  EXPECT_EQ(launch.request.options.states_on_host, 0.4);
  EXPECT_EQ(launch.request.training.training.offload, model::Offload::none);
}

TEST(Launch, MsSwiftsGrpoBesideVllm) {
  const Launch launch = launched(Program::ms_swift, {"--rlhf_type",
                                                     "grpo",
                                                     "--use_vllm",
                                                     "true",
                                                     "--vllm_mode",
                                                     "colocate",
                                                     "--sleep_level",
                                                     "1",
                                                     "--vllm_gpu_memory_utilization",
                                                     "0.5",
                                                     "--vllm_tensor_parallel_size",
                                                     "4",
                                                     "--offload_model",
                                                     "true",
                                                     "--offload_optimizer",
                                                     "true",
                                                     "--max_completion_length",
                                                     "512",
                                                     "--max_length",
                                                     "1024",
                                                     "--per_device_train_batch_size",
                                                     "2",
                                                     "--beta",
                                                     "0.0"});
  const PostTrainingOptions& options = launch.request.options;
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(options.rollout, Rollout::colocated);
  EXPECT_EQ(options.gpu_memory_utilization, 0.5);
  EXPECT_EQ(options.rollout_tensor_parallel, 4);
  EXPECT_EQ(options.sleep_level, 1);
  EXPECT_EQ(options.offload, Waiting::both);
  EXPECT_EQ(options.reference, Reference::none);
  EXPECT_EQ(options.completion_length, 512);
  EXPECT_EQ(launch.request.training.training.lora, 8) << "ms-swift's default";
  const model::Layout layout = launched(Program::ms_swift, {"--rlhf_type", "grpo"}, 2).request.training.training.layout;
  EXPECT_EQ(layout.sharding.kind, model::Shardings::ddp) << "there is no DeepSpeed";
}

TEST(Launch, MegatronSharesModelAndStates) {
  const Launch launch =
      launched(Program::megatron,
               {"--rlhf_type", "kto", "--micro_batch_size", "1", "--tensor_model_parallel_size", "4", "--packing",
                "true", "--max_length", "8192", "--recompute_granularity", "full", "--sequence_parallel", "true"},
               8);
  const model::TrainingJob& job = launch.request.training.training;
  EXPECT_EQ(job.layout.tensor_parallel, 4);
  EXPECT_EQ(job.layout.data_parallel, 2);
  EXPECT_TRUE(job.layout.sequence_parallel);
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::distributed_optimizer);
  EXPECT_FALSE(job.has_adapters()) << "full is its default";
}

TEST(Launch, VerlsOverrides) {
  const Launch launch =
      launched(Program::verl,
               {"algorithm.adv_estimator=grpo", "actor_rollout_ref.model.path=some/model", "data.max_prompt_length=512",
                "data.max_response_length=1024", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
                "actor_rollout_ref.actor.use_kl_loss=True", "actor_rollout_ref.rollout.name=vllm",
                "actor_rollout_ref.rollout.gpu_memory_utilization=0.6",
                "actor_rollout_ref.actor.fsdp_config.param_offload=False",
                "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True", "trainer.n_gpus_per_node=8",
                "trainer.nnodes=1", "actor_rollout_ref.ref.fsdp_config.param_offload=True"});
  const PostTrainingOptions& options = launch.request.options;
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(options.reference, Reference::own);
  EXPECT_TRUE(options.reference_offload);
  EXPECT_EQ(options.offload, Waiting::optimizer);
  EXPECT_EQ(options.sleep_level, 2);
  EXPECT_EQ(launch.request.training.training.layout.data_parallel, 8);
  EXPECT_EQ(launch.request.training.training.layout.sharding.kind, model::Shardings::fsdp1);
  EXPECT_TRUE(launch.missing.empty());
}

TEST(Launch, UnknownKeysAndWhatIsNotModelledAreNamed) {
  const Launch launch = launched(Program::verl, {"algorithm.adv_estimator=grpo", "actor_rollout_ref.actor.new_thing=1",
                                                 "actor_rollout_ref.actor.strategy=veomni",
                                                 "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$size"});
  EXPECT_EQ(launch.unknown, std::vector<std::string>{"actor_rollout_ref.actor.new_thing"});
  EXPECT_EQ(launch.not_modelled, std::vector<std::string>{"actor_rollout_ref.actor.strategy veomni"});
  ASSERT_FALSE(launch.missing.empty()) << "a variable of the shell is not known here";
  EXPECT_NE(launch.missing[0].what.find("dynamic batches of 16,384 tokens"), std::string::npos);
}

TEST(Launch, TheMicroBatchIsTheProgramsWhereNobodySaysIt) {
  const auto batch = [](Program program, const std::vector<std::string>& words) {
    return launched(program, words).request.training.training.batch_size;
  };
  EXPECT_EQ(batch(Program::trl, {"trl", "dpo"}), 8);
  EXPECT_EQ(batch(Program::ms_swift, {"--rlhf_type", "dpo"}), 1);
  EXPECT_EQ(batch(Program::openrlhf, {"openrlhf.cli.train_ppo_ray", "--prompt_max_len", "64"}), 4);
}

TEST(Launch, MsSwiftAccumulatesSixteenSamplesWhereNobodySaysThePasses) {
  const auto passes = [](const std::vector<std::string>& more, std::int64_t gpus) {
    std::vector<std::string> words = {"--per_device_train_batch_size", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return launched(Program::ms_swift, words, gpus).request.training.training.gradient_accumulation;
  };
  EXPECT_EQ(passes({"--rlhf_type", "dpo"}, 1), 8);
  EXPECT_EQ(passes({"--rlhf_type", "dpo"}, 3), 3) << "rounded up";
  EXPECT_EQ(passes({"--rlhf_type", "dpo"}, 16), 1);
  EXPECT_EQ(passes({"--rlhf_type", "dpo", "--gradient_accumulation_steps", "$(expr 16 / 2)"}, 2), 4);
  EXPECT_EQ(passes({"--rlhf_type", "dpo", "--gradient_accumulation_steps", "5"}, 2), 5);
  EXPECT_EQ(passes({"--rlhf_type", "grpo"}, 1), 1);
}

TEST(Launch, LigersLossIsThatOfSomeTrainers) {
  const auto fuses = [](Program program, const std::string& algorithm) {
    const auto job = launched(program, {"--rlhf_type", algorithm, "--use_liger_kernel", "true"}).request.training;
    EXPECT_EQ(job.training.kernels, model::Kernels::liger);
    return job.training.loss_form.kind == model::LossForms::fused;
  };
  EXPECT_TRUE(fuses(Program::trl, "dpo"));
  EXPECT_TRUE(fuses(Program::trl, "kto"));
  EXPECT_TRUE(fuses(Program::trl, "grpo"));
  EXPECT_TRUE(!fuses(Program::trl, "orpo") && fuses(Program::ms_swift, "grpo"));
  EXPECT_FALSE(fuses(Program::ms_swift, "dpo")) << "its layers alone";
}

TEST(Launch, UnslothHasDefaultsOfItsOwn) {
  const auto unsloth = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--rlhf_type", "grpo"};
    words.insert(words.end(), more.begin(), more.end());
    return launched(Program::unsloth, words).request;
  };
  const PostTrainingRequest usual = unsloth({});
  EXPECT_EQ(usual.training.training.batch_size, 4);
  EXPECT_EQ(usual.training.training.gradient_accumulation, 2);
  EXPECT_EQ(usual.training.training.optimizer, model::Optimizer::adamw_8bit);
  EXPECT_EQ(usual.options.reference, Reference::own) << "its beta is not 0";
  EXPECT_EQ(unsloth({"--num_generations", "6"}).training.training.batch_size, 6) << "a step holds whole groups";
  EXPECT_EQ(unsloth({"--beta", "0.0"}).options.reference, Reference::none);
}

TEST(Launch, VerlsEnginesEntropyAndSequenceRanks) {
  const std::string actor = "actor_rollout_ref.actor.";
  const auto options = [&](std::vector<std::string> words) {
    words.push_back("algorithm.adv_estimator=grpo");
    return launched(Program::verl, words).request.options;
  };
  EXPECT_EQ(options({"actor_rollout_ref.rollout.name=sglang"}).engine, Engine::sglang);
  EXPECT_EQ(options({"actor_rollout_ref.hybrid_engine=False"}).rollout, Rollout::elsewhere);
  EXPECT_EQ(options({"actor_rollout_ref.rollout.nnodes=1"}).rollout, Rollout::elsewhere);
  EXPECT_EQ(options({actor + "ulysses_sequence_parallel_size=4"}).sequence_ranks, 4);
  EXPECT_EQ(options({actor + "entropy_coeff=0.0"}).entropy, Entropy::none);
  EXPECT_EQ(options({actor + "entropy_coeff=0.01"}).entropy, Entropy::fused);
  EXPECT_EQ(options({actor + "entropy_coeff=0.01", actor + "use_torch_compile=False"}).entropy, Entropy::whole);
  EXPECT_EQ(options({actor + "entropy_coeff=0.01", actor + "entropy_from_logits_with_chunking=True"}).entropy,
            Entropy::chunked);
}

TEST(Launch, EveryKeyThatIsHandledByNameIsRead) {
  const auto text_of = [](const std::string& name) {
    std::ifstream file(std::string(GPUMEM_SOURCE_DIR) + "/include/gpumem/posttrain/impl/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string restated = text_of("launch_restated_inl.hpp");
  const std::string keys = text_of("launch_keys_inl.hpp") + text_of("launch_keys_verl_inl.hpp") + restated;
  const std::string reader = text_of("launch_read_inl.hpp") + text_of("launch_setting_inl.hpp") +
                             text_of("launch_others_inl.hpp") + restated.substr(restated.find("class Interpolation"));
  const std::regex named("\\{\"([^\"]+)\", named\\}");
  std::size_t count = 0;
  for (std::sregex_iterator at(keys.begin(), keys.end(), named), end; at != end; ++at, ++count) {
    const std::string key = (*at)[1];
    // verl's log-prob passes have the name behind "ref." and "rollout.".
    const bool passes = key.find(".log_prob_") != std::string::npos;
    const std::string word = passes ? key.substr(key.rfind('.') + 1) : key;
    const bool group = word.ends_with('*');
    const std::string last = group ? "\"" + word.substr(0, word.size() - 1) : word.substr(word.rfind('.') + 1) + "\"";
    const bool joins = (group || word.find('.') != std::string::npos) && reader.find(last) != std::string::npos;
    EXPECT_TRUE(joins || reader.find("\"" + word + "\"") != std::string::npos) << key;
  }
  EXPECT_GT(count, 50U);
}

TEST(Launch, WhatChangesMemoryIsNotDropped) {
  const auto not_modelled = [](Program program, const std::string& key, const std::string& value) {
    const std::vector<LaunchSetting> settings = {{key, value}};
    const auto launch = read_launch(program, settings);
    return launch && launch->not_modelled == std::vector<std::string>{key + " " + value};
  };
  const std::string actor = "actor_rollout_ref.actor.";
  EXPECT_TRUE(not_modelled(Program::verl, "actor_rollout_ref.rollout.name", "trtllm"));
  EXPECT_FALSE(not_modelled(Program::verl, "actor_rollout_ref.rollout.name", "vllm"));
  EXPECT_TRUE(not_modelled(Program::verl, actor + "strategy", "veomni"));
  EXPECT_FALSE(not_modelled(Program::verl, actor + "strategy", "megatron"));
  EXPECT_FALSE(not_modelled(Program::verl, actor + "strategy", "fsdp2"));
  EXPECT_TRUE(not_modelled(Program::ms_swift, "vit_gradient_checkpointing", "false"));
  EXPECT_TRUE(not_modelled(Program::ms_swift, "freeze_aligner", "false"));
  EXPECT_FALSE(not_modelled(Program::trl, "bf16", "false")) << "it is float32";
  EXPECT_TRUE(not_modelled(Program::verl, actor + "optim.optimizer", "Muon"));
  EXPECT_TRUE(not_modelled(Program::megatron, "exp_avg_dtype", "bf16"));
  const std::vector<LaunchSetting> others = {{"peft_config.use_odd", "true"}, {actor + "optimizer", "x"}};
  EXPECT_EQ(read_launch(Program::trl, std::span(others).first(1))->unknown.size(), 1U);
  EXPECT_EQ(read_launch(Program::verl, std::span(others).last(1))->unknown.size(), 1U);
}

TEST(Launch, TrlsNestedSettingsAreRead) {
  const std::vector<LaunchSetting> settings = {{"trainer", "DPOTrainer"},
                                               {"peft_config.r", "64"},
                                               {"peft_config.target_modules", "q_proj+v_proj"},
                                               {"model_init_kwargs.torch_dtype", "float16"},
                                               {"num_processes", "2"},
                                               {"deepspeed_config_file", "zero2.json"}};
  const auto launch = read_launch(Program::trl, settings);
  ASSERT_TRUE(succeeds(launch));
  const model::TrainingJob& job = launch->request.training.training;
  EXPECT_TRUE(launch->unknown.empty());
  EXPECT_EQ(job.lora, 64);
  EXPECT_EQ(job.lora_targets, "q_proj+v_proj");
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::zero_2);
  EXPECT_EQ(job.precision, model::Precision::fp16_mixed);
}

TEST(Launch, TheLargerOfVerlsLogProbPassesCounts) {
  const std::string end = ".log_prob_micro_batch_size_per_gpu";
  for (const auto& [reference, policy] : {std::pair("8", "32"), std::pair("32", "8")}) {
    const std::vector<LaunchSetting> settings = {{"actor_rollout_ref.ref" + end, reference},
                                                 {"actor_rollout_ref.rollout" + end, policy}};
    const auto launch = read_launch(Program::verl, settings);
    ASSERT_TRUE(succeeds(launch));
    EXPECT_EQ(launch->request.options.log_prob_batch, 32);
    ASSERT_EQ(launch->decided.size(), 1U);
    EXPECT_NE(launch->decided[0].find("32"), std::string::npos);
  }
}

TEST(Launch, TheSizeOfAStepSaysHowManyPassesItTakes) {
  const Launch megatron =
      launched(Program::megatron, {"--rlhf_type", "dpo", "--micro_batch_size", "2", "--global_batch_size", "32"}, 4);
  EXPECT_EQ(megatron.request.training.training.gradient_accumulation, 4);
  const Launch verl =
      launched(Program::verl, {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4", "trainer.n_gpus_per_node=8",
                               "actor_rollout_ref.actor.ppo_mini_batch_size=64", "actor_rollout_ref.rollout.n=4"});
  EXPECT_EQ(verl.request.training.training.gradient_accumulation, 8);
}

TEST(Launch, SettingsOfOtherAlgorithmsAreLeftOut) {
  const std::vector<LaunchSetting> settings = {
      {"rlhf_type", "dpo"}, {"vllm_gpu_memory_utilization", "0.5"}, {"sleep_level", "1"}, {"teacher_model", "t"}};
  const auto launch = read_launch(Program::ms_swift, settings);
  ASSERT_TRUE(succeeds(launch));
  EXPECT_EQ(launch->request.options.gpu_memory_utilization, std::nullopt);
  EXPECT_EQ(launch->request.options.sleep_level, 0);
  EXPECT_TRUE(launch->request.options.teacher_model.empty());
}

TEST(Launch, WrongValuesNameTheirKey) {
  const std::vector<LaunchSetting> settings = {{"rlhf_type", "dpo"}, {"max_length", "many"}};
  EXPECT_TRUE(fails(read_launch(Program::ms_swift, settings), core::ErrorCode::invalid_argument, 0, "max_length"));
  const std::vector<LaunchSetting> share = {{"rlhf_type", "grpo"}, {"vllm_gpu_memory_utilization", "2"}};
  EXPECT_TRUE(fails(read_launch(Program::ms_swift, share), core::ErrorCode::invalid_argument, 0,
                    "vllm_gpu_memory_utilization"));
}

}  // namespace
}  // namespace gpumem::posttrain
