#include "option_values.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "gpumem/request/targets.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"

namespace gpumem::cli {

namespace {

using Words = std::vector<std::string>;

/// The names of the rows of a list, and then others.
template <typename Rows>
Words names_of(const Rows& rows, std::initializer_list<const char*> others = {}) {
  Words words;
  for (const auto& row : rows) words.emplace_back(row.name);
  words.insert(words.end(), others.begin(), others.end());
  return words;
}

Words memory_estimators() { return names_of(estimate::estimators(), {"all"}); }
Words placing_estimators() { return names_of(estimate::estimators(), {"none"}); }
Words one_estimator() { return names_of(estimate::estimators()); }
Words traced_estimators() { return names_of(estimate::estimators(), {"none", "true"}); }
Words utilisation_estimators() { return names_of(utilisation::utilisation_estimators(), {"all"}); }
Words judged_estimators() {
  Words words = one_estimator();
  const Words others = utilisation_estimators();
  words.insert(words.end(), others.begin(), others.end());
  return words;
}
Words gpu_names() { return names_of(device::builtin_profiles()); }
Words model_names() { return names_of(ml::builtin_models()); }
Words policy_words() { return names_of(place::policies()); }
Words target_words() { return names_of(request::targets()); }
Words growing_words() { return names_of(estimate::kGrows); }
Words framework_words() { return names_of(search::frameworks(), {"any"}); }

/// The choices of a job's option, those with a number up to it: "every:".
Words choices_of(const job::JobOption& option) {
  Words words;
  if (option.place.choices == nullptr) return words;
  for (const std::string_view choice : option.place.choices()) {
    words.emplace_back(choice.ends_with(":N") ? choice.substr(0, choice.size() - 1) : choice);
  }
  return words;
}

constexpr ValuesRow kRows[] = {
    // Words of a command's own.
    {"fit", "--estimator", Paths::none, &one_estimator},
    {"fit", "--find", Paths::none, &growing_words},
    {"advise", "--estimator", Paths::none, &one_estimator},
    {"request", "--estimator", Paths::none, &one_estimator},
    {"place", "--estimator", Paths::none, &placing_estimators},
    {"run", "--estimator", Paths::none, &placing_estimators},
    {"simulate", "--estimator", Paths::none, &traced_estimators},
    {"utilisation", "--estimator", Paths::none, &utilisation_estimators},
    {"evaluate", "--estimator", Paths::none, &judged_estimators},
    {"calibrate", "--estimator", Paths::none, &one_estimator},
    {"", "--estimator", Paths::none, &memory_estimators},
    {"", "--gpu", Paths::files, &gpu_names},
    {"", "--model", Paths::folders, &model_names},
    {"", "--policy", Paths::none, &policy_words},
    {"request", "--for", Paths::none, &target_words},
    {"serve", "--for", Paths::none, &target_words},
    {"plan", "--framework", Paths::none, &framework_words},
    {"simulate", "--sharing", Paths::none,
     [] {
       return Words{"mps", "streams"};
     }},
    {"", "--recovery", Paths::none,
     [] {
       return Words{"exclusive", "grow"};
     }},
    {"simulate", "--missing-duration", Paths::none,
     [] {
       return Words{"median", "skip"};
     }},
    {"place", "--smact", Paths::none,
     [] {
       return Words{"estimate", "none"};
     }},
    {"run", "--smact", Paths::none,
     [] {
       return Words{"estimate", "none"};
     }},
    {"", "--smact-cap", Paths::none, [] { return Words{"none"}; }},
    {"", "--margin", Paths::none, [] { return Words{"upper"}; }},
    {"place", "--server", Paths::files, [] { return Words{"live"}; }},
    // Arguments.
    {"completion", "shell", Paths::none,
     [] {
       return Words{"bash", "zsh", "fish"};
     }},
    {"gpus", "name", Paths::none, &gpu_names},
    {"", "folder", Paths::folders, &model_names},
    {"", "folders", Paths::folders, &model_names},
    {"", "summary", Paths::files},
    {"", "jobs", Paths::files},
    {"", "runs", Paths::files},
    {"", "trace", Paths::files},
    {"", "checkpoint", Paths::files},
    {"", "inputs", Paths::files},
    {"place", "job", Paths::files},
    {"posttrain", "model", Paths::files},
    // Files and folders.
    {"", "--trainer", Paths::files},
    {"", "--adapter", Paths::files},
    {"model import", "--out", Paths::folders},
    {"man", "--out", Paths::folders},
    {"", "--out", Paths::files},
    {"", "--summaries", Paths::folders},
    {"", "--summary", Paths::files},
    {"", "--config", Paths::files},
    {"", "--recording", Paths::files},
    {"", "--rad", Paths::files},
    {"", "--directory", Paths::folders},
};

/// Of an option of post-training; nothing: it is none.
std::optional<OptionValues> of_post_training(std::string_view option) {
  std::string name(option.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  const posttrain::PostTrainingOption* const row = posttrain::find_post_training_option(name);
  if (row == nullptr) return std::nullopt;
  Words words;
  if (row->choices != nullptr) {
    for (const std::string_view choice : row->choices()) words.emplace_back(choice);
  }
  return OptionValues{std::move(words), row->value == "PATH" ? Paths::files : Paths::none};
}

}  // namespace

std::span<const ValuesRow> values_rows() { return kRows; }

OptionValues values_of(std::string_view command, std::string_view option) {
  const std::span<const ValuesRow> rows = values_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ValuesRow& one) {
    return one.option == option && (one.command.empty() || one.command == command);
  });
  if (row != rows.end()) return {row->words == nullptr ? Words() : row->words(), row->paths};
  if (!option.starts_with("--")) return {};
  if (command == "posttrain") {
    if (auto values = of_post_training(option)) return *std::move(values);
  }
  const job::JobOption* const of_job = job::find_flag(option.substr(2));
  return of_job == nullptr ? OptionValues() : OptionValues{choices_of(*of_job), Paths::none};
}

}  // namespace gpumem::cli
