// Examples: training jobs as the network reads them (transformed, standardised and padded), with their targets. Plain
// data, row-major.
#pragma once

#include <cstdint>
#include <vector>

namespace gpumem::train {

struct Examples {
  std::int64_t count = 0;
  std::vector<float> features;        ///< [count, features]
  std::vector<float> sequences;       ///< [count, sequence_length, sequence_columns], padded with zeros
  std::vector<std::int64_t> lengths;  ///< rows of each sequence that are not padding
  std::vector<std::int64_t> classes;  ///< bin of each, where the head is bins
  std::vector<float> targets;         ///< [count, outputs], where the head is values or a mixture
};

}  // namespace gpumem::train
