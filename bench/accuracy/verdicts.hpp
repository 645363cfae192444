// Input: sets of measured runs and estimators.
// Output: Verdict: how well an estimator, or one that a table cites, agrees with the measurements. The result is the
// same for any number of threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data_sets.hpp"
#include "gpumem_datasets/accuracy.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::accuracy {

/// One estimator on one set.
struct Verdict {
  std::string estimator;
  bool published = false;  ///< what the table cites; not computed here
  bool ranged = false;     ///< it publishes a range
  bool whole = false;      ///< it does not tell what was measured apart: compared by all that it expects
  std::vector<datasets::Judged> judged = {};
  datasets::Accuracy accuracy = {};
  datasets::CappedAccuracy at_expected = {};
  datasets::CappedAccuracy at_upper = {};
  std::int64_t failed = 0;  ///< runs without an answer
  std::string first_failure = {};
  std::vector<std::string> models = {};  ///< of a learned estimator: those that answered, each once
  /// Of them, those that were trained on runs of this set, or of what it is a part of.
  std::vector<std::string> trained_on_it = {};
  std::int64_t out_of_domain = 0;  ///< runs unlike those that the model was trained on
};

/// The verdicts on one set, in the order of the estimators; those that the table cites last.
struct SetVerdicts {
  const DataSet* set = nullptr;
  std::vector<Verdict> verdicts;
};

/// Views the data. `progress` is called once a run, from any thread.
[[nodiscard]] std::vector<SetVerdicts> judge(const Data& data,
                                             const std::vector<std::shared_ptr<const Estimator>>& estimators,
                                             unsigned threads, const std::function<void()>& progress = nullptr);

/// Whether the text holds the word, upper and lower case alike.
[[nodiscard]] bool mentions(std::string_view text, std::string_view word);

/// Whether a model was trained on runs of this source, as its provenance says (config.json: "data", "attribution"): the
/// source's name stands there, and the model is of this kind of nets. Not whether each run was: a part of the set that
/// was held back counts as seen. A model whose provenance says nothing of its data may have seen anything.
[[nodiscard]] bool is_trained_on(const ml::ModelConfig& model, const DataSet& set);

}  // namespace gpumem::accuracy
