// Peaks of live tensors that recordings of one rank under PyTorch's own DistributedDataParallel,
// FullyShardedDataParallel and fully_shard() have (sharded_steps/golden.json, made by make_goldens.py there) against
// step plans.
#include "recorded_steps.hpp"

namespace gpumem {
namespace {

/// Reentrant checkpointing, the Trainer's, holds the gradient of a block's output while the block's backward runs; the
/// plan lets it go with its last reader. That shows in models as small as these.
double sharded_tolerance(const nlohmann::json& options) {
  constexpr double kUsual = 0.001;
  constexpr double kReentrant = 0.012;
  return options["loop"] == "hf-trainer" ? kReentrant : kUsual;
}

TEST(ShardedSteps, HoldWhatPyTorchHoldsOnOneRank) {
  testing::expect_recorded_steps("sharded_steps", sharded_tolerance, 290U);
}

}  // namespace
}  // namespace gpumem
