#include "gpumem/analysis/analysis.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "gpumem/all.hpp"

namespace gpumem::analysis {
namespace {

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

}  // namespace
}  // namespace gpumem::analysis
