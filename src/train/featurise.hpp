// Enters: a recipe's model. Leaves: the function that computes the features and the sequence that it names of a job.
#pragma once

#include "dataset.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::train {

/// Errors: invalid_argument for a feature that cannot be computed of a job. `model` must outlive the function.
[[nodiscard]] core::Result<Featurise> featurise_of(const ml::ModelConfig& model);

}  // namespace gpumem::train
