#pragma once

#include "gpumem/ml/builtin_models.hpp"

#include <array>
#include <filesystem>

#if __has_include("gpumem/ml/impl/builtin_models.hpp")
#include "gpumem/ml/impl/builtin_models.hpp"
#else
namespace gpumem::ml::builtin {
inline constexpr std::array<BuiltinModel, 0> kModels = {};
}
#endif

namespace gpumem::ml {

GPUMEM_INLINE std::span<const BuiltinModel> builtin_models() { return builtin::kModels; }

GPUMEM_INLINE core::Result<TrainedModel> find_model(std::string_view name) {
  std::string names;
  for (const BuiltinModel& model : builtin_models()) {
    if (model.name == name) return make_model(model.config, model.weights, model.name);
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  }
  std::error_code ignored;
  const std::string folder(name);
  if (name.find('/') != std::string_view::npos || std::filesystem::is_directory(folder, ignored)) {
    return load_model(folder);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no trained model " + core::quoted(name) + "; choose one of " + names +
                         ", or give the path of a model folder",
                     {}};
}

GPUMEM_INLINE core::Result<std::vector<TrainedModel>> find_models(std::string_view beginning) {
  std::vector<TrainedModel> found;
  for (const BuiltinModel& builtin : builtin_models()) {
    if (!builtin.name.starts_with(beginning)) continue;
    core::Result<TrainedModel> model = make_model(builtin.config, builtin.weights, builtin.name);
    if (!model) return std::move(model.error());
    found.push_back(*std::move(model));
  }
  if (!found.empty()) return found;
  return core::Error{
      core::ErrorCode::invalid_argument,
      "gpumem was built without the trained models " + std::string(beginning) + "*; give the path of a model folder",
      {}};
}

}  // namespace gpumem::ml
