#include "gpumem/estimate/advise.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "gpumem/job/job_options.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using estimate::Advice;
using estimate::ChangeEffect;
using estimate::Setting;
using Json = nlohmann::ordered_json;

/// "--batch 16", "--fused", "--no-foreach".
std::string words_of(const Setting& setting) {
  const std::string flag(job::find_option(setting.option)->flag);
  if (setting.value == "true") return "--" + flag;
  if (setting.value == "false") return "--no-" + flag;
  return "--" + flag + " " + setting.value;
}

std::string words_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) text += (text.empty() ? "" : " ") + words_of(setting);
  return text;
}

std::string said_of(estimate::Verdict verdict) {
  if (verdict == estimate::Verdict::tight) return "it is tight: ";
  if (verdict == estimate::Verdict::unknown) return "it is not known to fit: ";
  return "it " + std::string(verdict == estimate::Verdict::fits ? "fits: " : "does not fit: ");
}

std::string to_text(const Advice& advice, const GpuProfile& gpu, const Terminal& terminal) {
  std::string text = said_of(advice.now.verdict);
  text += core::to_string(advice.now.expected) + " expected, up to " + core::to_string(advice.now.upper) + ", of " +
          core::to_string(gpu.capacity()) + "\n" + drawn_estimate(advice.now, gpu, terminal);
  Table table(
      {{.title = "change"}, {.title = "expected", .right = true}, {.title = "fits"}, {.title = "what it costs"}});
  for (const ChangeEffect& effect : advice.single) {
    if (effect.estimate) {
      table.add(
          {words_of(effect.settings), effect.estimate->expected, fits_cell(effect.estimate->verdict), effect.cost});
    } else {
      table.add({words_of(effect.settings), "cannot be told: " + said(effect.estimate.error().message)});
    }
  }
  text += "\n" + table.text(terminal);
  if (advice.now.verdict == estimate::Verdict::fits) return text;
  if (advice.together) {
    text += "\nno single change is enough; together these are: " + words_of(advice.together->settings) + ": " +
            core::to_string(advice.together->estimate->expected) + "\n";
  }
  return text;
}

bool helps(const Advice& advice) {
  const auto fits = [](const ChangeEffect& effect) { return effect.estimate && estimate::is_enough(*effect.estimate); };
  return estimate::is_enough(advice.now) || advice.together ||
         std::any_of(advice.single.begin(), advice.single.end(), fits);
}

Json effect_json(const ChangeEffect& effect) {
  Json json;
  json["settings"] = Json::object();
  for (const Setting& setting : effect.settings) json["settings"][setting.option] = setting.value;
  json["cost"] = effect.cost;
  if (effect.estimate) {
    json["estimate"] = to_json(*effect.estimate);
  } else {
    json["error"] = to_json(effect.estimate.error());
  }
  return json;
}

Json advice_json(const EstimatedJob& estimated_job, std::string_view estimator, const Advice& advice) {
  Json json = head_json(estimated_job);
  json["estimator"] = estimator;
  json["estimate"] = to_json(advice.now);
  json["changes"] = Json::array();
  for (const ChangeEffect& effect : advice.single) json["changes"].push_back(effect_json(effect));
  if (advice.together) json["together"] = effect_json(*advice.together);
  return json;
}

}  // namespace

int run_advise(const AdviseOptions& options) {
  Session session;
  const auto estimators = session.estimators(options.request);
  if (!estimators) return report_error(estimators.error());
  if (estimators->size() > 1) {
    return report_error({ErrorCode::invalid_argument, "advise takes one estimator, not all of them", {}});
  }
  Result<EstimatedJob> estimated_job = read_job(session, options.request);
  if (!estimated_job) return report_error(estimated_job.error());
  const Estimator& estimator = *estimators->front();
  const Result<Advice> advice = estimate::advise(estimated_job->job, *estimated_job->gpu, estimator);
  if (!advice) return report_error(advice.error());
  if (!advice->now.coverage.edges.empty()) {
    const auto analysis = estimated_job->analysis();
    estimated_job->guesses = guesses_of(*analysis);
  }
  print_warnings(*estimated_job);
  if (options.json) {
    const Json json = advice_json(*estimated_job, estimator.name(), *advice);
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s%s", headline(*estimated_job).c_str(),
                to_text(*advice, *estimated_job->gpu, terminal_of(STDOUT_FILENO)).c_str());
  }
  if (helps(*advice)) return 0;
  return report_error({ErrorCode::missing_information,
                       "none of these changes makes the job fit on " + estimated_job->gpu->name,
                       {estimated_job->graph->file(), 0, {}}});
}

}  // namespace gpumem::cli
