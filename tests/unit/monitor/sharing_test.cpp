#include "gpumem/monitor/live_server.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "own_path.hpp"

namespace gpumem::monitor {
namespace {

namespace fs = std::filesystem;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// A folder as the control daemon leaves it.
class PipeFolder {
 public:
  explicit PipeFolder(const std::string& pid) : path_(testing::own_path("mps")) {
    fs::create_directories(path_);
    std::ofstream(path_ / "control") << "";
    std::ofstream(path_ / "nvidia-cuda-mps-control.pid") << pid;
  }
  PipeFolder(const PipeFolder&) = delete;
  PipeFolder& operator=(const PipeFolder&) = delete;
  ~PipeFolder() { fs::remove_all(path_); }

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(FindMpsDaemon, LooksAtTheProcessBehindThePipes) {
  const PipeFolder folder(std::to_string(getpid()) + "\n");
  const auto daemon = find_mps_daemon(folder.path().string());
  ASSERT_TRUE(daemon);
  EXPECT_EQ(daemon->pid, getpid());
  EXPECT_EQ(daemon->pipe_directory, folder.path().string());
  setenv("CUDA_MPS_PIPE_DIRECTORY", folder.path().c_str(), 1);
  EXPECT_TRUE(find_mps_daemon());
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  fs::remove(folder.path() / "control");
  EXPECT_FALSE(find_mps_daemon(folder.path().string()));
}

TEST(FindMpsDaemon, FindsNoneWhereNoProcessLives) {
  EXPECT_FALSE(find_mps_daemon("/nowhere"));
  for (const char* pid : {"", "none", "-1", "0", "99999999999999999999", "2147483646"}) {
    const PipeFolder folder(pid);
    EXPECT_FALSE(find_mps_daemon(folder.path().string())) << pid;
  }
}

TEST(PlanSharing, IsTimeSlicesWithoutADaemon) {
  const SharingPlan plan = plan_sharing(std::nullopt, {1, core::Bytes(1), 0.5});
  EXPECT_EQ(plan.sharing, utilisation::Sharing::streams);
  EXPECT_TRUE(plan.environment.empty());
  EXPECT_EQ(plan.words, "time slices: no MPS control daemon runs");
}

TEST(PlanSharing, HoldsAClientToItsEstimate) {
  const MpsDaemon daemon = {"/run/mps", 4711};
  const SharingPlan plan = plan_sharing(daemon, {2, core::Bytes((std::int64_t{4096} << 20) + 1), 0.31});
  EXPECT_EQ(plan.sharing, utilisation::Sharing::mps);
  EXPECT_EQ(plan.environment, (Variables{{"CUDA_MPS_PIPE_DIRECTORY", "/run/mps"},
                                         {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "62"},
                                         {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=4097M,1=4097M"}}));
  EXPECT_EQ(plan.words, "MPS, at most 62 % of the SMs, at most 4.00 GiB of each GPU");
}

TEST(PlanSharing, LimitsNothingThatIsNotKnown) {
  const MpsDaemon daemon = {"/run/mps", 4711};
  EXPECT_EQ(plan_sharing(daemon, {}).environment, (Variables{{"CUDA_MPS_PIPE_DIRECTORY", "/run/mps"}}));
  EXPECT_EQ(plan_sharing(daemon, {1, std::nullopt, 0.0}).environment[1].second, "10");
  EXPECT_EQ(plan_sharing(daemon, {1, std::nullopt, 0.9}).environment[1].second, "100");
  EXPECT_EQ(plan_sharing(daemon, {1, core::Bytes(0), std::nullopt}).environment[1].second, "0=1M");
}

TEST(CanBeShared, GoesByTheComputeMode) {
  const MpsDaemon daemon = {"/run/mps", 4711};
  LiveGpu gpu;
  EXPECT_TRUE(can_be_shared(gpu, std::nullopt));
  gpu.compute_mode = ComputeMode::exclusive_process;
  EXPECT_FALSE(can_be_shared(gpu, std::nullopt));
  EXPECT_TRUE(can_be_shared(gpu, daemon));
  gpu.compute_mode = ComputeMode::prohibited;
  EXPECT_FALSE(can_be_shared(gpu, daemon));
}

}  // namespace
}  // namespace gpumem::monitor
