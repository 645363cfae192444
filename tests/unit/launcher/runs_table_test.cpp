#include "runs_table.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gpumem_datasets/datasets.hpp"
#include "own_path.hpp"

namespace gpumem::launcher {
namespace {

namespace fs = std::filesystem;

class RunsTableTest : public ::testing::Test {
 protected:
  RunsTableTest() : directory_(testing::own_path("runs").string()) { fs::create_directory(directory_); }
  ~RunsTableTest() override { fs::remove_all(directory_); }

  [[nodiscard]] core::Status append(const RunCells& cells) const { return append_run(directory_, cells); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(directory_ + "/runs.csv");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory_;
};

TEST_F(RunsTableTest, TheFirstRowMakesTheColumns) {
  ASSERT_TRUE(append({{"name", "a, b"}, {"measured_mib", "12"}}));
  ASSERT_TRUE(append({{"measured_mib", "13"}, {"name", "c"}}));
  EXPECT_EQ(text(), "name,measured_mib\n\"a, b\",12\nc,13\n");
  const core::Status other = append({{"name", "d"}, {"colour", "red"}});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("'colour'"), std::string::npos);
  ASSERT_TRUE(append({{"name", "e"}, {"colour", ""}})) << "an empty cell needs no column";
  EXPECT_EQ(text(), "name,measured_mib\n\"a, b\",12\nc,13\ne,\n");
}

TEST_F(RunsTableTest, ARowBeginsALineOfItsOwn) {
  ASSERT_TRUE(append({{"name", "a"}, {"measured_mib", "12"}}));
  std::ofstream(directory_ + "/runs.csv", std::ios::app) << "b,1";  // without its end
  ASSERT_TRUE(append({{"name", "c"}, {"measured_mib", "13"}}));
  EXPECT_EQ(text(), "name,measured_mib\na,12\nb,1\nc,13\n");
}

TEST_F(RunsTableTest, IsReadAsATableOfRuns) {
  const std::string summary = std::string(GPUMEM_SOURCE_DIR) + "/models/summaries/vgg16.torchsummary.txt";
  ASSERT_TRUE(append({{"name", "vgg16"},
                      {"summary", summary},
                      {"batch_size", "32"},
                      {"input", ""},
                      {"seq_length", ""},
                      {"optimizer", ""},
                      {"precision", ""},
                      {"gpu", "a100-40gb"},
                      {"gpus", "1"},
                      {"figure", "device"},
                      {"status", "ok"},
                      {"measured_mib", "6684"}}));
  const auto runs = datasets::read_runs(directory_ + "/runs.csv");
  ASSERT_TRUE(runs) << core::to_string(runs.error());
  ASSERT_EQ(runs->runs.size(), 1U);
  const datasets::MeasuredRun& run = runs->runs.front();
  EXPECT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.measured_mib, 6684.0);
  EXPECT_EQ(run.figure, datasets::Figure::device);
  EXPECT_EQ(run.job.batch_size, 32);
}

}  // namespace
}  // namespace gpumem::launcher
