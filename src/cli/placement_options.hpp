// Enters: how a user says which policy places jobs, and under which conditions. Leaves: what place/ takes. Shared by
// the commands that place.
#pragma once

#include <memory>
#include <string>

#include "gpumem/place/policies.hpp"

namespace gpumem::cli {

struct PlacementOptions {
  std::string policy;              ///< a policy's name; empty: as the command says
  std::string margin = "2GiB";     ///< or "upper": the estimate's own
  std::string smact_cap = "0.80";  ///< or "none"
  std::string free_floor = "5GiB";
  bool idle_first = false;
};

/// What people write: "2GiB", "512 MiB", "0"; a plain number is bytes. Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<core::Bytes> bytes_from(const std::string& text, std::string_view option);
/// Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<place::Margin> margin_from(const PlacementOptions& options);
[[nodiscard]] core::Result<place::Conditions> conditions_from(const PlacementOptions& options);

}  // namespace gpumem::cli
