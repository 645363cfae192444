// Input: a word of the command line that names training data.
// Output: rows. The word is the path of a table,
//   of measured runs   as 'gpumem evaluate' reads them (gpumem_datasets/runs_format.hpp), whose features are computed
//   of features        name,group,measured_mib[,out_of_memory], then a column for each feature of the recipe, and
//                      "target NAME" for each value of its head; "sequence" holds the layers as "1 2 3;4 5 6"
// or "random:KIND:COUNT:SEED[:BIN_MIB]", that many random jobs (random_jobs.hpp), labelled by the replay estimator;
// with BIN_MIB the same number in each class of that width (labelled_jobs.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem_datasets/measured_run.hpp"
#include "targets.hpp"

namespace gpumem::train {

/// Rows, and how many lines of a table give no row.
struct Source {
  std::string name;  ///< the word
  std::vector<Row> rows;
  std::int64_t unmeasured = 0;     ///< without a figure
  std::int64_t several_gpus = 0;   ///< on more than one device
  std::int64_t out_of_memory = 0;  ///< left out: a head of values has no last bin
  std::int64_t other_nets = 0;     ///< of another kind than the recipe's
  std::int64_t failed = 0;         ///< no job or no features
  std::optional<core::Error> first_failure;
};

/// What turns runs into rows.
struct Labelling {
  const ml::ModelConfig* model = nullptr;
  Featurise featurise;
  Targets targets = {};       ///< where the head is values
  ReplayedOf replayed = {};   ///< where it is a mixture
  double capacity_mib = 0.0;  ///< of the GPU
};

/// The group of a row is its net. Rows that cannot be used are counted.
[[nodiscard]] Source rows_of(const datasets::MeasuredRuns& runs, const std::string& name, const Labelling& labelling);

/// Whether a table is one of features: it has the columns group and measured_mib.
[[nodiscard]] bool is_feature_table(const core::CsvTable& table);

/// Errors: malformed_input, naming line and column.
[[nodiscard]] core::Result<Source> rows_of(const core::CsvTable& table, const ml::ModelConfig& model);

/// A table of either form. `summaries` is the folder with the summaries of models that a table only names. Errors:
/// those of reading it.
[[nodiscard]] core::Result<Source> read_table(const std::string& path, const std::string& summaries,
                                              const Labelling& labelling);

/// "random:cnn:3000:7", "random:cnn:3000:7:8000"
struct RandomSource {
  ml::NetKind kind = ml::NetKind::any;
  std::int64_t count = 0;
  std::uint64_t seed = 0;
  double bin_mib = 0.0;  ///< 0: the jobs as they are drawn
};
/// Nothing if the word does not begin with "random:". Errors: invalid_argument.
[[nodiscard]] core::Result<std::optional<RandomSource>> parse_random_source(std::string_view word);

}  // namespace gpumem::train
