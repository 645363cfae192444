// Input: a request and the server.
// Output: the GPUs in which the job fits with the least memory left. CARMA's "oracle-BF". A job without an estimate
// goes to idle GPUs.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class BestFit final : public Policy {
 public:
  static constexpr std::string_view kName = "best-fit";

  BestFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return static_cast<double>(gpu.free().count()); }
};

}  // namespace gpumem::place
