#include "train_command.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "card.hpp"
#include "featurise.hpp"
#include "gpumem/all.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "labelled_jobs.hpp"
#include "sources.hpp"

namespace gpumem::train {

namespace {

namespace fs = std::filesystem;

core::Result<Recipe> recipe_of(const TrainerOptions& options) {
  const auto text = core::read_file(options.recipe);
  if (!text) return text.error();
  core::Result<Recipe> recipe = parse_recipe(*text, options.recipe);
  if (!recipe) return recipe;
  recipe->training.folds = options.folds.value_or(recipe->training.folds);
  recipe->training.seed = options.seed.value_or(recipe->training.seed);
  return recipe;
}

// Data.

core::Result<LabelledJobs> jobs_of(const RandomSource& wanted, const TrainerOptions& options,
                                   const device::GpuProfile& gpu) {
  RandomJobs jobs({.kind = wanted.kind, .seed = wanted.seed, .software = options.software});
  if (wanted.bin_mib > 0.0) return LabelledJobs::balanced(std::move(jobs), gpu, wanted.bin_mib);
  return LabelledJobs(std::move(jobs), gpu);
}

core::Result<Source> random_rows(const RandomSource& wanted, const std::string& word, const TrainerOptions& options,
                                 const device::GpuProfile& gpu, const Labelling& labelling) {
  const auto jobs = jobs_of(wanted, options, gpu);
  if (!jobs) return jobs.error();
  datasets::MeasuredRuns runs;
  for (std::int64_t index = 0; index < wanted.count; ++index) {
    auto labelled = jobs->at(static_cast<std::uint64_t>(index));
    if (!labelled) return std::move(labelled).error();
    datasets::MeasuredRun run;
    run.name = std::move(labelled->made.name);
    run.job = std::move(labelled->made.job);
    run.measured_mib = labelled->replay_mib;
    // Values can be had of what does not fit, too: nothing was run.
    run.out_of_memory = !labelled->fits && !labelling.model->head.edges_mib.empty();
    runs.runs.push_back(std::move(run));
  }
  return rows_of(runs, word, labelling);
}

core::Result<Source> source_of(const std::string& word, const TrainerOptions& options, const device::GpuProfile& gpu,
                               const Labelling& labelling) {
  const auto random = parse_random_source(word);
  if (!random) return random.error();
  if (*random) return random_rows(**random, word, options, gpu, labelling);
  return read_table(word, options.summaries, labelling);
}

using ReplayOf = std::function<core::Result<MemoryEstimate>(const model::TrainingJob& job)>;

core::Result<ReplayOf> replay_on(const device::GpuProfile& gpu) {
  auto made = estimate::make_estimator("replay");
  if (!made) return std::move(made).error();
  const std::shared_ptr<Estimator> replay = *std::move(made);
  return ReplayOf([replay, gpu](const model::TrainingJob& job) { return replay->estimate(job, gpu); });
}

/// What the replay expects, for heads that correct it.
Expected expected_by(const ReplayOf& replay) {
  return [replay](const model::TrainingJob& job) -> core::Result<double> {
    const auto estimate = replay(job);
    if (!estimate) return estimate.error();
    return estimate->expected.mib();
  };
}

ReplayedOf replayed_by(const ReplayOf& replay) {
  return [replay](const model::TrainingJob& job) -> core::Result<Replayed> {
    const auto estimate = replay(job);
    if (!estimate) return estimate.error();
    return Replayed{estimate->breakdown.context.mib(), estimate->reserved->mib()};
  };
}

core::Result<Labelling> labelling_of(const Recipe& recipe, const device::GpuProfile& gpu) {
  Labelling labelling;
  labelling.model = &recipe.model;
  auto featurise = featurise_of(recipe.model, gpu);
  if (!featurise) return std::move(featurise).error();
  labelling.featurise = *std::move(featurise);
  labelling.capacity_mib = gpu.capacity().mib();
  const auto replay = replay_on(gpu);
  if (!replay) return replay.error();
  labelling.replayed = replayed_by(*replay);
  const ml::Head& head = recipe.model.head;
  if (head.spread > 0.0) return labelling;
  if (!head.of.empty() && counter_named(head.of) == nullptr) {
    return core::Error{core::ErrorCode::invalid_argument, core::quoted(head.of) + " is not a counter of a run",
                       core::Place{{}, 0, "/head/of"}};
  }
  auto targets = targets_of(recipe.model.head.names, expected_by(*replay));
  if (targets) {
    labelling.targets = *std::move(targets);
  } else {  // only a table of features brings values under names of its own
    labelling.targets = [error = targets.error()](const datasets::MeasuredRun&) -> core::Result<std::vector<double>> {
      return error;
    };
  }
  return labelling;
}

std::string line_of(const Source& source) {
  std::string text =
      source.name + ": " + core::with_separators(static_cast<std::int64_t>(source.rows.size())) + " jobs";
  if (source.failed > 0) {
    text += ", " + core::with_separators(source.failed) +
            " left out, the first because: " + core::to_string(*source.first_failure);
  }
  return text;
}

core::Result<std::vector<Source>> sources_of(const TrainerOptions& options, const Recipe& recipe) {
  const auto gpu = device::find_profile(options.gpu);
  if (!gpu) return gpu.error();
  const auto labelling = labelling_of(recipe, *gpu);
  if (!labelling) return labelling.error();
  std::vector<Source> sources;
  for (const std::string& word : options.data) {
    auto source = source_of(word, options, *gpu, *labelling);
    if (!source) return std::move(source).error();
    if (source->rows.empty() && source->first_failure) return *std::move(source->first_failure);
    if (options.say) options.say(line_of(*source));
    sources.push_back(*std::move(source));
  }
  return sources;
}

// What it leaves behind.

std::string quoted_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+";
  return word.find_first_not_of(kPlain) == std::string::npos && !word.empty() ? word : "'" + word + "'";
}

/// The command that gives this model again.
std::string command_of(const TrainerOptions& options) {
  std::string text = "gpumem-train " + quoted_word(options.recipe);
  for (const std::string& word : options.data) text += " --data " + quoted_word(word);
  if (!options.summaries.empty()) text += " --summaries " + quoted_word(options.summaries);
  if (options.gpu != TrainerOptions().gpu) text += " --gpu " + quoted_word(options.gpu);
  if (!options.software.empty()) text += " --software " + quoted_word(options.software);
  if (options.folds) text += " --folds " + std::to_string(*options.folds);
  if (options.seed) text += " --seed " + std::to_string(*options.seed);
  return text + " -o " + quoted_word(options.out);
}

std::string software() { return "gpumem " GPUMEM_VERSION_STRING ", libtorch " + std::string(torch_version()); }

void add_provenance(ml::ModelConfig& model, const Recipe& recipe) {
  model.provenance.emplace_back("trained_with", software() + ", seed " + std::to_string(recipe.training.seed));
}

core::Status write_folder(const TrainerOptions& options, const Recipe& recipe, const std::vector<Source>& sources,
                          const Dataset& data, Outcome& outcome) {
  CardFacts facts;
  facts.recipe = &recipe;
  facts.model = &outcome.model;
  facts.scores = outcome.scores;
  facts.confusion = confusion_of(data, outcome.model.head, outcome.predictions);
  for (const Source& source : sources) facts.sources.push_back(&source);
  facts.epochs = outcome.epochs;
  facts.command = command_of(options);
  facts.software = software();
  const std::string card = card_of(facts);
  add_provenance(outcome.model, recipe);
  core::Status status = ml::save_model(outcome.model, outcome.weights, options.out);
  if (status) status = core::write_file((fs::path(options.out) / "README.md").string(), card);
  if (status && !options.predictions.empty()) {
    status = core::write_file(options.predictions, to_csv(data, outcome.model.head, outcome.predictions));
  }
  return status;
}

std::string summary_of(const Outcome& outcome, const TrainerOptions& options) {
  std::string text = options.out + ": by cross-validation\n";
  for (const Score& score : outcome.scores) {
    text += "  " + score.of + ":";
    for (const auto& [name, value] : figures_of(score, outcome.model.head)) {
      std::array<char, 40> figure{};
      std::snprintf(figure.data(), figure.size(), " %.4g", value);
      text += (text.ends_with(":") ? " " : ", ") + name + figure.data();
    }
    text += "\n";
  }
  return text;
}

}  // namespace

core::Result<std::string> run_trainer(const TrainerOptions& options) {
  const auto recipe = recipe_of(options);
  if (!recipe) return recipe.error();
  const auto sources = sources_of(options, *recipe);
  if (!sources) return sources.error();
  Dataset data;
  for (const Source& source : *sources) data.rows.insert(data.rows.end(), source.rows.begin(), source.rows.end());
  Session session;
  session.states = (fs::path(options.out) / "training").string();
  session.resume = options.resume;
  session.save_every = options.save_every;
  session.on_epoch = options.on_epoch;
  auto outcome = train(*recipe, data, session);
  if (!outcome) return std::move(outcome).error();
  if (outcome->stopped) return std::string();
  core::Status written = write_folder(options, *recipe, *sources, data, *outcome);
  if (!written) return std::move(written).error();
  // What cannot be loaded is not a model; the states are kept then.
  const auto loaded = ml::load_model(options.out);
  if (!loaded) return loaded.error();
  remove_states(session.states);
  return summary_of(*outcome, options);
}

}  // namespace gpumem::train
