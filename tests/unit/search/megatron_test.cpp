#include "gpumem/search/frameworks.hpp"

#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Checkpoints;
using model::Shardings;
using testing::small_llama;

model::TrainingJob job_of() {
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
  model::TrainingJob job = job_of();
  job.activation_checkpointing = true;
  EXPECT_EQ(megatron().settings_of(job, 8, 8), R"(--tensor-model-parallel-size 2
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
  model::TrainingJob job = job_of();
  job.layout.expert_parallel = 4;
  job.layout.sharding = {Shardings::ddp, 0};
  job.activation_checkpointing = true;
  job.checkpoints = {Checkpoints::selective_attention, 0};
  const std::string text = megatron().settings_of(job, 8, 8);
  EXPECT_NE(text.find("--expert-model-parallel-size 4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--recompute-granularity selective\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("--use-distributed-optimizer"), std::string::npos) << text;
}

}  // namespace
}  // namespace gpumem::search
