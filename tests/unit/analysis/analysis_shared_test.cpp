#include "gpumem/analysis/analysis.hpp"

#include <thread>
#include <vector>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/estimate/published.hpp"
#include "gpumem/estimate/replay.hpp"
#include "graphs.hpp"

namespace gpumem::analysis {
namespace {

using estimate::Replay;
using testing::fails;
using testing::succeeds;

const GpuProfile& gpu() {
  static const GpuProfile kGpu = *find_profile("t4-16gb");
  return kGpu;
}

/// Jobs that differ in everything that a plan looks at, and in what a recording looks at.
std::vector<TrainingJob> jobs_of(const TrainingJob& base) {
  std::vector<TrainingJob> jobs = {base};
  const auto other = [&](auto change) {
    jobs.push_back(base);
    change(jobs.back());
  };
  other([](TrainingJob& job) { job.batch_size = 96; });
  other([](TrainingJob& job) { job.optimizer = Optimizer::sgd; });
  other([](TrainingJob& job) { job.precision = Precision::amp_fp16; });
  other([](TrainingJob& job) { job.loss = model::Loss::mse; });
  other([](TrainingJob& job) { job.foreach = false; });
  other([](TrainingJob& job) { job.fused = true; });
  other([](TrainingJob& job) { job.weight_decay = true; });
  other([](TrainingJob& job) { job.prefetch = true; });
  other([](TrainingJob& job) { job.gradient_accumulation = 3; });
  other([](TrainingJob& job) { job.activation_checkpointing = true; });
  other([](TrainingJob& job) { job.zero_grad = model::ZeroGrad::in_place; });
  other([](TrainingJob& job) { job.zero_grad = model::ZeroGrad::step_end; });
  other([](TrainingJob& job) { job.samples_per_epoch = 1000; });
  other([](TrainingJob& job) { job.summary_pass = true; });
  other([](TrainingJob& job) { job.validation_pass = true; });
  other([](TrainingJob& job) { job.input_shape = {3, 128, 128}; });
  return jobs;
}

TrainingJob resnet50() { return {*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json"), 32}; }

TEST(Analyses, EveryJobGetsWhatItGetsAlone) {
  Analyses analyses;
  const Replay replay;
  const auto jobs = jobs_of(resnet50());
  for (int round = 0; round < 2; ++round) {
    for (const TrainingJob& job : jobs) {
      const auto expected = replay.estimate(job, gpu());
      const auto found = replay.estimate(*analyses.take(job), gpu());
      ASSERT_TRUE(succeeds(expected));
      ASSERT_TRUE(succeeds(found));
      EXPECT_EQ(found->expected, expected->expected);
      EXPECT_EQ(found->allocated, expected->allocated);
      EXPECT_EQ(found->coverage.edges, expected->coverage.edges);
    }
  }
}

TEST(Analyses, TheSameJobIsMovedToAnotherGpu) {
  Analyses analyses;
  const Replay replay;
  const TrainingJob job = resnet50();
  for (const char* name : {"t4-16gb", "a100-40gb", "h100-80gb", "t4-16gb"}) {
    const GpuProfile other = *find_profile(name);
    const auto expected = replay.estimate(job, other);
    const auto found = replay.estimate(*analyses.take(job), other);
    ASSERT_TRUE(succeeds(expected));
    ASSERT_TRUE(succeeds(found));
    EXPECT_EQ(found->expected, expected->expected) << name;
    EXPECT_EQ(found->breakdown.context, expected->breakdown.context) << name;
  }
}

/// Eight samples of 2,048 tokens and 64,000 words have logits of 4 GiB in float32.
TrainingJob chunked_job(model::LossForms form) {
  TrainingJob job = {
      *parse_summary(R"({"model_type": "llama", "vocab_size": 65536, "hidden_size": 64, "intermediate_size":
      128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu"})"),
      8};
  job.sequence_length = 2048;
  job.precision = Precision::bf16;
  job.loss_form = {form, form == model::LossForms::fused_target ? 1 : 0};
  return job;
}

TEST(Analyses, ALossThatAsksForFreeMemoryHasLargerChunksOnALargerGpu) {
  const Replay replay;
  const auto taken = [&](const TrainingJob& job, const char* name) {
    const auto found = replay.estimate(job, *find_profile(name));
    EXPECT_TRUE(succeeds(found));
    return found ? found->allocated->count() : 0;
  };
  constexpr std::int64_t kWhole = std::int64_t{4} << 30;  // logits and their gradient, two bytes each
  const TrainingJob free = chunked_job(model::LossForms::fused_free_2025);
  const std::int64_t least = taken(chunked_job(model::LossForms::fused_target), "a100-40gb");
  EXPECT_GT(taken(free, "a100-40gb"), kWhole) << "more than twice as much is free: one chunk";
  EXPECT_LT(taken(free, "a100-40gb"), kWhole + 2 * least);
  EXPECT_EQ(taken(chunked_job(model::LossForms::fused_free), "h100-80gb"), taken(free, "h100-80gb"))
      << "4 GiB are the most, and what one chunk takes";
  TrainingJob more = free;
  more.batch_size = 20;
  const std::int64_t rounded = taken(more, "a100-40gb");
  more.loss_form.kind = model::LossForms::fused_free;
  EXPECT_LT(taken(more, "a100-40gb"), rounded - kWhole) << "10 GiB in chunks of at most 4";
  EXPECT_LT(taken(free, "t4-16gb"), taken(more, "a100-40gb") + kWhole);

  // An Analysis that is lent again chooses for the GPU and the batch at hand.
  Analyses analyses;
  for (const char* name : {"t4-16gb", "a100-40gb", "t4-16gb"}) {
    for (const std::int64_t batch : {20, 40}) {
      more.batch_size = batch;
      const auto found = replay.estimate(*analyses.take(more), *find_profile(name));
      ASSERT_TRUE(succeeds(found));
      EXPECT_EQ(found->allocated->count(), taken(more, name)) << name << " " << batch;
    }
  }
}

TEST(Analyses, WhatAGpuChoseForALossIsForgotten) {
  TrainingJob job = chunked_job(model::LossForms::fused_free);
  job.batch_size = 20;
  const auto bytes_of = [](Analysis& analysis) {
    const auto steps = analysis.steps();
    EXPECT_TRUE(succeeds(steps));
    return steps ? (*steps)->peak_bytes : 0;
  };
  Analysis fresh(job);
  const std::int64_t before = bytes_of(fresh);
  Analyses analyses;
  {
    const auto lent = analyses.take(job);
    ASSERT_TRUE(succeeds(lent->run(*find_profile("t4-16gb"))));
    EXPECT_LT(bytes_of(*lent), before);
  }
  EXPECT_EQ(bytes_of(*analyses.take(job)), before) << "as if no GPU had been named";

  // An estimator that runs nothing says the same before another one and behind it.
  const GpuProfile larger = *find_profile("a100-40gb");
  const estimate::FakeTensor fake;
  const auto first = fake.estimate(job, larger);
  ASSERT_TRUE(succeeds(first));
  Analysis shared(job);
  ASSERT_TRUE(succeeds(Replay().estimate(shared, *find_profile("t4-16gb"))));
  const auto behind = fake.estimate(shared, larger);
  ASSERT_TRUE(succeeds(behind));
  EXPECT_EQ(behind->expected, first->expected);
}

TEST(Analyses, AShorterBatchMayHaveALargerChunkWhichUpperCovers) {
  const Replay replay;
  TrainingJob job = chunked_job(model::LossForms::fused_target);
  job.loss_form.count = 3072;
  const auto exact = replay.estimate(job, *find_profile("a100-40gb"));
  job.padding = true;
  const auto padded = replay.estimate(job, *find_profile("a100-40gb"));
  ASSERT_TRUE(succeeds(exact));
  ASSERT_TRUE(succeeds(padded));
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  EXPECT_GE(padded->upper.count() - exact->upper.count(), 2 * kGib) << "chunks of 3 GiB in place of 1";
  const auto says = [](const auto& of, std::string_view words) {
    return std::ranges::any_of(of->assumed, [&](const auto& each) {
      return each.about == "loss" && each.text.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(says(padded, "at most 3072 MiB; a batch with fewer tokens"));
  EXPECT_TRUE(says(exact, "at most 3072 MiB; the loss is compiled"));
}

TEST(Analyses, AFailureLeavesTheOthersAlone) {
  Analyses analyses;
  const Replay replay;
  TrainingJob job = resnet50();
  const auto first = replay.estimate(*analyses.take(job), gpu());
  ASSERT_TRUE(succeeds(first));
  job.software = "abacus";
  EXPECT_TRUE(fails(replay.estimate(*analyses.take(job), gpu()), ErrorCode::invalid_argument, 0, "abacus"));
  job.software.clear();
  job.batch_size = INT64_MAX;
  EXPECT_FALSE(replay.estimate(*analyses.take(job), gpu()));
  job.batch_size = 32;
  const auto again = replay.estimate(*analyses.take(job), gpu());
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->expected, first->expected);
}

TEST(Analyses, ManyThreadsGetTheSame) {
  Analyses analyses;
  const Replay replay;
  const auto jobs = jobs_of({*parse_summary(testing::kSmallGraph), 4});
  std::vector<Bytes> expected;
  for (const TrainingJob& job : jobs) {
    const auto estimate = replay.estimate(job, gpu());
    expected.push_back(estimate ? estimate->expected : Bytes(0));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  constexpr std::size_t kThreads = 12;  // more than there are places
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t round = 0; round < 200; ++round) {
        const std::size_t at = (thread + round) % jobs.size();
        const auto found = replay.estimate(*analyses.take(jobs[at]), gpu());
        if ((found ? found->expected : Bytes(0)) != expected[at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// The loops that may run long see the deadline, and what they leave is not taken for a result.
TEST(DeadlineOfEstimates, EndsEveryEstimatorAndTheSearchForABatch) {
  const TrainingJob job = resnet50();
  const core::Deadline deadline(1);
  while (!core::deadline_passed()) {
  }
  for (const estimate::EstimatorEntry& entry : estimate::estimators()) {
    if (entry.name == "replay-corrected" || entry.name.starts_with("gpumemnet"))
      continue;  // their models are read late
    const auto estimator = entry.create({});
    ASSERT_TRUE(succeeds(estimator));
    EXPECT_TRUE(fails((*estimator)->estimate(job, gpu()), ErrorCode::deadline_exceeded, 0, "deadline"));
  }
  EXPECT_TRUE(fails(largest_batch(job, gpu(), Replay()), ErrorCode::deadline_exceeded, 0, "deadline"));
}

}  // namespace
}  // namespace gpumem::analysis
