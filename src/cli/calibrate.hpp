// Input: measured runs on one GPU and an estimator that gives reserved memory.
// Output: what the CUDA context and the loaded libraries take on the machine that the runs were made on, how cuDNN
// takes its workspaces there, and a profile that says so.
// Units: MiB.
#pragma once

#include <string>
#include <vector>

#include "estimated_jobs.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::cli {

/// Measured device memory less what the allocator is estimated to hold, over all runs that tell it.
struct ContextFit {
  std::int64_t runs = 0;
  std::int64_t unusable = 0;  ///< runs without a device figure, on other or several GPUs, or without an estimate
  double median_mib = 0.0;
  double p10_mib = 0.0;
  double p90_mib = 0.0;
  double least_mib = 0.0;
  double most_mib = 0.0;
  /// The way of cuDNN's under which the runs agree best on one context; the rule where none is clearly better.
  device::WorkspaceVariant variant = {};
  double spread_by_rule_mib = 0.0;  ///< most less least under the rule
};

/// From three runs on, the ways of device::workspace_variants() are tried too. One is taken where it halves the spread
/// of what the runs leave for the context, and still does when any one of the runs is left out. Errors:
/// missing_information if no run shows the context, with the reason of the first one that does not, or if the estimator
/// takes more than was measured.
[[nodiscard]] Result<ContextFit> fit_site(const std::vector<datasets::MeasuredRun>& runs, const Estimator& estimator,
                                          const GpuProfile& gpu);

/// The profile `json` under another name, with this context and no other, and with these workspaces. Errors: those of
/// device::parse_profile.
[[nodiscard]] Result<std::string> calibrated_profile(std::string_view json, const std::string& name,
                                                     const ContextFit& fit, const std::string& source);

}  // namespace gpumem::cli
