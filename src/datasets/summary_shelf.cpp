#include "gpumem_datasets/summary_shelf.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/summary/model_folder.hpp"

namespace gpumem::datasets {

namespace {
namespace summary_shelf_detail {

namespace fs = std::filesystem;

/// How names of copies, quantised forms and fine-tuned models end, in lower case.
constexpr std::array<std::string_view, 21> kEndings = {"-unsloth-bnb-4bit",
                                                       "-bnb-4bit",
                                                       "-linearized-bnb-nf4-bf16",
                                                       "-dequantized",
                                                       "-fp8",
                                                       "-nvfp4",
                                                       "-bf16",
                                                       "-awq",
                                                       "-gptq-int4",
                                                       "-gptq-int8",
                                                       "-instruct-2507",
                                                       "-thinking-2507",
                                                       "-2507",
                                                       "-instruct",
                                                       "-chat",
                                                       "-thinking",
                                                       "-base",
                                                       "-it",
                                                       "-pt",
                                                       "-hf",
                                                       "-v0.1"};

/// The model's name without its owner and such endings: all of one key have the same sizes.
std::string key_of(std::string_view name) {
  std::string key = core::lower_case(name.substr(name.rfind('/') + 1));
  // NVIDIA repeats its name in those of its models; their copies do not.
  constexpr std::string_view kOwner = "nvidia-";
  if (key.starts_with(kOwner)) key.erase(0, kOwner.size());
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view ending : kEndings) {
      if (!key.ends_with(ending)) continue;
      key.resize(key.size() - ending.size());
      more = true;
    }
  }
  return key;
}

/// "Qwen--Qwen3-8B.json" as "Qwen/Qwen3-8B".
std::string name_of(const fs::path& file) {
  std::string name = file.stem().string();
  const std::size_t dashes = name.find("--");
  return dashes == std::string::npos ? name : name.replace(dashes, 2, "/");
}

/// The well-known model of this name, or of its key.
std::optional<summary::PublishedModel> published(std::string_view name) {
  if (auto exactly = summary::published_model(name)) return exactly;
  const std::string key = key_of(name);
  for (const std::string_view each : summary::published_model_names()) {
    if (key_of(each) == key) return summary::published_model(each);
  }
  return std::nullopt;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code fault;
  return entry.is_directory(fault);
}

void add_folders(const fs::path& folder, std::vector<fs::path>& found) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename().string().starts_with("configs") && is_folder(*at)) found.push_back(at->path());
  }
}

/// Next to the table; next to its folder, and in the folders there.
std::vector<fs::path> config_folders(const fs::path& table) {
  std::vector<fs::path> found;
  std::error_code fault;
  const fs::path whole = table.empty() ? fs::current_path(fault) : fs::absolute(table, fault).lexically_normal();
  add_folders(whole, found);
  for (const fs::path& above : {whole.parent_path(), whole.parent_path().parent_path()}) {
    const auto nearer = static_cast<std::ptrdiff_t>(found.size());
    add_folders(above, found);
    std::error_code failed;
    for (fs::directory_iterator at(above, failed), end; !failed && at != end; at.increment(failed)) {
      if (is_folder(*at) && at->path() != whole) add_folders(at->path(), found);
    }
    // A folder has no order of its own.
    std::sort(found.begin() + nearer, found.end());
  }
  return found;
}

}  // namespace summary_shelf_detail
}  // namespace

void SummaryShelf::look_for_configs(const std::filesystem::path& folder) {
  namespace detail = summary_shelf_detail;
  if (looked_) return;
  looked_ = true;
  std::vector<std::filesystem::path> folders = detail::config_folders(folder);
  if (!options_.summaries.empty()) folders.emplace(folders.begin(), options_.summaries);
  for (const std::filesystem::path& place : folders) {
    std::vector<std::filesystem::path> files;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(place, failed), end; !failed && at != end; at.increment(failed)) {
      if (at->path().extension() == ".json") files.push_back(at->path());
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) {
      const std::string name = detail::name_of(file);
      configs_.emplace(name, file.string());
      configs_.emplace(detail::key_of(name), file.string());
    }
  }
}

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::take_model(std::string_view name,
                                                                                const std::filesystem::path& folder,
                                                                                std::string_view head,
                                                                                std::optional<bool> speech) {
  const auto ends = [&](std::string_view config) {
    const auto made = speech ? summary::head_with_speech(config, head, *speech) : std::nullopt;
    return made.value_or(std::string(head));
  };
  if (name.starts_with('{')) return parse("its arguments", name);
  look_for_configs(folder);
  auto found = configs_.find(name);
  if (found == configs_.end()) found = configs_.find(summary_shelf_detail::key_of(name));
  if (found != configs_.end() && head.empty() && !speech) return take(found->second);
  if (found != configs_.end()) {
    const auto text = core::read_file(found->second);
    if (!text) return text.error();
    const std::string own = ends(*text);
    return own.empty() ? take(found->second) : with_head(found->second, *text, own);
  }
  if (const auto known = summary_shelf_detail::published(name)) {
    const std::string own = ends(known->config);
    return own.empty() ? parse(std::string(known->name), known->config)
                       : with_head(std::string(known->name), known->config, own);
  }
  return core::Error{core::ErrorCode::missing_information,
                     "there is no config of " + core::quoted(name) + "; name the folder with it (`summaries`)",
                     {}};
}

std::shared_ptr<const model::ModelGraph> SummaryShelf::take_megatron(std::string_view name,
                                                                     const std::filesystem::path& folder,
                                                                     std::string_view fields) {
  look_for_configs(folder);
  auto found = configs_.find(name);
  if (found == configs_.end()) found = configs_.find(summary_shelf_detail::key_of(name));
  std::string config;
  if (found != configs_.end()) {
    if (const auto text = core::read_file(found->second)) config = *text;
  } else if (const auto known = summary_shelf_detail::published(name)) {
    config = known->config;
  }
  const auto arguments = posttrain::megatron_form(config, fields);
  if (!arguments) return nullptr;
  const auto graph = parse(std::string(name) + " as Megatron's " + std::string(fields), *arguments);
  return graph ? *graph : nullptr;
}

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::with_head(const std::string& name,
                                                                               std::string_view config,
                                                                               std::string_view head) {
  const core::Result<std::string> text = summary::with_head(config, head);
  if (!text) return core::Error(text.error()).in_file(name);
  return parse(name + " as " + std::string(head), *text);
}

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::take(const std::string& path) {
  if (path == "-") {
    return core::Error{core::ErrorCode::malformed_input, "a run must name a summary file, not standard input", {}};
  }
  if (!options_.read_summary) {
    return core::Error{core::ErrorCode::invalid_argument, "RunsOptions names no way to read a summary", {}};
  }
  if (const auto known = read_.find(path); known != read_.end()) return known->second;
  core::Result<model::ModelGraph> graph = options_.read_summary(path);
  Shared shared = graph ? Shared(std::make_shared<const model::ModelGraph>(*std::move(graph))) : Shared(graph.error());
  return read_.emplace(path, std::move(shared)).first->second;
}

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::parse(const std::string& name,
                                                                           std::string_view text) {
  if (!options_.parse_summary) {
    return core::Error{core::ErrorCode::invalid_argument, "RunsOptions names no way to read the text of a summary", {}};
  }
  // Runs of one model may have texts of their own, as Megatron's arguments are.
  const std::string key = "text of " + name + "\n" + std::string(text);
  if (const auto known = read_.find(key); known != read_.end()) return known->second;
  core::Result<model::ModelGraph> graph = options_.parse_summary(text, name);
  Shared shared = graph ? Shared(std::make_shared<const model::ModelGraph>(*std::move(graph))) : Shared(graph.error());
  return read_.emplace(key, std::move(shared)).first->second;
}

}  // namespace gpumem::datasets
