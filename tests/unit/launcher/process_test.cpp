#include "process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace gpumem::launcher {
namespace {

/// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
    setpgid(pid_, pid_);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { reap(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill_it() const { kill(pid_, SIGKILL); }
  void reap() {
    if (pid_ <= 0) return;
    kill_it();
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST(Process, AStatLineIsReadWhateverTheProgramIsCalled) {
  const auto facts = parse_stat("12 (a ) 7 (b) S 3 44 44 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 987654 1 2\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->state, 'S');
  EXPECT_EQ(facts->parent, 3);
  EXPECT_EQ(facts->group, 44);
  EXPECT_EQ(facts->started, 987'654);
  for (const char* text :
       {"", "12", "12 (sh)", "12 (sh) S", "12 (sh) S 3 4", "12 (sh) S x 44 44 0 -1 1 1 0 0 0 1 2 0 0 20 0 1 0 9 1"}) {
    EXPECT_FALSE(parse_stat(text)) << text;
  }
}

TEST(Process, ThisOneIsAlive) {
  const Process self = process_of(getpid());
  EXPECT_GT(self.started, 0);
  EXPECT_TRUE(is_alive(self));
  EXPECT_FALSE(is_alive({self.pid, self.started + 1})) << "its pid was given out again";
  EXPECT_FALSE(is_alive({}));
  EXPECT_FALSE(boot_id().empty());
  EXPECT_GT(seconds_since_boot(), 0.0);
}

TEST(Process, OneThatHasEndedIsGoneBeforeItIsWaitedFor) {
  Sleeper sleeper;
  const Process process = process_of(sleeper.pid());
  EXPECT_TRUE(is_alive(process));
  EXPECT_TRUE(group_is_alive(process));
  sleeper.kill_it();
  siginfo_t told{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.pid()), &told, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(process));
  EXPECT_FALSE(group_is_alive(process));
  sleeper.reap();
  EXPECT_FALSE(is_alive(process));
}

TEST(Process, AGroupLivesOnWithoutItsLeader) {
  Sleeper leader;
  Sleeper member;
  const Process process = process_of(leader.pid());
  ASSERT_EQ(setpgid(member.pid(), leader.pid()), 0);
  leader.reap();
  EXPECT_FALSE(is_alive(process));
  EXPECT_TRUE(group_is_alive(process));
  member.reap();
  EXPECT_FALSE(group_is_alive(process));
}

}  // namespace
}  // namespace gpumem::launcher
