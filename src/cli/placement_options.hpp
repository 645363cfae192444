// Enters: how a user says which policy places jobs, and under which conditions. Leaves: what place/ takes. Shared by
// the commands that place.
#pragma once

#include <memory>
#include <string>

#include "gpumem/place/policies.hpp"

namespace gpumem::cli {

struct PlacementOptions {
  std::string policy;              ///< a policy's name; empty: as the command says
  std::string margin = "2GiB";     ///< as place::parse_margin() takes it
  std::string smact_cap = "0.80";  ///< or "none"
  std::string free_floor = "5GiB";
  bool idle_first = false;
};

/// As core::parse_bytes() reads them. Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<core::Bytes> bytes_from(const std::string& text, std::string_view option);
/// Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<place::Conditions> conditions_from(const PlacementOptions& options);

}  // namespace gpumem::cli
