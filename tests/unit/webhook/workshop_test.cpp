#include "../../../src/webhook/workshop.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace gpumem::webhook {
namespace {

using namespace std::chrono_literals;

Reply reply(std::string body) { return {Outcome::untouched, std::move(body)}; }

/// Opens once; what waits for it goes on.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(Workshop, GivesTheReplyOfTheWork) {
  Workshop workshop(2, 8);
  EXPECT_EQ(workshop.run([] { return reply("done"); }, 1min)->body, "done");
}

TEST(Workshop, WaitsOnlySoLong) {
  Gate gate;
  Workshop workshop(1, 8);
  EXPECT_FALSE(workshop.run([&] { return gate.pass(), reply("late"); }, 10ms));
  // The thread is taken: what waits for it is dropped once nobody wants it.
  std::atomic<bool> ran = false;
  EXPECT_FALSE(workshop.run([&] { return ran = true, reply("later"); }, 10ms));
  EXPECT_FALSE(workshop.stop(10ms));
  gate.open();
  EXPECT_TRUE(workshop.stop(1min));
  EXPECT_FALSE(ran);
}

TEST(Workshop, LetsOnlySoManyWait) {
  Gate gate;
  Workshop workshop(1, 0);
  EXPECT_FALSE(workshop.run([] { return reply("no room"); }, 1min));
}

TEST(Workshop, AnExceptionIsNoReply) {
  Workshop workshop(1, 8);
  EXPECT_FALSE(workshop.run([]() -> Reply { throw std::bad_alloc(); }, 1min));
  EXPECT_EQ(workshop.run([] { return reply("goes on"); }, 1min)->body, "goes on");
}

TEST(Workshop, TakesNoMoreOnceStopped) {
  Workshop workshop(1, 8);
  EXPECT_TRUE(workshop.stop(1min));
  EXPECT_FALSE(workshop.run([] { return reply("too late"); }, 1min));
}

}  // namespace
}  // namespace gpumem::webhook
