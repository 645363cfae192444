#include "gpumem/posttrain/launch.hpp"

#include <algorithm>

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

TEST(Launch, ProgramsAreToldByTheirKeys) {
  const auto program = [](const std::vector<std::string>& words) { return program_of(*launch_settings(words)); };
  EXPECT_EQ(program({"swift", "rlhf", "--rlhf_type", "dpo"}), Program::ms_swift);
  EXPECT_EQ(program({"megatron", "rlhf", "--rlhf_type", "dpo", "--micro_batch_size", "1"}), Program::megatron);
  EXPECT_EQ(program({"actor_rollout_ref.model.path=m"}), Program::verl);
  EXPECT_EQ(program({"--pretrain", "m"}), Program::openrlhf);
  EXPECT_EQ(program({"--model_name_or_path", "m"}), Program::trl);
  EXPECT_EQ(program({"--x", "m"}), std::nullopt);
}

TEST(Launch, MsSwiftsPackedDpo) {
  const Launch launch =
      launched(Program::ms_swift, {"NPROC_PER_NODE=4", "swift", "rlhf", "--rlhf_type", "dpo", "--model", "some/model",
                                   "--tuner_type", "full", "--per_device_train_batch_size", "1", "--max_length", "8192",
                                   "--packing", "true", "--deepspeed", "zero3", "--attn_impl", "flash_attn"});
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
  ASSERT_EQ(launch.missing.size(), 1U);
  EXPECT_NE(launch.missing[0].find("max_length 2048 is only their limit"), std::string::npos);
  EXPECT_EQ(launch.request.training.training.sequence_length, 2048);
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
                                                 "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2",
                                                 "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$size"});
  EXPECT_EQ(launch.unknown, std::vector<std::string>{"actor_rollout_ref.actor.new_thing"});
  EXPECT_EQ(launch.not_modelled, std::vector<std::string>{"actor_rollout_ref.actor.ulysses_sequence_parallel_size 2"});
  EXPECT_NE(std::find(launch.missing.begin(), launch.missing.end(), "the micro-batch"), launch.missing.end())
      << "a variable of the shell is not known here";
}

TEST(Launch, WrongValuesNameTheirKey) {
  const std::vector<LaunchSetting> settings = {{"rlhf_type", "dpo"}, {"max_length", "many"}};
  EXPECT_TRUE(fails(read_launch(Program::ms_swift, settings), core::ErrorCode::invalid_argument, 0, "max_length"));
  const std::vector<LaunchSetting> share = {{"rlhf_type", "grpo"}, {"vllm_gpu_memory_utilization", "2"}};
  EXPECT_TRUE(fails(read_launch(Program::ms_swift, share), core::ErrorCode::invalid_argument, 0,
                    "vllm_gpu_memory_utilization"));
}

TEST(MegatronArguments, AreMadeOfATransformersConfig) {
  const auto arguments = megatron_arguments_of(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 32,
          "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 1024,
          "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "tie_word_embeddings": false})",
      1);
  ASSERT_TRUE(succeeds(arguments));
  for (const char* field : {"\"num_layers\": 2", "\"kv_channels\": 32", "\"qk_layernorm\": true", "\"num_experts\": 8",
                            "\"moe_ffn_hidden_size\": 32", "\"expert_tensor_parallel_size\": 1",
                            "\"untie_embeddings_and_output_weights\": true"}) {
    EXPECT_NE(arguments->find(field), std::string::npos) << field;
  }
  const std::string own = R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})";
  EXPECT_EQ(*megatron_arguments_of(own), own);
  EXPECT_TRUE(fails(megatron_arguments_of(R"({"model_type": "t5"})"), core::ErrorCode::unknown_format, 0, "t5"));
  EXPECT_TRUE(fails(megatron_arguments_of(R"({"model_type": "llama"})"), core::ErrorCode::malformed_input, 0,
                    "num_hidden_layers"));
}

TEST(Buckets, FollowTheWidth) {
  model::Layout layout;
  set_buckets(layout, 100);
  EXPECT_EQ(layout.zero_reduce_bucket, 10'000);
  EXPECT_EQ(layout.zero_prefetch_bucket, 9'000);
  EXPECT_EQ(layout.zero_persistence_threshold, 1'000);
}

}  // namespace
}  // namespace gpumem::posttrain
