#include "gpumem/core/deadline.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace gpumem::core {
namespace {

void wait_until_passed() {
  while (!deadline_passed()) std::this_thread::yield();
}

TEST(Deadline, PassesAndEndsWithItsScope) {
  EXPECT_FALSE(deadline_passed());
  {
    const Deadline deadline(1);
    wait_until_passed();
    EXPECT_TRUE(deadline_passed());
  }
  EXPECT_FALSE(deadline_passed());
}

TEST(Deadline, ZeroLessAndForeverAreNone) {
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    const Deadline deadline(none);
    EXPECT_FALSE(deadline_passed()) << none;
  }
}

TEST(Deadline, AnInnerOneCanOnlyShortenTheTime) {
  const Deadline outer(1);
  wait_until_passed();
  const Deadline inner(1'000'000);
  EXPECT_TRUE(deadline_passed());
  const Deadline none(0);
  EXPECT_TRUE(deadline_passed());
}

TEST(Deadline, HoldsForItsThreadOnly) {
  const Deadline deadline(1);
  wait_until_passed();
  bool passed = true;
  std::thread([&] { passed = deadline_passed(); }).join();
  EXPECT_FALSE(passed);
}

TEST(Pace, LooksOnceInManyStepsAndStaysLate) {
  Pace pace;
  for (int step = 0; step < 10'000; ++step) ASSERT_FALSE(pace.late());
  {
    const Deadline deadline(1);
    wait_until_passed();
    int steps = 0;
    while (!pace.late()) ++steps;
    EXPECT_LT(steps, 256);
  }
  EXPECT_TRUE(pace.late());
}

}  // namespace
}  // namespace gpumem::core
