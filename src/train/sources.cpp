#include "sources.hpp"

#include <charconv>

#include "gpumem/all.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem_datasets/datasets.hpp"
#include "hash.hpp"

namespace gpumem::train {

namespace {

using core::Error;
using core::ErrorCode;

std::vector<std::string_view> parted(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(mark, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// Measured runs.

core::Result<Row> with_distances(Row row, const datasets::MeasuredRun& run, const Labelling& labelling) {
  // Left out later: a run that was out of memory measured no need.
  if (run.out_of_memory) return row;
  const auto replayed = labelling.replayed(run.job);
  if (!replayed) return replayed.error();
  auto distances = distances_of(*labelling.model, row.features, *replayed, row.measured_mib);
  if (!distances) return std::move(distances).error();
  row.targets = *std::move(distances);
  row.context_mib = replayed->context;
  row.reserved_mib = replayed->reserved;
  row.capacity_mib = labelling.capacity_mib;
  return row;
}

/// What a head of bins sorts: memory, or the counter that it names.
double label_of(const datasets::MeasuredRun& run, const ml::Head& head) {
  const CounterOf counter = head.of.empty() ? nullptr : counter_named(head.of);
  if (counter == nullptr) return run.measured_mib.value_or(0.0);
  return (run.counters.*counter).value_or(0.0);
}

core::Result<Row> row_of(const datasets::MeasuredRun& run, const std::string& source, const Labelling& labelling) {
  if (run.error) return *run.error;
  core::Result<Row> row = labelling.featurise(run.job);
  if (!row) return row;
  row->name = run.name;
  row->source = source;
  row->group = net_of(*run.job.graph);
  row->measured_mib = label_of(run, labelling.model->head);
  row->out_of_memory = run.out_of_memory;
  if (labelling.model->head.names.empty()) return row;
  if (labelling.model->head.spread > 0.0) return with_distances(*std::move(row), run, labelling);
  auto targets = labelling.targets(run);
  if (!targets) return std::move(targets).error();
  row->targets = *std::move(targets);
  return row;
}

void take(core::Result<Row> row, ml::NetKind wanted, Source& source) {
  if (!row) {
    ++source.failed;
    if (!source.first_failure) source.first_failure = std::move(row).error();
    return;
  }
  const bool other = wanted != ml::NetKind::any && row->kind != ml::NetKind::any && row->kind != wanted;
  if (other) ++source.other_nets;
  else source.rows.push_back(*std::move(row));
}

// Tables of features.

/// One row of the table, as far as it can be read; keeps the first error.
class FeatureCells {
 public:
  FeatureCells(const core::CsvTable& table, const core::CsvRow& row) : cells_(table, row) {}

  [[nodiscard]] std::string_view text(const std::string& column) const { return cells_.text(column); }
  double number(const std::string& column) { return number(column, cells_.text(column)); }
  std::vector<double> layer(std::string_view text) {
    std::vector<double> figures;
    for (const std::string_view part : parted(text, ' ')) figures.push_back(number("sequence", part));
    return figures;
  }
  bool flag(const std::string& column) {
    const auto read = cells_.flag(column);
    if (!read && !error_) error_ = read.error();
    return read && read->value_or(false);
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  double number(const std::string& column, std::string_view text) {
    const auto read = number_of<double>(text);
    if (!read && !error_) error_ = cells_.malformed(column + " is " + core::quoted(text) + ", not a number");
    return read.value_or(0.0);
  }

  core::CsvCells cells_;
  std::optional<Error> error_;
};

core::Result<Row> row_of(const core::CsvTable& table, const core::CsvRow& line, const ml::ModelConfig& model) {
  FeatureCells cells(table, line);
  Row row;
  row.name = cells.text("name");
  row.source = table.file;
  Hash group;
  group.add(cells.text("group"));
  row.group = group.value();
  row.out_of_memory = cells.flag("out_of_memory");
  if (!row.out_of_memory || !cells.text("measured_mib").empty()) row.measured_mib = cells.number("measured_mib");
  for (const ml::FeatureSpec& feature : model.features) row.features.push_back(cells.number(feature.name));
  for (const std::string& name : model.head.names) row.targets.push_back(cells.number("target " + name));
  const std::string_view sequence = model.sequence.empty() ? "" : cells.text("sequence");
  if (!sequence.empty()) {
    for (const std::string_view layer : parted(sequence, ';')) row.sequence.push_back(cells.layer(layer));
  }
  if (cells.error()) return *cells.error();
  return row;
}

core::Status check_columns(const core::CsvTable& table, const ml::ModelConfig& model) {
  if (model.head.spread > 0.0) {
    return Error{ErrorCode::invalid_argument,
                 "is a table of features; a mixture is trained on tables of runs, which are replayed",
                 core::Place{table.file, 1, {}}};
  }
  std::vector<std::string> needed;
  for (const ml::FeatureSpec& feature : model.features) needed.push_back(feature.name);
  for (const std::string& name : model.head.names) needed.push_back("target " + name);
  if (!model.sequence.empty()) needed.emplace_back("sequence");
  for (const std::string& column : needed) {
    if (table.has(column)) continue;
    return Error{ErrorCode::malformed_input, "lacks the column " + core::quoted(column) + " that the recipe names",
                 core::Place{table.file, 1, {}}};
  }
  return core::Done{};
}

}  // namespace

Source rows_of(const datasets::MeasuredRuns& runs, const std::string& name, const Labelling& labelling) {
  Source source;
  source.name = name;
  const ml::Head& head = labelling.model->head;
  const bool bins = !head.edges_mib.empty() && head.of.empty();
  for (const datasets::MeasuredRun& run : runs.runs) {
    if (run.gpus != 1) ++source.several_gpus;
    else if (run.out_of_memory && !bins) ++source.out_of_memory;
    else if (!run.error && !is_measured(run, head)) ++source.unmeasured;
    else take(row_of(run, name, labelling), labelling.model->nets, source);
  }
  return source;
}

bool is_feature_table(const core::CsvTable& table) { return table.has("group") && table.has("measured_mib"); }

core::Result<Source> rows_of(const core::CsvTable& table, const ml::ModelConfig& model) {
  core::Status status = check_columns(table, model);
  if (!status) return std::move(status).error();
  Source source;
  source.name = table.file;
  for (const core::CsvRow& line : table.rows) {
    auto row = row_of(table, line, model);
    if (!row) return std::move(row).error();
    source.rows.push_back(*std::move(row));
  }
  return source;
}

core::Result<Source> read_table(const std::string& path, const std::string& summaries, const Labelling& labelling) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  const auto table = core::parse_csv(*text, path);
  if (!table) return table.error();
  if (is_feature_table(*table)) return rows_of(*table, *labelling.model);
  const auto runs = datasets::read_runs(path, summaries);
  if (!runs) return runs.error();
  return rows_of(*runs, path, labelling);
}

core::Result<std::optional<RandomSource>> parse_random_source(std::string_view word) {
  if (!word.starts_with("random:")) return std::optional<RandomSource>();
  auto parts = parted(word, ':');
  constexpr std::size_t kParts = 5;
  if (parts.size() + 1 == kParts) parts.emplace_back("0");
  const bool whole = parts.size() == kParts;
  parts.resize(kParts);
  const auto kind = model::value_of(ml::kNetKinds, parts[1]);
  const auto count = number_of<std::int64_t>(parts[2]);
  const auto seed = number_of<std::uint64_t>(parts[3]);
  const auto bin = number_of<double>(parts[4]);
  if (!whole || !kind || !count || *count < 1 || !seed || !bin || !(*bin >= 0.0)) {
    return Error{ErrorCode::invalid_argument,
                 core::quoted(word) +
                     " must be of the form random:KIND:COUNT:SEED[:BIN_MIB], KIND one of mlp, cnn, transformer, any",
                 {}};
  }
  return std::optional<RandomSource>({*kind, *count, *seed, *bin});
}

}  // namespace gpumem::train
