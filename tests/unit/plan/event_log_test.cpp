#include "gpumem/plan/run_state.hpp"

#include <gtest/gtest.h>

namespace gpumem::plan {
namespace {

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

}  // namespace
}  // namespace gpumem::plan
