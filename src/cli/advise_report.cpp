#include "advise_report.hpp"

#include <algorithm>

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

Json effect_json(const ChangeEffect& effect) {
  Json json;
  json["settings"] = Json::object();
  for (const Setting& setting : effect.settings) json["settings"][setting.option] = setting.value;
  json["cost"] = effect.cost;
  json["same_result"] = effect.same_result;
  if (effect.estimate) {
    json["estimate"] = to_json(*effect.estimate);
  } else {
    json["error"] = to_json(effect.estimate.error());
  }
  return json;
}

}  // namespace

Result<FoundAdvice> advice_of(EstimatedJob estimated_job, const Estimator& estimator) {
  Result<Advice> advice = estimate::advise(estimated_job.job, *estimated_job.gpu, estimator);
  if (!advice) return advice.error();
  if (!advice->now.coverage.edges.empty()) {
    const auto analysis = estimated_job.analysis();
    estimated_job.guesses = guesses_of(*analysis);
  }
  return FoundAdvice{std::move(estimated_job), estimator.name(), *std::move(advice)};
}

std::string to_text(const FoundAdvice& found, const Terminal& terminal) {
  const Advice& advice = found.advice;
  const GpuProfile& gpu = *found.estimated_job.gpu;
  std::string text = said_of(advice.now.verdict);
  text += core::to_string(advice.now.expected) + " expected, up to " + core::to_string(advice.now.upper) + ", of " +
          room_of(advice.now, gpu) + "\n" + drawn_estimate(advice.now, gpu, terminal);
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
    const bool single = std::any_of(advice.single.begin(), advice.single.end(), [](const ChangeEffect& effect) {
      return effect.estimate && estimate::is_enough(*effect.estimate);
    });
    const bool same = advice.together->same_result;
    text += single ? "\nwith the same result, these together are enough: "
                   : "\nno single change is enough; together these are" +
                         std::string(same ? ", with the same result: " : ": ");
    text += words_of(advice.together->settings) + ": " + core::to_string(advice.together->estimate->expected) + "\n";
  }
  return text;
}

bool helps(const Advice& advice) {
  const auto fits = [](const ChangeEffect& effect) { return effect.estimate && estimate::is_enough(*effect.estimate); };
  return estimate::is_enough(advice.now) || advice.together ||
         std::any_of(advice.single.begin(), advice.single.end(), fits);
}

Json to_json(const FoundAdvice& found) {
  Json json = head_json(found.estimated_job);
  json["estimator"] = found.estimator;
  json["estimate"] = to_json(found.advice.now);
  json["changes"] = Json::array();
  for (const ChangeEffect& effect : found.advice.single) json["changes"].push_back(effect_json(effect));
  if (found.advice.together) json["together"] = effect_json(*found.advice.together);
  return json;
}

Error no_advice(const FoundAdvice& found) {
  return {ErrorCode::missing_information,
          "none of these changes makes the job fit on " + found.estimated_job.gpu->name,
          {found.estimated_job.graph->file(), 0, {}}};
}

}  // namespace gpumem::cli
