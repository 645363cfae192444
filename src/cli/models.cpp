#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "gpumem/architectures/architecture.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "report.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

using architectures::Architecture;

bool same_letter(char one, char other) {
  return std::tolower(static_cast<unsigned char>(one)) == std::tolower(static_cast<unsigned char>(other));
}

/// Case does not count.
bool holds(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end();
}

/// The model types of an architecture that a text is part of; all of them where it is part of the architecture's name.
std::vector<std::string_view> types_with(const Architecture& architecture, std::string_view part) {
  std::vector<std::string_view> types;
  for (const std::string_view type : architecture.model_types) {
    if (holds(type, part) || holds(architecture.name, part)) types.push_back(type);
  }
  return types;
}

/// What an architecture's models are read from.
std::string_view sources_of(const Architecture& architecture) {
  if (architecture.parameters_only) return "config (parameters)";
  return architecture.classes.empty() ? "config" : "config, tree";
}

struct KnownModels {
  std::vector<std::pair<const Architecture*, std::vector<std::string_view>>> architectures = {};
  std::vector<summary::PublishedModel> published = {};
};

KnownModels known_models(std::string_view part) {
  KnownModels known;
  for (const Architecture* architecture : architectures::architectures()) {
    std::vector<std::string_view> types = types_with(*architecture, part);
    if (!types.empty()) known.architectures.emplace_back(architecture, std::move(types));
  }
  for (const std::string_view name : summary::published_model_names()) {
    auto model = holds(name, part) ? summary::published_model(name) : std::nullopt;
    if (model) known.published.push_back(*std::move(model));
  }
  return known;
}

nlohmann::ordered_json to_json(const KnownModels& known) {
  nlohmann::ordered_json json = {{"architectures", nlohmann::ordered_json::array()},
                                 {"models", nlohmann::ordered_json::array()}};
  for (const auto& [architecture, types] : known.architectures) {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (const architectures::ModelClass& row : architecture->classes) {
      if (std::find(types.begin(), types.end(), row.model_type) != types.end()) classes.push_back(row.prefix);
    }
    json["architectures"].push_back({{"architecture", architecture->name},
                                     {"model_types", types},
                                     {"printed_classes", std::move(classes)},
                                     {"parameters_only", architecture->parameters_only}});
  }
  for (const summary::PublishedModel& model : known.published) {
    json["models"].push_back({{"name", model.name}, {"parameters", model.parameters}});
  }
  return json;
}

std::string to_text(const KnownModels& known) {
  std::string text;
  if (!known.architectures.empty()) {
    Table table({{.title = "architecture"}, {.title = "read from"}, {.title = "model types"}});
    for (const auto& [architecture, types] : known.architectures) {
      std::string listed;
      for (const std::string_view type : types) listed.append(listed.empty() ? "" : ", ").append(type);
      table.add({architecture->name, sources_of(*architecture), std::move(listed)});
    }
    text = table.text(terminal_of(STDOUT_FILENO));
  }
  if (known.published.empty()) return text;
  if (!text.empty()) text += "\n";
  Table table({{.title = "model"}, {.title = "parameters", .right = true}});
  for (const summary::PublishedModel& model : known.published) {
    table.add({model.name, core::with_separators(model.parameters)});
  }
  return text + table.text(terminal_of(STDOUT_FILENO));
}

}  // namespace

int run_models(const ModelsOptions& options) {
  const KnownModels known = known_models(options.part);
  if (known.architectures.empty() && known.published.empty()) {
    return report_error({ErrorCode::missing_information,
                         "no model that gpumem knows has " + core::quoted(options.part) +
                             " in its name; 'gpumem models' lists all of them",
                         {}});
  }
  const std::string text = options.json ? to_json(known).dump(2) + "\n" : to_text(known);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
