#include "gpumem/plan/run_state.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::bytes_of;
using testing::Events;
using testing::events;
using testing::net;
using testing::planned;

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

}  // namespace
}  // namespace gpumem::plan
