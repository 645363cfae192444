// Input: an estimator's name.
// Output: the estimator. To add one: a file here and a row in the list of estimators_inl.hpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

/// What an estimator may be told at its making; those that it has no use for are ignored.
struct EstimatorOptions {
  device::AllocatorOptions allocator;  ///< PYTORCH_CUDA_ALLOC_CONF of the job
  std::string model = {};  ///< of learned estimators: a built-in model, or a folder; empty: the built-in ones
};

struct EstimatorEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  core::Result<std::unique_ptr<Estimator>> (*create)(const EstimatorOptions& options);
};

/// Every estimator that gpumem has.
[[nodiscard]] std::span<const EstimatorEntry> estimators();

/// The estimator of this name. Errors: invalid_argument, listing the names.
[[nodiscard]] core::Result<std::unique_ptr<Estimator>> make_estimator(std::string_view name,
                                                                      const EstimatorOptions& options = {});

}  // namespace gpumem::estimate
