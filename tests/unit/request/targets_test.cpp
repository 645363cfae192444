#include "gpumem/request/targets.hpp"

#include <set>

#include "expect.hpp"
#include "servers.hpp"

namespace gpumem::request {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::gib;
using testing::succeeds;

/// What the target asks for a job of this size on each of so many GPUs of this type.
core::Result<GpuRequest> asked_of(std::int64_t gpus, std::string_view target, Bytes size, const Site& site = {},
                                  std::string_view gpu = "a100-40gb") {
  const auto profile = device::find_profile(gpu);
  EXPECT_TRUE(succeeds(profile));
  estimate::MemoryEstimate estimate;
  estimate.expected = estimate.lower = estimate.upper = size;
  estimate.fits = size <= profile->capacity();
  estimate.gpus = gpus;
  return make_request(target, estimate, *profile, {.bytes = {}, .upper = true}, site);
}

core::Result<GpuRequest> asked(std::string_view target, Bytes size, std::string_view gpu = "a100-40gb") {
  return asked_of(1, target, size, {}, gpu);
}

constexpr Bytes kJob{(std::int64_t{12480} << 20) - 1};

TEST(Targets, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const TargetEntry& entry : targets()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(Targets, SetAsideWhatIsNeededAndLittleMore) {
  for (const TargetEntry& entry : targets()) {
    for (const double size : {0.0001, 0.5, 4.75, 9.0, 19.0, 39.0}) {
      const auto request = asked(entry.name, gib(size));
      ASSERT_TRUE(succeeds(request)) << entry.name;
      EXPECT_EQ(request->target, entry.name);
      EXPECT_GE(request->memory, gib(size)) << entry.name;
      if (entry.name == "nvidia-gpu") {
        EXPECT_EQ(request->memory, device::find_profile("a100-40gb")->capacity());
      } else if (entry.name != "nvidia-mig") {
        EXPECT_LT(request->memory, gib(size + 0.01)) << entry.name;
      }
      EXPECT_EQ(entry.kubernetes, request->argument.empty()) << entry.name;
      EXPECT_EQ(entry.kubernetes, !request->limits.empty() || !request->annotations.empty()) << entry.name;
    }
  }
}

TEST(Targets, ThatAreUnknownAreNamed) {
  EXPECT_TRUE(
      fails(find_target("k8s"), ErrorCode::invalid_argument, 0, "there is no target 'k8s'; choose one of hami"));
}

TEST(Targets, RefuseWhatTheGpuDoesNotHold) {
  for (const TargetEntry& entry : targets()) {
    EXPECT_TRUE(fails(asked(entry.name, gib(41)), ErrorCode::missing_information, 0, "it needs 41.0 GiB"))
        << entry.name;
  }
}

TEST(Hami, CountsInMebibytesPerGpu) {
  const auto request = asked("hami", kJob);
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->limits, (std::vector<Setting>{{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "12480"}}));
  EXPECT_EQ(request->count_limit, "nvidia.com/gpu");
}

TEST(Volcano, CountsInMebibytes) {
  EXPECT_EQ(asked("volcano", kJob)->limits,
            (std::vector<Setting>{{"volcano.sh/vgpu-number", "1"}, {"volcano.sh/vgpu-memory", "12480"}}));
}

TEST(Kai, IsAnAnnotationWithoutALimit) {
  EXPECT_EQ(asked("kai", kJob)->annotations, (std::vector<Setting>{{"gpu-memory", "12480"}}));
  const auto share = asked("kai-fraction", kJob);
  ASSERT_EQ(share->annotations.size(), 1U);
  EXPECT_EQ(share->annotations[0], (Setting{"gpu-fraction", "0.3082"}));
  EXPECT_EQ(share->excluded_limits, std::vector<std::string>{"nvidia.com/gpu"});
}

TEST(KaiFraction, IsAWholeGpuWhereAllOfItIsNeeded) {
  const auto request = asked("kai-fraction", device::find_profile("a100-40gb")->capacity());
  ASSERT_TRUE(succeeds(request));
  EXPECT_TRUE(request->annotations.empty());
  EXPECT_EQ(request->limits, (std::vector<Setting>{{"nvidia.com/gpu", "1"}}));
}

TEST(KaiLimit, AsksForWhatIsExpectedAndIsHeldToTheMost) {
  const auto profile = device::find_profile("a100-40gb");
  estimate::MemoryEstimate estimate;
  estimate.expected = gib(10);
  estimate.upper = gib(12);
  estimate.fits = true;
  const auto request = make_request("kai-limit", estimate, *profile, {.bytes = {}, .upper = true}, {0, "train-1"});
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->annotations, (std::vector<Setting>{{"nvidia.com/container.train-1.gpu-memory.request", "10240Mi"},
                                                        {"nvidia.com/container.train-1.gpu-memory.limit", "12288Mi"}}));
  for (const char* name : {"", "Trainer", "a b", "a\n"}) {
    EXPECT_TRUE(fails(make_request("kai-limit", estimate, *profile, {.bytes = {}, .upper = true}, {0, name}),
                      ErrorCode::invalid_argument, 0, "no container is called"))
        << name;
  }
}

TEST(NvidiaGpu, IsWholeGpus) {
  EXPECT_EQ(asked("nvidia-gpu", kJob)->limits, (std::vector<Setting>{{"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(asked_of(8, "nvidia-gpu", kJob)->limits, (std::vector<Setting>{{"nvidia.com/gpu", "8"}}));
}

TEST(SeveralGpus, AreAskedForInTheWordsOfEachTarget) {
  using Settings = std::vector<Setting>;
  EXPECT_EQ(asked_of(8, "hami", kJob)->limits, (Settings{{"nvidia.com/gpu", "8"}, {"nvidia.com/gpumem", "12480"}}));
  EXPECT_EQ(asked_of(4, "volcano", kJob)->limits,
            (Settings{{"volcano.sh/vgpu-number", "4"}, {"volcano.sh/vgpu-memory", "12480"}}));
  EXPECT_EQ(asked_of(2, "kai", kJob)->annotations,
            (Settings{{"gpu-memory", "12480"}, {"gpu-fraction-num-devices", "2"}}));
  EXPECT_EQ(asked_of(2, "kai-fraction", kJob)->annotations,
            (Settings{{"gpu-fraction", "0.3082"}, {"gpu-fraction-num-devices", "2"}}));
  EXPECT_EQ(asked_of(2, "kai-limit", kJob)->annotations.back(), (Setting{"gpu-fraction-num-devices", "2"}));
  EXPECT_EQ(asked_of(8, "ray", kJob)->argument,
            "ScalingConfig(num_workers=8, use_gpu=True, resources_per_worker={\"GPU\": 1}, "
            "placement_strategy=\"STRICT_PACK\")");
  EXPECT_EQ(asked_of(8, "slurm", kJob)->argument, "--nodes=1 --ntasks-per-node=8 --gres=gpu:8");
  EXPECT_EQ(asked_of(8, "lsf", kJob)->argument, "-n 8 -R span[ptile=8] -gpu num=8:mode=shared:gmem=12480M");
  EXPECT_TRUE(
      fails(asked_of(2, "nvidia-mig", kJob), ErrorCode::invalid_argument, 0, "ask for whole GPUs (nvidia-gpu)"));
}

TEST(SeveralGpus, StandOnEquallyFullNodes) {
  EXPECT_EQ(asked_of(16, "slurm", kJob)->argument, "--nodes=2 --ntasks-per-node=8 --gres=gpu:8");
  EXPECT_EQ(asked_of(16, "slurm", kJob, {4, {}})->argument, "--nodes=4 --ntasks-per-node=4 --gres=gpu:4");
  EXPECT_EQ(asked_of(4, "slurm", kJob, {1, {}})->argument, "--nodes=4 --ntasks-per-node=1 --gres=shard:12480");
  EXPECT_EQ(asked_of(16, "ray", kJob)->argument,
            "ScalingConfig(num_workers=16, use_gpu=True, resources_per_worker={\"GPU\": 1}, "
            "placement_strategy=\"PACK\")");
  EXPECT_EQ(asked_of(16, "lsf", kJob, {2, {}})->argument, "-n 16 -R span[ptile=2] -gpu num=2:mode=shared:gmem=12480M");
  const auto pods = asked_of(16, "hami", kJob);
  ASSERT_TRUE(succeeds(pods));
  EXPECT_EQ(pods->nodes, 2);
  EXPECT_EQ(pods->gpus_per_node, 8);
  EXPECT_EQ(to_text(*pods).substr(0, 20), "# each of 2 pods\nspe");
  EXPECT_TRUE(fails(asked_of(12, "slurm", kJob), ErrorCode::invalid_argument, 0,
                    "the job has 12 GPUs, which is not a multiple of 8 a node; say with `gpus_per_node`"));
  EXPECT_TRUE(fails(asked_of(4, "slurm", kJob, {8, {}}), ErrorCode::invalid_argument, 0, "not a multiple of 8"));
  EXPECT_TRUE(fails(asked_of(4, "slurm", kJob, {-1, {}}), ErrorCode::invalid_argument, 0, "not a multiple of -1"));
}

TEST(NvidiaMig, IsTheSmallestSliceThatHoldsIt) {
  const auto slice = [](double size, std::string_view gpu) {
    return asked("nvidia-mig", gib(size), gpu)->limits[0].name;
  };
  EXPECT_EQ(slice(4, "a100-40gb"), "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(slice(9, "a100-40gb"), "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(slice(12, "a100-40gb"), "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(slice(39, "a100-40gb"), "nvidia.com/mig-7g.40gb");
  EXPECT_EQ(slice(12, "a100-80gb"), "nvidia.com/mig-1g.20gb");
  EXPECT_EQ(slice(9, "a100-40gb-mig-2g.10gb"), "nvidia.com/mig-2g.10gb");
}

TEST(NvidiaMig, SaysWhereThereIsNone) {
  EXPECT_TRUE(
      fails(asked("nvidia-mig", gib(1), "t4-16gb"), ErrorCode::invalid_argument, 0, "no MIG slices of t4-16gb"));
  EXPECT_TRUE(fails(asked("nvidia-mig", gib(39.5)), ErrorCode::missing_information, 0,
                    "the largest slice (a100-40gb-mig-7g.40gb) has"));
}

TEST(Ray, IsAShareOfTheGpu) { EXPECT_EQ(asked("ray", kJob)->argument, "num_gpus=0.3082"); }

TEST(Slurm, IsAShardAMebibyte) { EXPECT_EQ(asked("slurm", kJob)->argument, "--gres=shard:12480"); }

TEST(Lsf, NamesItsUnit) { EXPECT_EQ(asked("lsf", kJob)->argument, "-gpu num=1:mode=shared:gmem=12480M"); }

}  // namespace
}  // namespace gpumem::request
