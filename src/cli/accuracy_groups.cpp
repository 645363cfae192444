#include "accuracy_groups.hpp"

#include <algorithm>
#include <functional>

#include "figures.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using datasets::MeasuredRun;

std::string figure_name(const MeasuredRun& run) { return std::string(model::name_of(datasets::kFigures, run.figure)); }

/// A group while its runs are gathered.
struct Gathered {
  AccuracyGroup group;
  std::vector<datasets::Judged> judged;
};

AccuracyGroups grouped(std::string_view by, const std::vector<Prediction>& predictions,
                       const std::function<std::string(const MeasuredRun&)>& key) {
  std::vector<Gathered> all;
  for (const Prediction& prediction : predictions) {
    std::string name = key(*prediction.run);
    auto found = std::find_if(all.begin(), all.end(), [&](const Gathered& one) { return one.group.name == name; });
    if (found == all.end()) found = all.insert(found, {AccuracyGroup{std::move(name), 0, {}}, {}});
    ++found->group.runs;
    if (!prediction.error && !prediction.run->at_most) found->judged.push_back(judged(prediction));
  }
  AccuracyGroups result{by, {}};
  for (Gathered& one : all) {
    one.group.accuracy = datasets::accuracy_of(one.judged);
    result.groups.push_back(std::move(one.group));
  }
  return result;
}

/// Why the run has no answer, in words that many share.
std::string reason_of(const Prediction& prediction) {
  if (!prediction.run->refusal.empty()) return prediction.run->refusal;
  if (prediction.error->code == ErrorCode::unknown_gpu) return "a GPU without a profile";
  return "no estimate: " + std::string(core::to_string(prediction.error->code));
}

/// Untrusted text, cut, and without control bytes.
std::string short_printable(std::string_view text) {
  constexpr std::size_t kLongest = 160;
  std::string shown = core::shortened(text, kLongest);
  std::replace_if(
      shown.begin(), shown.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x20; }, '?');
  return shown;
}

std::string runs_row(std::string_view title, std::initializer_list<std::string> cells) {
  constexpr std::size_t kTitle = 44;
  constexpr std::size_t kCell = 10;
  std::string text = "  " + short_printable(core::shortened(title, kTitle - 4));
  text.resize(std::max(text.size(), kTitle), ' ');
  for (const std::string& cell : cells) text += std::string(cell.size() < kCell ? kCell - cell.size() : 1, ' ') + cell;
  return text + "\n";
}

std::string group_row(const AccuracyGroup& group) {
  const datasets::Accuracy& accuracy = group.accuracy;
  const std::string runs = core::with_separators(group.runs);
  if (accuracy.fitted == 0) return runs_row(group.name, {runs, "0"});
  const auto share = [](double value) { return percent(value, "%.2f %%"); };
  return runs_row(group.name, {runs, core::with_separators(accuracy.fitted), share(accuracy.relative_error.median),
                               share(accuracy.relative_error.p90), share(accuracy.signed_relative_error),
                               share(accuracy.covered), text_of("%.3f", accuracy.upper_ratio)});
}

std::string refusals_table(const std::vector<Prediction>& predictions) {
  const std::vector<Refusal> refusals = refusals_of(predictions);
  if (refusals.empty()) return {};
  std::string text = "  not answered:\n";
  for (const Refusal& refusal : refusals) {
    const MeasuredRun& run = *refusal.first->run;
    text += "  " + std::string(4, ' ') + core::with_separators(refusal.runs) + " " + short_printable(refusal.reason) +
            " (" + short_printable(run.name) + ", line " + std::to_string(run.line) + ": " +
            core::to_string(*refusal.first->error) + ")\n";
  }
  return text;
}

Json to_json(const AccuracyGroup& group) {
  const datasets::Accuracy& accuracy = group.accuracy;
  Json json = {{"name", group.name}, {"runs", group.runs}, {"answered", accuracy.fitted + accuracy.out_of_memory}};
  if (accuracy.fitted == 0) return json;
  json["relative_error"] = {{"mean", rounded(accuracy.relative_error.mean)},
                            {"median", rounded(accuracy.relative_error.median)},
                            {"p90", rounded(accuracy.relative_error.p90)}};
  json["signed_relative_error"] = rounded(accuracy.signed_relative_error);
  json["covered"] = rounded(accuracy.covered);
  json["upper_ratio"] = rounded(accuracy.upper_ratio);
  return json;
}

}  // namespace

bool has_groups(const std::vector<Prediction>& predictions) {
  return std::any_of(predictions.begin(), predictions.end(),
                     [](const Prediction& prediction) { return !prediction.run->source.empty(); });
}

std::vector<AccuracyGroups> groups_of(const std::vector<Prediction>& predictions) {
  std::vector<AccuracyGroups> all = {
      grouped("source", predictions, [](const MeasuredRun& run) { return run.source; }),
      grouped("figure", predictions, figure_name),
      grouped("training", predictions, [](const MeasuredRun& run) { return run.training; })};
  const auto is_open = [](const Prediction& prediction) { return !prediction.run->open.empty(); };
  if (std::any_of(predictions.begin(), predictions.end(), is_open)) {
    all.push_back(grouped("what is open", predictions, [](const MeasuredRun& run) {
      return run.open.empty() ? std::string("defaults of the program") : run.open;
    }));
  }
  return all;
}

std::vector<Refusal> refusals_of(const std::vector<Prediction>& predictions) {
  std::vector<Refusal> all;
  for (const Prediction& prediction : predictions) {
    if (!prediction.error) continue;
    std::string reason = reason_of(prediction);
    auto found = std::find_if(all.begin(), all.end(), [&](const Refusal& one) { return one.reason == reason; });
    if (found == all.end()) found = all.insert(found, {std::move(reason), 0, &prediction});
    ++found->runs;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Refusal& left, const Refusal& right) { return left.runs > right.runs; });
  return all;
}

std::string groups_table(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const AccuracyGroups& grouping : groups_of(predictions)) {
    text += runs_row("by " + std::string(grouping.by),
                     {"runs", "answered", "median", "p90", "signed", "covered", "upper/m."});
    for (const AccuracyGroup& group : grouping.groups) text += group_row(group);
  }
  return text + refusals_table(predictions);
}

Json groups_json(const std::vector<Prediction>& predictions) {
  Json json = Json::object();
  for (const AccuracyGroups& grouping : groups_of(predictions)) {
    Json list = Json::array();
    for (const AccuracyGroup& group : grouping.groups) list.push_back(to_json(group));
    json[std::string(grouping.by)] = std::move(list);
  }
  return json;
}

Json refusals_json(const std::vector<Prediction>& predictions) {
  Json list = Json::array();
  for (const Refusal& refusal : refusals_of(predictions)) {
    list.push_back({{"reason", refusal.reason},
                    {"runs", refusal.runs},
                    {"first",
                     {{"name", refusal.first->run->name},
                      {"line", refusal.first->run->line},
                      {"error", cli::to_json(*refusal.first->error)}}}});
  }
  return list;
}

}  // namespace gpumem::cli
