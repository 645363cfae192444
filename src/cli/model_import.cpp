#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem_datasets/gpumemnet_checkpoint.hpp"

namespace gpumem::cli {

namespace {

namespace fs = std::filesystem;
using datasets::ImportedModel;

/// What is in the place of the new model.
enum class TargetFolder : std::uint8_t { free, same, taken };

TargetFolder target_of(const fs::path& folder, const std::string& config, const std::string& weights) {
  std::error_code failed;
  if (!fs::exists(fs::symlink_status(folder, failed)) || fs::is_empty(folder, failed)) return TargetFolder::free;
  const auto old_config = core::read_file((folder / ml::kConfigFile).string());
  const auto old_weights = core::read_file((folder / ml::kWeightsFile).string());
  const bool same = old_config && old_weights && *old_config == config && *old_weights == weights;
  return same ? TargetFolder::same : TargetFolder::taken;
}

Result<ImportedModel> import(const ModelImportOptions& options) {
  const auto bytes = core::read_file(options.checkpoint);
  if (!bytes) return bytes.error();
  auto model = datasets::import_gpumemnet(*bytes, options.checkpoint);
  if (!model) return model.error();
  const std::string config = ml::write_model_config(model->config);
  const std::string weights = ml::write_safetensors(model->weights);
  const TargetFolder target = target_of(options.out, config, weights);
  if (target == TargetFolder::same) return model;
  if (target == TargetFolder::taken && !options.force) {
    return Error{ErrorCode::invalid_argument,
                 "is there already and does not hold this model; name another folder, or write over it with --force",
                 core::Place{options.out, 0, {}}};
  }
  // Loads it first: what could not be loaded is not written.
  const auto saved = ml::save_model(model->config, model->weights, options.out);
  if (!saved) return saved.error();
  return model;
}

}  // namespace

int run_model_import(const ModelImportOptions& options) {
  const auto model = import(options);
  if (!model) return report_error(model.error());
  std::int64_t weights = 0;
  for (const ml::Tensor& tensor : model->weights.tensors) weights += static_cast<std::int64_t>(tensor.values.size());
  std::printf("%s: %s, %s weights in %s tensors, %s outputs\n", options.out.c_str(), model->config.name.c_str(),
              core::with_separators(weights).c_str(),
              core::with_separators(static_cast<std::int64_t>(model->weights.tensors.size())).c_str(),
              core::with_separators(model->config.network.outputs).c_str());
  return 0;
}

}  // namespace gpumem::cli
