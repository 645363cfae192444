#include "gpumem_datasets/runs_tables.hpp"

#include <array>

#include "gpumem/core/bytes.hpp"

namespace gpumem::datasets {

namespace {

constexpr std::string_view kList = "Activations-Params";
constexpr std::string_view kMeasured = "Max GPU Memory (MiB)";

/// The value after the first "key:" of "input:25_output:1_depth:7_...", up to the next '_'; empty if there is none.
std::string_view setting(std::string_view configuration, std::string_view key) {
  for (std::size_t at = configuration.find(key); at != std::string_view::npos; at = configuration.find(key, at + 1)) {
    const bool begins = at == 0 || configuration[at - 1] == '_';
    const std::size_t colon = at + key.size();
    if (!begins || colon >= configuration.size() || configuration[colon] != ':') continue;
    return configuration.substr(colon + 1, configuration.find('_', colon) - colon - 1);
  }
  return {};
}

/// The net as its row describes it; views the row.
core::Result<GpumemnetNet> net_of(const core::CsvCells& cells) {
  const std::string_view configuration = cells.text("Filename");
  GpumemnetNet net;
  net.architecture = setting(configuration, "arch");
  net.dropout = core::parse_number(setting(configuration, "dropout")).value_or(0.0);
  const bool images = !setting(configuration, "input_channels").empty();
  const auto channels = core::parse_whole(setting(configuration, images ? "input_channels" : "input"));
  const auto side = images ? core::parse_whole(setting(configuration, "input_size")) : 0;
  if (!channels || !side || (images && *side < 1)) {
    return cells.malformed("Filename " + core::quoted(configuration) + " does not say the size of the net's input");
  }
  net.channels = *channels;
  net.side = *side;
  auto layers = parse_layer_list(cells.text(kList));
  if (!layers) return cells.malformed(layers.error().message);
  net.layers = *std::move(layers);
  return net;
}

/// The list's sums must be what the row prints, or the list is cut.
core::Status check_totals(const core::CsvCells& cells, const GpumemnetNet& net) {
  const auto parameters = cells.whole("Total Parameters");
  if (!parameters) return parameters.error();
  const auto activations = cells.whole("Total Activations");
  if (!activations) return activations.error();
  core::Checked listed_parameters = 0;
  core::Checked listed_activations = 0;
  for (const ListedLayer& layer : net.layers) {
    listed_parameters += layer.parameters;
    if (net.side == 0 || layer.type != "Softmax") listed_activations += layer.activations;
  }
  if (*parameters && listed_parameters.value() != **parameters) {
    return cells.malformed("the parameters of its layers do not sum to its Total Parameters");
  }
  if (*activations && listed_activations.value() != **activations) {
    return cells.malformed("the activations of its layers do not sum to its Total Activations");
  }
  return core::Done{};
}

core::Status take_job(const core::CsvCells& cells, const RunsOptions& options, model::TrainingJob& job) {
  if (options.vocabulary == nullptr) {
    return core::Error{core::ErrorCode::invalid_argument, "RunsOptions names no ops to build nets of", {}};
  }
  const auto batch = cells.whole("Batch Size");
  if (!batch) return batch.error();
  const auto net = net_of(cells);
  if (!net) return net.error();
  const core::Status totals = check_totals(cells, *net);
  if (!totals) return totals.error();
  auto graph = build_net(*net, *options.vocabulary, cells.file(), cells.line());
  if (!graph) return graph.error();
  constexpr std::int64_t kSamples = 4096;
  job = model::TrainingJob(*std::move(graph), batch->value_or(0));
  job.samples_per_epoch = kSamples;
  job.summary_pass = true;
  job.software = "eager-loading";
  core::Status valid = model::validate(job);
  if (!valid) return cells.malformed(valid.error().message);
  return valid;
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const std::string_view status = cells.text("Status");
  run.out_of_memory = status == "OOM_CRASH";
  if (!run.out_of_memory && !status.empty() && status != "SUCCESSFUL") {
    return cells.malformed("Status is " + core::quoted(status) + "; it must be SUCCESSFUL or OOM_CRASH");
  }
  const auto measured = cells.number(kMeasured);
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  return core::Done{};
}

/// Columns of averages, each with what 1 is in it.
struct CounterColumn {
  std::string_view name;
  std::optional<double> Counters::*counter;
  double whole;
};
constexpr std::array<CounterColumn, 5> kCounterColumns = {{{"Avg GPUTL", &Counters::gpu_utilisation, 100.0},
                                                           {"Avg GRACT", &Counters::gract, 1.0},
                                                           {"Avg SMACT", &Counters::smact, 1.0},
                                                           {"Avg SMOCC", &Counters::smocc, 1.0},
                                                           {"Avg FP32A", &Counters::fp32, 1.0}}};

constexpr double kNotRead = -1.0;

/// -1 means a counter that was not read. A run that was out of memory was counted until it failed, while it began: that
/// is no average of a training.
core::Status take_counters(const core::CsvCells& cells, MeasuredRun& run) {
  for (const CounterColumn& column : kCounterColumns) {
    const std::string_view text = cells.text(column.name);
    if (run.out_of_memory || text.empty() || core::parse_number(text) == kNotRead) continue;
    const auto read = cells.number(column.name);
    if (!read) return read.error();
    if (**read > column.whole) return cells.malformed(std::string(column.name) + " is beyond 100 %");
    run.counters.*(column.counter) = **read / column.whole;
  }
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const RunsOptions& options) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text("Filename");
  run.gpu = "a100-40gb";
  core::Status read = take_measurement(cells, run);
  if (read) read = take_counters(cells, run);
  if (read) read = take_job(cells, options, run.job);
  if (!read) run.error = read.error();
  return run;
}

bool sniff(const core::CsvTable& table) {
  return table.has("Filename") && table.has(kList) && table.has("Batch Size") && table.has(kMeasured);
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  MeasuredRuns all;
  all.format = gpumemnet_csv().name;
  for (const core::CsvRow& row : table.rows) all.runs.push_back(run_of(core::CsvCells(table, row), options));
  return all;
}

}  // namespace

const RunsFormat& gpumemnet_csv() {
  static constexpr RunsFormat kFormat = {"gpumemnet", "GPUMemNet's data sets (Filename,...,Activations-Params,...)",
                                         &sniff, &read};
  return kFormat;
}

}  // namespace gpumem::datasets
