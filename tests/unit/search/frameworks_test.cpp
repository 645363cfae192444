#include <set>

#include "expect.hpp"
#include "gpumem/search/frameworks.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Checkpoints;
using model::Shardings;
using testing::fails;
using testing::small_llama;
using testing::succeeds;

TEST(Accelerate, WritesItsYaml) {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.activation_checkpointing = true;
  job.layout = {.data_parallel = 8, .sharding = {Shardings::fsdp1, 0}};
  EXPECT_EQ(accelerate().settings_of(job, 8, {8}), R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
fsdp_config:
  fsdp_version: 1
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_use_orig_params: true
# the program's own: --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing
)");
}

TEST(Accelerate, CountsTheMachines) {
  model::TrainingJob job = small_llama(8);
  job.layout = {.data_parallel = 20, .sharding = {Shardings::fsdp1, 0}};
  const auto says = [&](std::int64_t node, std::string_view line) {
    return accelerate().settings_of(job, 8, {node}).find("\n" + std::string(line) + "\n") != std::string::npos;
  };
  EXPECT_TRUE(says(8, "num_machines: 3")) << "the last one is not full";
  EXPECT_TRUE(says(4, "num_machines: 5"));
  EXPECT_TRUE(says(32, "num_machines: 1"));
  EXPECT_TRUE(says(8, "num_processes: 20")) << "of all machines";
}

model::TrainingJob deepspeed_job_of(Shardings sharding) {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 8, .sharding = {sharding, 0}};
  return job;
}

TEST(Deepspeed, WritesItsJson) {
  EXPECT_EQ(deepspeed().settings_of(deepspeed_job_of(Shardings::zero_2), 8, {8}), R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "bf16": { "enabled": true },
  "zero_optimization": {
    "stage": 2,
    "reduce_bucket_size": 500000000,
    "overlap_comm": false,
    "contiguous_gradients": true
  }
}
)");
}

TEST(Deepspeed, NamesBucketsThatTheJobHas) {
  model::TrainingJob job = deepspeed_job_of(Shardings::zero_3);
  job.layout.zero_reduce_bucket = 200'000'000;
  job.layout.zero_reuse_distance = 0;
  const std::string text = deepspeed().settings_of(job, 8, {8});
  EXPECT_NE(text.find("\"stage\": 3,\n    \"reduce_bucket_size\": 200000000,\n    \"stage3_max_reuse_distance\": 0\n"),
            std::string::npos)
      << text;
}

TEST(Deepspeed, ZeroThreeHasItsDefaults) {
  const std::string text = deepspeed().settings_of(deepspeed_job_of(Shardings::zero_3), 8, {8});
  EXPECT_NE(text.find("\"stage\": 3\n"), std::string::npos) << text;
}

model::TrainingJob megatron_job_of() {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 1;
  job.gradient_accumulation = 16;
  job.layout = {.data_parallel = 4,
                .sharding = {Shardings::distributed_optimizer, 0},
                .tensor_parallel = 2,
                .sequence_parallel = true,
                .pipeline_parallel = 2,
                .virtual_stages = 2};
  return job;
}

TEST(Megatron, WritesItsArguments) {
  model::TrainingJob job = megatron_job_of();
  job.activation_checkpointing = true;
  EXPECT_EQ(megatron().settings_of(job, 8, {8}), R"(--tensor-model-parallel-size 2
--sequence-parallel
--pipeline-model-parallel-size 2
--num-layers-per-virtual-pipeline-stage 2
--context-parallel-size 1
--use-distributed-optimizer
--overlap-param-gather
--overlap-grad-reduce
--micro-batch-size 1
--global-batch-size 64
--seq-length 128
--bf16
--recompute-granularity full
--recompute-method uniform
--recompute-num-layers 1
)");
}

TEST(Megatron, NamesExpertsAndSelectiveRecomputation) {
  model::TrainingJob job = megatron_job_of();
  job.layout.expert_parallel = 4;
  job.layout.sharding = {Shardings::ddp, 0};
  job.activation_checkpointing = true;
  job.checkpoints = {Checkpoints::selective_attention, 0};
  const std::string text = megatron().settings_of(job, 8, {8});
  EXPECT_NE(text.find("--expert-model-parallel-size 4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--recompute-granularity selective\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("--use-distributed-optimizer"), std::string::npos) << text;
}

/// A config.json runs with experts that are whole on tensor parallel ranks; Megatron-LM shares them unless it is told.
TEST(Megatron, SaysThatExpertsAreWhole) {
  model::TrainingJob job = testing::job_of_config(
      R"({"model_type": "qwen3_moe", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu",
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1})",
      16);
  job.loop = model::Loop::megatron;
  job.layout = {.data_parallel = 2, .tensor_parallel = 2, .expert_parallel = 2};
  const std::string text = megatron().settings_of(job, 2, {8});
  EXPECT_NE(text.find("--expert-tensor-parallel-size 1\n"), std::string::npos) << text;
  job.layout.tensor_parallel = 1;
  EXPECT_EQ(megatron().settings_of(job, 2, {8}).find("--expert-tensor-parallel-size"), std::string::npos);
}

model::TrainingJob torchtitan_job_of() {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}, .tensor_parallel = 4};
  return job;
}

TEST(Torchtitan, WritesItsToml) {
  EXPECT_EQ(torchtitan().settings_of(torchtitan_job_of(), 8, {8}), R"([training]
local_batch_size = 2
global_batch_size = 64
seq_len = 128
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = 8
tensor_parallel_degree = 4
context_parallel_degree = 1
pipeline_parallel_degree = 1

[activation_checkpoint]
mode = "none"
)");
}

TEST(Torchtitan, PartsALocalBatchIntoMicroBatchesUnderAPipeline) {
  model::TrainingJob job = torchtitan_job_of();
  job.layout.pipeline_parallel = 2;
  job.layout.virtual_stages = 2;
  job.layout.schedule = model::Schedule::interleaved;
  job.activation_checkpointing = true;
  const std::string text = torchtitan().settings_of(job, 8, {8});
  EXPECT_NE(text.find("local_batch_size = 8\nglobal_batch_size = 64\n"), std::string::npos) << text;
  EXPECT_NE(text.find("pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_microbatch_size = 2\n"
                      "pipeline_parallel_layers_per_stage = 2\npipeline_parallel_first_stage_less_layers = 0\n"
                      "pipeline_parallel_last_stage_less_layers = 0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("mode = \"full\"\n"), std::string::npos) << text;
}

TEST(Torchtitan, NamesTheTypes) {
  model::TrainingJob job = torchtitan_job_of();
  const auto says = [&](model::Precision precision, std::string_view lines) {
    job.precision = precision;
    const std::string text = torchtitan().settings_of(job, 8, {8});
    EXPECT_NE(text.find("seq_len = 128\n" + std::string(lines) + "\n[parallelism]"), std::string::npos) << text;
  };
  says(model::Precision::fp32, "mixed_precision_param = \"float32\"\nmixed_precision_reduce = \"float32\"\n");
  says(model::Precision::bf16,
       "dtype = \"bfloat16\"\nmixed_precision_param = \"bfloat16\"\nmixed_precision_reduce = \"float32\"\n");
  says(model::Precision::fp16_mixed,
       "# torchtitan has no float16; bfloat16 takes as much\nmixed_precision_param = \"bfloat16\"\n"
       "mixed_precision_reduce = \"float32\"\n");
}

TEST(Torchtitan, ReplicatesGroupsOfShards) {
  model::TrainingJob job = torchtitan_job_of();
  job.layout.context_parallel = 2;
  job.layout.sharding = {Shardings::hsdp, 4};
  job.activation_checkpointing = true;
  job.checkpoints = {Checkpoints::selective_op, 0};
  const std::string text = torchtitan().settings_of(job, 8, {8});
  EXPECT_NE(text.find("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 2\n"), std::string::npos)
      << "two context parallel ranks are part of each group of four\n"
      << text;
  EXPECT_NE(text.find("mode = \"selective\"\nselective_ac_option = \"op\"\n"), std::string::npos) << text;
}

TEST(Torchtitan, ShardsOverAllRanksOrOverNodes) {
  const auto found = torchtitan().shardings(32, 2, 8);
  const std::vector<model::Sharding> wanted = {
      {Shardings::fsdp2, 0}, {Shardings::hsdp, 4}, {Shardings::hsdp, 8}, {Shardings::hsdp, 16}};
  EXPECT_EQ(found, wanted);
}

TEST(Frameworks, SayWhatIsOnTheHost) {
  const auto says = [](const Framework& framework, model::TrainingJob job, model::Offload offload,
                       std::string_view line) {
    const bool before = framework.settings_of(job, 8, {8}).find(line) != std::string::npos;
    job.offload = offload;
    return !before && framework.settings_of(job, 8, {8}).find(line) != std::string::npos;
  };
  using model::Offload;
  const std::string_view optimizer = R"("offload_optimizer": { "device": "cpu" })";
  EXPECT_TRUE(says(torchtitan(), torchtitan_job_of(), Offload::parameters, "enable_cpu_offload = true\n"));
  EXPECT_TRUE(says(deepspeed(), deepspeed_job_of(Shardings::zero_3), Offload::optimizer, optimizer));
  EXPECT_TRUE(says(accelerate(), torchtitan_job_of(), Offload::parameters, "  fsdp_offload_params: true\n"));
}

TEST(Frameworks, SayThatNothingOverlaps) {
  model::TrainingJob job = torchtitan_job_of();
  job.layout.sharding = {Shardings::distributed_optimizer, 0};
  EXPECT_NE(megatron().settings_of(job, 8, {8}).find("--overlap-param-gather\n--overlap-grad-reduce\n"),
            std::string::npos);
  EXPECT_EQ(megatron().settings_of(job, 8, {.node = 8, .overlap = false}).find("--overlap"), std::string::npos);
}

TEST(Frameworks, HaveNamesOfTheirOwnAndSayWhatTheyWrite) {
  std::set<std::string_view> names;
  for (const Framework& framework : frameworks()) {
    EXPECT_TRUE(names.insert(framework.name).second) << framework.name;
    EXPECT_NE(framework.name, "any");
    EXPECT_FALSE(framework.settings.empty()) << framework.name;
    EXPECT_FALSE(framework.shardings(8, 1, 8).empty()) << framework.name;
    EXPECT_FALSE(framework.checkpointings().empty()) << framework.name;
    EXPECT_FALSE(framework.checkpointings().front().on) << framework.name << ": none is the first";
  }
}

TEST(Frameworks, AreFoundByNameOrAllTogether) {
  const auto all = frameworks_of("any");
  ASSERT_TRUE(succeeds(all));
  EXPECT_EQ(all->size(), frameworks().size());
  const auto one = frameworks_of("megatron");
  ASSERT_TRUE(succeeds(one));
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front()->name, "megatron");
  EXPECT_TRUE(fails(frameworks_of("horovod"), core::ErrorCode::invalid_argument, 0,
                    "choose one of fsdp2, megatron, deepspeed, fsdp1, any"));
}

TEST(Frameworks, AQuestionNamesFrameworksAndTheAllocator) {
  const auto asked = question_about("megatron", "max_split_size_mb:64");
  ASSERT_TRUE(succeeds(asked));
  ASSERT_EQ(asked->frameworks.size(), 1U);
  EXPECT_EQ(asked->frameworks.front()->name, "megatron");
  EXPECT_EQ(asked->allocator, *device::parse_allocator_options("max_split_size_mb:64"));
  EXPECT_FALSE(question_about("horovod", ""));
  EXPECT_FALSE(question_about("any", "max_split_size_mb:small"));
}

}  // namespace
}  // namespace gpumem::search
