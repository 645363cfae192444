#include "gpumem/plan/phased_plan.hpp"

#include "plans.hpp"
#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

constexpr std::int64_t kRows = 32;

/// A plan that holds one parameter, and within its second phase an activation.
StepPlan small_plan(std::int64_t parameter, std::int64_t activation) {
  StepPlan plan;
  plan.slots = 2;
  plan.events = {
      {.bytes = parameter, .slot = 0, .kind = Event::Kind::allocate, .category = Category::parameter},
      {.bytes = activation, .slot = 1, .kind = Event::Kind::allocate, .category = Category::activation},
      {.slot = 1, .kind = Event::Kind::release},
  };
  plan.phases = {{0, Phase::construction, 0, 0}, {1, Phase::forward, 1, kRows}};
  return plan;
}

std::vector<std::int64_t> live_after_each(const StepPlan& plan) {
  std::vector<std::int64_t> held(plan.slots, 0);
  std::vector<std::int64_t> live;
  std::int64_t sum = 0;
  for (const Event& event : plan.events) {
    if (event.kind == Event::Kind::allocate) sum += held[event.slot] = event.bytes;
    if (event.kind == Event::Kind::release) sum -= std::exchange(held[event.slot], 0);
    live.push_back(sum);
  }
  return live;
}

TEST(PhasedPlan, ModelsKeepTheirOwnSlots) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(100, 10));
  const auto reference = writer.add(small_plan(50, 5));
  writer.begin("load");
  writer.play(policy, 0, 1);
  writer.play(reference, 0, 1);
  writer.begin("forward");
  writer.play(policy, 1, 2);
  writer.begin("reference");
  writer.play(reference, 1, 3);
  writer.begin("backward");
  writer.play(policy, 2, 3);
  const PhasedPlan made = std::move(writer).take();
  EXPECT_EQ(live_after_each(made.plan), (std::vector<std::int64_t>{100, 150, 160, 165, 160, 150}));
  EXPECT_EQ(made.plan.peak_bytes, 165);
  ASSERT_EQ(made.phases.size(), 4U);
  EXPECT_EQ(made.phases[2].name, "reference");
  EXPECT_EQ(made.phases[2].first_event, 3U);
  EXPECT_EQ(made.owner_of_slot, (std::vector<std::uint8_t>{0, 0, 1, 1}));
}

TEST(PhasedPlan, APlanInTheMemoryOfAnotherIsTheSame) {
  const auto written = [](PhasedPlan memory) {
    PhaseWriter writer(std::move(memory));
    const auto policy = writer.add(small_plan(100, 10));
    writer.expect(8);
    writer.begin("load");
    writer.play(policy, 0, 3);
    return std::move(writer).take();
  };
  const PhasedPlan first = written({});
  const PhasedPlan again = written(first);
  EXPECT_EQ(live_after_each(again.plan), live_after_each(first.plan));
  EXPECT_EQ(again.plan.peak_bytes, first.plan.peak_bytes);
  EXPECT_EQ(again.owner_of_slot, first.owner_of_slot);
  EXPECT_EQ(again.phases.size(), 1U);
}

TEST(PhasedPlan, AShareIsOfWhatBelongsToABatch) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(100, 10));
  writer.set_share(0.25);
  writer.play(policy, 0, 3);
  const std::uint32_t logits = writer.allocate(policy, 8, Category::temporary);
  writer.release(logits);
  writer.set_share(1.0);
  writer.play(policy, 1, 3);
  const PhasedPlan made = std::move(writer).take();
  EXPECT_EQ(live_after_each(made.plan), (std::vector<std::int64_t>{100, 103, 100, 102, 100, 110, 100}));
  EXPECT_EQ(made.plan.peak_bytes, 110);
}

TEST(PhasedPlan, WhatEventsLeaveGoesWhereTheyArePlayedAgain) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(100, 10));
  writer.play(policy, 0, 2);
  writer.set_share(2.0 / 5);
  writer.play(policy, 1, 2);
  writer.play(policy, 2, 3);
  EXPECT_EQ(live_after_each(std::move(writer).take().plan), (std::vector<std::int64_t>{100, 110, 100, 104, 100}));
}

TEST(PhasedPlan, WhatIsLeftOutIsNeitherTakenNorGivenBack) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(100, 10));
  const auto same_weights = writer.add(small_plan(100, 10));
  writer.begin("load");
  writer.play(policy, 0, 1);
  writer.play(same_weights, 0, 1, {});
  writer.begin("log-probabilities");
  writer.play(same_weights, 1, 3, only({Category::parameter}));
  EXPECT_EQ(live_after_each(std::move(writer).take().plan), (std::vector<std::int64_t>{100}));
}

TEST(PhasedPlan, AModelGoesToTheHostAndComesBack) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(100, 10));
  writer.begin("load");
  writer.play(policy, 0, 2);
  writer.set_aside(policy, only({Category::parameter}));
  writer.begin("rollout");
  const std::uint32_t cache = writer.allocate(policy, 70, Category::activation);
  writer.release(cache);
  writer.empty_cache();
  writer.bring_back(policy, only({Category::optimizer}));  // of which it has none
  writer.bring_back(policy, all_categories());
  const PhasedPlan made = std::move(writer).take();
  EXPECT_EQ(live_after_each(made.plan), (std::vector<std::int64_t>{100, 110, 10, 80, 10, 10, 110}));
  EXPECT_EQ(made.plan.events[5].kind, Event::Kind::empty_cache);
}

TEST(PhasedPlan, TheSamePhaseTwiceIsOne) {
  PhaseWriter writer;
  const auto policy = writer.add(small_plan(1, 1));
  writer.begin("load");
  writer.play(policy, 0, 1);
  writer.begin("load");
  writer.begin("rollout");  // nothing happens in it, and it is there all the same
  writer.begin("update");
  writer.play(policy, 1, 3);
  const PhasedPlan made = std::move(writer).take();
  ASSERT_EQ(made.phases.size(), 3U);
  EXPECT_EQ(made.phases[1].first_event, made.phases[2].first_event);
}

TEST(GrowingCache, EachTokenBringsALongerTensorInEachPlace) {
  constexpr std::int64_t kToken = std::int64_t{1} << 19;  // so many bytes that each token counts
  PhaseWriter writer;
  const PhaseWriter::Model model = writer.add({});
  writer.begin("rollout");
  const std::array<std::int64_t, 1> drawing = {7};
  const GrowingCache cache = {
      .layers = 2, .keys = kToken, .values = kToken / 2, .read_keys = 3, .sequences = 1, .prompt = 4, .completion = 2};
  grow_cache(writer, model, cache, drawing);
  const PhasedPlan made = std::move(writer).take();
  const std::vector<std::int64_t> live = live_after_each(made.plan);
  // The last layer's keys are there twice, of five tokens and of six.
  const std::int64_t layer = kToken + kToken / 2;
  EXPECT_EQ(*std::max_element(live.begin(), live.end()), 6 * layer + 5 * layer + 6 * kToken);
  EXPECT_EQ(live.back(), 0);
  const auto taken = std::count_if(made.plan.events.begin(), made.plan.events.end(),
                                   [](const Event& event) { return event.kind == Event::Kind::allocate; });
  EXPECT_EQ(taken, 3 * (2 * 3 + 1)) << "of 4, 5 and 6 tokens";
}

TEST(GrowingCache, FewTokensArePlayedWhereTheyBringLittle) {
  PhaseWriter writer;
  const PhaseWriter::Model model = writer.add({});
  writer.begin("rollout");
  grow_cache(writer, model, {.layers = 1, .keys = 2, .values = 2, .sequences = 1, .prompt = 100, .completion = 1000},
             {});
  EXPECT_EQ(std::move(writer).take().plan.events.size(), 2U * 4U) << "of the prompt, and of all tokens";
}

TEST(RunPlan, HasTheseParts) {
  const TrainingJob job = testing::net();
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  const RunPart parts[] = {RunPart::forward, RunPart::train};
  const auto plan = make_run_plan(job, *pass, parts);
  ASSERT_TRUE(testing::succeeds(plan));
  std::vector<Phase> phases;
  for (const PhaseMark& mark : plan->phases) phases.push_back(mark.phase);
  EXPECT_EQ(phases, (std::vector<Phase>{Phase::construction, Phase::validation, Phase::batch, Phase::forward,
                                        Phase::backward, Phase::optimizer}));
}

}  // namespace
}  // namespace gpumem::plan
