#include "job_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "own_path.hpp"

namespace gpumem::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMessage = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";

/// A folder, and this process's outputs, which come back at the end.
class JobOutputTest : public ::testing::Test {
 protected:
  JobOutputTest() : folder_(testing::own_path("output")), output_(dup(STDOUT_FILENO)), errors_(dup(STDERR_FILENO)) {
    fs::create_directory(folder_);
    before_ = signal(SIGPIPE, SIG_IGN);
  }
  ~JobOutputTest() override {
    restore();
    (void)signal(SIGPIPE, before_);
    fs::remove_all(folder_);
  }
  void restore() {
    if (output_.is_open()) (void)dup2(output_.number(), STDOUT_FILENO);
    if (errors_.is_open()) (void)dup2(errors_.number(), STDERR_FILENO);
  }
  [[nodiscard]] OpenFile file(const std::string& name, int flags = O_TRUNC) const {
    return OpenFile(open((folder_ / name).c_str(), O_CREAT | O_RDWR | flags | O_CLOEXEC, 0666));
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  /// A job that does this, with these outputs in the place of this program's. What is left is passed on.
  static JobOutput after(int output, int errors, const std::function<void()>& job) {
    JobOutput made = ended(output, errors, job);
    EXPECT_TRUE(made.flush(-1, [] { return false; }));
    return made;
  }
  /// The same, with what is left.
  static JobOutput ended(int output, int errors, const std::function<void()>& job) {
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(errors, STDERR_FILENO);
    auto made = JobOutput::open();
    EXPECT_TRUE(made);
    const pid_t child = fork();
    if (child == 0) {
      made->take_places();
      (void)close_range(3, ~0U, 0);  // as the program that is started has it
      job();
      _exit(0);
    }
    made->close_job_ends();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      std::vector<pollfd> waits = made->waits_for();
      (void)poll(waits.data(), waits.size(), 20);
      made->pass_on();
    }
    made->read_rest();
    return *std::move(made);
  }
  struct TwoEnds {
    OpenFile ours;
    OpenFile theirs;
  };
  static TwoEnds terminal(const winsize& size) {
    TwoEnds ends{OpenFile(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), {}};
    EXPECT_TRUE(ends.ours.is_open() && grantpt(ends.ours.number()) == 0 && unlockpt(ends.ours.number()) == 0);
    ends.theirs = OpenFile(open(ptsname(ends.ours.number()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_EQ(ioctl(ends.theirs.number(), TIOCSWINSZ, &size), 0);
    return ends;
  }
  static void say(int place, std::string_view text) { (void)!write(place, text.data(), text.size()); }
  /// Until it has had no room for a while: how much terminals hold is the kernel's choice.
  static void say_all_it_takes(int place) {
    (void)fcntl(place, F_SETFL, fcntl(place, F_GETFL) | O_NONBLOCK);
    constexpr int kWaitMs = 200;
    pollfd room = {place, POLLOUT, 0};
    const std::string piece(256, 'x');
    while (poll(&room, 1, kWaitMs) > 0 && write(place, piece.data(), piece.size()) > 0) {
    }
  }

  fs::path folder_;
  OpenFile output_;
  OpenFile errors_;
  void (*before_)(int) = nullptr;
};

TEST_F(JobOutputTest, AFileOfItsOwnIsTheJobsAndIsReadAtTheEnd) {
  const OpenFile out = file("out");
  const OpenFile err = file("err");
  const ino_t inode = [&] {
    struct stat facts {};
    (void)fstat(out.number(), &facts);
    return facts.st_ino;
  }();
  say(out.number(), kMessage);  // of somebody before it
  const JobOutput quiet = after(out.number(), err.number(), [&] {
    struct stat facts {};
    (void)fstat(STDOUT_FILENO, &facts);
    say(STDOUT_FILENO, facts.st_ino == inode ? "the file itself\n" : "another\n");
    say(STDERR_FILENO, "harmless\n");
  });
  const bool quiet_said = quiet.said_no_memory();
  const JobOutput loud = after(out.number(), err.number(), [] { say(STDOUT_FILENO, kMessage); });
  restore();
  EXPECT_FALSE(quiet_said);
  EXPECT_TRUE(loud.said_no_memory());
  EXPECT_EQ(text("out"), std::string(kMessage) + "the file itself\n" + kMessage);
  EXPECT_EQ(text("err"), "harmless\n");
}

TEST_F(JobOutputTest, OneFileForBothKeepsTheirOrder) {
  const OpenFile log = file("log", O_APPEND);
  const JobOutput done = after(log.number(), log.number(), [] {
    for (int line = 0; line < 500; ++line) {
      say(line % 3 == 0 ? STDERR_FILENO : STDOUT_FILENO, std::to_string(line) + "\n");
    }
    say(STDOUT_FILENO, kMessage);
  });
  restore();
  std::string expected;
  for (int line = 0; line < 500; ++line) expected += std::to_string(line) + "\n";
  EXPECT_EQ(text("log"), expected + kMessage);
  EXPECT_TRUE(done.said_no_memory());
}

TEST_F(JobOutputTest, APipeIsPassedOnHoweverSlowlyItIsRead) {
  auto ends = make_pipe();
  ASSERT_TRUE(ends);
  constexpr std::size_t kSize = 300'000;  // more than pipes hold
  const pid_t reader = fork();
  if (reader == 0) {
    ends->second = OpenFile();
    std::size_t count = 0;
    std::array<char, 1000> piece{};
    ssize_t size = 0;
    while ((size = read(ends->first.number(), piece.data(), piece.size())) > 0) {
      count += static_cast<std::size_t>(size);
      if (count % 50'000 < 1000) (void)usleep(2000);
    }
    _exit(count == kSize ? 0 : 1);
  }
  ends->first = OpenFile();
  const OpenFile err = file("err");
  const JobOutput done = after(ends->second.number(), err.number(), [] {
    const std::string line(1000, 'x');
    for (std::size_t count = 0; count < kSize; count += line.size()) say(STDOUT_FILENO, line);
    say(STDERR_FILENO, kMessage);
  });
  restore();
  ends->second = OpenFile();
  int status = 0;
  ASSERT_EQ(waitpid(reader, &status, 0), reader);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "all of it came";
  EXPECT_TRUE(done.said_no_memory());
}

TEST_F(JobOutputTest, WhereNobodyReadsTheJobIsTold) {
  auto ends = make_pipe();
  ASSERT_TRUE(ends);
  ends->first = OpenFile();
  const OpenFile err = file("err");
  const JobOutput done = after(ends->second.number(), err.number(), [] {
    for (int tries = 0; tries < 500; ++tries) {
      if (write(STDOUT_FILENO, "x", 1) < 0) {
        say(STDERR_FILENO, "told\n");
        return;
      }
      (void)usleep(5000);
    }
  });
  restore();
  EXPECT_EQ(text("err"), "told\n");
  EXPECT_FALSE(done.said_no_memory());
}

TEST_F(JobOutputTest, ATerminalIsOneForTheJobOfTheSameSize) {
  const auto [ours, theirs] = terminal({33, 111, 0, 0});
  const JobOutput done = after(theirs.number(), theirs.number(), [] {
    winsize seen{};
    const bool same = isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1 &&
                      ioctl(STDOUT_FILENO, TIOCGWINSZ, &seen) == 0 && seen.ws_row == 33 && seen.ws_col == 111;
    say(STDOUT_FILENO, same ? "as it is\n" : "another\n");
    say(STDERR_FILENO, "then CUDA out of memory\n");
  });
  restore();
  std::array<char, 200> shown{};
  const ssize_t count = read(ours.number(), shown.data(), shown.size());
  ASSERT_GT(count, 0);
  EXPECT_EQ(std::string(shown.data(), static_cast<std::size_t>(count)), "as it is\r\nthen CUDA out of memory\r\n");
  EXPECT_TRUE(done.said_no_memory());
}

TEST_F(JobOutputTest, ATerminalFollowsTheSizeOfTheOther) {
  const auto [ours, theirs] = terminal({33, 111, 0, 0});
  (void)dup2(theirs.number(), STDOUT_FILENO);
  (void)dup2(theirs.number(), STDERR_FILENO);
  auto made = JobOutput::open();
  const bool at_first = made->resize();
  const winsize size = {20, 77, 0, 0};
  (void)ioctl(theirs.number(), TIOCSWINSZ, &size);
  const bool then = made->resize();
  made->take_places();
  winsize seen{};
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &seen);
  restore();
  EXPECT_FALSE(at_first);
  EXPECT_TRUE(then);
  EXPECT_EQ(seen.ws_row, 20);
  EXPECT_EQ(seen.ws_col, 77);
}

TEST_F(JobOutputTest, ATerminalThatNobodyReadsIsNotWaitedFor) {
  const auto [ours, theirs] = terminal({33, 111, 0, 0});
  JobOutput left = ended(theirs.number(), theirs.number(), [] { say_all_it_takes(STDOUT_FILENO); });
  const OpenFile bell(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const bool all = left.flush(bell.number(), [] { return true; });
  restore();
  EXPECT_FALSE(all);
}

TEST_F(JobOutputTest, WhatIsClosedIsClosedForTheJob) {
  const OpenFile err = file("err");
  (void)close(STDOUT_FILENO);
  take_standard_places();
  const OpenFile closed(dup(STDOUT_FILENO));
  const JobOutput done = after(closed.number(), err.number(), [] {
    say(STDERR_FILENO, write(STDOUT_FILENO, "x", 1) < 0 && errno == EBADF ? "closed\n" : "open\n");
  });
  restore();
  EXPECT_EQ(text("err"), "closed\n");
}

}  // namespace
}  // namespace gpumem::launcher
