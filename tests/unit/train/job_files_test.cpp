#include "job_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem_datasets/datasets.hpp"
#include "own_path.hpp"

namespace gpumem::train {
namespace {

namespace fs = std::filesystem;
using testing::succeeds;

class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() { fs::remove_all(folder_); }
  ~JobFilesTest() override { fs::remove_all(folder_); }

  core::Status write(std::uint64_t first, std::uint64_t count, const fs::path& folder) {
    const auto hear = [this](const LabelledJob&, std::uint64_t done) { heard_ = done; };
    return write_jobs(jobs_, {folder.string(), "a100-40gb", first, count}, hear);
  }

  const fs::path folder_ = testing::own_path("job_files");
  const LabelledJobs jobs_{RandomJobs({ml::NetKind::any, 2, true}), *find_profile("a100-40gb")};
  std::uint64_t heard_ = 0;
};

TEST_F(JobFilesTest, TheTableIsReadAndReplaysToWhatItSays) {
  constexpr std::uint64_t kCount = 30;
  ASSERT_TRUE(succeeds(write(0, kCount, folder_)));
  EXPECT_EQ(heard_, kCount);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), std::ptrdiff_t{kCount + 1});
  const auto runs = datasets::read_runs((folder_ / kRunsFile).string());
  ASSERT_TRUE(succeeds(runs));
  ASSERT_EQ(runs->runs.size(), kCount);
  const estimate::Replay replay;
  for (std::uint64_t index = 0; index < kCount; ++index) {
    const datasets::MeasuredRun& run = runs->runs[index];
    ASSERT_FALSE(run.error) << core::to_string(*run.error);
    EXPECT_FALSE(run.measured_mib);
    EXPECT_FALSE(run.out_of_memory);
    const auto job = jobs_.at(index);
    ASSERT_TRUE(succeeds(job));
    EXPECT_EQ(run.name, job->made.name);
    const auto estimate = replay.estimate(run.job, *find_profile(run.gpu));
    ASSERT_TRUE(succeeds(estimate)) << run.name;
    EXPECT_EQ(static_cast<double>(estimate->expected.count()), job->replay_mib * 1048576.0) << run.name;
    EXPECT_EQ(estimate->fits, job->fits);
  }
}

TEST_F(JobFilesTest, WorkCanBeParted) {
  ASSERT_TRUE(succeeds(write(0, 4, folder_ / "whole")));
  ASSERT_TRUE(succeeds(write(0, 2, folder_ / "deep" / "first")));
  ASSERT_TRUE(succeeds(write(2, 2, folder_ / "second")));
  const std::string whole = testing::text_of(folder_ / "whole" / kRunsFile);
  const std::string second = testing::text_of(folder_ / "second" / kRunsFile);
  EXPECT_EQ(whole, testing::text_of(folder_ / "deep" / "first" / kRunsFile) + second.substr(runs_header().size()));
}

TEST_F(JobFilesTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_) << "a file";
  const core::Status status = write(0, 1, folder_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::unreadable_file);
  EXPECT_EQ(status.error().place.file, folder_.string());
}

TEST_F(JobFilesTest, WithoutAllItsJobsThereIsNoTable) {
  // A folder stands where the second job's file should.
  fs::create_directories(folder_ / (jobs_.at(1)->made.name + ".json"));
  const core::Status status = write(0, 3, folder_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::unreadable_file);
  EXPECT_EQ(heard_, 1U);
  EXPECT_FALSE(fs::exists(folder_ / kRunsFile));
}

}  // namespace
}  // namespace gpumem::train
