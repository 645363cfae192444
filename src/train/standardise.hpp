// Input: raw rows.
// Output: the means and scales of a training part, and rows as the network reads them (Examples).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataset.hpp"
#include "examples.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::train {

/// Sets mean and scale (the standard deviation; 1 where all are equal) of each feature, transformed, and of each column
/// of the sequences, over these rows; min and max of the raw figures.
void fit_statistics(ml::ModelConfig& model, const Dataset& data, std::span<const std::size_t> rows);

/// How targets are scaled for training: values far from 0 and 1 train badly.
struct TargetScale {
  double mean = 0.0;
  double scale = 1.0;
};
/// One an output; none where the head is bins or a mixture.
[[nodiscard]] std::vector<TargetScale> fit_targets(const ml::ModelConfig& model, const Dataset& data,
                                                   std::span<const std::size_t> rows);

/// These rows by the model's statistics.
[[nodiscard]] Examples examples_of(const ml::ModelConfig& model, const std::vector<TargetScale>& targets,
                                   const Dataset& data, std::span<const std::size_t> rows);

}  // namespace gpumem::train
