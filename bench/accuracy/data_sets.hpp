// Input: paths of tables of measured runs (gpumem_datasets/runs_format.hpp).
// Output: DataSet, runs that are judged together: those of one table, or of one kind of nets if a table has several
// kinds with many runs each.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem_datasets/datasets.hpp"

namespace gpumem::accuracy {

/// A set of runs that is published, as the README speaks of it.
struct KnownSet {
  std::string_view source;          ///< whose runs
  std::optional<ml::NetKind> kind;  ///< nothing: of any
  std::string_view what;            ///< follows the number of runs: "MLPs of ..."
  std::string_view where;           ///< on what GPU and software
  std::string_view note = {};       ///< what must be known about the estimates that the table cites
};

/// In the order of the README's table.
[[nodiscard]] const std::vector<KnownSet>& known_sets();

struct DataSet {
  std::string name = {};    ///< "a100/cnn.csv", "xmem/runs.csv, transformers"
  std::string source = {};  ///< "gpumemnet", "xmem", "carma", "bench/measured/h200-141gb"; empty: nobody knows
  std::optional<ml::NetKind> kind = {};         ///< that of most runs
  std::optional<datasets::Figure> figure = {};  ///< what was measured; nothing: not the same of all runs
  std::vector<std::string> gpus = {};           ///< each once, by name
  std::vector<const datasets::MeasuredRun*> runs = {};
  std::int64_t without_measurement = 0;
  std::int64_t several_gpus = 0;  ///< left out: the figure is that of one GPU
  const KnownSet* known = nullptr;
};

/// Tables, and the sets that view them.
struct Data {
  std::vector<std::unique_ptr<const datasets::MeasuredRuns>> tables;
  std::vector<DataSet> sets;
  std::map<std::string, GpuProfile> gpus;  ///< by the name that a run has for it
};

/// The files below this folder that are tables of runs, by path. A file that ends in .csv and has the columns of none
/// is another table, and left out. Nothing if there is no such folder.
[[nodiscard]] std::vector<std::string> tables_below(const std::string& folder);

struct TableFile {
  std::string path;
  /// The runs were made by this project: the table is in the folder of bench/measured with this name.
  std::string measured_folder = {};
};

/// `summaries` is the folder with the summaries of models that a table only names. Errors: those of reading a table,
/// and of the profile of a GPU that a run names.
[[nodiscard]] Result<Data> read_data(const std::vector<TableFile>& tables, const std::string& summaries);

/// "MLPs", "CNNs", "Transformers", or "runs".
[[nodiscard]] std::string_view plural_of(std::optional<ml::NetKind> kind);

}  // namespace gpumem::accuracy
