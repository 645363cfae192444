#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem_datasets/serving_starts.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using datasets::LoggedStart;
using datasets::ServingStart;
using datasets::StartOutcome;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// A figure that an estimate and a log have.
struct ServingFigure {
  std::string_view title;
  std::string_view name;  ///< in JSON
  double (*estimated)(const serve::ServingEstimate& estimate);
  std::optional<double> (*logged)(const LoggedStart& logged);
  bool bytes = true;
  bool of_one_stage = false;  ///< the log of a pipeline shows one stage's, and does not say whose
  bool of_the_gpu = false;    ///< differs between GPUs
};

double in_gib(core::Bytes bytes) { return static_cast<double>(bytes.count()) / kGib; }

constexpr std::array<ServingFigure, 6> kServingFigures = {{
    {"weights", "weights", [](const auto& of) { return in_gib(of.weights); },
     [](const LoggedStart& of) { return of.weights_gib; }, true, true, false},
    {"activation", "activation", [](const auto& of) { return in_gib(of.activation); },
     [](const LoggedStart& of) { return of.activation_gib; }, true, true, true},
    {"outside PyTorch", "outside_pytorch", [](const auto& of) { return in_gib(of.outside_pytorch); },
     [](const LoggedStart& of) { return of.outside_pytorch_gib; }, true, true, true},
    {"CUDA graphs", "cuda_graphs", [](const auto& of) { return in_gib(of.cuda_graphs); },
     [](const LoggedStart& of) { return of.cuda_graphs_gib; }, true, true, true},
    {"KV tokens", "kv_cache_tokens", [](const auto& of) { return static_cast<double>(of.kv_cache_tokens); },
     [](const LoggedStart& of) -> std::optional<double> {
       return of.kv_cache_tokens ? std::optional(static_cast<double>(*of.kv_cache_tokens)) : std::nullopt;
     },
     false, false, true},
    {"KV tokens of a GiB", "kv_cache_tokens_of_a_gib",
     [](const auto& of) { return static_cast<double>(of.kv_cache_tokens) / in_gib(of.kv_cache); },
     [](const LoggedStart& of) -> std::optional<double> {
       const bool known = of.kv_cache_tokens && of.kv_cache_gib.value_or(0.0) > 0.0;
       return known ? std::optional(static_cast<double>(*of.kv_cache_tokens) / *of.kv_cache_gib) : std::nullopt;
     },
     false, false, false},
}};

/// A start with the answer to it.
struct ComparedStart {
  const ServingStart* start = nullptr;
  bool gpu_known = true;
  std::optional<serve::ServingEstimate> estimate = {};
  std::optional<Error> refusal = {};

  /// estimate / logged - 1; nothing: one of them has no such figure.
  [[nodiscard]] std::optional<double> error_of(const ServingFigure& figure) const {
    const bool staged = start->job.pipeline_parallel > 1 && figure.of_one_stage;
    if (!estimate || staged || (figure.of_the_gpu && !gpu_known)) return std::nullopt;
    const std::optional<double> measured = figure.logged(start->logged);
    const double expected = figure.estimated(*estimate);
    if (!measured || *measured <= 0.0 || !std::isfinite(expected)) return std::nullopt;
    return expected / *measured - 1.0;
  }
  /// Whether the estimate says what happened; nothing: the log does not tell.
  [[nodiscard]] std::optional<bool> verdict_right() const {
    if (!estimate || !gpu_known || start->logged.outcome == StartOutcome::unrelated) return std::nullopt;
    return estimate->starts == (start->logged.outcome == StartOutcome::started);
  }
};

/// The config.json files of a folder, "OWNER--NAME.json", by the model's name in lower case.
class ConfigShelf {
 public:
  explicit ConfigShelf(const std::string& folder) {
    std::error_code failure;
    for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
      if (at->path().extension() != ".json") continue;
      std::string name = core::lower_case(at->path().stem().string());
      const std::size_t bar = name.find("--");
      if (bar != std::string::npos) {
        paths_.emplace(name.substr(bar + 2), at->path().string());
        name.replace(bar, 2, "/");
      }
      paths_[name] = at->path().string();
    }
  }
  /// A path, or the name itself: the local HuggingFace cache may hold it.
  [[nodiscard]] std::string find(const std::string& model) const {
    const auto found = paths_.find(core::lower_case(model));
    return found == paths_.end() ? model : found->second;
  }

 private:
  std::map<std::string, std::string> paths_;
};

/// "RTX 3090" and "Tesla T4" as profiles are called; empty: no profile has the name.
std::string profile_named(const std::string& gpu, Session& session) {
  std::string name = core::lower_case(gpu.substr(0, gpu.find(" (")));
  std::replace(name.begin(), name.end(), ' ', '-');
  for (const std::string& each : {name, name.substr(name.find('-') + 1)}) {
    if (!each.empty() && session.gpu(each)) return each;
  }
  return {};
}

ComparedStart compare(const ServingStart& start, const EvaluateOptions& options, const ConfigShelf& shelf,
                      Session& session) {
  ComparedStart compared{.start = &start};
  if (start.error) {
    compared.refusal = start.error;
    return compared;
  }
  std::string gpu = options.gpu.empty() ? profile_named(start.gpu, session) : options.gpu;
  compared.gpu_known = !gpu.empty();
  if (gpu.empty()) gpu = "h100-80gb";  // weights and the layout of the cache are the same on every GPU
  const std::string config = options.config.empty() ? shelf.find(start.model) : options.config;
  const auto estimate = session.serve({config, gpu, start.job});
  if (estimate) compared.estimate = *estimate;
  else compared.refusal = estimate.error();
  return compared;
}

/// How the figures of one kind agree.
struct FigureErrors {
  std::vector<double> sizes = {};  ///< sorted
  [[nodiscard]] double at(double share) const {
    return sizes[std::min(sizes.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sizes.size())))];
  }
  [[nodiscard]] double median() const {
    const std::size_t half = sizes.size() / 2;
    return sizes.size() % 2 == 1 ? sizes[half] : 0.5 * (sizes[half - 1] + sizes[half]);
  }
};

using Group = std::vector<const ComparedStart*>;

FigureErrors errors_of(const Group& group, const ServingFigure& figure) {
  FigureErrors errors;
  for (const ComparedStart* each : group) {
    if (const auto error = each->error_of(figure)) errors.sizes.push_back(std::abs(*error));
  }
  std::sort(errors.sizes.begin(), errors.sizes.end());
  return errors;
}

struct Verdicts {
  std::int64_t right = 0, all = 0;
};
Verdicts verdicts_of(const Group& group) {
  Verdicts verdicts;
  for (const ComparedStart* each : group) {
    const auto right = each->verdict_right();
    verdicts.all += right ? 1 : 0;
    verdicts.right += right.value_or(false) ? 1 : 0;
  }
  return verdicts;
}

std::string share_text(double share) { return percent(share, "%.2f %%"); }

std::string group_table(const std::string& title, const Group& group) {
  Table table({{.title = title},
               {.title = "starts", .right = true},
               {.title = "median error", .right = true},
               {.title = "90 % within", .right = true},
               {.title = "worst", .right = true}});
  for (const ServingFigure& figure : kServingFigures) {
    const FigureErrors errors = errors_of(group, figure);
    if (errors.sizes.empty()) continue;
    table.add({figure.title, std::to_string(errors.sizes.size()), share_text(errors.median()),
               share_text(errors.at(0.9)), share_text(errors.sizes.back())});
  }
  const Verdicts verdicts = verdicts_of(group);
  const std::string line =
      "verdict: " + std::to_string(verdicts.right) + " of " + std::to_string(verdicts.all) + " right\n";
  return "\n" + table.text() + (verdicts.all > 0 ? line : std::string());
}

/// The starts by the versions whose rules they follow.
std::map<std::string, Group> by_version(const std::vector<ComparedStart>& all) {
  std::map<std::string, Group> groups;
  for (const ComparedStart& each : all) {
    if (each.estimate) groups["vLLM " + each.estimate->version].push_back(&each);
  }
  return groups;
}

/// Text of a log or a table as it is printed: not too long, and nothing in it speaks to the terminal.
std::string shown(std::string_view text, std::size_t longest = 160) {
  std::string clean = core::shortened(text, longest);
  const auto controls = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
  std::replace_if(clean.begin(), clean.end(), controls, '?');
  return clean;
}

std::string name_of(const ServingStart& start) {
  return shown(start.name) + " (line " + std::to_string(start.line) + ")";
}

std::string table_text(const std::string& file, const std::vector<ComparedStart>& all) {
  const auto answered =
      std::count_if(all.begin(), all.end(), [](const auto& each) { return each.estimate.has_value(); });
  std::string text =
      file + ": starts of servers, " + std::to_string(answered) + " of " + std::to_string(all.size()) + " answered\n";
  for (const auto& [title, group] : by_version(all)) text += group_table(title, group);
  for (const ComparedStart& each : all) {
    if (each.verdict_right().value_or(true)) continue;
    text += "wrong verdict: " + name_of(*each.start) + ": " +
            (each.estimate->starts ? "it did not start: " + shown(each.start->logged.why) : each.estimate->reason) +
            "\n";
  }
  for (const ComparedStart& each : all) {
    if (each.refusal) text += "not answered: " + name_of(*each.start) + ": " + said(*each.refusal) + "\n";
  }
  return text;
}

Json table_json(const std::string& file, const std::vector<ComparedStart>& all) {
  Json json = {{"schema", 1}, {"file", file}, {"format", "serving"}, {"starts", all.size()}, {"groups", Json::array()}};
  for (const auto& [title, group] : by_version(all)) {
    Json of_group = {{"rules", title}, {"starts", group.size()}};
    for (const ServingFigure& figure : kServingFigures) {
      const FigureErrors errors = errors_of(group, figure);
      if (errors.sizes.empty()) continue;
      of_group[std::string(figure.name)] = {{"starts", errors.sizes.size()},
                                            {"median", rounded(errors.median())},
                                            {"p90", rounded(errors.at(0.9))},
                                            {"worst", rounded(errors.sizes.back())}};
    }
    const Verdicts verdicts = verdicts_of(group);
    of_group["verdicts"] = {{"right", verdicts.right}, {"starts", verdicts.all}};
    json["groups"].push_back(std::move(of_group));
  }
  json["not_answered"] = Json::array();
  for (const ComparedStart& each : all) {
    if (!each.refusal) continue;
    json["not_answered"].push_back(
        {{"name", each.start->name}, {"line", each.start->line}, {"error", cli::to_json(*each.refusal)}});
  }
  return json;
}

std::string to_csv(const std::vector<ComparedStart>& all) {
  std::string text = "line,name,figure,measured,expected\n";
  for (const ComparedStart& each : all) {
    for (const ServingFigure& figure : kServingFigures) {
      if (!each.error_of(figure)) continue;
      text += std::to_string(each.start->line) + "," + core::csv_field(each.start->name) + "," +
              std::string(figure.name) + "," + text_of("%.4f", *figure.logged(each.start->logged)) + "," +
              text_of("%.4f", figure.estimated(*each.estimate)) + "\n";
    }
  }
  return text;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print(const Json& json) { print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

// One log.

std::string figure_text(const ServingFigure& figure, double value) {
  return figure.bytes ? text_of("%.2f GiB", value) : core::with_separators(std::llround(value));
}

/// What the estimate assumed, and what of the log it does not follow.
std::vector<std::string> assumed_of(const ComparedStart& compared) {
  constexpr std::size_t kLongest = 400;
  std::vector<std::string> lines;
  for (const std::string& line : compared.estimate->assumed) lines.push_back(shown(line, kLongest));
  for (const std::string& option : compared.start->left_out) {
    lines.push_back("the log's option " + shown(option) + ": gpumem cannot follow it, and leaves it out");
  }
  return lines;
}

std::string log_text(const ComparedStart& compared) {
  const LoggedStart& logged = compared.start->logged;
  Table table({{.title = shown(compared.start->model) + ", vLLM " + shown(compared.start->job.version)},
               {.title = "estimate", .right = true},
               {.title = "the log", .right = true},
               {.title = "error", .right = true}});
  for (const ServingFigure& figure : kServingFigures) {
    const auto measured = figure.logged(logged);
    const auto error = compared.error_of(figure);
    table.add({figure.title, figure_text(figure, figure.estimated(*compared.estimate)),
               measured ? figure_text(figure, *measured) : "-", error ? percent(*error, "%+.2f %%") : "-"});
  }
  const bool started = logged.outcome == StartOutcome::started;
  std::string text = table.text() + "estimate: " +
                     (compared.estimate->starts ? "it starts" : "it does not start: " + compared.estimate->reason) +
                     "\nthe log: " + (started ? "no failure" : "it did not start: " + shown(logged.why)) + "\n";
  for (const std::string& line : assumed_of(compared)) text += "assumed: " + line + "\n";
  return text;
}

Json log_json(const ComparedStart& compared) {
  Json json = {{"schema", 1}, {"model", shown(compared.start->model)}, {"version", shown(compared.start->job.version)}};
  for (const ServingFigure& figure : kServingFigures) {
    const auto measured = figure.logged(compared.start->logged);
    const auto error = compared.error_of(figure);
    json[std::string(figure.name)] = {{"expected", rounded(figure.estimated(*compared.estimate))},
                                      {"measured", measured ? Json(rounded(*measured)) : Json(nullptr)},
                                      {"relative_error", error ? Json(rounded(*error)) : Json(nullptr)}};
  }
  json["starts"] = compared.estimate->starts;
  json["started"] = compared.start->logged.outcome == StartOutcome::started;
  json["assumed"] = assumed_of(compared);
  return json;
}

}  // namespace

int run_evaluate_vllm_log(const EvaluateOptions& options) {
  constexpr std::size_t kLargestLog = std::size_t{256} << 20;
  if (options.gpu.empty()) {
    return report_error({ErrorCode::missing_information, "a log does not name its GPU; name it with --gpu", {}});
  }
  const Result<std::string> text = core::read_regular_file(options.vllm_log, kLargestLog);
  if (!text) return report_error(text.error());
  const Result<ServingStart> start = datasets::read_vllm_log(*text);
  if (!start) return report_error(Error(start.error()).in_file(options.vllm_log));
  Session session;
  const ComparedStart compared = compare(*start, options, ConfigShelf(options.summaries), session);
  if (compared.refusal) return report_error(*compared.refusal);
  if (options.json) print(log_json(compared));
  else print(log_text(compared));
  return 0;
}

std::optional<int> run_evaluate_serving(const EvaluateOptions& options) {
  if (options.runs.empty()) {
    return report_error({ErrorCode::invalid_argument, "give a table of measured runs, or --vllm-log", {}});
  }
  const Result<std::string> text = core::read_file(options.runs);
  if (!text) return std::nullopt;  // the reader of other tables says why
  const Result<core::CsvTable> table = core::parse_csv(*text, options.runs);
  if (!table || !datasets::is_serving_table(*table)) return std::nullopt;
  const std::filesystem::path beside = std::filesystem::path(options.runs).parent_path() / "configs";
  const ConfigShelf shelf(options.summaries.empty() ? beside.string() : options.summaries);
  const std::vector<ServingStart> starts = datasets::read_serving_table(*table);
  Session session;
  std::vector<ComparedStart> all;
  for (const ServingStart& start : starts) {
    if (start.name.find(options.filter) != std::string::npos) all.push_back(compare(start, options, shelf, session));
  }
  if (!options.out.empty()) {
    if (const auto written = core::write_file(options.out, to_csv(all)); !written) return report_error(written.error());
  }
  if (options.json) print(table_json(options.runs, all));
  else print(table_text(options.runs, all));
  if (std::any_of(all.begin(), all.end(), [](const auto& each) { return each.estimate.has_value(); })) return 0;
  return report_error({ErrorCode::missing_information, "none of its starts could be answered", {options.runs, 0, {}}});
}

}  // namespace gpumem::cli
