#include <gtest/gtest.h>

#include "gpumem/plan/run_state.hpp"
#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::in_order;
using testing::job_of;
using testing::kRows;
using testing::net;
using testing::planned;
using testing::products;

constexpr std::uint32_t kLayer = 3;

TEST(EventLog, MemoryIsReleasedWithItsLastHolder) {
  EventLog log({}, 8, 0);
  const Slot slot = log.allocate(64, Category::activation, kLayer);
  log.hold(slot);
  EXPECT_FALSE(log.has_one_holder(slot));
  EXPECT_FALSE(log.drop(slot));
  EXPECT_TRUE(log.has_one_holder(slot));
  EXPECT_TRUE(log.drop(slot));
  EXPECT_FALSE(log.drop(kNoSlot)) << "there is nothing to let go of";
  const StepPlan plan = log.take();
  ASSERT_EQ(plan.events.size(), 2U);
  EXPECT_EQ(plan.events[0].kind, Event::Kind::allocate);
  EXPECT_EQ(plan.events[0].bytes, 64);
  EXPECT_EQ(plan.events[0].layer, kLayer);
  EXPECT_EQ(plan.events[1].kind, Event::Kind::release);
  EXPECT_EQ(plan.events[1].slot, slot);
}

TEST(EventLog, HasRoomForMoreEventsThanItWasToldOf) {
  constexpr std::uint32_t kMany = 1500;
  EventLog log({}, 8, 0);
  for (std::uint32_t layer = 0; layer < kMany; ++layer) (void)log.allocate(64, Category::activation, layer);
  log.begin(Phase::forward, 1, 1);
  const StepPlan plan = log.take();
  ASSERT_EQ(plan.events.size(), kMany);
  for (std::uint32_t at = 0; at < kMany; ++at) EXPECT_EQ(plan.events[at].layer, at);
  EXPECT_EQ(plan.phases.back().first_event, kMany);
}

TEST(EventLog, KnowsThePeakOfWhatIsHeld) {
  EventLog log({}, 8, 0);
  const Slot first = log.allocate(64, Category::activation, kLayer);
  log.drop(log.allocate(8, Category::temporary, kLayer));
  log.drop(first);
  log.drop(log.allocate(70, Category::temporary, kLayer));
  EXPECT_EQ(log.take().peak_bytes, 72);
}

TEST(EventLog, APeakBeyondSixtyFourBitsIsTheLargestNumber) {
  EventLog log({}, 8, 0);
  const Slot first = log.allocate(INT64_MAX - 1, Category::activation, kLayer);
  const Slot second = log.allocate(INT64_MAX - 1, Category::activation, kLayer);
  (void)log.allocate(INT64_MAX - 1, Category::activation, kLayer);
  log.drop(first);
  log.drop(second);
  (void)log.allocate(1, Category::activation, kLayer);
  EXPECT_EQ(log.take().peak_bytes, INT64_MAX);
}

TEST(EventLog, TheSlotThatBecameFreeLastServesFirst) {
  EventLog log({}, 8, 0);
  const Slot first = log.allocate(1, Category::activation, kLayer);
  const Slot second = log.allocate(2, Category::activation, kLayer);
  log.drop(first);
  log.drop(second);
  EXPECT_EQ(log.allocate(3, Category::activation, kLayer), second);
  EXPECT_EQ(log.allocate(4, Category::activation, kLayer), first);
  const Slot third = log.allocate(5, Category::activation, kLayer);
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
  EXPECT_EQ(log.take().slots, 3U);
}

TEST(EventLog, ACallNamesItselfAndAPhaseItsFirstEvent) {
  EventLog log({}, 8, 2);
  log.begin(Phase::construction, 0, 0);
  log.drop(log.allocate(16, Category::temporary, kLayer));
  log.begin(Phase::forward, 1, 32);
  log.call({ops::Library::gemm, Direction::forward, false, -1, 32}, kLayer);
  log.call({ops::Library::convolution, Direction::data_gradient, true, 7, 32}, kLayer);
  const StepPlan plan = log.take();
  ASSERT_EQ(plan.events.size(), 4U);
  EXPECT_EQ(plan.events[2].call, 0U);
  EXPECT_EQ(plan.events[3].kind, Event::Kind::call);
  EXPECT_EQ(plan.calls[plan.events[3].call].convolution, 7);
  EXPECT_EQ(plan.events[3].bytes, 0);
  EXPECT_EQ(plan.phase_of(1).phase, Phase::construction);
  EXPECT_EQ(plan.phase_of(2).batch_size, 32);
}

TEST(EventLog, TakesTheMemoryOfAPlanThatIsNotNeeded) {
  StepPlan old;
  old.events.resize(100);
  old.phases.resize(3);
  old.slots = 9;
  const Event* const memory = old.events.data();
  EventLog log(std::move(old), 10, 0);
  EXPECT_EQ(log.allocate(8, Category::buffer, kLayer), 0U);
  const StepPlan plan = log.take();
  EXPECT_EQ(plan.events.data(), memory);
  EXPECT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.slots, 1U);
  EXPECT_TRUE(plan.phases.empty());
}

TEST(AutocastCopies, AutocastCopiesParametersOnceAForwardPass) {
  TrainingJob job = net();
  job.precision = Precision::amp_fp16;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+64 a activation"), 1) << "the weight";
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+32 a activation"), 1) << "the output";
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+128 a gradient"), 1) << "gradients are float32";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(AutocastCopies, AutocastByHand) {
  const TrainingJob job = products(Precision::amp_bf16);
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::forward),
            Events({"+16 a activation",                      // x in half precision
                    "+64 a activation", "+32 a activation",  // the weight's copy, the output
                    "+32 c activation", "+8 c activation",   // and again
                    "+16 c activation",                      // mse_loss reads float32
                    "+4 c activation", "+16 c temporary", "-16 c temporary",
                    "-64 a activation"}))  // autocast ends: backward needs no copy of the first weight
      << "labels and logits stay";
  EXPECT_EQ(events(job, plan, Phase::backward),
            Events({"+4 flow", "+16 c flow", "-16 c activation",  // mse_loss
                    "+8 c flow", "-16 c flow",                    // cast back
                    "+32 c flow", "+32 c flow", "-8 c flow", "-32 a activation", "-32 c activation", "+64 c gradient",
                    "-32 c flow",  // the weight's: the copy's own function casts it to float32
                    "+64 a flow", "-32 c flow", "-16 a activation", "+128 a gradient", "-64 a flow", "-4 flow"}));
}

TEST(AutocastCopies, CopiesOfFrozenParametersGoWithTheCallOrWithItsBackward) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false},
     "frozen": true},
    {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": false},
     "frozen": true})",
                           2);
  job.precision = Precision::amp_bf16;
  const auto plan = planned(job).plan;
  EXPECT_TRUE(
      in_order(events(job, plan, Phase::forward), {"+64 a activation", "-64 a activation", "+128 b activation"}));
  EXPECT_TRUE(in_order(events(job, plan, Phase::backward), {"+32 c flow", "-32 c activation"}));
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

/// What happens to batches as a step begins.
Events batches(const TrainingJob& job, const StepPlan& plan, std::int32_t step) {
  Events all = events(job, plan, Phase::batch, step);
  std::erase_if(all, [](const std::string& event) { return !event.ends_with("input"); });
  return all;
}

TEST(BatchLoader, ABatchArrivesAsItsStepBegins) {
  const TrainingJob job = net();
  EXPECT_EQ(batches(job, planned(job).plan, 2), Events({"-32 input", "-16 input", "+32 input", "+16 input"}));
}

TEST(BatchLoader, FetchedAheadTheNextOneArrivesBeforeTheLastOneGoes) {
  TrainingJob job = net();
  job.prefetch = true;
  const auto plan = planned(job).plan;
  EXPECT_EQ(batches(job, plan, 1),
            Events({"+8 input", "+16 input", "+32 input", "-8 input",     // the first: bytes, labels, floats
                    "+8 input", "+16 input", "+32 input", "-8 input"}));  // the one after it
  EXPECT_EQ(batches(job, plan, 2),
            Events({"+8 input", "+16 input", "+32 input", "-8 input", "-32 input", "-16 input"}));
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(BatchLoader, FetchesOnAStreamOfItsOwn) {
  TrainingJob job = net();
  job.prefetch = true;
  for (const Event& event : planned(job).plan.events) {
    if (event.kind != Event::Kind::allocate) continue;
    EXPECT_EQ(event.stream, event.category == Category::input ? 1 : 0);
  }
}

/// Two products of 64 rows and 8 columns, a tanh between them; batch 64: each tensor has 2,048 B.
TrainingJob wide() {
  TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 8]})", R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}},
    {"name": "t", "op": "tanh", "inputs": ["a"]},
    {"name": "c", "op": "linear", "inputs": ["t"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}})",
                           64);
  job.loss = model::Loss::mse;
  return job;
}

TEST(ForwardCalls, ActivationsOnTheHostComeBackOneFunctionAtATime) {
  TrainingJob job = wide();
  const auto usual = planned(job).plan;
  EXPECT_EQ(count(events(job, usual, Phase::forward), "-2048 t activation"), 0) << "tanh keeps its output";
  job.offload = model::Offload::activations;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "-2048 t activation"), 1) << "it is on the host";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(count(backward, "+2048 t activation"), 2) << "for the product that read it, and for tanh itself";
  EXPECT_EQ(count(backward, "-2048 t activation"), 2);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(usual, 2).left);
}

TEST(ForwardCalls, SmallTensorsStayOnTheGpu) {
  TrainingJob job = wide();
  job.batch_size = 16;  // 512 B a tensor
  const Events usual = events(job, planned(job).plan, Phase::forward);
  job.offload = model::Offload::activations;
  EXPECT_EQ(events(job, planned(job).plan, Phase::forward), usual);
}

TEST(ForwardCalls, AnOffloadedBlocksArgumentsComeBackForItsSecondRun) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 8);
  job.activation_checkpointing = true;
  const auto usual = planned(job).plan;
  job.offload = model::Offload::activations;
  const auto plan = planned(job).plan;
  EXPECT_LT(bytes_of(plan, 2).peak, bytes_of(usual, 2).peak);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(usual, 2).left);
  job.offload = model::Offload::checkpoints;
  const auto arguments = planned(job).plan;
  EXPECT_LT(bytes_of(arguments, 2).peak, bytes_of(usual, 2).peak);
  EXPECT_GT(bytes_of(arguments, 2).peak, bytes_of(plan, 2).peak) << "what is in no block is on the GPU";
  EXPECT_EQ(bytes_of(arguments, 2).left, bytes_of(usual, 2).left);
}

TEST(ForwardCalls, WithoutBlocksTheirArgumentsAreNowhere) {
  TrainingJob job = wide();
  const Events usual = events(job, planned(job).plan, Phase::forward);
  job.offload = model::Offload::checkpoints;
  EXPECT_EQ(events(job, planned(job).plan, Phase::forward), usual);
}

}  // namespace
}  // namespace gpumem::plan
