#include "gpumem_datasets/runs_tables.hpp"

#include <algorithm>

#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace xmem_csv_detail {

constexpr double kMib = 1024.0 * 1024.0;

/// The profile of a card as the table names it: "RTX 3060" is rtx3060, an alias of rtx3060-12gb.
std::string profile_of(std::string_view card) {
  std::string name = core::lower_case(card);
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  // "A100-SXM4-40GB": the set has no other A100.
  return name.starts_with("a100") ? "a100-40gb" : name;
}

bool is_transformer(const core::CsvCells& cells) {
  const std::string_view set = cells.text("set");
  if (set.ends_with("transformer")) return true;
  if (set.ends_with("cnn")) return false;
  const std::string_view model = cells.text("model");
  return model.find('/') != std::string_view::npos || core::lower_case(model).starts_with("t5");
}

core::Status take_zero_grad(const core::CsvCells& cells, model::ZeroGrad& to) {
  const std::string_view position = cells.text("zero_grad_position_or_variant");
  if (position.empty() || position == "null" || position == "0") {
    to = model::ZeroGrad::step_start;
  } else if (position == "1") {
    to = model::ZeroGrad::before_backward;
  } else if (position == "2") {
    to = model::ZeroGrad::step_end;
  } else {
    return cells.malformed("zero_grad_position_or_variant is " + core::quoted(position) +
                           "; it must be null, 0, 1 or 2");
  }
  return core::Done{};
}

core::Status take_job(const core::CsvCells& cells, model::TrainingJob& job) {
  const auto optimizer = model::value_of(model::kOptimizers, core::lower_case(cells.text("optimizer")));
  if (!optimizer) return cells.malformed("there is no optimizer " + core::quoted(cells.text("optimizer")));
  job.optimizer = *optimizer;
  const auto batch = cells.whole("batch_size");
  if (!batch) return batch.error();
  job.batch_size = batch->value_or(0);
  constexpr std::int64_t kImage = 86;
  constexpr std::int64_t kTokens = 128;
  if (is_transformer(cells)) {
    job.sequence_length = kTokens;
    // DataCollatorForLanguageModeling pads lines of different lengths; transformers 4.51 (paper_container/config.py).
    job.padding = true;
    job.transformers = model::Transformers::v4_51;
  } else {
    job.input_shape = {3, kImage, kImage};
  }
  return take_zero_grad(cells, job.zero_grad);
}

core::Status take_model(const core::CsvCells& cells, const std::string& folder, SummaryShelf& shelf,
                        model::TrainingJob& job) {
  if (folder.empty()) {
    return cells.malformed("names a model without its summary; name the folder with the summaries (`summaries`)");
  }
  std::string stem(cells.text("model"));
  std::replace(stem.begin(), stem.end(), '/', '_');
  const std::string path = folder + "/" + stem;
  auto graph = shelf.take(path + ".json");
  if (!graph && graph.error().code == core::ErrorCode::unreadable_file) graph = shelf.take(path + ".txt");
  if (!graph && graph.error().code == core::ErrorCode::unreadable_file) {
    return core::Error{core::ErrorCode::unreadable_file, "there is no summary " + stem + ".json or .txt",
                       core::Place{folder, 0, {}}};
  }
  if (!graph) return graph.error();
  job.graph = *std::move(graph);
  core::Status valid = model::validate(job);
  if (!valid) return cells.malformed(valid.error().message);
  return valid;
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto failed = cells.flag("real_oom");
  if (!failed) return failed.error();
  run.out_of_memory = failed->value_or(false);
  const auto bytes = cells.number("ground_truth_peak_bytes");
  if (!bytes) return bytes.error();
  if (*bytes && !run.out_of_memory) run.measured_mib = **bytes / kMib;
  return core::Done{};
}

/// What this estimator said about the run; nothing if it said nothing.
core::Result<std::optional<PublishedEstimate>> published_by(const std::string& name, const core::CsvCells& cells) {
  using Published = std::optional<PublishedEstimate>;
  if (cells.text(name + "_bytes").starts_with('-')) return Published();
  const auto bytes = cells.number(name + "_bytes");
  if (!bytes) return bytes.error();
  const auto predicted = cells.flag(name + "_pred_oom");
  if (!predicted) return predicted.error();
  const auto failed = cells.flag(name + "_fail_when_capped");
  if (!failed) return failed.error();
  if (!*bytes && !*predicted) return Published();
  PublishedEstimate estimate = {name, {}, *predicted, *failed};
  if (*bytes && !predicted->value_or(false)) estimate.expected_mib = **bytes / kMib;
  return Published(std::move(estimate));
}

core::Status take_published(const core::CsvCells& cells, MeasuredRun& run) {
  for (const char* name : {"xmem", "dnnmem", "schedtune", "llmem"}) {
    auto estimate = published_by(name, cells);
    if (!estimate) return estimate.error();
    if (*estimate) run.published.push_back(*std::move(*estimate));
  }
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const RunsOptions& options, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = std::string(cells.text("model")) + " " + std::string(cells.text("optimizer")) + " " +
             std::string(cells.text("batch_size"));
  run.gpu = profile_of(cells.text("gpu"));
  run.figure = Figure::growth;
  core::Status read = take_measurement(cells, run);
  if (read) read = take_published(cells, run);
  if (read) read = take_job(cells, run.job);
  if (read) read = take_model(cells, options.summaries, shelf, run.job);
  if (!read) run.error = read.error();
  return run;
}

bool sniff(const core::CsvTable& table) {
  return table.has("model") && table.has("real_oom") && table.has("ground_truth_peak_bytes");
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  SummaryShelf shelf(options);
  MeasuredRuns all;
  all.format = xmem_csv().name;
  for (const core::CsvRow& row : table.rows) {
    all.runs.push_back(run_of(core::CsvCells(table, row), options, shelf));
  }
  return all;
}

}  // namespace xmem_csv_detail
}  // namespace

const RunsFormat& xmem_csv() {
  static constexpr RunsFormat kFormat = {"xmem", "xMem's published runs (model,optimizer,...,ground_truth_peak_bytes)",
                                         &xmem_csv_detail::sniff, &xmem_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
