// Input: what models said about rows that they were not trained on.
// Output: Score, how right they were.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem_datasets/accuracy.hpp"

namespace gpumem::train {

/// What the model of a fold said about a row outside its training part.
struct Prediction {
  std::size_t row = 0;  ///< of the data set
  std::int64_t fold = 0;
  std::vector<float> outputs;  ///< as inference gives them
};

/// The bin with the highest output; the first of several alike.
[[nodiscard]] std::int64_t class_of(std::span<const float> outputs);

/// For some of the predictions. Shares are of the rows.
struct Score {
  std::string of;  ///< "all", "fold 1", a source
  std::int64_t rows = 0;
  // Where the head is bins:
  double accuracy = 0.0;        ///< in the right bin
  double within_one = 0.0;      ///< at most one bin away
  double underestimated = 0.0;  ///< in a bin that is too low; the upper edge said covers all others
  double majority = 0.0;        ///< what always naming the most frequent bin would get right
  std::int64_t caught = 0;      ///< runs out of memory that are put into the last bin
  std::int64_t out_of_memory = 0;
  // Where it is values, one an output:
  std::vector<double> absolute_error;         ///< mean of |output - target|
  std::vector<double> median_absolute_error;  ///< median of the same
  std::vector<double> covered;                ///< share whose target is at most the output
  // Where it is a mixture: of the device's memory as corrected, and as the replay has it.
  std::optional<datasets::Accuracy> corrected;
  datasets::Accuracy uncorrected;
};

/// For all rows, for each fold, and for each source if there are several.
[[nodiscard]] std::vector<Score> scores_of(const Dataset& data, const ml::Head& head,
                                           std::span<const Prediction> predictions);

/// Rows: the true bin; columns: the one that was said.
[[nodiscard]] std::vector<std::vector<std::int64_t>> confusion_of(const Dataset& data, const ml::Head& head,
                                                                  std::span<const Prediction> predictions);

/// The middle 90 % of what targets lie above their outputs, one output after the other; nothing for other heads than
/// those of values.
[[nodiscard]] ml::Residuals residuals_of(const Dataset& data, const ml::Head& head,
                                         std::span<const Prediction> predictions);

/// The figures of a score by name, as they are in config.json.
[[nodiscard]] std::vector<std::pair<std::string, double>> figures_of(const Score& score, const ml::Head& head);

/// One line a prediction: name,source,fold,measured_mib,out_of_memory, then for bins class,predicted_class and the
/// logits, for values target and output of each name.
[[nodiscard]] std::string to_csv(const Dataset& data, const ml::Head& head, std::span<const Prediction> predictions);

}  // namespace gpumem::train
