// gpumem_accuracy as a script sees it: what it writes and prints, and its exit code.
#include <sys/wait.h>

#include <cstdlib>

#include "golden.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

class AccuracyProgram : public ::testing::Test {
 protected:
  AccuracyProgram() { fs::create_directories(folder_); }
  ~AccuracyProgram() override { fs::remove_all(folder_); }

  /// Runs gpumem_accuracy with these words in an empty folder; the exit code.
  int run(const std::string& words) {
    const std::string command = "cd '" + folder_.string() + "' && '" GPUMEM_ACCURACY "' " + words + " >out 2>err";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string text(const std::string& file) const { return testing::text_of(folder_ / file); }
  void write(const std::string& file, const std::string& content) const {
    std::ofstream(folder_ / file, std::ios::binary) << content;
  }

  const fs::path folder_ = testing::own_path("accuracy");
};

const std::string kTables = "'" GPUMEM_GOLDEN_DIR "/accuracy/runs.csv' '" GPUMEM_GOLDEN_DIR "/accuracy/mlp.csv'";

/// Without what differs from checkout to checkout.
std::string without_root(std::string text) {
  const std::string root = GPUMEM_SOURCE_DIR "/";
  for (std::size_t at = text.find(root); at != std::string::npos; at = text.find(root)) text.erase(at, root.size());
  return text;
}

TEST_F(AccuracyProgram, WritesAReportAndAPicture) {
  ASSERT_EQ(run(kTables + " -o made/here"), 0) << text("err");
  EXPECT_EQ(text("out"), "");
  EXPECT_EQ(text("err"), "");
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "accuracy" / "accuracy.md",
                         without_root(text("made/here/accuracy.md")));
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "accuracy" / "accuracy.svg", text("made/here/accuracy.svg"));
}

TEST_F(AccuracyProgram, PrintsTheReportWhereNoFolderIsGiven) {
  ASSERT_EQ(run(kTables + " --estimator replay"), 0) << text("err");
  EXPECT_TRUE(text("out").starts_with("# Accuracy\n")) << text("out");
  EXPECT_EQ(text("out").find("`horus`"), std::string::npos);
}

TEST_F(AccuracyProgram, WritesTheTablesOfAReadmeAndSaysWhetherTheyAreStale) {
  write("README.md", "# Mine\n<!-- accuracy: begin runs -->\n<!-- accuracy: end -->\n");
  EXPECT_EQ(run(kTables + " --readme README.md --check"), 1);
  EXPECT_NE(text("err").find("error: README.md:3: is not what the data say"), std::string::npos) << text("err");
  EXPECT_EQ(run(kTables + " --readme README.md"), 0) << text("err");
  EXPECT_NE(text("err").find("not at hand, stands as it is: CNNs of xMem's set"), std::string::npos) << text("err");
  EXPECT_NE(text("README.md").find("| 2 MLPs of GPUMemNet's set, A100-40GB"), std::string::npos) << text("README.md");
  EXPECT_EQ(run(kTables + " --readme README.md --check"), 0) << text("err");
  // Without the runs there is nothing to say against it.
  EXPECT_EQ(run("--readme README.md --check"), 0) << text("err");
}

TEST_F(AccuracyProgram, WrongUsageIsExitCode2) {
  for (const char* words : {"", "--check", "--what", "--estimator nope --readme README.md"}) {
    EXPECT_EQ(run(words), 2) << words;
    EXPECT_TRUE(text("err").starts_with("gpumem_accuracy: error: ")) << words << ": " << text("err");
  }
}

TEST_F(AccuracyProgram, BadInputIsExitCode3) {
  write("README.md", "no mark\n");
  write("other.csv", "a,b\n1,2\n");
  for (const char* words : {"missing.csv", "other.csv", "--readme README.md", "--readme missing.md"}) {
    EXPECT_EQ(run(words), 3) << words;
    EXPECT_TRUE(text("err").starts_with("gpumem_accuracy: error: ") || text("err").starts_with("not at hand"))
        << words << ": " << text("err");
  }
}

}  // namespace
}  // namespace gpumem
