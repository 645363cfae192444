// Input: a file of measured runs in any form that gpumem knows.
// Output: MeasuredRuns. A RunsFormat is a name, a way to recognise a form by its header, and a way to read it. The list
// of forms is in src/datasets/read_runs.cpp. To add one: a file and a row there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::datasets {

/// Patterns of the names of what is trained and of what is frozen besides; empty: nothing is said of it.
struct TrainedNames {
  std::string train = {};
  std::string freeze = {};
};

/// What a training program's own settings say about a job.
struct ToldJob {
  job::JobRequest request = {};
  std::string program = {};                    ///< whose settings they are
  std::string model = {};                      ///< as the settings name it; empty: they name none
  std::string frozen_parts = {};               ///< modules that are not trained where the model has them, joined by ','
  std::string head = {};                       ///< how the class of its model ends; empty: as its config has it
  std::optional<bool> holds_speech = {};       ///< of a model that speaks: what makes it, or the thinker alone
  std::string megatron_fields = {};            ///< where Megatron runs its own form: its arguments beside the sizes
  std::vector<std::string> not_modelled = {};  ///< settings that change memory and have no option, a clause each
  std::vector<std::string> missing = {};       ///< what the job depends on and the settings do not say
  bool shorter = false;                        ///< samples have at most the length, and are not padded to it
  /// Where only some blocks of its model are trained: their names in this one.
  std::function<core::Result<TrainedNames>(const model::ModelGraph& graph)> trained_blocks = {};
  /// What a program does with some models and not with others.
  std::function<void(const model::ModelGraph& graph, job::JobRequest& request)> choose_by_model = {};
};

struct RunsOptions {
  /// The ops of nets that a file of runs spells out itself. read_runs() of datasets.hpp passes ops::vocabulary(). Must
  /// outlive the call.
  const model::Vocabulary* vocabulary = nullptr;
  /// Reads the model summary at a path, once a path. read_runs() of datasets.hpp passes gpumem::read_summary.
  std::function<core::Result<model::ModelGraph>(const std::string& path)> read_summary = {};
  /// Reads the text of a model summary. read_runs() of datasets.hpp passes gpumem::parse_summary.
  std::function<core::Result<model::ModelGraph>(std::string_view text, const std::string& name)> parse_summary = {};
  /// The folder with the summaries of models that a file of runs only names.
  std::string summaries = {};
  /// Reads a training program's own settings (JSON) for a job on so many GPUs. The readers of trainers' files are not
  /// part of this library; the command line passes them.
  std::function<core::Result<ToldJob>(std::string_view settings, std::int64_t gpus)> read_settings = {};
};

struct RunsFormat {
  std::string_view name;
  std::string_view description;  ///< where such a file comes from
  bool (*sniff)(const core::CsvTable& table);
  /// Errors are those of the whole file; what is wrong with one row is in its run.
  core::Result<MeasuredRuns> (*read)(const core::CsvTable& table, const RunsOptions& options);
};

/// Errors: malformed_input, with the first of the columns that the table does not have.
[[nodiscard]] core::Status needs_columns(const core::CsvTable& table, std::span<const std::string_view> columns);

/// The cell capacity_mib. Errors: malformed_input if it is there and less than 1.
[[nodiscard]] core::Status take_capacity(const core::CsvCells& cells, MeasuredRun& run);

/// The release that a row's software has of a program: "unsloth 2024.11.9 torch 2.8.0+cu126."; zeros where it does not
/// say one. Older releases say none.
using Release = std::array<std::int64_t, 3>;
[[nodiscard]] Release release_of(std::string_view software, std::string_view name);
/// The release of transformers that they name: "trl 1.9.0, transformers 5.17.0". Nothing: they name none.
[[nodiscard]] std::optional<model::Transformers> transformers_of(std::string_view software);

/// Every form of a table of runs that gpumem reads.
[[nodiscard]] std::span<const RunsFormat* const> runs_formats();

/// Finds the form by the header and reads the table; `file` is for messages, and what its paths are relative to.
/// Errors: malformed_input; unknown_format if the header is of no known form.
[[nodiscard]] core::Result<MeasuredRuns> parse_runs(std::string_view text, const RunsOptions& options,
                                                    std::string_view file = {});

/// parse_runs() of a file. Errors: also unreadable_file.
[[nodiscard]] core::Result<MeasuredRuns> read_runs(const std::string& path, const RunsOptions& options);

}  // namespace gpumem::datasets
