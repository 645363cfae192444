// Input: a recipe's model and a GPU.
// Output: the function that computes a job's features and sequence on that GPU, those that the model names
// (ml/features.hpp).
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
