#include "gpumem/plan/batch_loader.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::bytes_of;
using testing::Events;
using testing::events;
using testing::net;
using testing::planned;

TEST(BatchLoader, ABatchArrivesAsItsStepBegins) {
  const TrainingJob job = net();
  EXPECT_EQ(events(job, planned(job).plan, Phase::batch, 2),
            Events({"-32 input", "-16 input", "+32 input", "+16 input"}));
}

TEST(BatchLoader, FetchedAheadTheNextOneArrivesBeforeTheLastOneGoes) {
  TrainingJob job = net();
  job.prefetch = true;
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::batch, 1),
            Events({"+8 input", "+16 input", "+32 input", "-8 input",     // the first: bytes, labels, floats
                    "+8 input", "+16 input", "+32 input", "-8 input"}));  // the one behind it
  EXPECT_EQ(events(job, plan, Phase::batch, 2),
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
