// Input: a policy's name.
// Output: the policy. To add one: a file here and a row in the list of policies_inl.hpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/place/policy.hpp"

namespace gpumem::place {

struct PolicyEntry {
  std::string_view name;
  std::string_view
      carma;  ///< what CARMA's configuration calls it, after its "oracle-", "OR-" or "EST-"; empty: it has none
  std::string_view description;  ///< one line for people
  std::unique_ptr<Policy> (*create)();
};

/// Every policy that gpumem has.
[[nodiscard]] std::span<const PolicyEntry> policies();

/// The policy of this name, or of CARMA's for it ("OR-MAGM", "oracle-FF"), upper and lower case alike. Errors:
/// invalid_argument, listing the names.
[[nodiscard]] core::Result<std::unique_ptr<Policy>> make_policy(std::string_view name);

}  // namespace gpumem::place
