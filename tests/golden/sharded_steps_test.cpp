// Peaks of live tensors that recordings of one rank under PyTorch's own DistributedDataParallel,
// FullyShardedDataParallel and fully_shard() have (sharded_steps/golden.json, made by make_goldens.py there) against
// step plans.
#include <cmath>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

/// Reentrant checkpointing, the Trainer's, holds the gradient of a block's output while the block's backward runs; the
/// plan lets it go with its last reader. That shows in models as small as these.
double tolerance_of(const nlohmann::json& options) {
  constexpr double kUsual = 0.001;
  constexpr double kReentrant = 0.012;
  return options["loop"] == "hf-trainer" ? kReentrant : kUsual;
}

TrainingJob job_of(const std::shared_ptr<const ModelGraph>& graph, const nlohmann::json& options) {
  job::JobRequest request;
  request.training.optimizer = Optimizer::adamw;
  for (const auto& [name, value] : options.items()) {
    const job::JobOption* option = job::find_option(name);
    EXPECT_NE(option, nullptr) << name;
    EXPECT_TRUE(testing::succeeds(job::set_option_text(*option, request, value.get<std::string>()))) << name;
  }
  const auto made = job::job_from(request, graph);
  EXPECT_TRUE(testing::succeeds(made));
  return made ? *made : TrainingJob();
}

TEST(ShardedSteps, HoldWhatPyTorchHoldsOnOneRank) {
  const auto golden =
      nlohmann::json::parse(testing::text_of(fs::path(GPUMEM_GOLDEN_DIR) / "sharded_steps" / "golden.json"));
  std::size_t compared = 0;
  for (const nlohmann::json& model : golden) {
    const auto graph = parse_summary(model["config"].dump());
    ASSERT_TRUE(testing::succeeds(graph));
    const auto shared = std::make_shared<const ModelGraph>(*graph);
    for (const nlohmann::json& run : model["runs"]) {
      analysis::Analysis analysis(job_of(shared, run["options"]));
      const auto steps = analysis.steps();
      ASSERT_TRUE(testing::succeeds(steps)) << run;
      const double error = static_cast<double>((*steps)->peak_bytes) / run["peak_bytes"].get<double>() - 1.0;
      EXPECT_LE(std::abs(error), tolerance_of(run["options"]))
          << model["config"]["model_type"] << run["options"] << ": " << error;
      ++compared;
    }
  }
  EXPECT_GE(compared, 150U);
}

}  // namespace
}  // namespace gpumem
