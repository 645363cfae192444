// Input: a graph without edges, read from a module tree.
// Output: the type Family, a rule that wires one family of models: what its modules read, and what the model's code
// computes between them.
#pragma once

#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

struct Family {
  std::string_view name;  ///< "gpt2"
  /// Whether the graph is one of the family's models: by class names and the names of its modules.
  bool (*recognises)(const model::ModelGraph& graph) = nullptr;
  /// The same model with edges, and with the operations that no module shows (joins, attention, reshapes). The job
  /// gives the sequence length. Errors: missing_information, naming the layer that is not as the family has it.
  core::Result<model::ModelGraph> (*connect)(const model::TrainingJob& job, const ops::Catalogue& ops) = nullptr;
};

}  // namespace gpumem::connect
