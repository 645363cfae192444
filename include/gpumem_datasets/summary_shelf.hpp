// Input: paths of model summaries. Many rows may name the same one.
// Output: their graphs, each read once and shared.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

class SummaryShelf {
 public:
  explicit SummaryShelf(const RunsOptions& options) : options_(options) {}

  /// Errors: those of reading the summary; "-" is none, for standard input cannot be read for many rows.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> take(const std::string& path);

  /// Of a summary that is no file. Errors: those of reading it.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> parse(const std::string& name,
                                                                             std::string_view text);

 private:
  using Shared = core::Result<std::shared_ptr<const model::ModelGraph>>;

  const RunsOptions& options_;
  std::unordered_map<std::string, Shared> read_;
};

}  // namespace gpumem::datasets
