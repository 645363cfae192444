#include "gpumem/search/frameworks.hpp"

#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Shardings;
using testing::small_llama;

TEST(Accelerate, WritesItsYaml) {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.activation_checkpointing = true;
  job.layout = {.data_parallel = 8, .sharding = {Shardings::fsdp1, 0}};
  EXPECT_EQ(accelerate().settings_of(job, 8, 8), R"(compute_environment: LOCAL_MACHINE
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
    return accelerate().settings_of(job, 8, node).find("\n" + std::string(line) + "\n") != std::string::npos;
  };
  EXPECT_TRUE(says(8, "num_machines: 3")) << "the last one is not full";
  EXPECT_TRUE(says(4, "num_machines: 5"));
  EXPECT_TRUE(says(32, "num_machines: 1"));
  EXPECT_TRUE(says(8, "num_processes: 20")) << "of all machines";
}

}  // namespace
}  // namespace gpumem::search
