#include "readme.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "cells.hpp"
#include "report.hpp"

namespace gpumem::accuracy {

namespace {

using datasets::Accuracy;
using datasets::CappedAccuracy;

constexpr std::string_view kReplay = "replay";
constexpr std::string_view kRunsTable = "runs";
constexpr std::string_view kCorrected = "replay-corrected";
constexpr std::size_t kFew = 100;  ///< of fewer runs the worst is told, of more the 99th percentile

std::string count(std::int64_t value) { return whole(static_cast<double>(value)); }

const Verdict* find(const SetVerdicts& verdicts, std::string_view estimator) {
  for (const Verdict& verdict : verdicts.verdicts) {
    if (verdict.estimator == estimator && !verdict.published) return &verdict;
  }
  return nullptr;
}

/// The first set that is the known one of this source and kind.
const SetVerdicts* find(const std::vector<SetVerdicts>& all, const KnownSet& known) {
  for (const SetVerdicts& verdicts : all) {
    if (verdicts.set->known == &known) return &verdicts;
  }
  return nullptr;
}

const KnownSet& known_set(std::string_view source, std::optional<ml::NetKind> kind) {
  const std::vector<KnownSet>& all = known_sets();
  return *std::find_if(all.begin(), all.end(),
                       [&](const KnownSet& known) { return known.source == source && known.kind == kind; });
}

/// The name of another's estimator as its authors write it.
std::string title_of(const std::string& estimator) {
  struct Title {
    std::string_view name;
    std::string_view title;
  };
  constexpr std::array<Title, 7> kTitles = {{{"xmem", "xMem"},
                                             {"dnnmem", "DNNMem"},
                                             {"schedtune", "SchedTune"},
                                             {"llmem", "LLMem"},
                                             {"horus", "Horus"},
                                             {"faketensor", "FakeTensor"},
                                             {"gpumemnet", "GPUMemNet"}}};
  for (const Title& title : kTitles) {
    if (title.name == estimator) return std::string(title.title);
  }
  return plain(estimator);
}

void append(std::string& text, const std::string& part) { text += (text.empty() ? "" : "; ") + part; }

/// "`upper` covers 97.5 % at 1.007 times the measured"
std::string covers(const Accuracy& accuracy) {
  const std::string share = accuracy.covered == 1.0 ? "all" : percent(accuracy.covered, 1);
  return share + " at " + decimal(accuracy.upper_ratio, 3);
}

/// What the others said about the same runs: "xMem 1.62 %, 2.84 %".
std::string others(const SetVerdicts& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts.verdicts) {
    const Accuracy& accuracy = verdict.accuracy;
    if (!verdict.published || accuracy.fitted == 0) continue;
    text += (text.empty() ? "as published for these runs: " : ", ") + title_of(verdict.estimator) + " " +
            percent(accuracy.relative_error.median) + ", " + percent(accuracy.relative_error.mean);
    const Verdict* replay = find(verdicts, kReplay);
    if (replay != nullptr && accuracy.fitted != replay->accuracy.fitted) text += " (of " + count(accuracy.fitted) + ")";
  }
  return text;
}

/// Whether the runs reach more than one class of 8,000 MiB.
bool has_classes(const Verdict& verdict) {
  std::optional<int> first;
  for (const datasets::Judged& run : verdict.judged) {
    if (run.out_of_memory) continue;
    const int here = datasets::memory_class(run.measured_mib);
    if (first && *first != here) return true;
    first = here;
  }
  return false;
}

std::string beyond_the_error(const SetVerdicts& verdicts, const Verdict& replay) {
  const Accuracy& accuracy = replay.accuracy;
  std::string text;
  if (accuracy.fitted >= static_cast<std::int64_t>(kFew)) {
    append(text, "absolute: median " + whole(accuracy.absolute_error_mib.median) + " MiB, 99 % within " +
                     whole(accuracy.absolute_error_mib.p99) + " MiB");
  } else if (accuracy.worst) {
    const datasets::Judged& worst = replay.judged[*accuracy.worst];
    append(text, "worst " + percent(std::abs(worst.expected_mib - worst.measured_mib) / worst.measured_mib));
  }
  if (has_classes(replay)) append(text, "right class of 8,000 MiB " + percent(accuracy.right_class, 1));
  if (accuracy.out_of_memory > 0 || accuracy.false_alarms > 0) {
    append(text, "out of memory: " + count(accuracy.caught) + " of " + count(accuracy.out_of_memory) + " caught, " +
                     count(accuracy.false_alarms) + (accuracy.false_alarms == 1 ? " false alarm" : " false alarms") +
                     " in " + count(accuracy.fitted));
  }
  if (replay.ranged) append(text, "`upper` covers " + covers(accuracy) + " times the measured value on average");
  const std::string said = others(verdicts);
  if (!said.empty()) append(text, said);
  return text;
}

/// "944 CNNs of GPUMemNet's set that fitted, and 233 that did not, A100-40GB, PyTorch 2.x"
std::string runs_cell(const SetVerdicts& verdicts, const Verdict& replay, const std::string& what) {
  const Accuracy& accuracy = replay.accuracy;
  std::string text = count(accuracy.fitted) + " " + what;
  if (accuracy.out_of_memory > 0) text += " that fitted, and " + count(accuracy.out_of_memory) + " that did not";
  if (verdicts.set->known != nullptr) text += ", " + std::string(verdicts.set->known->where);
  return text;
}

ReadmeRow runs_row(const SetVerdicts* verdicts, const std::string& what) {
  const Verdict* replay = verdicts == nullptr ? nullptr : find(*verdicts, kReplay);
  if (replay == nullptr || replay->accuracy.fitted == 0) return {what, std::nullopt};
  const datasets::Spread& error = replay->accuracy.relative_error;
  return {what, row({runs_cell(*verdicts, *replay, what), std::string(text_of(verdicts->set->figure)),
                     percent(error.median) + ", " + percent(error.mean), beyond_the_error(*verdicts, *replay)})};
}

ReadmeTable runs_table(const std::vector<SetVerdicts>& all) {
  ReadmeTable table = {
      std::string(kRunsTable),
      row({"runs", "what was measured", "relative error: median, mean", "beyond the error"}) + rule(4, 4),
      {}};
  for (const SetVerdicts& verdicts : all) {
    if (verdicts.set->known != nullptr || verdicts.set->source.empty()) continue;
    table.rows.push_back(
        runs_row(&verdicts, std::string(plural_of(verdicts.set->kind)) + " of `" + verdicts.set->source + "`"));
  }
  for (const KnownSet& known : known_sets()) table.rows.push_back(runs_row(find(all, known), std::string(known.what)));
  return table;
}

std::string conserved(const CappedAccuracy& capped) {
  constexpr double kMibInGib = 1024.0;
  return decimal(capped.conserved_mib / kMibInGib, 2) + " GiB";
}

std::string capped_row(const std::string& who, const CappedAccuracy& capped) {
  return row({who, count(capped.runs), percent(capped.median_error), percent(capped.failure, 1),
              capped.failure_when_repeated ? percent(*capped.failure_when_repeated, 1) : "", conserved(capped)});
}

/// The rows of one set: ours under both caps, then what the table cites.
void add_capped(const SetVerdicts* verdicts, std::string_view kind, std::vector<ReadmeRow>& rows) {
  const auto add = [&](const std::string& who, const CappedAccuracy* capped) {
    const std::string key = std::string(kind) + ", " + who;
    rows.push_back({key, capped == nullptr ? std::nullopt : std::optional(capped_row(key, *capped))});
  };
  const Verdict* replay = verdicts == nullptr ? nullptr : find(*verdicts, kReplay);
  add("`replay`, given its expected figure", replay == nullptr ? nullptr : &replay->at_expected);
  add("`replay`, given `upper`", replay == nullptr ? nullptr : &replay->at_upper);
  for (const char* name : {"xmem", "dnnmem", "schedtune", "llmem"}) {
    const Verdict* said = nullptr;
    if (verdicts != nullptr) {
      for (const Verdict& verdict : verdicts->verdicts) {
        if (verdict.published && verdict.estimator == name && verdict.accuracy.fitted > 0) said = &verdict;
      }
      if (said == nullptr) continue;
    }
    add(title_of(name), said == nullptr ? nullptr : &said->at_expected);
  }
}

ReadmeTable xmem_table(const std::vector<SetVerdicts>& all) {
  ReadmeTable table = {"xmem", row({"xMem's runs", "runs", "MRE", "PEF", "PEF when repeated", "MCP"}) + rule(6, 1), {}};
  for (const ml::NetKind kind : {ml::NetKind::cnn, ml::NetKind::transformer}) {
    add_capped(find(all, known_set("xmem", kind)), plural_of(kind), table.rows);
  }
  return table;
}

double figure_of(const ml::ModelConfig& model, std::string_view name) {
  for (const auto& [key, value] : model.accuracy) {
    if (key == name) return value;
  }
  return 0.0;
}

bool has_figure(const ml::ModelConfig& model, std::string_view name) {
  return std::any_of(model.accuracy.begin(), model.accuracy.end(),
                     [&](const auto& each) { return each.first == name; });
}

std::string_view provenance_of(const ml::ModelConfig& model, std::string_view name) {
  for (const auto& [key, value] : model.provenance) {
    if (key == name) return value;
  }
  return {};
}

/// "bins of 1 GiB", "bins of 8,000 MiB and out of memory"
std::string bins_of(const ml::ModelConfig& model) {
  constexpr double kMibInGib = 1024.0;
  const std::vector<double>& edges = model.head.edges_mib;
  const double width = edges[1] - edges[0];
  std::string text = "bins of " + (width == kMibInGib ? std::string("1 GiB") : whole(width) + " MiB");
  // A last bin of its own width holds what does not fit.
  if (edges.back() - edges[edges.size() - 2] != width) text += " and out of memory";
  return text;
}

std::string trained_on(const ml::ModelConfig& model) {
  std::string data = plain(provenance_of(model, "data"));
  constexpr std::string_view kWarning = "no measured runs";
  if (const std::size_t at = data.find(kWarning); at != std::string::npos) {
    data.insert(at + kWarning.size(), "**").insert(at, "**");
  }
  return count(static_cast<std::int64_t>(figure_of(model, "rows"))) + " " + std::string(plural_of(model.nets)) + ": " +
         data + "; " + bins_of(model);
}

/// What GPUMemNet's authors publish of their own model for such nets (itu-rad/GPUMemNet), on data of theirs.
std::string published_accuracy(const std::string& model) {
  struct Published {
    std::string_view model;
    std::string_view accuracy;
  };
  constexpr std::array<Published, 4> kAll = {{{"gpumemnet-mlp-mlp", "95.4 %"},
                                              {"gpumemnet-transformer-mlp", "96.7 %"},
                                              {"gpumemnet-mlp-cnn", "88.3 %"},
                                              {"gpumemnet-transformer-cnn", "84.5 %"}}};
  for (const Published& published : kAll) {
    if (published.model == model) return std::string(published.accuracy);
  }
  return {};
}

ReadmeTable learned_table(std::span<const ml::ModelConfig> models) {
  ReadmeTable table = {
      "learned",
      row({"model", "trained on", "right bin", "below the true bin", "GPUMemNet's own, as published"}) + rule(5, 5),
      {},
      true};
  std::vector<ml::ModelConfig> sorted(models.begin(), models.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.nets < right.nets; });
  for (const ml::ModelConfig& model : sorted) {
    if (!model.head.of.empty()) continue;  // bins of a counter, not of memory
    if (model.head.edges_mib.size() < 2 || !has_figure(model, "accuracy")) continue;
    const std::string key = "`" + model.name + "`";
    table.rows.push_back({key, row({key, trained_on(model), percent(figure_of(model, "accuracy"), 1),
                                    percent(figure_of(model, "underestimated"), 1), published_accuracy(model.name)})});
  }
  return table;
}

std::string corrected_row(const std::string& who, double mean, double median, double right_class,
                          const std::string& covered) {
  return row({who, percent(mean), percent(median), percent(right_class, 1), covered});
}

std::string corrected_row(const std::string& who, const Accuracy& accuracy) {
  return corrected_row(who, accuracy.relative_error.mean, accuracy.relative_error.median, accuracy.right_class,
                       covers(accuracy));
}

/// An estimator on the runs of a known set that no model of its own was trained on; nothing where there is none.
ReadmeRow seen_row(const SetVerdicts* verdicts, std::string_view estimator, const std::string& key,
                   const std::string& after) {
  const Verdict* verdict = verdicts == nullptr ? nullptr : find(*verdicts, estimator);
  if (verdict == nullptr || verdict->accuracy.fitted == 0 || !verdict->trained_on_it.empty())
    return {key, std::nullopt};
  return {key, corrected_row(key + " (" + count(verdict->accuracy.fitted) + ")" + after, verdict->accuracy)};
}

ReadmeTable corrected_table(const std::vector<SetVerdicts>& all, std::span<const ml::ModelConfig> models) {
  ReadmeTable table = {"corrected",
                       row({"", "mean error", "median", "right class of 8,000 MiB",
                            "`upper` covers, and the mean of `upper` / measured"}) +
                           rule(5, 1),
                       {},
                       true};
  const SetVerdicts* cnns = find(all, known_set("gpumemnet", ml::NetKind::cnn));
  table.rows.push_back(seen_row(cnns, kReplay, "`replay` on the measured CNNs that fitted", ""));
  for (const ml::ModelConfig& model : models) {
    if (!has_figure(model, "mean_relative_error")) continue;
    const std::string key = "`replay-corrected` with `" + model.name + "`, on nets it did not see";
    table.rows.push_back(
        {key, corrected_row(
                  key + " (" + count(static_cast<std::int64_t>(figure_of(model, "rows"))) + ")",
                  figure_of(model, "mean_relative_error"), figure_of(model, "median_relative_error"),
                  figure_of(model, "right_class"),
                  percent(figure_of(model, "covered"), 1) + " at " + decimal(figure_of(model, "upper_ratio"), 3))});
  }
  const SetVerdicts* carma = find(all, known_set("carma", std::nullopt));
  table.rows.push_back(seen_row(carma, kReplay, "`replay` on CARMA's runs", ""));
  table.rows.push_back(seen_row(carma, kCorrected, "`replay-corrected` on CARMA's runs", ", none of which it saw"));
  return table;
}

// The README.

constexpr std::string_view kBegin = "<!-- accuracy: begin ";
constexpr std::string_view kEnd = "<!-- accuracy: end -->";
constexpr std::string_view kClose = " -->";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.push_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

/// The text of the first cell.
std::string_view first_cell(std::string_view line) {
  if (!line.starts_with("|")) return {};
  return line.substr(1, line.find('|', 1) - 1);
}

/// The table again, from the lines that stand there.
std::string written(const ReadmeTable& table, std::span<const std::string_view> old) {
  constexpr std::size_t kHeader = 2;
  const auto rows = old.size() > kHeader ? old.subspan(kHeader) : std::span<const std::string_view>();
  const auto is_of = [](std::string_view line, const ReadmeRow& row) {
    return first_cell(line).find(row.key) != std::string_view::npos;
  };
  std::string text = table.header;
  for (const ReadmeRow& row : table.rows) {
    if (row.line) {
      text += *row.line;
      continue;
    }
    for (const std::string_view line : rows) {
      if (is_of(line, row)) text += line;
    }
  }
  for (const std::string_view line : rows) {
    const bool ours =
        std::any_of(table.rows.begin(), table.rows.end(), [&](const ReadmeRow& row) { return is_of(line, row); });
    if (!ours && !table.whole) text += line;
  }
  return text;
}

Error malformed(std::string message, std::string_view file, std::size_t line) {
  return {ErrorCode::malformed_input, std::move(message),
          core::Place{std::string(file), static_cast<std::int64_t>(line), {}}};
}

}  // namespace

std::vector<ReadmeTable> readme_tables(const std::vector<SetVerdicts>& all, std::span<const ml::ModelConfig> models) {
  return {runs_table(all), xmem_table(all), learned_table(models), corrected_table(all, models)};
}

Result<std::string> rewritten(std::string_view readme, const std::vector<ReadmeTable>& tables, std::string_view file) {
  const std::vector<std::string_view> lines = lines_of(readme);
  std::string text;
  bool any = false;
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = without_end(lines[index]);
    text += lines[index];
    if (line == kEnd) return malformed("ends a table that nothing begins", file, index + 1);
    if (!line.starts_with(kBegin) || !line.ends_with(kClose)) continue;
    const std::string_view name = line.substr(kBegin.size(), line.size() - kBegin.size() - kClose.size());
    const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& each) { return each.name == name; });
    if (table == tables.end()) return malformed("there is no table " + core::quoted(name), file, index + 1);
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(index) + 1;
    const auto end = std::find_if(begin, lines.end(), [](std::string_view each) { return without_end(each) == kEnd; });
    if (end == lines.end())
      return malformed("this table does not end: there is no " + std::string(kEnd), file, index + 1);
    text += written(*table, {begin, end});
    text += *end;
    index = static_cast<std::size_t>(end - lines.begin());
    any = true;
  }
  if (!any) return malformed("has no " + std::string(kBegin) + "NAME" + std::string(kClose), file, 0);
  return text;
}

std::vector<std::string> not_at_hand(const std::vector<ReadmeTable>& tables) {
  std::vector<std::string> keys;
  for (const ReadmeTable& table : tables) {
    for (const ReadmeRow& row : table.rows) {
      if (table.name == kRunsTable && !row.line) keys.push_back(row.key);
    }
  }
  return keys;
}

}  // namespace gpumem::accuracy
