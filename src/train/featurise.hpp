// Enters: a recipe's model and a GPU. Leaves: the function that computes the features and the sequence that the model
// names (ml/features.hpp) of a job on that GPU.
#pragma once

#include "dataset.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::train {

/// Errors: malformed_input for a feature that is not in the catalogue. The function's errors are those of inferring a
/// job's shapes and of replaying it.
[[nodiscard]] core::Result<Featurise> featurise_of(const ml::ModelConfig& model, const device::GpuProfile& gpu);

}  // namespace gpumem::train
