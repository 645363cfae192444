#include "gpumem/place/policy.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace gpumem::place {
namespace {

TEST(WaitingQueue, IsFirstInFirstOutInEachClass) {
  WaitingQueue<int> queue;
  queue.push(1);
  queue.push(2);
  queue.push_recovery(10);
  queue.push(3);
  queue.push_recovery(11);
  EXPECT_EQ(queue.size(), 5U);
  EXPECT_EQ(queue.recovering(), 2U);
  std::vector<int> order;
  while (!queue.empty()) {
    const int next = queue.front();
    EXPECT_EQ(queue.pop(), next);
    order.push_back(next);
  }
  EXPECT_EQ(order, (std::vector<int>{10, 11, 1, 2, 3}));
}

TEST(WaitingQueue, AJobThatRecoversGoesBeforeOneThatIsNext) {
  WaitingQueue<int> queue;
  queue.push(1);
  EXPECT_EQ(queue.front(), 1);
  queue.push_recovery(10);
  EXPECT_EQ(queue.front(), 10);
}

TEST(WaitingQueue, IsAValueOfAnyJob) {
  WaitingQueue<std::string> queue;
  queue.push("a");
  WaitingQueue<std::string> copy = queue;
  queue.front() = "b";
  EXPECT_EQ(copy.pop(), "a");
  EXPECT_EQ(queue.pop(), "b");
  WaitingQueue<std::unique_ptr<int>> moved;
  moved.push(std::make_unique<int>(7));
  EXPECT_EQ(*moved.pop(), 7);
  EXPECT_TRUE(moved.empty());
}

}  // namespace
}  // namespace gpumem::place
