// Input: what a command was asked. Output: what it found, before anything is printed. The command line prints it, and
// the web page shows it.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "commands.hpp"
#include "gpumem/search/find_layouts.hpp"

namespace gpumem::cli {

struct FoundFit {
  EstimatedJob estimated_job;
  std::string_view estimator;
  Fit fit;
  double seconds = 0.0;  ///< of the search alone
};
/// The largest batch, or with options.batch the longest sequence. Errors: those
/// of the job; invalid_argument for options that do not go together.
[[nodiscard]] Result<FoundFit> find_fit(const FitOptions& options, Session& session);

struct FoundTimeline {
  EstimatedJob estimated_job;
  Timeline timeline;
};
[[nodiscard]] Result<FoundTimeline> find_timeline(const JobRequest& request, Session& session);

struct FoundPlan {
  EstimatedJob estimated_job;
  search::Question question;
  search::LayoutPlan plan;
};
/// `progress` is told how many layouts of how many are done.
[[nodiscard]] Result<FoundPlan> find_plan(const PlanOptions& options, Session& session,
                                          const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace gpumem::cli
