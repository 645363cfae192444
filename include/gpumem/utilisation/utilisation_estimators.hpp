// Input: an estimator's name.
// Output: the estimator of utilisation. To add one: a file here and a row in the list of
// utilisation_estimators_inl.hpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/utilisation/utilisation_estimator.hpp"

namespace gpumem::utilisation {

struct UtilisationEstimatorEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  /// `model`, of learned estimators: a built-in model, or a folder; empty: the built-in ones.
  core::Result<std::unique_ptr<UtilisationEstimator>> (*create)(const std::string& model);
};

/// Every estimator of utilisation that gpumem has.
[[nodiscard]] std::span<const UtilisationEstimatorEntry> utilisation_estimators();

/// The estimator of this name. Errors: invalid_argument, listing the names; those of loading its models.
[[nodiscard]] core::Result<std::unique_ptr<UtilisationEstimator>> make_utilisation_estimator(
    std::string_view name, const std::string& model = {});

}  // namespace gpumem::utilisation
