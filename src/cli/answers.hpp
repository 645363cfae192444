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
/// The largest batch, or with options.batch the longest sequence. What is found views `estimated_jobs`. Errors: those
/// of the job; invalid_argument for options that do not go together.
[[nodiscard]] Result<FoundFit> find_fit(const FitOptions& options, EstimatedJobs& estimated_jobs);

struct FoundTimeline {
  EstimatedJob estimated_job;
  Timeline timeline;
};
/// What is found views `estimated_jobs`.
[[nodiscard]] Result<FoundTimeline> find_timeline(const JobRequest& request, EstimatedJobs& estimated_jobs);

struct FoundPlan {
  EstimatedJob estimated_job;
  search::Question question;
  search::LayoutPlan plan;
};
/// `progress` is told how many layouts of how many are done. What is found views `estimated_jobs`.
[[nodiscard]] Result<FoundPlan> find_plan(const PlanOptions& options, EstimatedJobs& estimated_jobs,
                                          const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace gpumem::cli
