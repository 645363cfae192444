#include "../../../src/webhook/summaries.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "expect.hpp"
#include "golden.hpp"
#include "own_path.hpp"

namespace gpumem::webhook {
namespace {

namespace fs = std::filesystem;
using testing::fails;
using testing::succeeds;

constexpr std::size_t kMost = 1 << 20;

/// A folder "in" with summaries, and files next to it that nobody may read from there.
class SummariesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::own_path("summaries");
    fs::create_directories(root_ / "in" / "team");
    fs::create_directories(root_ / "in_too");
    write("in/net.txt", net());
    write("in/team/net.txt", net());
    write("secret.txt", net());
    write("in_too/secret.txt", net());
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string net() { return testing::text_of(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt"); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(root_ / file, std::ios::binary) << text;
  }
  [[nodiscard]] Folder folder() const { return {(root_ / "in").string(), kMost}; }
  [[nodiscard]] auto open(const std::string& path) const { return folder().open(path); }

  fs::path root_;
};

TEST_F(SummariesTest, AreReadBelowTheFolder) {
  for (const char* path : {"net.txt", "team/net.txt", "./net.txt", "team//net.txt"}) {
    const auto file = open(path);
    ASSERT_TRUE(succeeds(file)) << path;
    EXPECT_EQ(*file->read(), net());
  }
}

TEST_F(SummariesTest, PathsDoNotLeadOut) {
  for (const std::string path :
       {"../secret.txt", "team/../../secret.txt", "/etc/passwd", "", "..", "team/..", "../in/net.txt"}) {
    EXPECT_TRUE(fails(open(path), ErrorCode::unreadable_file, 0, "must be a path below")) << path;
  }
  EXPECT_TRUE(fails(open(std::string("net.txt\0", 8)), ErrorCode::unreadable_file, 0, "must be a path below"));
}

TEST_F(SummariesTest, LinksAreFollowedAsLongAsTheyStayInside) {
  // As a mounted ConfigMap looks: net2.txt -> ..data/net2.txt, ..data -> ..2024_05_14.
  fs::create_directories(root_ / "in" / "..2024_05_14");
  write("in/..2024_05_14/net2.txt", net());
  fs::create_directory_symlink("..2024_05_14", root_ / "in" / "..data");
  fs::create_symlink("..data/net2.txt", root_ / "in" / "net2.txt");
  EXPECT_TRUE(succeeds(open("net2.txt")));

  fs::create_symlink("../secret.txt", root_ / "in" / "up.txt");
  fs::create_symlink(root_ / "secret.txt", root_ / "in" / "absolute.txt");
  fs::create_directory_symlink("../in_too", root_ / "in" / "beside");
  fs::create_symlink("/proc/self/environ", root_ / "in" / "environ");
  for (const char* path : {"up.txt", "absolute.txt", "beside/secret.txt", "environ"}) {
    EXPECT_TRUE(fails(open(path), ErrorCode::unreadable_file, 0, "leads out of the folder")) << path;
  }
  fs::create_symlink("loop.txt", root_ / "in" / "loop.txt");
  EXPECT_TRUE(fails(open("loop.txt"), ErrorCode::unreadable_file, 0, "cannot be opened"));
}

TEST_F(SummariesTest, OnlyRegularFilesOfBoundedSizeAreRead) {
  ASSERT_EQ(mkfifo((root_ / "in" / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(fails(open("fifo"), ErrorCode::unreadable_file, 0, "is not a regular file"));
  EXPECT_TRUE(fails(open("team"), ErrorCode::unreadable_file, 0, "is not a regular file"));
  std::ofstream(root_ / "in" / "huge.txt");
  fs::resize_file(root_ / "in" / "huge.txt", std::uintmax_t{1} << 40);
  EXPECT_TRUE(fails(open("huge.txt"), ErrorCode::unreadable_file, 0, "is larger than 1.00 MiB"));
  EXPECT_TRUE(fails(Folder("", kMost).open("net.txt"), ErrorCode::unreadable_file, 0, "no folder of summaries"));
  EXPECT_TRUE(fails(Folder("/nowhere", kMost).open("net.txt"), ErrorCode::unreadable_file, 0, "cannot be opened"));
}

TEST_F(SummariesTest, AreReadOnceAsLongAsTheyStayAsTheyAre) {
  Summaries summaries(folder());
  const auto first = summaries.from_file("net.txt");
  ASSERT_TRUE(succeeds(first));
  EXPECT_EQ(summaries.from_file("net.txt")->get(), first->get());
  EXPECT_EQ(summaries.counters().hits, 1);
  EXPECT_EQ(summaries.counters().misses, 1);
  // A ConfigMap is changed by putting another file in its place.
  write("in/new.txt", testing::text_of(GPUMEM_SOURCE_DIR "/models/summaries/vgg16.torchsummary.txt"));
  fs::rename(root_ / "in" / "new.txt", root_ / "in" / "net.txt");
  const auto second = summaries.from_file("net.txt");
  ASSERT_TRUE(succeeds(second));
  EXPECT_NE((*second)->parameters(), (*first)->parameters());
  EXPECT_EQ(summaries.counters().misses, 2);
  EXPECT_TRUE(fails(summaries.from_file("gone.txt"), ErrorCode::unreadable_file, 0, "cannot be opened"));
}

TEST_F(SummariesTest, ErrorsAreKeptAsWellAndNameTheFile) {
  write("in/broken.txt", "no summary at all");
  Summaries summaries(folder());
  const auto first = summaries.from_file("broken.txt");
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().place.file, "broken.txt");
  EXPECT_FALSE(summaries.from_file("broken.txt"));
  EXPECT_EQ(summaries.counters().hits, 1);
}

TEST_F(SummariesTest, TextsAreKnownByWhatTheySay) {
  Summaries summaries(Folder("", kMost));
  const auto first = summaries.from_text(net());
  ASSERT_TRUE(succeeds(first));
  EXPECT_EQ(summaries.from_text(net())->get(), first->get());
  EXPECT_NE(summaries.from_text(net() + "\n")->get(), first->get());
}

TEST_F(SummariesTest, TheOnesUsedLastAreKept) {
  Summaries summaries(folder(), 2 * net().size() + 1);
  const auto first = summaries.from_text(net());
  (void)summaries.from_file("net.txt");
  (void)summaries.from_text(net());
  (void)summaries.from_file("team/net.txt");  // one too many: net.txt goes
  EXPECT_EQ(summaries.from_text(net())->get(), first->get());
  const auto misses = summaries.counters().misses;
  (void)summaries.from_file("net.txt");
  EXPECT_EQ(summaries.counters().misses, misses + 1);
}

TEST_F(SummariesTest, ServeManyThreads) {
  Summaries summaries(folder(), 2 * net().size());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        EXPECT_TRUE(summaries.from_file(turn % 2 == 0 ? "net.txt" : "team/net.txt"));
        EXPECT_TRUE(summaries.from_text(turn % 3 == 0 ? net() : net() + " "));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpumem::webhook
