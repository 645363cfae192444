#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using utilisation::UtilisationEstimate;

/// One estimator's answer.
struct UtilisationAnswer {
  std::string_view estimator;
  Result<UtilisationEstimate> estimate;
  double seconds = 0.0;
};

Result<std::vector<UtilisationAnswer>> answers_of(Session& session, const UtilisationOptions& options,
                                                  const GpuProfile& gpu, analysis::Analysis& analysis) {
  std::vector<UtilisationAnswer> answers;
  for (const auto& entry : utilisation::utilisation_estimators()) {
    if (options.estimator != "all" && options.estimator != entry.name) continue;
    // One model is of one estimator; asked for all, the others keep theirs.
    const auto estimator = session.utilisation_estimator(
        std::string(entry.name), options.estimator == "all" ? std::string() : options.request.model);
    if (!estimator) return estimator.error();
    const auto begin = std::chrono::steady_clock::now();
    auto estimate = (*estimator)->estimate(analysis, gpu);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    answers.push_back({entry.name, std::move(estimate), seconds.count()});
  }
  if (answers.empty()) return utilisation::make_utilisation_estimator(options.estimator).error();
  return answers;
}

/// To a millionth: beyond that it is the rounding of float32.
Json to_json(const UtilisationAnswer& answer) {
  if (!answer.estimate) return {{"estimator", answer.estimator}, {"error", cli::to_json(answer.estimate.error())}};
  const UtilisationEstimate& estimate = *answer.estimate;
  Json json = {{"estimator", answer.estimator}};
  for (const auto& [name, share] : estimate.counters()) {
    json[std::string(name)] = {
        {"expected", rounded(share.expected)}, {"lower", rounded(share.lower)}, {"upper", rounded(share.upper)}};
  }
  json["coverage"] = estimate.coverage > 0.0 ? Json(estimate.coverage) : Json(nullptr);
  for (const utilisation::ShareBin& bin : estimate.smact_bins) {
    json["smact_bins"].push_back(
        {{"lower", bin.lower}, {"upper", bin.upper}, {"probability", rounded(bin.probability)}});
  }
  if (!estimate.weights.empty()) json["model"] = estimate.weights;
  json["out_of_domain"] = estimate.out_of_domain;
  json["seconds"] = answer.seconds;
  return json;
}

/// Names as people know them, in the order of UtilisationEstimate::counters().
constexpr std::array<std::string_view, 5> kTitles = {"SMACT", "SMOCC", "GRACT", "GPU-Util", "FP32A"};

std::string shares(const UtilisationEstimate& estimate, const Terminal& terminal) {
  Table table({{.title = "counter"},
               {.title = "expected", .right = true},
               {.title = "lower", .right = true},
               {.title = "upper", .right = true},
               {.title = "of the GPU", .gauge = true}},
              2);
  std::size_t index = 0;
  for (const auto& [name, share] : estimate.counters()) {
    table.add({kTitles[index++], percent(share.expected, "%.1f %%"), percent(share.lower, "%.1f %%"),
               percent(share.upper, "%.1f %%")},
              Gauge{share.lower, share.expected, share.upper, Tone::plain});
  }
  return table.text(terminal);
}

std::string bins(const UtilisationEstimate& estimate, const Terminal& terminal) {
  constexpr double kLeast = 0.005;
  if (estimate.smact_bins.empty()) return {};
  Table table({{.title = "SMACT from", .right = true},
               {.title = "to", .right = true},
               {.title = "probability", .right = true},
               {.gauge = true}},
              2);
  for (const utilisation::ShareBin& bin : estimate.smact_bins) {
    if (bin.probability < kLeast) continue;
    table.add({percent(bin.lower, "%.1f %%"), percent(bin.upper, "%.1f %%"), percent(bin.probability, "%.1f %%")},
              bar(bin.probability));
  }
  return table.text(terminal);
}

std::string out_of_domain(const UtilisationEstimate& estimate) {
  if (estimate.out_of_domain.empty()) return {};
  std::string text = "  do not trust this: the job is unlike the jobs that the model was trained on in ";
  for (const std::string& name : estimate.out_of_domain) {
    text += (&name == &estimate.out_of_domain.front() ? "" : ", ") + name;
  }
  return text + "\n";
}

std::string to_text(const UtilisationAnswer& answer, const Terminal& terminal) {
  std::string text = "\n" + std::string(answer.estimator);
  if (!answer.estimate) return text + ": " + said(answer.estimate.error()) + "\n";
  const UtilisationEstimate& estimate = *answer.estimate;
  if (!estimate.weights.empty()) text += " (model " + estimate.weights + ")";
  text += ", of " + estimate.gpu + "\n" + shares(estimate, terminal) + bins(estimate, terminal);
  return text + out_of_domain(estimate);
}

}  // namespace

int run_utilisation(const UtilisationOptions& options) {
  Session session;
  Result<EstimatedJob> estimated_job = read_job(session, options.request);
  if (!estimated_job) return report_error(estimated_job.error());
  const auto analysis = estimated_job->analysis();
  const auto answers = answers_of(session, options, *estimated_job->gpu, *analysis);
  if (!answers) return report_error(answers.error());
  // If one estimator was asked for, its failure is the answer. If all were, each has its own.
  if (answers->size() == 1 && !answers->front().estimate) return report_error(answers->front().estimate.error());
  estimated_job->guesses = guesses_of(*analysis);
  print_warnings(*estimated_job);
  std::string text = headline(*estimated_job);
  for (const UtilisationAnswer& answer : *answers) text += to_text(answer, terminal_of(STDOUT_FILENO));
  if (options.json) {
    Json json = head_json(*estimated_job);
    json["utilisation"] = Json::array();
    for (const UtilisationAnswer& answer : *answers) json["utilisation"].push_back(to_json(answer));
    text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
