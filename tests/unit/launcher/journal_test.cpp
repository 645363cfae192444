#include "journal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "own_path.hpp"
#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

namespace fs = std::filesystem;
using testing::end;
using testing::join;
using testing::mib;
using testing::start;

/// A queue of its own for each test.
class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : directory_(testing::own_path("queue").string()) {
    fs::remove_all(directory_);
    fs::create_directory(directory_);
  }
  ~JournalTest() override { fs::remove_all(directory_); }

  [[nodiscard]] Journal open() const {
    auto journal = Journal::open(directory_);
    if (!journal) throw std::runtime_error(core::to_string(journal.error()));
    return *std::move(journal);
  }
  static void append(Journal& journal, const std::vector<Event>& events) {
    auto locked = journal.lock();
    ASSERT_TRUE(locked) << core::to_string(locked.error());
    const core::Status done = locked->append(events);
    ASSERT_TRUE(done) << core::to_string(done.error());
  }
  [[nodiscard]] std::string text() const {
    std::ifstream file(directory_ + "/journal");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void set_text(const std::string& text) const { std::ofstream(directory_ + "/journal") << text; }

  std::string directory_;
};

TEST_F(JournalTest, WhatOneWritesAnotherReads) {
  Journal mine = open();
  Journal other = open();
  EXPECT_TRUE(mine.ledger().entries().empty());
  append(mine, {join(1), join(2)});
  EXPECT_TRUE(other.ledger().entries().empty());
  ASSERT_TRUE(other.refresh());
  EXPECT_EQ(other.ledger().entries().size(), 2U);
  append(other, {start(1, {{"GPU-0", mib(4)}})});
  ASSERT_TRUE(mine.refresh());
  EXPECT_TRUE(mine.ledger().find(1)->holding);
  EXPECT_EQ(open().ledger().entries().size(), 2U);
}

TEST_F(JournalTest, ATornEndIsLeftOutAndCutOff) {
  Journal journal = open();
  append(journal, {join(1)});
  const std::string sound = text();
  const std::string next = line_of(join(2));
  for (const std::size_t size : {std::size_t{1}, next.size() / 2, next.size() - 1}) {
    set_text(sound + next.substr(0, size));
    Journal reader = open();
    EXPECT_EQ(reader.ledger().entries().size(), 1U) << size;
    append(reader, {join(3)});
    EXPECT_EQ(text(), sound + line_of(join(3))) << size;
  }
  set_text(sound + std::string(300, '\0') + "\n" + next.substr(5));  // pages that never reached the disk
  EXPECT_EQ(open().ledger().entries().size(), 1U);
}

TEST_F(JournalTest, ABrokenLineBeforeWholeOnesIsAnErrorWithItsLine) {
  Journal journal = open();
  append(journal, {join(1), join(2), join(3)});
  std::string broken = text();
  broken[broken.find("\"job\":2") + 6] = '5';
  set_text(broken);
  const auto read = Journal::open(directory_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, core::ErrorCode::malformed_input);
  EXPECT_EQ(read.error().place.line, 3);
  EXPECT_NE(read.error().message.find("remove the file"), std::string::npos);
}

TEST_F(JournalTest, ABrokenOneOfAnotherStartOfTheMachineIsBegunAnew) {
  Event joins = join(1);
  std::get<Joined>(joins.what).boot = "11111111-2222-3333-4444-555555555555";
  const std::string first = line_of({0, 0.0, Opened{}}) + line_of(joins);
  set_text(first + std::string(40, '\0') + "\n" + line_of(end(1)));
  Journal journal = open();
  EXPECT_TRUE(journal.ledger().entries().empty());
  append(journal, {join(1)});
  EXPECT_EQ(text(), line_of({0, 0.0, Opened{}}) + line_of(join(1)));
}

TEST_F(JournalTest, AnEventThatCannotFollowIsAnErrorWithItsLine) {
  set_text(line_of({0, 0.0, Opened{}}) + line_of(join(1)) + line_of(end(7)));
  const auto read = Journal::open(directory_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().place.line, 3);
  EXPECT_EQ(read.error().message, "job 7 is not in the queue");
}

TEST_F(JournalTest, NothingIsWrittenOfWhatCannotBe) {
  Journal journal = open();
  append(journal, {join(1)});
  const std::string before = text();
  auto locked = journal.lock();
  ASSERT_TRUE(locked);
  EXPECT_FALSE(locked->append({join(2), end(9)}));
  EXPECT_EQ(text(), before);
  EXPECT_EQ(journal.ledger().entries().size(), 1U);
}

TEST_F(JournalTest, ALongJournalIsWrittenAnew) {
  Journal reader = open();
  Journal writer = open();
  append(writer, {join(1)});
  for (std::int64_t job = 2; job < 600; ++job) append(writer, {join(job), end(job)});
  EXPECT_LT(text().size(), 80'000U);
  EXPECT_EQ(writer.ledger().next_job(), 600);
  EXPECT_EQ(writer.ledger().entries().size(), 1U);
  ASSERT_TRUE(reader.refresh());
  EXPECT_EQ(reader.ledger().next_job(), 600);
  EXPECT_EQ(open().ledger().next_job(), 600) << "numbers are not given twice";
  EXPECT_FALSE(fs::exists(directory_ + "/journal.new"));
}

TEST_F(JournalTest, InAStickyDirectoryItsOwnerAloneWritesItAnew) {
  if (geteuid() != 0) GTEST_SKIP() << "takes two users";
  fs::permissions(directory_, static_cast<fs::perms>(01777));
  Journal owner = open();
  append(owner, {join(1)});
  ASSERT_EQ(seteuid(65534), 0);
  Journal other = open();
  for (std::int64_t job = 2; job < 600; ++job) append(other, {join(job), end(job)});
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_GT(text().size(), 200'000U);
  EXPECT_FALSE(fs::exists(directory_ + "/journal.new"));
  append(owner, {join(600)});
  EXPECT_LT(text().size(), 10'000U);
  ASSERT_TRUE(other.refresh());
  EXPECT_EQ(other.ledger().next_job(), 601);
}

TEST_F(JournalTest, OfALineThatWasTakenBackNothingIsBelieved) {
  Journal reader = open();
  Journal writer = open();
  append(writer, {join(1)});
  const std::string sound = text();
  append(writer, {join(2)});
  ASSERT_TRUE(reader.refresh());
  EXPECT_EQ(reader.ledger().entries().size(), 2U);
  set_text(sound + line_of(join(3, 4096)));  // as after a disk that was full when it came to the promise
  ASSERT_TRUE(reader.refresh());
  EXPECT_EQ(reader.ledger().find(2), nullptr);
  EXPECT_NE(reader.ledger().find(3), nullptr);
}

TEST_F(JournalTest, AFullDiskChangesNothing) {
  Journal journal = open();
  append(journal, {join(1)});
  const std::string before = text();
  struct sigaction ignore {};
  struct sigaction old {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &old);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full = {before.size() + 40, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  {
    auto locked = journal.lock();
    ASSERT_TRUE(locked);
    const core::Status done = locked->append({start(1, {{"GPU-0", mib(4)}})});
    setrlimit(RLIMIT_FSIZE, &limit);
    sigaction(SIGXFSZ, &old, nullptr);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("cannot write"), std::string::npos);
  }
  EXPECT_EQ(text(), before);
  EXPECT_FALSE(journal.ledger().find(1)->holding);
  append(journal, {start(1, {{"GPU-0", mib(4)}})});
  EXPECT_TRUE(open().ledger().find(1)->holding);
}

TEST_F(JournalTest, FilesGetTheDirectorysModeWithoutTheRightToExecute) {
  fs::permissions(directory_, static_cast<fs::perms>(0770));
  Journal journal = open();
  append(journal, {join(1)});
  struct stat facts {};
  ASSERT_EQ(stat((directory_ + "/journal").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0660U);
  ASSERT_EQ(stat((directory_ + "/lock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0660U);
}

TEST_F(JournalTest, LinksAreNotFollowed) {
  fs::create_symlink("/etc/passwd", directory_ + "/journal");
  EXPECT_FALSE(Journal::open(directory_));
}

TEST_F(JournalTest, ManyWritersLoseNothing) {
  constexpr std::int64_t kWriters = 8;
  constexpr std::int64_t kEach = 40;
  std::vector<std::jthread> writers;
  for (std::int64_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&] {
      Journal journal = open();
      for (std::int64_t count = 0; count < kEach; ++count) {
        auto locked = journal.lock();
        ASSERT_TRUE(locked);
        ASSERT_TRUE(locked->append({join(journal.ledger().next_job())}));
      }
    });
  }
  writers.clear();
  EXPECT_EQ(open().ledger().entries().size(), static_cast<std::size_t>(kWriters * kEach));
}

TEST(QueueDirectory, IsWhereItIsNamed) {
  const fs::path named = testing::own_path("named") / "deep";
  const auto found = queue_directory(named.string());
  ASSERT_TRUE(found) << core::to_string(found.error());
  EXPECT_EQ(*found, named.string());
  EXPECT_TRUE(fs::is_directory(named));
  fs::remove_all(named.parent_path());
  const auto nowhere = queue_directory("/proc/nowhere");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().place.file, "/proc/nowhere");
}

}  // namespace
}  // namespace gpumem::launcher
