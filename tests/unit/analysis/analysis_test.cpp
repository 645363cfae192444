#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/deadline.hpp"
#include "graphs.hpp"
#include "small_transformers.hpp"

namespace gpumem::analysis {
namespace {

using testing::fails;
using testing::succeeds;

WorkingMemory of_blocks(std::size_t blocks) {
  WorkingMemory memory;
  memory.allocator.blocks.reserve(blocks);
  return memory;
}

TEST(WorkingMemory, AThreadGetsWhatItLeft) {
  (void)take_working_memory();
  leave_working_memory(of_blocks(100));
  std::thread([] { EXPECT_EQ(take_working_memory().bytes(), 0U) << "another thread has its own"; }).join();
  EXPECT_GE(take_working_memory().bytes(), 100 * sizeof(device::Block));
  EXPECT_EQ(take_working_memory().bytes(), 0U) << "it is taken";
}

TEST(WorkingMemory, TheLargerIsKeptAndNothingTooLarge) {
  (void)take_working_memory();
  leave_working_memory(of_blocks(100));
  leave_working_memory(of_blocks(10));
  leave_working_memory(of_blocks(kMostWorkingMemory / sizeof(device::Block) + 1));
  const std::size_t kept = take_working_memory().bytes();
  EXPECT_GE(kept, 100 * sizeof(device::Block));
  EXPECT_LT(kept, kMostWorkingMemory);
}

TEST(WorkingMemory, AnAnalysisLeavesItsPlanAndBlocks) {
  (void)take_working_memory();
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(gpu);
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet18.json");
  ASSERT_TRUE(graph);
  std::size_t events = 0;
  {
    Analysis analysis(TrainingJob(*std::move(graph), 4));
    ASSERT_TRUE(analysis.run(*gpu));
    events = (*analysis.steps())->events.size();
  }
  const WorkingMemory left = take_working_memory();
  EXPECT_GE(left.plan.events.capacity(), events);
  EXPECT_FALSE(left.allocator.blocks.empty());
}

const GpuProfile& gpu() {
  static const GpuProfile kGpu = *find_profile("t4-16gb");
  return kGpu;
}

TrainingJob resnet50() { return {*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json"), 32}; }

/// One field of a job changed, and which stages stand all the same.
struct Change {
  void (*make)(TrainingJob& job);
  bool keeps_wiring = true;
  bool keeps_recording = true;
};

/// Every field of a job but its graph.
const std::vector<Change> kChanges = {
    {[](TrainingJob& job) { job.batch_size = 96; }},
    {[](TrainingJob& job) {
       job.input_shape = {3, 128, 128};
     },
     false, false},
    {[](TrainingJob& job) { job.sequence_length = 16; }, false, false},
    {[](TrainingJob& job) {
       job.image = {64, 64};
     },
     false, false},
    {[](TrainingJob& job) { job.images = 2; }, false, false},
    {[](TrainingJob& job) { job.frames = 4; }, false, false},
    {[](TrainingJob& job) { job.precision = Precision::amp_fp16; }, true, false},
    {[](TrainingJob& job) { job.loss = model::Loss::mse; }, true, false},
    {[](TrainingJob& job) {
       job.loss_form = {model::LossForms::fused_ce, 0};
     },
     true, false},
    {[](TrainingJob& job) { job.loop = model::Loop::hf_trainer; }, false, false},
    {[](TrainingJob& job) {
       job.objective = {model::Objective::log_probabilities, 8};
     },
     true, false},
    {[](TrainingJob& job) {
       job.activation_checkpointing = true;
       job.checkpoints = {model::Checkpoints::every, 2};
     },
     false, false},
    {[](TrainingJob& job) { job.attention = model::AttentionBackend::eager; }, false, false},
    {[](TrainingJob& job) { job.offload = model::Offload::activations; }, true, false},
    {[](TrainingJob& job) { job.kernels = model::Kernels::liger; }, true, false},
    {[](TrainingJob& job) { job.transformers = model::Transformers::v4_45; }, false, false},
    {[](TrainingJob& job) { job.padding = true; }, false, false},
    {[](TrainingJob& job) { job.batch_lengths = model::BatchLengths::longest_first; }},
    {[](TrainingJob& job) { job.optimizer = Optimizer::sgd; }},
    {[](TrainingJob& job) { job.foreach = false; }},
    {[](TrainingJob& job) { job.fused = true; }},
    {[](TrainingJob& job) { job.weight_decay = true; }},
    {[](TrainingJob& job) { job.prefetch = true; }},
    {[](TrainingJob& job) { job.cudnn_benchmark = true; }},
    {[](TrainingJob& job) { job.compile = true; }},
    {[](TrainingJob& job) { job.gradient_accumulation = 3; }},
    {[](TrainingJob& job) { job.activation_checkpointing = true; }, false, false},
    {[](TrainingJob& job) { job.zero_grad = model::ZeroGrad::in_place; }},
    {[](TrainingJob& job) { job.zero_grad = model::ZeroGrad::step_end; }},
    {[](TrainingJob& job) { job.software = "lazy-loading"; }},
    {[](TrainingJob& job) { job.samples_per_epoch = 1000; }},
    {[](TrainingJob& job) { job.summary_pass = true; }},
    {[](TrainingJob& job) { job.validation_pass = true; }},
    {[](TrainingJob& job) { job.strict = true; }, false, false},
    {[](TrainingJob& job) { job.freeze = "layer1*"; }, true, false},
    {[](TrainingJob& job) { job.train = "fc"; }, true, false},
    {[](TrainingJob& job) {
       job.lora = 4;
       job.lora_targets = "fc";
     },
     true, false},
    {[](TrainingJob& job) { job.lora_targets = "fc"; }, true, false},
    {[](TrainingJob& job) { job.lora_dtype = model::AdapterType::bf16; }, true, false},
    {[](TrainingJob& job) { job.lora_dropout = 0.1; }, true, false},
    {[](TrainingJob& job) { job.peft = model::PeftMethod::dora; }, true, false},
    {[](TrainingJob& job) { job.peft_options = "r=8"; }, true, false},
    {[](TrainingJob& job) { job.layout.data_parallel = 2; }},
    {[](TrainingJob& job) {
      job.layout.data_parallel = 2;
      job.layout.sharding = {model::Shardings::ddp, 0};
    }},
    {[](TrainingJob& job) {
      job.layout.rank = {model::Ranks::last, 0};
    }},
    {[](TrainingJob& job) { job.layout.tensor_parallel = 2; }, true, false},
    {[](TrainingJob& job) { job.layout.pipeline_parallel = 2; }, true, false},
    {[](TrainingJob& job) { job.quantize = model::Quantization::nf4; }, true, false},
    {[](TrainingJob& job) { job.base_dtype = model::BaseType::bf16; }, true, false},
};

/// All figures of a run, or the error's text.
std::string told(Analysis& analysis) {
  const auto run = analysis.run(gpu());
  if (!run) return core::to_string(run.error());
  const AllocatorRun& of = run->run;
  const auto work = analysis.work();
  return std::to_string(of.peak_allocated) + " " + std::to_string(of.peak_reserved) + " " +
         std::to_string(of.peak_event) + " " + std::to_string(run->context.expected.count()) + " " +
         std::to_string(run->fits) + " " +
         (work ? std::to_string((*work)->kernels.size()) : core::to_string(work.error()));
}

TEST(Analysis, MakesEachStageOnce) {
  Analysis analysis(resnet50());
  const auto wired = analysis.wired();
  const auto pass = analysis.forward_pass();
  const auto steps = analysis.steps();
  const auto work = analysis.work();
  ASSERT_TRUE(succeeds(wired) && succeeds(pass) && succeeds(steps) && succeeds(work));
  ASSERT_TRUE(succeeds(analysis.run(gpu())));
  EXPECT_EQ(*analysis.wired(), *wired);
  EXPECT_EQ(*analysis.forward_pass(), *pass);
  EXPECT_EQ(*analysis.steps(), *steps);
  EXPECT_EQ(*analysis.work(), *work);
}

TEST(Analysis, MovedToAnotherJobKeepsWhatThatOneShares) {
  const TrainingJob job = resnet50();
  for (std::size_t at = 0; at < kChanges.size(); ++at) {
    const Change& change = kChanges[at];
    TrainingJob other = job;
    change.make(other);
    Analysis analysis(job);
    ASSERT_TRUE(succeeds(analysis.forward_pass()));
    EXPECT_EQ(analysis.forward_alike(other), change.keeps_recording) << at;
    const model::ModelGraph* graph = &(*analysis.wired())->graph();
    const plan::ForwardPass* pass = *analysis.forward_pass();
    const void* tensors = pass->tape.tensors().data();
    analysis.set_job(other);
    EXPECT_EQ(analysis.job(), other);
    const auto again = analysis.forward_pass();
    if (!again) continue;  // a sequence length that no input of the graph takes
    if (change.keeps_recording) {
      EXPECT_EQ((*again)->tape.tensors().data(), tensors) << at;
    }
    if (change.keeps_wiring) {
      EXPECT_EQ(&(*analysis.wired())->graph(), graph) << at;
    }
  }
  EXPECT_FALSE(Analysis(job).forward_alike(resnet50())) << "another reading of the file is another graph";
}

TEST(Analysis, MovedToAnotherJobGivesWhatAFreshOneDoes) {
  const TrainingJob job = resnet50();
  const std::string alone = [&] {
    Analysis fresh(job);
    return told(fresh);
  }();
  Analysis moved(job);
  for (std::size_t at = 0; at < kChanges.size(); ++at) {
    TrainingJob other = job;
    kChanges[at].make(other);
    Analysis fresh(other);
    const std::string expected = told(fresh);
    moved.set_job(other);
    EXPECT_EQ(told(moved), expected) << at;
    moved.set_job(job);
    EXPECT_EQ(told(moved), alone) << at;
  }
}

TEST(Analysis, TakesOfAnotherWhatIsTheSameForBoth) {
  const TrainingJob job = resnet50();
  Analysis known(job);
  ASSERT_TRUE(succeeds(known.forward_pass()));
  for (std::size_t at = 0; at < kChanges.size(); ++at) {
    TrainingJob other = job;
    kChanges[at].make(other);
    Analysis fresh(other);
    Analysis taking(other);
    taking.take_stages_of(known);
    EXPECT_EQ(told(taking), told(fresh)) << at;
    Analysis back(job);  // what the changed job has made of its adapters and its layout is not this one's
    back.take_stages_of(fresh);
    EXPECT_EQ(told(back), told(known)) << at;
    const auto wired = taking.wired();
    if (!wired || !kChanges[at].keeps_wiring) continue;
    EXPECT_EQ(&(*wired)->graph(), &(*known.wired())->graph()) << at;
  }
}

TEST(Analysis, APipelinesRanksAreMadeOnce) {
  TrainingJob job = testing::small_llama(8);
  job.layout.pipeline_parallel = 4;
  job.gradient_accumulation = 4;
  Analysis analysis(job);
  std::vector<const void*> tensors;
  std::vector<std::string> figures;
  const auto look_at = [&](std::int64_t rank) {
    TrainingJob of_rank = job;
    of_rank.layout.rank = {model::Ranks::one, rank};
    analysis.set_job(of_rank);
    const auto pass = analysis.forward_pass();
    ASSERT_TRUE(succeeds(pass));
    tensors.push_back((*pass)->tape.tensors().data());
    figures.push_back(told(analysis));
  };
  for (const std::int64_t rank : {0, 2, 3, 0, 2, 3}) look_at(rank);
  for (std::size_t at = 0; at < 3; ++at) {
    EXPECT_EQ(tensors[at], tensors[at + 3]) << "known from the first time";
    EXPECT_EQ(figures[at], figures[at + 3]);
  }
  EXPECT_NE(figures[0], figures[1]);
  job.attention = model::AttentionBackend::eager;
  look_at(2);
  Analysis fresh(analysis.job());
  EXPECT_EQ(told(analysis), told(fresh)) << "of another forward pass nothing is kept";
}

TEST(Analysis, KeepsMorePartsWhereItIsTold) {
  TrainingJob job = testing::small_llama(8);
  job.layout.pipeline_parallel = 8;
  job.gradient_accumulation = 8;
  Analysis analysis(job);
  analysis.keep_parts(1000);
  std::vector<const void*> tensors;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      job.layout.rank = {model::Ranks::one, rank};
      analysis.set_job(job);
      const auto pass = analysis.forward_pass();
      ASSERT_TRUE(succeeds(pass));
      tensors.push_back((*pass)->tape.tensors().data());
    }
  }
  for (std::size_t rank = 0; rank < 8; ++rank) EXPECT_EQ(tensors[rank], tensors[rank + 8]) << rank;
}

/// A plan that is cut leaves nothing behind: what is asked next is as ever.
TEST(Analysis, KnowsWhetherAPlanHoldsMore) {
  for (const std::int64_t stages : {1, 2}) {
    TrainingJob job = testing::small_llama(4);
    job.layout.pipeline_parallel = stages;
    job.gradient_accumulation = 4;
    if (stages > 1) job.layout.rank = {model::Ranks::one, 0};
    Analysis whole(job);
    const auto plan = whole.steps();
    ASSERT_TRUE(succeeds(plan));
    const std::int64_t peak = (*plan)->peak_bytes;
    EXPECT_FALSE(*whole.holds_more_than(peak));
    EXPECT_TRUE(*whole.holds_more_than(peak - 1));
    Analysis fresh(job);
    for (const std::int64_t bytes : {std::int64_t{0}, peak / 8, peak / 2, peak - 1}) {
      EXPECT_TRUE(*fresh.holds_more_than(bytes)) << bytes << " of " << peak;
    }
    EXPECT_FALSE(*fresh.holds_more_than(peak));
    EXPECT_EQ(told(fresh), told(whole));
    Analysis next(job);
    EXPECT_TRUE(*next.holds_more_than(peak / 2));
    next.hand_memory_to(fresh);
    EXPECT_EQ(told(next), told(whole)) << "after a plan that was cut";
  }
}

TEST(Analysis, AnAdaptedGraphIsTheWiredOneWhereNothingIsAdapted) {
  Analysis analysis(resnet50());
  const auto wired = analysis.wired();
  ASSERT_TRUE(succeeds(wired) && succeeds(analysis.adapted()));
  EXPECT_EQ(*analysis.adapted(), *wired);
  TrainingJob frozen = resnet50();
  frozen.freeze = "layer1*";
  analysis.set_job(frozen);
  ASSERT_TRUE(succeeds(analysis.adapted()));
  EXPECT_NE(*analysis.adapted(), *analysis.wired());
  EXPECT_LT((*analysis.adapted())->graph().trainable_parameters(), (*analysis.wired())->graph().parameters());
  const connect::WiredGraph* made = *analysis.adapted();
  frozen.batch_size = 4;
  frozen.activation_checkpointing = true;
  analysis.set_job(frozen);
  EXPECT_EQ(*analysis.adapted(), made) << "neither changes it";
}

TEST(Analysis, ABatchSizeKeepsTheRecording) {
  Analysis analysis(resnet50());
  ASSERT_TRUE(succeeds(analysis.run(gpu())));
  const plan::ForwardPass* pass = *analysis.forward_pass();
  for (const std::int64_t batch_size : {1, 7, 64}) {
    analysis.set_batch_size(batch_size);
    TrainingJob other = resnet50();
    other.batch_size = batch_size;
    Analysis fresh(other);
    EXPECT_EQ(told(analysis), told(fresh));
    EXPECT_EQ(*analysis.forward_pass(), pass);
  }
}

TEST(Analysis, ARunIsOfItsGpuAndItsOptions) {
  Analysis analysis(resnet50());
  device::AllocatorOptions expandable;
  expandable.expandable_segments = true;
  for (const char* name : {"t4-16gb", "a100-40gb", "h100-80gb", "t4-16gb"}) {
    const GpuProfile other = *find_profile(name);
    for (const device::AllocatorOptions& options : {device::AllocatorOptions(), expandable}) {
      Analysis fresh(resnet50());
      const auto expected = fresh.run(other, options);
      const auto found = analysis.run(other, options);
      ASSERT_TRUE(succeeds(expected) && succeeds(found));
      EXPECT_EQ(found->run.peak_reserved, expected->run.peak_reserved) << name;
      EXPECT_EQ(found->run.peak_allocated, expected->run.peak_allocated) << name;
      EXPECT_EQ(found->context.expected, expected->context.expected) << name;
      EXPECT_EQ(found->options, expected->options) << name;
    }
  }
}

TEST(Analysis, ARunKnowsOneWorkspaceRuleFromAnother) {
  Analysis analysis(resnet50());
  const auto by_rule = analysis.run(gpu());
  GpuProfile without = gpu();
  without.convolution_workspace.variant = {.name = "none",
                                           .forward = device::Copies::never,
                                           .data_gradient = device::Copies::never,
                                           .weight_gradient = device::Copies::never};
  const auto never = analysis.run(without);
  ASSERT_TRUE(succeeds(by_rule) && succeeds(never));
  EXPECT_LT(never->run.peak_reserved, by_rule->run.peak_reserved);
  EXPECT_EQ(analysis.run(gpu())->run.peak_reserved, by_rule->run.peak_reserved);
}

TEST(Analysis, ARunTellsWhatIsAllocatedWhenTheLastStepHasEnded) {
  TrainingJob job = resnet50();
  const auto left = [&] {
    const auto run = Analysis(job).run(gpu());
    EXPECT_TRUE(succeeds(run));
    EXPECT_LT(run->run.last_allocated, run->run.peak_allocated);
    return run->run.last_allocated;
  };
  const std::int64_t parameters = 25'557'032 * 4;
  const std::int64_t with_gradients = left();
  EXPECT_GT(with_gradients, 4 * parameters) << "weights, gradients and Adam's two states";
  job.zero_grad = model::ZeroGrad::step_end;
  EXPECT_NEAR(static_cast<double>(with_gradients - left()), static_cast<double>(parameters), 0.05 * parameters);
}

TEST(Analysis, OfAJobThatDoesNotFitIsWhatItWouldTake) {
  TrainingJob job = resnet50();
  job.batch_size = 1024;
  Analysis analysis(job);
  const auto run = analysis.run(gpu());
  ASSERT_TRUE(succeeds(run));
  EXPECT_FALSE(run->fits);
  EXPECT_FALSE(run->run.out_of_memory);
  EXPECT_GT(run->run.peak_reserved, gpu().capacity().count());
}

TEST(Analysis, AnErrorIsThatOfItsStageAndStays) {
  TrainingJob job = resnet50();
  job.software = "abacus";
  Analysis analysis(job);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(fails(analysis.run(gpu()), core::ErrorCode::invalid_argument, 0, "abacus"));
    EXPECT_TRUE(succeeds(analysis.steps())) << "a plan is of no GPU";
  }
  job.software.clear();
  job.batch_size = INT64_MAX;
  analysis.set_job(job);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(fails(analysis.steps(), core::ErrorCode::overflow, 4, "does not fit 64 bits"));
    EXPECT_TRUE(fails(analysis.run(gpu()), core::ErrorCode::overflow, 4, "does not fit 64 bits"));
  }
  job.batch_size = 32;
  analysis.set_job(job);
  Analysis fresh(resnet50());
  EXPECT_EQ(told(analysis), told(fresh));
}

TEST(Analysis, OfSeveralGpusHasNoRun) {
  TrainingJob job = resnet50();
  job.layout.data_parallel = 2;
  Analysis analysis(job);
  EXPECT_TRUE(fails(analysis.run(gpu()), core::ErrorCode::invalid_argument, 0, "the replay is for one GPU, not for 2"));
  EXPECT_TRUE(succeeds(analysis.work()));
}

TEST(Analysis, WhatADeadlineEndedIsMadeAnew) {
  Analysis analysis(resnet50());
  {
    const core::Deadline deadline(1);
    while (!core::deadline_passed()) {
    }
    EXPECT_TRUE(fails(analysis.run(gpu()), core::ErrorCode::deadline_exceeded, 0, "deadline"));
    EXPECT_TRUE(fails(analysis.work(), core::ErrorCode::deadline_exceeded, 0, "deadline"));
  }
  Analysis fresh(resnet50());
  EXPECT_EQ(told(analysis), told(fresh));
}

TEST(Analysis, StepsWithoutAnOptimizerAreThoseOfPlainSgd) {
  TrainingJob job = resnet50();
  Analysis analysis(job);
  const auto whole = analysis.steps(ops::Backend::cpu);
  const auto without = analysis.steps(ops::Backend::cpu, Steps::without_optimizer);
  ASSERT_TRUE(succeeds(whole) && succeeds(without));
  job.optimizer = Optimizer::sgd;
  Analysis sgd(job);
  const auto expected = sgd.steps(ops::Backend::cpu);
  ASSERT_TRUE(succeeds(expected));
  EXPECT_EQ((*without)->events.size(), (*expected)->events.size());
  EXPECT_LT((*without)->events.size(), (*whole)->events.size());
}

TEST(Analysis, ADeterministicRunOfMegatronsHasOneWorkspaceOnEveryGpu) {
  const auto peak = [](std::string_view more, std::string_view gpu) {
    Analysis analysis(testing::small_gpt(2, more));
    const auto run = analysis.run(*find_profile(std::string(gpu)));
    EXPECT_TRUE(succeeds(run));
    return run ? run->run.peak_allocated : 0;
  };
  constexpr std::string_view kDeterministic = R"(, "deterministic_mode": true)";
  const std::int64_t more = 2 * ((std::int64_t{32} << 20) - find_profile("a100-40gb")->cublas_workspace_bytes->value);
  EXPECT_EQ(peak(kDeterministic, "a100-40gb") - peak("", "a100-40gb"), more) << "of the two threads that call cuBLAS";
  EXPECT_EQ(peak(kDeterministic, "h100-80gb"), peak("", "h100-80gb")) << "Hopper's is as large anyway";
}

}  // namespace
}  // namespace gpumem::analysis
