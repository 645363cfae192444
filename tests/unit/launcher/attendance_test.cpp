#include "attendance.hpp"

#include <gtest/gtest.h>

#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

using testing::join;
using testing::start;

/// Three that wait; the launcher of job N has the pid 100 + N.
class StoppedWaitersTest : public ::testing::Test {
 protected:
  StoppedWaitersTest() {
    EXPECT_TRUE(ledger_.apply({0, 0.0, Opened{}}));
    for (std::int64_t job = 1; job <= 3; ++job) {
      Event joins = join(job);
      std::get<Joined>(joins.what).launcher = {100 + job, 7};
      EXPECT_TRUE(ledger_.apply(joins));
    }
  }
  /// The job that `job` waits for; 0: it is the head.
  std::int64_t before(std::int64_t job, double now) {
    const auto facts = [&](std::int64_t pid) -> std::optional<ProcessFacts> {
      const auto state = states_.find(pid);
      if (state == states_.end()) return std::nullopt;
      return ProcessFacts{state->second, 1, pid, 7};
    };
    const Entry* const entry = waiters_.nearest_before(ledger_.waiting(), job, now, facts);
    return entry == nullptr ? 0 : entry->job;
  }

  Ledger ledger_;
  StoppedWaiters waiters_;
  std::map<std::int64_t, char> states_ = {{101, 'S'}, {102, 'S'}, {103, 'S'}};
};

TEST_F(StoppedWaitersTest, NobodyGoesPastOneThatGoesOn) {
  EXPECT_EQ(before(1, 0.0), 0);
  EXPECT_EQ(before(3, 0.0), 2);
  EXPECT_EQ(before(3, 1000.0), 2);
  EXPECT_FALSE(waiters_.may_be_passed_soon());
}

TEST_F(StoppedWaitersTest, OneThatIsStoppedIsPassedAfterAWhile) {
  states_[101] = 'T';
  EXPECT_EQ(before(2, 10.0), 1) << "it may go on at once";
  EXPECT_TRUE(waiters_.may_be_passed_soon());
  EXPECT_EQ(before(2, 12.9), 1);
  EXPECT_EQ(before(2, 13.0), 0);
  EXPECT_FALSE(waiters_.may_be_passed_soon());
  states_[101] = 'S';
  EXPECT_EQ(before(2, 14.0), 1) << "it has kept its place";
  states_[101] = 't';
  EXPECT_EQ(before(2, 15.0), 1) << "and is waited for anew";
  EXPECT_EQ(before(2, 18.0), 0);
}

TEST_F(StoppedWaitersTest, PastOneTheNextCounts) {
  states_[102] = 'T';
  EXPECT_EQ(before(3, 10.0), 2);
  EXPECT_EQ(before(3, 13.0), 1);
  states_[101] = 'T';
  EXPECT_EQ(before(3, 14.0), 1);
  EXPECT_EQ(before(3, 17.0), 0);
}

TEST_F(StoppedWaitersTest, OneThatIsGoneIsNotPassedButTakenBack) {
  states_.erase(101);
  EXPECT_EQ(before(2, 10.0), 1);
  EXPECT_EQ(before(2, 20.0), 1);
  states_[101] = 'T';
  std::erase_if(states_, [](const auto& state) { return state.first == 102; });
  EXPECT_EQ(before(3, 30.0), 2);
}

TEST_F(StoppedWaitersTest, WhoRunsIsNobodyToWaitFor) {
  ASSERT_TRUE(ledger_.apply(start(1, {})));
  states_[101] = 'T';
  EXPECT_EQ(before(2, 10.0), 0);
}

TEST(Attendance, AnotherProcessOfThePidSaysNothing) {
  Entry entry;
  entry.launcher = {101, 7};
  const auto stopped_since = [](std::int64_t started) {
    return [started](std::int64_t pid) { return std::optional(ProcessFacts{'T', 1, pid, started}); };
  };
  EXPECT_TRUE(is_stopped(entry, stopped_since(7)));
  EXPECT_FALSE(is_stopped(entry, stopped_since(8)));
}

}  // namespace
}  // namespace gpumem::launcher
