#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "gpumem_datasets/datasets.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using datasets::MeasuredRun;
using utilisation::UtilisationEstimate;
using utilisation::UtilisationEstimator;

/// The counters of a run in the order of UtilisationEstimate::counters().
constexpr std::array<std::optional<double> datasets::Counters::*, 5> kMeasured = {
    &datasets::Counters::smact, &datasets::Counters::smocc, &datasets::Counters::gract,
    &datasets::Counters::gpu_utilisation, &datasets::Counters::fp32};

/// What one estimator says about one run.
struct Said {
  const MeasuredRun* run = nullptr;
  Result<UtilisationEstimate> estimate;
};

/// How one counter's estimates agree with what was measured.
struct CounterAccuracy {
  std::string_view name;
  std::vector<double> errors;  ///< absolute, sorted
  double sum = 0.0;
  double signed_sum = 0.0;
  std::int64_t within = 0;  ///< between lower and upper

  [[nodiscard]] double mean(double total) const {
    return errors.empty() ? 0.0 : total / static_cast<double>(errors.size());
  }
};

struct UtilisationVerdict {
  std::string_view estimator;
  std::vector<Said> said;
  std::array<CounterAccuracy, 5> counters;
  std::int64_t failed = 0;
};

bool is_counted(const MeasuredRun& run) {
  return run.error || std::any_of(kMeasured.begin(), kMeasured.end(),
                                  [&](auto counter) { return (run.counters.*counter).has_value(); });
}

Said ask(const UtilisationEstimator& estimator, const MeasuredRun& run, analysis::Analysis& analysis, Session& session,
         const std::string& gpu) {
  if (run.error) return {&run, *run.error};
  const std::string& name = gpu.empty() ? run.gpu : gpu;
  if (name.empty()) {
    return {&run, Error{ErrorCode::missing_information, "the run names no GPU; name one with --gpu", {}}};
  }
  const auto profile = session.gpu(name);
  if (!profile) return {&run, profile.error()};
  return {&run, estimator.estimate(analysis, **profile)};
}

void judge(UtilisationVerdict& verdict) {
  for (std::size_t index = 0; index < kMeasured.size(); ++index) {
    CounterAccuracy& accuracy = verdict.counters[index];
    accuracy.name = UtilisationEstimate().counters()[index].name;
    for (const Said& said : verdict.said) {
      const auto measured = said.run->counters.*kMeasured[index];
      if (!said.estimate || !measured) continue;
      const utilisation::Share share = said.estimate->counters()[index].share;
      accuracy.errors.push_back(std::abs(share.expected - *measured));
      accuracy.sum += accuracy.errors.back();
      accuracy.signed_sum += share.expected - *measured;
      accuracy.within += *measured >= share.lower && *measured <= share.upper ? 1 : 0;
    }
    std::sort(accuracy.errors.begin(), accuracy.errors.end());
  }
  verdict.failed =
      std::count_if(verdict.said.begin(), verdict.said.end(), [](const Said& said) { return !said.estimate; });
}

/// As it is printed; never -0.
double to_digits(double value) {
  constexpr double kDecimals = 1e4;
  return std::round(value * kDecimals) / kDecimals + 0.0;
}

std::string to_table(const UtilisationVerdict& verdict) {
  std::string text = "\n" + std::string(verdict.estimator) + ": " +
                     core::with_separators(static_cast<std::int64_t>(verdict.said.size()) - verdict.failed) +
                     " runs, " + core::with_separators(verdict.failed) + " failed\n";
  const bool judged = verdict.failed < static_cast<std::int64_t>(verdict.said.size());
  if (judged) text += "  absolute error       mean    median       p90    signed    within lower and upper\n";
  for (const CounterAccuracy& accuracy : verdict.counters) {
    if (accuracy.errors.empty()) continue;
    std::string title = "  " + std::string(accuracy.name);
    title.resize(17, ' ');
    text += title + text_of("%10.4f", accuracy.mean(accuracy.sum)) +
            text_of("%10.4f", datasets::percentile(accuracy.errors, 0.5)) +
            text_of("%10.4f", datasets::percentile(accuracy.errors, 0.9)) +
            text_of("%10.4f", to_digits(accuracy.mean(accuracy.signed_sum))) +
            text_of("%10.1f %%", kHundred * accuracy.mean(static_cast<double>(accuracy.within))) + "\n";
  }
  for (const Said& said : verdict.said) {
    if (said.estimate) continue;
    text += "  failed, the first of them line " + std::to_string(said.run->line) + ": " +
            core::to_string(said.estimate.error()) + "\n";
    break;
  }
  return text;
}

Json to_json(const UtilisationVerdict& verdict) {
  Json json = {{"estimator", verdict.estimator}, {"runs", verdict.said.size()}, {"failed", verdict.failed}};
  for (const CounterAccuracy& accuracy : verdict.counters) {
    if (accuracy.errors.empty()) continue;
    json["counters"][std::string(accuracy.name)] = {
        {"runs", accuracy.errors.size()},
        {"mean_absolute_error", rounded(accuracy.mean(accuracy.sum))},
        {"median_absolute_error", rounded(datasets::percentile(accuracy.errors, 0.5))},
        {"p90_absolute_error", rounded(datasets::percentile(accuracy.errors, 0.9))},
        {"signed_error", rounded(accuracy.mean(accuracy.signed_sum))},
        {"within", rounded(accuracy.mean(static_cast<double>(accuracy.within)))}};
  }
  return json;
}

std::string csv_row(const UtilisationVerdict& verdict, const Said& said) {
  std::string text =
      std::string(verdict.estimator) + "," + std::to_string(said.run->line) + "," + core::csv_field(said.run->name);
  for (std::size_t index = 0; index < kMeasured.size(); ++index) {
    const auto measured = said.run->counters.*kMeasured[index];
    text += "," + (measured ? text_of("%.4f", *measured) : "");
    if (!said.estimate) {
      text += ",,,";
      continue;
    }
    const utilisation::Share share = said.estimate->counters()[index].share;
    for (const double value : {share.expected, share.lower, share.upper}) text += "," + text_of("%.4f", value);
  }
  return text + "," + (said.estimate ? "" : core::csv_field(core::to_string(said.estimate.error()))) + "\n";
}

/// The estimates, one row each.
std::string to_csv(const std::vector<UtilisationVerdict>& verdicts) {
  std::string text = "estimator,line,name";
  for (const auto& [name, share] : UtilisationEstimate().counters()) {
    for (const char* figure : {"measured", "expected", "lower", "upper"})
      text += "," + std::string(name) + "_" + figure;
  }
  text += ",error\n";
  for (const UtilisationVerdict& verdict : verdicts) {
    for (const Said& said : verdict.said) text += csv_row(verdict, said);
  }
  return text;
}

/// The runs that are asked for and that counted anything.
std::vector<const MeasuredRun*> counted(const std::vector<MeasuredRun>& all, const std::string& filter) {
  std::vector<const MeasuredRun*> chosen;
  for (const MeasuredRun& run : all) {
    if (is_counted(run) && run.name.find(filter) != std::string::npos) chosen.push_back(&run);
  }
  return chosen;
}

Result<std::vector<UtilisationVerdict>> judge_all(const EvaluateOptions& options,
                                                  const std::vector<const MeasuredRun*>& chosen) {
  const bool all = options.estimator == "all" || options.estimator == kDefaultEstimator;
  std::vector<UtilisationVerdict> verdicts;
  std::vector<std::unique_ptr<UtilisationEstimator>> estimators;
  for (const auto& entry : utilisation::utilisation_estimators()) {
    if (!all && entry.name != options.estimator) continue;
    auto estimator = entry.create(all ? std::string() : options.model);
    if (!estimator) return estimator.error();
    estimators.push_back(*std::move(estimator));
    verdicts.emplace_back().estimator = entry.name;
  }
  if (verdicts.empty()) return utilisation::make_utilisation_estimator(options.estimator).error();
  Session session;
  analysis::Analyses analyses;
  Progress progress("estimating", "runs", chosen.size());
  for (const MeasuredRun* run : chosen) {
    progress.step();
    const auto analysis = analyses.take(run->job);
    for (std::size_t index = 0; index < estimators.size(); ++index) {
      verdicts[index].said.push_back(ask(*estimators[index], *run, *analysis, session, options.gpu));
    }
  }
  for (UtilisationVerdict& verdict : verdicts) judge(verdict);
  return verdicts;
}

}  // namespace

int run_evaluate_utilisation(const EvaluateOptions& options) {
  const auto all = datasets::read_runs(options.runs, options.summaries);
  if (!all) return report_error(all.error());
  const std::vector<const MeasuredRun*> chosen = counted(all->runs, options.filter);
  const auto verdicts = judge_all(options, chosen);
  if (!verdicts) return report_error(verdicts.error());
  if (!options.out.empty()) {
    if (const auto written = core::write_file(options.out, to_csv(*verdicts)); !written) {
      return report_error(written.error());
    }
  }
  const auto others = static_cast<std::int64_t>(all->runs.size() - chosen.size());
  std::string text = options.runs + ": " + all->format + ", " +
                     core::with_separators(static_cast<std::int64_t>(chosen.size())) + " runs with counters, " +
                     core::with_separators(others) + " without or filtered out\n";
  for (const UtilisationVerdict& verdict : *verdicts) text += to_table(verdict);
  if (options.json) {
    Json json = {{"schema", 1},           {"file", options.runs}, {"format", all->format},
                 {"runs", chosen.size()}, {"others", others},     {"estimators", Json::array()}};
    for (const UtilisationVerdict& verdict : *verdicts) json["estimators"].push_back(to_json(verdict));
    text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  const auto answers = [](const UtilisationVerdict& verdict) {
    return verdict.failed < static_cast<std::int64_t>(verdict.said.size());
  };
  if (std::any_of(verdicts->begin(), verdicts->end(), answers)) return 0;
  return report_error(
      {ErrorCode::missing_information, "none of its runs has counters that could be judged", {options.runs, 0, {}}});
}

}  // namespace gpumem::cli
