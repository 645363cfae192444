// gpumem-jobs as a script sees it: what it writes and prints, and its exit code.
#include <sys/wait.h>

#include <cstdlib>

#include "golden.hpp"
#include "own_path.hpp"
#include "programs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

class Jobs : public ::testing::Test {
 protected:
  ~Jobs() override { fs::remove_all(folder_); }

  /// Runs gpumem-jobs with these words in an empty folder; the exit code.
  int run(const std::string& words) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const std::string command =
        "cd '" + folder_.string() + "' && '" + testing::kJobsProgram + "' " + words + " >out 2>err";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string text(const std::string& file) const { return testing::text_of(folder_ / file); }

  const fs::path folder_ = testing::own_path("jobs");
};

TEST_F(Jobs, WritesATableAndItsGraphs) {
  ASSERT_EQ(run("--kind transformer --count 3 --first 7 --seed 1 --gpu rtx4090-24gb -o made"), 0) << text("err");
  EXPECT_EQ(text("err"), "");
  EXPECT_TRUE(text("out").starts_with("3 jobs in made/RUNS.csv; on rtx4090-24gb\n")) << text("out");
  const std::string table = text("made/RUNS.csv");
  EXPECT_TRUE(table.starts_with("summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib,"));
  EXPECT_NE(table.find("\ntransformer-7_"), std::string::npos) << table;
  EXPECT_NE(table.find("\ntransformer-9_"), std::string::npos) << table;
}

TEST_F(Jobs, BalancedOnesAreCountedByClass) {
  ASSERT_EQ(run("--kind cnn --count 6 --balance 8000 --vary -o made"), 0) << text("err");
  EXPECT_EQ(text("out"),
            "6 jobs in made/RUNS.csv; on a100-40gb\n"
            "  from 0 MiB to 8000 MiB: 1\n"
            "  from 8000 MiB to 16000 MiB: 1\n"
            "  from 16000 MiB to 24000 MiB: 1\n"
            "  from 24000 MiB to 32000 MiB: 1\n"
            "  from 32000 MiB to capacity: 1\n"
            "  do not fit: 1\n");
}

TEST_F(Jobs, WrongUsageIsExitCode2) {
  for (const char* words : {"", "--count 3", "-o made", "--count 0 -o made", "--count 3 --kind rnn -o made",
                            "--count 1x -o made", "--count 3 --seed -1 -o made", "--count 3 --gpu nope -o made",
                            "--count 3 --software nope -o made", "--count 3 --balance 0 -o made", "--what"}) {
    EXPECT_EQ(run(words), 2) << words;
    EXPECT_TRUE(text("err").starts_with("gpumem-jobs: error: ")) << words << ": " << text("err");
    EXPECT_FALSE(fs::exists(folder_ / "made" / "RUNS.csv")) << words;
  }
}

TEST_F(Jobs, AFolderThatCannotBeMadeIsExitCode3) {
  EXPECT_EQ(run("--count 1 -o err"), 3);
  EXPECT_TRUE(text("err").starts_with("gpumem-jobs: error: err: ")) << text("err");
}

}  // namespace
}  // namespace gpumem
