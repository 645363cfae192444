#include "gpumem/search/frameworks.hpp"

#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Checkpoints;
using model::Shardings;
using testing::small_llama;

model::TrainingJob job_of() {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}, .tensor_parallel = 4};
  return job;
}

TEST(Torchtitan, WritesItsToml) {
  EXPECT_EQ(torchtitan().settings_of(job_of(), 8, 8), R"([training]
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
  model::TrainingJob job = job_of();
  job.layout.pipeline_parallel = 2;
  job.layout.virtual_stages = 2;
  job.layout.schedule = model::Schedule::interleaved;
  job.activation_checkpointing = true;
  const std::string text = torchtitan().settings_of(job, 8, 8);
  EXPECT_NE(text.find("local_batch_size = 8\nglobal_batch_size = 64\n"), std::string::npos) << text;
  EXPECT_NE(text.find("pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_microbatch_size = 2\n"
                      "pipeline_parallel_layers_per_stage = 2\npipeline_parallel_first_stage_less_layers = 0\n"
                      "pipeline_parallel_last_stage_less_layers = 0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("mode = \"full\"\n"), std::string::npos) << text;
}

TEST(Torchtitan, NamesTheTypes) {
  model::TrainingJob job = job_of();
  const auto says = [&](model::Precision precision, std::string_view lines) {
    job.precision = precision;
    const std::string text = torchtitan().settings_of(job, 8, 8);
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
  model::TrainingJob job = job_of();
  job.layout.context_parallel = 2;
  job.layout.sharding = {Shardings::hsdp, 4};
  job.activation_checkpointing = true;
  job.checkpoints = {Checkpoints::selective_op, 0};
  const std::string text = torchtitan().settings_of(job, 8, 8);
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

}  // namespace
}  // namespace gpumem::search
