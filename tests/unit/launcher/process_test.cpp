#include "process.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace gpumem::launcher {
namespace {

/// A child that sleeps until it is killed.
class Sleeper {
 public:
  /// `ignores`: a signal that does not end it; 0: all do. It leads a group and ignores the signal from here on.
  explicit Sleeper(int ignores = 0) {
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (ignores != 0) signal(ignores, SIG_IGN);
      setpgid(0, 0);
      close(ready[1]);
      while (true) pause();
    }
    close(ready[1]);
    char none = 0;
    (void)!read(ready[0], &none, 1);  // returns when the child has closed its end
    close(ready[0]);
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
  pid_t pid_ = 0;
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

TEST(Process, OneThatIsStoppedIsAlive) {
  const Sleeper sleeper;
  const auto stopped = [&] {
    const auto facts = facts_of(sleeper.pid());
    return facts && is_stopped(*facts);
  };
  EXPECT_FALSE(stopped());
  kill(sleeper.pid(), SIGSTOP);
  ASSERT_EQ(waitpid(sleeper.pid(), nullptr, WUNTRACED), sleeper.pid());
  EXPECT_TRUE(stopped());
  EXPECT_TRUE(is_alive(process_of(sleeper.pid())));
  kill(sleeper.pid(), SIGCONT);
  ASSERT_EQ(waitpid(sleeper.pid(), nullptr, WCONTINUED), sleeper.pid());
  EXPECT_FALSE(stopped());
}

TEST(Process, AGroupIsAskedToEndBeforeItIsKilled) {
  const Sleeper obedient;
  EXPECT_FALSE(end_group(process_of(obedient.pid()))) << "SIGTERM was enough";
  EXPECT_FALSE(is_alive(process_of(obedient.pid())));
  const Sleeper stubborn(SIGTERM);
  const double begin = seconds_since_boot();
  EXPECT_TRUE(end_group(process_of(stubborn.pid()), 0.3));
  EXPECT_FALSE(is_alive(process_of(stubborn.pid())));
  EXPECT_GE(seconds_since_boot() - begin, 0.3);
  EXPECT_FALSE(end_group(process_of(stubborn.pid()), 0.3)) << "nobody is there";
}

/// In a process of another user, whose /proc hides those of others: 0 if all is as it is to be, or which check failed.
/// 77: this system does not allow to make one.
int checks_where_proc_is_hidden(const Process& shown, const Process& gone) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("proc", "/proc", "proc", 0, "hidepid=2") != 0 || setgroups(0, nullptr) != 0) return 77;
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  const auto facts = facts_of(shown.pid);
  if (!facts || facts->group != shown.pid || facts->started != 0) return 1;
  if (process_of(shown.pid).started != 0) return 2;
  if (!is_alive(shown)) return 3;
  if (!group_is_alive(shown)) return 4;
  if (is_stopped(*facts)) return 5;
  if (is_alive(gone) || group_is_alive(gone) || facts_of(gone.pid)) return 6;
  return is_alive(process_of(getpid())) ? 0 : 7;
}

TEST(Process, OneThatProcHidesIsNotGone) {
  if (geteuid() != 0) GTEST_SKIP() << "takes two users";
  const Sleeper sleeper;
  Sleeper ended;
  const Process gone = process_of(ended.pid());
  ended.reap();
  const Process shown = process_of(sleeper.pid());
  const pid_t child = fork();
  if (child == 0) _exit(checks_where_proc_is_hidden(shown, gone));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "/proc cannot be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpumem::launcher
