#include "gpumem_datasets/simulator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gpumem/place/policies.hpp"

namespace gpumem::datasets {

using namespace place;
namespace {

using core::Bytes;
using utilisation::Sharing;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Server server_of(std::int64_t gpus, std::int64_t gib = 10) {
  Server server;
  for (std::int64_t index = 0; index < gpus; ++index) {
    ServerGpu gpu;
    gpu.id = std::to_string(index);
    gpu.total = Bytes(gib * kGiB);
    server.gpus.push_back(std::move(gpu));
  }
  return server;
}

SimulatedJob job(std::string id, double arrival_s, double duration_s, std::int64_t need_gib, std::int64_t gpus = 1) {
  SimulatedJob made;
  made.id = std::move(id);
  made.arrival_s = arrival_s;
  made.duration_s = duration_s;
  made.need = Bytes(need_gib * kGiB);
  made.gpus = gpus;
  return made;
}

SimulatedJob estimated(SimulatedJob made, std::int64_t estimate_gib, std::int64_t margin_gib = 0) {
  made.knowledge = Knowledge::estimated;
  made.expected = Bytes(estimate_gib * kGiB);
  made.reserve = Bytes((estimate_gib + margin_gib) * kGiB);
  return made;
}

/// Placed at once, grown at once, whatever is free.
SimulationOptions plain() {
  SimulationOptions options;
  options.conditions = {.smact_cap = {}, .free_floor = Bytes(), .idle_first = false};
  options.window_s = 0.0;
  options.ramp_s = 0.0;
  options.keep_usage = true;
  return options;
}

Simulation run(const std::vector<SimulatedJob>& jobs, const Server& server, std::string_view policy,
               const SimulationOptions& options = plain()) {
  auto simulation = simulate(jobs, server, **make_policy(policy), options);
  EXPECT_TRUE(simulation) << to_string(simulation.error());
  return simulation ? *std::move(simulation) : Simulation();
}

TEST(Simulator, ExclusiveJobsFollowEachOther) {
  const Simulation done = run({job("a", 0, 100, 4), job("b", 10, 50, 4)}, server_of(1), "exclusive");
  ASSERT_EQ(done.runs.size(), 2U);
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 100.0);
  EXPECT_DOUBLE_EQ(done.jobs[1].end_s, 150.0);
  EXPECT_DOUBLE_EQ(done.totals.total_s, 150.0);
  EXPECT_DOUBLE_EQ(done.totals.mean_wait_s, 45.0);
  EXPECT_DOUBLE_EQ(done.totals.mean_execution_s, 75.0);
  EXPECT_DOUBLE_EQ(done.totals.mean_completion_s, 120.0);
  EXPECT_EQ(done.totals.finished, 2);
  EXPECT_EQ(done.totals.out_of_memory, 0);
  EXPECT_DOUBLE_EQ(done.totals.mean_smact, 0.5);
  EXPECT_DOUBLE_EQ(done.totals.mean_memory, 0.4);
}

TEST(Simulator, TimeBeginsWithTheFirstArrival) {
  const Simulation done = run({job("b", 1010, 50, 4), job("a", 1000, 100, 4)}, server_of(1), "exclusive");
  EXPECT_DOUBLE_EQ(done.begin_s, 1000.0);
  EXPECT_DOUBLE_EQ(done.totals.total_s, 150.0);
  EXPECT_EQ(done.runs[0].job, 1U);  // first to come, first to go
}

TEST(Simulator, JobsOnOneGpuSlowEachOtherDown) {
  const Simulation done = run({job("a", 0, 100, 4), job("b", 0, 100, 4)}, server_of(1), "magm");
  // Two halves: 1 / (1 - 0.5 * 0.5) of the time.
  EXPECT_NEAR(done.jobs[0].end_s, 100.0 / 0.75, 1e-9);
  EXPECT_NEAR(done.jobs[1].end_s, 100.0 / 0.75, 1e-9);
  EXPECT_NEAR(done.totals.mean_smact, 0.75, 1e-12);
}

TEST(Simulator, SpeedChangesWhenJobsComeAndGo) {
  const Simulation done = run({job("a", 0, 100, 4), job("b", 50, 100, 4)}, server_of(1), "magm");
  // a: 50 s by itself, then 50 s of work at 3/4; b: as much of its work meanwhile, then 50 s by itself.
  EXPECT_NEAR(done.jobs[0].end_s, 50.0 + 50.0 / 0.75, 1e-9);
  EXPECT_NEAR(done.jobs[1].end_s, 50.0 + 50.0 / 0.75 + 50.0, 1e-9);
}

TEST(Simulator, WithoutMpsJobsTakeTurnsInTime) {
  SimulationOptions options = plain();
  options.sharing = Sharing::streams;
  const Simulation done = run({job("a", 0, 100, 4), job("b", 0, 100, 4)}, server_of(1), "magm", options);
  const double busy = 0.5 * (0.5 + std::sqrt(0.5));
  EXPECT_NEAR(done.jobs[0].end_s, 100.0 * 2 * busy / (1 - (1 - busy) * (1 - busy)), 1e-9);
}

TEST(Simulator, AJobOfSeveralGpusIsAsFastAsOnTheSlowest) {
  // b comes to one of a's two GPUs: a is slowed down on both.
  const Simulation done = run({job("a", 0, 100, 4, 2), job("b", 0, 1000, 4)}, server_of(2), "magm");
  EXPECT_NEAR(done.jobs[0].end_s, 100.0 / 0.75, 1e-9);
  EXPECT_NEAR(done.totals.mean_smact * done.totals.total_s * 2, 2 * 50.0 + 500.0, 1e-6);  // all work is done once
}

TEST(Simulator, WhoComesLastAndFindsNoRoomHasRunOutOfMemory) {
  const Simulation done = run({job("a", 0, 100, 6), job("b", 20, 100, 6)}, server_of(1), "magm");
  ASSERT_EQ(done.runs.size(), 3U);
  EXPECT_EQ(done.runs[1].job, 1U);
  EXPECT_TRUE(done.runs[1].out_of_memory);
  EXPECT_DOUBLE_EQ(done.runs[1].end_s, 20.0);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 100.0);  // alone
  EXPECT_EQ(done.jobs[1].out_of_memory, 1);
  EXPECT_DOUBLE_EQ(done.jobs[1].end_s, 200.0);
  EXPECT_DOUBLE_EQ(done.totals.mean_wait_s, 40.0);  // of b from 20 to 100
  EXPECT_EQ(done.totals.out_of_memory, 1);
}

TEST(Simulator, AJobThatRanOutOfMemoryGoesFirst) {
  const Simulation done = run({job("a", 0, 100, 6), job("b", 10, 10, 6), job("c", 11, 10, 1)}, server_of(1), "magm");
  // b crashes at 10 and waits to run by itself; c follows it although there would be room.
  ASSERT_EQ(done.runs.size(), 4U);
  EXPECT_EQ(done.runs[2].job, 1U);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 100.0);
  EXPECT_EQ(done.runs[3].job, 2U);
  EXPECT_DOUBLE_EQ(done.runs[3].start_s, 110.0);
}

TEST(Simulator, AJobIsGivenUpAfterSoManyRetries) {
  SimulationOptions options = plain();
  options.recovery.retries = 0;
  const Simulation done = run({job("a", 0, 100, 6), job("b", 20, 100, 6)}, server_of(1), "magm", options);
  EXPECT_EQ(done.jobs[1].verdict, Verdict::given_up);
  EXPECT_EQ(done.totals.finished, 1);
  EXPECT_EQ(done.totals.failed, 1);
  EXPECT_DOUBLE_EQ(done.totals.total_s, 100.0);
  EXPECT_DOUBLE_EQ(done.totals.mean_execution_s, 100.0);
}

TEST(Simulator, GrowingRecoveryAsksForMore) {
  SimulationOptions options = plain();
  options.recovery.kind = RecoveryKind::growing;
  // b had 4 GiB of GPU 0 next to a; it comes back where 9 GiB are free.
  const Simulation done =
      run({job("a", 0, 100, 6), job("x", 0, 50, 5), job("b", 20, 100, 6)}, server_of(2), "magm", options);
  EXPECT_EQ(done.jobs[2].out_of_memory, 1);
  ASSERT_EQ(done.runs.size(), 4U);
  EXPECT_DOUBLE_EQ(done.runs[3].start_s, 50.0);
  EXPECT_EQ(done.runs[3].gpus, std::vector<std::size_t>{1});
}

TEST(Simulator, OneJobAWindow) {
  SimulationOptions options = plain();
  options.window_s = 60.0;
  const Simulation done =
      run({job("a", 0, 1000, 1), job("b", 0, 1000, 1), job("c", 300, 1000, 1)}, server_of(3), "magm", options);
  EXPECT_DOUBLE_EQ(done.runs[0].start_s, 0.0);
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 60.0);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 300.0);
}

TEST(Simulator, AJobGrowsInStepsWithinTwiceTheRamp) {
  SimulationOptions options = plain();
  options.ramp_s = 30.0;
  const Simulation done = run({job("a", 0, 1000, 8)}, server_of(1), "magm", options);
  std::int64_t last = 0;
  int steps = 0;
  for (const Usage& usage : done.usage[0]) {
    if (usage.used.count() <= last) continue;
    EXPECT_EQ(usage.used.count() - last, kGiB);
    EXPECT_LE(usage.at_s, 60.0);
    last = usage.used.count();
    ++steps;
  }
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(done.usage[0].back().used.count(), 0);
}

TEST(Simulator, AShortJobHasGrownByItsMiddle) {
  SimulationOptions options = plain();
  options.ramp_s = 3000.0;
  const Simulation done = run({job("a", 0, 10, 8)}, server_of(1), "magm", options);
  Bytes most;
  for (const Usage& usage : done.usage[0]) {
    if (usage.at_s <= 5.0) most = std::max(most, usage.used);
  }
  EXPECT_EQ(most, Bytes(8 * kGiB));
}

TEST(Simulator, AnEstimateKeepsJobsApart) {
  const Simulation done =
      run({estimated(job("a", 0, 100, 6), 6), estimated(job("b", 20, 100, 6), 6)}, server_of(1), "magm");
  EXPECT_EQ(done.totals.out_of_memory, 0);
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 100.0);
}

TEST(Simulator, WhatIsSetAsideCountsBeforeItIsUsed) {
  SimulationOptions options = plain();
  options.ramp_s = 1000.0;
  const Simulation done =
      run({estimated(job("a", 0, 9000, 6), 6), estimated(job("b", 1, 9000, 6), 6)}, server_of(1), "magm", options);
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 9000.0);
}

TEST(Simulator, WithoutAnEstimateAJobStartsOnAnIdleGpuOnly) {
  SimulatedJob none = job("none", 1, 100, 1);
  none.knowledge = Knowledge::none;
  const Simulation done =
      run({estimated(job("a", 0, 100, 2), 2), none, estimated(job("c", 2, 10, 2), 2)}, server_of(1), "magm");
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 100.0);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 100.0);  // others may join it
}

TEST(Simulator, AnEstimateThatNoGpuHoldsGetsAnIdleOne) {
  const Simulation done =
      run({estimated(job("a", 0, 100, 2), 2), estimated(job("b", 1, 100, 2), 50)}, server_of(1), "magm");
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 100.0);
  EXPECT_EQ(done.totals.finished, 2);
}

TEST(Simulator, NobodyOvertakesTheHeadOfTheQueue) {
  const Simulation done =
      run({job("a", 0, 100, 4), job("two", 1, 10, 4, 2), job("c", 2, 10, 4)}, server_of(2), "exclusive");
  EXPECT_DOUBLE_EQ(done.runs[1].start_s, 100.0);
  EXPECT_EQ(done.runs[1].gpus.size(), 2U);
  EXPECT_EQ(done.runs[2].job, 2U);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 110.0);
}

TEST(Simulator, ABusyGpuIsClosed) {
  SimulationOptions options = plain();
  options.conditions.smact_cap = 0.8;
  std::vector<SimulatedJob> jobs = {job("a", 0, 100, 1), job("b", 0, 100, 1), job("c", 0, 100, 1), job("d", 0, 100, 1)};
  for (SimulatedJob& made : jobs) made.smact = 0.5;
  // Together 0.5, 0.75, 0.875: the fourth waits.
  const Simulation done = run(jobs, server_of(1), "magm", options);
  EXPECT_DOUBLE_EQ(done.runs[2].start_s, 0.0);
  EXPECT_NEAR(done.runs[3].start_s, 100.0 * 1.5 / 0.875, 1e-9);
}

TEST(Simulator, EnergyFollowsActivity) {
  const std::vector<SimulatedJob> jobs = {job("a", 0, 100, 4)};
  const auto done = simulate(jobs, server_of(2), **make_policy("magm"), plain(), PowerModel{50.0, 400.0});
  ASSERT_TRUE(done);
  EXPECT_NEAR(done->totals.energy_j.value_or(0), 100.0 * (50.0 + 0.5 * 350.0) + 100.0 * 50.0, 1e-6);
  EXPECT_FALSE(simulate(jobs, server_of(2), **make_policy("magm"), plain())->totals.energy_j);
}

TEST(Simulator, SeedsDecideHowFastJobsGrow) {
  SimulationOptions options = plain();
  options.ramp_s = 60.0;
  const std::vector<SimulatedJob> jobs = {job("a", 0, 1000, 8)};
  const auto grown_at = [&](std::uint64_t seed) {
    options.seed = seed;
    const Simulation done = run(jobs, server_of(1), "magm", options);
    return done.usage[0][done.usage[0].size() - 2].at_s;
  };
  EXPECT_DOUBLE_EQ(grown_at(1), grown_at(1));
  EXPECT_NE(grown_at(1), grown_at(2));
}

struct Wrong {
  SimulatedJob job;
  std::string says;
};

Wrong wrong(std::string says, void (*change)(SimulatedJob&)) {
  Wrong made{job("j", 0, 10, 1), std::move(says)};
  change(made.job);
  return made;
}

TEST(Simulator, RefusesWhatCannotBe) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const Wrong& each : {
           wrong("has no id", [](SimulatedJob& j) { j.id.clear(); }),
           wrong("arrives at a time", [](SimulatedJob& j) { j.arrival_s = -1; }),
           wrong("arrives at a time", [](SimulatedJob& j) { j.arrival_s = kNaN; }),
           wrong("takes no time", [](SimulatedJob& j) { j.duration_s = -1; }),
           wrong("takes no time", [](SimulatedJob& j) { j.duration_s = 0; }),
           wrong("needs no memory", [](SimulatedJob& j) { j.need = Bytes(0); }),
           wrong("negative estimate", [](SimulatedJob& j) { j.reserve = Bytes(-1); }),
           wrong("between 0 and 1", [](SimulatedJob& j) { j.smact = kNaN; }),
           wrong("asks for 0 GPUs", [](SimulatedJob& j) { j.gpus = 0; }),
           wrong("asks for 3 GPUs", [](SimulatedJob& j) { j.gpus = 3; }),
           wrong("more than any has", [](SimulatedJob& j) { j.need = Bytes(11 * kGiB); }),
       }) {
    const auto done = simulate({each.job}, server_of(2), **make_policy("magm"), plain());
    ASSERT_FALSE(done) << each.says;
    EXPECT_EQ(done.error().code, core::ErrorCode::invalid_argument);
    EXPECT_NE(done.error().message.find(each.says), std::string::npos) << done.error().message;
  }
}

TEST(Simulator, RefusesJobsAndServersThatMakeNoSense) {
  const auto policy = *make_policy("magm");
  EXPECT_FALSE(simulate({}, server_of(1), *policy, plain()));
  EXPECT_FALSE(simulate({job("a", 0, 1, 1), job("a", 0, 1, 1)}, server_of(1), *policy, plain()));
  EXPECT_FALSE(simulate({job("a", 0, 1, 1)}, Server(), *policy, plain()));
  Server used = server_of(1);
  ASSERT_TRUE(used.gpus[0].jobs.add({"old", Bytes(1), 0.0, false}));
  EXPECT_FALSE(simulate({job("a", 0, 1, 1)}, used, *policy, plain()));
  SimulationOptions options = plain();
  options.window_s = -1;
  EXPECT_FALSE(simulate({job("a", 0, 1, 1)}, server_of(1), *policy, options));
  options = plain();
  options.ramp_s = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(simulate({job("a", 0, 1, 1)}, server_of(1), *policy, options));
  EXPECT_FALSE(simulate({job("a", 0, 1, 1)}, server_of(1), *policy, plain(), PowerModel{100.0, 50.0}));
}

}  // namespace
}  // namespace gpumem::datasets
