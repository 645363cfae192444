// Input: a job whose graph has no edges and is of no known architecture.
// Output: its layers in a chain: each reads the one before. Blocks of a known class (block_rules.hpp) are joined by
// their rule instead.
//
// A job without an input shape: the input is inferred where the first layer tells it. Token ids from their
// embedding's output; features from a linear layer's parameters; an image from a convolution's output and parameters
// and the size that the summary's foot prints, which is rounded: of the sizes that fit, the roundest.
//
// Beyond known blocks a branch cannot be seen: what a convolution reads whose sizes contradict its predecessor is
// guessed (repair.hpp), with a warning that names it; other layers of tables that do are counted.
#pragma once

#include <cstdint>
#include <string>

#include "gpumem/connect/containers.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

struct Chained {
  model::ModelGraph graph;
  std::int64_t joins = 0;      ///< sums, products and concatenations that no row shows
  std::int64_t misfits = 0;    ///< layers whose printed shape does not follow from what they were chained to
  Guesses guesses;             ///< what was inferred and may be wrong
  std::string inferred_input;  ///< "3x224x224"; empty: the job or the summary gives the input
};

/// Errors: missing_information without an input shape, or where sizes contradict each other.
[[nodiscard]] core::Result<Chained> chain(const model::TrainingJob& job, const ops::Catalogue& ops);

}  // namespace gpumem::connect
