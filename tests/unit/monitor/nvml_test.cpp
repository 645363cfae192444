#include "gpumem/monitor/nvml.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "pretended_gpus.hpp"

namespace gpumem::monitor {
namespace {

using nlohmann::json;
using Gpus = std::vector<json>;
using std::chrono::milliseconds;
using testing::kA100Reserved;
using testing::kA100Total;
using testing::pretended_a100;
using testing::PretendedGpus;

Machine machine_of(milliseconds window = {}) {
  const auto nvml = Nvml::open();
  EXPECT_TRUE(nvml) << nvml.error().message;
  if (!nvml) return {};
  auto machine = nvml->read(window);
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? *std::move(machine) : Machine{};
}

std::string all_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// The library of a driver of 2019.
constexpr const char* kOld = "old/libnvidia-ml.so.1";

TEST(Nvml, ReadsWhatTheDriverTells) {
  json gpu = pretended_a100("GPU-a");
  gpu["utilisation"] = 37;
  gpu["used_outside"] = 100;
  const PretendedGpus gpus(Gpus{gpu, pretended_a100("GPU-b")});
  gpus.take("GPU-a", 5'000'000'000, "smact=0.2");
  const Machine machine = machine_of();
  EXPECT_EQ(machine.driver_version, "550.54.15");
  EXPECT_EQ(all_of(machine.warnings), "");
  ASSERT_EQ(machine.gpus.size(), 2U);
  const LiveGpu& first = machine.gpus[0];
  EXPECT_EQ(first.uuid, "GPU-a");
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(first.total.count(), kA100Total - kA100Reserved);
  EXPECT_EQ(first.used.count(), 5'000'000'100);
  ASSERT_EQ(first.processes.size(), 1U);
  EXPECT_EQ(first.processes[0].pid, getpid());
  EXPECT_EQ(first.processes[0].used->count(), 5'000'000'000);
  EXPECT_NEAR(first.sm_activity.value(), 0.57, 1e-9);
  EXPECT_EQ(first.activity_source, ActivitySource::utilisation);
  EXPECT_EQ(first.mig_parent, "");
  EXPECT_EQ(first.compute_mode, ComputeMode::shared);
  EXPECT_EQ(machine.gpus[1].index, 1);
  EXPECT_EQ(machine.gpus[1].used.count(), 0);
  EXPECT_TRUE(machine.gpus[1].processes.empty());
  EXPECT_EQ(machine.gpus[1].sm_activity, 0.0);
}

TEST(Nvml, TakesSmActivityOfGpmWhereTheGpuHasIt) {
  json gpu = pretended_a100("GPU-a");
  gpu["utilisation"] = 99;
  gpu["sm_util"] = 21.5;
  const PretendedGpus gpus(Gpus{gpu});
  const LiveGpu watched = machine_of(milliseconds(200)).gpus.at(0);
  EXPECT_NEAR(watched.sm_activity.value(), 0.215, 1e-9);
  EXPECT_EQ(watched.activity_source, ActivitySource::gpm);
  // Its samples must lie 100 ms apart.
  const LiveGpu glanced = machine_of(milliseconds(50)).gpus.at(0);
  EXPECT_NEAR(glanced.sm_activity.value(), 0.99, 1e-9);
  EXPECT_EQ(glanced.activity_source, ActivitySource::utilisation);
}

TEST(Nvml, CountsSlicesAsGpusOfTheirOwn) {
  json gpu = pretended_a100("GPU-a");
  const std::string name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
  gpu["mig"] = {
      {{"uuid", "MIG-1"}, {"name", name}, {"memory_total", 5'100'273'664}, {"gpu_instance", 7}},
      {{"uuid", "MIG-2"}, {"name", name}, {"memory_total", 5'100'273'664}, {"gpu_instance", 8}, {"sm_util", 40}},
      // a second compute instance of the same memory
      {{"uuid", "MIG-3"}, {"name", name}, {"memory_total", 5'100'273'664}, {"gpu_instance", 8}}};
  const PretendedGpus gpus(Gpus{pretended_a100("GPU-b"), gpu});
  gpus.take("MIG-2", 1'000'000'000);
  const Machine machine = machine_of(milliseconds(200));
  ASSERT_EQ(machine.gpus.size(), 3U);
  EXPECT_EQ(machine.gpus[1].uuid, "MIG-1");
  EXPECT_EQ(machine.gpus[1].mig_parent, "GPU-a");
  EXPECT_EQ(machine.gpus[1].index, 1);
  EXPECT_EQ(machine.gpus[1].sm_activity, std::nullopt);
  EXPECT_EQ(machine.gpus[1].activity_source, ActivitySource::none);
  EXPECT_EQ(machine.gpus[2].uuid, "MIG-2");
  EXPECT_EQ(machine.gpus[2].used.count(), 1'000'000'000);
  EXPECT_NEAR(machine.gpus[2].sm_activity.value(), 0.4, 1e-9);
  const std::string warnings = all_of(machine.warnings);
  EXPECT_NE(warnings.find("compute instances that share the memory of GPU instance 8"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("SM activity is not known for MIG-1:"), std::string::npos) << warnings;
}

TEST(Nvml, SaysThatAGpuInMigModeHasNoSlices) {
  json gpu = pretended_a100("GPU-a");
  gpu["mig"] = json::array();
  const PretendedGpus gpus(Gpus{gpu, pretended_a100("GPU-b")});
  const Machine machine = machine_of();
  ASSERT_EQ(machine.gpus.size(), 1U);
  EXPECT_NE(all_of(machine.warnings).find("GPU 0 is left out: it is in MIG mode and has no slices"), std::string::npos);
}

TEST(Nvml, LeavesOutALostGpuAndSaysSo) {
  for (const json& lost : {json(true), json("later")}) {
    json gpu = pretended_a100("GPU-a");
    gpu["lost"] = lost;
    const PretendedGpus gpus(Gpus{gpu, pretended_a100("GPU-b")});
    const Machine machine = machine_of();
    ASSERT_EQ(machine.gpus.size(), 1U);
    EXPECT_EQ(machine.gpus[0].uuid, "GPU-b");
    ASSERT_EQ(machine.warnings.size(), 1U);
    EXPECT_NE(machine.warnings[0].find("GPU 0 is left out: it is lost"), std::string::npos) << machine.warnings[0];
    EXPECT_NE(machine.warnings[0].find("Xid"), std::string::npos);
  }
}

TEST(Nvml, AGpuThatFallsOffWhileItIsWatchedIsLeftOut) {
  PretendedGpus gpus(Gpus{pretended_a100("GPU-a"), pretended_a100("GPU-b")});
  const auto nvml = Nvml::open();
  ASSERT_TRUE(nvml);
  EXPECT_EQ(nvml->read()->gpus.size(), 2U);
  gpus.machine["gpus"][1]["lost"] = "later";
  gpus.write();
  EXPECT_EQ(nvml->read()->gpus.size(), 1U);
  gpus.machine["gpus"][1]["lost"] = false;
  gpus.write();
  EXPECT_EQ(nvml->read()->gpus.size(), 2U);
}

TEST(Nvml, AProcessThatHidesItsMemoryHasNone) {
  const PretendedGpus gpus(Gpus{pretended_a100("GPU-a")});
  gpus.take("GPU-a", 5'000'000'000, "reports=none");
  const Machine machine = machine_of();
  ASSERT_EQ(machine.gpus.at(0).processes.size(), 1U);
  EXPECT_EQ(machine.gpus[0].processes[0].used, std::nullopt);
  EXPECT_EQ(machine.gpus[0].used.count(), 5'000'000'000);
  EXPECT_EQ(all_of(machine.warnings), "");
}

TEST(Nvml, AProcessThatTellsMoreThanThereIsIsNotBelieved) {
  const PretendedGpus gpus(Gpus{pretended_a100("GPU-a")});
  gpus.take("GPU-a", 5'000'000'000, "reports=99000000000");
  const Machine machine = machine_of();
  ASSERT_EQ(machine.gpus.at(0).processes.size(), 1U);
  EXPECT_EQ(machine.gpus[0].processes[0].used, std::nullopt);
  EXPECT_EQ(machine.gpus[0].used.count(), 5'000'000'000);
  EXPECT_NE(all_of(machine.warnings).find("is said to use more memory than there is"), std::string::npos);
}

TEST(Nvml, ADriverOf2019TellsLess) {
  json gpu = pretended_a100("GPU-a");
  gpu["sm_util"] = 20;
  gpu["utilisation"] = 60;
  const PretendedGpus gpus(Gpus{gpu}, kOld);
  gpus.take("GPU-a", 5'000'000'000);
  const Machine machine = machine_of(milliseconds(200));
  ASSERT_EQ(machine.gpus.size(), 1U);
  const LiveGpu& read = machine.gpus[0];
  EXPECT_EQ(read.total.count(), kA100Total - kA100Reserved);
  EXPECT_EQ(read.used.count(), 5'000'000'000);
  ASSERT_EQ(read.processes.size(), 1U);
  EXPECT_EQ(read.processes[0].used->count(), 5'000'000'000);
  EXPECT_NEAR(read.sm_activity.value(), 0.6, 1e-9);
  EXPECT_EQ(read.activity_source, ActivitySource::utilisation);
  EXPECT_NE(all_of(machine.warnings).find("older than version 510"), std::string::npos);
}

/// A new library over an old driver: the symbols are there and answer that they are not.
TEST(Nvml, FunctionsThatTheDriverDoesNotKnowAreDoneWithout) {
  for (const char* symbol :
       {"nvmlSystemGetDriverVersion", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMigMode", "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlDeviceGetSamples",
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeMode"}) {
    SCOPED_TRACE(symbol);
    json gpu = pretended_a100("GPU-a");
    gpu["sm_util"] = 20;
    PretendedGpus gpus(Gpus{gpu});
    gpus.machine["missing"] = {symbol};
    gpus.write();
    gpus.take("GPU-a", 5'000'000'000);
    const Machine machine = machine_of(milliseconds(160));
    ASSERT_EQ(machine.gpus.size(), 1U);
    EXPECT_EQ(machine.gpus[0].uuid, "GPU-a");
    ASSERT_EQ(machine.gpus[0].processes.size(), 1U);
    EXPECT_TRUE(machine.gpus[0].sm_activity.has_value());
  }
}

TEST(Nvml, ProcessesThatTheDriverDoesNotTellAreSaidToBeMissing) {
  PretendedGpus gpus(Gpus{pretended_a100("GPU-a")});
  gpus.machine["fail"] = {{"nvmlDeviceGetComputeRunningProcesses_v3", 4}};
  gpus.write();
  gpus.take("GPU-a", 5'000'000'000);
  const Machine machine = machine_of();
  ASSERT_EQ(machine.gpus.size(), 1U);
  EXPECT_TRUE(machine.gpus[0].processes.empty());
  EXPECT_EQ(machine.gpus[0].used.count(), 5'000'000'000);
  EXPECT_EQ(all_of(machine.warnings), "GPU 0: its processes are not told: Insufficient Permissions (4)\n");
}

TEST(Nvml, ADriverThatIsNotThereIsAnError) {
  PretendedGpus gpus(Gpus{pretended_a100("GPU-a")});
  gpus.machine["fail"] = {{"nvmlInit_v2", 9}};
  gpus.write();
  const auto not_loaded = Nvml::open();
  ASSERT_FALSE(not_loaded);
  EXPECT_EQ(not_loaded.error().code, core::ErrorCode::missing_information);
  EXPECT_NE(not_loaded.error().message.find("does not answer: Driver Not Loaded (9); look at nvidia-smi"),
            std::string::npos)
      << not_loaded.error().message;
  gpus.machine["fail"] = {{"nvmlInit_v2", 18}};
  gpus.write();
  EXPECT_NE(Nvml::open().error().message.find("reboot"), std::string::npos);
  const auto nowhere = Nvml::open("/nowhere/libnvidia-ml.so.1");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, core::ErrorCode::unreadable_file);
  EXPECT_NE(nowhere.error().message.find("GPUMEM_NVML"), std::string::npos);
}

TEST(Nvml, ALibraryOfSomethingElseIsAnError) {
  const auto other = Nvml::open("libz.so.1");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("is not NVIDIA's management library"), std::string::npos)
      << other.error().message;
}

TEST(Nvml, ADriverThatGoesAwayIsAnErrorFromThenOn) {
  for (const char* symbol : {"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
                             "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3"}) {
    SCOPED_TRACE(symbol);
    PretendedGpus gpus(Gpus{pretended_a100("GPU-a"), pretended_a100("GPU-b")});
    const auto nvml = Nvml::open();
    ASSERT_TRUE(nvml);
    gpus.machine["fail"] = {{symbol, 1}, {"nvmlDeviceGetMemoryInfo", 1}};
    gpus.write();
    const auto machine = nvml->read();
    ASSERT_FALSE(machine);
    EXPECT_EQ(machine.error().code, core::ErrorCode::missing_information);
    EXPECT_NE(machine.error().message.find("the NVIDIA driver is gone"), std::string::npos);
  }
}

/// The same on a real GPU, where there is one.
TEST(NvmlOnAGpu, TellsMemoryThatAddsUp) {
  const auto nvml = Nvml::open();
  if (!nvml) GTEST_SKIP() << "no NVIDIA driver here: " << nvml.error().message;
  const auto machine = nvml->read(milliseconds(300));
  ASSERT_TRUE(machine) << machine.error().message;
  if (machine->gpus.empty()) GTEST_SKIP() << "the driver lists no GPU";
  EXPECT_FALSE(machine->driver_version.empty());
  for (const LiveGpu& gpu : machine->gpus) {
    EXPECT_TRUE(gpu.uuid.starts_with("GPU-") || gpu.uuid.starts_with("MIG-")) << gpu.uuid;
    EXPECT_GT(gpu.total.count(), std::int64_t{1} << 30);
    EXPECT_LE(gpu.used, gpu.total);
    EXPECT_TRUE(!gpu.mig_parent.empty() || gpu.sm_activity.has_value());
  }
}

}  // namespace
}  // namespace gpumem::monitor
