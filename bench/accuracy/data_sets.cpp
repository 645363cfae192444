#include "data_sets.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/ml/features.hpp"

namespace gpumem::accuracy {

namespace {

namespace fs = std::filesystem;
using datasets::MeasuredRun;
using datasets::MeasuredRuns;

bool is_measured(const MeasuredRun& run) {
  return run.out_of_memory || run.error || run.measured_mib.value_or(0.0) > 0.0;
}

/// The kind of nets that the job's is; nothing where the model says too little.
std::optional<ml::NetKind> kind_of(const MeasuredRun& run) {
  if (run.error) return std::nullopt;
  analysis::Analysis analysis(run.job);
  const auto facts = ml::facts_of(analysis);
  if (!facts) return std::nullopt;
  return facts->kind;
}

/// Who made the runs, as far as the table shows it.
std::string source_of(const MeasuredRuns& table, const TableFile& file) {
  if (!file.measured_folder.empty()) return "bench/measured/" + file.measured_folder;
  if (table.format != "runs") return table.format;
  // CARMA's workloads come with what GPUMemNet said about them.
  const bool carma = std::any_of(table.runs.begin(), table.runs.end(), [](const MeasuredRun& run) {
    return std::any_of(run.published.begin(), run.published.end(),
                       [](const datasets::PublishedEstimate& said) { return said.estimator == "gpumemnet"; });
  });
  return carma ? "carma" : "";
}

/// The last two parts of the path: tables are often called alike.
std::string short_name(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  const fs::path folder = whole.parent_path().filename();
  return folder.empty() ? whole.filename().string() : (folder / whole.filename()).generic_string();
}

const KnownSet* find_known(const DataSet& set) {
  for (const KnownSet& known : known_sets()) {
    if (known.source == set.source && (!known.kind || known.kind == set.kind)) return &known;
  }
  return nullptr;
}

std::optional<datasets::Figure> figure_of(const std::vector<const MeasuredRun*>& runs) {
  const auto other = [&](const MeasuredRun* run) { return run->figure != runs.front()->figure; };
  if (runs.empty() || std::any_of(runs.begin(), runs.end(), other)) return std::nullopt;
  return runs.front()->figure;
}

void add(DataSet& set, const MeasuredRun& run) {
  if (!is_measured(run)) {
    ++set.without_measurement;
    return;
  }
  if (run.gpus != 1) {
    ++set.several_gpus;
    return;
  }
  set.runs.push_back(&run);
  if (std::find(set.gpus.begin(), set.gpus.end(), run.gpu) == set.gpus.end()) set.gpus.push_back(run.gpu);
}

/// The runs of a table, split by the kind of nets if it has many of several kinds.
std::vector<DataSet> sets_of(const MeasuredRuns& table, const TableFile& file, const Data& data) {
  constexpr std::size_t kMany = 20;
  std::vector<std::optional<ml::NetKind>> kinds;
  std::map<ml::NetKind, std::size_t> count;
  for (const MeasuredRun& run : table.runs) {
    const auto gpu = data.gpus.find(run.gpu);
    kinds.push_back(gpu == data.gpus.end() ? std::nullopt : kind_of(run));
    if (kinds.back()) ++count[*kinds.back()];
  }
  std::optional<ml::NetKind> most;
  std::vector<DataSet> sets;
  for (const auto& [kind, runs] : count) {
    if (!most || runs > count[*most]) most = kind;
    if (runs >= kMany) sets.push_back({.kind = kind});
  }
  if (sets.empty()) sets.push_back({.kind = most});
  const auto home = std::find_if(sets.begin(), sets.end(), [&](const DataSet& set) { return set.kind == most; });
  for (std::size_t index = 0; index < kinds.size(); ++index) {
    auto set = std::find_if(sets.begin(), sets.end(), [&](const DataSet& each) { return each.kind == kinds[index]; });
    add(set == sets.end() ? *home : *set, table.runs[index]);
  }
  for (DataSet& set : sets) {
    set.name = short_name(file.path);
    if (sets.size() > 1) set.name += ", " + std::string(plural_of(set.kind));
    set.source = source_of(table, file);
    set.figure = figure_of(set.runs);
    std::sort(set.gpus.begin(), set.gpus.end());
    set.known = find_known(set);
  }
  std::erase_if(sets, [](const DataSet& set) { return set.runs.empty(); });
  return sets;
}

Result<core::Done> take_gpus(const MeasuredRuns& table, std::map<std::string, GpuProfile>& gpus) {
  for (const MeasuredRun& run : table.runs) {
    if (run.error || run.gpu.empty() || gpus.contains(run.gpu)) continue;
    auto profile = find_profile(run.gpu);
    if (!profile) return profile.error();
    gpus.emplace(run.gpu, *std::move(profile));
  }
  return core::Done{};
}

}  // namespace

const std::vector<KnownSet>& known_sets() {
  using ml::NetKind;
  static constexpr std::string_view kXmemNote =
      "The estimates of xMem and DNNMem hold the CUDA context, measured on the target GPU, which the measured figure "
      "leaves out.";
  static const std::vector<KnownSet> kAll = {
      {"gpumemnet", NetKind::mlp, "MLPs of GPUMemNet's set", "A100-40GB, PyTorch 2.x"},
      {"gpumemnet", NetKind::cnn, "CNNs of GPUMemNet's set", "A100-40GB, PyTorch 2.x"},
      {"gpumemnet", NetKind::transformer, "Transformers of GPUMemNet's set", "A100-40GB, PyTorch 2.x"},
      {"carma",
       {},
       "single-GPU runs of CARMA's workloads (VGG-16, ResNet, MobileNetV2, BERT)",
       "A100-40GB",
       "GPUMemNet's published estimate is the upper edge of its bin, which counts as the bin above: its share of right "
       "bins says nothing."},
      {"xmem", NetKind::cnn, "CNNs of xMem's set", "RTX 3060 and 4060, PyTorch 2.6", kXmemNote},
      {"xmem", NetKind::transformer, "Transformers of xMem's set", "RTX 3060 and 4060, PyTorch 2.6", kXmemNote},
  };
  return kAll;
}

std::string_view plural_of(std::optional<ml::NetKind> kind) {
  constexpr std::array<std::string_view, 4> kNames = {"MLPs", "CNNs", "Transformers", "runs"};
  return kNames.at(static_cast<std::size_t>(kind.value_or(ml::NetKind::any)));
}

std::vector<std::string> tables_below(const std::string& folder) {
  std::vector<std::string> all;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() != ".csv") continue;
    const auto text = core::read_file(at->path().string());
    if (!text) continue;
    // Only the header tells what a table is.
    const auto header = core::parse_csv(std::string_view(*text).substr(0, text->find('\n')));
    const auto formats = datasets::runs_formats();
    const bool known = header && std::any_of(formats.begin(), formats.end(), [&](const datasets::RunsFormat* format) {
                         return format->sniff(*header);
                       });
    if (known) all.push_back(at->path().generic_string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

Result<Data> read_data(const std::vector<TableFile>& tables, const std::string& summaries) {
  Data data;
  for (const TableFile& file : tables) {
    auto table = datasets::read_runs(file.path, summaries);
    if (!table) return table.error();
    const auto taken = take_gpus(*table, data.gpus);
    if (!taken) return Error(taken.error()).in_file(file.path);
    data.tables.push_back(std::make_unique<const MeasuredRuns>(*std::move(table)));
    for (DataSet& set : sets_of(*data.tables.back(), file, data)) data.sets.push_back(std::move(set));
  }
  return data;
}

}  // namespace gpumem::accuracy
