// What holds for every trace: random jobs on random servers under each policy, whose seed is printed on failure.
#include "gpumem_datasets/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "gpumem/place/policies.hpp"

namespace gpumem::datasets {

using namespace place;
namespace {

using core::Bytes;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

enum class Estimates : std::uint8_t { none, random, above, exact };

/// A trace, a server and options; times come in few steps, so that equal ones are met often.
struct Case {
  std::vector<SimulatedJob> jobs;
  Server server;
  SimulationOptions options;
};

class DrawnCase {
 public:
  explicit DrawnCase(std::uint32_t seed) : random_(seed) {}

  std::int64_t whole(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool one_in(std::int64_t count) { return whole(1, count) == 1; }

  Case make(Estimates estimates) {
    Case made;
    const std::int64_t gpus = whole(1, 6);
    std::int64_t least = 100;
    for (std::int64_t index = 0; index < gpus; ++index) {
      ServerGpu gpu;
      gpu.id = std::to_string(index);
      const std::int64_t gib = whole(1, 4) * 10;
      least = std::min(least, gib);
      gpu.total = Bytes(gib * kGibibyte);
      made.server.gpus.push_back(std::move(gpu));
    }
    const std::int64_t jobs = whole(1, 60);
    for (std::int64_t index = 0; index < jobs; ++index) {
      made.jobs.push_back(job("j" + std::to_string(index), gpus, least, estimates));
    }
    SimulationOptions& options = made.options;
    if (one_in(2)) options.conditions.smact_cap.reset();
    if (one_in(2)) options.conditions.free_floor = Bytes();
    options.conditions.idle_first = one_in(2);
    options.sharing = one_in(2) ? utilisation::Sharing::mps : utilisation::Sharing::streams;
    options.recovery.kind = one_in(2) ? RecoveryKind::exclusive : RecoveryKind::growing;
    options.window_s = one_in(2) ? 0.0 : static_cast<double>(whole(1, 90));
    options.ramp_s = one_in(3) ? 0.0 : static_cast<double>(whole(1, 200));
    options.seed = static_cast<std::uint64_t>(whole(1, 1000));
    options.keep_usage = true;
    return made;
  }

 private:
  SimulatedJob job(std::string id, std::int64_t gpus, std::int64_t least_gib, Estimates estimates) {
    SimulatedJob made;
    made.id = std::move(id);
    made.arrival_s = static_cast<double>(whole(0, 40) * 10);
    made.duration_s = static_cast<double>(whole(1, 60) * 10);
    made.gpus = one_in(4) ? whole(1, gpus) : 1;
    made.need = Bytes(whole(1, least_gib * 8) * (kGibibyte / 8));
    made.smact = static_cast<double>(whole(0, 20)) / 20.0;
    if (estimates == Estimates::none) return made;
    made.knowledge = Knowledge::estimated;
    made.expected = made.need;
    if (estimates == Estimates::above) made.expected = Bytes(made.need.count() + made.need.count() / 8);
    if (estimates == Estimates::random) made.expected = Bytes(whole(0, 50) * kGibibyte);
    made.reserve = made.expected;
    if (estimates == Estimates::random && one_in(4)) made.knowledge = Knowledge::none;
    return made;
  }

  std::mt19937 random_;
};

std::string key(std::uint32_t seed, std::string_view policy) {
  return "seed " + std::to_string(seed) + ", " + std::string(policy);
}

/// Calls with every policy on many random cases.
template <typename Check>
void for_all(Estimates estimates, const Check& check) {
  constexpr std::uint32_t kSeeds = 60;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    for (const PolicyEntry& entry : policies()) {
      const Case made = DrawnCase(seed).make(estimates);
      const auto policy = entry.create();
      const auto done = simulate(made.jobs, made.server, *policy, made.options);
      ASSERT_TRUE(done) << key(seed, entry.name) << ": " << to_string(done.error());
      check(made, *done);
      ASSERT_FALSE(::testing::Test::HasFailure()) << key(seed, entry.name);
    }
  }
}

/// Each job ends finished or with a verdict; it never runs twice at once, and finishes once.
void expect_none_lost(const Case& made, const Simulation& done) {
  std::vector<double> ended(made.jobs.size(), -1.0);
  std::vector<int> finished(made.jobs.size(), 0);
  std::vector<std::int64_t> crashed(made.jobs.size(), 0);
  for (const datasets::Run& run : done.runs) {
    EXPECT_GE(run.start_s, made.jobs[run.job].arrival_s);
    EXPECT_GE(run.start_s, ended[run.job]) << "started again while it ran";
    EXPECT_GE(run.end_s, run.start_s);
    EXPECT_EQ(run.gpus.size(), static_cast<std::size_t>(made.jobs[run.job].gpus)) << "all or nothing";
    EXPECT_EQ(finished[run.job], 0) << "ran after it had finished";
    ended[run.job] = run.end_s;
    if (run.out_of_memory) ++crashed[run.job];
    else ++finished[run.job];
  }
  std::int64_t failed = 0;
  for (std::size_t index = 0; index < made.jobs.size(); ++index) {
    const JobOutcome& outcome = done.jobs[index];
    const bool success = outcome.verdict == Verdict::finished;
    EXPECT_EQ(finished[index], success ? 1 : 0);
    EXPECT_EQ(crashed[index], outcome.out_of_memory);
    EXPECT_LE(outcome.out_of_memory, made.options.recovery.retries + 1) << "no job runs for ever";
    if (success) {
      EXPECT_DOUBLE_EQ(outcome.end_s, ended[index]);
      EXPECT_GE(outcome.end_s - outcome.start_s, made.jobs[index].duration_s * (1 - 1e-9))
          << "nobody is faster than alone";
    }
    failed += success ? 0 : 1;
  }
  EXPECT_EQ(done.totals.failed, failed);
  EXPECT_EQ(done.totals.finished + failed, static_cast<std::int64_t>(made.jobs.size()));
}

TEST(SimulatorProperty, NoJobIsLostOrStartedTwice) {
  for (const auto estimates : {Estimates::none, Estimates::random, Estimates::exact}) {
    for_all(estimates, expect_none_lost);
  }
}

TEST(SimulatorProperty, MemoryNeverExceedsAGpuAndTrueEstimatesNeverFail) {
  for (const auto estimates : {Estimates::exact, Estimates::above}) {
    for_all(estimates, [](const Case& made, const Simulation& done) {
      EXPECT_EQ(done.totals.out_of_memory, 0);
      // What the jobs that run together will come to need.
      for (std::size_t gpu = 0; gpu < made.server.gpus.size(); ++gpu) {
        for (const datasets::Run& at : done.runs) {
          std::int64_t needed = 0;
          for (const datasets::Run& run : done.runs) {
            const bool here = std::find(run.gpus.begin(), run.gpus.end(), gpu) != run.gpus.end();
            if (here && run.start_s <= at.start_s && at.start_s < run.end_s) needed += made.jobs[run.job].need.count();
          }
          EXPECT_LE(needed, made.server.gpus[gpu].total.count());
        }
      }
    });
  }
  for_all(Estimates::none, [](const Case& made, const Simulation& done) {
    for (std::size_t gpu = 0; gpu < made.server.gpus.size(); ++gpu) {
      for (const Usage& usage : done.usage[gpu]) {
        EXPECT_GE(usage.used.count(), 0);
        EXPECT_LE(usage.used, made.server.gpus[gpu].total);
        EXPECT_GE(usage.smact, 0.0);
        EXPECT_LE(usage.smact, 1.0);
      }
      const bool touched = !done.usage[gpu].empty();
      EXPECT_TRUE(!touched || done.usage[gpu].back().used.count() == 0);
    }
  });
}

TEST(SimulatorProperty, FirstInFirstOutWithinAClass) {
  for_all(Estimates::random, [](const Case& made, const Simulation& done) {
    std::vector<bool> crashed(made.jobs.size(), false);
    std::vector<double> crash(made.jobs.size(), 0.0);
    double arrival = 0.0;
    double last_crash = 0.0;
    for (const datasets::Run& run : done.runs) {
      if (crashed[run.job]) {
        EXPECT_GE(crash[run.job], last_crash) << "overtaken on its way back";
        last_crash = crash[run.job];
      } else {
        EXPECT_GE(made.jobs[run.job].arrival_s, arrival) << "overtaken";
        arrival = made.jobs[run.job].arrival_s;
      }
      if (!run.out_of_memory) continue;
      crashed[run.job] = true;
      crash[run.job] = run.end_s;
    }
  });
}

TEST(SimulatorProperty, AJobThatComesBackGoesBeforeAllOthers) {
  for_all(Estimates::none, [](const Case& made, const Simulation& done) {
    std::map<std::size_t, double> waiting;  // since the crash
    std::vector<bool> crashed(made.jobs.size(), false);
    for (std::size_t at = 0; at < done.runs.size(); ++at) {
      const datasets::Run& run = done.runs[at];
      for (std::size_t before = 0; before < at; ++before) {
        const datasets::Run& other = done.runs[before];
        if (!other.out_of_memory || other.end_s >= run.start_s || crashed[run.job]) continue;
        const bool back = std::any_of(done.runs.begin() + static_cast<std::ptrdiff_t>(before) + 1,
                                      done.runs.begin() + static_cast<std::ptrdiff_t>(at),
                                      [&](const datasets::Run& again) { return again.job == other.job; });
        const bool given_up =
            done.jobs[other.job].verdict == Verdict::given_up && done.jobs[other.job].end_s <= run.start_s;
        EXPECT_TRUE(back || given_up || other.job == run.job) << "a newcomer went before it";
      }
      if (run.out_of_memory) crashed[run.job] = true;
    }
  });
}

TEST(SimulatorProperty, TheSameSeedGivesTheSameRuns) {
  for_all(Estimates::random, [](const Case& made, const Simulation& done) {
    // Any policy: the case's own was not kept, so that two fresh runs are compared.
    (void)done;
    const auto policy = make_policy("magm");
    const auto one = simulate(made.jobs, made.server, **policy, made.options);
    const auto other = simulate(made.jobs, made.server, **policy, made.options);
    ASSERT_EQ(one->runs.size(), other->runs.size());
    for (std::size_t at = 0; at < one->runs.size(); ++at) {
      EXPECT_EQ(one->runs[at].job, other->runs[at].job);
      EXPECT_EQ(one->runs[at].gpus, other->runs[at].gpus);
      EXPECT_EQ(one->runs[at].start_s, other->runs[at].start_s);
      EXPECT_EQ(one->runs[at].end_s, other->runs[at].end_s);
    }
    EXPECT_EQ(one->totals.mean_smact, other->totals.mean_smact);
  });
}

TEST(SimulatorProperty, WorkIsDoneOnce) {
  // Without crashes, what the GPUs were busy with is what the jobs take by themselves.
  for_all(Estimates::exact, [](const Case& made, const Simulation& done) {
    double work = 0.0;
    for (const SimulatedJob& job : made.jobs) work += job.duration_s * job.smact * static_cast<double>(job.gpus);
    const double busy = done.totals.mean_smact * done.totals.total_s * static_cast<double>(made.server.gpus.size());
    EXPECT_NEAR(busy, work, 1e-6 * std::max(1.0, work));
  });
}

}  // namespace
}  // namespace gpumem::datasets
