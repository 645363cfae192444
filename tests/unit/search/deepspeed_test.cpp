#include "gpumem/search/frameworks.hpp"

#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Shardings;
using testing::small_llama;

model::TrainingJob job_of(Shardings sharding) {
  model::TrainingJob job = small_llama(8);
  job.batch_size = 2;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 8, .sharding = {sharding, 0}};
  return job;
}

TEST(Deepspeed, WritesItsJson) {
  EXPECT_EQ(deepspeed().settings_of(job_of(Shardings::zero_2), 8, 8), R"({
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
  model::TrainingJob job = job_of(Shardings::zero_3);
  job.layout.zero_reduce_bucket = 200'000'000;
  job.layout.zero_reuse_distance = 0;
  const std::string text = deepspeed().settings_of(job, 8, 8);
  EXPECT_NE(text.find("\"stage\": 3,\n    \"reduce_bucket_size\": 200000000,\n    \"stage3_max_reuse_distance\": 0\n"),
            std::string::npos)
      << text;
}

TEST(Deepspeed, ZeroThreeHasItsDefaults) {
  const std::string text = deepspeed().settings_of(job_of(Shardings::zero_3), 8, 8);
  EXPECT_NE(text.find("\"stage\": 3\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace gpumem::search
