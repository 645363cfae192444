#pragma once

#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <array>

#include "gpumem/ml/trained_model.hpp"
#include "gpumem/utilisation/roofline.hpp"
#include "gpumem/utilisation/utilisation_mlp.hpp"

namespace gpumem::utilisation {

namespace utilisation_estimators_detail {

using Made = core::Result<std::unique_ptr<UtilisationEstimator>>;

GPUMEM_INLINE Made create_roofline(const std::string& /*model*/) {
  return std::unique_ptr<UtilisationEstimator>(std::make_unique<Roofline>());
}

template <const std::string_view& Name>
Made create_learned(const std::string& model) {
  if (!model.empty()) {
    core::Result<ml::TrainedModel> named = ml::find_model(model);
    if (!named) return named.error();
    std::vector<ml::TrainedModel> models;
    models.push_back(*std::move(named));
    return UtilisationMlp::create(Name, std::move(models));
  }
  core::Result<std::vector<ml::TrainedModel>> builtin = ml::find_models(std::string(Name) + "-");
  if (!builtin) return builtin.error();
  return UtilisationMlp::create(Name, *std::move(builtin));
}

inline constexpr std::array<UtilisationEstimatorEntry, 3> kAll = {{
    {UtilisationMlp::kName, "ensembles of small perceptrons on the roofline's figures, trained on measured runs",
     create_learned<UtilisationMlp::kName>},
    {UtilisationMlp::kBinsName, "the same as a classifier: SMACT in classes, with their probabilities",
     create_learned<UtilisationMlp::kBinsName>},
    {Roofline::kName, "each kernel's time by the GPU's peak and bandwidth, and the host's launches", create_roofline},
}};

}  // namespace utilisation_estimators_detail

GPUMEM_INLINE std::span<const UtilisationEstimatorEntry> utilisation_estimators() {
  return utilisation_estimators_detail::kAll;
}

GPUMEM_INLINE core::Result<std::unique_ptr<UtilisationEstimator>> make_utilisation_estimator(std::string_view name,
                                                                                             const std::string& model) {
  std::string names;
  for (const UtilisationEstimatorEntry& entry : utilisation_estimators()) {
    if (entry.name == name) return entry.create(model);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no estimator of utilisation " + core::quoted(name) + "; choose one of " + names,
                     {}};
}

}  // namespace gpumem::utilisation
