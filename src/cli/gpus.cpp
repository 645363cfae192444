#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/estimate/fit.hpp"
#include "report.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

std::string scaled(const std::optional<device::Figure>& figure, double unit, const char* suffix) {
  if (!figure) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f %s", static_cast<double>(figure->value) / unit, suffix);
  return text.data();
}

int print_one(const std::string& name) {
  const Result<GpuProfile> profile = find_profile(name);
  if (!profile) return report_error(profile.error());
  const Result<std::string> text = profile_text(*profile, name);
  if (!text) return report_error(text.error());
  std::printf("%s", text->c_str());
  return 0;
}

/// The price of an hour, by the names of profiles. Errors: unknown_gpu, or invalid_argument for what is no price.
Result<std::map<std::string, double>> prices_of(const std::vector<std::string>& words) {
  std::map<std::string, double> prices;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    const std::string_view number = equals == std::string::npos ? "" : std::string_view(word).substr(equals + 1);
    const std::optional<double> price = core::parse_number(number);
    if (!price || *price <= 0.0) {
      return Error{ErrorCode::invalid_argument, "--price is " + core::quoted(word) + "; say it as h100-80gb=2.50", {}};
    }
    const Result<GpuProfile> profile = find_profile(word.substr(0, equals));
    if (!profile) return profile.error();
    prices[profile->name] = *price;
  }
  return prices;
}

/// Where prices are known, what fits goes by its price.
void sort_by_price(std::vector<GpuChoice>& choices) {
  std::stable_sort(choices.begin(), choices.end(), [](const GpuChoice& one, const GpuChoice& other) {
    const bool both_fit = one.fit.takes.verdict == other.fit.takes.verdict;
    return both_fit && one.price && (!other.price || *one.price < *other.price);
  });
}

std::string price_text(const std::optional<double>& price) {
  if (!price) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", *price);
  return text.data();
}

std::string batch_text(const estimate::GpuFit& fit) {
  return (fit.batch_at_least ? "at least " : "") + core::with_separators(fit.largest_batch);
}

std::string to_text(const std::vector<GpuChoice>& choices, bool priced) {
  std::vector<Column> columns = {{.title = "gpu"},
                                 {.title = "fits"},
                                 {.title = "expected", .right = true},
                                 {.title = "upper", .right = true},
                                 {.title = "headroom", .right = true},
                                 {.title = "largest batch", .right = true}};
  if (priced) columns.push_back({.title = "price", .right = true});
  columns.push_back({.title = "GPU", .spare = true});
  Table table(std::move(columns));
  for (const GpuChoice& choice : choices) {
    const estimate::GpuFit& fit = choice.fit;
    std::vector<Cell> cells = {
        fit.gpu.name, fits_cell(fit.takes.verdict), fit.takes.expected, fit.takes.upper, fit.headroom, batch_text(fit)};
    if (priced) cells.emplace_back(price_text(choice.price));
    cells.emplace_back(fit.gpu.title);
    table.add(std::move(cells));
  }
  return table.text(terminal_of(STDOUT_FILENO));
}

bool is_held(const GpuChoice& choice) {
  const estimate::Verdict verdict = choice.fit.takes.verdict;
  return verdict == estimate::Verdict::fits || verdict == estimate::Verdict::tight;
}

/// What the job takes on each GPU.
int print_for(const GpusOptions& options) {
  Session session;
  const Result<FoundGpus> found = find_gpus(options, session);
  if (!found) return report_error(found.error());
  print_warnings(found->estimated_job);
  const std::string text =
      options.json ? to_json(*found).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                   : to_text(found->choices, !options.prices.empty());
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool any = std::any_of(found->choices.begin(), found->choices.end(), is_held);
  return any ? 0 : core::exit_code(ErrorCode::missing_information);
}

}  // namespace

Result<FoundGpus> find_gpus(const GpusOptions& options, Session& session) {
  const auto prices = prices_of(options.prices);
  if (!prices) return prices.error();
  Result<EstimatedJob> job = read_job(session, options.request);
  if (!job) return job.error();
  const auto fits = session.gpus(options.request, job->model);
  if (!fits) return fits.error();
  FoundGpus found{*std::move(job), {}};
  for (const estimate::GpuFit& fit : *fits) {
    const auto price = prices->find(fit.gpu.name);
    found.choices.push_back({fit, price == prices->end() ? std::nullopt : std::optional(price->second)});
  }
  sort_by_price(found.choices);
  return found;
}

nlohmann::ordered_json to_json(const FoundGpus& found) {
  nlohmann::ordered_json json = head_json(found.estimated_job);
  json.erase("gpu");
  json.erase("capacity_bytes");
  json["gpus"] = nlohmann::ordered_json::array();
  for (const GpuChoice& choice : found.choices) {
    const MemoryEstimate& takes = choice.fit.takes;
    nlohmann::ordered_json one = {{"gpu", choice.fit.gpu.name},
                                  {"title", choice.fit.gpu.title},
                                  {"capacity_bytes", choice.fit.gpu.capacity().count()},
                                  {"verdict", model::name_of(estimate::kVerdicts, takes.verdict)},
                                  {"expected_bytes", takes.expected.count()},
                                  {"upper_bytes", takes.upper.count()},
                                  {"headroom_bytes", choice.fit.headroom.count()},
                                  {"largest_batch", choice.fit.largest_batch},
                                  {"at_least", choice.fit.batch_at_least}};
    if (choice.price) one["price"] = *choice.price;
    json["gpus"].push_back(std::move(one));
  }
  return json;
}

Result<std::string> profile_text(const GpuProfile& profile, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return core::read_file(name);
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    if (builtin.name == profile.name) return std::string(builtin.json);
  }
  return Error{ErrorCode::unknown_gpu, "there is no GPU profile " + core::quoted(name), {}};
}

int run_gpus(const GpusOptions& options) {
  if (!options.name.empty()) return print_one(options.name);
  if (!options.request.summary.empty()) return print_for(options);
  if (!options.prices.empty()) return report_error({ErrorCode::invalid_argument, "--price needs --for", {}});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Table table({{.title = "name"},
               {.title = "memory", .right = true},
               {.title = "SMs", .right = true},
               {.title = "bandwidth", .right = true},
               {.title = "GPU"}});
  if (options.json) {
    for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
      list.push_back(nlohmann::ordered_json::parse(builtin.json));
    }
  }
  const Result<std::vector<GpuProfile>>& profiles = device::known_profiles();
  if (!profiles) return report_error(profiles.error());
  for (const GpuProfile& profile : *profiles) {
    table.add({profile.name, Bytes(profile.memory_bytes.value),
               profile.sm_count ? std::to_string(profile.sm_count->value) : "-",
               scaled(profile.memory_bandwidth_bytes_per_second, 1e9, "GB/s"), profile.title});
  }
  const std::string text = options.json ? list.dump(2) + "\n" : table.text(terminal_of(STDOUT_FILENO));
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace gpumem::cli
