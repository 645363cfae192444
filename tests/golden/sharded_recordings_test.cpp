// Recordings of one rank under PyTorch's own DistributedDataParallel, FullyShardedDataParallel and fully_shard()
// (sharded_steps/*.json.gz, listed in recordings.json, made by make_goldens.py there) against the estimates that the
// model's config has: the two roads to an answer agree.
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "gpumem/estimate/replay.hpp"
#include "recorded_steps.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

Result<MemoryEstimate> estimated(const TrainingJob& job) {
  const auto gpu = device::find_profile("a100-40gb");
  EXPECT_TRUE(testing::succeeds(gpu));
  return estimate::Replay().estimate(job, *gpu);
}

double off(const std::optional<core::Bytes>& recorded, const std::optional<core::Bytes>& planned) {
  if (!recorded || !planned) return 1.0;
  return std::abs(static_cast<double>(recorded->count()) / static_cast<double>(planned->count()) - 1.0);
}

TEST(ShardedRecordings, SayWhatTheConfigSays) {
  const fs::path folder = fs::path(GPUMEM_GOLDEN_DIR) / "sharded_steps";
  const auto listed = nlohmann::json::parse(testing::text_of(folder / "recordings.json"));
  EXPECT_GE(listed.size(), 8U);
  for (const nlohmann::json& entry : listed) {
    const std::string name = entry["recording"];
    auto recording = read_summary((folder / name).string());
    auto config = parse_summary(entry["config"].dump());
    ASSERT_TRUE(testing::succeeds(recording)) << name;
    ASSERT_TRUE(testing::succeeds(config)) << name;
    const TrainingJob job =
        testing::recorded_job(std::make_shared<const ModelGraph>(*std::move(config)), entry["options"]);
    TrainingJob of_recording;
    of_recording.graph = std::make_shared<const ModelGraph>(*std::move(recording));
    of_recording.batch_size = job.batch_size;
    of_recording.precision = job.precision;
    of_recording.optimizer = job.optimizer;
    const auto recorded = estimated(of_recording);
    const auto planned = estimated(job);
    ASSERT_TRUE(testing::succeeds(recorded)) << name;
    ASSERT_TRUE(testing::succeeds(planned)) << name;
    EXPECT_LE(off(recorded->allocated, planned->allocated), 0.01) << name;
    EXPECT_LE(off(recorded->reserved, planned->reserved), 0.02) << name;
    EXPECT_EQ(recorded->gpus, planned->gpus) << name;
  }
}

}  // namespace
}  // namespace gpumem
