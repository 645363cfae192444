#include "gpumem/place/policies.hpp"

#include <gtest/gtest.h>

#include <set>

#include "expect.hpp"
#include "servers.hpp"

namespace gpumem::place {
namespace {

using testing::fails;
using testing::gib;
using testing::request_of;
using testing::server_of;
using testing::succeeds;
using Gpus = std::vector<std::size_t>;

Decision decide(std::string_view policy, const Request& request, const Server& server, std::size_t turn = 0) {
  const auto made = make_policy(policy);
  EXPECT_TRUE(succeeds(made));
  return (*made)->decide(request, server, {}, turn);
}

/// 8, 25, 12 and 30 GiB free.
const Server kServer = server_of({{32.0, 0.3}, {15.0, 0.2}, {28.0, 0.7}, {10.0, 0.5}});

TEST(Policies, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const PolicyEntry& entry : policies()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(entry.create()->name(), entry.name);
    EXPECT_FALSE(entry.description.empty());
  }
  EXPECT_EQ(names.size(), 8U);
}

TEST(Policies, AnUnknownNameIsAnsweredByTheNames) {
  EXPECT_TRUE(fails(make_policy("magic"), core::ErrorCode::invalid_argument, 0,
                    "there is no policy 'magic'; choose one of exclusive, round-robin, magm, lug, mug"));
}

TEST(Policies, HaveTheNamesThatCarmaHasForThem) {
  const std::vector<std::pair<std::string_view, std::string_view>> names = {
      {"exclusive", "exclusive"}, {"OR-RR", "round-robin"},   {"round-robin", "round-robin"},
      {"OR-MAGM", "magm"},        {"EST-MAGM", "magm"},       {"oracle-MAGM", "magm"},
      {"OR-LUG", "lug"},          {"oracle-FF", "first-fit"}, {"oracle-BF", "best-fit"},
      {"Exclusive", "exclusive"}};
  for (const auto& [carma, ours] : names) {
    const auto policy = make_policy(carma);
    ASSERT_TRUE(succeeds(policy));
    EXPECT_EQ((*policy)->name(), ours);
  }
  EXPECT_FALSE(make_policy("or-"));
  EXPECT_FALSE(make_policy(""));
}

TEST(Policies, ChooseByTheirOwnRule) {
  const Request request = request_of(10);
  EXPECT_EQ(decide("magm", request, kServer).gpus, Gpus{3});
  EXPECT_EQ(decide("lug", request, kServer).gpus, Gpus{1});
  EXPECT_EQ(decide("mug", request, kServer).gpus, Gpus{2});
  EXPECT_EQ(decide("first-fit", request, kServer).gpus, Gpus{1});
  EXPECT_EQ(decide("best-fit", request, kServer).gpus, Gpus{2});
  EXPECT_EQ(decide("worst-fit", request, kServer).gpus, Gpus{3});
  EXPECT_EQ(decide("round-robin", request, kServer).gpus, Gpus{1});
  EXPECT_EQ(decide("exclusive", request, kServer).refusal, Refusal::occupied);
}

TEST(Policies, ChooseSeveralByTheirOwnRule) {
  const Request request = request_of(10, 2);
  EXPECT_EQ(decide("magm", request, kServer).gpus, (Gpus{3, 1}));
  EXPECT_EQ(decide("lug", request, kServer).gpus, (Gpus{1, 3}));
  EXPECT_EQ(decide("mug", request, kServer).gpus, (Gpus{2, 3}));
  EXPECT_EQ(decide("first-fit", request, kServer).gpus, (Gpus{1, 2}));
  EXPECT_EQ(decide("best-fit", request, kServer).gpus, (Gpus{2, 1}));
  EXPECT_EQ(decide("worst-fit", request, kServer).gpus, (Gpus{3, 1}));
  EXPECT_EQ(decide("round-robin", request, kServer, 2).gpus, (Gpus{2, 3}));
  EXPECT_EQ(decide("exclusive", request, server_of({{}, {1.0}, {}})).gpus, (Gpus{0, 2}));
}

TEST(Policies, PreferTheFirstAmongEquals) {
  const Server server = server_of({{10.0, 0.4}, {10.0, 0.4}, {10.0, 0.4}});
  for (const PolicyEntry& entry : policies()) {
    if (entry.name == "exclusive") continue;
    EXPECT_EQ(decide(entry.name, request_of(1), server).gpus, Gpus{0}) << entry.name;
    EXPECT_EQ(decide(entry.name, request_of(1, 2), server).gpus, (Gpus{0, 1})) << entry.name;
  }
}

TEST(Policies, FitsPutNoJobWithoutAnEstimateBesideOthers) {
  Request request = request_of(0);
  request.memory.reset();
  const Server idle = server_of({{10.0}, {}});
  for (const std::string_view name : {"first-fit", "best-fit", "worst-fit"}) {
    const Decision refused = decide(name, request, kServer);
    EXPECT_EQ(refused.refusal, Refusal::no_estimate);
    EXPECT_EQ(explain(refused, request, kServer, {}),
              "not now: GPU 3 has other jobs, and it is not known how much memory job takes");
    EXPECT_EQ(decide(name, request, idle).gpus, Gpus{1});
  }
  EXPECT_EQ(decide("magm", request, kServer).gpus, Gpus{3});
}

TEST(RoundRobin, GoesOnBehindTheLastGpu) {
  const auto policy = make_policy("round-robin");
  const Server server = server_of({{1.0}, {39.0}, {1.0}, {1.0}});
  std::size_t turn = 0;
  const auto next = [&](std::int64_t gpus) { return (*policy)->decide(request_of(2, gpus), server, {}, turn).gpus; };
  EXPECT_EQ(next(1), Gpus{0});
  EXPECT_EQ(next(1), Gpus{2});
  EXPECT_EQ(next(2), (Gpus{3, 0}));
  EXPECT_EQ(turn, 1U);
  EXPECT_EQ(next(4), Gpus{});
  EXPECT_EQ(turn, 1U);
  turn = 7;  // of a larger server
  EXPECT_EQ(next(1), Gpus{3});
  EXPECT_EQ(turn, 0U);
}

}  // namespace
}  // namespace gpumem::place
