// What is known not to fit without a plan of the whole.
#include "gpumem/search/memory_bound.hpp"

#include <algorithm>

#include "gpumem/estimate/replay.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Shardings;
using testing::small_llama;
using testing::succeeds;

device::GpuProfile gpu_of(std::int64_t mebibytes) {
  auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(profile));
  profile->memory_bytes.value = mebibytes << 20;
  profile->usable_bytes.reset();
  return *profile;
}

connect::WiredGraph wired(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto graph = analysis.wired();
  EXPECT_TRUE(succeeds(graph));
  return **graph;
}

/// The smallest GPU, in steps of 64 MiB, on which the job fits.
std::int64_t smallest_gpu(const model::TrainingJob& job) {
  for (std::int64_t mebibytes = 1024; mebibytes < 65536; mebibytes += 64) {
    const auto estimate = estimate::Replay(device::AllocatorOptions()).estimate(job, gpu_of(mebibytes));
    EXPECT_TRUE(succeeds(estimate));
    if (!estimate || estimate->fits) return mebibytes;
  }
  return 65536;
}

model::TrainingJob fsdp(int blocks) {
  model::TrainingJob job = small_llama(blocks, 512, 1024);
  job.batch_size = 4;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 4, .sharding = {Shardings::fsdp2, 0}};
  return job;
}

TEST(MemoryBound, PlansOfFewerBlocksComeCloseAndNeverBeyond) {
  const model::TrainingJob job = fsdp(24);
  const connect::WiredGraph whole = wired(job);
  const std::int64_t smallest = smallest_gpu(job);
  EXPECT_FALSE(MemoryBound(whole, gpu_of(smallest)).blocks_too_much(job));
  EXPECT_TRUE(MemoryBound(whole, gpu_of(smallest * 9 / 10)).blocks_too_much(job)) << "a tenth less than " << smallest;
}

TEST(MemoryBound, OfAPipelinesFirstAndLastStage) {
  model::TrainingJob job = fsdp(16);
  job.layout.pipeline_parallel = 2;
  job.gradient_accumulation = 8;
  const connect::WiredGraph whole = wired(job);
  const std::int64_t smallest = smallest_gpu(job);
  EXPECT_FALSE(MemoryBound(whole, gpu_of(smallest)).blocks_too_much(job));
  EXPECT_TRUE(MemoryBound(whole, gpu_of(smallest * 8 / 10)).blocks_too_much(job));
}

TEST(MemoryBound, SaysNothingOfAModelOfAsFewBlocks) {
  const model::TrainingJob job = fsdp(3);
  const connect::WiredGraph whole = wired(job);
  EXPECT_FALSE(MemoryBound(whole, gpu_of(64)).blocks_too_much(job));
}

TEST(MemoryBound, WhatARankHoldsBetweenSteps) {
  model::TrainingJob job = fsdp(8);
  const connect::WiredGraph whole = wired(job);
  BlockWork work;
  work.blocks = 8;
  work.block.parameters = 10'000'000;
  // Shards and two states in float32, over four ranks: 3 bytes a parameter.
  EXPECT_FALSE(MemoryBound(whole, gpu_of(230)).held_too_much(job, work));
  EXPECT_TRUE(MemoryBound(whole, gpu_of(228)).held_too_much(job, work));
  job.offload = model::Offload::optimizer;
  EXPECT_FALSE(MemoryBound(whole, gpu_of(1)).held_too_much(job, work)) << "what is on the host is not counted";
}

}  // namespace
}  // namespace gpumem::search
