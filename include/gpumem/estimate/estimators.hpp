// Enters: an estimator's name. Leaves: the estimator. Adding one is one file beside this one and one row in
// the list of estimators_inl.hpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

struct EstimatorEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  core::Result<std::unique_ptr<Estimator>> (*create)();
};

/// Every estimator that gpumem has.
[[nodiscard]] std::span<const EstimatorEntry> estimators();

/// The estimator of this name. Errors: invalid_argument, listing the names.
[[nodiscard]] core::Result<std::unique_ptr<Estimator>> make_estimator(std::string_view name);

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/estimators_inl.hpp"
#endif
