#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/place/server.hpp"
#include "own_path.hpp"
#include "pretended_gpus.hpp"

namespace gpumem::monitor {
namespace {

using std::chrono::milliseconds;

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

using Gpus = std::vector<nlohmann::json>;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

LiveGpu gpu_named(const std::string& name, std::int64_t mib, const std::string& parent = "") {
  LiveGpu gpu;
  gpu.uuid = "GPU-1";
  gpu.name = name;
  gpu.total = core::Bytes(mib * kMiB);
  gpu.mig_parent = parent;
  return gpu;
}

TEST(ProfileOf, GoesByTheDriversName) {
  const auto exact = [](const std::string& name, std::int64_t mib, const std::string& parent = "") {
    const ProfileMatch match = profile_of(gpu_named(name, mib, parent));
    return match.exact ? match.name : "not exact: " + match.name;
  };
  // As nvidia-smi prints them; MiB that programs can have of them.
  EXPECT_EQ(exact("NVIDIA A100-SXM4-40GB", 40507), "a100-40gb");
  EXPECT_EQ(exact("NVIDIA A100-PCIE-40GB", 40507), "a100-40gb");
  EXPECT_EQ(exact("NVIDIA A100-SXM4-80GB", 81158), "a100-80gb");
  EXPECT_EQ(exact("NVIDIA H100 80GB HBM3", 81106), "h100-80gb");
  EXPECT_EQ(exact("NVIDIA H200", 143072), "h200-141gb");
  EXPECT_EQ(exact("NVIDIA A10", 22503), "a10-24gb");
  EXPECT_EQ(exact("NVIDIA L40S", 45589), "l40s-48gb");
  EXPECT_EQ(exact("Tesla T4", 15095), "t4-16gb");
  EXPECT_EQ(exact("Tesla V100-SXM2-32GB", 32494), "v100-32gb");
  EXPECT_EQ(exact("NVIDIA GeForce RTX 3090", 24155), "rtx3090-24gb");
  EXPECT_EQ(exact("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, "GPU-0"), "a100-40gb-mig-1g.5gb");
  EXPECT_EQ(exact("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", 4864, "GPU-0"), "a100-40gb-mig-1g.5gb");
}

TEST(ProfileOf, TakesTheKindAndTheMemoryWhereTheNameIsAnother) {
  const ProfileMatch match = profile_of(gpu_named("NVIDIA A100-SXM5-80GB", 81050));
  EXPECT_EQ(match.name, "a100-80gb");
  EXPECT_FALSE(match.exact);
}

TEST(ProfileOf, AnswersNothingWhereMemoryIsAnother) {
  EXPECT_EQ(profile_of(gpu_named("NVIDIA A100-SXM4-40GB", 20000)).name, "");
  EXPECT_EQ(profile_of(gpu_named("NVIDIA A100-SXM-64GB", 64000)).name, "");
  EXPECT_EQ(profile_of(gpu_named("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 39000, "GPU-0")).name, "");
  EXPECT_EQ(profile_of(gpu_named("Quadro K2200", 4043)).name, "");
  EXPECT_EQ(profile_of(gpu_named("/etc/passwd.json", 4043)).name, "");
  EXPECT_EQ(profile_of(gpu_named("", 4043)).name, "");
}

TEST(LiveServer, HoldsWhatAPolicyDecidesOn) {
  LiveGpu busy = gpu_named("NVIDIA A100-SXM4-40GB", 40507);
  busy.used = core::Bytes(13312 * kMiB);
  busy.sm_activity = 0.41;
  busy.activity_source = ActivitySource::gpm;
  LiveGpu unknown = gpu_named("Quadro K2200", 4043);
  unknown.uuid = "GPU-2";
  unknown.index = 1;
  const auto live = live_server_of({"550", {busy, unknown}, {"of the machine"}});
  ASSERT_TRUE(live) << live.error().message;
  ASSERT_EQ(live->server.gpus.size(), 2U);
  const place::ServerGpu& first = live->server.gpus[0];
  EXPECT_EQ(first.id, "GPU-1");
  EXPECT_EQ(first.profile, "a100-40gb");
  EXPECT_EQ(first.total.count(), 40507 * kMiB);
  EXPECT_EQ(first.used.count(), 13312 * kMiB);
  EXPECT_EQ(first.smact, 0.41);
  EXPECT_EQ(first.smact_source, "gpm");
  EXPECT_TRUE(first.jobs.empty());
  EXPECT_EQ(live->server.gpus[1].profile, "");
  EXPECT_EQ(live->server.gpus[1].smact_source, "");
  ASSERT_EQ(live->warnings.size(), 2U);
  EXPECT_EQ(live->warnings[0], "of the machine");
  EXPECT_EQ(live->warnings[1], "GPU 1 ('Quadro K2200') has no profile: estimates for it need `gpu`; see gpumem gpus");
  const auto again = place::parse_server(place::to_json(live->server));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(place::to_json(*again), place::to_json(live->server));
}

TEST(LiveServer, LeavesOutWhatNobodyMayUse) {
  LiveGpu gpu = gpu_named("NVIDIA A10", 22503);
  gpu.compute_mode = ComputeMode::prohibited;
  LiveGpu open = gpu;
  open.uuid = "GPU-2";
  open.compute_mode = ComputeMode::shared;
  const auto live = live_server_of({"550", {gpu, open}, {}});
  ASSERT_TRUE(live);
  ASSERT_EQ(live->server.gpus.size(), 1U);
  EXPECT_EQ(live->server.gpus[0].id, "GPU-2");
  EXPECT_NE(live->warnings.at(0).find("its compute mode is prohibited"), std::string::npos);
  const auto none = live_server_of({"550", {gpu}, {}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::ErrorCode::missing_information);
  EXPECT_NE(none.error().message.find("prohibited"), std::string::npos);
}

TEST(LiveServer, AnExclusiveProcessKeepsItsGpu) {
  LiveGpu gpu = gpu_named("NVIDIA A10", 22503);
  gpu.compute_mode = ComputeMode::exclusive_process;
  const auto free = server_of({"550", {gpu}, {}});
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->gpus[0].jobs.empty());
  gpu.used = core::Bytes(600 * kMiB);
  gpu.processes = {{4711, core::Bytes(500 * kMiB)}};
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere", 1);
  const auto taken = server_of({"550", {gpu}, {}});
  ASSERT_TRUE(taken);
  ASSERT_TRUE(taken->gpus[0].jobs.exclusive());
  EXPECT_EQ(taken->gpus[0].jobs.begin()->id, "process 4711");
  std::size_t turn = 0;
  const auto policy = place::make_policy("magm");
  const place::Decision decision =
      (*policy)->decide({.id = "job", .memory = core::Bytes(kMiB)}, *taken, {.free_floor = core::Bytes()}, turn);
  EXPECT_EQ(decision.refusal, place::Refusal::occupied);
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

TEST(LiveServer, TheServerOfMpsLeavesItsGpuOpen) {
  const std::filesystem::path folder = testing::own_path("mps_server");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "control") << "";
  std::ofstream(folder / "nvidia-cuda-mps-control.pid") << getpid();
  setenv("CUDA_MPS_PIPE_DIRECTORY", folder.c_str(), 1);
  LiveGpu gpu = gpu_named("NVIDIA A10", 22503);
  gpu.compute_mode = ComputeMode::exclusive_process;
  gpu.used = core::Bytes(30 * kMiB);
  gpu.processes = {{4711, core::Bytes(30 * kMiB)}};
  const auto server = server_of({"550", {gpu}, {}});
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(server);
  EXPECT_TRUE(server->gpus[0].jobs.empty());
}

TEST(ReadServer, AsksTheDriverOfThisMachine) {
  const testing::PretendedGpus gpus(Gpus{testing::pretended_a100("GPU-a"), testing::pretended_a100("GPU-b")});
  gpus.take("GPU-b", 1'000'000'000, "smact=0.3");
  const auto live = read_server();
  ASSERT_TRUE(live) << live.error().message;
  EXPECT_EQ(place::to_json(live->server),
            R"({"format": "gpumem-server", "version": 1,
 "gpus": [{"id":"GPU-a","profile":"a100-40gb","total_bytes":42474471424,"used_bytes":0,"smact":0.0,"smact_source":"utilisation","jobs":[]},
          {"id":"GPU-b","profile":"a100-40gb","total_bytes":42474471424,"used_bytes":1000000000,"smact":0.3,"smact_source":"utilisation","jobs":[]}]}
)");
}

TEST(ReadServer, PassesOnThatNoDriverAnswers) {
  testing::PretendedGpus gpus(Gpus{});
  const auto empty = read_server();
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "no GPU of this machine can take a job");
  gpus.machine["fail"] = {{"nvmlInit_v2", 9}};
  gpus.write();
  EXPECT_FALSE(read_server());
}

TEST(ParseWindow, TakesTimesAsPeopleWriteThem) {
  EXPECT_EQ(*parse_window("60s"), milliseconds(60000));
  EXPECT_EQ(*parse_window("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_window("1.5s"), milliseconds(1500));
  EXPECT_EQ(*parse_window("2min"), milliseconds(120000));
  EXPECT_EQ(*parse_window("0"), milliseconds(0));
  for (const char* wrong : {"", "60", "s", "-1s", "1h", "61min", "1e3s", "nan", "1s ", "infs", "99999999999999s"}) {
    const auto refused = parse_window(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, core::ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace gpumem::monitor
