#include "gpumem_datasets/runs_tables.hpp"

#include <filesystem>
#include <utility>

#include "gpumem/job/job_options.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace runs_csv_detail {

constexpr std::array<std::string_view, 8> kColumns = {"summary",   "batch_size", "input", "seq_length",
                                                      "optimizer", "precision",  "gpu",   "measured_mib"};

/// Takes the value that the cell names into `to`; an empty cell changes nothing.
template <typename Enum, std::size_t Count>
core::Status choose(const core::CsvCells& cells, std::string_view column,
                    const std::array<model::Named<Enum>, Count>& list, Enum& to) {
  const std::string_view cell = cells.text(column);
  if (cell.empty()) return core::Done{};
  if (const auto value = model::value_of(list, cell)) {
    to = *value;
    return core::Done{};
  }
  std::string names;
  for (const auto& row : list) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return cells.malformed(std::string(column) + " is " + core::quoted(cell) + "; choose one of " + names);
}

/// Takes what a cell of a column holds, unless it is empty.
template <typename Value, typename Target>
core::Status take(const core::Result<std::optional<Value>>& cell, Target& to) {
  if (!cell) return cell.error();
  if (*cell) to = **cell;
  return core::Done{};
}

core::Status take_status(const core::CsvCells& cells, bool& out_of_memory) {
  const std::string status = core::lower_case(cells.text("status"));
  out_of_memory = status == "oom" || status == "out_of_memory" || status == "oom_crash";
  if (out_of_memory || status.empty() || status == "ok" || status == "successful") return core::Done{};
  return cells.malformed("status is " + core::quoted(status) + "; it must be ok, or oom for a run that did not fit");
}

/// Runs the steps until one fails.
template <typename... Steps>
core::Status all_of(Steps... steps) {
  core::Status status = core::Done{};
  (void)((status = steps(), status.has_value()) && ...);
  return status;
}

/// The options of a job, and what no option says.
core::Status take_settings(const core::CsvCells& cells, model::TrainingJob& training) {
  job::JobRequest request;
  core::Status taken = job::take_option_cells(cells, request);
  training = std::move(request.training);
  return all_of([&] { return taken; }, [&] { return take(cells.flag("summary_pass"), training.summary_pass); });
}

/// A share of 1.
core::Status take_share(const core::CsvCells& cells, std::string_view column, std::optional<double>& to) {
  const auto share = cells.number(column);
  if (!share) return share.error();
  if (*share && **share > 1.0) {
    return cells.malformed(std::string(column) + " is " + core::quoted(cells.text(column)) +
                           "; it must be a share, from 0 to 1");
  }
  to = *share;
  return core::Done{};
}

core::Status take_counters(const core::CsvCells& cells, Counters& counters) {
  return all_of([&] { return take_share(cells, "gpu_utilisation", counters.gpu_utilisation); },
                [&] { return take_share(cells, "gract", counters.gract); },
                [&] { return take_share(cells, "smact", counters.smact); },
                [&] { return take_share(cells, "smocc", counters.smocc); },
                [&] { return take_share(cells, "fp32", counters.fp32); });
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  return all_of([&] { return take(cells.number("measured_mib"), run.measured_mib); },
                [&] { return take_capacity(cells, run); }, [&] { return take(cells.whole("gpus"), run.gpus); },
                [&] { return choose(cells, "figure", kFigures, run.figure); },
                [&] { return take_status(cells, run.out_of_memory); },
                [&] { return take_counters(cells, run.counters); });
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        model::TrainingJob& job) {
  const std::string_view summary = cells.text("summary");
  if (summary.empty()) return cells.malformed("names no summary");
  auto graph = shelf.take((folder / summary).lexically_normal().string());
  if (!graph) return graph.error();
  job.graph = *std::move(graph);
  core::Status valid = model::validate(job);
  if (!valid) return cells.malformed(valid.error().message);
  return valid;
}

/// A column with the estimates of another estimator.
struct PublishedColumn {
  std::string column;
  std::string estimator;
};

std::vector<PublishedColumn> published_columns(const core::CsvTable& table) {
  constexpr std::string_view kBegin = "published_";
  std::vector<PublishedColumn> all;
  for (const std::string& column : table.header) {
    for (const std::string_view end : {"_mib", "_mb"}) {
      if (!column.starts_with(kBegin) || !column.ends_with(end) || column.size() <= kBegin.size() + end.size())
        continue;
      all.push_back({column, column.substr(kBegin.size(), column.size() - kBegin.size() - end.size())});
      break;
    }
  }
  return all;
}

core::Status take_published(const core::CsvCells& cells, const std::vector<PublishedColumn>& columns,
                            MeasuredRun& run) {
  for (const PublishedColumn& column : columns) {
    const auto expected = cells.number(column.column);
    if (!expected) return expected.error();
    if (*expected) run.published.push_back({column.estimator, *expected, {}, {}});
  }
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const std::filesystem::path& folder,
                   const std::vector<PublishedColumn>& published, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text(cells.text("name").empty() ? "summary" : "name");
  run.gpu = cells.text("gpu");
  const core::Status read =
      all_of([&] { return take_measurement(cells, run); }, [&] { return take_published(cells, published, run); },
             [&] { return take_settings(cells, run.job); }, [&] { return take_model(cells, folder, shelf, run.job); });
  if (!read) run.error = read.error();
  if (run.gpus < 1) run.error = cells.malformed("gpus is " + std::to_string(run.gpus) + "; it must be at least 1");
  return run;
}

bool sniff(const core::CsvTable& table) {
  return table.has("summary") && table.has("batch_size") && table.has("measured_mib");
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  if (const core::Status whole = needs_columns(table, kColumns); !whole) return whole.error();
  SummaryShelf shelf(options);
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  MeasuredRuns all;
  all.format = runs_csv().name;
  const std::vector<PublishedColumn> published = published_columns(table);
  for (const core::CsvRow& row : table.rows) {
    all.runs.push_back(run_of(core::CsvCells(table, row), folder, published, shelf));
  }
  return all;
}

}  // namespace runs_csv_detail
}  // namespace

const RunsFormat& runs_csv() {
  static constexpr RunsFormat kFormat = {"runs", "a table that names a summary a row (summary,batch_size,...)",
                                         &runs_csv_detail::sniff, &runs_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
