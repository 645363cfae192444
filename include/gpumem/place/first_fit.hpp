// Input: a request and the server.
// Output: the first GPUs in which the job fits. CARMA's "oracle-FF". A job without an estimate goes to idle GPUs.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class FirstFit final : public Policy {
 public:
  static constexpr std::string_view kName = "first-fit";

  FirstFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

}  // namespace gpumem::place
