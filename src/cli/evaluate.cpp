#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "accuracy_groups.hpp"
#include "command_words.hpp"
#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem_datasets/datasets.hpp"
#include "launch_command.hpp"
#include "prediction.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "trainer_files.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using datasets::Accuracy;
using datasets::MeasuredRun;

/// All predictions of one estimator, and how well they agree with what was measured.
struct Verdict {
  std::string_view estimator;
  std::vector<Prediction> predictions;
  std::vector<const Prediction*> judged;  ///< of runs on one GPU
  Accuracy accuracy;
  Accuracy several_gpus;
  std::vector<const Prediction*> failed;
  /// Of runs whose samples were shorter than the job's: the job needs at least what was measured.
  std::vector<const Prediction*> at_most;
  bool ranged = false;
};

/// The runs that are asked for, and what the others were.
struct Selection {
  std::vector<const MeasuredRun*> runs;
  std::int64_t without_measurement = 0;
  std::int64_t filtered_out = 0;
};

Selection select(const std::vector<MeasuredRun>& all, const std::string& filter) {
  Selection selection;
  for (const MeasuredRun& run : all) {
    const bool measured = run.out_of_memory || run.error || run.measured_mib.value_or(0.0) > 0.0;
    if (run.name.find(filter) == std::string::npos) ++selection.filtered_out;
    else if (!measured) ++selection.without_measurement;
    else selection.runs.push_back(&run);
  }
  return selection;
}

/// Of a command that is written out, without the files that it names.
Result<trainer_files::TrainerJob> job_of_command(const std::string& command) {
  const auto no_file = [](const std::string& path) -> Result<std::string> {
    return Error{ErrorCode::unreadable_file, "is not among the table's settings", {path, 0, {}}};
  };
  auto launched = trainer_files::read_launch_command(trainer_files::shell_words(command), no_file);
  if (!launched) return launched.error();
  return std::move(launched->job);
}

/// What a trainer's file, its arguments or its command say about a job.
Result<datasets::ToldJob> told_by_trainer(std::string_view settings, std::int64_t gpus) {
  const auto root = trainer_files::parse_settings(settings);
  const trainer_files::Setting* const command = root ? root->field("command") : nullptr;
  auto job = command == nullptr ? trainer_files::parse_trainer_job(settings) : job_of_command(command->word);
  if (!job) return job.error();
  datasets::ToldJob told{.program = job->format,
                         .model = job->model,
                         .frozen_parts = job->frozen_parts,
                         .head = job->head,
                         .holds_speech = job->holds_speech,
                         .megatron_fields = job->megatron_fields,
                         .missing = std::exchange(job->missing, {}),
                         .shorter = job->shorter};
  if (!job->deepspeed.empty()) told.missing.push_back("the file " + job->deepspeed);
  auto notes = trainer_files::apply(*job, told.request);
  if (!notes) return notes.error();
  told.not_modelled = *std::move(notes);
  if (const trainer_files::TrainedBlocks blocks = job->trained_blocks; blocks.count != 0) {
    told.trained_blocks = [blocks](const model::ModelGraph& graph) -> Result<datasets::TrainedNames> {
      auto trained = trainer_files::trained_patterns(blocks, graph);
      if (!trained) return trained.error();
      return datasets::TrainedNames{*std::move(trained), trainer_files::frozen_patterns(blocks, graph)};
    };
  }
  if (const core::Status spread = trainer_files::spread(*job, gpus, told.request); !spread) return spread.error();
  return told;
}

/// How often what was measured is no more than the estimate, of runs that it must bound.
std::int64_t bounded(const Verdict& verdict) {
  return std::count_if(verdict.at_most.begin(), verdict.at_most.end(), [](const Prediction* prediction) {
    return prediction->run->measured_mib.value_or(0.0) <= prediction->upper_mib + prediction->run->rounding_mib;
  });
}

Result<std::shared_ptr<const GpuProfile>> gpu_of(const MeasuredRun& run, Session& session,
                                                 const std::string& gpu_for_all) {
  const std::string& name = gpu_for_all.empty() ? run.gpu : gpu_for_all;
  if (name.empty()) return Error{ErrorCode::missing_information, "the run names no GPU; name one with --gpu", {}};
  return session.gpu(name);
}

void judge(Verdict& verdict) {
  std::vector<datasets::Judged> one;
  std::vector<datasets::Judged> several;
  for (const Prediction& prediction : verdict.predictions) {
    if (prediction.error) {
      verdict.failed.push_back(&prediction);
      continue;
    }
    verdict.ranged = verdict.ranged || prediction.ranged;
    if (prediction.run->at_most) {
      verdict.at_most.push_back(&prediction);
      continue;
    }
    if (prediction.run->gpus == 1) verdict.judged.push_back(&prediction);
    (prediction.run->gpus == 1 ? one : several).push_back(judged(prediction));
  }
  verdict.accuracy = datasets::accuracy_of(one);
  verdict.several_gpus = datasets::accuracy_of(several);
}

std::vector<Verdict> judge_all(const Selection& selection,
                               const std::vector<std::shared_ptr<const Estimator>>& estimators, Session& session,
                               const std::string& gpu) {
  std::vector<PredictionTask> tasks;
  for (const MeasuredRun* run : selection.runs) {
    tasks.push_back({.run = run, .figure = run->figure, .gpu = gpu_of(*run, session, gpu)});
  }
  Progress progress("estimating", "runs", tasks.size());
  predict_all(tasks, estimators, std::max(1U, std::thread::hardware_concurrency()), [&] { progress.step(); });

  std::vector<Verdict> verdicts(estimators.size());
  for (std::size_t index = 0; index < estimators.size(); ++index) {
    Verdict& verdict = verdicts[index];
    verdict.estimator = estimators[index]->name();
    for (PredictionTask& task : tasks) verdict.predictions.push_back(std::move(task.predictions[index]));
    judge(verdict);
  }
  return verdicts;
}

// The table.

std::string percent_of(double share) { return percent(share, "%.2f %%"); }
std::string whole_mib(double value) { return core::with_separators(std::llround(value)); }

std::string row(std::string_view title, std::initializer_list<std::string> cells) {
  constexpr std::size_t kTitle = 34;
  constexpr std::size_t kCell = 12;
  std::string text = "  " + std::string(title);
  text.resize(std::max(text.size(), kTitle), ' ');
  for (const std::string& cell : cells) text += std::string(cell.size() < kCell ? kCell - cell.size() : 1, ' ') + cell;
  return text + "\n";
}

std::string name_of(const MeasuredRun& run) {
  constexpr std::size_t kLongest = 160;
  std::string name = core::shortened(run.name, kLongest);
  std::replace_if(
      name.begin(), name.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x20; }, '?');
  return name + " (line " + std::to_string(run.line) + ")";
}

std::string errors_table(const Verdict& verdict) {
  const Accuracy& accuracy = verdict.accuracy;
  const datasets::Spread& relative = accuracy.relative_error;
  const datasets::Spread& absolute = accuracy.absolute_error_mib;
  const Prediction& worst = *verdict.judged[*accuracy.worst];
  std::string text = row("", {"mean", "median", "p90", "p99"});
  text += row("relative error", {percent_of(relative.mean), percent_of(relative.median), percent_of(relative.p90),
                                 percent_of(relative.p99)});
  text += row("absolute error, MiB",
              {whole_mib(absolute.mean), whole_mib(absolute.median), whole_mib(absolute.p90), whole_mib(absolute.p99)});
  text += row("signed relative error", {percent_of(accuracy.signed_relative_error)});
  text += row("in the right class of 8,000 MiB", {percent_of(accuracy.right_class)});
  text += row("underestimated", {percent_of(accuracy.underestimated)});
  if (verdict.ranged) {
    text += row("between lower and upper", {percent_of(accuracy.within)});
    text += row("covered by upper", {percent_of(accuracy.covered)});
    text += row("upper / measured", {text_of("%.3f", accuracy.upper_ratio)});
  }
  text += "  worst: " + name_of(*worst.run) + ": expected " + whole_mib(worst.expected_mib) + " MiB, measured " +
          whole_mib(worst.run->measured_mib.value_or(0.0)) + " MiB\n";
  return text;
}

std::string failures(const Verdict& verdict) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t index = 0; index < std::min(kMost, verdict.failed.size()); ++index) {
    const Prediction& prediction = *verdict.failed[index];
    text += "  failed: " + name_of(*prediction.run) + ": " + said(*prediction.error) + "\n";
  }
  if (verdict.failed.size() > kMost) text += "  and " + std::to_string(verdict.failed.size() - kMost) + " more\n";
  return text;
}

std::string count(std::int64_t value) { return core::with_separators(value); }
std::string count_of_runs(std::int64_t value) { return count(value) + (value == 1 ? " run" : " runs"); }

std::string to_table(const Verdict& verdict) {
  const Accuracy& accuracy = verdict.accuracy;
  const auto failed = static_cast<std::int64_t>(verdict.failed.size());
  std::string text = "\n" + std::string(verdict.estimator) + ": " + count_of_runs(accuracy.fitted) + " that fitted, " +
                     count(accuracy.out_of_memory) + " out of memory, " + count(failed) + " failed\n";
  if (accuracy.fitted > 0) text += errors_table(verdict);
  text += "  out of memory: " + count(accuracy.caught) + " caught, " + count(accuracy.out_of_memory - accuracy.caught) +
          " missed; " + count(accuracy.false_alarms) + " false alarms\n";
  if (verdict.several_gpus.fitted > 0) {
    text += "  on several GPUs: " + count_of_runs(verdict.several_gpus.fitted) + ", relative error " +
            percent_of(verdict.several_gpus.relative_error.mean) + " in the mean, " +
            percent_of(verdict.several_gpus.relative_error.median) + " in the median\n";
  }
  if (!verdict.at_most.empty()) {
    const auto runs = static_cast<std::int64_t>(verdict.at_most.size());
    text += "  with samples at most as long: " + count_of_runs(runs) + ", " + count(bounded(verdict)) +
            " of them at most the upper figure\n";
  }
  return text + (has_groups(verdict.predictions) ? groups_table(verdict.predictions) : failures(verdict));
}

std::string headline(const EvaluateOptions& options, const datasets::MeasuredRuns& all, const Selection& selection) {
  std::string text =
      options.runs + ": " + all.format + ", " + count_of_runs(static_cast<std::int64_t>(selection.runs.size()));
  if (selection.without_measurement > 0) text += ", " + count(selection.without_measurement) + " without a measurement";
  if (all.dropped > 0) text += ", " + count(all.dropped) + " dropped that measure no need";
  if (selection.filtered_out > 0) text += ", " + count(selection.filtered_out) + " filtered out";
  return text + "\n";
}

// JSON.

/// To six decimals: the rest differs between machines.
Json to_json(const datasets::Spread& spread) {
  return {{"mean", rounded(spread.mean)},
          {"median", rounded(spread.median)},
          {"p90", rounded(spread.p90)},
          {"p99", rounded(spread.p99)}};
}

Json to_json(const Verdict& verdict) {
  const Accuracy& accuracy = verdict.accuracy;
  Json json = {
      {"estimator", verdict.estimator},
      {"fitted", accuracy.fitted},
      {"out_of_memory", accuracy.out_of_memory},
      {"failed", verdict.failed.size()},
      {"relative_error", to_json(accuracy.relative_error)},
      {"absolute_error_mib", to_json(accuracy.absolute_error_mib)},
      {"signed_relative_error", rounded(accuracy.signed_relative_error)},
      {"right_class", rounded(accuracy.right_class)},
      {"underestimated", rounded(accuracy.underestimated)},
      {"within", verdict.ranged ? Json(rounded(accuracy.within)) : Json(nullptr)},
      {"covered", verdict.ranged ? Json(rounded(accuracy.covered)) : Json(nullptr)},
      {"upper_ratio", verdict.ranged ? Json(rounded(accuracy.upper_ratio)) : Json(nullptr)},
      {"caught", accuracy.caught},
      {"missed", accuracy.out_of_memory - accuracy.caught},
      {"false_alarms", accuracy.false_alarms},
      {"several_gpus",
       {{"fitted", verdict.several_gpus.fitted}, {"relative_error", to_json(verdict.several_gpus.relative_error)}}}};
  json["at_most"] = {{"runs", verdict.at_most.size()}, {"below_upper", bounded(verdict)}};
  if (accuracy.worst) {
    const Prediction& worst = *verdict.judged[*accuracy.worst];
    json["worst"] = {{"name", worst.run->name},
                     {"line", worst.run->line},
                     {"expected_mib", rounded(worst.expected_mib)},
                     {"measured_mib", rounded(worst.run->measured_mib.value_or(0.0))}};
  }
  if (has_groups(verdict.predictions)) {
    json["groups"] = groups_json(verdict.predictions);
    json["not_answered"] = refusals_json(verdict.predictions);
  }
  json["failures"] = Json::array();
  for (const Prediction* prediction : verdict.failed) {
    json["failures"].push_back({{"name", prediction->run->name},
                                {"line", prediction->run->line},
                                {"error", cli::to_json(*prediction->error)}});
  }
  return json;
}

Json to_json(const EvaluateOptions& options, const datasets::MeasuredRuns& all, const Selection& selection,
             const std::vector<Verdict>& verdicts) {
  Json json = {{"schema", 1},
               {"file", options.runs},
               {"format", all.format},
               {"runs", selection.runs.size()},
               {"without_measurement", selection.without_measurement},
               {"dropped", all.dropped},
               {"filtered_out", selection.filtered_out},
               {"estimators", Json::array()}};
  for (const Verdict& verdict : verdicts) json["estimators"].push_back(to_json(verdict));
  return json;
}

// The predictions, one row each.

std::string to_csv(const std::vector<Verdict>& verdicts) {
  std::string text = "estimator,line,name,gpus,measured_mib,expected_mib,lower_mib,upper_mib,fits,status,error\n";
  const auto figure = [](double value) { return text_of("%.1f", value); };
  for (const Verdict& verdict : verdicts) {
    for (const Prediction& prediction : verdict.predictions) {
      const MeasuredRun& run = *prediction.run;
      text += std::string(verdict.estimator) + "," + std::to_string(run.line) + "," + core::csv_field(run.name) + "," +
              std::to_string(run.gpus) + "," + (run.measured_mib ? figure(*run.measured_mib) : "") + ",";
      if (prediction.error) {
        text += ",,,,failed," + core::csv_field(core::to_string(*prediction.error)) + "\n";
        continue;
      }
      text += figure(prediction.expected_mib) + "," + figure(prediction.lower_mib) + "," +
              figure(prediction.upper_mib) + "," + (prediction.fits ? "yes" : "no") + "," +
              (run.out_of_memory ? "oom" : "ok") + ",\n";
    }
  }
  return text;
}

bool has_answer(const Verdict& verdict) { return verdict.failed.size() < verdict.predictions.size(); }

}  // namespace

int run_evaluate(const EvaluateOptions& options) {
  Session session;
  const auto estimators = session.estimators({.estimator = options.estimator, .model = options.model});
  if (!estimators) return report_error(estimators.error());
  if (!options.gpu.empty()) {
    if (const auto gpu = session.gpu(options.gpu); !gpu) return report_error(gpu.error());
  }
  const auto all = datasets::read_runs(options.runs, options.summaries, &told_by_trainer);
  if (!all) return report_error(all.error());
  const Selection selection = select(all->runs, options.filter);
  const std::vector<Verdict> verdicts = judge_all(selection, *estimators, session, options.gpu);
  if (!options.out.empty()) {
    if (const auto written = core::write_file(options.out, to_csv(verdicts)); !written) {
      return report_error(written.error());
    }
  }
  std::string text = headline(options, *all, selection);
  for (const Verdict& verdict : verdicts) text += to_table(verdict);
  if (options.json) {
    text = to_json(options, *all, selection, verdicts).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::any_of(verdicts.begin(), verdicts.end(), has_answer)) return 0;
  return report_error({ErrorCode::missing_information, "none of its runs could be judged", {options.runs, 0, {}}});
}

}  // namespace gpumem::cli
