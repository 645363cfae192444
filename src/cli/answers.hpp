// Input: what a command was asked. Output: what it found, before anything is printed. The command line prints it, and
// the web page shows it.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "advise_report.hpp"
#include "commands.hpp"
#include "gpumem/estimate/fit.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::cli {

struct FoundFit {
  EstimatedJob estimated_job;
  std::string_view estimator;
  Fit fit;
  double seconds = 0.0;  ///< of the search alone
};
/// The largest of what is looked for. Errors: those of the job; invalid_argument for options that do not go together.
[[nodiscard]] Result<FoundFit> find_fit(const FitOptions& options, Session& session);

[[nodiscard]] Result<FoundAdvice> find_advice(const AdviseOptions& options, Session& session);

/// A GPU that is known, what the job takes there, and what an hour costs where the user said so.
struct GpuChoice {
  estimate::GpuFit fit;
  std::optional<double> price;
};
struct FoundGpus {
  EstimatedJob estimated_job;
  std::vector<GpuChoice> choices;  ///< the best first
};
/// Errors: also invalid_argument for a price that is none, and unknown_gpu for that of a GPU which is not known.
[[nodiscard]] Result<FoundGpus> find_gpus(const GpusOptions& options, Session& session);
[[nodiscard]] nlohmann::ordered_json to_json(const FoundGpus& found);
/// The JSON of a profile that find_profile() found by this name: the user's own file, or what the library comes with.
[[nodiscard]] Result<std::string> profile_text(const GpuProfile& profile, const std::string& name);

/// What a server takes, as `gpumem serve --json` prints it. Errors: those of serving.
[[nodiscard]] Result<nlohmann::ordered_json> find_server(const serve::ServingRequest& request, Session& session);

struct FoundTimeline {
  EstimatedJob estimated_job;
  Timeline timeline;
};
[[nodiscard]] Result<FoundTimeline> find_timeline(const JobRequest& request, Session& session);

struct FoundPlan {
  EstimatedJob estimated_job;
  search::Question question;
  search::LayoutPlan plan;
  std::optional<search::Explanation> told;  ///< of the layout that was to be explained
};
/// `progress` is told how many layouts of how many are done.
[[nodiscard]] Result<FoundPlan> find_plan(const PlanOptions& options, Session& session,
                                          const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace gpumem::cli
