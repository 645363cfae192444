#include "cross_validation.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include "checkpoint.hpp"
#include "fingerprint.hpp"
#include "folds.hpp"
#include "random.hpp"
#include "standardise.hpp"
#include "train_network.hpp"
#include "weights.hpp"

namespace gpumem::train {

namespace {

/// Streams of the recipe's seed; runs have those from kRunStream on.
enum : std::uint64_t { kFoldStream = 1, kHoldBackStream = 2, kRunStream = 100 };

using Rows = std::vector<std::size_t>;

struct Sides {
  Rows kept;
  Rows apart;
};

template <typename Apart>
Sides parted(const Rows& rows, const Apart& apart) {
  Sides sides;
  for (std::size_t at = 0; at < rows.size(); ++at) (apart(at) ? sides.apart : sides.kept).push_back(rows[at]);
  return sides;
}

std::string state_file(const std::string& folder, std::int64_t run, std::int64_t folds) {
  const std::string name = run < folds ? "fold-" + std::to_string(run + 1) : "final";
  return (std::filesystem::path(folder) / (name + ".state.safetensors")).string();
}

/// A network, and how what it reads was scaled.
struct Fitted {
  ml::ModelConfig model;
  ml::TensorFile weights;  ///< with all that is folded into them
  std::int64_t epochs = 0;
  bool stopped = false;
};

class Training {
 public:
  Training(const Recipe& recipe, const Dataset& data, const Session& session)
      : recipe_(recipe), data_(data), session_(session), grouped_(grouped(recipe, data)), all_(data.rows.size()) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  core::Result<Outcome> run() {
    const auto folds = assign_folds(grouped_, folds_count(), seed_of(kFoldStream));
    if (!folds) return folds.error();
    if (core::Status made = make_states(); !made) return std::move(made).error();
    Outcome outcome;
    for (std::int64_t fold = 0; fold < folds_count() && !outcome.stopped; ++fold) {
      const Sides sides = parted(all_, [&](std::size_t row) { return (*folds)[row] == fold; });
      const auto fitted = fit(sides.kept, fold);
      if (!fitted) return fitted.error();
      note(*fitted, outcome);
      if (!fitted->stopped) predict(*fitted, sides.apart, fold, outcome.predictions);
    }
    if (!outcome.stopped) {
      auto fitted = fit(all_, folds_count());
      if (!fitted) return std::move(fitted).error();
      note(*fitted, outcome);
      if (!fitted->stopped) finish(*std::move(fitted), outcome);
    }
    return outcome;
  }

 private:
  /// Bins and sources are spread evenly over the folds.
  static std::vector<Grouped> grouped(const Recipe& recipe, const Dataset& data) {
    std::vector<Grouped> all;
    std::vector<std::string> sources;
    const std::vector<double>& edges = recipe.model.head.edges_mib;
    for (const Row& row : data.rows) {
      const auto known = std::find(sources.begin(), sources.end(), row.source);
      const auto source = known - sources.begin();
      if (known == sources.end()) sources.push_back(row.source);
      const std::int64_t bin = edges.empty() ? 0 : class_of(row, edges);
      all.push_back({row.group, source * static_cast<std::int64_t>(edges.size() + 1) + bin});
    }
    return all;
  }

  [[nodiscard]] std::int64_t folds_count() const { return recipe_.training.folds; }
  [[nodiscard]] std::uint64_t seed_of(std::uint64_t stream) const {
    return Random(recipe_.training.seed, stream).next();
  }

  core::Status make_states() {
    if (session_.states.empty()) return core::Done{};
    fingerprint_ = fingerprint_of(recipe_, data_);
    if (!session_.resume) remove_states(session_.states);
    std::error_code failed;
    std::filesystem::create_directories(session_.states, failed);
    if (!failed) return core::Done{};
    return core::Error{core::ErrorCode::unreadable_file, "cannot be made: " + failed.message(),
                       core::Place{session_.states, 0, {}}};
  }

  core::Result<Fitted> fit(const Rows& rows, std::int64_t run) {
    Rows training = rows;
    Rows validation;
    if (recipe_.training.early_stopping_patience > 0) {
      auto sides = held_back(rows, run);
      if (!sides) return std::move(sides).error();
      training = std::move(sides->kept);
      validation = std::move(sides->apart);
    }
    Fitted fitted;
    fitted.model = recipe_.model;
    fit_statistics(fitted.model, data_, training);
    const auto targets = fit_targets(fitted.model, data_, training);
    const Examples trained_on = examples_of(fitted.model, targets, data_, training);
    const Examples judged_on = examples_of(fitted.model, targets, data_, validation);
    const Run one = {recipe_.model.network, recipe_.training, seed_of(kRunStream + static_cast<std::uint64_t>(run)),
                     &trained_on, validation.empty() ? nullptr : &judged_on};
    auto trained = train_or_go_on(one, run);
    if (!trained) return std::move(trained).error();
    fitted.weights = std::move(trained->weights);
    fitted.epochs = trained->epochs;
    fitted.stopped = trained->stopped;
    if (recipe_.training.class_bias != 0.0) fold_class_bias(fitted.weights, recipe_.training.class_bias);
    if (!targets.empty()) fold_target_scale(fitted.weights, targets);
    return fitted;
  }

  core::Result<Sides> held_back(const Rows& rows, std::int64_t run) const {
    std::vector<Grouped> groups;
    for (const std::size_t row : rows) groups.push_back(grouped_[row]);
    const std::uint64_t seed = Random(seed_of(kHoldBackStream), static_cast<std::uint64_t>(run)).next();
    const auto held = hold_back(groups, recipe_.training.validation_share, seed);
    if (!held) return held.error();
    return parted(rows, [&](std::size_t at) { return (*held)[at]; });
  }

  core::Result<Trained> train_or_go_on(const Run& run, std::int64_t index) {
    const std::string file = session_.states.empty() ? "" : state_file(session_.states, index, folds_count());
    std::optional<RunState> from;
    if (session_.resume && !file.empty()) {
      auto loaded = load_state(file, fingerprint_);
      if (!loaded) return std::move(loaded).error();
      from = *std::move(loaded);
    }
    return train::train(run, from ? &*from : nullptr,
                        [&](const auto& state, const EpochDone& epoch) { return after(epoch, state, index, file); });
  }

  core::Result<bool> after(const EpochDone& epoch, const std::function<RunState()>& state, std::int64_t run,
                           const std::string& file) {
    const bool goes_on = !session_.on_epoch || session_.on_epoch({.run = run,
                                                                  .runs = folds_count() + 1,
                                                                  .epoch = epoch.epoch,
                                                                  .epochs = recipe_.training.epochs,
                                                                  .training_loss = epoch.training_loss,
                                                                  .run_done = epoch.run_done});
    const bool due = !goes_on || epoch.run_done || epoch.epoch % session_.save_every == 0;
    if (due && !file.empty()) {
      core::Status saved = save_state(state(), fingerprint_, file);
      if (!saved) return std::move(saved).error();
    }
    return goes_on;
  }

  static void note(const Fitted& fitted, Outcome& outcome) {
    outcome.stopped = fitted.stopped;
    outcome.epochs.push_back(fitted.epochs);
  }

  [[nodiscard]] std::vector<float> outputs_of(const Fitted& fitted, const Rows& rows) const {
    return TorchNetwork(recipe_.model.network, fitted.weights).run(examples_of(fitted.model, {}, data_, rows));
  }

  void predict(const Fitted& fitted, const Rows& rows, std::int64_t fold, std::vector<Prediction>& to) const {
    const std::vector<float> outputs = outputs_of(fitted, rows);
    const std::int64_t each = recipe_.model.network.outputs;
    auto at = outputs.begin();
    for (const std::size_t row : rows) {
      to.push_back({row, fold, std::vector<float>(at, at + each)});
      at += each;
    }
  }

  void finish(Fitted fitted, Outcome& outcome) const {
    std::sort(outcome.predictions.begin(), outcome.predictions.end(),
              [](const Prediction& left, const Prediction& right) { return left.row < right.row; });
    outcome.scores = scores_of(data_, recipe_.model.head, outcome.predictions);
    add_test_vectors(fitted);
    outcome.model = std::move(fitted.model);
    outcome.model.head.residuals = residuals_of(data_, recipe_.model.head, outcome.predictions);
    outcome.model.accuracy = figures_of(outcome.scores.front(), recipe_.model.head);
    outcome.weights = std::move(fitted.weights);
  }

  /// Rows from all over the data.
  void add_test_vectors(Fitted& fitted) const {
    constexpr std::size_t kMost = 4;
    Rows rows;
    const std::size_t count = std::min(kMost, all_.size());
    for (std::size_t index = 0; index < count; ++index) rows.push_back(index * all_.size() / count);
    const std::vector<float> outputs = outputs_of(fitted, rows);
    const auto each = static_cast<std::size_t>(recipe_.model.network.outputs);
    const auto longest = static_cast<std::size_t>(recipe_.model.network.sequence_length);
    for (std::size_t index = 0; index < count; ++index) {
      const Row& row = data_.rows[rows[index]];
      ml::TestVector vector = {row.features, row.sequence, {}};
      vector.sequence.resize(std::min(vector.sequence.size(), longest));
      for (std::size_t output = 0; output < each; ++output) {
        vector.outputs.push_back(static_cast<double>(outputs[index * each + output]));
      }
      fitted.model.test_vectors.push_back(std::move(vector));
    }
  }

  const Recipe& recipe_;
  const Dataset& data_;
  const Session& session_;
  std::vector<Grouped> grouped_;
  Rows all_;
  std::string fingerprint_;
};

}  // namespace

core::Result<Outcome> train(const Recipe& recipe, const Dataset& data, const Session& session) {
  if (core::Status valid = validate(data, recipe.model); !valid) return std::move(valid).error();
  return Training(recipe, data, session).run();
}

void remove_states(const std::string& states) {
  std::error_code ignored;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(states, ignored)) {
    if (entry.path().filename().string().ends_with(".state.safetensors")) files.push_back(entry.path());
  }
  for (const std::filesystem::path& file : files) std::filesystem::remove(file, ignored);
  std::filesystem::remove(states, ignored);  // only if it is empty
}

}  // namespace gpumem::train
