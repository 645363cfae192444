// Input: rows from a table of measured runs, or from any other source.
// Output: Dataset, what a model is trained on: for each job its raw features and layers, and what it took.
// Units: MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::train {

struct Row {
  std::string name = {};
  std::string source = {};                         ///< where it came from, such as the table's path
  ml::NetKind kind = ml::NetKind::any;             ///< of its net; any: not known
  std::uint64_t group = 0;                         ///< rows of one group are never split between training and test
  std::vector<double> features = {};               ///< raw
  std::vector<std::vector<double>> sequence = {};  ///< raw, one row a layer; empty: no model here reads it
  double measured_mib = 0.0;                       ///< or what the head's bins are of, if that is not memory
  bool out_of_memory = false;                      ///< it took more than there was
  /// One an output: where the head is values, these; of a mixture how far the value lies from each component.
  std::vector<double> targets = {};
  // For a mixture, which corrects the replay's reserved memory:
  double context_mib = 0.0;   ///< of the device figure, what is not reserved
  double reserved_mib = 0.0;  ///< as the replay has it
  double capacity_mib = 0.0;  ///< of the device
};

/// A job's features and sequence; the other fields are the caller's.
using Featurise = std::function<core::Result<Row>(const model::TrainingJob& job)>;

struct Dataset {
  std::vector<Row> rows;
};

/// Done if every row has what the model reads: as many figures as it names, all finite, and a label. Errors:
/// malformed_input, naming the row.
[[nodiscard]] core::Status validate(const Dataset& data, const ml::ModelConfig& model);

/// The bin of a row: the last one where it was out of memory, or beyond the last edge.
[[nodiscard]] std::int64_t class_of(const Row& row, const std::vector<double>& edges_mib);

/// What stays the same if only the batch changes: a figure of the net's ops, parameters and edges. The group of its
/// jobs.
[[nodiscard]] std::uint64_t net_of(const model::ModelGraph& graph);

}  // namespace gpumem::train
