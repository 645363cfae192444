// Input: the words of gpumem-train's command line.
// Output: a model folder, or an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cross_validation.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::train {

struct TrainerOptions {
  std::string recipe;
  std::vector<std::string> data;
  std::string out;
  std::string summaries;  ///< folder with the summaries of models that a table only names
  std::string gpu = "a100-40gb";
  std::string software;  ///< of random jobs; empty: the profile's first
  std::optional<std::int64_t> folds;
  std::optional<std::uint64_t> seed;
  std::string predictions;  ///< CSV to write; empty: none
  bool resume = false;
  std::int64_t save_every = 50;
  std::function<bool(const Progress&)> on_epoch;
  std::function<void(const std::string&)> say;  ///< told a line of text now and then
};

/// What became of it, as text for people; empty if it was stopped.
[[nodiscard]] core::Result<std::string> run_trainer(const TrainerOptions& options);

}  // namespace gpumem::train
