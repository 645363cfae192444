// Settings of open-instruct and PRIME-RL, whose engines have GPUs of their own.
#include <algorithm>

#include "expect.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::succeeds;
using Settings = std::vector<LaunchSetting>;

Launch apart(Settings settings, const Settings& more, Program expected) {
  settings.insert(settings.end(), more.begin(), more.end());
  const auto program = program_of(settings);
  EXPECT_EQ(program, expected);
  const auto launch = read_launch(expected, settings);
  EXPECT_TRUE(succeeds(launch));
  return launch ? *launch : Launch();
}
const model::TrainingJob& apart_training(const Launch& launch) { return launch.request.training.training; }
bool says_apart(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

Launch open_instruct(const Settings& more = {}) {
  const Settings all = {{"model_name_or_path", "m"},
                        {"num_learners_per_node", "2+4"},
                        {"num_samples_per_prompt_rollout", "16"},
                        {"num_unique_prompts_rollout", "8"},
                        {"max_prompt_token_length", "2048"},
                        {"response_length", "8192"},
                        {"pack_length", "10240"},
                        {"per_device_train_batch_size", "1"},
                        {"deepspeed_stage", "2"},
                        {"vllm_tensor_parallel_size", "2"},
                        {"learning_rate", "1e-6"}};
  return apart(all, more, Program::open_instruct);
}

TEST(LaunchApart, OpenInstructReadsItsPolicyBeforeSeveralMiniBatches) {
  EXPECT_FALSE(open_instruct().request.options.old_log_probs);
  EXPECT_TRUE(open_instruct({{"num_mini_batches", "2"}}).request.options.old_log_probs);
  const Launch engines = open_instruct({{"num_mini_batches", "2"}, {"use_vllm_logprobs", "true"}});
  EXPECT_FALSE(engines.request.options.old_log_probs);
}

TEST(LaunchApart, OpenInstructTrainsRowsWithDeepSpeedOverItsLearners) {
  const Launch launch = open_instruct();
  EXPECT_TRUE(launch.unknown.empty());
  EXPECT_EQ(launch.model, "m");
  EXPECT_EQ(launch.gpus, 6);
  const PostTrainingOptions& options = launch.request.options;
  EXPECT_EQ(options.program, Program::open_instruct);
  EXPECT_EQ(options.algorithm, Algorithm::grpo);
  EXPECT_EQ(options.rollout, Rollout::elsewhere);
  EXPECT_EQ(options.rollout_tensor_parallel, 2);
  EXPECT_EQ(options.reference, Reference::whole) << "stage 2 shards no model that is only read";
  EXPECT_EQ(options.num_generations, 16);
  const model::TrainingJob& job = apart_training(launch);
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::zero_2);
  EXPECT_EQ(job.sequence_length, 10240);
  EXPECT_EQ(job.precision, model::Precision::bf16_mixed);
  EXPECT_TRUE(job.activation_checkpointing);
}

TEST(LaunchApart, OpenInstructsReferenceIsShardedByStageThreeOrLeftOut) {
  EXPECT_EQ(open_instruct({{"deepspeed_stage", "3"}}).request.options.reference, Reference::own);
  EXPECT_EQ(open_instruct({{"load_ref_policy", "False"}}).request.options.reference, Reference::none);
  const Launch one = open_instruct({{"single_gpu_mode", "true"}, {"num_learners_per_node", "1"}, {"brand_new", "1"}});
  EXPECT_EQ(one.request.options.rollout, Rollout::colocated);
  EXPECT_EQ(apart_training(one).precision, model::Precision::bf16_mixed) << "DeepSpeed keeps masters on one GPU, too";
  EXPECT_TRUE(says_apart(one.unknown, "brand_new"));
  const Settings wrong = {{"num_learners_per_node", "two"}};
  EXPECT_TRUE(
      fails(read_launch(Program::open_instruct, wrong), core::ErrorCode::invalid_argument, 0, "is no whole number"));
}

TEST(LaunchApart, OpenInstructsDpoHasTheReferencesFiguresBeforeItTrains) {
  const std::vector<std::string> words = {"uv",
                                          "run",
                                          "python",
                                          "mason.py",
                                          "--gpus",
                                          "8",
                                          "--",
                                          "accelerate",
                                          "launch",
                                          "--num_processes",
                                          "8",
                                          "--use_deepspeed",
                                          "--deepspeed_config_file",
                                          "configs/ds_configs/stage3_no_offloading_accelerate.conf",
                                          "open_instruct/dpo_tune_cache.py",
                                          "--model_name_or_path",
                                          "m",
                                          "--max_seq_length",
                                          "2048",
                                          "--per_device_train_batch_size",
                                          "1",
                                          "--use_lora"};
  PostTrainingRequest request;
  ASSERT_TRUE(succeeds(read_words({.command = words}, request)));
  EXPECT_EQ(request.options.algorithm, Algorithm::dpo);
  EXPECT_EQ(request.options.reference, Reference::precomputed);
  EXPECT_EQ(request.options.length_limit, 2048);
  const model::TrainingJob& job = request.training.training;
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::zero_3);
  EXPECT_EQ(job.offload, model::Offload::none) << "no_offloading";
  EXPECT_EQ(job.layout.data_parallel, 8);
  EXPECT_TRUE(job.has_adapters());
  EXPECT_FALSE(job.activation_checkpointing);
}

TEST(LaunchApart, OpenInstructsScriptsOfOlmoCoreAreRefused) {
  const std::vector<std::string> words = {"torchrun", "open_instruct/dpo.py", "--model_name_or_path", "m"};
  PostTrainingRequest request;
  EXPECT_TRUE(fails(read_words({.command = words}, request), core::ErrorCode::unknown_format, 0, "OLMo-core"));
}

Launch prime(const Settings& more = {}) {
  const Settings all = {{"model.name", "m"},
                        {"seq_len", "4096"},
                        {"deployment.num_train_gpus", "4"},
                        {"deployment.num_infer_gpus", "4"},
                        {"orchestrator.group_size", "16"},
                        {"orchestrator.batch_size", "512"},
                        {"orchestrator.train.sampling.max_completion_tokens", "1024"},
                        {"inference.vllm.gpu_memory_utilization", "0.8"}};
  return apart(all, more, Program::prime_rl);
}

TEST(LaunchApart, PrimeRlShardsByFsdp2AndLeavesItsStatesOnTheHost) {
  const Launch launch = prime();
  EXPECT_TRUE(launch.unknown.empty());
  EXPECT_TRUE(says_apart(launch.decided, "older releases"));
  EXPECT_EQ(launch.gpus, 4);
  const PostTrainingOptions& options = launch.request.options;
  EXPECT_EQ(options.rollout, Rollout::elsewhere);
  EXPECT_EQ(options.reference, Reference::none);
  EXPECT_EQ(options.offload, Waiting::optimizer);
  EXPECT_EQ(options.completion_length, 1024);
  EXPECT_EQ(options.prompt_length, 3072);
  EXPECT_EQ(options.gpu_memory_utilization, 0.8);
  const model::TrainingJob& job = apart_training(launch);
  EXPECT_EQ(job.layout.sharding.kind, model::Shardings::fsdp2);
  EXPECT_EQ(job.sequence_length, 4096);
  EXPECT_EQ(job.loss_form.kind, model::LossForms::fused);
  EXPECT_EQ(job.offload, model::Offload::activations);
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_FALSE(job.has_adapters());
}

TEST(LaunchApart, PrimeRlsCompiledBlocksAreNamed) {
  EXPECT_TRUE(says_apart(prime().decided, "compile is on unless"));
  EXPECT_FALSE(says_apart(prime({{"trainer.model.compile", "None"}}).decided, "compile is on unless"));
}

TEST(LaunchApart, PrimeRlsSettingsAreFollowed) {
  const Launch launch = prime({{"trainer.model.optim_cpu_offload", "false"},
                               {"trainer.model.ac_offloading", "None"},
                               {"trainer.model.fused_lm_head_token_chunk_size", "disabled"},
                               {"trainer.model.lora.alpha", "64"},
                               {"trainer.model.seq_len", "8192"},
                               {"trainer.model.ep", "auto"},
                               {"trainer.optim.type", "muon"},
                               {"deployment.num_train_nodes", "2"}});
  EXPECT_EQ(launch.gpus, 16);
  EXPECT_EQ(launch.request.options.offload, Waiting::none);
  const model::TrainingJob& job = apart_training(launch);
  EXPECT_EQ(job.offload, model::Offload::none);
  EXPECT_EQ(job.loss_form.kind, model::LossForms::standard);
  EXPECT_EQ(job.lora, 16);
  EXPECT_EQ(job.sequence_length, 8192);
  EXPECT_EQ(job.optimizer, model::Optimizer::muon);
}

TEST(LaunchApart, PrimeRlOffloadsWhatBlocksKeepOnlyWhereTheyRunAgain) {
  EXPECT_TRUE(apart_training(prime({{"trainer.model.ac", "None"}})).activation_checkpointing);
  const Launch neither = prime({{"trainer.model.ac", "None"}, {"trainer.model.ac_offloading", "None"}});
  EXPECT_FALSE(apart_training(neither).activation_checkpointing);
}

TEST(LaunchApart, OpenInstructsEntropyAndSecondCopyOfWeightsAreNamed) {
  EXPECT_TRUE(says_apart(open_instruct({{"record_entropy", "true"}}).not_modelled, "record_entropy"));
  const Settings third = {{"deepspeed_stage", "3"}};
  EXPECT_TRUE(says_apart(open_instruct(third).decided, "deepspeed_zpg"));
  EXPECT_FALSE(says_apart(open_instruct({{"deepspeed_stage", "3"}, {"deepspeed_zpg", "1"}}).decided, "deepspeed_zpg"));
}

}  // namespace
}  // namespace gpumem::posttrain
