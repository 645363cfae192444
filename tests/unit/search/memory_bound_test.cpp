// What is known not to fit without a plan of the whole.
#include "gpumem/search/block_work.hpp"

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

/// The fewest mebibytes, in steps of 16 and at most 64 GiB, of a GPU that is large enough.
template <typename LargeEnough>
std::int64_t fewest_mebibytes(const LargeEnough& large_enough) {
  constexpr std::int64_t kStep = 16;
  std::int64_t too_few = 0;
  std::int64_t enough = 65536 / kStep;
  while (enough - too_few > 1) {
    const std::int64_t middle = (too_few + enough) / 2;
    (large_enough(gpu_of(middle * kStep)) ? enough : too_few) = middle;
  }
  return enough * kStep;
}

/// The smallest GPU on which the job fits, in MiB.
std::int64_t smallest_gpu(const model::TrainingJob& job) {
  return fewest_mebibytes([&](const device::GpuProfile& gpu) {
    const auto estimate = estimate::Replay(device::AllocatorOptions()).estimate(job, gpu);
    EXPECT_TRUE(succeeds(estimate));
    return !estimate || estimate->fits;
  });
}

model::TrainingJob fsdp(int blocks) {
  model::TrainingJob job = small_llama(blocks, 512, 1024);
  job.batch_size = 4;
  job.gradient_accumulation = 4;
  job.layout = {.data_parallel = 4, .sharding = {Shardings::fsdp2, 0}};
  return job;
}

BlockWork work_of(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto peaks = utilisation::peaks_of(gpu_of(1024));
  EXPECT_TRUE(succeeds(peaks));
  const std::vector<MicroBatch> one = {{1, {}}};
  const auto found = block_work(analysis, job, one, *peaks);
  EXPECT_TRUE(succeeds(found));
  return found ? found->front() : BlockWork();
}

/// The job fits the smallest GPU, and is known not to fit one of `share` of it.
void expect_tight(const model::TrainingJob& job, double share) {
  const connect::WiredGraph whole = wired(job);
  const BlockWork work = work_of(job);
  const std::int64_t smallest = smallest_gpu(job);
  EXPECT_FALSE(MemoryBound(whole, gpu_of(smallest)).too_large(job, work));
  const auto less = static_cast<std::int64_t>(static_cast<double>(smallest) * share);
  EXPECT_TRUE(MemoryBound(whole, gpu_of(less)).too_large(job, work)) << less << " MiB, and it fits " << smallest;
}

TEST(MemoryBound, ComesCloseAndNeverBeyond) { expect_tight(fsdp(24), 0.9); }

TEST(MemoryBound, OfBlocksThatRunAgain) {
  model::TrainingJob job = fsdp(24);
  job.activation_checkpointing = true;
  expect_tight(job, 0.85);
}

TEST(MemoryBound, OfOneLayoutsRangeIsNotThatOfAnother) {
  model::TrainingJob job = fsdp(24);
  job.loop = model::Loop::hf_trainer;
  model::TrainingJob again = job;
  again.activation_checkpointing = true;  // whose range is wider, for the Trainer's is reentrant
  const connect::WiredGraph whole = wired(job);
  const BlockWork work = work_of(job);
  const device::GpuProfile gpu = gpu_of(smallest_gpu(job));
  MemoryBound bound(whole, gpu);
  (void)bound.too_large(again, work);
  EXPECT_FALSE(bound.too_large(job, work));
}

TEST(MemoryBound, OfAPipelinesStages) {
  model::TrainingJob job = fsdp(16);
  job.layout.pipeline_parallel = 2;
  job.gradient_accumulation = 8;
  expect_tight(job, 0.85);
}

TEST(MemoryBound, OfGradientsThatStand) {
  model::TrainingJob job = fsdp(16);
  job.layout.sharding = {Shardings::distributed_optimizer, 0};
  job.loop = model::Loop::megatron;
  expect_tight(job, 0.85);
}

TEST(MemoryBound, OfTheFirstRanksPlan) {
  model::TrainingJob job = fsdp(16);
  job.layout.pipeline_parallel = 4;
  job.gradient_accumulation = 16;
  const connect::WiredGraph whole = wired(job);
  const std::int64_t smallest = smallest_gpu(job);
  analysis::Analysis analysis(job);
  EXPECT_FALSE(MemoryBound(whole, gpu_of(smallest)).first_rank_too_large(analysis, job));
  EXPECT_TRUE(MemoryBound(whole, gpu_of(smallest * 8 / 10)).first_rank_too_large(analysis, job));
}

TEST(MemoryBound, OfAPeak) {
  const model::TrainingJob job = fsdp(8);
  const connect::WiredGraph whole = wired(job);
  const device::GpuProfile gpu = gpu_of(8192);
  MemoryBound bound(whole, gpu);
  EXPECT_FALSE(bound.too_large(job, std::int64_t{1} << 30));
  EXPECT_TRUE(bound.too_large(job, std::int64_t{8} << 30)) << "the context stands beside";
}

TEST(MemoryBound, WhatIsOnTheHostIsNotCounted) {
  model::TrainingJob job = fsdp(8);
  const connect::WiredGraph whole = wired(job);
  const BlockWork work = work_of(job);
  const auto smallest_with = [&](model::Offload offload) {
    job.offload = offload;
    return fewest_mebibytes(
        [&](const device::GpuProfile& gpu) { return !MemoryBound(whole, gpu).too_large(job, work); });
  };
  const std::int64_t all_here = smallest_with(model::Offload::none);
  const std::int64_t states_there = smallest_with(model::Offload::optimizer);
  EXPECT_LT(states_there, all_here);
  EXPECT_LT(smallest_with(model::Offload::parameters), states_there);
}

}  // namespace
}  // namespace gpumem::search
