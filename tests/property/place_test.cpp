// What holds for every server and every request: random ones, whose seed is printed on failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "gpumem/place/policies.hpp"
#include "servers.hpp"

namespace gpumem::place {
namespace {

using core::Bytes;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Random servers, requests and conditions. Sizes come in few steps, so that equals and borders are met often.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  std::int64_t whole(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool one_in(std::int64_t count) { return whole(1, count) == 1; }
  double share() { return static_cast<double>(whole(0, 20)) / 20.0; }

  Server server() {
    Server server;
    const std::int64_t count = whole(1, 12);
    for (std::int64_t index = 0; index < count; ++index) {
      ServerGpu gpu;
      gpu.id = std::to_string(index);
      gpu.total = Bytes(whole(1, 8) * 10 * kGiB);
      if (one_in(2)) gpu.used = Bytes(whole(0, 42) * kGiB);
      gpu.smact = share();
      while (one_in(2)) {
        EXPECT_TRUE(gpu.jobs.add({"old" + std::to_string(gpu.jobs.size()), Bytes(whole(0, 20) * kGiB)}));
      }
      if (gpu.jobs.empty() && one_in(8)) {
        EXPECT_TRUE(gpu.jobs.add({"alone", Bytes(kGiB), 0.0, true}));
      }
      server.gpus.push_back(std::move(gpu));
    }
    return server;
  }

  Request request() {
    Request request;
    request.id = "new";
    request.gpus = one_in(2) ? 1 : whole(1, 6);
    if (!one_in(5)) request.memory = Bytes(whole(0, 45) * kGiB);
    if (request.memory && one_in(2))
      request.alone = Bytes(std::max<std::int64_t>(0, request.memory->count() - 2 * kGiB));
    request.exclusive = one_in(6);
    if (one_in(2)) request.smact = share();
    return request;
  }

  Conditions conditions() {
    Conditions conditions;
    if (one_in(3)) conditions.smact_cap = std::nullopt;
    if (one_in(3)) conditions.smact_cap = share();
    if (one_in(3)) conditions.free_floor = Bytes(whole(0, 10) * kGiB);
    conditions.idle_first = one_in(3);
    return conditions;
  }

 private:
  std::mt19937 random_;
};

constexpr std::uint32_t kSeeds = 3000;

/// Calls `check(policy, draw, server, request, conditions, turn, decision)` for many seeds and every policy.
template <typename Check>
void for_every_decision(Check check) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Draw draw(seed);
    const Server server = draw.server();
    const Request request = draw.request();
    const Conditions conditions = draw.conditions();
    const auto begin = static_cast<std::size_t>(draw.whole(0, 14));
    for (const PolicyEntry& entry : policies()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(entry.name));
      const auto policy = entry.create();
      std::size_t turn = begin;
      const Decision decision = policy->decide(request, server, conditions, turn);
      check(*policy, server, request, conditions, begin, decision);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// The conditions once more, in plain words.
bool is_open(const ServerGpu& gpu, const Request& request, const Conditions& conditions) {
  const bool idle = gpu.jobs.empty() && gpu.used <= kIdleUse;
  std::int64_t set_aside = 0;
  bool alone = false;
  for (const PlacedJob& job : gpu.jobs) {
    set_aside += job.memory.count();
    alone = alone || job.exclusive;
  }
  const std::int64_t free = std::max<std::int64_t>(0, gpu.total.count() - std::max(set_aside, gpu.used.count()));
  if (alone || (request.exclusive && !idle)) return false;
  if (request.memory) {
    const Bytes needed = idle ? request.alone.value_or(*request.memory) : *request.memory;
    if (free < needed.count()) return false;
  }
  if (!idle && free < conditions.free_floor.count()) return false;
  return !conditions.smact_cap || gpu.smact < *conditions.smact_cap;
}

TEST(Placing, IsAllOrNothingOnDistinctGpus) {
  std::map<bool, int> seen;
  for_every_decision([&](const Policy&, const Server& server, const Request& request, const Conditions&, std::size_t,
                         const Decision& decision) {
    ++seen[decision.placed()];
    EXPECT_EQ(decision.placed(), decision.refusal == Refusal::none);
    if (!decision.placed()) return;
    EXPECT_EQ(decision.gpus.size(), static_cast<std::size_t>(request.gpus));
    const std::set<std::size_t> distinct(decision.gpus.begin(), decision.gpus.end());
    EXPECT_EQ(distinct.size(), decision.gpus.size());
    EXPECT_LT(*distinct.rbegin(), server.gpus.size());
  });
  EXPECT_GT(seen[true], 1000);
  EXPECT_GT(seen[false], 1000);
}

TEST(Placing, KeepsTheConditions) {
  for_every_decision([](const Policy&, const Server& server, const Request& request, const Conditions& conditions,
                        std::size_t, const Decision& decision) {
    for (const std::size_t index : decision.gpus)
      EXPECT_TRUE(is_open(server.gpus[index], request, conditions)) << index;
  });
}

/// Whether a job that is busy itself would pass the cap there, together with who is there.
bool is_crowded(const ServerGpu& gpu, const Request& request, const Conditions& conditions) {
  double expected = 0.0;
  for (const PlacedJob& job : gpu.jobs) expected += job.smact;
  return request.smact > 0.0 && !gpu.idle() && std::max(expected, gpu.smact) + request.smact > *conditions.smact_cap;
}

TEST(Placing, CrowdsNoGpuWhileAnotherCouldTakeTheJob) {
  int crowded = 0;
  for_every_decision([&](const Policy& policy, const Server& server, const Request& request, const Conditions& apart,
                         std::size_t begin, const Decision& otherwise) {
    Conditions conditions = apart;
    conditions.smact_together = true;
    std::size_t turn = begin;
    const Decision decision = policy.decide(request, server, conditions, turn);
    // Whether a job is placed does not hang on it, only where.
    EXPECT_EQ(decision.gpus.size(), otherwise.gpus.size());
    EXPECT_EQ(decision.refusal, otherwise.refusal);
    if (!conditions.smact_cap || conditions.idle_first) return;
    const auto here = [&](std::size_t index) { return is_crowded(server.gpus[index], request, conditions); };
    if (std::none_of(decision.gpus.begin(), decision.gpus.end(), here)) return;
    ++crowded;
    const bool any_gpu = !(policy.name().ends_with("-fit") && !request.memory);
    for (std::size_t index = 0; index < server.gpus.size(); ++index) {
      const ServerGpu& gpu = server.gpus[index];
      if (!is_open(gpu, request, conditions) || here(index) || (!any_gpu && !gpu.idle())) continue;
      // All that are not crowded were taken first.
      EXPECT_NE(std::find(decision.gpus.begin(), decision.gpus.end(), index), decision.gpus.end()) << index;
    }
  });
  EXPECT_GT(crowded, 100);
}

TEST(Placing, RefusesNoJobForWhichEnoughGpusAreOpen) {
  for_every_decision([](const Policy& policy, const Server& server, const Request& request,
                        const Conditions& conditions, std::size_t, const Decision& decision) {
    if (decision.placed()) return;
    const bool any_gpu = policy.name() != "exclusive" && !(policy.name().ends_with("-fit") && !request.memory);
    std::int64_t open = 0;
    for (const ServerGpu& gpu : server.gpus) {
      open += is_open(gpu, request, conditions) && (any_gpu || gpu.idle()) ? 1 : 0;
    }
    EXPECT_LT(open, request.gpus);
    if (decision.refusal == Refusal::never) return;
    EXPECT_EQ(decision.open, open);
    EXPECT_FALSE(is_open(server.gpus[decision.nearest], request, conditions) && any_gpu);
  });
}

TEST(Placing, SaysNeverOnlyWhereAnEmptyServerIsTooSmall) {
  for_every_decision([](const Policy& policy, const Server& server, const Request& request, const Conditions&,
                        std::size_t, const Decision& decision) {
    if (decision.placed()) return;
    Server empty = server;
    for (ServerGpu& gpu : empty.gpus) {
      gpu.used = Bytes();
      gpu.smact = 0.0;
      gpu.jobs = {};
    }
    std::size_t turn = 0;
    const Decision best = policy.decide(request, empty, {.smact_cap = std::nullopt}, turn);
    EXPECT_EQ(decision.refusal == Refusal::never, !best.placed());
  });
}

TEST(Placing, IsTheSameForTheSame) {
  for_every_decision([](const Policy& policy, const Server& server, const Request& request,
                        const Conditions& conditions, std::size_t begin, const Decision& decision) {
    std::size_t turn = begin;
    const Decision again = policy.decide(request, server, conditions, turn);
    EXPECT_EQ(again.gpus, decision.gpus);
    EXPECT_EQ(again.refusal, decision.refusal);
    EXPECT_EQ(again.nearest, decision.nearest);
    EXPECT_EQ(explain(again, request, server, conditions), explain(decision, request, server, conditions));
  });
}

TEST(Placing, TakesTheFirstOfThoseThatThePolicyPrefers) {
  for_every_decision([](const Policy& policy, const Server& server, const Request& request,
                        const Conditions& conditions, std::size_t, const Decision& decision) {
    if (!decision.placed() || conditions.idle_first) return;
    const auto worse = [&](const ServerGpu& other, const ServerGpu& chosen) {
      if (policy.name() == "magm" || policy.name() == "worst-fit") return other.free() <= chosen.free();
      if (policy.name() == "best-fit") return other.free() >= chosen.free();
      if (policy.name() == "lug") return other.smact >= chosen.smact;
      if (policy.name() == "mug") return other.smact <= chosen.smact;
      return true;
    };
    const std::set<std::size_t> chosen(decision.gpus.begin(), decision.gpus.end());
    for (std::size_t index = 0; index < server.gpus.size(); ++index) {
      const ServerGpu& other = server.gpus[index];
      if (chosen.contains(index) || !is_open(other, request, conditions)) continue;
      if (policy.name().ends_with("-fit") && !request.memory && !other.idle()) continue;
      EXPECT_TRUE(worse(other, server.gpus[decision.gpus.back()])) << index;
      EXPECT_TRUE(policy.name() != "first-fit" || index > decision.gpus.back()) << index;
    }
  });
}

/// A job with what it truly takes, which is what it asks for.
struct TrueJob {
  std::string id;
  Bytes need;
  std::vector<std::size_t> gpus;
};

TEST(Placing, NeverFillsAGpuBeyondItsMemoryWhereEstimatesAreTrue) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    Server server = draw.server();
    for (ServerGpu& gpu : server.gpus) {
      gpu.jobs = {};
      gpu.used = Bytes();
    }
    const auto policy = policies()[static_cast<std::size_t>(draw.whole(0, 7))].create();
    std::vector<TrueJob> running;
    std::size_t turn = 0;
    for (int event = 0; event < 60; ++event) {
      if (!running.empty() && draw.one_in(3)) {
        const auto ended = running.begin() + draw.whole(0, static_cast<std::int64_t>(running.size()) - 1);
        for (const std::size_t index : ended->gpus) EXPECT_TRUE(server.gpus[index].jobs.remove(ended->id));
        running.erase(ended);
        continue;
      }
      TrueJob job = {"job" + std::to_string(event), Bytes(draw.whole(1, 30) * kGiB), {}};
      Request request = draw.request();
      request.id = job.id;
      request.alone = job.need;
      request.memory = Bytes(job.need.count() + draw.whole(0, 3) * kGiB);
      job.gpus = policy->decide(request, server, draw.conditions(), turn).gpus;
      Decision decision;
      decision.gpus = job.gpus;
      ASSERT_TRUE(place(decision, request, server));
      if (!job.gpus.empty()) running.push_back(std::move(job));
      for (std::size_t index = 0; index < server.gpus.size(); ++index) {
        std::int64_t taken = 0;
        for (const TrueJob& other : running) {
          if (std::find(other.gpus.begin(), other.gpus.end(), index) != other.gpus.end()) taken += other.need.count();
        }
        ASSERT_LE(taken, server.gpus[index].total.count());
        ASSERT_LE(server.gpus[index].set_aside(), server.gpus[index].total);
        // What is in use grows to what is needed, later than it was set aside.
        if (draw.one_in(2)) server.gpus[index].used = Bytes(taken);
      }
    }
  }
}

TEST(Recovery, EndsForEveryJob) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    Server server = draw.server();
    for (ServerGpu& gpu : server.gpus) gpu.jobs = {};
    const RecoveryRule rule = {.kind = draw.one_in(2) ? RecoveryKind::exclusive : RecoveryKind::growing,
                               .retries = draw.whole(0, 5)};
    Request request = draw.request();
    request.exclusive = false;
    OutOfMemory failure = {0, Bytes(), false};
    while (true) {
      ++failure.failures;
      failure.alone = request.exclusive;
      const Bytes before = failure.had;
      // Where it ran: anywhere next to others; by itself, on a GPU that is at least as large as it asked for.
      failure.had = failure.alone ? request.alone.value_or(request.memory.value_or(Bytes()))
                                  : Bytes(before.count() + draw.whole(0, 8) * kGiB);
      const Retry retry = after_out_of_memory(request, failure, server, rule);
      EXPECT_FALSE(retry.words.empty());
      if (!retry.request) break;
      EXPECT_GE(retry.request->gpus, 1);
      EXPECT_TRUE(retry.request->exclusive || retry.request->memory >= Bytes(failure.had.count() + rule.step.count()));
      request = *retry.request;
      ASSERT_LE(failure.failures, rule.retries);
    }
    EXPECT_LE(failure.failures, rule.retries + 1);
  }
}

TEST(WaitingQueue, LosesNoJobAndKeepsTheOrderOfEachClass) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    WaitingQueue<std::pair<bool, int>> queue;
    std::map<bool, int> pushed;
    std::map<bool, int> popped;
    for (int step = 0; step < 200; ++step) {
      if (queue.empty() || draw.one_in(2)) {
        const bool recovery = draw.one_in(3);
        if (recovery) {
          queue.push_recovery({true, pushed[true]++});
        } else {
          queue.push({false, pushed[false]++});
        }
        continue;
      }
      const bool recovering = queue.recovering() > 0;
      const auto [recovery, number] = queue.pop();
      EXPECT_EQ(recovery, recovering);
      EXPECT_EQ(number, popped[recovery]++);
    }
    EXPECT_EQ(queue.size(), static_cast<std::size_t>(pushed[true] + pushed[false] - popped[true] - popped[false]));
  }
}

}  // namespace
}  // namespace gpumem::place
