// Holds step plans to recordings of training steps in PyTorch: golden.json of a folder has models' configs, and for
// each the runs, their options as gpumem names them, and the most bytes that live tensors held.
#pragma once

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "golden.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "graphs.hpp"

namespace gpumem::testing {

/// A run's job; its optimizer is AdamW.
inline TrainingJob recorded_job(const std::shared_ptr<const ModelGraph>& graph, const nlohmann::json& options) {
  job::JobRequest request;
  request.training.optimizer = Optimizer::adamw;
  // The recorded batches are full, whatever a loop's collator does.
  EXPECT_TRUE(succeeds(job::set_option(*job::find_option("padding"), request, false)));
  for (const auto& [name, value] : options.items()) {
    const job::JobOption* option = job::find_option(name);
    EXPECT_NE(option, nullptr) << name;
    EXPECT_TRUE(succeeds(job::set_option_text(*option, request, value.get<std::string>()))) << name;
  }
  const auto made = job::job_from(request, graph);
  EXPECT_TRUE(succeeds(made));
  return made ? *made : TrainingJob();
}

/// Expects each plan's peak within its tolerance, which is a share of the recorded one, and at least so many runs.
inline void expect_recorded_steps(const std::string& folder, double (*tolerance_of)(const nlohmann::json& options),
                                  std::size_t least) {
  const auto golden = nlohmann::json::parse(text_of(std::filesystem::path(GPUMEM_GOLDEN_DIR) / folder / "golden.json"));
  std::size_t compared = 0;
  for (const nlohmann::json& model : golden) {
    const auto graph = parse_summary(model["config"].dump());
    ASSERT_TRUE(succeeds(graph));
    const auto shared = std::make_shared<const ModelGraph>(*graph);
    for (const nlohmann::json& run : model["runs"]) {
      analysis::Analysis analysis(recorded_job(shared, run["options"]));
      const auto steps = analysis.steps();
      ASSERT_TRUE(succeeds(steps)) << run;
      const double error = static_cast<double>((*steps)->peak_bytes) / run["peak_bytes"].get<double>() - 1.0;
      EXPECT_LE(std::abs(error), tolerance_of(run["options"]))
          << model["config"]["model_type"] << run["options"] << ": " << error;
      ++compared;
    }
  }
  EXPECT_GE(compared, least);
}

}  // namespace gpumem::testing
