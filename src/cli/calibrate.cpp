#include "calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem_datasets/datasets.hpp"

namespace gpumem::cli {

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

/// The text of a profile as find_profile() finds it by this name.
Result<std::string> profile_text(const GpuProfile& profile, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return core::read_file(name);
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    if (builtin.name == profile.name) return std::string(builtin.json);
  }
  return Error{ErrorCode::unknown_gpu, "there is no GPU profile " + core::quoted(name), {}};
}

std::string mib(double value) { return core::with_separators(std::llround(std::max(0.0, value))) + " MiB"; }

Result<ContextFit> calibrate(const CalibrateOptions& options) {
  if (!options.out.ends_with(".json")) {
    return Error{ErrorCode::invalid_argument, "the profile " + core::quoted(options.out) + " must end in .json", {}};
  }
  Evaluator evaluator;
  const auto gpu = evaluator.gpu_of(options.gpu);
  if (!gpu) return gpu.error();
  const auto estimator = make_estimator(options.estimator);
  if (!estimator) return estimator.error();
  const auto base = profile_text(**gpu, options.gpu);
  if (!base) return base.error();
  const auto all = datasets::read_runs(options.runs, options.summaries);
  if (!all) return all.error();
  auto fit = fit_context(all->runs, **estimator, **gpu);
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

Result<ContextFit> fit_context(const std::vector<datasets::MeasuredRun>& runs, const Estimator& estimator,
                               const GpuProfile& gpu) {
  ContextFit fit;
  std::vector<double> contexts;
  std::string first;
  for (const datasets::MeasuredRun& run : runs) {
    const Result<double> context = context_of(run, estimator, gpu);
    if (context) {
      contexts.push_back(*context);
      continue;
    }
    ++fit.unusable;
    if (first.empty()) first = "; line " + std::to_string(run.line) + ": " + context.error().message;
  }
  if (contexts.empty()) {
    return Error{ErrorCode::missing_information, "no run tells the context" + first, {}};
  }
  std::sort(contexts.begin(), contexts.end());
  fit.runs = static_cast<std::int64_t>(contexts.size());
  fit.median_mib = datasets::percentile(contexts, 0.5);
  fit.p10_mib = datasets::percentile(contexts, 0.1);
  fit.p90_mib = datasets::percentile(contexts, 0.9);
  if (fit.median_mib > 0.0) return fit;
  return Error{ErrorCode::missing_information,
               "in most runs the estimate of reserved memory is above all that was measured; check the jobs' settings",
               {}};
}

Result<std::string> calibrated_profile(std::string_view json, const std::string& name, const ContextFit& fit,
                                       const std::string& source) {
  using Json = nlohmann::ordered_json;
  Json profile = Json::parse(json, nullptr, false);
  if (!profile.is_object()) return Error{ErrorCode::malformed_input, "the profile is not JSON", {}};
  profile["name"] = name;
  profile["aliases"] = Json::array();
  profile["contexts"] = Json::array({{{"name", "as-measured"},
                                      {"software", "as measured"},
                                      {"bytes", std::llround(fit.median_mib * kMib)},
                                      {"source", source}}});
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
  return 0;
}

}  // namespace gpumem::cli
