#include "verdicts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gpumem/core/csv.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "prediction.hpp"

namespace gpumem::accuracy {

namespace {

using cli::Prediction;
using cli::PredictionTask;
using datasets::MeasuredRun;

/// An estimator that tells no reserved memory is compared by all that it expects.
datasets::Figure asked_for(const MeasuredRun& run) {
  return run.figure == datasets::Figure::reserved ? datasets::Figure::growth : run.figure;
}

Result<std::shared_ptr<const GpuProfile>> gpu_of(const MeasuredRun& run, const Data& data) {
  const auto gpu = data.gpus.find(run.gpu);
  if (gpu != data.gpus.end()) return std::make_shared<const GpuProfile>(gpu->second);
  return Error{ErrorCode::missing_information, "the run names no GPU", {}};
}

void finish(Verdict& verdict) {
  verdict.accuracy = datasets::accuracy_of(verdict.judged);
  verdict.at_expected = datasets::capped_accuracy_of(verdict.judged, datasets::Cap::expected);
  verdict.at_upper = datasets::capped_accuracy_of(verdict.judged, datasets::Cap::upper);
}

/// The built-in model of this name as it is described; nothing for a model of the user's own.
std::optional<ml::ModelConfig> config_of(const std::string& name) {
  for (const ml::BuiltinModel& model : ml::builtin_models()) {
    if (model.name != name) continue;
    auto config = ml::parse_model_config(model.config);
    if (config) return *std::move(config);
  }
  return std::nullopt;
}

Verdict verdict_of(std::string_view estimator, std::size_t number, const std::vector<const PredictionTask*>& runs,
                   const DataSet& set) {
  Verdict verdict;
  verdict.estimator = estimator;
  std::set<std::string> models;
  for (const PredictionTask* work : runs) {
    const Prediction& prediction = work->predictions[number];
    if (prediction.error) {
      if (verdict.failed++ == 0) verdict.first_failure = core::to_string(*prediction.error);
      continue;
    }
    verdict.judged.push_back(cli::judged(prediction));
    verdict.ranged = verdict.ranged || prediction.ranged;
    if (!prediction.model.empty()) models.insert(prediction.model);
    if (prediction.out_of_domain) ++verdict.out_of_domain;
    verdict.whole = verdict.whole || prediction.whole;
  }
  verdict.models.assign(models.begin(), models.end());
  for (const std::string& model : verdict.models) {
    const auto config = config_of(model);
    if (!config || is_trained_on(*config, set)) verdict.trained_on_it.push_back(model);
  }
  finish(verdict);
  return verdict;
}

datasets::Judged judged(const PredictionTask& work, const datasets::PublishedEstimate& said) {
  const double capacity = work.gpu ? (*work.gpu)->capacity().mib() : 0.0;
  const double expected = said.expected_mib.value_or(0.0);
  return {.measured_mib = work.run->measured_mib.value_or(0.0),
          .expected_mib = expected,
          .upper_mib = expected,
          .out_of_memory = work.run->out_of_memory,
          .fits = !said.out_of_memory.value_or(expected > capacity),
          .lower_mib = expected,
          .capacity_mib = capacity,
          .has_figure = said.expected_mib.has_value(),
          .failed_when_capped = said.failed_when_capped};
}

/// What the table cites, by estimator, in the order in which it names them.
std::vector<Verdict> published_verdicts(const std::vector<const PredictionTask*>& runs) {
  std::vector<Verdict> verdicts;
  for (const PredictionTask* work : runs) {
    for (const datasets::PublishedEstimate& said : work->run->published) {
      auto verdict = std::find_if(verdicts.begin(), verdicts.end(),
                                  [&](const Verdict& each) { return each.estimator == said.estimator; });
      if (verdict == verdicts.end()) {
        verdicts.push_back({.estimator = said.estimator, .published = true});
        verdict = verdicts.end() - 1;
      }
      verdict->judged.push_back(judged(*work, said));
    }
  }
  for (Verdict& verdict : verdicts) {
    verdict.failed = static_cast<std::int64_t>(runs.size() - verdict.judged.size());
    finish(verdict);
  }
  return verdicts;
}

}  // namespace

bool mentions(std::string_view text, std::string_view word) {
  return core::lower_case(text).find(core::lower_case(word)) != std::string::npos;
}

bool is_trained_on(const ml::ModelConfig& model, const DataSet& set) {
  const auto& provenance = model.provenance;
  const auto names_data = [](const auto& field) { return field.first == "data"; };
  if (std::none_of(provenance.begin(), provenance.end(), names_data)) return true;
  const bool of_kind = model.nets == ml::NetKind::any || !set.kind || model.nets == *set.kind;
  if (!of_kind || set.source.empty()) return false;
  return std::any_of(provenance.begin(), provenance.end(), [&](const auto& field) {
    return (field.first == "data" || field.first == "attribution") && mentions(field.second, set.source);
  });
}

std::vector<SetVerdicts> judge(const Data& data, const std::vector<std::shared_ptr<const Estimator>>& estimators,
                               unsigned threads, const std::function<void()>& progress) {
  std::vector<PredictionTask> all;
  for (const DataSet& set : data.sets) {
    for (const MeasuredRun* run : set.runs) {
      all.push_back({.run = run, .figure = asked_for(*run), .gpu = gpu_of(*run, data)});
    }
  }
  cli::predict_all(all, estimators, threads, progress);
  std::vector<SetVerdicts> result;
  auto next = all.begin();
  for (const DataSet& set : data.sets) {
    std::vector<const PredictionTask*> runs;
    for (std::size_t index = 0; index < set.runs.size(); ++index) runs.push_back(&*next++);
    SetVerdicts verdicts = {&set, {}};
    for (std::size_t number = 0; number < estimators.size(); ++number) {
      verdicts.verdicts.push_back(verdict_of(estimators[number]->name(), number, runs, set));
    }
    for (Verdict& verdict : published_verdicts(runs)) verdicts.verdicts.push_back(std::move(verdict));
    result.push_back(std::move(verdicts));
  }
  return result;
}

}  // namespace gpumem::accuracy
