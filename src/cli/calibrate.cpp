#include "calibrate.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "answers.hpp"
#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem_datasets/datasets.hpp"
#include "progress.hpp"

namespace gpumem::cli {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kMib = 1024.0 * 1024.0;

Error unusable(const char* why) { return {ErrorCode::missing_information, why, {}}; }

/// Whether the run names this GPU, or none.
bool is_on(const std::string& name, const GpuProfile& gpu) {
  if (name.empty() || name == gpu.name) return true;
  const Result<GpuProfile> profile = find_profile(name);
  return profile && profile->name == gpu.name;
}

/// What the run leaves for the context.
Result<double> context_of(const datasets::MeasuredRun& run, const Estimator& estimator, const GpuProfile& gpu) {
  if (run.error) return *run.error;
  if (run.out_of_memory || run.measured_mib.value_or(0.0) <= 0.0) return unusable("it measured no need");
  if (run.figure != datasets::Figure::device) return unusable("its figure is not the device's used memory");
  if (run.gpus != 1) return unusable("it ran on several GPUs");
  if (!is_on(run.gpu, gpu)) return unusable("it ran on another GPU");
  const auto estimate = estimator.estimate(run.job, gpu);
  if (!estimate) return estimate.error();
  if (!estimate->reserved) return unusable("this estimator does not tell reserved memory");
  return *run.measured_mib - estimate->reserved->mib();
}

/// What each of the runs leaves for the context, in their order.
struct Residuals {
  std::vector<double> contexts;
  std::int64_t unusable = 0;
  std::string first_fault;
};

Residuals residuals(const std::vector<datasets::MeasuredRun>& runs, const Estimator& estimator, const GpuProfile& gpu) {
  Residuals found;
  Progress progress("estimating", "runs", runs.size());
  for (const datasets::MeasuredRun& run : runs) {
    progress.step();
    const Result<double> context = context_of(run, estimator, gpu);
    if (context) {
      found.contexts.push_back(*context);
      continue;
    }
    ++found.unusable;
    if (found.first_fault.empty()) {
      found.first_fault = "; line " + std::to_string(run.line) + ": " + context.error().message;
    }
  }
  return found;
}

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::int64_t kLeastRunsForVariants = 3;
/// Runs that agree as well as this have nothing to say about workspaces.
constexpr double kLeastSpreadMib = 32.0;

/// The largest less the smallest, without one of them.
double spread(const std::vector<double>& contexts, std::size_t without) {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (std::size_t index = 0; index < contexts.size(); ++index) {
    if (index == without) continue;
    least = std::min(least, contexts[index]);
    most = std::max(most, contexts[index]);
  }
  return most - least;
}

/// Whether the runs agree twice as well under a variant: all of them, and all but any one, where these disagree by the
/// rule at all.
bool halves(const std::vector<double>& by_rule, const std::vector<double>& by_variant) {
  constexpr double kShare = 0.5;
  if (by_variant.size() != by_rule.size() || spread(by_variant, kNone) > kShare * spread(by_rule, kNone)) return false;
  for (std::size_t without = 0; without < by_rule.size(); ++without) {
    const double before = spread(by_rule, without);
    if (before >= kLeastSpreadMib && spread(by_variant, without) > kShare * before) return false;
  }
  return true;
}

std::string mib(double value) { return core::with_separators(std::llround(std::max(0.0, value))) + " MiB"; }

/// What the runs say about cuDNN's workspaces.
std::string workspaces_line(const ContextFit& fit) {
  if (fit.runs < kLeastRunsForVariants) {
    return "cuDNN's workspaces: by the rule; it takes " + std::to_string(kLeastRunsForVariants) +
           " runs to learn another way\n";
  }
  if (fit.variant.name.empty()) {
    return "cuDNN's workspaces: by the rule, under which the runs leave a spread of " + mib(fit.spread_by_rule_mib) +
           "; no other way halves it\n";
  }
  return "cuDNN's workspaces: " + std::string(fit.variant.name) + ", which brings the runs' spread from " +
         mib(fit.spread_by_rule_mib) + " to " + mib(fit.most_mib - fit.least_mib) + "\n";
}

Result<ContextFit> calibrate(const CalibrateOptions& options) {
  if (!options.out.ends_with(".json")) {
    return Error{ErrorCode::invalid_argument, "the profile " + core::quoted(options.out) + " must end in .json", {}};
  }
  Session session;
  const auto gpu = session.gpu(options.gpu);
  if (!gpu) return gpu.error();
  const auto estimator = make_estimator(options.estimator);
  if (!estimator) return estimator.error();
  const auto base = profile_text(**gpu, options.gpu);
  if (!base) return base.error();
  const auto all = datasets::read_runs(options.runs, options.summaries);
  if (!all) return all.error();
  auto fit = fit_site(all->runs, **estimator, **gpu);
  if (!fit) return std::move(fit.error()).in_file(options.runs);
  const std::string source = "median of measured device memory less what " + options.estimator +
                             " estimates as reserved, over " + std::to_string(fit->runs) + " runs";
  const auto profile = calibrated_profile(*base, std::filesystem::path(options.out).stem().string(), *fit, source);
  if (!profile) return profile.error();
  const auto written = core::write_file(options.out, *profile);
  if (!written) return written.error();
  return fit;
}

}  // namespace

Result<ContextFit> fit_site(const std::vector<datasets::MeasuredRun>& runs, const Estimator& estimator,
                            const GpuProfile& gpu) {
  const Residuals by_rule = residuals(runs, estimator, gpu);
  if (by_rule.contexts.empty()) {
    return Error{ErrorCode::missing_information, "no run shows the context" + by_rule.first_fault, {}};
  }
  ContextFit fit;
  fit.unusable = by_rule.unusable;
  fit.runs = static_cast<std::int64_t>(by_rule.contexts.size());
  fit.spread_by_rule_mib = spread(by_rule.contexts, kNone);
  std::vector<double> contexts = by_rule.contexts;
  if (fit.runs >= kLeastRunsForVariants && fit.spread_by_rule_mib >= kLeastSpreadMib) {
    for (const device::WorkspaceVariant& variant : device::workspace_variants()) {
      GpuProfile varied = gpu;
      varied.convolution_workspace.variant = variant;
      const std::vector<double> found = residuals(runs, estimator, varied).contexts;
      if (spread(found, kNone) >= spread(contexts, kNone) || !halves(by_rule.contexts, found)) continue;
      contexts = found;
      fit.variant = variant;
    }
  }
  std::sort(contexts.begin(), contexts.end());
  fit.median_mib = datasets::percentile(contexts, 0.5);
  fit.p10_mib = datasets::percentile(contexts, 0.1);
  fit.p90_mib = datasets::percentile(contexts, 0.9);
  fit.least_mib = contexts.front();
  fit.most_mib = contexts.back();
  if (fit.median_mib > 0.0) return fit;
  return Error{ErrorCode::missing_information,
               "in most runs the estimate of reserved memory is above all that was measured; check the jobs' settings",
               {}};
}

Result<std::string> calibrated_profile(std::string_view json, const std::string& name, const ContextFit& fit,
                                       const std::string& source) {
  Json profile = Json::parse(json, nullptr, false);
  if (!profile.is_object()) return Error{ErrorCode::malformed_input, "the profile is not JSON", {}};
  profile["name"] = name;
  profile["aliases"] = Json::array();
  profile["contexts"] = Json::array({{{"name", "as-measured"},
                                      {"software", "as measured"},
                                      {"bytes", std::llround(fit.median_mib * kMib)},
                                      {"source", source}}});
  if (fit.least_mib > 0.0) {
    Json& context = profile["contexts"][0];
    context["lower_bytes"] = std::llround(fit.least_mib * kMib);
    context["upper_bytes"] = std::llround(fit.most_mib * kMib);
  }
  if (!fit.variant.name.empty()) {
    Json& workspace = profile["convolution_workspace"];
    workspace["variant"] = fit.variant.name;
    workspace["source"] = source;
  }
  std::string text = profile.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const Result<GpuProfile> valid = device::parse_profile(text);
  if (!valid) return valid.error();
  return text;
}

int run_calibrate(const CalibrateOptions& options) {
  const auto fit = calibrate(options);
  if (!fit) return report_error(fit.error());
  std::printf("%s: context of %s, the median over %s runs (80 %% of them between %s and %s); %s runs unusable\n",
              options.out.c_str(), mib(fit->median_mib).c_str(), core::with_separators(fit->runs).c_str(),
              mib(fit->p10_mib).c_str(), mib(fit->p90_mib).c_str(), core::with_separators(fit->unusable).c_str());
  std::printf("%s", workspaces_line(*fit).c_str());
  return 0;
}

}  // namespace gpumem::cli
