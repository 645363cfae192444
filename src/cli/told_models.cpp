#include "told_models.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "gpumem/core/file.hpp"
#include "gpumem/summary/model_folder.hpp"

namespace gpumem::cli {

namespace {

namespace told_models_detail {

using trainer_files::TrainerJob;

/// The name of a published model that is taken for one that is not here. Nothing: none is, or `strict` takes none.
std::optional<std::string> stand_in(const TrainerJob& job, bool strict, std::vector<std::string>& texts) {
  if (strict) return std::nullopt;
  auto name = trainer_files::model_by_folder(job.model);
  const bool by_program = !name && !job.usual_model.empty();
  if (by_program) {
    const auto usual = summary::published_model(job.usual_model);
    if (usual) name = std::string(usual->name);
  }
  if (!name || job.model.empty()) return name;
  texts.push_back("the model " + core::quoted(job.model) + " is not here: it is taken to have the sizes of " + *name +
                  (by_program ? ", as the program trains no other" : ""));
  return name;
}

/// The model's config with the fields that the program changes.
std::optional<std::string> changed_config(const TrainerJob& job, const std::string& model) {
  const auto published = summary::published_model(model);
  const auto folder = std::filesystem::path(model);
  const auto file = published
                        ? core::Result<std::string>(published->config)
                        : core::read_regular_file((folder / "unet" / "config.json").string(), summary::kLargestConfig);
  const auto other =
      file ? file : core::read_regular_file((folder / "transformer" / "config.json").string(), summary::kLargestConfig);
  auto config = nlohmann::json::parse(other ? *other : "", nullptr, false);
  const auto fields = nlohmann::json::parse(job.changed_fields, nullptr, false);
  if (!config.is_object() || !fields.is_object()) return std::nullopt;
  config.update(fields);
  if (config.value("_class_name", "") == "ControlNetModel") config.erase("up_block_types");
  return config.dump();
}

}  // namespace told_models_detail

}  // namespace

Result<std::string> told_model(const trainer_files::TrainerJob& job, const std::string& beside, bool strict,
                               std::vector<std::string>& texts) {
  namespace detail = told_models_detail;
  auto found = trainer_files::find_model(job, beside);
  const bool by_name =
      !found && !job.model.empty() && (summary::published_model(job.model) || summary::cached_model(job.model));
  std::optional<std::string> model;
  if (found) model = *found;
  else if (by_name) model = job.model;
  else model = detail::stand_in(job, strict, texts);
  if (!model) return found;
  if (job.changed_fields.empty()) return *model;
  auto made = detail::changed_config(job, *model);
  const std::string fields = core::shortened(job.changed_fields, 120);
  if (made) {
    texts.push_back("the program changes its model's config: " + fields);
    return *std::move(made);
  }
  texts.push_back("the program changes its model's config, and the one that is here is taken as it is: " + fields);
  return *model;
}

}  // namespace gpumem::cli
